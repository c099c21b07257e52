# /// script
# requires-python = ">=3.11,<3.14"
# dependencies = ["keras==3.15.1", "tensorflow-cpu==2.21.0"]
# ///
"""keras.layers.BatchNormalization on tensorflow."""

import os

os.environ["KERAS_BACKEND"] = "tensorflow"
import keras
import numpy as np
import tensorflow as tf
from questions import ask


class Layer:
    last = True

    def __init__(self, channels, spatial, dtype="float32"):
        self.layer = keras.layers.BatchNormalization(**({} if dtype == "float32" else {"dtype": dtype}))
        self.layer.build((None, None, None, channels) if spatial else (None, channels))

    @staticmethod
    def array(x, dtype):
        return tf.cast(tf.constant(x), dtype)

    @staticmethod
    def numbers(y):
        return tf.cast(y, "float64").numpy().astype(np.float64)

    def train(self, x, **more):
        return self.layer(x, training=True, **more)

    def evaluate(self, x):
        return self.layer(x, training=False)

    def default(self, x):
        return self.layer(x)

    def statistics(self):
        return tuple(tf.identity(each.value) for each in (self.layer.moving_mean, self.layer.moving_variance))

    def set(self, mean, var):
        self.layer.moving_mean.assign(mean)
        self.layer.moving_variance.assign(var)

    def masked(self, x, keep):
        return self.train(x, mask=tf.constant(keep))

    def gradient(self, x, w):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = self.train(x)
            f = tf.reduce_sum(w * (y + y * y / 2))
        return tape.gradient(f, x)

    def hessian(self, x, w, v):
        with tf.GradientTape() as tape:
            tape.watch(x)
            along = tf.reduce_sum(self.gradient(x, w) * v)
        return tape.gradient(along, x)


if __name__ == "__main__":
    ask(
        Layer,
        "keras-tensorflow",
        {"keras": keras.__version__, "tensorflow": tf.__version__},
        eps_argument="epsilon",
        momentum_argument="momentum",
        momentum=0.99,
    )
