# /// script
# requires-python = "==3.11.*"
# dependencies = ["torch==2.13.0", "numpy==2.4.6", "setuptools==80.9.0", "fastai==2.8.12", "torchvision==0.28.0"]
# ///
"""fastai: Learner.freeze with train_bn=False, all layers but the last in the frozen group."""

import importlib.metadata

import torch
from network import ask, normalizes_by, patched_for_torchvision
from torch.utils.data import DataLoader, TensorDataset

patched_for_torchvision()
from fastai.data.core import DataLoaders  # noqa: E402
from fastai.learner import Learner  # noqa: E402
from fastai.optimizer import SGD  # noqa: E402


def use(net, x, t):
    held = [DataLoader(TensorDataset(x, t), len(x)) for _ in range(2)]
    groups = dict(splitter=lambda model: [list(model[:8].parameters()), list(model[8:].parameters())])
    learner = Learner(
        DataLoaders(*held), net, torch.nn.CrossEntropyLoss(), opt_func=SGD, train_bn=False, **groups
    )
    learner.freeze()
    return {"frozen": normalizes_by(net)}


if __name__ == "__main__":
    ask(use, "fastai_freeze", {"fastai": importlib.metadata.version("fastai")})
