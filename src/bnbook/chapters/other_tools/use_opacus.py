# /// script
# requires-python = "==3.11.*"
# dependencies = ["torch==2.13.0", "numpy==2.4.6", "setuptools==80.9.0", "opacus==1.6.0"]
# ///
"""opacus: make_private as it comes, and on the network that its validator has mended."""

import importlib.metadata

import torch
from network import ask
from opacus import PrivacyEngine
from opacus.validators import ModuleValidator
from torch.utils.data import DataLoader, TensorDataset


def use(net, x, t):
    mended = ModuleValidator.fix(net)
    kinds = sorted({type(each).__name__ for each in mended.modules() if "Norm" in type(each).__name__})
    try:
        given = dict(data_loader=DataLoader(TensorDataset(x, t), 8), noise_multiplier=1.0, max_grad_norm=1.0)
        optimizer = torch.optim.SGD(net.parameters(), 0.1)
        PrivacyEngine().make_private(module=net, optimizer=optimizer, **given)
        said = "takes it"
    except Exception as raised:
        said = f"{type(raised).__name__}"
    return {"said": f"{said}; its mended copy has {', '.join(kinds)}"}


if __name__ == "__main__":
    ask(use, "opacus", {"opacus": importlib.metadata.version("opacus")})
