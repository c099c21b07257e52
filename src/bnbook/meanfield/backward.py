"""Gradients on their way back: as printed, with the right sums over places, and through the batch statistics.

Beside the paper's q̃ stand sums over the places of a map, T = Σ_α ‖δ_α(x)‖² = |K| q̃, and T_xy likewise: a
layer's filters hand on the *sum*. Each place of layer l+1 reads |F| places of layer l with weights of
variance σ_w²/(C_l |F|), so T^l = σ_w² E[φ'²] T^{l+1} / s² whatever the stride; q̃ is a mean over |K_l|
places, of which there are about stride² times as many as in layer l+1. And two different places never share a
weight on the way from the readout (it has weights of its own for each place, a filter one for each offset),
so that E⟨δ_α(x), δ_β(y)⟩ = 0 for α ≠ β.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bnbook.meanfield import recursions as eq
from bnbook.meanfield.letters import Array, Forward, Setting


@dataclass(frozen=True)
class Backward:
    """What goes backwards; index the paper's l, then the settings' shape; for one output."""

    total: Array  # E Σ_α ‖δ_α(x)‖²
    total_xy: Array  # E Σ_α ⟨δ_α(x), δ_α(y)⟩
    total_ab: (
        Array  # E Σ_{α≠β} ⟨δ_α(x), δ_β(y)⟩, over pairs of different inputs; through the batch over all pairs
    )


def backward(setting: Setting, ahead: Forward) -> Backward:
    """From the readout, where δ = 1, to layer 1."""
    one = Backward(*(setting.empty() for _ in range(3)))
    last = setting.architecture.depth
    one.total[last] = one.total_xy[last] = 1.0
    one.total_ab[last] = 0.0
    step = {"printed": _printed, "corrected": _corrected, "through_batch": _through_batch}[setting.equations]
    if setting.norm == "none" and setting.equations == "through_batch":
        step = _corrected  # there are no statistics to go through
    for l in range(last - 1, 0, -1):
        step(setting, ahead, one, l)
    return one


def _same(setting: Setting, ahead: Forward, behind: Array, l: int) -> Array:
    if setting.norm == "none":
        return eq.relu_backward(behind, setting.sigma_w2)
    return eq.batch_backward(behind, setting.gamma, setting.sigma_w2, ahead.variance[l])


def _pairs(setting: Setting, ahead: Forward, behind: Array, l: int, c: Array) -> Array:
    if setting.norm == "none":
        return setting.sigma_w2 * behind * eq.step_product(c)
    return eq.batch_backward_pairs(behind, setting.gamma, setting.sigma_w2, ahead.variance[l], c)


def _printed(setting: Setting, ahead: Forward, one: Backward, l: int) -> None:
    """Equations 22, 25, 37, 38, 42 and 43: means over places handed on as they are, and places that do share.

    The paper has no base case for two places, for its readout has only one: `two_places` stands for it.
    """
    places, behind = setting.architecture.positions[l], setting.architecture.positions[l + 1]
    one.total[l] = places * _same(setting, ahead, one.total[l + 1] / behind, l)
    one.total_xy[l] = places * _pairs(setting, ahead, one.total_xy[l + 1] / behind, l, ahead.c_xy[l])
    if places > 1:
        first = np.full_like(setting.gamma, setting.two_places)
        mean = one.total_ab[l + 1] / (behind * (behind - 1)) if behind > 1 else first
        one.total_ab[l] = places * (places - 1) * _pairs(setting, ahead, mean, l, ahead.c_ab_xy[l])
    else:
        one.total_ab[l] = 0.0


def _corrected(setting: Setting, ahead: Forward, one: Backward, l: int) -> None:
    one.total[l] = _same(setting, ahead, one.total[l + 1], l)
    one.total_xy[l] = _pairs(setting, ahead, one.total_xy[l + 1], l, ahead.c_xy[l])
    one.total_ab[l] = 0.0


def _through_batch(setting: Setting, ahead: Forward, one: Backward, l: int) -> None:
    """The gradient of the *mean* output, through mean and variance: what they remove is removed.

    With g = ∂/∂(γu) of a unit, over all n = m |K| values, δ = (γ/s)(g - ⟨g⟩ - u ⟨g u⟩): the parts along 1 and
    along u go. Below the readout g = w_α φ'(u) with a weight for each place, and the mean over inputs that is
    left is w_α less its mean over places: 1 - 1/|K| of it, nothing in a fully connected layer. Further down
    the sum of δ over places is zero already, and only what differs from input to input loses another 1/n.
    """
    m, places = setting.batch, setting.architecture.positions[l]
    share = 0.0 if m is None else 1 / m
    steps, relus = eq.step_product(ahead.c_xy[l]), eq.relu_product(ahead.c_xy[l])
    scale = setting.gamma**2 * setting.sigma_w2 / ahead.variance[l]
    total, mean = one.total[l + 1], one.total_xy[l + 1]
    if l == setting.architecture.depth - 1:
        removed = (share * total + (1 - share) * (steps + relus) * mean) / places
        kept = scale * steps * mean * (1 - 1 / places)
    else:
        removed = share * (1 - steps - relus) * total / places
        values = setting.values(l + 1)
        common = mean if values is None else (mean * (values - 1) + total) / values  # without what fluctuates
        kept = scale * steps * common if places > 1 else np.zeros_like(total)
    one.total[l] = scale * (total / 2 - removed)
    fluctuating = (one.total[l] - kept) * (0.0 if m is None else 1 / (m * places - 1))
    one.total_xy[l] = kept - fluctuating
    # Summed over all inputs and places δ is zero: what pairs at two places hold, the others hold with the
    # other sign.
    same_input = share * one.total[l]
    one.total_ab[l] = -(same_input + (1 - share) * one.total_xy[l]) if places > 1 else 0.0
