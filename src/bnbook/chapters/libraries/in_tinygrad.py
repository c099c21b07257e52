"""tinygrad.nn.BatchNorm; training is a context, set around each call. Where clang is missing, its emulator computes."""

import os
import shutil

os.environ.setdefault("DEV", "CPU" if shutil.which("clang") else "PYTHON")
import numpy as np
from tinygrad import Context, Tensor, dtypes, nn


class Layer:
    last = False

    def __init__(self, channels, spatial, dtype="float32"):
        self.layer = nn.BatchNorm(channels)
        if dtype != "float32":
            for name, each in nn.state.get_state_dict(self.layer).items():
                if name != "num_batches_tracked":
                    each.replace(each.cast(getattr(dtypes, dtype)).realize())

    @staticmethod
    def array(x, dtype):
        return Tensor(x).cast(getattr(dtypes, dtype)).contiguous().realize()

    @staticmethod
    def numbers(y):
        return np.asarray(y.cast(dtypes.float32).numpy(), np.float64)

    def run(self, x, training):
        with Context(TRAINING=training):
            return self.layer(x)

    def train(self, x):
        y = self.run(x, 1).realize()
        self.layer.running_mean.realize(), self.layer.running_var.realize()
        return y

    def evaluate(self, x):
        return self.run(x, 0).realize()

    def default(self, x):
        return self.layer(x).realize()

    def statistics(self):
        return self.layer.running_mean, self.layer.running_var

    def set(self, mean, var):
        self.layer.running_mean, self.layer.running_var = Tensor(mean), Tensor(var)

    def gradient(self, x, w):
        y = self.run(x, 1)
        return (w * (y + y * y / 2)).sum().gradient(x)[0]

    def hessian(self, x, w, v):
        return (self.gradient(x, w) * v).sum().gradient(x)[0]
