# /// script
# requires-python = "==3.11.*"
# dependencies = ["torch==2.13.0", "numpy==2.4.6", "setuptools==80.9.0", "asdfghjkl==0.1a4"]
# ///
"""asdfghjkl: the diagonal of the Fisher matrix of the targets."""

import importlib.metadata

import asdl
import torch
from network import ask


def use(net, x, t):
    maker = asdl.fisher.get_fisher_maker(
        net, asdl.fisher.FisherConfig("fisher_emp", ["diag"], data_size=len(x))
    )
    maker.setup_loss_call(torch.nn.functional.cross_entropy, maker.setup_model_call(net, x), t)
    maker.forward_and_backward()
    held = [each.fisher.diag for each in net if hasattr(each, "fisher")]
    value = torch.cat([part.ravel() for each in held for part in (each.weight, each.bias)])
    return {"quantity": "empirical_fisher", "kind": "diagonal", "value": value.tolist()}


if __name__ == "__main__":
    ask(use, "asdfghjkl", {"asdfghjkl": importlib.metadata.version("asdfghjkl")})
