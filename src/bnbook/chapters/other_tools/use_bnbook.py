"""bnbook.measure: the largest eigenvalue of the mean of JᵀJ, J the derivative of the outputs by the parameters."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))  # this package, wherever it lies
import torch
from network import ask

import bnbook


def use(net, x, t):
    report = bnbook.measure(net, torch.nn.functional.cross_entropy, (x, t), learning_rate=0.1, progress=False)
    # it names the statistics of each of its three; the one that the network's mode asks for
    named = report.eigenvalues.batch if net[1].training else report.eigenvalues.population
    return {"quantity": "outputs", "kind": "largest", "value": float(named)}


if __name__ == "__main__":
    ask(use, "bnbook", {"bnbook": bnbook.__version__, "torch": torch.__version__})
