# /// script
# requires-python = "==3.11.*"
# dependencies = ["torch==2.13.0", "numpy==2.4.6", "setuptools==80.9.0", "torchinfo==1.8.0"]
# ///
"""torchinfo: the table of layers."""

import importlib.metadata

import torchinfo
from network import ask


def use(net, x, t):
    return {"count": float(torchinfo.summary(net, input_data=x, verbose=0).total_mult_adds)}


if __name__ == "__main__":
    ask(use, "torchinfo", {"torchinfo": importlib.metadata.version("torchinfo")})
