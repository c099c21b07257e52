"""The loss along a line from where a training stands: its values, its gradients, its effective smoothness."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from bnbook.errors import BnbookError
from bnbook.probes.functional import Batch, Loss, LossAt, loss_at, total_norm


@dataclass(frozen=True)
class Landscape:
    """What was met along a line from θ, at A distances; float64 throughout."""

    steps: Tensor  # (A,): a
    loss: Tensor  # (A,): L(θ_a)
    gradient_distance: Tensor  # (A,): ‖∇L(θ) - ∇L(θ_a)‖
    smoothness: Tensor  # (A,): gradient_distance / ‖θ - θ_a‖
    gradient_norm: Tensor  # (A,): ‖∇L(θ_a)‖
    start_loss: Tensor  # (): L(θ)
    start_norm: Tensor  # (): ‖∇L(θ)‖

    @property
    def effective_smoothness(self) -> Tensor:
        """The largest smoothness met, (); infinite if a gradient on the way was not finite."""
        return torch.where(self.smoothness.isnan(), torch.inf, self.smoothness).max()

    @property
    def cosine(self) -> Tensor:
        """Cosine of the angle between ∇L(θ) and ∇L(θ_a), (A,), by the law of cosines."""
        one, other = self.start_norm, self.gradient_norm
        return (one**2 + other**2 - self.gradient_distance**2) / (2 * one * other)


def along_gradient(model: nn.Module, loss: Loss, batch: Batch, steps: Tensor | Sequence[float]) -> Landscape:
    """Move along the gradient of a batch, θ_a = θ - a ∇L(θ), and measure on the same batch.

    smoothness_a = ‖∇L(θ) - ∇L(θ_a)‖ / (a ‖∇L(θ)‖), the effective β being its maximum over a. θ: all trained
    parameters. batch: inputs and targets of `loss(outputs, targets) -> ()`; steps (A,): each a > 0. The model
    runs in the mode it is in (training: batch statistics); its noise is that of the next training forward at
    every a; parameters, buffers, .grad, mode and random state stay bit-identical. Costs A + 1
    forward-backward passes. Errors: BnbookError for steps not above 0. Source: Santurkar et al. 2018, section
    3.2, A.2.2.
    """
    at = loss_at(model, loss, batch)
    start_loss, gradient = at({}, list(at.parameters))
    return _walk(at, start_loss, gradient, gradient, steps)


def along_direction(
    model: nn.Module,
    loss: Loss,
    batch: Batch,
    steps: Tensor | Sequence[float],
    direction: Sequence[Tensor] | None = None,
    generator: torch.Generator | None = None,
) -> Landscape:
    """The same along another direction u, equally far: θ_a = θ - a ‖∇L(θ)‖ u / ‖u‖.

    direction: tensors in the shapes of the trained parameters; by default every element is drawn from N(0, 1)
    by `generator` (a CPU generator of its own seed), which is isotropic in the space of all trained
    parameters. Errors: as `along_gradient`; BnbookError for another shape or a direction without length.
    Source: Santurkar et al. 2018, end of section 3.2 ("other (random) directions"), which gives no details.
    """
    at = loss_at(model, loss, batch)
    if direction is None:
        generator = generator or torch.Generator().manual_seed(0)
        direction = [torch.randn(p.shape, generator=generator).to(p) for p in at.parameters.values()]
    shapes = [tuple(p.shape) for p in at.parameters.values()]
    length = total_norm(direction) if len(direction) else torch.zeros(())
    if [tuple(u.shape) for u in direction] != shapes or not length > 0:
        raise BnbookError(
            f"a direction of {len(direction)} tensors and length {float(length):g}; expected the "
            "shapes of the "
            f"{len(shapes)} trained parameters and a length above 0"
        )
    start_loss, gradient = at({}, list(at.parameters))
    scale = total_norm(gradient) / length
    return _walk(at, start_loss, gradient, [u * scale.to(u.dtype) for u in direction], steps)


def _walk(
    at: LossAt,
    start_loss: Tensor,
    gradient: list[Tensor],
    direction: Sequence[Tensor],
    steps: Tensor | Sequence[float],
) -> Landscape:
    lengths = torch.as_tensor(steps, dtype=torch.float64).flatten()
    if not len(lengths) or not (lengths > 0).all():
        raise BnbookError(f"steps {lengths.tolist()} along a direction; expected at least one, each above 0")
    names = list(at.parameters)
    rows = []
    for a in lengths.tolist():
        moved = {
            n: torch.add(p, u, alpha=-a) for (n, p), u in zip(at.parameters.items(), direction, strict=True)
        }
        loss, there = at(moved, names)
        distance = total_norm(torch._foreach_sub(gradient, there))
        rows.append(torch.stack([loss, distance, total_norm(there)]))
    loss, distance, norm = torch.stack(rows).T
    start = total_norm(gradient)
    lengths = lengths.to(start.device)
    return Landscape(lengths, loss, distance, distance / (lengths * start), norm, start_loss, start)
