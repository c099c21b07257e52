# /// script
# requires-python = "==3.11.*"
# dependencies = ["torch==2.13.0", "numpy==2.4.6", "setuptools==80.9.0", "ema-pytorch==0.8.3"]
# ///
"""ema_pytorch: its average after one update towards a network whose statistics and weights are larger by one."""

import copy
import importlib.metadata

import torch
from ema_pytorch import EMA
from network import ask, shares


def use(net, x, t):
    average, held = EMA(net, beta=0.5, update_after_step=0, update_every=1), copy.deepcopy(net.state_dict())
    average.update()
    start = average.ema_model[1].running_mean.clone(), average.ema_model[1].weight.detach().clone()
    with torch.no_grad():
        for each in (net[1].running_mean, net[1].weight):
            each.add_(1)
    average.update()
    now = average.ema_model[1].running_mean, average.ema_model[1].weight
    moved = [float((a - b).mean()) for a, b in zip(now, start)]
    net.load_state_dict(held)
    return {
        "statistics_moved_by": moved[0],
        "weights_moved_by": moved[1],
        "copy": shares(net, average.ema_model),
    }


if __name__ == "__main__":
    ask(use, "ema_pytorch", {"ema-pytorch": importlib.metadata.version("ema-pytorch")})
