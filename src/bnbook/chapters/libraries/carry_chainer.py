# /// script
# requires-python = "==3.8.*"
# dependencies = ["chainer==7.8.1", "numpy==1.23.5", "setuptools==59.8.0"]
# ///
"""The network of chainer."""

import chainer
import numpy as np
from carrying import Carried, main
from chainer import functions as F
from chainer import links as L


class Net(Carried):
    epsilon, momentum, turned, unbiased, defaults = "eps", "decay", True, True, (2e-5, 0.9)
    last, kernel, dense = False, "OIHW", "oi"
    names = ["gamma", "beta", "avg_mean", "avg_var"]

    def __init__(self, **own):
        conv, norm = L.Convolution2D(1, 4, 3, nobias=True), L.BatchNormalization(4, **own)
        dense = [L.Linear(144, 16, nobias=True), L.BatchNormalization(16, **own), F.relu, L.Linear(16, 4)]
        self.net = chainer.Sequential(conv, norm, F.relu, F.flatten, *dense)
        self.net[3] = lambda x: F.reshape(x, (len(x), -1))
        self.keys = {
            "conv": (conv, "W"),
            "dense1": (dense[0], "W"),
            "dense2": (dense[3], "W"),
            "bias2": (dense[3], "b"),
        }
        for n, layer in (("1", norm), ("2", dense[1])):
            for key, name in zip(("scale", "shift", "mean", "variance"), self.names):
                self.keys[key + n] = (layer, name)

    def read(self):
        found = {key: getattr(layer, name) for key, (layer, name) in self.keys.items()}
        return {key: np.array(getattr(a, "array", a)) for key, a in found.items()}

    def write(self, given):
        for key, a in given.items():
            layer, name = self.keys[key]
            if key.startswith(("mean", "variance")):
                setattr(layer, name, a.copy())
            else:
                getattr(layer, name).array = a.copy()

    def evaluate(self, x):
        with chainer.using_config("train", False):
            return self.net(x).array

    def step(self, x, target, rate):
        with chainer.using_config("train", True):
            loss = -F.mean(F.sum(target * F.log_softmax(self.net(x)), 1))
        self.net.cleargrads()
        loss.backward()
        for p in self.net.params():
            p.array = p.array - np.float32(rate) * p.grad


if __name__ == "__main__":
    main(Net, "chainer", {"chainer": chainer.__version__})
