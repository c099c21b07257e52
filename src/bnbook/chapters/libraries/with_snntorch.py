# /// script
# requires-python = "==3.11.*"
# dependencies = ["snntorch==1.0.0", "torch==2.13.0", "numpy==2.4.6"]
# ///
"""snntorch.BatchNormTT1d and BatchNormTT2d: a list of layers, one a step of time; one step is asked."""

import importlib.metadata

import snntorch
import torch
from questions import ask
from with_torch import Layer as Torch


class Layer(Torch):
    def __init__(self, channels, spatial, dtype="float32"):
        make = snntorch.BatchNormTT2d if spatial else snntorch.BatchNormTT1d
        self.layer = make(channels, time_steps=1)[0].to(getattr(torch, dtype))


if __name__ == "__main__":
    versions = {"snntorch": importlib.metadata.version("snntorch"), "torch": torch.__version__}
    ask(Layer, "snntorch", versions, eps_argument="eps", momentum_argument="momentum", momentum=0.1)
