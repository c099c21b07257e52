# /// script
# requires-python = "==3.11.*"
# dependencies = ["torch==2.13.0", "numpy==2.4.6", "setuptools==80.9.0", "hessian-eigenthings==1.0.0a5"]
# ///
"""pytorch-hessian-eigenthings: products with its Hessian operator."""

import importlib.metadata

import torch
from hessian_eigenthings import HessianOperator
from hessian_eigenthings.loss_fns import supervised_loss
from network import ask, vector


def use(net, x, t):
    operator = HessianOperator(net, [(x, t)], supervised_loss(torch.nn.functional.cross_entropy))
    return {"quantity": "hessian", "kind": "product", "value": operator.matvec(vector()).tolist()}


if __name__ == "__main__":
    ask(
        use, "hessian_eigenthings", {"hessian-eigenthings": importlib.metadata.version("hessian-eigenthings")}
    )
