"""keras on torch."""

import os

os.environ["KERAS_BACKEND"] = "torch"
import keras
from in_keras import Keras
from in_torch import Torch


class Layer(Keras, Torch):
    @staticmethod
    def array(x, dtype):
        return keras.ops.convert_to_tensor(x, dtype)

    def copied(self, value):
        return value.detach().clone()
