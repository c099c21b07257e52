"""Counter-examples to Observation 4.3 and Lemmas 3.3 and 4.5, in fractions."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from bnbook.studies.theorems import minima
from bnbook.studies.theorems.counterexamples import Counterexample
from bnbook.studies.theorems.one_unit import exact


@dataclass(frozen=True)
class ThreePoints:
    """Three data points, two inputs, squared error: both networks' minima in fractions."""

    x: np.ndarray  # (3, 2)
    t: np.ndarray  # (3,)
    plain: np.ndarray  # (2,) the plain network's minimum W*
    ray: np.ndarray  # (2,) direction of the minima with batch norm


def three_points() -> ThreePoints:
    """X = (1, 0), (0, 1), (1, 1), t = (1, 0, 0): W* = (2/3, -1/3), with batch norm the ray of (0, -1)."""
    x = np.array([exact(1, 0), exact(0, 1), exact(1, 1)])
    t = exact(1, 0, 0)
    return ThreePoints(x, t, _solve(x, t), _solve(x - x.mean(0), t))


def minima_counterexamples() -> list[Counterexample]:
    """For Observation 4.3's second sentence, Lemma 3.3 and Lemma 4.5."""
    problem = three_points()
    plain, ray, far = problem.plain, problem.ray, 3 * problem.plain
    words = r"rows of $X$: $(1,0)$, $(0,1)$, $(1,1)$; $t=(1,0,0)$; $W^*=(\frac23,-\frac13)$"
    line = r"4.3: $\partial\widehat{\mathcal L}/\partial\beta$ at $(W^*,\sigma,\mu)$"
    distances = [minima.distance_to_ray(start, ray) for start in (plain, far)]
    bounds = [minima.lemma_45(start, plain) for start in (plain, far)]
    near, apart = words + r"; $\widehat W^*=(0,-\frac13)$", r"the same, $\widehat W^*=(0,-1)$"
    equal, epsilon = (
        r"$Wx=\ell=(1,-1)$, so $\widehat{\mathcal L}_W=\mathcal L_W=0$",
        r"3.3, $\varepsilon=\frac35$",
    )
    slope, zero = (problem.x @ plain - problem.t).sum(), Fraction(0)
    return [
        Counterexample("observation", line, words, slope, zero, "="),
        Counterexample("lemma_45", r"4.5, $W_0=W^*$", near, distances[0], bounds[0]),
        Counterexample("lemma_45_far", r"4.5, $W_0=3W^*$", apart, distances[1], bounds[1]),
        Counterexample("lemma_33", epsilon, equal, zero, minima.lemma_33(Fraction(3, 5)), "<"),
        _squared_loss(),
    ]


def _squared_loss() -> Counterexample:
    """Lemma 3.3 for the squared norm: ℓ = ½ (1, -1), W x = -ℓ/100, ‖·‖ the root mean square, ε = 13/50."""
    target, epsilon = exact("1/2", "-1/2"), Fraction(13, 50)
    output = -target / 100
    losses = [((v - target) @ (v - target)) / 2 for v in (output, exact(1, -1), exact(-1, 1))]
    assert max(losses[:2]) < epsilon  # of W without, of W' with batch norm
    words = r"$\ell=\frac12(1,-1)$, $W'x=(1,-1)$, $Wx=-\frac1{100}\ell$, squared error (mean over the batch)"
    line = r"3.3, squared loss, $\varepsilon=\frac{13}{50}$"
    return Counterexample("lemma_33_squared", line, words, losses[2], minima.lemma_33(epsilon), "<")


def _solve(x: np.ndarray, t: np.ndarray) -> np.ndarray:
    """Least squares with two inputs, by Cramer's rule."""
    (a, b), (_, c), (u, v) = *(x.T @ x), x.T @ t
    determinant = a * c - b * b
    return np.array([(c * u - b * v) / determinant, (a * v - b * u) / determinant], dtype=object)
