# /// script
# requires-python = "==3.11.*"
# dependencies = ["torch==2.13.0", "numpy==2.4.6", "setuptools==80.9.0", "avalanche-lib==0.6.0", "torchvision==0.28.0"]
# ///
"""avalanche: the importances of elastic weight consolidation, the Fisher diagonal of the targets, example by example."""

import importlib.metadata

import torch
from network import ask, patched_for_torchvision

patched_for_torchvision()
from avalanche.training.plugins import EWCPlugin  # noqa: E402
from torch.utils.data import TensorDataset  # noqa: E402


def use(net, x, t):
    data, optimizer = TensorDataset(x, t, torch.zeros(len(x))), torch.optim.SGD(net.parameters(), 0.1)
    found = EWCPlugin(1.0).compute_importances(net, torch.nn.CrossEntropyLoss(), optimizer, data, "cpu", 1)
    value = torch.cat([each.data.ravel() for each in found.values()])
    return {"quantity": "empirical_fisher", "kind": "diagonal", "value": value.tolist()}


if __name__ == "__main__":
    ask(use, "avalanche_ewc", {"avalanche-lib": importlib.metadata.version("avalanche-lib")})
