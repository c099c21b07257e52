"""mindspore.nn.BatchNorm1d and BatchNorm2d."""

import mindspore as ms
import numpy as np
from mindspore import nn, ops
from questions import Plain


class Layer(Plain):
    def __init__(self, channels, spatial, dtype="float32"):
        own = {} if dtype == "float32" else {"dtype": getattr(ms, dtype)}
        self.layer = (nn.BatchNorm2d if spatial else nn.BatchNorm1d)(channels, **own)

    @staticmethod
    def array(x, dtype):
        return ms.Tensor(np.asarray(x, np.float32)).astype(getattr(ms, dtype))

    @staticmethod
    def numbers(y):
        return np.asarray(y.astype(ms.float32).asnumpy(), np.float64)

    def train(self, x):
        return self.layer.set_train(True)(x)

    def evaluate(self, x):
        return self.layer.set_train(False)(x)

    def statistics(self):
        return tuple(each.value().copy() for each in (self.layer.moving_mean, self.layer.moving_variance))

    def set(self, mean, var):
        self.layer.moving_mean.set_data(ms.Tensor(mean))
        self.layer.moving_variance.set_data(ms.Tensor(var))

    def gradient(self, x, w):
        def f(x):
            y = self.train(x)
            return ops.ReduceSum()(w * (y + y * y / 2))

        return ms.grad(f)(x)

    def hessian(self, x, w, v):
        return ms.grad(lambda x: ops.ReduceSum()(self.gradient(x, w) * v))(x)
