# /// script
# requires-python = "==3.11.*"
# dependencies = ["torch==2.13.0", "numpy==2.4.6", "setuptools==80.9.0", "torchopt==0.7.3"]
# ///
"""torchopt: one differentiable inner step with MetaSGD, then back to the state that was taken before it."""

import importlib.metadata

import torch
import torchopt
from network import ask


def use(net, x, t):
    optimizer = torchopt.MetaSGD(net, lr=0.1)
    before, held = net[1].running_mean.clone(), torchopt.extract_state_dict(net, by="copy")
    optimizer.step(torch.nn.functional.cross_entropy(net(x), t))
    torchopt.recover_state_dict(net, held)
    kept = torch.equal(before, net[1].running_mean)
    return {"said": f"going back {'puts' if kept else 'does not put'} the running statistics back"}


if __name__ == "__main__":
    ask(use, "torchopt", {"torchopt": importlib.metadata.version("torchopt")})
