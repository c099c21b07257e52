# /// script
# requires-python = "==3.11.*"
# dependencies = ["torch==2.13.0", "numpy==2.4.6", "setuptools==80.9.0"]
# ///
"""torch.export: the module of an exported network."""

import torch
from network import ask, shares


def use(net, x, t):
    return {"copy": shares(net, torch.export.export(net, (x,)).module())}


if __name__ == "__main__":
    ask(use, "torch_export", {"torch": torch.__version__})
