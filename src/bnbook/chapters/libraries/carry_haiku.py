# /// script
# requires-python = ">=3.12,<3.14"
# dependencies = ["dm-haiku==0.0.17", "jax==0.12.0.1", "numpy==2.4.6"]
# ///
"""The network of haiku, with a decay rate of 0.9, for it has no default."""

import haiku as hk
import jax
import jax.numpy as jnp
from carrying import Carried, main

FULL = 10**6  # a counter at which the correction of the start is one


class Net(Carried):
    epsilon, momentum, turned, unbiased, defaults = "eps", "decay_rate", True, False, (1e-5, 0.9)
    last, kernel, dense = True, "HWIO", "io"
    names = ["scale", "offset", "mean_ema/average", "var_ema/average"]

    def __init__(self, **own):
        def run(x, training):
            norm = lambda: hk.BatchNorm(True, True, **{"decay_rate": 0.9, **own})
            x = jax.nn.relu(norm()(hk.Conv2D(4, 3, padding="VALID", with_bias=False)(x), training))
            x = jax.nn.relu(norm()(hk.Linear(16, with_bias=False)(hk.Flatten()(x)), training))
            return hk.Linear(4)(x)

        self.net = hk.transform_with_state(run)
        self.params, self.state = self.net.init(jax.random.key(0), jnp.zeros((2, 8, 8, 1)), True)
        dense = {"dense1": ("linear", "w"), "dense2": ("linear_1", "w"), "bias2": ("linear_1", "b")}
        self.keys = {"conv": ("conv2_d", "w"), **dense}
        for n, layer in (("1", "batch_norm"), ("2", "batch_norm_1")):
            self.keys.update({"scale" + n: (layer, "scale"), "shift" + n: (layer, "offset")})
            self.keys["mean" + n] = (f"{layer}/~/mean_ema", "average")
            self.keys["variance" + n] = (f"{layer}/~/var_ema", "average")
        self.gradient = jax.jit(jax.grad(self.loss, has_aux=True))

    def read(self):
        found = {**self.params, **self.state}
        both = {k: {**self.params.get(k, {}), **self.state.get(k, {})} for k in found}
        return {key: both[room][name] for key, (room, name) in self.keys.items()}

    def write(self, given):
        for key, a in given.items():
            room, name = self.keys[key]
            new = jnp.asarray(a).reshape(self.read()[key].shape)
            if name == "average":  # the hidden sum is the average where the counter is large
                self.state[room] = {"average": new, "hidden": new, "counter": jnp.array(FULL)}
            else:
                self.params[room][name] = new

    def evaluate(self, x):
        return self.net.apply(self.params, self.state, None, x, False)[0]

    def loss(self, params, state, x, target):
        y, new = self.net.apply(params, state, None, x, True)
        return -(target * jax.nn.log_softmax(y)).sum(1).mean(), new

    def step(self, x, target, rate):
        grads, self.state = self.gradient(self.params, self.state, x, target)
        self.params = jax.tree.map(lambda p, g: p - rate * g, self.params, grads)

    def next_weight(self, weight):
        return weight / (1 - (1 - weight) ** (1 + float(self.state["batch_norm/~/mean_ema"]["counter"])))


if __name__ == "__main__":
    main(Net, "haiku", {"haiku": hk.__version__, "jax": jax.__version__})
