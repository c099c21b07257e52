"""keras on tensorflow."""

import tensorflow as tf

from in_tensorflow import Tensorflow  # isort: skip, for it names the backend that keras reads on import
from in_keras import Keras


class Layer(Keras, Tensorflow):
    copied = staticmethod(tf.identity)
    pure = Keras.train
