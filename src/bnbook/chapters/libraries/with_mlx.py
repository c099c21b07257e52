# /// script
# requires-python = ">=3.11,<3.14"
# dependencies = ["mlx[cpu]==0.32.4; sys_platform == 'linux'", "mlx==0.32.4; sys_platform == 'darwin'", "numpy==2.4.6"]
# ///
"""mlx.nn.BatchNorm."""

import importlib.metadata

import mlx.core as mx
import numpy as np
from mlx import nn
from questions import ask


class Layer:
    last = True

    def __init__(self, channels, spatial, dtype="float32"):
        self.layer = nn.BatchNorm(channels)
        if dtype != "float32":
            self.layer.set_dtype(getattr(mx, dtype))

    @staticmethod
    def array(x, dtype):
        return mx.array(x).astype(getattr(mx, dtype))

    @staticmethod
    def numbers(y):
        return np.array(y.astype(mx.float32), np.float64)

    def train(self, x):
        self.layer.train()
        return self.layer(x)

    def evaluate(self, x):
        self.layer.eval()
        return self.layer(x)

    def default(self, x):
        return self.layer(x)

    def statistics(self):
        mx.eval(self.layer.running_mean, self.layer.running_var)
        return self.layer.running_mean, self.layer.running_var

    def set(self, mean, var):
        self.layer.running_mean, self.layer.running_var = mx.array(mean), mx.array(var)

    def gradient(self, x, w):
        def f(x):
            y = self.train(x)
            return (w * (y + y * y / 2)).sum()

        return mx.grad(f)(x)

    def hessian(self, x, w, v):
        return mx.grad(lambda x: (self.gradient(x, w) * v).sum())(x)


if __name__ == "__main__":
    ask(
        Layer,
        "mlx",
        {"mlx": importlib.metadata.version("mlx")},
        eps_argument="eps",
        momentum_argument="momentum",
        momentum=0.1,
    )
