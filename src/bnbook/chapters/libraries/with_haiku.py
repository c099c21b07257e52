# /// script
# requires-python = ">=3.12,<3.14"
# dependencies = ["dm-haiku==0.0.17", "jax==0.12.0.1", "numpy==2.4.6"]
# ///
"""haiku.BatchNorm; scale, offset and decay rate have no default."""

import haiku
import jax
import jax.numpy as jnp
import numpy as np
from questions import ask


class Layer:
    last = True

    def __init__(self, channels, spatial, dtype="float32"):
        def run(x, is_training):
            return haiku.BatchNorm(create_scale=True, create_offset=True, decay_rate=0.9)(x, is_training)

        self.net = haiku.transform_with_state(run)
        shape = (2, 2, 2, channels) if spatial else (2, channels)
        self.params, self.state = self.net.init(None, jnp.zeros(shape, dtype), True)

    @staticmethod
    def array(x, dtype):
        return jnp.asarray(x, dtype)

    @staticmethod
    def numbers(y):
        return np.asarray(y, np.float64)

    def train(self, x):
        y, self.state = self.net.apply(self.params, self.state, None, x, True)
        return y

    def evaluate(self, x):
        return self.net.apply(self.params, self.state, None, x, False)[0]

    def default(self, x):
        return haiku.transform_with_state(lambda x: haiku.BatchNorm(True, True, 0.9)(x)).init(None, x)

    def statistics(self):
        return tuple(self.state[f"batch_norm/~/{each}_ema"]["average"] for each in ("mean", "var"))

    def set(self, mean, var):
        for each, value in (("mean", mean), ("var", var)):
            old = self.state[f"batch_norm/~/{each}_ema"]
            self.state[f"batch_norm/~/{each}_ema"] = {
                **old,
                "average": jnp.asarray(value).reshape(old["average"].shape),
            }

    def gradient(self, x, w):
        def f(x):
            y = self.net.apply(self.params, self.state, None, x, True)[0]
            return (w * (y + y * y / 2)).sum()

        return jax.grad(f)(x)

    def hessian(self, x, w, v):
        return jax.jvp(lambda x: self.gradient(x, w), (x,), (v,))[1]


if __name__ == "__main__":
    ask(
        Layer,
        "haiku",
        {"haiku": haiku.__version__, "jax": jax.__version__},
        eps_argument="eps",
        momentum_argument="decay_rate",
        momentum=0.9,
    )
