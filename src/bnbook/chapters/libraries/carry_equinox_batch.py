# /// script
# requires-python = ">=3.12,<3.14"
# dependencies = ["equinox==0.13.8", "jax==0.12.0.1", "numpy==2.4.6"]
# ///
"""The network of equinox, with mode="batch", which normalizes by the batch in training."""

import equinox as eqx
import jax
import jax.numpy as jnp
from carrying import Carried, main

FULL = 10**6  # a counter at which the correction of the start is one
PLACES = {"conv": (0, "weight"), "dense1": (2, "weight"), "dense2": (4, "weight"), "bias2": (4, "bias")}
PLACES |= {"scale1": (1, "weight"), "shift1": (1, "bias"), "scale2": (3, "weight"), "shift2": (3, "bias")}


class Net(Carried):
    epsilon, momentum, turned, unbiased, defaults = "eps", "momentum", True, False, (1e-5, 0.99)
    last, kernel, dense = False, "OIHW", "oi"
    names = ["weight", "bias", "batch_state_index[0]", "batch_state_index[1]"]

    def __init__(self, **own):
        def make(norm):
            first, second = (norm(each, axis_name="batch", mode="batch", **own) for each in (4, 16))
            k, nn = jax.random.split(jax.random.key(0), 3), eqx.nn
            dense = nn.Linear(144, 16, use_bias=False, key=k[1]), second, nn.Linear(16, 4, key=k[2])
            return [nn.Conv2d(1, 4, 3, use_bias=False, key=k[0]), first, *dense]

        self.layers, self.state = eqx.nn.make_with_state(make)(eqx.nn.BatchNorm)
        self.gradient = eqx.filter_jit(eqx.filter_grad(self.loss, has_aux=True))

    def run(self, layers, state, x, inference):
        def one(x):
            y, new = layers[1](layers[0](x), state, inference=inference)
            y, new = layers[3](layers[2](jax.nn.relu(y).ravel()), new, inference=inference)
            return layers[4](jax.nn.relu(y)), new

        return jax.vmap(one, axis_name="batch", out_axes=(0, None))(x)

    def norms(self):
        return ("1", self.layers[1]), ("2", self.layers[3])

    def read(self):
        found = {key: getattr(self.layers[place], name) for key, (place, name) in PLACES.items()}
        for n, norm in self.norms():
            count = self.state.get(norm.batch_counter)
            scale = 1 - norm.momentum**count if count else 1.0  # of what evaluation uses
            held = (each / scale for each in self.state.get(norm.batch_state_index))
            found.update(zip(("mean" + n, "variance" + n), held))
        return found

    def write(self, given):
        for key, (place, name) in PLACES.items():
            if key in given:
                new = jnp.asarray(given[key])
                self.layers[place] = eqx.tree_at(lambda m: getattr(m, name), self.layers[place], new)
        for n, norm in self.norms() if "mean1" in given else ():
            held = jnp.asarray(given["mean" + n]), jnp.asarray(given["variance" + n])
            self.state = self.state.set(norm.batch_state_index, held).set(norm.batch_counter, jnp.array(FULL))

    def evaluate(self, x):
        return self.run(self.layers, jax.tree.map(jnp.array, self.state), x, True)[0]

    def loss(self, layers, state, x, target):
        y, new = self.run(layers, state, x, False)
        return -(target * jax.nn.log_softmax(y)).sum(1).mean(), new

    def step(self, x, target, rate):
        grads, self.state = self.gradient(self.layers, jax.tree.map(jnp.array, self.state), x, target)
        self.layers = eqx.apply_updates(self.layers, jax.tree.map(lambda g: -rate * g, grads))

    def next_weight(self, weight):
        return weight / (1 - (1 - weight) ** (1 + float(self.state.get(self.layers[1].batch_counter))))


if __name__ == "__main__":
    main(Net, "equinox_batch", {"equinox": eqx.__version__, "jax": jax.__version__})
