# /// script
# requires-python = "==3.11.*"
# dependencies = ["torch==2.13.0", "numpy==2.4.6", "setuptools==80.9.0", "curvlinops-for-pytorch==3.0.1"]
# ///
"""curvlinops: products with GGNLinearOperator, its check of determinism switched off."""

import importlib.metadata

import torch
from curvlinops import GGNLinearOperator
from network import ask, vector


def use(net, x, t):
    given = list(net.parameters())
    operator = GGNLinearOperator(net, torch.nn.CrossEntropyLoss(), given, [(x, t)], check_deterministic=False)
    return {"quantity": "gauss_newton", "kind": "product", "value": (operator @ vector()).tolist()}


if __name__ == "__main__":
    ask(use, "curvlinops_ggn", {"curvlinops": importlib.metadata.version("curvlinops-for-pytorch")})
