"""Layers that run on tensorflow: keras there, and tf.compat.v1.nn.fused_batch_norm."""

import os

os.environ["KERAS_BACKEND"] = "tensorflow"
import tensorflow as tf


class Tensorflow:
    """Base: `pure` is a batch in training."""

    last = True

    @staticmethod
    def array(x, dtype):
        return tf.cast(tf.constant(x), dtype)

    @staticmethod
    def numbers(y):
        return tf.cast(y, "float64").numpy()

    def gradient(self, x, w):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = self.pure(x)
            f = tf.reduce_sum(w * (y + y * y / 2))
        return tape.gradient(f, x)

    def hessian(self, x, w, v):
        with tf.GradientTape() as tape:
            tape.watch(x)
            along = tf.reduce_sum(self.gradient(x, w) * v)
        return tape.gradient(along, x)


class Fused(Tensorflow):
    """An operation on four dimensions (NHWC): two dimensions are asked as one position."""

    factor = 0.1  # the weight of the new batch; the default of 1 keeps nothing of the old

    def __init__(self, channels, spatial, dtype="float32"):
        if dtype != "float32":
            raise NotImplementedError("absent: an operation has no parameters of its own to cast")
        self.mean, self.var = tf.zeros(channels), tf.ones(channels)
        self.scale, self.offset = tf.ones(channels), tf.zeros(channels)

    def run(self, x, **more):
        four = x if len(x.shape) == 4 else x[:, None, None, :]
        y, *new = tf.compat.v1.nn.fused_batch_norm(four, self.scale, self.offset, self.mean, self.var, **more)
        return tf.reshape(y, x.shape), new

    def pure(self, x):
        return self.run(x, is_training=True)[0]

    def train(self, x):
        y, (self.mean, self.var) = self.run(x, is_training=True, exponential_avg_factor=self.factor)
        return y

    def evaluate(self, x):
        return self.run(x, is_training=False)[0]

    def default(self, x):
        return self.run(x)[0]

    def statistics(self):
        return self.mean, self.var

    def set(self, mean, var):
        self.mean, self.var = tf.constant(mean), tf.constant(var)
