# /// script
# requires-python = ">=3.11,<3.14"
# dependencies = ["mlx[cpu]==0.32.4; sys_platform == 'linux'", "mlx==0.32.4; sys_platform == 'darwin'", "numpy==2.4.6"]
# ///
"""The network of mlx."""

import importlib.metadata

import mlx.core as mx
import numpy as np
from carrying import Carried, main
from mlx import nn
from mlx.utils import tree_flatten, tree_map, tree_unflatten


class Net(Carried):
    epsilon, momentum, turned, unbiased, defaults = "eps", "momentum", False, True, (1e-5, 0.1)
    last, kernel, dense = True, "OHWI", "oi"
    names = ["weight", "bias", "running_mean", "running_var"]

    def __init__(self, **own):
        dense = [
            lambda x: x.reshape(len(x), -1),
            nn.Linear(144, 16, bias=False),
            nn.BatchNorm(16, **own),
            nn.ReLU(),
            nn.Linear(16, 4),
        ]
        self.net = nn.Sequential(nn.Conv2d(1, 4, 3, bias=False), nn.BatchNorm(4, **own), nn.ReLU(), *dense)
        self.keys = {"conv": "0.weight", "dense1": "4.weight", "dense2": "7.weight", "bias2": "7.bias"}
        for n, place in (("1", "1"), ("2", "5")):
            keys = (each + n for each in ("scale", "shift", "mean", "variance"))
            self.keys.update(zip(keys, (f"{place}.{each}" for each in self.names)))
        self.gradient = nn.value_and_grad(self.net, self.loss)

    def read(self):
        state = dict(tree_flatten(self.net.parameters()))
        return {key: np.array(state[f"layers.{name}"]) for key, name in self.keys.items()}

    def write(self, given):
        self.net.update(
            tree_unflatten([(f"layers.{self.keys[key]}", mx.array(a)) for key, a in given.items()])
        )

    def evaluate(self, x):
        self.net.eval()
        return np.array(self.net(mx.array(x)))

    def loss(self, x, target):
        y = self.net(x)
        return -(target * (y - mx.logsumexp(y, axis=1, keepdims=True))).sum(1).mean()

    def step(self, x, target, rate):
        self.net.train()
        _, grads = self.gradient(mx.array(x), mx.array(target))
        self.net.update(tree_map(lambda p, g: p - rate * g, self.net.trainable_parameters(), grads))
        mx.eval(self.net.parameters())


if __name__ == "__main__":
    main(Net, "mlx", {"mlx": importlib.metadata.version("mlx")})
