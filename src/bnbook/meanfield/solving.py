"""Solve the recursions of a network for a grid of settings at once."""

from __future__ import annotations

from typing import Any

import numpy as np

from bnbook.errors import BnbookError
from bnbook.meanfield import recursions as eq
from bnbook.meanfield.architectures import Convolutional, FullyConnected
from bnbook.meanfield.backward import Backward, backward
from bnbook.meanfield.letters import Array, Forward, Setting, forward
from bnbook.meanfield.theory import MeanFieldTheory, over_pairs

NORMS = ("none", "batch")
EQUATIONS = ("printed", "corrected", "through_batch")
FORWARD = ("q", "q_hat", "q_xy", "q_hat_xy", "q_ab_xy", "q_hat_ab_xy")


def solve(
    architecture: FullyConnected | Convolutional,
    norm: str = "none",
    gamma: Any = 1.0,
    sigma_w2: Any = 2.0,
    sigma_b2: Any = 0.5,
    equations: str = "printed",
    batch: int | None = None,
    q_hat_0: Any = 1.0,
    q_hat_xy_0: Any = 0.0,
    q_hat_ab_xy_0: Any = None,
    two_places: float = 1.0,
) -> MeanFieldTheory:
    """Order parameters of a random network, for every setting in the broadcast of the arguments.

    norm "none": equations 20 to 22 and 34 to 38; "batch": 23 to 25 and 39 to 43, β = 0.
    equations "printed": as the paper has them, with the base case of its Claim 6.1, q̂⁰ = 1, q̂⁰_xy = 0; two_places =
    q̃_αβ,xy behind the last map, which it leaves open: 1 is by analogy with its other two, 0 what independent weights give.
    equations "corrected": the same object, statistics constant in the gradient; batch norm divides by the
    variance over the data, sums run over the places that are there, and the base case is the data's: q_hat_0
    = E‖x_α‖²/C_0, q_hat_xy_0 = E⟨x_α, y_α⟩/C_0, q_hat_ab_xy_0 = E⟨x_α, y_β⟩/C_0 over pairs of different
    inputs (and places α ≠ β; by default as q_hat_xy_0); with `batch` = m, exact in m for wide fully connected
    layers and inputs of equal inner products. equations "through_batch": gradients flow through mean and
    variance too (without batch norm the same as corrected). BnbookError for impossible input: one line that
    says what is expected.
    """
    _check_names(architecture, norm, equations)
    starts = (q_hat_0, q_hat_xy_0, q_hat_xy_0 if q_hat_ab_xy_0 is None else q_hat_ab_xy_0)
    gamma, sigma_w2, sigma_b2, *base = _settings(gamma, sigma_w2, sigma_b2, *starts)
    _check_data(norm, equations, batch, *base)
    if two_places != 1 and equations != "printed":
        raise BnbookError(
            f"equations {equations!r} have their own start of two places; expected the printed ones"
        )
    setting = Setting(architecture, norm, equations, batch, gamma, sigma_w2, sigma_b2, two_places)
    ahead = forward(setting, *base)
    behind = backward(setting, ahead)
    places = np.array(architecture.positions, dtype=float).reshape(-1, *[1] * gamma.ndim)
    with np.errstate(invalid="ignore", divide="ignore"):
        apart = behind.total_ab / (places * (places - 1))
    letters = {name: getattr(ahead, name) for name in FORWARD}
    letters |= dict(q_tilde=behind.total / places, q_tilde_xy=behind.total_xy / places)
    letters |= dict(q_tilde_ab_xy=np.where(places > 1, apart, np.nan))
    further = _further(setting, ahead, behind)
    return MeanFieldTheory(architecture, norm, equations, batch, further=further, **letters)


def _further(setting: Setting, ahead: Forward, behind: Backward) -> Array:
    """What biases, γ and β add to f, (L, *settings): the first and the last two terms of equations 156 and
    157.

    A bias acts at every place: ∂f̄/∂b^l = Σ_α δ_α. With g_α = ∂f/∂(γu_α + β): ∂f̄/∂β = Σ_α g_α and ∂f̄/∂γ =
    Σ_α g_α u_α. Over pairs β adds σ_w² T_xy^{l+1} E[φ'(a) φ'(b)] and γ adds σ_w² T_xy^{l+1} E[φ(a) φ(b)]; for
    x = y both add σ_w² T^{l+1} / 2. Through the batch no bias before a batch norm has a gradient, and below
    the last batch norm the sum of δ is zero, so that only what fluctuates is left: σ_w² T^{l+1} (1/2 - E[…])
    / m.
    """
    m, depth = setting.batch, setting.architecture.depth
    through = setting.norm == "batch" and setting.equations == "through_batch"
    biases = over_pairs(behind.total_xy[1:], behind.total[1:], m)
    if setting.equations == "printed":
        biases += behind.total_ab[1:]
    if setting.norm == "none":
        return biases
    if through:
        biases[:-1] = 0.0
    for l in range(1, depth):
        for share in (eq.step_product(ahead.c_xy[l]), eq.relu_product(ahead.c_xy[l])):
            if through and l < depth - 1:
                added = behind.total[l + 1] * (0.5 - share) * (0.0 if m is None else 1 / m)
            else:
                added = over_pairs(behind.total_xy[l + 1] * share, behind.total[l + 1] / 2, m)
            biases[l - 1] += setting.sigma_w2 * added
    return biases


def _settings(*values: Any) -> list[Array]:
    names = ("gamma", "sigma_w2", "sigma_b2", "q_hat_0", "q_hat_xy_0", "q_hat_ab_xy_0")
    try:
        arrays = np.broadcast_arrays(*(np.asarray(value, dtype=float) for value in values))
    except (TypeError, ValueError):
        raise BnbookError(
            "the settings do not fit together; expected gamma, sigma_w2, sigma_b2, q_hat_0, q_hat_xy_0 "
            "and q_hat_ab_xy_0 as "
            "numbers or as arrays that broadcast"
        ) from None
    for name, array in zip(names, arrays):
        if not np.isfinite(array).all():
            raise BnbookError(f"{name} is not finite; expected numbers")
    gamma, sigma_w2, sigma_b2, q_hat_0, *products = arrays
    for name, array in (("gamma", gamma), ("sigma_w2", sigma_w2), ("q_hat_0", q_hat_0)):
        if (array <= 0).any():
            raise BnbookError(f"{name} is {array.min():g}; expected a number above 0")
    if (sigma_b2 < 0).any():
        raise BnbookError(f"sigma_b2 is {sigma_b2.min():g}; expected a variance, 0 or more")
    for name, product in zip(names[4:], products):
        if (abs(product) > q_hat_0).any():
            raise BnbookError(f"{name} is larger than q_hat_0; expected an inner product within ±q_hat_0")
    return arrays


def _check_names(architecture: Any, norm: str, equations: str) -> None:
    if not isinstance(architecture, (FullyConnected, Convolutional)):
        raise BnbookError(
            f"architecture {architecture!r} is unknown; expected FullyConnected((inputs, ...)) or "
            "Convolutional(image, ...)"
        )
    if norm not in NORMS:
        raise BnbookError(f"norm {norm!r} is unknown; expected one of {', '.join(NORMS)}")
    if equations not in EQUATIONS:
        raise BnbookError(f"equations {equations!r} are unknown; expected one of {', '.join(EQUATIONS)}")


def _check_data(
    norm: str, equations: str, batch: Any, q_hat_0: Array, q_hat_xy_0: Array, q_hat_ab_xy_0: Array
) -> None:
    """The data that these equations allow: Claim 6.1's for the printed ones, some variance for batch norm."""
    moved = (q_hat_0 != 1).any() or (q_hat_xy_0 != 0).any() or (q_hat_ab_xy_0 != 0).any()
    if equations == "printed" and (batch is not None or moved):
        raise BnbookError(
            "the printed equations hold for infinitely many inputs with q_hat_0 = 1 and q_hat_xy_0 = 0; "
            "leave batch, q_hat_0 and q_hat_xy_0 out or use equations='corrected'"
        )
    least = 4 if norm == "batch" else 2
    whole = isinstance(batch, (int, np.integer)) and not isinstance(batch, bool)
    if batch is not None and not (whole and batch >= least):
        raise BnbookError(f"batch is {batch!r}; expected a whole number, {least} or more, or None (infinite)")
    if norm == "batch" and (q_hat_xy_0 == q_hat_0).any():
        raise BnbookError(
            "q_hat_xy_0 equals q_hat_0: all inputs are the same and batch norm has no variance to divide by; "
            "expected q_hat_xy_0 < q_hat_0"
        )
