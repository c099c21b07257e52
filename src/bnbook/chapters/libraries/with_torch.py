# /// script
# requires-python = "==3.11.*"
# dependencies = ["torch==2.13.0", "numpy==2.4.6"]
# ///
"""torch.nn.BatchNorm1d and BatchNorm2d."""

import torch
from questions import ask


class Layer:
    last = False

    def __init__(self, channels, spatial, dtype="float32"):
        make = torch.nn.BatchNorm2d if spatial else torch.nn.BatchNorm1d
        self.layer = make(channels).to(getattr(torch, dtype))

    @staticmethod
    def array(x, dtype):
        return torch.tensor(x).to(getattr(torch, dtype))

    @staticmethod
    def numbers(y):
        return y.detach().to(torch.float64).numpy()

    def train(self, x):
        return self.layer.train()(x)

    def evaluate(self, x):
        return self.layer.eval()(x)

    def default(self, x):
        return self.layer(x)

    def statistics(self):
        return self.layer.running_mean.clone(), self.layer.running_var.clone()

    def set(self, mean, var):
        self.layer.running_mean, self.layer.running_var = torch.tensor(mean), torch.tensor(var)

    def gradient(self, x, w, create_graph=False):
        x.requires_grad_(True)
        y = self.train(x)
        return torch.autograd.grad((w * (y + y * y / 2)).sum(), x, create_graph=create_graph)[0]

    def hessian(self, x, w, v):
        return torch.autograd.grad((self.gradient(x, w, True) * v).sum(), x)[0]


if __name__ == "__main__":
    ask(
        Layer,
        "torch",
        {"torch": torch.__version__},
        momentum=0.1,
        eps_argument="eps",
        momentum_argument="momentum",
    )
