# /// script
# requires-python = ">=3.12,<3.14"
# dependencies = ["flax==0.12.12", "jax==0.12.0.1", "numpy==2.4.6"]
# ///
"""flax.nnx.BatchNorm."""

import flax
import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from questions import ask


class Layer:
    last, options = True, {}

    def __init__(self, channels, spatial, dtype="float32"):
        own = {} if dtype == "float32" else {"dtype": jnp.dtype(dtype), "param_dtype": jnp.dtype(dtype)}
        self.layer = nnx.BatchNorm(channels, rngs=nnx.Rngs(0), **own, **self.options)

    @staticmethod
    def array(x, dtype):
        return jnp.asarray(x, dtype)

    @staticmethod
    def numbers(y):
        return np.asarray(y, np.float64)

    def train(self, x, **more):
        return self.layer(x, use_running_average=False, **more)

    def evaluate(self, x):
        return self.layer(x, use_running_average=True)

    def default(self, x):
        return self.layer(x)

    def statistics(self):
        return jnp.asarray(self.layer.mean[...]), jnp.asarray(self.layer.var[...])

    def set(self, mean, var):
        self.layer.mean[...], self.layer.var[...] = jnp.asarray(mean), jnp.asarray(var)

    def masked(self, x, keep):
        return self.train(x, mask=jnp.asarray(keep)[:, None])

    def gradient(self, x, w):
        graph, state = nnx.split(self.layer)

        def f(x):
            y = nnx.merge(graph, state, copy=True)(x, use_running_average=False)
            return (w * (y + y * y / 2)).sum()

        return jax.grad(f)(x)

    def hessian(self, x, w, v):
        return jax.jvp(lambda x: self.gradient(x, w), (x,), (v,))[1]


class Careful(Layer):
    options = {"use_fast_variance": False}


if __name__ == "__main__":
    ask(
        Layer,
        "flax-nnx",
        {"flax": flax.__version__, "jax": jax.__version__},
        eps_argument="epsilon",
        momentum_argument="momentum",
        momentum=0.99,
        options={"use_fast_variance=False": Careful},
    )
