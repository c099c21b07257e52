# /// script
# requires-python = "==3.11.*"
# dependencies = ["torch==2.13.0", "numpy==2.4.6", "setuptools==80.9.0", "pyhessian==0.1"]
# ///
"""PyHessian: the largest eigenvalue by power iteration."""

import pyhessian
import torch
from network import ask


def use(net, x, t):
    found = pyhessian.hessian(net, torch.nn.CrossEntropyLoss(), data=(x, t), cuda=False)
    value = found.eigenvalues(maxIter=2000, tol=1e-7)[0][0]
    return {"quantity": "hessian", "kind": "largest", "value": abs(value)}


if __name__ == "__main__":
    ask(use, "pyhessian", {"pyhessian": "0.1", "torch": torch.__version__})
