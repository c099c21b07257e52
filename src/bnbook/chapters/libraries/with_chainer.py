# /// script
# requires-python = "==3.8.*"
# dependencies = ["chainer==7.8.1", "numpy==1.23.5", "setuptools==59.8.0"]
# ///
"""chainer.links.BatchNormalization."""

import chainer
import numpy as np
from chainer import functions as F
from questions import ask


class Layer:
    last = False

    def __init__(self, channels, spatial, dtype="float32"):
        own = {} if dtype == "float32" else {"dtype": dtype}
        self.layer = chainer.links.BatchNormalization(channels, **own)

    @staticmethod
    def array(x, dtype):
        return chainer.Variable(np.asarray(x).astype(dtype))

    @staticmethod
    def numbers(y):
        return np.asarray(getattr(y, "array", y), np.float64)

    def train(self, x):
        with chainer.using_config("train", True):
            return self.layer(x)

    def evaluate(self, x):
        with chainer.using_config("train", False):
            return self.layer(x)

    def default(self, x):
        return self.layer(x)

    def statistics(self):
        return self.layer.avg_mean.copy(), self.layer.avg_var.copy()

    def set(self, mean, var):
        self.layer.avg_mean, self.layer.avg_var = mean, var

    def gradient(self, x, w, double=False):
        y = self.train(x)
        return chainer.grad([F.sum(w * (y + y * y / 2))], [x], enable_double_backprop=double)[0]

    def hessian(self, x, w, v):
        return chainer.grad([F.sum(self.gradient(x, w, True) * v)], [x])[0]


if __name__ == "__main__":
    ask(
        Layer,
        "chainer",
        {"chainer": chainer.__version__},
        eps_argument="eps",
        momentum_argument="decay",
        momentum=0.9,
    )
