# /// script
# requires-python = "==3.11.*"
# dependencies = ["paddlepaddle==3.3.1", "numpy==2.4.6", "setuptools==80.9.0"]
# ///
"""paddle.nn.BatchNorm1D and BatchNorm2D."""

import paddle
from questions import ask


class Layer:
    last = False

    def __init__(self, channels, spatial, dtype="float32"):
        self.layer = (paddle.nn.BatchNorm2D if spatial else paddle.nn.BatchNorm1D)(channels)
        if dtype != "float32":
            self.layer.to(dtype=dtype)

    @staticmethod
    def array(x, dtype):
        return paddle.to_tensor(x).astype(dtype)

    @staticmethod
    def numbers(y):
        return y.detach().astype("float64").numpy()

    def train(self, x):
        self.layer.train()
        return self.layer(x)

    def evaluate(self, x):
        self.layer.eval()
        return self.layer(x)

    def default(self, x):
        return self.layer(x)

    def statistics(self):
        return self.layer._mean.clone(), self.layer._variance.clone()

    def set(self, mean, var):
        self.layer._mean.set_value(mean)
        self.layer._variance.set_value(var)

    def gradient(self, x, w, create_graph=False):
        x.stop_gradient = False
        y = self.train(x)
        return paddle.grad((w * (y + y * y / 2)).sum(), x, create_graph=create_graph)[0]

    def hessian(self, x, w, v):
        return paddle.grad((self.gradient(x, w, True) * v).sum(), x)[0]


if __name__ == "__main__":
    ask(
        Layer,
        "paddle",
        {"paddle": paddle.__version__},
        momentum=0.9,
        eps_argument="epsilon",
        momentum_argument="momentum",
    )
