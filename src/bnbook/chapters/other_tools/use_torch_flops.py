# /// script
# requires-python = "==3.11.*"
# dependencies = ["torch==2.13.0", "numpy==2.4.6", "setuptools==80.9.0"]
# ///
"""torch.utils.flop_counter.FlopCounterMode around one pass."""

import torch
from network import ask
from torch.utils.flop_counter import FlopCounterMode


def use(net, x, t):
    with FlopCounterMode(display=False) as counted:
        net(x)
    return {"count": float(counted.get_total_flops())}


if __name__ == "__main__":
    ask(use, "torch_flops", {"torch": torch.__version__})
