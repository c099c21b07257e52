"""Is the best direction known in advance? Half-spaces in length and direction: GDNP, its bounds, races."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import least_squares as minimise
from scipy.optimize import root

from bnbook.chapters import least_squares
from bnbook.chapters.length_direction import (
    LOSSES,
    METHODS,
    NODES,
    THEORY,
    WEIGHTS,
    WRONG,
    Loss,
    Quadratic,
    draw_quadratic,
    draw_ratios,
    gdnp_step,
    plane,
)
from bnbook.errors import BnbookError
from bnbook.figures import points_of
from bnbook.plots.layout import subplots
from bnbook.plots.panels import compare

# ---- Half-spaces: minimise f(w̃) = E φ(zᵀw̃), z = -yx, for Gaussian z (exact integrals) or for examples ----
# Everything but the gradient needs only the margins of a direction, zᵀw / ‖w‖_S: points t with weights p, so
# that E g(zᵀw̃) = Σ p g(γ t) for w̃ = γ w / ‖w‖_S. For Gaussian z, of mean u and covariance S - uuᵀ, they are
# the nodes of the trapezoid rule (`length_direction.NODES`).


class HalfSpace:
    """What both kinds have in common; `problem` holds S = E[zzᵀ] and u = E[z]."""

    problem: Quadratic
    loss: Loss

    def margins(self, w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Points of zᵀw̃ / ‖w̃‖_S and their weights; each kind below has its own."""
        raise NotImplementedError

    def gradient(self, weight: np.ndarray) -> np.ndarray:
        """∇f(w̃); each kind below has its own."""
        raise NotImplementedError

    def length(self, weight: np.ndarray) -> float:
        """‖w̃‖_S"""
        return float(np.sqrt(weight @ self.problem.S @ weight))

    def expectation(self, function, weight: np.ndarray) -> float:
        """E g(zᵀw̃)"""
        length = self.length(weight)
        if length == 0:
            return float(function(np.zeros(1))[0])
        points, weights = self.margins(weight)
        return float(weights @ function(length * points))

    def value(self, weight: np.ndarray) -> float:
        """f(w̃)"""
        return self.expectation(self.loss.value, weight)

    def coefficients(self, weight: np.ndarray) -> tuple[float, float]:
        """c₁ = E φ' - E φ'' uᵀw̃ and c₂ = E φ'', the article's."""
        second = self.expectation(self.loss.second, weight)
        return self.expectation(self.loss.first, weight) - second * float(self.problem.u @ weight), second

    def slope(self, points: np.ndarray, weights: np.ndarray, gamma: float) -> float:
        """∂f/∂γ = E[φ'(γ t) t] for the margins t of a direction."""
        return float(weights @ (self.loss.first(gamma * points) * points))

    def gradient_in_direction(self, w: np.ndarray, gamma: float) -> np.ndarray:
        """∇_w f(w, γ) = (γ / ‖w‖_S) (g - (gᵀw / ‖w‖²_S) S w) with g = ∇f(w̃)."""
        length = self.length(w)
        g = self.gradient(gamma * w / length)
        return gamma / length * (g - (g @ w) / length**2 * (self.problem.S @ w))


@dataclass(frozen=True)
class Gaussian(HalfSpace):
    """z ~ N(u, S - uuᵀ); BnbookError unless uᵀS⁻¹u < 1, without which that is no covariance."""

    problem: Quadratic
    loss: Loss

    def __post_init__(self) -> None:
        if not self.problem.attainable < 1:
            raise BnbookError(
                f"uᵀS⁻¹u is {self.problem.attainable:.3g}; expected less than 1 for a Gaussian z"
            )

    def margins(self, w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Mean r = uᵀw / ‖w‖_S, standard deviation √(1 - r²)."""
        r = float(self.problem.u @ w) / self.length(w)
        return r + np.sqrt(max(0.0, 1 - r * r)) * NODES, WEIGHTS

    def gradient(self, weight: np.ndarray) -> np.ndarray:
        """∇f = c₁ u + c₂ S w̃: Stein's lemma, E[φ'(zᵀw̃) z] = E φ' u + E φ'' (S - uuᵀ) w̃."""
        first, second = self.coefficients(weight)
        return first * self.problem.u + second * (self.problem.S @ weight)


@dataclass(frozen=True)
class Examples(HalfSpace):
    """Given examples z (m, d), with the moments of `problem`."""

    problem: Quadratic
    loss: Loss
    z: np.ndarray

    def margins(self, w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return self.z @ w / self.length(w), np.full(len(self.z), 1 / len(self.z))

    def gradient(self, weight: np.ndarray) -> np.ndarray:
        """∇f = mean of φ'(zᵀw̃) z"""
        return self.loss.first(self.z @ weight) @ self.z / len(self.z)


def from_labelled(x: np.ndarray, y: np.ndarray, loss: Loss) -> Examples:
    """Examples x (m, d) with labels y (m,) of ±1, centred here: z = -yx."""
    if set(np.unique(y)) != {-1.0, 1.0}:
        raise BnbookError(f"labels {sorted(set(np.unique(y)))[:4]}; expected both of -1 and 1")
    z = -y[:, None] * (x - x.mean(axis=0))
    return Examples(Quadratic(z.T @ z / len(z), z.mean(axis=0)), loss, z)


def draw_gaussian(rng: np.random.Generator, loss: Loss, size: int | None = None) -> Gaussian:
    """A random Gaussian problem: d = 2 to 12, L/μ up to 100, S scaled by 10^±2, uᵀS⁻¹u from 0.05 to 0.85."""
    d = size or int(rng.integers(2, 13))
    basis = np.linalg.qr(rng.standard_normal((d, d)))[0]
    spectrum = 10 ** (rng.uniform(-2, 2) + rng.uniform(0, rng.uniform(0, 2), d))
    S = (basis * spectrum) @ basis.T
    S = (S + S.T) / 2
    v = rng.standard_normal(d)
    u = (basis * np.sqrt(spectrum)) @ (v / np.linalg.norm(v) * np.sqrt(rng.uniform(0.05, 0.85)))
    return Gaussian(Quadratic(S, u), loss)


# ---- Gradient descent in normalized parameters (GDNP): a step of the direction, bisection for the length ----
# With w̃ = γ w / ‖w‖_S the direction takes the step s = -‖w‖³_S / (L γ h) as long as h ≠ 0. The two readings of
# h:
#     printed    E φ' uᵀw - E φ'' (uᵀw)²
#     corrected  E φ' uᵀw - E φ'' uᵀw̃ uᵀw = c₁ uᵀw
# They agree where γ = ‖w‖_S. Only the second makes the step the one of least squares: ∇_w f = (γ c₁ / ‖w‖_S) q
# with q = u - (uᵀw / ‖w‖²_S) S w, and so w - s ∇_w f = w + (‖w‖²_S / (L uᵀw)) q.
# Source: the encyclopedia's article, "Learning halfspace problem".

FORMS = ("printed", "corrected")


@dataclass(frozen=True)
class Run:
    """The iterates of GDNP: what each step started from, and the result."""

    directions: np.ndarray  # (T+1, d)
    lengths: np.ndarray  # (T+1,), γ after bisection

    def weight(self, t: int, halfspace: HalfSpace) -> np.ndarray:
        """w̃_t (d,)"""
        w = self.directions[t]
        return self.lengths[t] * w / halfspace.length(w)


def criterion(w: np.ndarray, gamma: float, halfspace: HalfSpace, form: str = "corrected") -> float:
    """h(w, γ), printed or corrected."""
    if form not in FORMS:
        raise BnbookError(f"unknown form {form!r}; expected one of {', '.join(FORMS)}")
    along = float(halfspace.problem.u @ w)
    points, weights = halfspace.margins(w)
    first, second = (
        float(weights @ f(gamma * points)) for f in (halfspace.loss.first, halfspace.loss.second)
    )
    length = halfspace.length(w)
    return first * along - second * along**2 * (1 if form == "printed" else gamma / length)


def next_direction(w: np.ndarray, gamma: float, halfspace: HalfSpace, form: str = "corrected") -> np.ndarray:
    """w - s ∇_w f(w, γ); w itself where h = 0."""
    gradient = halfspace.gradient(gamma * w / halfspace.length(w))
    return gdnp_step(w, gamma, gradient, criterion(w, gamma, halfspace, form), halfspace.problem)


def bisection(
    slope: Callable[[float], float], low: float, high: float, iterations: int
) -> tuple[float, float]:
    """The bracket (a, b) of a zero of an increasing-through-zero slope after halving it T_s times.

    Where the slope does not change its sign from - to + the bracket runs to one of its ends, as bisection
    does.
    """
    for _ in range(iterations):
        middle = (low + high) / 2
        if slope(middle) < 0:
            low = middle
        else:
            high = middle
    return low, high


def gdnp(
    halfspace: HalfSpace,
    w: np.ndarray,
    steps: int,
    iterations: int = 40,
    bracket: tuple[float, float] = (-16.0, 16.5),
    form: str = "corrected",
) -> Run:
    """GDNP from direction w: at each direction the length by bisection, with it the next direction.

    γ is the left end of the last bracket, as in the article's bound. BnbookError where uᵀw = 0.
    """
    if float(halfspace.problem.u @ w) == 0:
        raise BnbookError("uᵀw is 0; expected a first direction that is not orthogonal to u")
    directions, lengths = [np.asarray(w, dtype=np.float64)], []
    for t in range(steps + 1):
        points, weights = halfspace.margins(directions[-1])
        lengths.append(bisection(lambda g: halfspace.slope(points, weights, g), *bracket, iterations)[0])
        if t < steps:
            directions.append(next_direction(directions[-1], lengths[-1], halfspace, form))
    return Run(np.stack(directions), np.array(lengths))


# ---- The bounds on GDNP for half-spaces, as printed and corrected, with the quantities that they bound ----
# With κ = uᵀS⁻¹u, gap_t = ρ(w_t) - ρ*, B = |b⁽⁰⁾ - a⁽⁰⁾|, ζ a bound on ‖∇²f‖:
#     length     (∂_γ f)² ≤ 2^{-T_s} ζ B / μ²                              corrected: (2^{-T_s} ζ B / μ)²
#     direction  ‖w‖²_S ‖∇_w f‖²_{S⁻¹} ≤ (1 - μ/L)^{2t} Φ² γ² gap_0       printed: Φ = sup |φ'|
#     combined   ‖∇f(w̃)‖² ≤ (1 - μ/L)^{2t} Φ² gap_0 + length bound        corrected: in the norm of S⁻¹
# Corrected is Φ = sup |φ'| / √(1 - κ), which bounds |c₁| for Gaussian z. Behind all of it is an equality,
#     ‖∇f(w̃)‖²_{S⁻¹} = c₁² gap + (∂_γ f)².


def smoothness(halfspace: HalfSpace) -> float:
    """ζ = sup |φ''| L, a bound on the largest eigenvalue of ∇²f = E[φ''(zᵀw̃) z zᵀ]."""
    return halfspace.loss.largest_second * halfspace.problem.largest


def phi(halfspace: HalfSpace, form: str) -> float:
    """Φ: sup |φ'| as printed (a bounded derivative is all that is assumed), over √(1 - κ) as corrected.

    By Stein's lemma c₁ = E[φ'(t) (1 - kξ)] with t = a + bξ, k = a/b, so |c₁| ≤ sup |φ'| √(1 + k²), and 1 + k²
    is at most 1 / (1 - κ).
    """
    first = halfspace.loss.largest_first
    return first if form == "printed" else first / np.sqrt(1 - halfspace.problem.attainable)


def length_bound(halfspace: HalfSpace, iterations: int, width: float, form: str) -> float:
    """Bound on (∂_γ f)² at the left end of the bracket after T_s halvings."""
    halved = 2.0**-iterations * smoothness(halfspace) * width
    smallest = halfspace.problem.smallest
    return halved / smallest**2 if form == "printed" else (halved / smallest) ** 2


def direction_bound(halfspace: HalfSpace, t: int, gap: float, form: str) -> float:
    """(1 - μ/L)^{2t} Φ² gap_0"""
    return halfspace.problem.rate ** (2 * t) * phi(halfspace, form) ** 2 * gap


def squared_norm(vector: np.ndarray, halfspace: HalfSpace, form: str) -> float:
    """‖·‖²: Euclidean as printed (nothing else is said), in the norm of S⁻¹ as corrected."""
    if form == "printed":
        return float(vector @ vector)
    return float(vector @ np.linalg.solve(halfspace.problem.S, vector))


# ---- What races start from, and where they end ------------------------------------------------------------

RACERS = ("gdnp", "gradient_descent", "accelerated")


def best_weight(halfspace: HalfSpace) -> np.ndarray:
    """The minimiser of the logistic loss: -2 S⁻¹u / (1 - uᵀS⁻¹u) for Gaussian z, by Newton's method for
    examples.

    BnbookError where Newton's method does not end at a bounded minimum (the classes can be separated).
    """
    problem = halfspace.problem
    if isinstance(halfspace, Gaussian):
        if halfspace.loss.name != "logistic":
            raise BnbookError(
                f"loss {halfspace.loss.name}; expected logistic, the only one with this closed form"
            )
        return -2 * problem.direction / (1 - problem.attainable)
    weight = np.zeros(len(problem.u))
    unbounded = BnbookError(
        "Newton's method ends at no bounded minimum; expected classes that no half-space separates"
    )
    for _ in range(60):
        curvature = halfspace.loss.second(halfspace.z @ weight)
        hessian = (halfspace.z * curvature[:, None]).T @ halfspace.z / len(halfspace.z)
        if np.linalg.eigvalsh(hessian)[0] < 1e-12 * halfspace.problem.largest:
            raise unbounded  # every example is on its side, and farther and farther
        step = np.linalg.solve(hessian, halfspace.gradient(weight))
        weight = weight - step
        if np.linalg.norm(step) <= 1e-12 * np.linalg.norm(weight):
            return weight
    raise unbounded


def draw_race(rng: np.random.Generator) -> tuple[Gaussian, np.ndarray]:
    """A Gaussian problem with d = 20, L/μ = 30, uᵀS⁻¹u = ½ and the logistic loss, and a first direction."""
    problem, w = draw_quadratic(rng, "random", 30.0, 20)
    halved = Quadratic(problem.S, problem.u * np.sqrt(0.5 / problem.attainable))
    return Gaussian(halved, LOSSES["logistic"]), w


def principal(
    images: np.ndarray, labels: np.ndarray, classes: tuple[int, int], components: int
) -> tuple[np.ndarray, np.ndarray]:
    """Two classes of images (m, ...) in their principal components: x (m, d) and labels of -1 and 1."""
    chosen = np.isin(labels, classes)
    x = images[chosen].reshape(chosen.sum(), -1).astype(np.float64)
    x = x - x.mean(axis=0)
    _, vectors = np.linalg.eigh(x.T @ x / len(x))
    return x @ vectors[:, ::-1][:, :components], np.where(labels[chosen] == classes[0], -1.0, 1.0)


def alignment(halfspace: Examples | Gaussian) -> float:
    """Cosine (in the norm of S) of the angle between the minimiser and the line of S⁻¹u."""
    best, direction = best_weight(halfspace), halfspace.problem.direction
    return abs(float(best @ halfspace.problem.u)) / (halfspace.length(best) * halfspace.length(direction))


# ---- The bounds on GDNP on many random Gaussian half-space problems, and a search for critical points -----

#: Losses with a bounded best length, for which GDNP is made, and the start of its bisection.
LEARNABLE = ("logistic", "huber", "welsch")
BRACKET = (-16.0, 16.5)  # not symmetric: no midpoint is ever 0, where the direction has no gradient
#: Gaps below this share of uᵀS⁻¹u are left out: there the gradient is rounding.
FLOOR = 1e-11
#: A critical point is off the line beyond this sine of its angle to it.
AWAY = 1e-5


def draw_start(rng: np.random.Generator, halfspace: Gaussian, kind: int) -> np.ndarray:
    """A first direction of any length: random (kind 0), near the best one (1), almost orthogonal to u (2)."""
    problem = halfspace.problem
    w = rng.standard_normal(len(problem.u))
    w = w / halfspace.length(w)
    best = problem.direction / np.sqrt(problem.attainable)
    if kind == 1:
        w = best + 0.1 * w
    if kind == 2:
        w = w - (problem.u @ w) / problem.attainable * problem.direction + 1e-4 * best
    return -np.sign(problem.u @ w) * 10 ** rng.uniform(-2, 2) * w


#: (half-space, w, γ, t, gaps, halvings) -> names and numbers of one step.
Sides = Callable[[Gaussian, np.ndarray, float, int, np.ndarray, int], Iterable[tuple[str, float]]]


def run_margins(seed: int, problems: int, steps: int, both_sides: Sides) -> dict[str, list[float]]:
    """What `both_sides` gives at every step of GDNP on random problems, by name.form ("direction", "length",
    "combined" of the bounds above, "pythagoras" of the equality behind them), with 0 to 30 halvings.

    Besides "gap": the linear rate of ρ under the printed or the corrected h; "step": relative difference of the
    next direction and the one of least squares.
    """
    rng = np.random.default_rng([seed, 4])
    names = ("direction", "length", "combined", "gap", "step")
    found: dict[str, list[float]] = {f"{name}.{form}": [] for name in names for form in FORMS}
    found["pythagoras"] = []
    for number in range(problems):
        halfspace = draw_gaussian(rng, LOSSES[LEARNABLE[number % 3]])
        w = draw_start(rng, halfspace, number // 3 % 3)
        iterations = int(rng.integers(0, 31))
        for form in FORMS:
            run = gdnp(halfspace, w, steps, iterations, BRACKET, form)
            for name, ratio in _one_run(halfspace, run, form, iterations, both_sides):
                found[name].append(float(ratio))
    return found


def _one_run(
    halfspace: Gaussian, run: Run, form: str, iterations: int, both_sides: Sides
) -> Iterator[tuple[str, float]]:
    """Of one run; the bounds are judged on the corrected one, which takes the steps they need."""
    problem = halfspace.problem
    gaps = least_squares.gap(run.directions, problem)
    for t, (w, gamma) in enumerate(zip(run.directions, run.lengths, strict=True)):
        if gaps[t] < FLOOR * problem.attainable:
            return
        if t:
            bound = problem.rate ** (2 * t) * gaps[0]
            yield f"gap.{form}", gaps[t] / bound if bound and np.isfinite(gaps[t]) else np.inf
        wanted = w - least_squares.step_size(w, problem) * least_squares.gradient(w, problem)
        got = next_direction(w, gamma, halfspace, form)
        yield f"step.{form}", np.linalg.norm(got - wanted) / np.linalg.norm(wanted)
        if form == "corrected":
            yield from both_sides(halfspace, w, gamma, t, gaps, iterations)


def plane_gradient(halfspace: Gaussian, weight: np.ndarray) -> np.ndarray:
    """∇f(w̃) by its definition, E[φ'(zᵀw̃) z], an integral over the plane (d = 2)."""
    S, u = halfspace.problem.S, halfspace.problem.u
    nodes, p = plane(0.1, 8.0)
    z = u + nodes @ np.linalg.cholesky(S - np.outer(u, u)).T
    return (p * halfspace.loss.first(z @ weight)) @ z


def search_line(seed: int, starts: int) -> tuple[float, dict[str, int], dict[str, int]]:
    """The largest error of the gradient's formula, and for every loss how many critical points were found and
    how many of them off the line."""
    rng, errors, found, away = np.random.default_rng([seed, 5]), [], {}, {}
    for name, loss in LOSSES.items():
        for _ in range(6):
            halfspace = draw_gaussian(rng, loss, 2)
            weight = rng.standard_normal(2)
            weight *= rng.uniform(0.1, 1.5) / halfspace.length(weight)
            error = np.linalg.norm(plane_gradient(halfspace, weight) - halfspace.gradient(weight))
            errors.append(error / (np.linalg.norm(halfspace.problem.u) * loss.largest_first))
        points, halfspace = critical_points(rng, loss, starts, 2 + seed % 3)
        found[name], away[name] = len(points), int((sine_off_line(points, halfspace) > AWAY).sum())
    return max(errors), found, away


def critical_points(
    rng: np.random.Generator, loss: Loss, starts: int, size: int
) -> tuple[np.ndarray, Gaussian]:
    """Bounded critical points (k, d) by Levenberg and Marquardt from random starts, and the problem."""
    halfspace = draw_gaussian(rng, loss, size)
    whiten, found = halfspace.problem.whitening, []
    accuracy = {"xtol": 1e-15, "ftol": 1e-15, "gtol": 1e-15, "max_nfev": 80}
    for _ in range(starts):
        start = rng.standard_normal(size)
        start *= 10 ** rng.uniform(-0.7, 0.3) / np.linalg.norm(start)
        end = minimise(lambda z: whiten @ halfspace.gradient(whiten @ z), start, method="lm", **accuracy)
        if np.linalg.norm(end.fun) < 1e-10 and np.linalg.norm(end.x) < 16:
            found.append(whiten @ end.x)
    return np.array(found).reshape(-1, size), halfspace


def critical_points_in_plane(halfspace: Gaussian, reach: float) -> tuple[np.ndarray, np.ndarray]:
    """Critical points (k, 2) nearer than `reach` to both axes, from 48 starts: those on the line
    and those off it."""
    found = []
    for angle in np.linspace(0, 2 * np.pi, 16, endpoint=False):
        for radius in (0.5, 1.5, 3):
            start = radius * np.array([np.cos(angle), np.sin(angle)])
            end = root(halfspace.gradient, start, tol=1e-13)
            if end.success and np.linalg.norm(end.fun) < 1e-10 and abs(end.x).max() < reach:
                found.append(end.x)
    points = np.array(found).reshape(-1, 2)
    away = sine_off_line(points, halfspace) > AWAY
    return points[~away], points[away]


def in_plane(names: Iterable[str]) -> dict[str, np.ndarray]:
    """What `surfaces` draws of losses by name: values (1, W, W) over the plane, critical points (1, k, 2)."""
    drawn = {}
    for name in names:
        halfspace = Gaussian(IN_PLANE, LOSSES[name])
        surface = np.array([[halfspace.value(np.array([a, b])) for a in SIDE] for b in SIDE])
        on_line, away = critical_points_in_plane(halfspace, 4.0)
        parts = {"surface": surface, "on_line": on_line, "away": away}
        drawn |= {f"curve.critical_points.{name}.{what}": values[None] for what, values in parts.items()}
    return drawn


def sine_off_line(points: np.ndarray, halfspace: Gaussian) -> np.ndarray:
    """Sine of the angle (in the norm of S) between each point and the line of S⁻¹u; 0 for the point 0."""
    if not len(points):
        return np.zeros(0)
    lengths = np.array([halfspace.length(point) for point in points])
    away = np.sqrt(
        least_squares.gap(
            np.where(lengths[:, None] > 1e-9, points, halfspace.problem.direction), halfspace.problem
        )
    )
    return away / np.sqrt(halfspace.problem.attainable)


# ---- Figures, of recorded results alone -------------------------------------------------------------------

#: The problem of the figure of critical points, in the plane, and where its losses are drawn.
IN_PLANE, SIDE = (
    Quadratic(np.array([[1.0, 0.35], [0.35, 0.6]]), np.array([0.45, -0.1])),
    np.linspace(-4, 4, 41),
)
#: Bounds of the figure of margins.
BOUNDS = {
    "gap": "gap of the direction",
    "length": "slope in the length",
    "direction": "gradient in the direction",
    "combined": "whole gradient",
}


def surfaces(results: Mapping[str, np.ndarray]) -> plt.Figure:
    """Losses over the plane, the line of S⁻¹u, and critical points (1, k, 2) on and off it."""
    fig, axes = subplots(1, 2, figsize=(7.4, 3.9))
    titles = {"logistic": "logistic loss", "ripple": r"$t-\sqrt{e}\,\sin t$"}
    for ax, (name, title) in zip(axes, titles.items(), strict=True):
        drawn = {
            what: results[f"curve.critical_points.{name}.{what}"][0]
            for what in ("surface", "on_line", "away")
        }
        ax.contour(SIDE, SIDE, drawn["surface"], 22, cmap="cividis", linewidths=0.9)
        ax.plot(
            *np.outer(IN_PLANE.direction, (-9, 9)), "--", color=THEORY, linewidth=1, label="line of $S^{-1}u$"
        )
        for where, marker, color, label in (
            ("on_line", "o", THEORY, "critical, on the line"),
            ("away", "D", WRONG, "critical, off the line"),
        ):
            ax.plot(*drawn[where].reshape(-1, 2).T, marker, color=color, markersize=6, label=label)
        ax.set(title=title, xlim=SIDE[[0, -1]], ylim=SIDE[[0, -1]], aspect="equal")
        ax.set_xlabel(r"$\tilde w_1$")
    axes[0].set_ylabel(r"$\tilde w_2$")
    handles, labels = axes[1].get_legend_handles_labels()
    fig.legend(handles, labels, ncols=3, loc="outside lower center", fontsize=9)
    return fig


def margins(results: Mapping[str, np.ndarray]) -> plt.Figure:
    """Left over right side of the bounds on GDNP, printed and corrected."""
    panels = {
        title: {f"{name}_{form}": f"{form}: {form}" for form in FORMS} for name, title in BOUNDS.items()
    }
    return draw_ratios(results, panels, (-8, 8))


def races(results: Mapping[str, np.ndarray]) -> plt.Figure:
    """Relative excess loss (S, T) of each method at some steps."""
    points = {name: np.maximum(values, 1e-15) for name, values in points_of(results, "races").items()}
    arms = {name: dict(zip(("color", "look", "label"), METHODS[name])) for name in RACERS}
    words = dict(
        x="step", by="geometric", log="y", ylim=(1e-8, 3), xlabel="step $t$", ylabel="relative excess loss"
    )
    titles = {"gaussian.{}": "Gaussian", "images.{}": "images of two digits"}
    return compare(points, titles, arms, figsize=(7.4, 3.6), sharey=True, **words)
