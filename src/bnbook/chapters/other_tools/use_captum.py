# /// script
# requires-python = "==3.11.*"
# dependencies = ["torch==2.13.0", "numpy==2.4.6", "setuptools==80.9.0", "captum==0.9.0"]
# ///
"""captum: integrated gradients of the inputs; the number is how far an example's attribution moves with its batch."""

import importlib.metadata

import torch
from captum.attr import IntegratedGradients
from network import ask


def use(net, x, t):
    def attributed(inputs):
        return IntegratedGradients(net).attribute(inputs, target=t, n_steps=8)[:4]

    first = attributed(x)
    apart = (first - attributed(torch.cat([x[:4], 3 + 2 * x[4:]]))).norm() / first.norm()
    return {"depends_on_batch": float(apart)}


if __name__ == "__main__":
    ask(use, "captum", {"captum": importlib.metadata.version("captum")})
