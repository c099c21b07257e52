"""Does it shrink gradients? The Lipschitz theorems: both sides, on random instances and in fractions."""

from __future__ import annotations

import math
from fractions import Fraction

import matplotlib.pyplot as plt
import numpy as np
import torch

from bnbook.chapters import theorems
from bnbook.chapters.theorems import (
    LINEAR,
    Case,
    Counterexample,
    Instance,
    Number,
    Unit,
    batch_norm,
    draw,
    error,
    exact,
    gradient,
    jacobian,
    linear_loss,
    look,
    margin,
    normalize,
    project,
    restoring,
    square_root,
    standardized,
)
from bnbook.figures import COLORS

# ---- Both sides of the Lipschitz theorems, as printed and corrected ---------------------------------------
# γ scale, unit: σ and ŷ (m,), g (m,) the gradient from above, x (m,) one input; c a correlation of g and x.
# Sources: Santurkar et al. 2018, NeurIPS Facts C.1, C.2, Theorems 4.1, 4.4; arXiv v1 Facts C.1, C.2, Theorems
# 3.1, 3.2, C.3, C.4, equations 12 to 17.


def fact_c1_v1(df: np.ndarray, f: Number, unit: Unit) -> np.ndarray:
    """v1 Fact C.1 as printed: (m ∂f/∂x - Σ ∂f/∂x - f) / (m σ), x the normalized value; wrong."""
    return (unit.m * df - df.sum() - f) / (unit.m * unit.sigma)


def fact_c2_v1(x: np.ndarray, alpha: Number, unit: Unit) -> np.ndarray:
    """v1 Fact C.2, equation 2: ∂ŷ/∂W = (x - α ŷ / m) / σ, (m,); right where x is centred and α = Σ x ŷ."""
    return (x - alpha * unit.y_hat / unit.m) / unit.sigma


def theorem_41(g: np.ndarray, unit: Unit, gamma: Number, last: Number | None = None) -> Number:
    """Right side of Theorem 4.1: (γ²/σ²) (‖g‖² - <1, g>² / m - last <g, ŷ>²).

    last: 1/m in the main text (the default), 1/√m in the appendix.
    """
    last = 1 / unit.m if last is None else last
    return gamma**2 / unit.sigma**2 * (g @ g - g.sum() ** 2 / unit.m - last * (g @ unit.y_hat) ** 2)


def theorem_44(g: np.ndarray, unit: Unit, gamma: Number, radius: Number, *, printed: bool) -> Number:
    """Right side of Theorem 4.4, the largest ‖∂L̂/∂W‖² over ‖X‖ ≤ λ; G = λ² ‖g‖², μ is the mean of g.

    printed: (γ²/σ²) (G² - m μ² - λ² <g, ŷ>²); corrected: (γ²/σ²) (G - λ² m μ² - λ² <g, ŷ>² / m), an equality.
    """
    m, squared = unit.m, radius**2
    largest, mean, along = squared * (g @ g), g.sum() / m, (g @ unit.y_hat) ** 2
    if printed:
        inside = largest**2 - m * mean**2 - squared * along
    else:
        inside = largest - squared * m * mean**2 - squared * along / m
    return gamma**2 / unit.sigma**2 * inside


def theorem_31(x: np.ndarray, alpha: Number, unit: Unit, power: int = 1) -> Number:
    """Right side of v1 Theorem 3.1 (power 1) and C.3 (power 0): (Σ x² - α² / m^power) / σ²."""
    return (x @ x - alpha**2 / unit.m**power) / unit.sigma**2


def theorem_31_uncentred(x: np.ndarray, unit: Unit) -> Number:
    """What holds without centred inputs: (Σ x² - m mean(x)² - α² / m) / σ² with α = Σ x ŷ."""
    return (x @ x - x.sum() ** 2 / unit.m - (x @ unit.y_hat) ** 2 / unit.m) / unit.sigma**2


def theorem_32(plain: Number, c: Number, unit: Unit) -> Number:
    """Right side of v1 Theorem 3.2: (|c|^(-1/2) + 1)² / σ² times the plain network's squared derivative."""
    return (abs(c) ** -0.5 + 1) ** 2 / unit.sigma**2 * plain**2


def sharp_32(plain: Number, cosine: Number, unit: Unit) -> Number:
    """The best bound of this form: (1/|cos| + 1)² / (4 σ²) times the same; equality where g mirrors x."""
    return (1 / abs(cosine) + 1) ** 2 / (4 * unit.sigma**2) * plain**2


def threshold_c4(c: Number, surplus: Number) -> Number:
    """v1 Theorem C.4's smallest variance: (1 + √|c|)² / (|c| - ε); negative, so always met, for ε > |c|."""
    return (1 + math.sqrt(abs(c))) ** 2 / (abs(c) - surplus)


def squares_15(x: np.ndarray, g: np.ndarray, unit: Unit) -> tuple[Number, Number, Number]:
    """The three terms of v1 equation 15: <x, g>², 2 |α <x, g> <g, ŷ>| / m, (α <g, ŷ> / m)², α = Σ x ŷ.

    Their signed sum, equations 12 to 14, is σ² times the squared derivative for the weight.
    """
    plain, along = x @ g, x @ unit.y_hat * (g @ unit.y_hat) / unit.m
    return plain**2, 2 * abs(plain * along), along**2


def middle_16(x: np.ndarray, g: np.ndarray, unit: Unit) -> Number:
    """Middle term of v1 equation 16 as printed: 2 (α / m) S m σ_x, S = ‖g‖²; right with |α|."""
    return 2 * (x @ unit.y_hat) * (g @ g) * square_root(x @ x / unit.m)


def middle_17(x: np.ndarray, g: np.ndarray, unit: Unit, *, printed: bool) -> float:
    """Middle term of v1 equation 17: printed 2 √(c |α|) S σ_x, right 2 √c |α| S σ_x, c the squared cosine."""
    alpha, c = abs(float(x @ unit.y_hat)), cosine_of(x, g) ** 2
    factor = math.sqrt(c * alpha) if printed else math.sqrt(c) * alpha
    return 2 * factor * float(g @ g) * math.sqrt(x @ x / unit.m)


def cosine_of(a: np.ndarray, b: np.ndarray) -> float:
    """<a, b> / (‖a‖ ‖b‖)."""
    return float(a @ b / math.sqrt((a @ a) * (b @ b)))


def pearson(a: np.ndarray, b: np.ndarray) -> float:
    """The correlation of statistics: the cosine of the centred vectors."""
    return cosine_of(a - a.mean(), b - b.mean())


def squeezed_input(
    w: np.ndarray, g: np.ndarray, direction: np.ndarray, spread: float, radius: float
) -> np.ndarray:
    """X (m, I) of norm ≤ λ with which the outputs have a tiny spread and the weight gradient explodes.

    X = τ p wᵀ/‖w‖² + λ q uᵀ with y = X w = τ p, p ∝ direction (centred), u ⟂ w, q ∝ P g: then ‖∂L̂/∂w‖ grows
    as 1/τ. Needs I ≥ 2, m ≥ 3 and spread √m ≤ λ ‖w‖.
    """
    m = len(g)
    p = direction - direction.mean()
    p = p / math.sqrt(p @ p)
    unit = Unit(math.sqrt(m) * p, spread, m)
    kept = project(g, unit)
    aside = np.linalg.svd(w[None])[2][-1]  # a unit vector at right angles to w
    return spread * math.sqrt(m) * np.outer(p, w) / (w @ w) + radius * np.outer(
        kept / math.sqrt(kept @ kept), aside
    )


# ---- Counter-examples to the Lipschitz theorems, in fractions ---------------------------------------------


def lipschitz_counterexamples() -> list[Counterexample]:
    """For v1 Fact C.1, Fact C.2, Theorems 3.1, C.3, 3.2, C.4; NeurIPS Theorems 4.1 (both readings), 4.4."""
    two = normalize(exact(1, -1))
    four = normalize(exact(1, 1, -1, -1))  # σ = 1, ŷ = y
    outputs = r"$\hat y=(1,1,-1,-1)$, $\sigma=1$"
    return [
        *_facts_and_41(two, four, outputs),
        *_theorem_31(four),
        *_theorem_32(four, outputs),
        *_exact_proof_of_c4(four),
    ]


def _facts_and_41(two: Unit, four: Unit, outputs: str) -> list[Counterexample]:
    first, slope, short = exact(1, 0), exact(2, 0, -1, -1), exact("1/2", "-1/2", 0, 0)
    above = exact("1/2", 0, 0, 0)  # at z = ŷ of L = ½ (z₁ - ½)², whose gradient at y = ŷ/2 is zero
    length = lambda g, unit: _norm(theorems.gradient(g, unit, 1))
    right, wrong = theorems.gradient(first, two, 1)[1], fact_c1_v1(first, Fraction(1), two)[1]
    words = r"$m=2$, $\hat y=(1,-1)$, $\sigma=1$, $f=\hat y^{(1)}$, $b=2$"
    literal = r"$y=\frac12(1,1,-1,-1)$, $\gamma=1$, $\mathcal L=\frac12(z_1-\frac12)^2$"
    appendix = theorem_41(slope, four, 1, Fraction(1, 2))
    half, minimax = normalize(four.y_hat / 2), theorem_44(short, four, 1, 1, printed=True)
    for_44 = rf"{outputs}, $\gamma=\lambda=1$, $g=\frac12(1,-1,0,0)$"
    for_41 = rf"{outputs}, $\gamma=1$, $g=(2,0,-1,-1)$"
    return [
        Counterexample("fact_c1_v1", "v1 Fact C.1", words, right, wrong, "="),
        Counterexample("th41_appendix", "4.1, appendix", for_41, length(slope, four), appendix),
        Counterexample("th41_literal", "4.1, read literally", literal, length(above, half), Fraction(0)),
        Counterexample("th44_printed", "4.4", for_44, length(short, four), minimax),
    ]


def _theorem_31(four: Unit) -> list[Counterexample]:
    doubled, x, words = normalize(2 * four.y_hat), four.y_hat, r"$x=(1,1,-1,-1)$, $y=2x$"
    square = _norm(theorems.jacobian(doubled) @ x)
    readings = (
        ("th31", r"3.1, $\alpha=\sum x y$", 8, 1),
        ("th31_pearson", r"3.1, $\alpha=1$ (correlation)", 1, 1),
        ("c3", r"C.3, $\alpha=\sum x\hat y$", 4, 0),
    )
    return [
        Counterexample(name, line, words, square, theorem_31(x, Fraction(alpha), doubled, power), "=")
        for name, line, alpha, power in readings
    ]


def _theorem_32(four: Unit, outputs: str) -> list[Counterexample]:
    x, g = exact(5, -1, -1, -3), exact(1, -5, 3, 1)  # g mirrors x: equal off 1 and ŷ, opposite along ŷ
    plain, through = (x @ g) ** 2, (theorems.gradient(g, four, 1) @ x) ** 2
    c = plain / ((x @ x) * (g @ g))  # 1/81: the squared cosine; |cosine| = 1/9, whose root is 1/3
    root = theorems.square_root(theorems.square_root(c))
    bound, words = (1 / root + 1) ** 2 * plain, rf"{outputs}, $x=(5,-1,-1,-3)$, $g=(1,-5,3,1)$"
    condition, doubled = r"C.4, $c=\frac1{81}$, $\varepsilon=2c$", r"the same with $y=2\hat y$, so $\sigma=2$"
    return [
        Counterexample("th32", r"3.2, $c=\frac19$ (correlation)", words, through, bound),
        Counterexample("c4", condition, "the same", through, (1 - Fraction(2)) * plain),
        Counterexample("always", "text after 3.2", doubled, through / 4, plain),
    ]


def _exact_proof_of_c4(four: Unit) -> list[Counterexample]:
    """Steps of the proof: x = ± 2 ŷ, g = ± ŷ, so that every term of equation 15 is a square of 8 or 16."""
    x, g = 2 * four.y_hat, four.y_hat
    absolute, last = sum(squares_15(x, g, four)), (x @ four.y_hat) ** 2 * (g @ g) / four.m
    sign_16 = (x @ g) ** 2 + middle_16(-x, g, four) + (x @ four.y_hat * (g @ four.y_hat) / 4) ** 2
    # c = 1, α = 8: the printed root is not rational; 173 + 1/2 is above what is printed.
    above_17 = Fraction(int(2 * ((x @ g) ** 2 + last + middle_17(x, g, four, printed=True)) + 1), 2)
    words = r"$\hat y=(1,1,-1,-1)$, $x=2\hat y$, $g=\hat y$"
    turned = words.replace("x=2", "x=-2").replace("g=", "g=")
    derivative = r"(12), $b=1$"
    return [
        Counterexample("equation_12", derivative, words, g[0] ** 2, Fraction(0), "="),
        Counterexample("equation_16", "(16) from (15)", turned, absolute, sign_16),
        Counterexample("equation_17", "(17) from (16), rounded up", words, absolute, above_17),
    ]


def _norm(v: np.ndarray) -> Fraction:
    return v @ v


# ---- One random instance against the steps of version 1's proof of Theorem C.4, and against a remark on ----
# Theorem 3.1


def proof_trial(case: Case) -> dict[str, float]:
    """Equations 12, 16 and 17 for one weight W_0j, inputs of mean zero, γ = 1; and the remark on W ≈ I."""
    return {**_proof_of_c4(case), **_identity_weights(case.instance.x[:, 0])}


def _proof_of_c4(case: Case) -> dict[str, float]:
    """Left sides as printed and as they must be: equation 12 has an output's derivative for a weight's."""
    unit, x, g = case.unit, case.instance.x[:, 0], case.g
    terms, squares = squares_15(x, g, unit), float(g @ g)
    first, largest = terms[0], (x @ x) * squares  # every term is at most this
    derivative = unit.sigma**2 * float(case.weights[0]) ** 2
    # ⟨x, g⟩ and α⟨g, ŷ⟩ have the sign that equation 12 gives them; equation 15 takes the absolute value.
    middle = math.copysign(terms[1], (x @ g) * (x @ unit.y_hat) * (g @ unit.y_hat))
    written_out, absolute = first - middle + terms[2], sum(terms)
    of_output = unit.sigma**2 * g**2  # of each example; the nearest one is taken
    nearest = of_output[np.abs(of_output - written_out).argmin()]
    printed_16 = first + middle_16(x, g, unit) + terms[2]
    last = (x @ unit.y_hat) ** 2 * squares / unit.m
    printed_17, right_17 = (
        first + middle_17(x, g, unit, printed=printed) + last for printed in (True, False)
    )
    absolute_16 = first + abs(middle_16(x, g, unit)) + terms[2]
    return {
        "error.equation_12_printed": error(nearest, written_out),
        "error.equation_12": error(derivative, written_out, largest),
        "margin.equation_16": margin(absolute, printed_16),
        "margin.equation_16_absolute": margin(absolute, absolute_16),
        "margin.equation_17": margin(absolute, printed_17),
        "margin.equation_17_corrected": margin(absolute, right_17),
    }


def _identity_weights(x: np.ndarray) -> dict[str, float]:
    """For W ≈ I, α² ≈ m² σ(x)²: at y = x, α with the outputs before and after batch norm."""
    claimed = (len(x) * x.std()) ** 2
    return {
        "error.identity_weights.raw": error((x @ x) ** 2, claimed),
        "error.identity_weights.normalized": error((x @ normalize(x).y_hat) ** 2, claimed),
    }


# ---- One random instance against every Lipschitz theorem: automatic differentiation against the formulas ----
# A trial returns errors of identities ("error.NAME", 0 where the formula is right) and margins of bounds
# ("margin.NAME", negative where the bound is violated); a margin whose condition the instance does not meet is
# left out.

#: How the letter c of Theorem 3.2 can be read, and α of Theorem 3.1.
READINGS_C = {
    "pearson": lambda x, g: abs(pearson(x, g)),
    "cosine": lambda x, g: abs(cosine_of(x, g)),
    "pearson_squared": lambda x, g: pearson(x, g) ** 2,
    "cosine_squared": lambda x, g: cosine_of(x, g) ** 2,
}
READINGS_ALPHA = {
    "pearson": lambda x, y, unit: pearson(x, y),
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
    printed = fact_c1_v1(simple.g, value, unit)
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
    right = theorem_41(case.g, unit, gamma)
    literal = theorem_41(case.own, unit, gamma)  # with each network's own gradient from above
    same = look(restoring(case.instance), case.j)  # z = y: both networks have the same
    restored = theorem_41(same.own, unit, same.gamma)
    result = {
        "margin.th41": margin(value, right, size),
        "error.th41": error(value, right, size),
        "margin.th41_appendix": margin(value, theorem_41(case.g, unit, gamma, unit.m**-0.5), size),
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
    printed, corrected = (theorem_44(g, unit, gamma, radius, printed=p) for p in (True, False))
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
        x = squeezed_input(w, g, np.arange(unit.m) ** 2.0, spread, radius)
        loss = linear_loss(g[:, None])
        squeezed = Instance(x, w[:, None], np.array([gamma]), np.zeros(1), loss, "linear")
        result["margin.th44_maximum"] = margin(_square(look(squeezed, 0).weights), corrected)
    return result


def _version_1(case: Case, inputs: str, rng: np.random.Generator) -> dict[str, float]:
    """Theorems 3.1, C.3, 3.2, C.4 and the text between, for one weight W_0j."""
    unit, x, y, g = case.unit, case.instance.x[:, 0], case.y, case.g
    moved = _dense_jacobian(y) @ x  # ∂ŷ_j / ∂W_0j
    length, size = moved @ moved, (x @ x) / unit.sigma**2
    value, plain, cosine = float(case.weights[0]), float(x @ g), cosine_of(x, g)
    alpha, largest = x @ unit.y_hat, float(np.abs(x).max()) / unit.sigma
    sharp, enough = sharp_32(plain, cosine, unit), (1 + 1 / abs(cosine)) / 2
    result = {
        "plot.cosine": abs(cosine),
        "plot.gain": unit.sigma * abs(value / plain),
        "error.c3_plain": error(x @ x, unit.m * x.var()),
        "error.c2_general": error(moved, fact_c2_v1(x - x.mean(), alpha, unit), largest),
        "error.th31_general": error(length, theorem_31_uncentred(x, unit), size),
        "margin.th31": margin(length, theorem_31(x, alpha, unit), size),
        "error.c3": error(length, theorem_31(x, alpha, unit, power=0), size),
        "margin.sharp32": margin(value**2, sharp),
        "margin.always": margin((value * unit.sigma / (1 + 10 ** rng.uniform(-2, 1))) ** 2, plain**2),
        "margin.always_far": margin((value * unit.sigma / enough) ** 2, plain**2),
    }
    for name, read_alpha in READINGS_ALPHA.items():
        a = read_alpha(x, y, unit)
        result[f"error.c2.{name}"] = error(moved, fact_c2_v1(x, a, unit), largest)
        result[f"error.th31.{name}"] = error(length, theorem_31(x, a, unit), size)
    for name, read in READINGS_C.items():
        c = read(x, g)
        result[f"margin.th32.{name}"] = margin(value**2, theorem_32(plain, c, unit))
        if case.own @ case.own > 0:  # else c is not defined
            literal = theorem_32(float(x @ case.own), read(x, case.own), unit)
            result[f"margin.th32_literal.{name}"] = margin(value**2, literal)
        # Theorem C.4 where its condition holds: with any ε > 0 (up to 2 |c|), and with ε < |c|.
        share = rng.uniform(0, 1)
        for which, surplus in (("any", 2 * share * c), ("below", share * c)):
            least = threshold_c4(c, surplus)
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
        right, weight = theorem_41(g, unit, gamma), float(case.weights[0]) / gamma
        sharp = sharp_32(float(x @ g), cosine_of(x, g), unit)
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


# ---- Figures ----------------------------------------------------------------------------------------------


def weight_gains(cosine: np.ndarray, gain: np.ndarray) -> plt.Figure:
    """σ |∂L̂/∂w| / |∂L/∂w| against |cos| of input and gradient, (S, K), and readings of Theorem 3.2.

    Mirrored gradients lie on (1/|cos| ± 1) / 2: plus where batch norm deletes the smaller part of the input.
    """
    line = np.geomspace(3e-3, 1, 200)
    fig, ax = plt.subplots(figsize=(7.2, 4.0))
    dots = {"color": COLORS["theory"], "markersize": 3.5, "alpha": 0.5, "zorder": 4}
    ax.plot(np.ravel(cosine), np.ravel(gain), ".", label="random instances", **dots)
    for bound, style, label in (
        (
            1 + line**-0.5,
            {"color": COLORS["printed"], "linestyle": "--"},
            r"printed, $c$ the cosine: $1+|\cos|^{-1/2}$",
        ),
        (1 + 1 / line, {"color": COLORS["printed"]}, r"$c$ the squared cosine: $1+1/|\cos|$"),
        ((1 + 1 / line) / 2, {"color": COLORS["corrected"]}, r"best: $(1+1/|\cos|)/2$"),
    ):
        ax.plot(line, bound, zorder=3, label=label, **style)
    ax.axhline(1, color="#999999", linewidth=0.8, linestyle=":")
    ax.set(xscale="log", yscale="log", xlim=(3e-3, 1), ylim=(1e-3, 1e3))
    ax.set_xlabel(r"$|\cos|$ of the angle between input and gradient")
    ax.set_ylabel(r"$\sigma\,|\partial\hat{\mathcal{L}}/\partial w|\;/\;|\partial\mathcal{L}/\partial w|$")
    ax.legend(loc="lower left")
    return fig
