"""One random instance against every theorem on second derivatives: dense Hessians by autograd against the
formulas.

The same two kinds of numbers as in `lipschitz_trials`: "error.NAME" and "margin.NAME".
"""

from __future__ import annotations

import math

import numpy as np
import torch

from bnbook.studies.theorems import smoothness
from bnbook.studies.theorems.curved import Curved, draw_curved
from bnbook.studies.theorems.instances import Instance, batch_norm, differentiate, draw, hessian, restoring
from bnbook.studies.theorems.margins import error, margin
from bnbook.studies.theorems.one_unit import Unit, normalize, project


def smoothness_trial(rng: np.random.Generator, number: int) -> dict[str, float]:
    """Everything that the page on smoothness says about instance `number`."""
    instance, j = draw(rng, number), number % 2
    return {
        **_activations(instance, j),
        **_other_layers(instance, j, 10 ** rng.uniform(-4, 1)),
        **_isotropic(draw_curved(rng, 5 * number + 2)),
        **_assumptions(rng, instance, j),
        **_weights(draw_curved(rng, number, gamma=1.0), rng.uniform()),
        **_spectral(rng),
    }


def dense(instance: Instance, j: int, eps: float = 0.0, unbiased: bool = False) -> np.ndarray:
    """∂²L̂/∂y_j∂y_j by automatic differentiation, (m, m)."""
    layer = lambda y: instance.loss(batch_norm(y, instance.gamma, instance.beta, eps, unbiased))  # noqa: E731
    return hessian(layer, instance.y)[:, j, :, j]


def above(instance: Instance, j: int, eps: float = 0.0, unbiased: bool = False) -> np.ndarray:
    """∂²L/∂z_j∂z_j at the network's own z, (m, m)."""
    z = batch_norm(torch.tensor(instance.y), instance.gamma, instance.beta, eps, unbiased)
    return hessian(instance.loss, z.numpy())[:, j, :, j]


def _activations(instance: Instance, j: int) -> dict[str, float]:
    found, gamma = differentiate(instance), instance.gamma[j]
    unit, g, v = normalize(instance.y[:, j]), found.shared[:, j], found.through[:, j]
    whole, h = dense(instance, j), above(instance, j)
    size = _size(h, g, unit, gamma)
    value, reach = v @ whole @ v, size * (gamma / unit.sigma) ** 2 * (g @ g)
    first = smoothness.theorem_42(h, g, unit, gamma, v, second=False)
    own, own_h = found.own[:, j], hessian(instance.loss, instance.y)[:, j, :, j]
    literal = smoothness.theorem_42(own_h, own, unit, gamma, v, second=False)
    result = {
        "error.hessian": error(whole, smoothness.through(h, g, unit, gamma), size),
        "error.equation_42": error(whole, smoothness.equation_42(h, g, unit, gamma), size),
        "error.first": error(value, first, reach),
        "margin.first": margin(value, first, reach),
        "margin.first_literal": margin(value, literal, reach if unit.m == 2 else 0.0),
        "margin.c1": _c1(whole, h, g, v, unit, gamma, printed=False),
    }
    if instance.kind in ("linear", "aligned", "constant", "mirrored"):
        # H = 0 preserves every relative norm, so these meet the condition of Theorem C.1.
        result["margin.c1_printed"] = _c1(whole, h, g, v, unit, gamma, printed=True)
    scales = torch.tensor(instance.gamma, requires_grad=True)
    y_hat = batch_norm(torch.tensor(instance.y), np.ones(2), np.zeros(2))
    (slope,) = torch.autograd.grad(instance.loss(scales * y_hat + torch.tensor(instance.beta)), scales)
    result["error.scale_gradient"] = error(float(slope[j]), g @ unit.y_hat, math.sqrt((g @ g) * unit.m))
    same = restoring(instance)
    alike, scale = differentiate(same), same.gamma[j]
    own, own_h, v = alike.own[:, j], hessian(same.loss, same.y)[:, j, :, j], alike.through[:, j]
    value = v @ dense(same, j) @ v
    restored = smoothness.theorem_42(own_h, own, unit, scale, v, second=False)
    result["margin.first_restored"] = margin(value, restored, _size(own_h, own, unit, scale) * (own @ own))
    return result


def _isotropic(curved: Curved) -> dict[str, float]:
    """H = h I: it preserves relative norms exactly, for every pair of vectors."""
    instance = curved.instance
    found, gamma = differentiate(instance), instance.gamma[0]
    unit, g, v = normalize(instance.y[:, 0]), curved.slope[:, 0], found.through[:, 0]
    h, whole = curved.curvature[:, 0, :, 0], dense(instance, 0)
    value = v @ whole @ v
    reach = _size(h, g, unit, gamma) * (gamma / unit.sigma) ** 2 * (g @ g)
    scale = reach if unit.m == 2 else 0.0
    bound = smoothness.theorem_42(h, g, unit, gamma, v, second=True)
    shrunk = (v @ v) / (g @ g) * (g @ h @ g)  # ‖v‖²/‖g‖² gᵀHg stands for gᵀHg
    exact = gamma**2 / unit.sigma**2 * (shrunk - (g @ unit.y_hat) * (v @ v) / (unit.m * gamma))
    result = {
        "margin.second": margin(value, bound, scale),
        "error.second": error(value, exact, reach),
        "margin.c1.isotropic": _c1(whole, h, g, v, unit, gamma, printed=False),
        "margin.c1_printed.isotropic": _c1(whole, h, g, v, unit, gamma, printed=True),
    }
    if abs(gamma) <= unit.sigma and h[0, 0] >= 0:
        result["margin.second_fair"] = result["margin.second"]
        result["margin.c1_printed_fair"] = result["margin.c1_printed.isotropic"]
    return result


def _assumptions(rng: np.random.Generator, instance: Instance, j: int) -> dict[str, float]:
    """The two conditions that the text after Theorem 4.2 calls mild."""
    unit, m = normalize(instance.y[:, j]), len(instance.x)
    gamma, beta = abs(instance.gamma[j]), instance.beta[j]
    z = gamma * unit.y_hat + beta
    minimum = z + rng.standard_normal(m) * 10 ** rng.uniform(-1, 1)
    sign = lambda g: float(g @ unit.y_hat / math.sqrt((g @ g) * m))  # noqa: E731
    head = torch.tensor(rng.standard_normal((2, 4))), torch.tensor(rng.standard_normal((4, 3)))
    labels = torch.tensor(rng.integers(3, size=m))

    def least(bend) -> float:
        """Least eigenvalue of the Hessian for the unit below one hidden layer and cross-entropy.

        Over the size of its terms, the squared slopes of the logits: where the softmax saturates, all terms
        cancel.
        """
        loss = lambda y: torch.nn.functional.cross_entropy(bend(y @ head[0]) @ head[1], labels)  # noqa: E731
        values = np.linalg.eigvalsh(hessian(loss, instance.y / instance.y.std(0))[:, j, :, j])
        return float(values[0] * m / ((head[0][j] ** 2).sum() * (head[1] ** 2).sum()))

    return {
        "margin.sign": sign(z - minimum),  # L = ½ ‖z - minimum‖²: -g points straight at the minimum
        "margin.sign_centre": sign(z - beta),
        "margin.convex": least(torch.relu),
        "margin.convex_tanh": least(torch.tanh),
    }


def _weights(curved: Curved, share: float) -> dict[str, float]:
    """Version 1: second derivatives for weights, inputs of mean zero, γ = 1."""
    x, w = torch.tensor(curved.instance.x), curved.instance.w
    normalized = lambda w_: batch_norm(x @ w_, np.ones(2), np.zeros(2))  # noqa: E731
    slope = torch.tensor(curved.slope)
    whole = hessian(lambda w_: curved.instance.loss(normalized(w_)), w)
    fixed = hessian(lambda w_: (slope * normalized(w_)).sum(), w)  # Σ g ∂²ŷ, the second term of equation 35
    x0, x1 = curved.instance.x[:, 0], curved.instance.x[:, 1]
    unit, other = (normalize(curved.instance.y[:, j]) for j in (0, 1))
    g, h, across = curved.slope[:, 0], curved.curvature[:, 0, :, 0], curved.curvature[:, 0, :, 1]
    m, result = unit.m, {}

    inner = float(project(x0, unit) @ h @ project(x1, unit))
    crossed = float(project(x0, unit) @ across @ project(x1, other))
    sizes = math.sqrt((x0 @ x0) * (x1 @ x1))
    scale = sizes * (math.sqrt((h * h).sum()) + math.sqrt(g @ g)) / unit.sigma**2
    value, second = whole[0, 0, 1, 0], fixed[0, 0, 1, 0]
    pair = [smoothness.equation_58(inner, g, *inputs, unit, printed=True) for inputs in ((x0, x1), (x1, x0))]
    result |= {
        "error.equation_44": error(
            whole[0, 0, 1, 1],
            crossed / unit.sigma / other.sigma,
            sizes * math.sqrt((across**2).sum()) / unit.sigma / other.sigma,
        ),
        "error.equation_55": error(second, smoothness.equation_55(g, x0, x1, unit), scale),
        "error.second_term": error(second, smoothness.second_term(g, x0, x1, unit), scale),
        "error.equation_56": error(value - second, smoothness.equation_56(inner, g, x0, x1, unit), scale),
        "error.first_term": error(value - second, inner / unit.sigma**2, scale),
        "error.equation_58": error(value, pair[0], scale),
        "error.equation_58_asymmetry": error(pair[0], pair[1], scale),
        "error.equation_58_corrected": error(
            value, smoothness.equation_58(inner, g, x0, x1, unit, printed=False), scale
        ),
        "error.symmetry": error(whole[0, 0, 1, 0], whole[1, 0, 0, 0], scale),
        "margin.equation_59": margin(abs(value), smoothness.equation_59(inner, g, x0, x1, unit)),
        "margin.equation_61": margin(abs(value), smoothness.equation_61(inner, g, x0, x1, unit, 6 * m)),
        "margin.equation_61_best": margin(
            abs(value), smoothness.equation_61(inner, g, x0, x1, unit, smoothness.TRILINEAR * m**0.5)
        ),
    }
    right = smoothness.equation_58(inner, g, x0, x1, unit, printed=False)
    result |= {"plot.dense": value / scale, "plot.printed": pair[0] / scale, "plot.corrected": right / scale}
    if curved.family == "reaching":
        reached = smoothness.equation_61(0.0, g, x0, x1, unit, smoothness.TRILINEAR * m**0.5)
        result["error.equation_61_reached"] = error(abs(second), reached)
    cases = (
        ("cross", whole[0, 0, 1, 1], x0, x1, across, unit.sigma * other.sigma, 0.0),
        ("same", whole[0, 0, 1, 0], x0, x1, h, unit.sigma**2, 6.0),
        ("diagonal", whole[0, 0, 0, 0], x0, x0, h, unit.sigma**2, 3.0),
    )
    for name, found, a, b, block, spread, factor in cases:
        result |= _theorem_c6(name, curved.family, abs(float(found)) * spread, a, b, block, g, factor, share)
    inner = float(project(x0, unit) @ h @ project(x0, unit))
    result["margin.equation_61_diagonal"] = margin(
        abs(whole[0, 0, 0, 0]), smoothness.equation_61(inner, g, x0, x0, unit, 3 * m)
    )
    return result


def _theorem_c6(
    name: str,
    family: str,
    scaled: float,
    x: np.ndarray,
    x2: np.ndarray,
    h: np.ndarray,
    g: np.ndarray,
    factor: float,
    share: float,
) -> dict[str, float]:
    """Theorems C.6 and 3.4 for one case; `scaled` is σ_j σ_l |∂²L̂|, which does not depend on the spread.

    The spread is set to C.6's smallest one, so that its condition holds just so; ε is `share` of its largest
    value.
    """
    d, d2 = smoothness.column_share(h, x), smoothness.column_share(h.T, x2)
    cosine, plain = smoothness.matrix_cosine(h, x, x2), abs(float(x @ h @ x2))
    norm, size = math.sqrt((h * h).sum()), math.sqrt(g @ g)
    sizes = math.sqrt((x @ x) * (x2 @ x2)) * norm
    root = math.sqrt(d * d2)
    spread = smoothness.threshold_c6(d, d2, factor * size, share * root) * (1 + 1e-9)
    ratio = size / (math.sqrt(len(g)) * norm) if factor else 0.0
    result = {
        f"error.plain.{name}": error(plain, root * sizes),
        f"margin.plain.{name}": margin(plain, math.sqrt(min(d, d2)) * sizes),
        f"margin.c6.{name}": margin(scaled / spread, (1 - share) * plain),
        f"margin.th34.{name}": margin(
            scaled, ((1 + math.sqrt(d)) * (1 + math.sqrt(d2)) + factor * size) * plain
        ),
    }
    if family in ("rank-one", "isotropic"):
        result[f"margin.c6.{name}.{family.replace('-', '_')}"] = result[f"margin.c6.{name}"]
    if cosine > 1e-9:  # else the plain network's derivative is zero and no spread is large enough
        enough = smoothness.threshold_c6_corrected(cosine, ratio, share * cosine)
        result[f"margin.c6_corrected.{name}"] = margin(
            scaled / enough, (1 - share) * plain, sizes / enough * 1e-6
        )
        result[f"margin.th34_corrected.{name}"] = margin(
            scaled, ((1 + 1 / cosine) / 2 + smoothness.TRILINEAR * ratio / cosine) * plain
        )
    return result


def _spectral(rng: np.random.Generator) -> dict[str, float]:
    """Two symmetric matrices, |A| ≤ |B| entry by entry."""
    b = rng.standard_normal((6, 6))
    b = b + b.T
    u = rng.uniform(size=(6, 6))
    a = np.minimum(u, u.T) ** 0.1 * (np.abs(b) if rng.uniform() < 0.5 else b)
    return {
        "margin.spectral": margin(np.linalg.norm(a, 2), np.linalg.norm(b, 2)),
        "margin.frobenius": margin(np.linalg.norm(a), np.linalg.norm(b)),
    }


def _other_layers(instance: Instance, j: int, share: float) -> dict[str, float]:
    """The first part of Theorem 4.2 with eps > 0 and with the unbiased variance, every 1/m as printed."""
    result, y, gamma = {}, instance.y[:, j], instance.gamma[j]
    for name, eps, unbiased in (("eps", share * float(y.var()), False), ("unbiased", 0.0, True)):
        found, h = differentiate(instance, eps, unbiased), above(instance, j, eps, unbiased)
        unit, g, v = normalize(y, eps, unbiased), found.shared[:, j], found.through[:, j]
        whole, size = dense(instance, j, eps, unbiased), _size(h, g, unit, gamma)
        value, bound = v @ whole @ v, smoothness.theorem_42(h, g, unit, gamma, v, second=False)
        reach = size * (gamma / unit.sigma) ** 2 * (g @ g)
        result |= {
            f"error.hessian.{name}": error(whole, smoothness.through(h, g, unit, gamma), size),
            f"margin.first.{name}": margin(value, bound, reach if unit.m == 2 else 0.0),
        }
    return result


def _c1(
    whole: np.ndarray, h: np.ndarray, g: np.ndarray, v: np.ndarray, unit: Unit, gamma: float, *, printed: bool
) -> float:
    value = smoothness.ball_maximum((whole + whole.T) / 2, v)
    bound = smoothness.theorem_c1(h, g, unit, gamma, v, printed=printed)
    small = 1e-6 if unit.m == 2 else 0.0  # for m = 2 the gradient is zero up to rounding
    return margin(value, bound, small * _size(h, g, unit, gamma) * (gamma / unit.sigma) ** 2 * (g @ g))


def _size(h: np.ndarray, g: np.ndarray, unit: Unit, gamma: float) -> float:
    """The size of the terms of a Hessian entry."""
    curved = (gamma / unit.sigma) ** 2 * math.sqrt((h * h).sum())
    return curved + abs(gamma) / unit.sigma**2 * math.sqrt(g @ g)
