"""paddle.nn.BatchNorm1D and BatchNorm2D. Its network, too."""

import paddle
from carrying import Stacked
from paddle import nn
from questions import Switched


class Layer(Switched):
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


class Net(Stacked):
    epsilon, momentum, turned, unbiased, defaults = "epsilon", "momentum", True, False, (1e-5, 0.9)
    last, kernel, dense = False, "OIHW", "io"
    names = ["weight", "bias", "_mean", "_variance"]

    def __init__(self, **own):
        layers = [nn.Conv2D(1, 4, 3, bias_attr=False), nn.BatchNorm2D(4, **own), nn.ReLU(), nn.Flatten()]
        dense = nn.Linear(144, 16, bias_attr=False), nn.BatchNorm1D(16, **own), nn.ReLU(), nn.Linear(16, 4)
        self.net = nn.Sequential(*layers, *dense)

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
        # the running statistics stand among the parameters
        moved = [p for p in self.net.parameters() if not p.stop_gradient]
        for p, g in zip(moved, paddle.grad(loss, moved)):
            p.set_value((p - rate * g).detach())
