"""keras.layers.BatchNormalization, on the backend that `KERAS_BACKEND` names; bases beside it have its derivatives."""

import keras


class Keras:
    last = True

    def __init__(self, channels, spatial, dtype="float32"):
        self.layer = keras.layers.BatchNormalization(**({} if dtype == "float32" else {"dtype": dtype}))
        self.layer.build((None, None, None, channels) if spatial else (None, channels))

    def train(self, x, **more):
        return self.layer(x, training=True, **more)

    def evaluate(self, x):
        return self.layer(x, training=False)

    def default(self, x):
        return self.layer(x)

    def statistics(self):
        return tuple(self.copied(each.value) for each in (self.layer.moving_mean, self.layer.moving_variance))

    def set(self, mean, var):
        self.layer.moving_mean.assign(mean)
        self.layer.moving_variance.assign(var)

    def masked(self, x, keep):
        return self.train(x, mask=keras.ops.convert_to_tensor(keep))
