"""mlx.nn.BatchNorm. Its network, too."""

import mlx.core as mx
import numpy as np
from carrying import Stacked
from mlx import nn
from mlx.utils import tree_flatten, tree_map, tree_unflatten
from questions import Switched


class Layer(Switched):
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


class Net(Stacked):
    epsilon, momentum, turned, unbiased, defaults = "eps", "momentum", False, True, (1e-5, 0.1)
    last, kernel, dense = True, "OHWI", "oi"
    names = ["weight", "bias", "running_mean", "running_var"]

    def __init__(self, **own):
        flat = lambda x: x.reshape(len(x), -1)
        layers = [nn.Conv2d(1, 4, 3, bias=False), nn.BatchNorm(4, **own), nn.ReLU(), flat]
        layers += [nn.Linear(144, 16, bias=False), nn.BatchNorm(16, **own), nn.ReLU(), nn.Linear(16, 4)]
        self.net = nn.Sequential(*layers)
        self.gradient = nn.value_and_grad(self.net, self.loss)

    def read(self):
        state = dict(tree_flatten(self.net.parameters()))
        return {key: np.array(state[f"layers.{name}"]) for key, name in self.keys.items()}

    def write(self, given):
        own = [(f"layers.{self.keys[key]}", mx.array(a)) for key, a in given.items()]
        self.net.update(tree_unflatten(own))

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
