# /// script
# requires-python = ">=3.12,<3.14"
# dependencies = ["equinox==0.13.8", "jax==0.12.0.1", "numpy==2.4.6"]
# ///
"""equinox.nn.BatchNorm with mode="ema", which is also the default, then with a warning."""

import equinox
import jax
import jax.numpy as jnp
import numpy as np
from questions import ask


class Layer:
    last, mode = False, "ema"

    def __init__(self, channels, spatial, dtype="float32"):
        own = {} if dtype == "float32" else {"dtype": dtype}
        make = equinox.nn.make_with_state(equinox.nn.BatchNorm)
        self.layer, self.state = make(channels, axis_name="batch", mode=self.mode, **own)

    @staticmethod
    def array(x, dtype):
        return jnp.asarray(x, dtype)

    @staticmethod
    def numbers(y):
        return np.asarray(y, np.float64)

    def run(self, x, inference):
        state = jax.tree.map(lambda leaf: leaf, self.state)  # a state may be used once
        call = lambda x: self.layer(x, state, inference=inference)
        return jax.vmap(call, axis_name="batch", out_axes=(0, None))(x)

    def train(self, x):
        y, self.state = self.run(x, False)
        return y

    def evaluate(self, x):
        return self.run(x, True)[0]

    def default(self, x):
        return self.run(x, None)[0]

    def index(self):
        return self.layer.ema_state_index if self.mode == "ema" else self.layer.batch_state_index

    def statistics(self):
        return self.state.get(self.index())

    def set(self, mean, var):
        self.state = self.state.set(self.index(), (jnp.asarray(mean), jnp.asarray(var)))

    def gradient(self, x, w):
        return jax.grad(lambda x: (w * ((y := self.run(x, False)[0]) + y * y / 2)).sum())(x)

    def hessian(self, x, w, v):
        return jax.jvp(lambda x: self.gradient(x, w), (x,), (v,))[1]


if __name__ == "__main__":
    ask(
        Layer,
        "equinox-ema",
        {"equinox": equinox.__version__, "jax": jax.__version__},
        eps_argument="eps",
        momentum_argument="momentum",
        momentum=0.99,
    )
