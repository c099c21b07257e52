"""Does it shrink gradients? The Lipschitz theorems: both sides, on random instances and in fractions."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

import matplotlib.pyplot as plt
import numpy as np
import torch

from bnbook.chapters import theorems
from bnbook.chapters.theorems import (
    Case,
    Counterexample,
    Instance,
    Number,
    Unit,
    batch_norm,
    draw,
    draw_margins,
    exact,
    linear_loss,
    look,
    normalize,
    project,
    square_root,
    standardized,
)
from bnbook.plots.panels import Panel, compare

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


# ---- Random layers with all that the page asks of each, differentiated once -------------------------------

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


@dataclass(frozen=True)
class OneWeight:
    """The weight W_0j of a unit with γ = 1, β = 0, version 1's layer, and what is drawn at random for it."""

    case: Case
    spread: float  # how far σ is above 1, for the text's summary
    surplus: dict[str, tuple[float, float, float]]  # reading of c -> ε / c, and by how much σ² exceeds C.4's

    @property
    def x(self) -> np.ndarray:
        return self.case.instance.x[:, 0]

    @property
    def gradients(self) -> tuple[float, float]:
        """∂L̂/∂w with batch norm, by automatic differentiation, and <x, g> without."""
        return float(self.case.weights[0]), float(self.x @ self.case.g)


@dataclass(frozen=True)
class Layer:
    """One random layer as drawn, as version 1 has it, and that with inputs of mean zero."""

    case: Case
    radius: float  # λ of Theorem 4.4
    uncentred: OneWeight
    centred: OneWeight
    other: dict[str, Case]  # with ε > 0, with the unbiased variance


def draw_layer(rng: np.random.Generator, number: int) -> Layer:
    """Layer `number`, its derivatives by automatic differentiation."""
    instance, centred, j = draw(rng, number), draw(rng, number, centred=True), number % 2
    radius = 10 ** rng.uniform(-1, 1)
    weights = [_one_weight(rng, look(standardized(each), j)) for each in (instance, centred)]
    eps = 10 ** rng.uniform(-4, 1) * float(instance.y[:, j].var())
    other = {"eps": look(instance, j, eps), "unbiased": look(instance, j, unbiased=True)}
    return Layer(look(instance, j), radius, *weights, other)


def _one_weight(rng: np.random.Generator, case: Case) -> OneWeight:
    spread, surplus = 10 ** rng.uniform(-2, 1), {}
    for name in READINGS_C:
        share = rng.uniform(0, 1)  # ε of Theorem C.4 is up to 2 c, or below c
        surplus[name] = (share, rng.exponential() if 2 * share < 1 else 0.0, rng.exponential())
    return OneWeight(case, spread, surplus)


def squeezed(case: Case, radius: float) -> Case:
    """The same slope g above an X of norm λ that gives the unit a spread a thousand times smaller."""
    w = case.instance.w[:, case.j]
    spread = 1e-3 * min(case.unit.sigma, radius * math.sqrt((w @ w) / case.unit.m))
    x = squeezed_input(w, case.g, np.arange(case.unit.m) ** 2.0, spread, radius)
    loss = linear_loss(case.g[:, None])
    return look(Instance(x, w[:, None], np.array([case.gamma]), np.zeros(1), loss, "linear"), 0)


def dense_jacobian(y: np.ndarray, gamma: float = 1.0) -> np.ndarray:
    """∂z/∂y of one unit by automatic differentiation, (m, m)."""
    scale, zero = np.array([gamma]), np.zeros(1)
    layer = lambda v: batch_norm(v[:, None], scale, zero)[:, 0]
    return torch.func.jacrev(layer)(torch.tensor(y)).numpy()


def size_of(case: Case) -> float:
    """The largest term of a gradient for the outputs."""
    return abs(case.gamma) / case.unit.sigma * float(np.abs(case.g).max())


# ---- Figures, of recorded results alone -------------------------------------------------------------------

#: Rows of the figure of margins: label, and whether it is the printed or the corrected form.
ROWS = {
    "th41_literal": ("4.1, gradients as they are", "printed"),
    "th41_appendix": ("4.1 with $1/\\sqrt{m}$ (appendix)", "printed"),
    "th41": ("4.1 with $1/m$, same gradient", "corrected"),
    "th44_printed": ("4.4 as printed", "printed"),
    "th44_maximum": ("4.4, true maximum over $X$", "printed"),
    "th44": ("4.4 corrected", "corrected"),
    "th32.pearson.centred": ("v1 3.2, $c$ a correlation", "printed"),
    "th32.cosine_squared.uncentred": ("v1 3.2, $c$ a squared cosine", "corrected"),
    "sharp32.uncentred": ("v1 3.2, a quarter of that", "corrected"),
    "c4.pearson.below.centred": ("v1 C.4, $c$ a correlation", "printed"),
    "c4.cosine_squared.below.uncentred": ("v1 C.4 corrected", "corrected"),
}


def margins(results: Mapping[str, np.ndarray]) -> plt.Figure:
    """Margins of the bounds, printed and corrected."""
    return draw_margins(results, ROWS)


def weight_gains(results: Mapping[str, np.ndarray]) -> plt.Figure:
    """σ |∂L̂/∂w| / |∂L/∂w| against |cos| of input and gradient, (S, K), and readings of Theorem 3.2.

    Mirrored gradients lie on (1/|cos| ± 1) / 2: plus where batch norm deletes the smaller part of the input.
    """
    line = np.geomspace(3e-3, 1, 200)
    cosine, gain = (results[f"curve.weights.{name}"].ravel() for name in ("cosine", "gain"))
    dots = dict(look=".", color="theory", markersize=3.5, alpha=0.5, zorder=4, label="random instances")
    root, squared = r"printed, $c$ the cosine: $1+|\cos|^{-1/2}$", r"$c$ the squared cosine: $1+1/|\cos|$"
    arms = {
        "gain": dict(x=cosine, y=gain, **dots),
        "root": dict(y=1 + line**-0.5, color="printed", look="--", label=root),
        "squared": dict(y=1 + 1 / line, color="printed", label=squared),
        "best": dict(y=(1 + 1 / line) / 2, color="corrected", label=r"best: $(1+1/|\cos|)/2$"),
    }
    ratio = r"$\sigma\,|\partial\hat{\mathcal{L}}/\partial w|\;/\;|\partial\mathcal{L}/\partial w|$"
    words = dict(xlabel=r"$|\cos|$ of the angle between input and gradient", ylabel=ratio, marks_y={"": 1})
    return compare(
        results,
        [Panel(x=line, log="xy", xlim=(3e-3, 1), ylim=(1e-3, 1e3), **words)],
        arms,
        figsize=(7.2, 4.0),
    )
