"""One random instance against the text around Theorem 4.2: what it supposes, and what it concludes."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from bnbook.studies.theorems import smoothness
from bnbook.studies.theorems.cases import Case
from bnbook.studies.theorems.instances import batch_norm, hessian
from bnbook.studies.theorems.margins import error, margin

#: Of the batch norm above the layer, whose units may be silent.
EPS = 1e-5


def predictiveness_trial(case: Case) -> dict[str, float]:
    """Does a smaller quadratic form along the gradient mean that the gradient changes less along itself?

    Premises, each as the text has it: vᵀHv, gᵀHg and γ <g, ŷ> are not negative, and batch norm's form is the
    smaller one, as it is and for vectors of length 1. Conclusion: ‖Ĥ v‖ / ‖v‖ ≤ ‖H g‖ / ‖g‖, the change of
    the gradient per distance in its own direction. H and g from above are the same in both networks.
    """
    g, v, h, gamma = case.g, case.v, case.above, case.gamma
    line = lambda step: case.instance.loss(case.layer(torch.tensor(case.instance.y) - step * case.moved))
    second = float(torch.func.hessian(line)(torch.tensor(0.0, dtype=torch.float64)))
    form = smoothness.theorem_42(h, g, case.unit, gamma, v, second=False)
    size = (gamma / case.unit.sigma) ** 2 * math.sqrt((h * h).sum()) * case.reach
    size += abs(gamma) / case.unit.sigma**2 * math.sqrt(g @ g) * case.reach
    result = {"error.loss_expansion": error(second, form, size)}
    lengths = math.sqrt(v @ v), math.sqrt(g @ g)
    if case.unit.m == 2 or min(lengths) == 0:
        return result
    plain, small = g @ h @ g, 1e-9 * size
    smaller = form <= plain and form / lengths[0] ** 2 <= plain / lengths[1] ** 2
    if smaller and min(v @ h @ v, plain) >= -small and gamma * (g @ case.unit.y_hat) >= 0:
        changes = math.sqrt(((case.through @ v) ** 2).sum()), math.sqrt(((h @ g) ** 2).sum())
        result["margin.predictive"] = margin(changes[0] / lengths[0], changes[1] / lengths[1])
        if plain > small:  # a loss that is not linear along g
            result["margin.predictive_curved"] = result["margin.predictive"]
    return result


def assumption_trial(rng: np.random.Generator, case: Case) -> dict[str, float]:
    """The two conditions that the text after Theorem 4.2 calls mild."""
    instance, j, y_hat, m = case.instance, case.j, case.unit.y_hat, case.unit.m
    gamma, beta = abs(case.gamma), instance.beta[j]
    z = gamma * y_hat + beta
    minimum = z + rng.standard_normal(m) * 10 ** rng.uniform(-1, 1)
    sign = lambda g: float(g @ y_hat / math.sqrt((g @ g) * m))
    head = torch.tensor(rng.standard_normal((2, 4))), torch.tensor(rng.standard_normal((4, 3)))
    labels = torch.tensor(rng.integers(3, size=m))

    def least(bend) -> float:
        """Least eigenvalue of the Hessian for the unit below one hidden layer and cross-entropy.

        Over the size of its terms, the squared slopes of the logits: where the softmax saturates, all terms
        cancel.
        """
        loss = lambda y: torch.nn.functional.cross_entropy(bend(y @ head[0]) @ head[1], labels)
        values = np.linalg.eigvalsh(hessian(loss, instance.y / instance.y.std(0))[:, j, :, j])
        return float(values[0] * m / ((head[0][j] ** 2).sum() * (head[1] ** 2).sum()))

    return {
        "margin.sign": sign(z - minimum),  # L = ½ ‖z - minimum‖²: -g points straight at the minimum
        "margin.sign_centre": sign(z - beta),
        "margin.convex": least(torch.relu),
        "margin.convex_tanh": least(torch.tanh),
        "margin.convex_below_batch_norm": least(lambda above: torch.relu(_normalized(above))),
    }


def _normalized(values: Tensor) -> Tensor:
    """One more batch norm, γ = 1, β = 0, ε = 10⁻⁵: (m, units)."""
    return batch_norm(values, np.ones(values.shape[1]), np.zeros(values.shape[1]), EPS)
