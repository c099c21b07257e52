"""One random instance against every Lipschitz theorem: automatic differentiation on the left, the formulas on
the right.

A trial returns errors of identities ("error.NAME", 0 where the formula is right) and margins of bounds
("margin.NAME", negative where the bound is violated); a margin whose condition the instance does not meet is
left out.
"""

from __future__ import annotations

import math

import numpy as np
import torch

from bnbook.studies.theorems import lipschitz
from bnbook.studies.theorems.instances import (
    Instance,
    batch_norm,
    differentiate,
    draw,
    restoring,
    standardized,
)
from bnbook.studies.theorems.margins import error, margin
from bnbook.studies.theorems.one_unit import Unit, gradient, jacobian, normalize

#: How the letter c of Theorem 3.2 can be read, and α of Theorem 3.1.
READINGS_C = {
    "pearson": lambda x, g: abs(lipschitz.pearson(x, g)),
    "cosine": lambda x, g: abs(lipschitz.cosine(x, g)),
    "pearson_squared": lambda x, g: lipschitz.pearson(x, g) ** 2,
    "cosine_squared": lambda x, g: lipschitz.cosine(x, g) ** 2,
}
READINGS_ALPHA = {
    "pearson": lambda x, y, unit: lipschitz.pearson(x, y),
    "raw": lambda x, y, unit: x @ y,
    "normalized": lambda x, y, unit: x @ unit.y_hat,
}


def lipschitz_trial(rng: np.random.Generator, number: int) -> dict[str, float]:
    """Everything that this page says about instance `number`."""
    instance, centred = draw(rng, number), draw(rng, number, centred=True)
    j = number % 2
    return {
        **_facts(instance, j),
        **_theorem_41(instance, j),
        **_theorem_44(instance, j, 10 ** rng.uniform(-1, 1)),
        **_version_1(standardized(instance), j, "uncentred", rng),
        **_version_1(standardized(centred), j, "centred", rng),
        **_other_layers(instance, j, 10 ** rng.uniform(-4, 1)),
    }


def _facts(instance: Instance, j: int) -> dict[str, float]:
    found, y, gamma = differentiate(instance), instance.y[:, j], instance.gamma[j]
    unit, g = normalize(y), found.shared[:, j]
    dense = _dense_jacobian(y)
    ones = standardized(instance)
    above = differentiate(ones)
    value = float(ones.loss(batch_norm(torch.tensor(ones.y), ones.gamma, ones.beta)))
    g1 = above.shared[:, j]
    printed = lipschitz.fact_c1_v1(g1, value, unit)
    return {
        "error.fact_c1": error(found.through[:, j], gradient(g, unit, gamma), _size(g, unit, gamma)),
        "error.fact_c2": error(dense, jacobian(unit), 1 / unit.sigma),
        "error.fact_c2_gamma": error(
            _dense_jacobian(y, gamma), gamma * jacobian(unit), abs(gamma) / unit.sigma
        ),
        "error.fact_c1_v1": error(above.through[:, j], printed, _size(g1, unit, 1)),
        "error.fact_c1_v1_corrected": error(above.through[:, j], gradient(g1, unit, 1), _size(g1, unit, 1)),
    }


def _theorem_41(instance: Instance, j: int) -> dict[str, float]:
    found, gamma = differentiate(instance), instance.gamma[j]
    unit, g, own = normalize(instance.y[:, j]), found.shared[:, j], found.own[:, j]
    value, size = (
        _square(found.through[:, j]),
        (gamma / unit.sigma) ** 2 * (g @ g),
    )  # for m = 2 all cancels: value 0
    same = restoring(instance)
    alike, scale = differentiate(same), same.gamma[j]
    result = {
        "margin.th41": margin(value, lipschitz.theorem_41(g, unit, gamma), size),
        "error.th41": error(value, lipschitz.theorem_41(g, unit, gamma), size),
        "margin.th41_appendix": margin(value, lipschitz.theorem_41(g, unit, gamma, unit.m**-0.5), size),
        "margin.th41_literal": margin(
            value, lipschitz.theorem_41(own, unit, gamma), size if unit.m == 2 else 0.0
        ),
        "margin.th41_restored": margin(
            _square(alike.through[:, j]),
            lipschitz.theorem_41(alike.own[:, j], unit, scale),
            _square(alike.own[:, j]),
        ),
        "margin.better": margin(value**0.5, math.sqrt(g @ g)),
    }
    if instance.kind in ("linear", "aligned", "constant", "mirrored"):
        result["margin.th41_linear"] = margin(value, lipschitz.theorem_41(own, unit, gamma), size)
    if abs(gamma) <= unit.sigma:
        result["margin.better_small_gamma"] = result["margin.better"]
    return result


def _theorem_44(instance: Instance, j: int, radius: float) -> dict[str, float]:
    """The maximum over X, first with the activations held (as the proof does), then with X deciding them."""
    found, gamma = differentiate(instance), instance.gamma[j]
    unit, g, through = normalize(instance.y[:, j]), found.shared[:, j], found.through[:, j]
    size = (radius * gamma / unit.sigma) ** 2 * (g @ g)
    # ‖X‖ ≤ λ lets Xᵀv be as long as λ‖v‖, and X = λ v uᵀ / ‖v‖ with a unit vector u reaches it.
    length = math.sqrt(through @ through)
    best = radius * np.outer(through / length, (0.6, 0.8)) if length > 0 else np.zeros((unit.m, 2))
    value = _square(best.T @ through)
    corrected = lipschitz.theorem_44(g, unit, gamma, radius, printed=False)
    result = {
        "margin.th44_printed": margin(
            value, lipschitz.theorem_44(g, unit, gamma, radius, printed=True), size if unit.m == 2 else 0.0
        ),
        "margin.th44": margin(value, corrected, size),
        "error.th44": error(value, corrected, size),
    }
    if unit.m > 2:
        # The same slope g in both networks (a linear loss), the other X: only a spread a thousand times
        # smaller.
        w = instance.w[:, j]
        spread = 1e-3 * min(unit.sigma, radius * math.sqrt((w @ w) / unit.m))
        x = lipschitz.squeezed_input(w, g, np.arange(unit.m) ** 2.0, spread, radius)
        slope = torch.tensor(g)
        squeezed = Instance(
            x, w[:, None], np.array([gamma]), np.zeros(1), lambda z: (slope * z[:, 0]).sum(), "linear"
        )
        result["margin.th44_maximum"] = margin(_square(differentiate(squeezed).weights), corrected)
    return result


def _version_1(instance: Instance, j: int, inputs: str, rng: np.random.Generator) -> dict[str, float]:
    found, x, y = differentiate(instance), instance.x[:, 0], instance.y[:, j]
    unit, g = normalize(y), found.shared[:, j]
    moved = _dense_jacobian(y) @ x  # ∂ŷ_j / ∂W_0j
    value, plain = float(found.weights[0, j]), float(x @ g)
    result = {
        f"plot.cosine.{inputs}": abs(lipschitz.cosine(x, g)),
        f"plot.gain.{inputs}": unit.sigma * abs(value / plain),
        f"error.c3_plain.{inputs}": error(x @ x, unit.m * x.var()),
        f"error.c2_general.{inputs}": error(
            moved, lipschitz.fact_c2_v1(x - x.mean(), x @ unit.y_hat, unit), _largest(x, unit)
        ),
        f"error.th31_general.{inputs}": error(
            moved @ moved, lipschitz.theorem_31_uncentred(x, unit), (x @ x) / unit.sigma**2
        ),
        f"margin.th31.{inputs}": margin(
            moved @ moved, lipschitz.theorem_31(x, x @ unit.y_hat, unit), (x @ x) / unit.sigma**2
        ),
        f"error.c3.{inputs}": error(
            moved @ moved, lipschitz.theorem_31(x, x @ unit.y_hat, unit, power=0), (x @ x) / unit.sigma**2
        ),
        f"margin.sharp32.{inputs}": margin(value**2, lipschitz.sharp_32(plain, lipschitz.cosine(x, g), unit)),
        f"margin.always.{inputs}": margin(
            (value * unit.sigma / (1 + 10 ** rng.uniform(-2, 1))) ** 2, plain**2
        ),
    }
    enough = (1 + 1 / abs(lipschitz.cosine(x, g))) / 2
    result[f"margin.always_far.{inputs}"] = margin((value * unit.sigma / enough) ** 2, plain**2)
    for name, alpha in READINGS_ALPHA.items():
        a = alpha(x, y, unit)
        result[f"error.c2.{name}.{inputs}"] = error(
            moved, lipschitz.fact_c2_v1(x, a, unit), _largest(x, unit)
        )
        result[f"error.th31.{name}.{inputs}"] = error(
            moved @ moved, lipschitz.theorem_31(x, a, unit), (x @ x) / unit.sigma**2
        )
    for name, read in READINGS_C.items():
        c = read(x, g)
        result[f"margin.th32.{name}.{inputs}"] = margin(value**2, lipschitz.theorem_32(plain, c, unit))
        # Theorem C.4 where its condition holds: with any ε > 0 (up to 2 |c|), and with ε < |c|.
        share = rng.uniform(0, 1)
        for which, surplus in (("any", 2 * share * c), ("below", share * c)):
            least = lipschitz.threshold_c4(c, surplus)
            sigma = math.sqrt(least * (1 + rng.exponential())) if least > 0 else unit.sigma
            result[f"margin.c4.{name}.{which}.{inputs}"] = margin(
                (value * unit.sigma / sigma) ** 2, (1 - surplus / c) * plain**2
            )
    if instance.kind == "mirrored" and plain > 0:
        result[f"error.sharp32_reached.{inputs}"] = error(
            value**2, lipschitz.sharp_32(plain, lipschitz.cosine(x, g), unit)
        )
    return result


def _other_layers(instance: Instance, j: int, share: float) -> dict[str, float]:
    """The same with eps > 0 (a random share of the variance) and with the unbiased variance."""
    result = {}
    y, gamma = instance.y[:, j], instance.gamma[j]
    for name, eps, unbiased in (("eps", share * float(y.var()), False), ("unbiased", 0.0, True)):
        found = differentiate(instance, eps, unbiased)
        g, through = found.shared[:, j], found.through[:, j]
        unit = normalize(y, eps, unbiased)
        as_printed = Unit(unit.y_hat, unit.sigma, unit.m)  # every 1/m as printed
        value, size = _square(through), (gamma / unit.sigma) ** 2 * (g @ g)
        x, weight = instance.x[:, 0], float(found.weights[0, j]) / gamma
        result |= {
            f"error.fact_c1.{name}": error(through, gradient(g, as_printed, gamma), _size(g, unit, gamma)),
            f"error.fact_c1_count.{name}": error(through, gradient(g, unit, gamma), _size(g, unit, gamma)),
            f"margin.th41.{name}": margin(value, lipschitz.theorem_41(g, unit, gamma), size),
            f"error.th41.{name}": error(value, lipschitz.theorem_41(g, unit, gamma), size),
            f"margin.sharp32.{name}": margin(
                weight**2, lipschitz.sharp_32(float(x @ g), lipschitz.cosine(x, g), unit)
            ),
        }
    return result


def _dense_jacobian(y: np.ndarray, gamma: float = 1.0) -> np.ndarray:
    scale, zero = np.array([gamma]), np.zeros(1)
    layer = lambda v: batch_norm(v[:, None], scale, zero)[:, 0]  # noqa: E731
    return torch.func.jacrev(layer)(torch.tensor(y)).numpy()


def _square(v: np.ndarray) -> float:
    return float((v * v).sum())


def _size(g: np.ndarray, unit: Unit, gamma: float) -> float:
    return abs(gamma) / unit.sigma * float(np.abs(g).max())


def _largest(x: np.ndarray, unit: Unit) -> float:
    return float(np.abs(x).max()) / unit.sigma
