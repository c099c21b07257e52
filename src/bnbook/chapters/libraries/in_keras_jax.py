"""keras on jax, and its network."""

import os

os.environ["KERAS_BACKEND"] = "jax"
import keras
import numpy as np
from in_jax import Jax, JaxNet
from in_keras import Keras
from keras import layers as nn


class Layer(Keras, Jax):
    copied = staticmethod(keras.ops.copy)

    @staticmethod
    def array(x, dtype):
        return keras.ops.convert_to_tensor(x, dtype)

    @staticmethod
    def numbers(y):
        return np.asarray(keras.ops.convert_to_numpy(keras.ops.cast(y, "float32")), np.float64)

    def pure(self, x):
        held = [each.value for each in self.layer.variables]
        return self.layer.stateless_call(held[:2], held[2:], x, training=True)[0]


class Net(JaxNet):
    epsilon, momentum, turned, unbiased, defaults = "epsilon", "momentum", True, False, (1e-3, 0.99)
    names = ["gamma", "beta", "moving_mean", "moving_variance"]

    def __init__(self, **own):
        conv, first, second = (
            nn.Conv2D(4, 3, use_bias=False),
            nn.BatchNormalization(**own),
            nn.BatchNormalization(**own),
        )
        dense = nn.Dense(16, use_bias=False), nn.Dense(4)
        layers = [
            nn.Input((8, 8, 1)),
            conv,
            first,
            nn.ReLU(),
            nn.Flatten(),
            dense[0],
            second,
            nn.ReLU(),
            dense[1],
        ]
        self.net, self.gradient = keras.Sequential(layers), self.compiled()
        keys = {"conv": (conv, "kernel"), "dense1": (dense[0], "kernel"), "dense2": (dense[1], "kernel")}
        keys.update({"bias2": (dense[1], "bias"), **self.of_norms(first, second)})
        self.keys = {key: getattr(layer, name) for key, (layer, name) in keys.items()}

    def read(self):
        return {key: np.array(variable) for key, variable in self.keys.items()}

    def write(self, given):
        for key, a in given.items():
            self.keys[key].assign(a)

    def evaluate(self, x):
        return self.net(x, training=False)

    def forward(self, params, state, x, training):
        return self.net.stateless_call(params, state, x, training=training)

    def step(self, x, target, rate):
        trained, others = self.net.trainable_variables, self.net.non_trainable_variables
        params, state = ([v.value for v in of] for of in (trained, others))
        grads, state = self.gradient(params, state, x, target)
        for variable, p, g in zip(trained, params, grads):
            variable.assign(p - rate * g)
        for variable, value in zip(others, state):
            variable.assign(value)
