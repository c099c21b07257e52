# /// script
# requires-python = "==3.10.*"
# dependencies = ["torch==2.13.0", "numpy==2.2.6", "setuptools==80.9.0", "learn2learn==0.2.0", "gym==0.26.2"]
# [tool.uv]
# override-dependencies = ["qpth ; sys_platform == 'never'", "scikit-learn ; sys_platform == 'never'"]
# ///
"""learn2learn: one step of MAML in its clone. It builds up to Python 3.10; its requirement qpth does not, and MAML needs none."""

import importlib.metadata

import torch
from learn2learn.algorithms.maml import MAML
from network import ask, shares


def use(net, x, t):
    inner = MAML(net, lr=0.1).clone()
    inner.adapt(torch.nn.functional.cross_entropy(inner(x), t))
    return {"copy": shares(net, inner)}


if __name__ == "__main__":
    ask(use, "learn2learn", {"learn2learn": importlib.metadata.version("learn2learn")})
