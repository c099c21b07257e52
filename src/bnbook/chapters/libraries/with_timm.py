# /// script
# requires-python = "==3.11.*"
# dependencies = ["timm==1.0.31", "torchvision==0.28.0", "torch==2.13.0", "numpy==2.4.6"]
# ///
"""timm.layers.BatchNormAct2d without its activation, for four dimensions: two are asked as one position."""

import torch
from questions import ask
from with_torch import Layer as Torch

try:
    import timm
except RuntimeError:  # torchvision's compiled operators want another build of torch; none is needed here
    torch.library.register_fake = lambda name: lambda function: function
    import timm


class Layer(Torch):
    def __init__(self, channels, spatial, dtype="float32"):
        self.layer = timm.layers.BatchNormAct2d(channels, apply_act=False).to(getattr(torch, dtype))

    def run(self, x):
        return self.layer(x if x.ndim == 4 else x[:, :, None, None]).reshape(x.shape)

    def train(self, x):
        self.layer.train()
        return self.run(x)

    def evaluate(self, x):
        self.layer.eval()
        return self.run(x)

    def default(self, x):
        return self.run(x)


if __name__ == "__main__":
    versions = {"timm": timm.__version__, "torch": torch.__version__}
    ask(Layer, "timm", versions, eps_argument="eps", momentum_argument="momentum", momentum=0.1)
