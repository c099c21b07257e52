"""Loss and gradient of a model at other parameters than its own, the model itself left as it is."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from bnbook.errors import BnbookError
from bnbook.probes.copies import Copies

Loss = Callable[[Tensor, Tensor], Tensor]  # (outputs, targets) -> ()
Batch = tuple[Tensor, Tensor]  # inputs, targets


@dataclass(frozen=True)
class LossAt:
    """The loss of one batch as a function of the trained parameters; every call sees the same noise."""

    copies: Copies  # of the network and its loss
    batch: Batch
    parameters: dict[str, Tensor]  # the model's own, detached: θ

    def __call__(self, changed: Mapping[str, Tensor], wanted: Sequence[str]) -> tuple[Tensor, list[Tensor]]:
        """The loss () with some parameters changed, and its gradients for the wanted ones, in their shapes.

        A copy of the model runs, in the mode that the model is in: batch statistics in training mode.
        """
        with self.copies.fresh() as [twin, loss]:
            own = dict(twin.named_parameters())
            with torch.no_grad():
                for name, value in changed.items():
                    own[name].copy_(value)
            leaves = [own[name] for name in wanted]
            inputs, targets = (each.detach().clone() for each in self.batch)
            value = loss(twin(inputs), targets)
            if value.dim():
                raise BnbookError(
                    f"a loss of shape {tuple(value.shape)}; expected one number; reduce it by mean or sum"
                )
            return value.detach().double(), slopes(value, leaves)


def loss_at(model: nn.Module, loss: Loss, batch: Batch) -> LossAt:
    """A `LossAt` whose noise is that of the next training forward; nothing of the model changes.

    Parameters, their .grad, buffers, mode and random state stay bit-identical, also when the loss raises, because
    every call runs on a copy. Errors: BnbookError for a model without trained parameters.
    """
    parameters = {name: p.detach() for name, p in model.named_parameters() if p.requires_grad}
    if not parameters:
        raise BnbookError("a model without trained parameters; expected at least one with requires_grad")
    return LossAt(Copies(model, loss), batch, parameters)


def total_norm(tensors: Sequence[Tensor]) -> Tensor:
    """ℓ2 norm of all the tensors' elements together, (), summed in float64."""
    return torch.stack([torch.linalg.vector_norm(t, dtype=torch.float64) for t in tensors]).norm()


def slopes(of: Tensor, leaves: Sequence[Tensor], by: Tensor | None = None, **more: bool) -> list[Tensor]:
    """∂⟨of, by⟩/∂leaf of each leaf, in their shapes; zeros for those to which nothing leads."""
    found = torch.autograd.grad(of, leaves, by, allow_unused=True, **more)
    return [torch.zeros_like(p) if g is None else g for p, g in zip(leaves, found, strict=True)]


def flat(tensors: Sequence[Tensor]) -> Tensor:
    """All elements one after the other, (N,)."""
    return torch.cat([each.flatten() for each in tensors])
