"""How much of the gradient batch norm takes away on its way back: its share along 1 and along x̂."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from bnbook.errors import BnbookError
from bnbook.models import activation_points
from bnbook.normalizers.noisy import Noise
from bnbook.probes.functional import Batch, Loss
from bnbook.probes.statistics import copied, seen_in


@dataclass(frozen=True)
class RemovedGradient:
    """Shares of ‖g‖² by layer, in forward order; L layers. What is left over passes to the layers below."""

    along_one: Tensor  # (L,): Σ_j <1, g_j>² / m over Σ_j ‖g_j‖², the sums over the units j of a layer
    along_values: Tensor  # (L,): Σ_j <x̂_j, g_j>² / ‖x̂_j‖² over the same
    unit_one: Tensor  # (L,): the mean over units of <1, g_j>² / (m ‖g_j‖²), units without gradient left out
    unit_values: Tensor  # (L,): the mean over units of <x̂_j, g_j>² / (‖x̂_j‖² ‖g_j‖²), likewise
    norm: Tensor  # (L,): (Σ_j ‖g_j‖²)^(1/2)


def measure(model: nn.Module, loss: Loss, batch: Batch) -> RemovedGradient:
    """Split the gradient at each normalizer's output as Theorem 4.1 does; batch: inputs and targets.

    g_j (m,): gradient of the loss by what batch norm hands on for unit j, over the m values of the batch (and
    positions); x̂_j (m,): those values standardized. Backwards batch norm hands on
    γ_j/σ_j (g_j - 1 <1, g_j>/m - x̂_j <x̂_j, g_j>/m), so both shares are lost:
    ‖∂L/∂y_j‖² = γ_j²/σ_j² (‖g_j‖² - <1, g_j>²/m - <x̂_j, g_j>²/m), with ‖x̂_j‖² = m. Noise behind batch norm
    belongs to the loss; where nothing normalizes, it is what batch norm would take if it stood there. The
    model runs with the statistics of the batch; parameters, buffers, .grad, mode and random state stay
    bit-identical. Errors: BnbookError for a model without such a place. Source: Santurkar et al. 2018,
    NeurIPS, Theorem 4.1.
    """
    points = activation_points(model)
    if not points:
        raise BnbookError("a model without a place for a normalizer; expected one of the book's networks")
    inputs, targets = batch
    with copied(model, "batch", loss) as [twin, own]:
        normalizers = {point: twin.get_submodule(point) for point in points}
        noises = {
            point: [m for m in normalizers[point].modules() if isinstance(m, Noise)] for point in points
        }
        seen = seen_in({point: (noises[point] or [normalizers[point]])[0] for point in points})
        value = own(twin(inputs.clone()), targets)
        outputs = [seen[point][0 if noises[point] else 1] for point in points]
        gradients = torch.autograd.grad(value, outputs)
    rows = [_split(made.detach(), gradient) for made, gradient in zip(outputs, gradients, strict=True)]
    return RemovedGradient(*torch.stack(rows).T)


def _split(values: Tensor, gradient: Tensor) -> Tensor:
    """The five numbers of one layer, (5,), in float64."""
    values, gradient = (each.transpose(0, 1).flatten(1).double() for each in (values, gradient))
    values = values - values.mean(1, keepdim=True)
    size = gradient.square().sum(1)
    one = gradient.sum(1).square() / gradient.shape[1]
    spread = values.square().sum(1)
    along = (values * gradient).sum(1).square() / torch.where(spread > 0, spread, 1.0)
    has = size > 0
    totals = torch.stack([one.sum(), along.sum()]) / size.sum()
    units = torch.stack([(part[has] / size[has]).mean() for part in (one, along)])
    return torch.cat([totals, units, size.sum().sqrt()[None]])
