"""Does it shrink gradients? The random layers of the page on the Lipschitz theorems, and its figures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import matplotlib.pyplot as plt
import numpy as np

from bnbook.chapters.theorems import Case, draw, draw_margins, look, standardized
from bnbook.plots.panels import Panel, compare

# ---- Random layers with all that the page asks of each, differentiated once -------------------------------

#: How the letter c of Theorem 3.2 can be read.
READINGS_OF_C = ("pearson", "cosine", "pearson_squared", "cosine_squared")


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
    for name in READINGS_OF_C:
        share = rng.uniform(0, 1)  # ε of Theorem C.4 is up to 2 c, or below c
        surplus[name] = (share, rng.exponential() if 2 * share < 1 else 0.0, rng.exponential())
    return OneWeight(case, spread, surplus)


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
