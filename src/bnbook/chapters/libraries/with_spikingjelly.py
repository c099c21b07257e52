# /// script
# requires-python = "==3.11.*"
# dependencies = ["spikingjelly==2.0.0", "torch==2.13.0", "numpy==2.4.6", "setuptools==80.9.0"]
# ///
"""spikingjelly's BatchNorm1d and BatchNorm2d, in steps of time (T, B, C, ...): the batch is put into two steps."""

import importlib.metadata

import torch
from questions import ask
from spikingjelly.activation_based import layer as layers
from with_torch import Layer as Torch


class Layer(Torch):
    def __init__(self, channels, spatial, dtype="float32"):
        make = layers.BatchNorm2d if spatial else layers.BatchNorm1d
        self.layer = make(channels, step_mode="m").to(getattr(torch, dtype))

    def run(self, x):
        steps = 2 if len(x) % 2 == 0 and len(x) else 1
        return self.layer(x.reshape(steps, len(x) // steps, *x.shape[1:])).reshape(x.shape)

    def train(self, x):
        self.layer.train()
        return self.run(x)

    def evaluate(self, x):
        self.layer.eval()
        return self.run(x)

    def default(self, x):
        return self.run(x)


if __name__ == "__main__":
    versions = {"spikingjelly": importlib.metadata.version("spikingjelly"), "torch": torch.__version__}
    ask(Layer, "spikingjelly", versions, eps_argument="eps", momentum_argument="momentum", momentum=0.1)
