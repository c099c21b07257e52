# /// script
# requires-python = "==3.11.*"
# dependencies = ["torch==2.13.0", "numpy==2.4.6", "setuptools==80.9.0", "nngeometry==0.4"]
# ///
"""nngeometry: the dense Fisher matrix of the network's own distribution."""

import importlib.metadata

from network import ask
from nngeometry.metrics import FIM
from nngeometry.object import PMatDense
from torch.utils.data import DataLoader, TensorDataset


def use(net, x, t):
    loader = DataLoader(TensorDataset(x, t), batch_size=len(x))
    matrix = FIM(net, loader, PMatDense, variant="classif_logits", device="cpu")
    return {"quantity": "gauss_newton", "kind": "trace", "value": float(matrix.trace())}


if __name__ == "__main__":
    ask(use, "nngeometry", {"nngeometry": importlib.metadata.version("nngeometry")})
