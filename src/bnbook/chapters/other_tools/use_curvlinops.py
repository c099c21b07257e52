# /// script
# requires-python = "==3.11.*"
# dependencies = ["torch==2.13.0", "numpy==2.4.6", "setuptools==80.9.0", "curvlinops-for-pytorch==3.0.1"]
# ///
"""curvlinops: products with HessianLinearOperator."""

import importlib.metadata

import torch
from curvlinops import HessianLinearOperator
from network import ask, vector


def use(net, x, t):
    given = list(net.parameters())
    operator = HessianLinearOperator(net, torch.nn.CrossEntropyLoss(), given, [(x, t)])
    return {"quantity": "hessian", "kind": "product", "value": (operator @ vector()).tolist()}


if __name__ == "__main__":
    ask(use, "curvlinops", {"curvlinops": importlib.metadata.version("curvlinops-for-pytorch")})
