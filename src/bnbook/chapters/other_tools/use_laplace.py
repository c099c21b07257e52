# /// script
# requires-python = "==3.11.*"
# dependencies = ["torch==2.13.0", "numpy==2.4.6", "setuptools==80.9.0", "laplace-torch==0.3"]
# ///
"""laplace-torch: the diagonal of the Gauss-Newton matrix that its fit adds up."""

import importlib.metadata

import torch
from network import ask, patched_for_torchvision

patched_for_torchvision()
import laplace  # noqa: E402
from torch.utils.data import DataLoader, TensorDataset  # noqa: E402


def use(net, x, t):
    found = laplace.Laplace(net, "classification", subset_of_weights="all", hessian_structure="full")
    found.fit(DataLoader(TensorDataset(x, t), batch_size=len(x)))
    return {"quantity": "gauss_newton", "kind": "all", "value": (found.H / len(x)).tolist()}


if __name__ == "__main__":
    ask(
        use,
        "laplace",
        {"laplace-torch": importlib.metadata.version("laplace-torch"), "torch": torch.__version__},
    )
