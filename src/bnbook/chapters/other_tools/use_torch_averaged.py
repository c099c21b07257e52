# /// script
# requires-python = "==3.11.*"
# dependencies = ["torch==2.13.0", "numpy==2.4.6", "setuptools==80.9.0"]
# ///
"""torch.optim.swa_utils: AveragedModel after one update towards a network whose statistics and weights are larger by one."""

import copy

import torch
from network import ask, shares
from torch.optim.swa_utils import AveragedModel


def use(net, x, t):
    average, other = AveragedModel(net), copy.deepcopy(net)
    with torch.no_grad():
        for each in (other[1].running_mean, other[1].weight):
            each.add_(1)
    average.update_parameters(net)
    average.update_parameters(other)
    new = average.module[1]
    return {
        "statistics_moved_by": float((new.running_mean - net[1].running_mean).mean()),
        "weights_moved_by": float((new.weight - net[1].weight).mean()),
        "copy": shares(net, average.module),
    }


if __name__ == "__main__":
    ask(use, "torch_averaged", {"torch": torch.__version__})
