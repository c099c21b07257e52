# /// script
# requires-python = ">=3.12,<3.14"
# dependencies = ["keras==3.15.1", "jax==0.12.0.1", "numpy==2.4.6"]
# ///
"""keras.layers.BatchNormalization on jax."""

import os

os.environ["KERAS_BACKEND"] = "jax"
import jax
import keras
import numpy as np
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
        return np.asarray(keras.ops.convert_to_numpy(keras.ops.cast(y, "float32")), np.float64)

    def train(self, x, **more):
        return self.layer(x, training=True, **more)

    def evaluate(self, x):
        return self.layer(x, training=False)

    def default(self, x):
        return self.layer(x)

    def statistics(self):
        return tuple(
            keras.ops.copy(each.value) for each in (self.layer.moving_mean, self.layer.moving_variance)
        )

    def set(self, mean, var):
        self.layer.moving_mean.assign(mean)
        self.layer.moving_variance.assign(var)

    def masked(self, x, keep):
        return self.train(x, mask=keras.ops.convert_to_tensor(keep))

    def gradient(self, x, w):
        held = [each.value for each in self.layer.variables]

        def f(x):
            y, _ = self.layer.stateless_call(held[:2], held[2:], x, training=True)
            return (w * (y + y * y / 2)).sum()

        return jax.grad(f)(x)

    def hessian(self, x, w, v):
        return jax.jvp(lambda x: self.gradient(x, w), (x,), (v,))[1]


if __name__ == "__main__":
    ask(
        Layer,
        "keras-jax",
        {"keras": keras.__version__, "jax": jax.__version__},
        eps_argument="epsilon",
        momentum_argument="momentum",
        momentum=0.99,
    )
