# /// script
# requires-python = "==3.11.*"
# dependencies = ["torch==2.13.0", "numpy==2.4.6", "setuptools==80.9.0", "timm==1.0.31", "torchvision==0.28.0"]
# ///
"""timm: utils.freeze on every layer of the network."""

import importlib.metadata

from network import ask, normalizes_by, patched_for_torchvision

patched_for_torchvision()
from timm.utils import freeze  # noqa: E402


def use(net, x, t):
    freeze(net, list("012345678"))
    return {"frozen": normalizes_by(net)}


if __name__ == "__main__":
    ask(use, "timm_freeze", {"timm": importlib.metadata.version("timm")})
