# /// script
# requires-python = "==3.11.*"
# dependencies = ["torch==2.13.0", "numpy==2.4.6"]
# ///
"""torch.ao.nn.intrinsic.qat.ConvBn2d, a convolution and batch norm for training before quantization: the convolution
is the identity, and nothing is rounded, so that what is left is its batch norm."""

import torch
from questions import ask
from torch.ao.nn.intrinsic.qat import ConvBn2d
from torch.ao.quantization import QConfig
from with_torch import Layer as Torch


class Layer(Torch):
    def __init__(self, channels, spatial, dtype="float32"):
        config = QConfig(activation=torch.nn.Identity, weight=torch.nn.Identity)
        self.module = ConvBn2d(channels, channels, 1, qconfig=config)
        with torch.no_grad():
            self.module.weight.copy_(torch.eye(channels)[:, :, None, None])
            self.module.bn.weight.fill_(1)
        self.module.to(getattr(torch, dtype))
        self.layer = self.module.bn

    def run(self, x):
        return self.module(x if x.ndim == 4 else x[:, :, None, None]).reshape(x.shape)

    def train(self, x):
        self.module.train()
        return self.run(x)

    def evaluate(self, x):
        self.module.eval()
        return self.run(x)

    def default(self, x):
        return self.run(x)


if __name__ == "__main__":
    ask(
        Layer,
        "torch-ao-qat",
        {"torch": torch.__version__},
        eps_argument="eps",
        momentum_argument="momentum",
        momentum=0.1,
    )
