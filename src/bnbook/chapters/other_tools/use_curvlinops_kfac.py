# /// script
# requires-python = "==3.11.*"
# dependencies = ["torch==2.13.0", "numpy==2.4.6", "setuptools==80.9.0", "curvlinops-for-pytorch==3.0.1"]
# ///
"""curvlinops: the trace of KFACLinearOperator, which approximates the Gauss-Newton matrix in every mode and refuses γ and β."""

import importlib.metadata

import torch
from curvlinops import KFACLinearOperator
from network import ask


def use(net, x, t):
    given = [p for place in (0, 5, 8) for p in net[place].parameters()]
    operator = KFACLinearOperator(net, torch.nn.CrossEntropyLoss(), given, [(x, t)], fisher_type="type-2")
    eye = torch.eye(operator.shape[1])
    return {
        "quantity": "gauss_newton",
        "kind": "trace_without_norms",
        "value": float((operator @ eye).trace()),
    }


if __name__ == "__main__":
    ask(use, "curvlinops_kfac", {"curvlinops": importlib.metadata.version("curvlinops-for-pytorch")})
