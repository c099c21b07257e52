"""Short trainings of many deep networks at once: members differ in their seed and their learning rate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bnbook.errors import BnbookError
from bnbook.normalizers.batch import BatchNorm
from bnbook.studies.gradient_growth.activations import Elementwise
from bnbook.studies.gradient_growth.networks import Branch

EPS = 1e-5  # of batch norm, as in `bnbook.normalizers`


@dataclass(frozen=True)
class Trained:
    """What S seeds at A learning rates did in T steps; watched at K of them, in L layers (linear, in forward
    order)."""

    loss: np.ndarray  # (S, A, T)  of each batch before its update; NaN once not finite
    accuracy: np.ndarray  # (S, A, T)  share of each batch answered rightly before its update; NaN likewise
    gradient: np.ndarray  # (S, A, K, L)  ‖∂ℓ/∂W^l‖
    size: np.ndarray  # (S, A, K, L)  ‖W^l‖ before the update


class Stack:
    """Networks of one shape side by side; activations are (members, units, examples), so that a batch norm is
    one call."""

    def __init__(self, models: Sequence[nn.Sequential], copies: int) -> None:
        """Copy the parameters of `chain` or `residual` networks, each `copies` times in a row."""
        self.plan = [_kind(module) for module in models[0].children()]
        own = [list(model.parameters()) for model in models]
        self.parameters = [torch.stack(same).detach().repeat_interleave(copies, 0) for same in zip(*own)]
        names = [name for name, _ in models[0].named_parameters()]
        linears = {name for name, m in models[0].named_modules() if isinstance(m, nn.Linear)}
        self.weights = [k for k, name in enumerate(names) if name.removesuffix(".weight") in linears]

    def __call__(self, x: Tensor) -> Tensor:
        """Outputs (members, classes, examples) for inputs (members, units, examples), statistics those of the
        batch."""
        left = iter(self.parameters)

        def linear(h: Tensor) -> Tensor:
            weight, bias = next(left), next(left)
            return torch.baddbmm(bias[:, :, None], weight, h)

        def norm(h: Tensor) -> Tensor:
            gamma, beta = next(left), next(left)
            return F.instance_norm(h, eps=EPS) * gamma[:, :, None] + beta[:, :, None]

        h = x
        for kind, function in self.plan:
            if kind == "linear":
                h = linear(h)
            elif kind == "norm":
                h = norm(h)
            elif kind == "function":
                h = function(h)
            elif kind == "branch":
                h = h + linear(function(norm(h)))
        return h


def _kind(module: nn.Module):
    """How the stack computes a module of `chain` or `residual`; a branch's parameters come norm first."""
    if isinstance(module, nn.Linear):
        return "linear", None
    if isinstance(module, BatchNorm):
        return "norm", None
    if isinstance(module, Elementwise):
        return "function", module.function
    if isinstance(module, Branch):
        return "branch", module.act.function
    if isinstance(module, (nn.Identity, nn.Flatten)):
        return "nothing", None
    raise BnbookError(
        f"a stack cannot hold a {type(module).__name__}; expected a network of `chain` or `residual`"
    )


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
    stack = Stack(models, copies)
    rate = torch.tensor(rates, dtype=images.dtype).repeat(count)
    found: dict[str, list[Tensor]] = {"loss": [], "accuracy": [], "gradient": [], "size": []}
    for step in range(batches.shape[1]):
        chosen = batches[:, step]  # (S, B)
        x = images[chosen].transpose(1, 2).repeat_interleave(copies, 0).contiguous()
        target = labels[chosen].repeat_interleave(copies, 0)
        leaves = [p.requires_grad_() for p in stack.parameters]
        outputs = stack(x)  # (members, classes, B)
        loss = F.cross_entropy(outputs, target, reduction="none").mean(1)
        gradients = torch.autograd.grad(loss.sum(), leaves)
        with torch.no_grad():
            finite = torch.isfinite(loss)
            right = (outputs.argmax(1) == target).to(loss.dtype).mean(1)
            found["loss"].append(torch.where(finite, loss, torch.nan))
            found["accuracy"].append(torch.where(finite, right, torch.nan))
            if step in watched:
                for name, tensors in (("gradient", gradients), ("size", leaves)):
                    norms = [tensors[k].flatten(1).double().norm(dim=1) for k in stack.weights]
                    found[name].append(torch.stack(norms, 1))
            stack.parameters = [
                (p - rate.view(-1, *[1] * (p.ndim - 1)) * g).detach() for p, g in zip(leaves, gradients)
            ]
    layers = len(stack.weights)

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
