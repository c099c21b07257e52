# /// script
# requires-python = "==3.11.*"
# dependencies = ["torch==2.13.0", "numpy==2.4.6", "setuptools==80.9.0", "torchsummary==1.5.1"]
# ///
"""torchsummary: the table of layers."""

import importlib.metadata

from network import ask
from torchsummary import summary


def use(net, x, t):
    summary(net, (1, 6, 6), device="cpu")
    return {}


if __name__ == "__main__":
    ask(use, "torchsummary", {"torchsummary": importlib.metadata.version("torchsummary")})
