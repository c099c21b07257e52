# /// script
# requires-python = "==3.11.*"
# dependencies = ["torch==2.13.0", "numpy==2.4.6", "setuptools==80.9.0", "backpack-for-pytorch==1.7.1"]
# ///
"""BackPACK: the diagonal of the Gauss-Newton matrix."""

import importlib.metadata

import torch
from backpack import backpack, extend
from backpack.extensions import DiagGGNExact
from network import ask


def use(net, x, t):
    loss = extend(torch.nn.CrossEntropyLoss())(extend(net)(x), t)
    with backpack(DiagGGNExact()):
        loss.backward()
    value = torch.cat([p.diag_ggn_exact.ravel() for p in net.parameters()])
    return {"quantity": "gauss_newton", "kind": "diagonal", "value": value.tolist()}


if __name__ == "__main__":
    ask(use, "backpack", {"backpack": importlib.metadata.version("backpack-for-pytorch")})
