# /// script
# requires-python = ">=3.11,<3.14"
# dependencies = ["tensorflow-cpu==2.21.0"]
# ///
"""tf.compat.v1.nn.fused_batch_norm, an operation on four dimensions (NHWC): two dimensions are asked as one position."""

import tensorflow as tf
from questions import ask


class Layer:
    last = True
    factor = 0.1  # the weight of the new batch; the default of 1 keeps nothing of the old

    def __init__(self, channels, spatial, dtype="float32"):
        if dtype != "float32":
            raise NotImplementedError("absent: an operation has no parameters of its own to cast")
        self.mean, self.var = tf.zeros(channels), tf.ones(channels)
        self.scale, self.offset = tf.ones(channels), tf.zeros(channels)

    @staticmethod
    def array(x, dtype):
        return tf.cast(tf.constant(x), dtype)

    @staticmethod
    def numbers(y):
        return tf.cast(y, "float64").numpy()

    def run(self, x, training, **more):
        four = x if len(x.shape) == 4 else x[:, None, None, :]
        y, *new = tf.compat.v1.nn.fused_batch_norm(
            four, self.scale, self.offset, self.mean, self.var, is_training=training, **more
        )
        return tf.reshape(y, x.shape), new

    def train(self, x):
        y, (self.mean, self.var) = self.run(x, True, exponential_avg_factor=self.factor)
        return y

    def evaluate(self, x):
        return self.run(x, False)[0]

    def default(self, x):
        four = x[:, None, None, :]
        y = tf.compat.v1.nn.fused_batch_norm(four, self.scale, self.offset, self.mean, self.var)[0]
        return tf.reshape(y, x.shape)

    def statistics(self):
        return self.mean, self.var

    def set(self, mean, var):
        self.mean, self.var = tf.constant(mean), tf.constant(var)

    def gradient(self, x, w):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = self.run(x, True)[0]
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
        "tensorflow-fused",
        {"tensorflow": tf.__version__},
        eps_argument="epsilon",
        momentum_argument="exponential_avg_factor",
        momentum=1.0,
    )
