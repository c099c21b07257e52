# /// script
# requires-python = ">=3.12,<3.14"
# dependencies = ["keras==3.15.1", "jax==0.12.0.1", "numpy==2.4.6"]
# ///
"""The network of keras on jax."""

import os

os.environ["KERAS_BACKEND"] = "jax"
import jax
import keras
import numpy as np
from carrying import Carried, main
from keras import layers as nn


class Net(Carried):
    epsilon, momentum, turned, unbiased, defaults = "epsilon", "momentum", True, False, (1e-3, 0.99)
    last, kernel, dense = True, "HWIO", "io"
    names = ["gamma", "beta", "moving_mean", "moving_variance"]

    def __init__(self, **own):
        dense = [
            nn.Flatten(),
            nn.Dense(16, use_bias=False),
            nn.BatchNormalization(**own),
            nn.ReLU(),
            nn.Dense(4),
        ]
        norm = nn.BatchNormalization(**own)
        self.net = keras.Sequential(
            [nn.Input((8, 8, 1)), nn.Conv2D(4, 3, use_bias=False), norm, nn.ReLU(), *dense]
        )
        self.keys = {
            "conv": self.net.layers[0].kernel,
            "dense1": dense[1].kernel,
            "dense2": dense[4].kernel,
            "bias2": dense[4].bias,
        }
        for n, layer in (("1", norm), ("2", dense[2])):
            for key, name in zip(("scale", "shift", "mean", "variance"), self.names):
                self.keys[key + n] = getattr(layer, name)
        self.gradient = jax.jit(jax.grad(self.loss, has_aux=True))

    def read(self):
        return {key: np.array(variable) for key, variable in self.keys.items()}

    def write(self, given):
        for key, a in given.items():
            self.keys[key].assign(a)

    def evaluate(self, x):
        return self.net(x, training=False)

    def loss(self, params, state, x, target):
        y, state = self.net.stateless_call(params, state, x, training=True)
        return -(target * jax.nn.log_softmax(y)).sum(1).mean(), state

    def step(self, x, target, rate):
        params, state = (
            [v.value for v in of] for of in (self.net.trainable_variables, self.net.non_trainable_variables)
        )
        grads, state = self.gradient(params, state, x, target)
        for variable, p, g in zip(self.net.trainable_variables, params, grads):
            variable.assign(p - rate * g)
        for variable, value in zip(self.net.non_trainable_variables, state):
            variable.assign(value)


if __name__ == "__main__":
    main(Net, "keras_jax", {"keras": keras.__version__, "jax": jax.__version__})
