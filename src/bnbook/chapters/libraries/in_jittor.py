"""jittor.nn.BatchNorm, which compiles its operations: the first run takes half an hour of two cores."""

import os

os.environ |= {"nvcc_path": "", "use_mkl": "0"}  # the CPU, and nothing to be downloaded
import jittor as jt
import numpy as np
from questions import Switched


class Layer(Switched):
    def __init__(self, channels, spatial, dtype="float32"):
        self.layer = jt.nn.BatchNorm(channels)
        if dtype == "float16":
            self.layer.float16()
        if dtype == "bfloat16":
            self.layer.bfloat16()

    @staticmethod
    def array(x, dtype):
        return getattr(jt.array(np.asarray(x, np.float32)), dtype)()

    @staticmethod
    def numbers(y):
        return np.asarray(y.float32().numpy(), np.float64)

    def statistics(self):
        return self.layer.running_mean.clone(), self.layer.running_var.clone()

    def set(self, mean, var):
        self.layer.running_mean.assign(jt.array(mean))
        self.layer.running_var.assign(jt.array(var))

    def gradient(self, x, w):
        y = self.train(x)
        return jt.grad((w * (y + y * y / 2)).sum(), x)

    def hessian(self, x, w, v):
        return jt.grad((self.gradient(x, w) * v).sum(), x)
