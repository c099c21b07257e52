"""Solve the recursions of a network: order parameters by layer, eigenvalue bound, critical learning rate."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from bnbook.errors import BnbookError
from bnbook.meanfield import recursions as eq
from bnbook.meanfield.architectures import FullyConnected

NORMS = ("none", "batch")
EQUATIONS = ("printed", "corrected")
Array = np.ndarray


@dataclass(frozen=True)
class MeanFieldTheory:
    """Order parameters by layer: index the paper's l, then the settings' shape; NaN where none is defined."""

    architecture: FullyConnected
    norm: str
    equations: str
    batch: int | None  # m, or None for infinitely many inputs
    q: Array  # (L+1, *settings)  E‖z^l(x)‖² / N_l, equation 17; NaN at 0
    q_hat: Array  # (L+1, *settings)  E‖h^l(x)‖² / N_l, equation 17; NaN at L
    q_xy: Array  # (L+1, *settings)  E⟨z^l(x), z^l(y)⟩ / N_l, equation 18; NaN at 0
    q_hat_xy: Array  # (L+1, *settings)  E⟨h^l(x), h^l(y)⟩ / N_l, equation 18; NaN at L
    q_tilde: Array  # (L+1, *settings)  E‖δ^l(x)‖² for one output, equation 19; NaN at 0
    q_tilde_xy: Array  # (L+1, *settings)  E⟨δ^l(x), δ^l(y)⟩ for one output, equation 19; NaN at 0
    #: (L, *settings)  what biases, γ and β add to f (equations 156 and 157, dropped in equation 158)
    further: Array = field(repr=False)

    @property
    def f(self) -> Array:
        """Shares of λ_max, (L, *settings), f[l-1] of layer l: f_l = N_{l-1} q̂_xy^{l-1} q̃_xy^l (eq. 161).

        For m inputs the mean over all m² pairs, x = y among them (equation 159):
        N_{l-1} ((1 - 1/m) q̂_xy^{l-1} q̃_xy^l + q̂^{l-1} q̃^l / m).
        """
        fan_in = np.array(self.architecture.widths[:-1]).reshape(-1, *[1] * (self.q.ndim - 1))
        pairs = self.q_hat_xy[:-1] * self.q_tilde_xy[1:]
        return fan_in * _over_pairs(pairs, self.q_hat[:-1] * self.q_tilde[1:], self.batch)

    @property
    def lambda_max(self) -> Array:
        """Lower bound on the largest Fisher eigenvalue, Σ_l f_l: equation 44; one output, weights only."""
        return self.f.sum(axis=0)

    @property
    def lambda_max_full(self) -> Array:
        """The same over all parameters: with the biases', γ's and β's terms of equations 156 and 157."""
        return (self.f + self.further).sum(axis=0)

    def critical_learning_rate(self, momentum: float = 0.9) -> Array:
        """η* = 2 (1 + μ) / λ_max, above which gradient descent with momentum μ diverges: equation 7."""
        if not 0 <= momentum < 1:
            raise BnbookError(f"momentum {momentum!r} is impossible; expected 0 <= momentum < 1")
        return 2 * (1 + momentum) / self.lambda_max


def solve(
    architecture: FullyConnected,
    norm: str = "none",
    gamma: Any = 1.0,
    sigma_w2: Any = 2.0,
    sigma_b2: Any = 0.5,
    equations: str = "printed",
    batch: int | None = None,
    q_hat_0: Any = 1.0,
    q_hat_xy_0: Any = 0.0,
) -> MeanFieldTheory:
    """Order parameters of a random network, for every setting in the broadcast of the arguments.

    norm "none": equations 20 to 22; "batch": equations 23 to 25, β = 0, statistics constant in the gradient.
    equations "printed": as the paper has them, with the base case of its Claim 6.1, q̂⁰ = 1, q̂⁰_xy = 0.
    equations "corrected": batch norm divides by the variance over the data, q - q_xy, not by q; the base case
    is the data's, q_hat_0 = E‖x‖²/N_0 and q_hat_xy_0 = E⟨x, y⟩/N_0 over pairs (‖E x‖²/N_0 for infinitely many
    inputs); with `batch` = m, exact in m for wide layers and inputs of equal pairwise inner products.
    BnbookError for impossible input: one line that says what is expected.
    """
    _check_names(architecture, norm, equations)
    settings = _settings(gamma, sigma_w2, sigma_b2, q_hat_0, q_hat_xy_0)
    gamma, sigma_w2, sigma_b2, q_hat_0, q_hat_xy_0 = settings
    _check_data(norm, equations, batch, q_hat_0, q_hat_xy_0)
    correlation = eq.pair_correlation(batch)

    depth = architecture.depth
    q, q_hat, q_xy, q_hat_xy, q_tilde, q_tilde_xy = np.full((6, depth + 1, *gamma.shape), np.nan)
    q_hat[0], q_hat_xy[0] = q_hat_0, q_hat_xy_0
    for l in range(1, depth + 1):  # noqa: E741, the paper's letter
        q[l] = eq.preactivation(q_hat[l - 1], sigma_w2, sigma_b2)
        q_xy[l] = eq.preactivation(q_hat_xy[l - 1], sigma_w2, sigma_b2)
        if l == depth:
            break
        if norm == "batch":
            q_hat[l], q_hat_xy[l] = eq.batch_forward(gamma), eq.batch_forward_pairs(gamma, correlation)
        else:
            q_hat[l], q_hat_xy[l] = eq.relu_forward(q[l]), eq.relu_forward_pairs(q[l], q_xy[l])

    q_tilde[depth] = q_tilde_xy[depth] = 1.0
    for l in range(depth - 1, 0, -1):  # noqa: E741
        if norm == "batch":
            variance = q[l] if equations == "printed" else eq.data_variance(q[l], q_xy[l], batch)
            q_tilde[l] = eq.batch_backward(q_tilde[l + 1], gamma, sigma_w2, variance)
            q_tilde_xy[l] = eq.batch_backward_pairs(q_tilde_xy[l + 1], gamma, sigma_w2, variance, correlation)
        else:
            q_tilde[l] = eq.relu_backward(q_tilde[l + 1], sigma_w2)
            q_tilde_xy[l] = eq.relu_backward_pairs(q_tilde_xy[l + 1], q[l], q_xy[l], sigma_w2)

    further = _over_pairs(q_tilde_xy[1:], q_tilde[1:], batch)  # the biases' terms: ∂f/∂b^l = δ^l
    if norm == "batch":
        further[:-1] += _affine_terms(q_tilde, q_tilde_xy, sigma_w2, correlation, batch)
    return MeanFieldTheory(
        architecture, norm, equations, batch, q, q_hat, q_xy, q_hat_xy, q_tilde, q_tilde_xy, further
    )


def _affine_terms(q_tilde: Array, q_tilde_xy: Array, sigma_w2: Array, c: float, batch: int | None) -> Array:
    """What γ and β of layers 1 to L-1 add, (L-1, *settings): the second line of equation 157.

    With g = ∂f/∂(γu + β) of layer l: ∂f/∂β_i = g_i and ∂f/∂γ_i = g_i u_i, so that over
    pairs β adds σ_w² q̃_xy^{l+1} E[φ'(a) φ'(b)] and γ adds σ_w² q̃_xy^{l+1} E[φ(a) φ(b)]; for x = y both add
    σ_w² q̃^{l+1} / 2.
    """
    pairs = sigma_w2 * q_tilde_xy[2:] * (eq.step_product(np.asarray(c)) + eq.relu_product(np.asarray(c)))
    return _over_pairs(pairs, sigma_w2 * q_tilde[2:], batch)


def _over_pairs(different: Array, same: Array, batch: int | None) -> Array:
    """Mean over all m² pairs from those over x ≠ y and x = y (equation 153); infinite m: the first alone."""
    return different.copy() if batch is None else (1 - 1 / batch) * different + same / batch


def _settings(*values: Any) -> list[Array]:
    names = ("gamma", "sigma_w2", "sigma_b2", "q_hat_0", "q_hat_xy_0")
    try:
        arrays = np.broadcast_arrays(*(np.asarray(value, dtype=float) for value in values))
    except (TypeError, ValueError):
        raise BnbookError(
            "the settings do not fit together; expected gamma, sigma_w2, sigma_b2, q_hat_0 and q_hat_xy_0 as "
            "numbers or as arrays that broadcast"
        ) from None
    for name, array in zip(names, arrays):
        if not np.isfinite(array).all():
            raise BnbookError(f"{name} is not finite; expected numbers")
    gamma, sigma_w2, sigma_b2, q_hat_0, q_hat_xy_0 = arrays
    for name, array in (("gamma", gamma), ("sigma_w2", sigma_w2), ("q_hat_0", q_hat_0)):
        if (array <= 0).any():
            raise BnbookError(f"{name} is {array.min():g}; expected a number above 0")
    if (sigma_b2 < 0).any():
        raise BnbookError(f"sigma_b2 is {sigma_b2.min():g}; expected a variance, 0 or more")
    if (abs(q_hat_xy_0) > q_hat_0).any():
        raise BnbookError("q_hat_xy_0 is larger than q_hat_0; expected an inner product within ±q_hat_0")
    return arrays


def _check_names(architecture: Any, norm: str, equations: str) -> None:
    if not isinstance(architecture, FullyConnected):
        raise BnbookError(f"architecture {architecture!r} is unknown; expected FullyConnected((inputs, ...))")
    if norm not in NORMS:
        raise BnbookError(f"norm {norm!r} is unknown; expected one of {', '.join(NORMS)}")
    if equations not in EQUATIONS:
        raise BnbookError(f"equations {equations!r} are unknown; expected one of {', '.join(EQUATIONS)}")


def _check_data(norm: str, equations: str, batch: Any, q_hat_0: Array, q_hat_xy_0: Array) -> None:
    """The data that these equations allow: Claim 6.1's for the printed ones, some variance for batch norm."""
    if equations == "printed" and (batch is not None or (q_hat_0 != 1).any() or (q_hat_xy_0 != 0).any()):
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
