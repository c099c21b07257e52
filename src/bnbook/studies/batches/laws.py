"""One layer whose units are Gaussian and whose examples are independent: how far its two modes lie apart."""

from __future__ import annotations

import math


def shrinkage(m: int) -> float:
    """c_m = E[σ_B] of m standard Gaussian values, divisor m: √(2/m) Γ(m/2) / Γ((m-1)/2), about 1 - 3/(4m)."""
    return math.sqrt(2 / m) * math.exp(math.lgamma(m / 2) - math.lgamma((m - 1) / 2))


def mode_gap(m: int) -> float:
    """Root mean square of x̂ - x, x̂ by the batch and x by the population: √(2 (1 - c_m)).

    E[x̂²] = E[x²] = 1 and E[x x̂] = E[Σ x (x - μ) / (m σ)] = E[σ] = c_m. Its leading term is √(3/(2m)).
    """
    return math.sqrt(2 * (1 - shrinkage(m)))


def memory(weight: float) -> float:
    """√(w/(2-w)): a running average's standard deviation over one batch's, from Σ_k w² (1-w)^{2k} = w/(2-w)."""
    return math.sqrt(weight / (2 - weight))
