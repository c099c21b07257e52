# /// script
# requires-python = "==3.11.*"
# dependencies = ["torch==2.13.0", "numpy==2.4.6", "setuptools==80.9.0"]
# ///
"""torch.optim.swa_utils.update_bn on the batch: fresh averages, which is what it is for."""

import torch
from network import ask
from torch.optim.swa_utils import update_bn


def use(net, x, t):
    update_bn([x], net)
    return {}


if __name__ == "__main__":
    ask(use, "torch_update_bn", {"torch": torch.__version__})
