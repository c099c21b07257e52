# /// script
# requires-python = "==3.11.*"
# dependencies = ["torch==2.13.0", "numpy==2.4.6", "setuptools==80.9.0", "avalanche-lib==0.6.0", "torchvision==0.28.0"]
# ///
"""avalanche: freeze_everything, which by default puts the network into evaluation, too."""

import importlib.metadata

from network import ask, normalizes_by, patched_for_torchvision

patched_for_torchvision()
from avalanche.training.utils import freeze_everything  # noqa: E402


def use(net, x, t):
    freeze_everything(net)
    return {"frozen": normalizes_by(net)}


if __name__ == "__main__":
    ask(use, "avalanche_freeze", {"avalanche-lib": importlib.metadata.version("avalanche-lib")})
