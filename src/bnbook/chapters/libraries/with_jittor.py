# /// script
# requires-python = "==3.11.*"
# dependencies = ["jittor==1.3.11.0", "numpy==1.26.4", "setuptools==80.9.0"]
# ///
"""jittor.nn.BatchNorm, which compiles its operations: the first run takes half an hour of two cores."""

import os

os.environ |= {"nvcc_path": "", "use_mkl": "0"}  # the CPU, and nothing to be downloaded
import jittor as jt
import numpy as np
from questions import ask


class Layer:
    last = False

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

    def train(self, x):
        self.layer.train()
        return self.layer(x)

    def evaluate(self, x):
        self.layer.eval()
        return self.layer(x)

    def default(self, x):
        return self.layer(x)

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


if __name__ == "__main__":
    ask(
        Layer,
        "jittor",
        {"jittor": jt.__version__},
        eps_argument="eps",
        momentum_argument="momentum",
        momentum=0.1,
    )
