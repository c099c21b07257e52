"""chainer.links.BatchNormalization. Its network, too."""

import chainer
import numpy as np
from carrying import Carried
from chainer import functions as F
from chainer import links as L
from questions import Plain


class Layer(Plain):
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

    def statistics(self):
        return self.layer.avg_mean.copy(), self.layer.avg_var.copy()

    def set(self, mean, var):
        self.layer.avg_mean, self.layer.avg_var = mean, var

    def gradient(self, x, w, double=False):
        y = self.train(x)
        return chainer.grad([F.sum(w * (y + y * y / 2))], [x], enable_double_backprop=double)[0]

    def hessian(self, x, w, v):
        return chainer.grad([F.sum(self.gradient(x, w, True) * v)], [x])[0]


class Net(Carried):
    epsilon, momentum, turned, unbiased, defaults = "eps", "decay", True, True, (2e-5, 0.9)
    last, kernel, dense = False, "OIHW", "oi"
    names = ["gamma", "beta", "avg_mean", "avg_var"]

    def __init__(self, **own):
        conv, norm = L.Convolution2D(1, 4, 3, nobias=True), L.BatchNormalization(4, **own)
        dense = [L.Linear(144, 16, nobias=True), L.BatchNormalization(16, **own), F.relu, L.Linear(16, 4)]
        self.net = chainer.Sequential(conv, norm, F.relu, F.flatten, *dense)
        self.net[3] = lambda x: F.reshape(x, (len(x), -1))
        own = {
            "conv": (conv, "W"),
            "dense1": (dense[0], "W"),
            "dense2": (dense[3], "W"),
            "bias2": (dense[3], "b"),
        }
        self.keys = {**own, **self.of_norms(norm, dense[1])}

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
