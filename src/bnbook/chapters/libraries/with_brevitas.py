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
    """Training runs the same scale and shift as evaluation, so that no question about a batch applies."""

    def __init__(self, channels, spatial, dtype="float32"):
        self.layer = brevitas.nn.BatchNorm2dToQuantScaleBias(channels, weight_quant=None)
        self.norm = torch.nn.BatchNorm2d(channels)
        self.layer.to(getattr(torch, dtype))

    def evaluate(self, x):
        return self.default(x)

    def default(self, x):
        return self.layer(x if x.ndim == 4 else x[:, :, None, None]).reshape(x.shape)

    def train(self, *arguments):
        raise NotImplementedError(
            "absent: no batch norm in training, but a scale and a shift that are learned"
        )

    gradient = hessian = train

    def statistics(self):
        raise NotImplementedError("absent: it has no running statistics, they are in its scale and shift")

    def set(self, mean, var):
        state = {
            **self.norm.state_dict(),
            "running_mean": torch.tensor(mean),
            "running_var": torch.tensor(var),
        }
        self.layer.load_state_dict(
            state, strict=False
        )  # folds the four into its own two, which it then calls missing


if __name__ == "__main__":
    versions = {"brevitas": importlib.metadata.version("brevitas"), "torch": torch.__version__}
    ask(Layer, "brevitas", versions, eps_argument="eps", momentum_argument=None, momentum=None, eps=1e-5)
