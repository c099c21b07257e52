# /// script
# requires-python = "==3.11.*"
# dependencies = ["torch_geometric==2.8.1", "torch==2.13.0", "numpy==2.4.6"]
# ///
"""torch_geometric.nn.BatchNorm, over the nodes (N, C) of a batch; it takes no four dimensions."""

import torch
import torch_geometric
from questions import ask
from with_torch import Layer as Torch


class Layer(Torch):
    def __init__(self, channels, spatial, dtype="float32"):
        self.module = torch_geometric.nn.BatchNorm(channels).to(getattr(torch, dtype))
        self.layer = self.module.module

    def train(self, x):
        return self.module.train()(x)

    def evaluate(self, x):
        return self.module.eval()(x)

    def default(self, x):
        return self.module(x)


if __name__ == "__main__":
    versions = {"torch_geometric": torch_geometric.__version__, "torch": torch.__version__}
    ask(Layer, "torch-geometric", versions, eps_argument="eps", momentum_argument="momentum", momentum=0.1)
