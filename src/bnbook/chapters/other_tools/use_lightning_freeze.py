# /// script
# requires-python = "==3.11.*"
# dependencies = ["torch==2.13.0", "numpy==2.4.6", "setuptools==80.9.0", "lightning==2.6.6"]
# ///
"""lightning: BaseFinetuning.freeze, which spares batch norms by default, and freezes them with train_bn=False."""

import importlib.metadata

from lightning.pytorch.callbacks import BaseFinetuning
from network import ask, normalizes_by


def use(net, x, t):
    BaseFinetuning.freeze(net, train_bn=False)
    return {"frozen": normalizes_by(net)}


if __name__ == "__main__":
    ask(use, "lightning_freeze", {"lightning": importlib.metadata.version("lightning")})
