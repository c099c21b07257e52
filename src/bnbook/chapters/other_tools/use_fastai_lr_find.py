# /// script
# requires-python = "==3.11.*"
# dependencies = ["torch==2.13.0", "numpy==2.4.6", "setuptools==80.9.0", "fastai==2.8.12", "torchvision==0.28.0"]
# ///
"""fastai: lr_find over six steps; the number is the loss of its first step."""

import importlib.metadata

import torch
from network import ask, patched_for_torchvision
from torch.utils.data import DataLoader, TensorDataset

patched_for_torchvision()
from fastai.data.core import DataLoaders  # noqa: E402
from fastai.learner import Learner  # noqa: E402
from fastai.optimizer import SGD  # noqa: E402


def use(net, x, t):
    held = [DataLoader(TensorDataset(x, t), len(x)) for _ in range(2)]
    learner = Learner(DataLoaders(*held), net, torch.nn.CrossEntropyLoss(), opt_func=SGD, path=".")
    with learner.no_bar(), learner.no_logging():
        learner.lr_find(num_it=6, show_plot=False, suggest_funcs=())
    return {"quantity": "loss", "kind": "number", "value": float(learner.recorder.losses[0])}


if __name__ == "__main__":
    import fastai.callback.schedule  # noqa: F401, gives the learner its lr_find

    ask(use, "fastai_lr_find", {"fastai": importlib.metadata.version("fastai")})
