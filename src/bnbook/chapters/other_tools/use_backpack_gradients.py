# /// script
# requires-python = "==3.11.*"
# dependencies = ["torch==2.13.0", "numpy==2.4.6", "setuptools==80.9.0", "backpack-for-pytorch==1.7.1"]
# ///
"""BackPACK: gradients of each example, and by them the diagonal of the Fisher matrix of the targets."""

import importlib.metadata

import torch
from backpack import backpack, extend
from backpack.extensions import BatchGrad
from network import ask


def use(net, x, t):
    loss = extend(torch.nn.CrossEntropyLoss(reduction="sum"))(extend(net)(x), t)
    with backpack(BatchGrad()):
        loss.backward()
    value = torch.cat([p.grad_batch.pow(2).mean(0).ravel() for p in net.parameters()])
    return {"quantity": "empirical_fisher", "kind": "diagonal", "value": value.tolist()}


if __name__ == "__main__":
    ask(use, "backpack_gradients", {"backpack": importlib.metadata.version("backpack-for-pytorch")})
