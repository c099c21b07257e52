# /// script
# requires-python = "==3.11.*"
# dependencies = ["brevitas==0.13.4", "torch==2.13.0", "numpy==2.4.6", "setuptools==80.9.0"]
# ///
"""brevitas.nn.BatchNorm2dToQuantScaleBias with no quantization of the weight: a scale and a shift that are learned."""

import importlib.metadata

import brevitas.nn
import torch
from questions import ask
from with_torch import Layer as Torch


class Layer(Torch):
    def __init__(self, channels, spatial, dtype="float32"):
        self.layer = brevitas.nn.BatchNorm2dToQuantScaleBias(channels, weight_quant=None)
        self.norm = torch.nn.BatchNorm2d(channels)
        self.layer.to(getattr(torch, dtype))

    def run(self, x):
        return self.layer(x if x.ndim == 4 else x[:, :, None, None]).reshape(x.shape)

    def train(self, x):
        self.layer.train()
        return self.run(x)

    def evaluate(self, x):
        self.layer.eval()
        return self.run(x)

    def default(self, x):
        return self.run(x)

    def statistics(self):
        raise NotImplementedError("absent: it has no running statistics, they are in its scale and shift")

    def set(self, mean, var):
        state = {"weight": self.norm.weight, "bias": self.norm.bias, "running_mean": torch.tensor(mean)}
        self.layer.load_state_dict(
            {**state, "running_var": torch.tensor(var), "num_batches_tracked": torch.tensor(1)}
        )


if __name__ == "__main__":
    versions = {"brevitas": importlib.metadata.version("brevitas"), "torch": torch.__version__}
    ask(Layer, "brevitas", versions, eps_argument="eps", momentum_argument=None, momentum=None, eps=1e-5)
