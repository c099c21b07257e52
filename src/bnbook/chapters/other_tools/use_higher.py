# /// script
# requires-python = "==3.11.*"
# dependencies = ["torch==2.13.0", "numpy==2.4.6", "setuptools==80.9.0", "higher==0.2.1"]
# ///
"""higher: one differentiable inner step in its copy of the network."""

import importlib.metadata

import higher
import torch
from network import ask, shares


def use(net, x, t):
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    with higher.innerloop_ctx(net, optimizer) as (inner, steps):
        steps.step(torch.nn.functional.cross_entropy(inner(x), t))
        return {"copy": shares(net, inner)}


if __name__ == "__main__":
    ask(use, "higher", {"higher": importlib.metadata.version("higher")})
