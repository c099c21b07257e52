# /// script
# requires-python = ">=3.12,<3.14"
# dependencies = ["flax==0.12.12", "jax==0.12.0.1", "numpy==2.4.6"]
# ///
"""The network of flax.linen."""

import flax
import jax
import jax.numpy as jnp
from carrying import Carried, main
from flax import linen as nn


class Net(Carried):
    epsilon, momentum, turned, unbiased, defaults = "epsilon", "momentum", True, False, (1e-5, 0.99)
    last, kernel, dense = True, "HWIO", "io"
    names = ["scale", "bias", "mean", "var"]

    def __init__(self, **own):
        class Net(nn.Module):
            @nn.compact
            def __call__(self, x, training):
                norm = lambda: nn.BatchNorm(use_running_average=not training, **own)
                x = nn.relu(norm()(nn.Conv(4, (3, 3), padding="VALID", use_bias=False)(x)))
                x = nn.relu(norm()(nn.Dense(16, use_bias=False)(x.reshape(len(x), -1))))
                return nn.Dense(4)(x)

        self.net = Net()
        self.state = self.net.init(jax.random.key(0), jnp.zeros((1, 8, 8, 1)), False)
        self.keys = {"conv": ("params", "Conv_0", "kernel"), "bias2": ("params", "Dense_1", "bias")}
        for n in "12":
            self.keys["dense" + n] = ("params", f"Dense_{int(n) - 1}", "kernel")
            for key, name in zip(("scale", "shift", "mean", "variance"), self.names):
                room = "batch_stats" if name in ("mean", "var") else "params"
                self.keys[key + n] = (room, f"BatchNorm_{int(n) - 1}", name)
        self.gradient = jax.jit(jax.grad(self.loss, has_aux=True))

    def read(self):
        return {key: self.state[room][layer][name] for key, (room, layer, name) in self.keys.items()}

    def write(self, given):
        for key, a in given.items():
            room, layer, name = self.keys[key]
            self.state[room][layer][name] = jnp.asarray(a)

    def evaluate(self, x):
        return self.net.apply(self.state, x, False)

    def loss(self, params, stats, x, target):
        y, new = self.net.apply({"params": params, "batch_stats": stats}, x, True, mutable=["batch_stats"])
        return -(target * jax.nn.log_softmax(y)).sum(1).mean(), new["batch_stats"]

    def step(self, x, target, rate):
        grads, stats = self.gradient(self.state["params"], self.state["batch_stats"], x, target)
        params = jax.tree.map(lambda p, g: p - rate * g, self.state["params"], grads)
        self.state = {"params": params, "batch_stats": stats}


if __name__ == "__main__":
    main(Net, "flax_linen", {"flax": flax.__version__, "jax": jax.__version__})
