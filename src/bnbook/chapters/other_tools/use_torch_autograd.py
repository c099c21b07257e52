# /// script
# requires-python = "==3.11.*"
# dependencies = ["torch==2.13.0", "numpy==2.4.6", "setuptools==80.9.0"]
# ///
"""torch.autograd.functional.hessian, with the network's own buffers handed in."""

import torch
from network import ask, vector
from torch.func import functional_call


def use(net, x, t):
    names, shapes = zip(*((name, p.shape) for name, p in net.named_parameters()))

    def loss(flat):
        parts = flat.split([shape.numel() for shape in shapes])
        given = {name: part.view(shape) for name, part, shape in zip(names, parts, shapes)}
        return torch.nn.functional.cross_entropy(functional_call(net, given, (x,)), t)

    flat = torch.cat([p.detach().ravel() for p in net.parameters()])
    product = torch.autograd.functional.hvp(loss, flat, vector())[1]
    return {"quantity": "hessian", "kind": "product", "value": product.tolist()}


if __name__ == "__main__":
    ask(use, "torch_autograd", {"torch": torch.__version__})
