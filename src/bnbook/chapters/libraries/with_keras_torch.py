# /// script
# requires-python = "==3.11.*"
# dependencies = ["keras==3.15.1", "torch==2.13.0", "numpy==2.4.6"]
# ///
"""keras.layers.BatchNormalization on torch."""

import os

os.environ["KERAS_BACKEND"] = "torch"
import keras
import numpy as np
import torch
from questions import ask


class Layer:
    last = True

    def __init__(self, channels, spatial, dtype="float32"):
        self.layer = keras.layers.BatchNormalization(**({} if dtype == "float32" else {"dtype": dtype}))
        self.layer.build((None, None, None, channels) if spatial else (None, channels))

    @staticmethod
    def array(x, dtype):
        return keras.ops.convert_to_tensor(x, dtype)

    @staticmethod
    def numbers(y):
        return y.detach().to(torch.float64).numpy().astype(np.float64)

    def train(self, x, **more):
        return self.layer(x, training=True, **more)

    def evaluate(self, x):
        return self.layer(x, training=False)

    def default(self, x):
        return self.layer(x)

    def statistics(self):
        return tuple(
            each.value.detach().clone() for each in (self.layer.moving_mean, self.layer.moving_variance)
        )

    def set(self, mean, var):
        self.layer.moving_mean.assign(mean)
        self.layer.moving_variance.assign(var)

    def masked(self, x, keep):
        return self.train(x, mask=keras.ops.convert_to_tensor(keep))

    def gradient(self, x, w, create_graph=False):
        x.requires_grad_(True)
        y = self.train(x)
        return torch.autograd.grad((w * (y + y * y / 2)).sum(), x, create_graph=create_graph)[0]

    def hessian(self, x, w, v):
        return torch.autograd.grad((self.gradient(x, w, True) * v).sum(), x)[0]


if __name__ == "__main__":
    ask(
        Layer,
        "keras-torch",
        {"keras": keras.__version__, "torch": torch.__version__},
        eps_argument="epsilon",
        momentum_argument="momentum",
        momentum=0.99,
    )
