# /// script
# requires-python = "==3.11.*"
# dependencies = ["torch==2.13.0", "numpy==2.4.6", "setuptools==80.9.0", "timm==1.0.31", "torchvision==0.28.0"]
# ///
"""timm: ModelEmaV3 after one update towards a network whose statistics and weights are larger by one."""

import copy
import importlib.metadata

import torch
from network import ask, patched_for_torchvision, shares

patched_for_torchvision()
from timm.utils import ModelEmaV3  # noqa: E402


def use(net, x, t):
    average, other = ModelEmaV3(net, decay=0.5), copy.deepcopy(net)
    with torch.no_grad():
        for each in (other[1].running_mean, other[1].weight):
            each.add_(1)
    average.update(other)
    new = average.module[1]
    return {
        "statistics_moved_by": float((new.running_mean - net[1].running_mean).mean()),
        "weights_moved_by": float((new.weight - net[1].weight).mean()),
        "copy": shares(net, average.module),
    }


if __name__ == "__main__":
    ask(use, "timm_ema", {"timm": importlib.metadata.version("timm")})
