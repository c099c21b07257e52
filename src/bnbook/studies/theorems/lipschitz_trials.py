"""One random instance against every Lipschitz theorem: automatic differentiation against the formulas.

A trial returns errors of identities ("error.NAME", 0 where the formula is right) and margins of bounds
("margin.NAME", negative where the bound is violated); a margin whose condition the instance does not meet is
left out.
"""

from __future__ import annotations

import math

import numpy as np
import torch

from bnbook.studies.theorems import lipschitz
from bnbook.studies.theorems.cases import Case, look
from bnbook.studies.theorems.instances import (
    LINEAR,
    Instance,
    batch_norm,
    draw,
    linear_loss,
    restoring,
    standardized,
)
from bnbook.studies.theorems.margins import error, margin
from bnbook.studies.theorems.one_unit import Unit, gradient, jacobian
from bnbook.studies.theorems.proof_trials import proof_trial

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
    instance, centred, j = draw(rng, number), draw(rng, number, centred=True), number % 2
    case, simple = look(instance, j), look(standardized(instance), j)
    of_mean_zero = look(standardized(centred), j)
    return {
        **_facts(case, simple),
        **_theorem_41(case),
        **_theorem_44(case, 10 ** rng.uniform(-1, 1)),
        **_version_1(simple, "uncentred", rng),
        **_version_1(of_mean_zero, "centred", rng),
        **_other_layers(instance, j, 10 ** rng.uniform(-4, 1)),
        **proof_trial(of_mean_zero),
    }


def _facts(case: Case, simple: Case) -> dict[str, float]:
    """Facts C.1 and C.2; version 1's for the layer with γ = 1, β = 0."""
    unit, gamma, size = case.unit, case.gamma, _size(simple)
    layer = simple.instance
    value = float(layer.loss(batch_norm(torch.tensor(layer.y), layer.gamma, layer.beta)))
    printed = lipschitz.fact_c1_v1(simple.g, value, unit)
    scaled = _dense_jacobian(case.y, gamma)
    return {
        "error.fact_c1": error(case.v, gradient(case.g, unit, gamma), _size(case)),
        "error.fact_c2": error(_dense_jacobian(case.y), jacobian(unit), 1 / unit.sigma),
        "error.fact_c2_gamma": error(scaled, gamma * jacobian(unit), abs(gamma) / unit.sigma),
        "error.fact_c1_v1": error(simple.v, printed, size),
        "error.fact_c1_v1_corrected": error(simple.v, gradient(simple.g, unit, 1), size),
    }


def _theorem_41(case: Case) -> dict[str, float]:
    unit, gamma, size, value = case.unit, case.gamma, case.reach, _square(case.v)
    right = lipschitz.theorem_41(case.g, unit, gamma)
    literal = lipschitz.theorem_41(case.own, unit, gamma)  # with each network's own gradient from above
    same = look(restoring(case.instance), case.j)  # z = y: both networks have the same
    restored = lipschitz.theorem_41(same.own, unit, same.gamma)
    result = {
        "margin.th41": margin(value, right, size),
        "error.th41": error(value, right, size),
        "margin.th41_appendix": margin(value, lipschitz.theorem_41(case.g, unit, gamma, unit.m**-0.5), size),
        "margin.th41_literal": margin(value, literal, size if unit.m == 2 else 0.0),
        "margin.th41_restored": margin(_square(same.v), restored, _square(same.own)),
        "margin.better": margin(value**0.5, math.sqrt(case.g @ case.g)),
    }
    if case.instance.kind in LINEAR:
        result["margin.th41_linear"] = margin(value, literal, size)
    if abs(gamma) <= unit.sigma:
        result["margin.better_small_gamma"] = result["margin.better"]
    return result


def _theorem_44(case: Case, radius: float) -> dict[str, float]:
    """The maximum over X, first with the activations held (as the proof does), then with X deciding them."""
    unit, g, v, gamma = case.unit, case.g, case.v, case.gamma
    size = (radius * gamma / unit.sigma) ** 2 * (g @ g)
    # ‖X‖ ≤ λ lets Xᵀv be as long as λ‖v‖, and X = λ v uᵀ / ‖v‖ with a unit vector u reaches it.
    length = math.sqrt(v @ v)
    best = radius * np.outer(v / length, (0.6, 0.8)) if length > 0 else np.zeros((unit.m, 2))
    value = _square(best.T @ v)
    printed, corrected = (lipschitz.theorem_44(g, unit, gamma, radius, printed=p) for p in (True, False))
    result = {
        "margin.th44_printed": margin(value, printed, size if unit.m == 2 else 0.0),
        "margin.th44": margin(value, corrected, size),
        "error.th44": error(value, corrected, size),
    }
    if unit.m > 2:
        # The same slope g in both networks (a linear loss), the other X: only a spread a thousand times
        # smaller.
        w = case.instance.w[:, case.j]
        spread = 1e-3 * min(unit.sigma, radius * math.sqrt((w @ w) / unit.m))
        x = lipschitz.squeezed_input(w, g, np.arange(unit.m) ** 2.0, spread, radius)
        loss = linear_loss(g[:, None])
        squeezed = Instance(x, w[:, None], np.array([gamma]), np.zeros(1), loss, "linear")
        result["margin.th44_maximum"] = margin(_square(look(squeezed, 0).weights), corrected)
    return result


def _version_1(case: Case, inputs: str, rng: np.random.Generator) -> dict[str, float]:
    """Theorems 3.1, C.3, 3.2, C.4 and the text between, for one weight W_0j."""
    unit, x, y, g = case.unit, case.instance.x[:, 0], case.y, case.g
    moved = _dense_jacobian(y) @ x  # ∂ŷ_j / ∂W_0j
    length, size = moved @ moved, (x @ x) / unit.sigma**2
    value, plain, cosine = float(case.weights[0]), float(x @ g), lipschitz.cosine(x, g)
    alpha, largest = x @ unit.y_hat, float(np.abs(x).max()) / unit.sigma
    sharp, enough = lipschitz.sharp_32(plain, cosine, unit), (1 + 1 / abs(cosine)) / 2
    result = {
        "plot.cosine": abs(cosine),
        "plot.gain": unit.sigma * abs(value / plain),
        "error.c3_plain": error(x @ x, unit.m * x.var()),
        "error.c2_general": error(moved, lipschitz.fact_c2_v1(x - x.mean(), alpha, unit), largest),
        "error.th31_general": error(length, lipschitz.theorem_31_uncentred(x, unit), size),
        "margin.th31": margin(length, lipschitz.theorem_31(x, alpha, unit), size),
        "error.c3": error(length, lipschitz.theorem_31(x, alpha, unit, power=0), size),
        "margin.sharp32": margin(value**2, sharp),
        "margin.always": margin((value * unit.sigma / (1 + 10 ** rng.uniform(-2, 1))) ** 2, plain**2),
        "margin.always_far": margin((value * unit.sigma / enough) ** 2, plain**2),
    }
    for name, read_alpha in READINGS_ALPHA.items():
        a = read_alpha(x, y, unit)
        result[f"error.c2.{name}"] = error(moved, lipschitz.fact_c2_v1(x, a, unit), largest)
        result[f"error.th31.{name}"] = error(length, lipschitz.theorem_31(x, a, unit), size)
    for name, read in READINGS_C.items():
        c = read(x, g)
        result[f"margin.th32.{name}"] = margin(value**2, lipschitz.theorem_32(plain, c, unit))
        if case.own @ case.own > 0:  # else c is not defined
            literal = lipschitz.theorem_32(float(x @ case.own), read(x, case.own), unit)
            result[f"margin.th32_literal.{name}"] = margin(value**2, literal)
        # Theorem C.4 where its condition holds: with any ε > 0 (up to 2 |c|), and with ε < |c|.
        share = rng.uniform(0, 1)
        for which, surplus in (("any", 2 * share * c), ("below", share * c)):
            least = lipschitz.threshold_c4(c, surplus)
            sigma = math.sqrt(least * (1 + rng.exponential())) if least > 0 else unit.sigma
            allowed = (1 - surplus / c) * plain**2
            result[f"margin.c4.{name}.{which}"] = margin((value * unit.sigma / sigma) ** 2, allowed)
    if case.instance.kind == "mirrored" and plain > 0:
        result["error.sharp32_reached"] = error(value**2, sharp)
    return {f"{name}.{inputs}": number for name, number in result.items()}


def _other_layers(instance: Instance, j: int, share: float) -> dict[str, float]:
    """The same with eps > 0 (a random share of the variance) and with the unbiased variance."""
    result, x = {}, instance.x[:, 0]
    layers = {"eps": (share * float(instance.y[:, j].var()), False), "unbiased": (0.0, True)}
    for name, (eps, unbiased) in layers.items():
        case = look(instance, j, eps, unbiased)
        unit, g, gamma, value = case.unit, case.g, case.gamma, _square(case.v)
        as_printed = Unit(unit.y_hat, unit.sigma, unit.m)  # every 1/m as printed
        right, weight = lipschitz.theorem_41(g, unit, gamma), float(case.weights[0]) / gamma
        sharp = lipschitz.sharp_32(float(x @ g), lipschitz.cosine(x, g), unit)
        result |= {
            f"error.fact_c1.{name}": error(case.v, gradient(g, as_printed, gamma), _size(case)),
            f"error.fact_c1_count.{name}": error(case.v, gradient(g, unit, gamma), _size(case)),
            f"margin.th41.{name}": margin(value, right, case.reach),
            f"error.th41.{name}": error(value, right, case.reach),
            f"margin.sharp32.{name}": margin(weight**2, sharp),
        }
    return result


def _dense_jacobian(y: np.ndarray, gamma: float = 1.0) -> np.ndarray:
    scale, zero = np.array([gamma]), np.zeros(1)
    layer = lambda v: batch_norm(v[:, None], scale, zero)[:, 0]
    return torch.func.jacrev(layer)(torch.tensor(y)).numpy()


def _square(v: np.ndarray) -> float:
    return float((v * v).sum())


def _size(case: Case) -> float:
    """The largest term of a gradient for the outputs."""
    return abs(case.gamma) / case.unit.sigma * float(np.abs(case.g).max())
