# /// script
# requires-python = "==3.11.*"
# dependencies = ["torch==2.13.0", "numpy==2.4.6", "setuptools==80.9.0", "torchattacks==3.5.1", "torchvision==0.28.0"]
# ///
"""torchattacks: FGSM; the number is how far an example's attacked image moves with its batch."""

import importlib.metadata

import torch
from network import ask, patched_for_torchvision

patched_for_torchvision()
import torchattacks  # noqa: E402


def use(net, x, t):
    attack, images = torchattacks.FGSM(net, eps=0.1), x.sigmoid()
    first = attack(images, t)[:4] - images[:4]
    other = attack(torch.cat([images[:4], images[4:] / 2]), t)[:4] - images[:4]
    return {"depends_on_batch": float((first - other).norm() / first.norm())}


if __name__ == "__main__":
    ask(use, "torchattacks", {"torchattacks": importlib.metadata.version("torchattacks")})
