# /// script
# requires-python = "==3.11.*"
# dependencies = ["torch==2.13.0", "numpy==2.4.6", "setuptools==80.9.0", "lightning==2.6.6"]
# ///
"""lightning: Tuner.lr_find over six steps; the number is the loss of its first step."""

import importlib.metadata

import torch
from lightning.pytorch import LightningModule, Trainer
from lightning.pytorch.tuner import Tuner
from network import ask
from torch.utils.data import DataLoader, TensorDataset


class Module(LightningModule):
    def __init__(self, net):
        super().__init__()
        self.net, self.lr, self.first = net, 0.1, None

    def training_step(self, pair, index):
        loss = torch.nn.functional.cross_entropy(self.net(pair[0]), pair[1])
        self.first = float(loss) if self.first is None else self.first
        return loss

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), self.lr)


def use(net, x, t):
    module = Module(net)
    quiet = dict(logger=False, enable_progress_bar=False, enable_model_summary=False, accelerator="cpu")
    trainer = Trainer(max_epochs=1, **quiet)
    loader = DataLoader(TensorDataset(x, t), len(x))
    Tuner(trainer).lr_find(module, loader, num_training=6, update_attr=False)
    return {"quantity": "loss", "kind": "number", "value": module.first}


if __name__ == "__main__":
    ask(use, "lightning_lr_find", {"lightning": importlib.metadata.version("lightning")})
