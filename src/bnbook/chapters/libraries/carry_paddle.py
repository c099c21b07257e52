# /// script
# requires-python = "==3.11.*"
# dependencies = ["paddlepaddle==3.3.1", "numpy==2.4.6", "setuptools==80.9.0"]
# ///
"""The network of paddle."""

import paddle
from carrying import Carried, main
from paddle import nn


class Net(Carried):
    epsilon, momentum, turned, unbiased, defaults = "epsilon", "momentum", True, False, (1e-5, 0.9)
    last, kernel, dense = False, "OIHW", "io"
    names = ["weight", "bias", "_mean", "_variance"]

    def __init__(self, **own):
        dense = [
            nn.Flatten(),
            nn.Linear(144, 16, bias_attr=False),
            nn.BatchNorm1D(16, **own),
            nn.ReLU(),
            nn.Linear(16, 4),
        ]
        self.net = nn.Sequential(
            nn.Conv2D(1, 4, 3, bias_attr=False), nn.BatchNorm2D(4, **own), nn.ReLU(), *dense
        )
        self.keys = {"conv": "0.weight", "dense1": "4.weight", "dense2": "7.weight", "bias2": "7.bias"}
        for n, place in (("1", "1"), ("2", "5")):
            keys = (each + n for each in ("scale", "shift", "mean", "variance"))
            self.keys.update(zip(keys, (f"{place}.{each}" for each in self.names)))

    def read(self):
        state = self.net.state_dict()
        return {key: state[name].numpy().copy() for key, name in self.keys.items()}

    def write(self, given):
        state = self.net.state_dict()
        for key, a in given.items():
            state[self.keys[key]].set_value(a)

    def evaluate(self, x):
        self.net.eval()
        return self.net(paddle.to_tensor(x)).detach().numpy()

    def step(self, x, target, rate):
        self.net.train()
        y = self.net(paddle.to_tensor(x))
        loss = -(paddle.to_tensor(target) * nn.functional.log_softmax(y)).sum(1).mean()
        moved = [
            p for p in self.net.parameters() if not p.stop_gradient
        ]  # the running statistics stand among them
        for p, g in zip(moved, paddle.grad(loss, moved)):
            p.set_value((p - rate * g).detach())


if __name__ == "__main__":
    main(Net, "paddle", {"paddle": paddle.__version__})
