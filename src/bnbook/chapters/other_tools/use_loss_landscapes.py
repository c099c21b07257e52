# /// script
# requires-python = "==3.11.*"
# dependencies = ["torch==2.13.0", "numpy==2.4.6", "setuptools==80.9.0", "loss-landscapes==3.0.6"]
# ///
"""loss-landscapes: the loss at the network itself, which is the number, and a random line of three points."""

import importlib.metadata

import loss_landscapes
import numpy as np
import torch
from loss_landscapes.metrics import Loss
from network import ask


def use(net, x, t):
    np.random.seed(0)
    metric = Loss(torch.nn.CrossEntropyLoss(), x, t)
    value = loss_landscapes.point(net, metric)
    loss_landscapes.random_line(net, metric, distance=0.1, steps=3)
    return {"quantity": "loss", "kind": "number", "value": float(value)}


if __name__ == "__main__":
    ask(use, "loss_landscapes", {"loss-landscapes": importlib.metadata.version("loss-landscapes")})
