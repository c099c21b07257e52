"""Layers that run on torch, and the network of torch."""

import importlib

import torch
from carrying import Stacked
from questions import Inference, Switched
from torch import nn


def imported(name):
    """A package that imports torchvision, whose compiled operators may want another build of torch; none is needed."""
    try:
        return importlib.import_module(name)
    except RuntimeError:
        torch.library.register_fake = lambda name: lambda function: function
        return importlib.import_module(name)


class Torch(Switched):
    """torch.nn.BatchNorm1d and BatchNorm2d; base of the others, held: the layer with the running statistics."""

    def __init__(self, channels, spatial, dtype="float32"):
        self.hold(self.made(channels, spatial), dtype)

    def hold(self, layer, dtype, held=None):
        self.layer, self.held = layer.to(getattr(torch, dtype)), held or layer

    def made(self, channels, spatial):
        return (nn.BatchNorm2d if spatial else nn.BatchNorm1d)(channels)

    @staticmethod
    def array(x, dtype):
        return torch.tensor(x).to(getattr(torch, dtype))

    @staticmethod
    def numbers(y):
        return y.detach().to(torch.float64).numpy()

    def statistics(self):
        return self.held.running_mean.clone(), self.held.running_var.clone()

    def set(self, mean, var):
        self.held.running_mean, self.held.running_var = torch.tensor(mean), torch.tensor(var)

    def gradient(self, x, w, create_graph=False):
        x.requires_grad_(True)
        y = self.train(x)
        return torch.autograd.grad((w * (y + y * y / 2)).sum(), x, create_graph=create_graph)[0]

    def hessian(self, x, w, v):
        return torch.autograd.grad((self.gradient(x, w, True) * v).sum(), x)[0]


class Four(Torch):
    """Base of those for four dimensions: two are asked as one position."""

    def run(self, x):
        return self.layer(x if x.ndim == 4 else x[:, :, None, None]).reshape(x.shape)


class Timm(Four):
    """timm.layers.BatchNormAct2d without its activation."""

    def made(self, channels, spatial):
        return imported("timm").layers.BatchNormAct2d(channels, apply_act=False)


class Frozen(Inference, Four):
    """torchvision.ops.FrozenBatchNorm2d, which has no other mode than evaluation."""

    eps = 1e-5

    def made(self, channels, spatial):
        return imported("torchvision").ops.FrozenBatchNorm2d(channels)

    default = Four.evaluate


class Geometric(Torch):
    """torch_geometric.nn.BatchNorm, over the nodes (N, C) of a batch; it takes no four dimensions."""

    def __init__(self, channels, spatial, dtype="float32"):
        import torch_geometric

        layer = torch_geometric.nn.BatchNorm(channels)
        self.hold(layer, dtype, layer.module)


class Spiking(Torch):
    """spikingjelly's BatchNorm1d and BatchNorm2d, in steps of time (T, B, C, ...): the batch is put into two steps."""

    def made(self, channels, spatial):
        from spikingjelly.activation_based import layer as layers

        return (layers.BatchNorm2d if spatial else layers.BatchNorm1d)(channels, step_mode="m")

    def run(self, x):
        steps = 2 if len(x) % 2 == 0 and len(x) else 1
        return self.layer(x.reshape(steps, len(x) // steps, *x.shape[1:])).reshape(x.shape)


class ThroughTime(Torch):
    """snntorch.BatchNormTT1d and BatchNormTT2d: a list of layers, one a step of time; one step is asked."""

    def made(self, channels, spatial):
        import snntorch

        make = snntorch.BatchNormTT2d if spatial else snntorch.BatchNormTT1d
        return make(channels, time_steps=1)[0]


class Quantized(Four):
    """torch.ao.nn.intrinsic.qat.ConvBn2d, a convolution and batch norm for training before quantization: the convolution
    is the identity, and nothing is rounded, so that what is left is its batch norm."""

    def __init__(self, channels, spatial, dtype="float32"):
        from torch.ao.nn.intrinsic.qat import ConvBn2d
        from torch.ao.quantization import QConfig

        config = QConfig(activation=nn.Identity, weight=nn.Identity)
        layer = ConvBn2d(channels, channels, 1, qconfig=config)
        with torch.no_grad():
            layer.weight.copy_(torch.eye(channels)[:, :, None, None])
            layer.bn.weight.fill_(1)
        self.hold(layer, dtype, layer.bn)


class Brevitas(Four):
    """brevitas.nn.BatchNorm2dToQuantScaleBias with no quantization of the weight: a scale and a shift that are learned.

    Training runs the same scale and shift as evaluation, so that no question about a batch applies.
    """

    eps = 1e-5

    def made(self, channels, spatial):
        import brevitas.nn

        self.norm = nn.BatchNorm2d(channels)
        return brevitas.nn.BatchNorm2dToQuantScaleBias(channels, weight_quant=None)

    def evaluate(self, x):
        return self.run(x)

    def train(self, *arguments):
        raise NotImplementedError(
            "absent: no batch norm in training, but a scale and a shift that are learned"
        )

    gradient = hessian = train

    def statistics(self):
        raise NotImplementedError("absent: it has no running statistics, they are in its scale and shift")

    def set(self, mean, var):
        state = {
            **self.norm.state_dict(),
            "running_mean": torch.tensor(mean),
            "running_var": torch.tensor(var),
        }
        # folds the four into its own two, which it then calls missing
        self.layer.load_state_dict(state, strict=False)


class Net(Stacked):
    epsilon, momentum, turned, unbiased, defaults = "eps", "momentum", False, True, (1e-5, 0.1)
    last, kernel, dense = False, "OIHW", "oi"
    names = ["weight", "bias", "running_mean", "running_var"]

    def __init__(self, **own):
        layers = [nn.Conv2d(1, 4, 3, bias=False), nn.BatchNorm2d(4, **own), nn.ReLU(), nn.Flatten()]
        layers += [nn.Linear(144, 16, bias=False), nn.BatchNorm1d(16, **own), nn.ReLU(), nn.Linear(16, 4)]
        self.net = nn.Sequential(*layers)

    def read(self):
        state = self.net.state_dict()
        return {key: state[name].numpy().copy() for key, name in self.keys.items()}

    def write(self, given):
        self.net.load_state_dict({self.keys[key]: torch.tensor(a) for key, a in given.items()}, strict=False)

    def evaluate(self, x):
        return self.net.eval()(torch.tensor(x)).detach().numpy()

    def step(self, x, target, rate):
        loss = nn.functional.cross_entropy(self.net.train()(torch.tensor(x)), torch.tensor(target))
        for p, g in zip(self.net.parameters(), torch.autograd.grad(loss, list(self.net.parameters()))):
            p.data -= rate * g
