# /// script
# requires-python = ">=3.12,<3.14"
# dependencies = ["flax==0.12.12", "jax==0.12.0.1", "numpy==2.4.6"]
# ///
"""flax.linen.BatchNorm."""

import flax
import jax
import jax.numpy as jnp
import numpy as np
from flax import linen
from questions import ask


class Layer:
    last, options = True, {}

    def __init__(self, channels, spatial, dtype="float32"):
        own = {} if dtype == "float32" else {"dtype": dtype, "param_dtype": dtype}
        self.layer = linen.BatchNorm(**own, **self.options)
        shape = (1, 1, 1, channels) if spatial else (1, channels)
        self.state = self.layer.init(jax.random.key(0), jnp.zeros(shape), use_running_average=True)

    @staticmethod
    def array(x, dtype):
        return jnp.asarray(x, dtype)

    @staticmethod
    def numbers(y):
        return np.asarray(y, np.float64)

    def train(self, x):
        y, new = self.layer.apply(self.state, x, use_running_average=False, mutable=["batch_stats"])
        self.state = {**self.state, **new}
        return y

    def evaluate(self, x):
        return self.layer.apply(self.state, x, use_running_average=True)

    def default(self, x):
        return self.layer.apply(self.state, x, mutable=["batch_stats"])[0]

    def statistics(self):
        return self.state["batch_stats"]["mean"], self.state["batch_stats"]["var"]

    def set(self, mean, var):
        self.state = {**self.state, "batch_stats": {"mean": jnp.asarray(mean), "var": jnp.asarray(var)}}

    def masked(self, x, keep):
        more = {"use_running_average": False, "mutable": ["batch_stats"], "mask": jnp.asarray(keep)[:, None]}
        return self.layer.apply(self.state, x, **more)[0]

    def gradient(self, x, w):
        def f(x):
            y = self.layer.apply(self.state, x, use_running_average=False, mutable=["batch_stats"])[0]
            return (w * (y + y * y / 2)).sum()

        return jax.grad(f)(x)

    def hessian(self, x, w, v):
        return jax.jvp(lambda x: self.gradient(x, w), (x,), (v,))[1]


class Careful(Layer):
    options = {"use_fast_variance": False}


if __name__ == "__main__":
    ask(
        Layer,
        "flax-linen",
        {"flax": flax.__version__, "jax": jax.__version__},
        eps_argument="epsilon",
        momentum_argument="momentum",
        momentum=0.99,
        options={"use_fast_variance=False": Careful},
    )
