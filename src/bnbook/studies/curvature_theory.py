"""What mean-field theory says about the curvature of a network for the inputs that it sees, in four ways."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import Tensor

from bnbook.meanfield import Convolutional, FullyConnected, MeanFieldTheory, solve
from bnbook.meanfield.two_places import start_two_places_from

#: The printed equations, by the start of their gradients of two places; the paper gives none, 0 is kindest.
STARTS = {"from0": 0.0, "from1": 1.0}


def input_moments(x: Tensor) -> dict[str, float]:
    """Base case of the corrected equations for inputs (m, C, H, W): E‖x_α‖²/C, E⟨x_α, y_α⟩/C, E⟨x_α, y_β⟩/C.

    Means over all inputs, over all pairs x ≠ y of them, and over places α ≠ β too; the last is nan where
    there is one place only.
    """
    a = x.double().flatten(2)
    m, units, places = a.shape
    same = a.square().sum().item()
    one = a.sum(0).square().sum().item() - same
    apart = a.sum((0, 2)).square().sum().item() - a.sum(2).square().sum().item() - one
    pairs, others = m * (m - 1) * units * places, places - 1
    return {
        "q_hat_0": same / (m * units * places),
        "q_hat_xy_0": one / pairs,
        "q_hat_ab_xy_0": apart / (pairs * others) if others else float("nan"),
    }


def solve_as(
    equations: str,
    shape: FullyConnected | Convolutional,
    batch: int,
    moments: Mapping[str, float],
    **setting: Any,
) -> MeanFieldTheory:
    """The theory that `equations` name, for batches of m inputs with these moments.

    "from0" and "from1": as printed, which knows neither batch nor inputs, gradients of two places from there;
    "corrected": statistics held constant; "through_batch": gradients through them. setting: as in `solve`.
    """
    if equations in STARTS:
        return start_two_places_from(STARTS[equations], solve(shape, **setting))
    places = isinstance(shape, Convolutional)
    known = {name: value for name, value in moments.items() if places or name != "q_hat_ab_xy_0"}
    return solve(shape, equations=equations, batch=batch, **known, **setting)
