# /// script
# requires-python = "==3.11.*"
# dependencies = ["torch==2.13.0", "numpy==2.4.6", "setuptools==80.9.0", "thop==0.1.1.post2209072238"]
# ///
"""thop: multiplications counted by hooks."""

import importlib.metadata

import thop
from network import ask


def use(net, x, t):
    return {"count": float(thop.profile(net, inputs=(x,), verbose=False)[0])}


if __name__ == "__main__":
    ask(use, "thop", {"thop": importlib.metadata.version("thop")})
