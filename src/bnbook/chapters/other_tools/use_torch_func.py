# /// script
# requires-python = "==3.11.*"
# dependencies = ["torch==2.13.0", "numpy==2.4.6", "setuptools==80.9.0"]
# ///
"""torch.func.hessian, on a copy with the change to its batch norms that the documentation asks for."""

import copy

import torch
from network import ask, vector
from torch.func import functional_call, hessian, replace_all_batch_norm_modules_


def use(net, x, t):
    copied = replace_all_batch_norm_modules_(copy.deepcopy(net))
    names, shapes = zip(*((name, p.shape) for name, p in copied.named_parameters()))

    def loss(flat):
        parts = flat.split([shape.numel() for shape in shapes])
        given = {name: part.view(shape) for name, part, shape in zip(names, parts, shapes)}
        return torch.nn.functional.cross_entropy(functional_call(copied, given, (x,)), t)

    flat = torch.cat([p.detach().ravel() for p in copied.parameters()])
    return {"quantity": "hessian", "kind": "product", "value": (hessian(loss)(flat) @ vector()).tolist()}


if __name__ == "__main__":
    ask(use, "torch_func", {"torch": torch.__version__})
