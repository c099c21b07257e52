# /// script
# requires-python = "==3.11.*"
# dependencies = ["torchvision==0.28.0", "torch==2.13.0", "numpy==2.4.6"]
# ///
"""torchvision.ops.FrozenBatchNorm2d, for four dimensions: two dimensions are asked as one position."""

import torch
from questions import Inference, ask

try:
    import torchvision
except RuntimeError:  # the wheel's compiled operators want another build of torch; none is needed here
    torch.library.register_fake = lambda name: lambda function: function
    import torchvision


class Layer(Inference):
    last = False

    def __init__(self, channels, spatial, dtype="float32"):
        self.layer = torchvision.ops.FrozenBatchNorm2d(channels).to(getattr(torch, dtype))

    @staticmethod
    def array(x, dtype):
        return torch.tensor(x).to(getattr(torch, dtype))

    @staticmethod
    def numbers(y):
        return y.detach().to(torch.float64).numpy()

    def run(self, x):
        return self.layer(x if x.ndim == 4 else x[:, :, None, None]).reshape(x.shape)

    def evaluate(self, x):
        self.layer.eval()
        return self.run(x)

    default = evaluate  # it has no other mode

    def statistics(self):
        return self.layer.running_mean.clone(), self.layer.running_var.clone()

    def set(self, mean, var):
        self.layer.running_mean, self.layer.running_var = torch.tensor(mean), torch.tensor(var)


if __name__ == "__main__":
    versions = {"torchvision": torchvision.__version__, "torch": torch.__version__}
    ask(
        Layer,
        "torchvision-frozen",
        versions,
        eps=1e-5,
        eps_argument="eps",
        momentum_argument=None,
        momentum=None,
    )
