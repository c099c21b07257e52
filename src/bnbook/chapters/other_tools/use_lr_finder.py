# /// script
# requires-python = "==3.11.*"
# dependencies = ["torch==2.13.0", "numpy==2.4.6", "setuptools==80.9.0", "torch-lr-finder==0.2.2"]
# ///
"""torch-lr-finder: a range test of five steps, then its reset; the number is the loss of its first step."""

import importlib.metadata

import torch
from network import ask
from torch.utils.data import DataLoader, TensorDataset
from torch_lr_finder import LRFinder


def use(net, x, t):
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-4)
    finder = LRFinder(net, optimizer, torch.nn.CrossEntropyLoss(), device="cpu")
    finder.range_test(DataLoader(TensorDataset(x, t), len(x)), num_iter=5, end_lr=1, smooth_f=0)
    finder.reset()
    return {"quantity": "loss", "kind": "number", "value": finder.history["loss"][0]}


if __name__ == "__main__":
    ask(use, "lr_finder", {"torch-lr-finder": importlib.metadata.version("torch-lr-finder")})
