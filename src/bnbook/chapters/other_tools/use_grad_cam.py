# /// script
# requires-python = "==3.11.*"
# dependencies = ["torch==2.13.0", "numpy==2.4.6", "setuptools==80.9.0", "grad-cam==1.5.7", "torchvision==0.28.0"]
# ///
"""grad-cam: GradCAM of the first layer; the number is how far an example's map moves with its batch."""

import importlib.metadata

import numpy as np
import torch
from network import ask, patched_for_torchvision

patched_for_torchvision()
from pytorch_grad_cam import GradCAM  # noqa: E402
from pytorch_grad_cam.utils.model_targets import ClassifierOutputTarget  # noqa: E402


def use(net, x, t):
    with GradCAM(model=net, target_layers=[net[0]]) as explained:
        targets = [ClassifierOutputTarget(int(each)) for each in t]
        first = explained(input_tensor=x, targets=targets)[:4]
        other = explained(input_tensor=torch.cat([x[:4], 3 + 2 * x[4:]]), targets=targets)[:4]
    return {"depends_on_batch": float(np.linalg.norm(first - other) / np.linalg.norm(first))}


if __name__ == "__main__":
    ask(use, "grad_cam", {"grad-cam": importlib.metadata.version("grad-cam")})
