# /// script
# requires-python = "==3.11.*"
# dependencies = ["torch==2.13.0", "numpy==2.4.6"]
# ///
"""The network of torch."""

import torch
from carrying import Carried, main
from torch import nn


class Net(Carried):
    epsilon, momentum, turned, unbiased, defaults = "eps", "momentum", False, True, (1e-5, 0.1)
    last, kernel, dense = False, "OIHW", "oi"
    names = ["weight", "bias", "running_mean", "running_var"]

    def __init__(self, **own):
        dense = [
            nn.Flatten(),
            nn.Linear(144, 16, bias=False),
            nn.BatchNorm1d(16, **own),
            nn.ReLU(),
            nn.Linear(16, 4),
        ]
        self.net = nn.Sequential(nn.Conv2d(1, 4, 3, bias=False), nn.BatchNorm2d(4, **own), nn.ReLU(), *dense)
        self.keys = {"conv": "0.weight", "dense1": "4.weight", "dense2": "7.weight", "bias2": "7.bias"}
        for n, place in (("1", "1"), ("2", "5")):
            keys = (each + n for each in ("scale", "shift", "mean", "variance"))
            self.keys.update(zip(keys, (f"{place}.{each}" for each in self.names)))

    def read(self):
        state = self.net.state_dict()
        return {key: state[name].numpy().copy() for key, name in self.keys.items()}

    def write(self, given):
        self.net.load_state_dict({self.keys[key]: torch.tensor(a) for key, a in given.items()}, strict=False)

    def evaluate(self, x):
        return self.net.eval()(torch.tensor(x)).detach().numpy()

    def step(self, x, target, rate):
        loss = nn.functional.cross_entropy(self.net.train()(torch.tensor(x)), torch.tensor(target))
        for p, g in zip(self.net.parameters(), torch.autograd.grad(loss, list(self.net.parameters()))):
            p.data -= rate * g


if __name__ == "__main__":
    main(Net, "torch", {"torch": torch.__version__})
