"""nnabla.parametric_functions.batch_normalization."""

import nnabla as nn
import nnabla.functions as F
import nnabla.parametric_functions as PF
import numpy as np


class Layer:
    last, ends = False, True  # an empty batch ends the process

    def __init__(self, channels, spatial, dtype="float32"):
        self.shape, self.held = (1, channels, 1, 1) if spatial else (1, channels), {}
        self.run(nn.Variable.from_numpy_array(np.zeros((2, *self.shape[1:]))), False).forward()

    def run(self, x, training, **more):
        nn.clear_parameters()
        for name, each in self.held.items():
            nn.parameter.set_parameter(name, each)
        y = PF.batch_normalization(x, **({} if training is None else {"batch_stat": training}), **more)
        self.held = nn.get_parameters(grad_only=False)
        return y

    @staticmethod
    def array(x, dtype):
        if dtype != "float32":
            raise NotImplementedError("absent: arrays are float32, half precision is a backend's")
        return nn.Variable.from_numpy_array(np.asarray(x, np.float32))

    @staticmethod
    def numbers(y):
        return np.asarray(getattr(y, "d", y), np.float64).copy()

    def out(self, y):
        y.forward()
        return y

    def train(self, x):
        return self.out(self.run(x, True))

    def evaluate(self, x):
        return self.out(self.run(x, False))

    def default(self, x):
        return self.out(self.run(x, None))

    def statistics(self):
        return self.held["bn/mean"].d.copy(), self.held["bn/var"].d.copy()

    def set(self, mean, var):
        self.held["bn/mean"].d, self.held["bn/var"].d = mean.reshape(self.shape), var.reshape(self.shape)

    def slope(self, x, w):
        x.need_grad = True
        y = self.run(x, True)
        return nn.grad([F.sum(w * (y + y * y / 2))], [x])[0]

    def gradient(self, x, w):
        return self.out(self.slope(x, w))

    def hessian(self, x, w, v):
        return self.out(nn.grad([F.sum(self.slope(x, w) * v)], [x])[0])
