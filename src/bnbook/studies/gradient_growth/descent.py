"""Short trainings of many deep networks at once: members differ in their seed and their learning rate.

A loop of its own: one by one, fifty layers of small matrices are all overhead, so vmap trains all members
as one, which no observer of single networks can watch; it takes seconds and need not resume.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.func import functional_call, stack_module_state, vmap


@dataclass(frozen=True)
class Trained:
    """What S seeds at A learning rates did in T steps; watched at K of them, in L layers (linear, in forward
    order)."""

    loss: np.ndarray  # (S, A, T)  of each batch before its update; NaN once not finite
    accuracy: np.ndarray  # (S, A, T)  share of each batch answered rightly before its update; NaN likewise
    gradient: np.ndarray  # (S, A, K, L)  ‖∂ℓ/∂W^l‖
    size: np.ndarray  # (S, A, K, L)  ‖W^l‖ before the update


def train(
    models: Sequence[nn.Sequential],
    rates: Sequence[float],
    images: Tensor,
    labels: Tensor,
    batches: Tensor,
    watched: Sequence[int] = (),
) -> Trained:
    """Plain gradient descent on the cross-entropy of mini-batches: every network (S) at every learning rate
    (A).

    images (n, units), labels (n,), batches (S, T, B): which examples each seed sees at each step, the same at
    all its rates. No momentum, no decay. A member that is no longer finite stays so and harms no other.
    watched: steps, from 0.
    """
    copies, count = len(rates), len(models)
    one = _without_averages(models[0])
    forward = vmap(lambda parameters, x: functional_call(one, parameters, (x,)))
    parameters = {
        name: same.detach().repeat_interleave(copies, 0)
        for name, same in stack_module_state(list(models))[0].items()
    }
    weights = [f"{name}.weight" for name, m in one.named_modules() if isinstance(m, nn.Linear)]
    rate = torch.tensor(rates, dtype=images.dtype).repeat(count)
    found: dict[str, list[Tensor]] = {"loss": [], "accuracy": [], "gradient": [], "size": []}
    for step in range(batches.shape[1]):
        chosen = batches[:, step]  # (S, B)
        x, target = (of[chosen].repeat_interleave(copies, 0) for of in (images, labels))
        leaves = {name: p.requires_grad_() for name, p in parameters.items()}
        outputs = forward(leaves, x).transpose(1, 2)  # (members, classes, B)
        loss = F.cross_entropy(outputs, target, reduction="none").mean(1)
        gradients = dict(zip(leaves, torch.autograd.grad(loss.sum(), list(leaves.values()))))
        with torch.no_grad():
            finite = torch.isfinite(loss)
            right = (outputs.argmax(1) == target).to(loss.dtype).mean(1)
            found["loss"].append(torch.where(finite, loss, torch.nan))
            found["accuracy"].append(torch.where(finite, right, torch.nan))
            if step in watched:
                for name, tensors in (("gradient", gradients), ("size", leaves)):
                    norms = [tensors[weight].flatten(1).double().norm(dim=1) for weight in weights]
                    found[name].append(torch.stack(norms, 1))
            parameters = {
                name: (p - rate.view(-1, *[1] * (p.ndim - 1)) * gradients[name]).detach()
                for name, p in leaves.items()
            }
    layers = len(weights)

    def arranged(tensors: list[Tensor], *rest: int) -> np.ndarray:
        if not tensors:
            return np.zeros((count, copies, 0, *rest))
        return torch.stack(tensors, 1).detach().double().numpy().reshape(count, copies, len(tensors), *rest)

    return Trained(
        arranged(found["loss"]),
        arranged(found["accuracy"]),
        arranged(found["gradient"], layers),
        arranged(found["size"], layers),
    )


def _without_averages(model: nn.Sequential) -> nn.Sequential:
    """A copy in training mode that keeps no running averages, which nobody reads here."""
    model = copy.deepcopy(model).train()
    for module in model.modules():
        if hasattr(module, "running_mean"):
            module.running_mean = module.running_var = None
    return model
