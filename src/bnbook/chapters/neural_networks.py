"""Do all hidden units look the same way? One hidden layer of tanh units, descended a unit at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.ticker import MaxNLocator
from scipy.optimize import minimize, root

from bnbook.chapters import least_squares
from bnbook.chapters.halfspaces import bisection
from bnbook.chapters.length_direction import (
    APART,
    LOSSES,
    NODES,
    THEORY,
    WEIGHTS,
    WRONG,
    Loss,
    Quadratic,
    draw_ratios,
    gdnp_step,
    plane,
)
from bnbook.errors import BnbookError
from bnbook.figures import points_of
from bnbook.plots.layout import subplots
from bnbook.plots.panels import Panel, compare

# ---- One hidden layer of tanh units on Gaussian data: f(w̃_1 ... w̃_m) = E l(F), F = Σ θ_i ----------------
# tanh(zᵀw̃_i), z = -yx ~ N(u, S - uuᵀ)
#
# tanh is odd, so F(z) = -y F(x). By Stein's lemma, as for half-spaces,
#     ∇_i f = κ_i u + S Σ_j M_ij w̃_j,   κ_i = e_i - Σ_j M_ij uᵀw̃_j,   e_i = θ_i E[l' s_i],
#     M_ij = θ_i θ_j E[l'' s_i s_j] + δ_ij θ_i E[l' tanh''(t_i)],   t_i = zᵀw̃_i, s_i = 1 - tanh² t_i.
# Expectations are trapezoid sums over the span of the weights, of dimension 1 or 2. Their error falls as
# exp(-2π δ / spacing), where δ is the distance of the nearest pole of the integrand (of tanh or of l') from the
# real axis: small for large weights. Source: the encyclopedia's article, "Neural networks"; the formulas are
# this book's.

#: sup |tanh''| = 4 / (3 √3)
LARGEST_BEND = 4 / (3 * np.sqrt(3))


@dataclass(frozen=True)
class TanhNetwork:
    """Fixed output weights, weights W (m, d), a row per unit; BnbookError unless uᵀS⁻¹u < 1."""

    problem: Quadratic
    theta: np.ndarray  # (m,)
    loss: Loss
    spacing: float = 0.1

    def __post_init__(self) -> None:
        if not self.problem.attainable < 1:
            raise BnbookError(
                f"uᵀS⁻¹u is {self.problem.attainable:.3g}; expected less than 1 for a Gaussian z"
            )

    @cached_property
    def root(self) -> np.ndarray:
        """R (d, d) with R Rᵀ = S - uuᵀ"""
        return np.linalg.cholesky(self.problem.S - np.outer(self.problem.u, self.problem.u))

    def margins(self, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Nodes t (n, k) of zᵀw for the rows of `weights` (k, d) together, and their probabilities p (n,)."""
        spread = weights @ self.root
        _, sizes, axes = np.linalg.svd(spread, full_matrices=False)
        rank = int((sizes > 1e-9 * max(sizes[0], 1e-300)).sum())
        if rank > 2:
            raise BnbookError(f"the weights span {rank} dimensions; expected at most 2")
        nodes, p = (NODES[:, None], WEIGHTS) if rank <= 1 else plane(self.spacing)
        return weights @ self.problem.u + nodes @ (spread @ axes[: nodes.shape[1]].T).T, p

    def output(self, t: np.ndarray) -> np.ndarray:
        """F (n,) from margins t (n, m)."""
        return np.tanh(t) @ self.theta

    def value(self, W: np.ndarray) -> float:
        t, p = self.margins(W)
        return float(p @ self.loss.value(self.output(t)))

    def system(self, W: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """e (m,) and the symmetric M (m, m)."""
        t, p = self.margins(W)
        tanh = np.tanh(t)
        s, F = 1 - tanh**2, tanh @ self.theta
        first, second = p * self.loss.first(F), p * self.loss.second(F)
        scaled = s * self.theta
        M = scaled.T @ (second[:, None] * scaled) + np.diag(self.theta * (first @ (-2 * tanh * s)))
        return first @ scaled, M

    def gradient(self, W: np.ndarray) -> np.ndarray:
        """∇f (m, d), a row per unit."""
        e, M = self.system(W)
        return (e - M @ (W @ self.problem.u))[:, None] * self.problem.u + M @ W @ self.problem.S

    def direct_gradient(self, W: np.ndarray) -> np.ndarray:
        """∇f (m, d) by its definition, θ_i E[l' s_i z], without Stein's lemma; for d = 2 only."""
        if len(self.problem.u) != 2:
            raise BnbookError(f"d is {len(self.problem.u)}; expected 2 for an integral over the plane")
        nodes, p = plane(self.spacing)
        z = self.problem.u + nodes @ self.root.T
        tanh = np.tanh(z @ W.T)
        return ((p * self.loss.first(tanh @ self.theta))[:, None] * (1 - tanh**2) * self.theta).T @ z

    def squared_norm(self, gradient: np.ndarray) -> float:
        """Σ_i ‖∇_i f‖² in the norm of S⁻¹, for (m, d) or (d,)."""
        rows = np.atleast_2d(gradient)
        return float(np.einsum("ij,ij->", rows, np.linalg.solve(self.problem.S, rows.T).T))


def off_line(W: np.ndarray, problem: Quadratic) -> np.ndarray:
    """Distance of each weight from the line of S⁻¹u in the norm of S, (m,)."""
    across = W - (W @ problem.u / problem.attainable)[:, None] * problem.direction
    return np.sqrt(np.maximum(0, np.einsum("ij,jk,ik->i", across, problem.S, across)))


def draw_network(
    rng: np.random.Generator, loss: Loss, units: int, size: int, equal: bool, condition: float = 4.0
) -> TanhNetwork:
    """θ_i from 0.5 to 2, all equal or of either sign; L/μ up to `condition`; uᵀS⁻¹u from 0.05 to 0.5."""
    basis = np.linalg.qr(rng.standard_normal((size, size)))[0]
    spectrum = condition ** rng.uniform(0, 1, size) * 10 ** rng.uniform(-1, 1)
    S = (basis * spectrum) @ basis.T
    v = rng.standard_normal(size)
    u = (basis * np.sqrt(spectrum)) @ (v / np.linalg.norm(v) * np.sqrt(rng.uniform(0.05, 0.5)))
    theta = rng.uniform(0.5, 2, units) * np.sign(rng.standard_normal(units))
    return TanhNetwork(Quadratic((S + S.T) / 2, u), np.full(units, abs(theta[0])) if equal else theta, loss)


# ---- GDNP for one unit of the network at a time, the other units held fixed, and the bound on its gradient ----
# With o = Σ_{j≠i} M_ij w̃_j split as o = c S⁻¹u + o⊥ (uᵀo⊥ = 0), unit i sees ∇_i f = C₁ u + M_ii S w̃_i + S o⊥,
# C₁ = κ_i + c. Where o⊥ = 0 (the other units lie on the line of S⁻¹u, or are 0) this is the half-space's
# gradient, and
#     ‖∇_i f‖²_{S⁻¹} = C₁² (ρ(w_i) - ρ*) + (∂_γ f)²,   h = C₁ uᵀw_i.

BRACKET = (-4.0, 4.25)


@dataclass(frozen=True)
class UnitRun:
    """GDNP on one unit: weights, gradients, and whether each interval held a zero of the slope."""

    weights: np.ndarray  # (T+1, d), w̃_i
    gaps: np.ndarray  # (T+1,), ρ(w_i) - ρ*
    gradients: np.ndarray  # (T+1,), ‖∇_i f‖² in the norm of S⁻¹
    slopes: np.ndarray  # (T+1,), ∂f/∂γ
    first: np.ndarray  # (T+1,), C₁
    zero_inside: bool


def with_unit(W: np.ndarray, unit: int, weight: np.ndarray) -> np.ndarray:
    """W with one row replaced."""
    changed = W.copy()
    changed[unit] = weight
    return changed


def first_coefficient(network: TanhNetwork, W: np.ndarray, unit: int) -> float:
    """C₁ = e_i - Σ_j M_ij uᵀw̃_j + uᵀo / uᵀS⁻¹u"""
    e, M = network.system(W)
    along = W @ network.problem.u
    others = np.arange(len(W)) != unit
    return float(e[unit] - M[unit] @ along + M[unit, others] @ along[others] / network.problem.attainable)


def descend(
    network: TanhNetwork, W: np.ndarray, unit: int, w: np.ndarray, steps: int, iterations: int
) -> UnitRun:
    """GDNP on one unit from direction w, with the corrected h; length first, then the direction's step."""
    problem, found, inside = network.problem, [], True
    for _ in range(steps + 1):
        length = float(np.sqrt(w @ problem.S @ w))
        slope, ends = _slope(network, W, unit, w / length)
        inside = inside and ends[0] <= 0 <= ends[1]
        gamma = bisection(slope, *BRACKET, iterations)[0]
        weight = gamma * w / length
        now = with_unit(W, unit, weight)
        g, first = network.gradient(now)[unit], first_coefficient(network, now, unit)
        found.append(
            (
                weight,
                float(least_squares.gap(w, problem)),
                network.squared_norm(g),
                float(g @ w) / length,
                first,
            )
        )
        w = gdnp_step(w, gamma, g, first * float(problem.u @ w), problem)
    weights, gaps, gradients, slopes, firsts = (np.array(column) for column in zip(*found, strict=True))
    return UnitRun(weights, gaps, gradients, slopes, firsts, inside)


def _slope(network: TanhNetwork, W: np.ndarray, unit: int, direction: np.ndarray):
    """∂f/∂γ as a function of γ, for a direction with ‖w‖_S = 1; its values at the ends of the bracket."""
    t, p = network.margins(with_unit(W, unit, direction))
    mine, theta = t[:, unit], network.theta[unit]
    others = np.tanh(np.delete(t, unit, axis=1)) @ np.delete(network.theta, unit)

    def slope(gamma: float) -> float:
        tanh = np.tanh(gamma * mine)
        return float(p @ (network.loss.first(others + theta * tanh) * theta * (1 - tanh**2) * mine))

    return slope, (slope(BRACKET[0]), slope(BRACKET[1]))


def smoothness(network: TanhNetwork, unit: int) -> float:
    """ζ = L (θ² sup l'' + |θ| sup |l'| sup |tanh''|), a bound on the Hessian of f in one unit."""
    theta = abs(network.theta[unit])
    bend = theta**2 * network.loss.largest_second + theta * network.loss.largest_first * LARGEST_BEND
    return bend * network.problem.largest


def constant(network: TanhNetwork, W: np.ndarray, unit: int) -> float:
    """C, a bound on C₁² while |γ| stays in the bracket and the other units where they are in W."""
    theta, loss, kappa = np.abs(network.theta), network.loss, network.problem.attainable
    lengths = np.sqrt(np.einsum("ij,jk,ik->i", W, network.problem.S, W))
    others = np.arange(len(W)) != unit
    own = theta[unit] ** 2 * loss.largest_second + theta[unit] * loss.largest_first * LARGEST_BEND
    across = (
        theta[unit]
        * loss.largest_second
        * float(theta[others] @ lengths[others])
        * (1 - kappa)
        / np.sqrt(kappa)
    )
    return (theta[unit] * loss.largest_first + own * np.sqrt(kappa) * BRACKET[1] + across) ** 2


def unit_bound(
    network: TanhNetwork, W: np.ndarray, unit: int, t: int, gap: float, iterations: int, form: str
) -> float:
    """(1 - μ/L)^{2t} C gap_0 + 2^{-T_s} ζ |b - a| / μ² as printed; corrected + (2^{-T_s} ζ |b - a| / μ)²."""
    problem = network.problem
    halved = 2.0**-iterations * smoothness(network, unit) * (BRACKET[1] - BRACKET[0])
    of_length = halved / problem.smallest**2 if form == "printed" else (halved / problem.smallest) ** 2
    return problem.rate ** (2 * t) * constant(network, W, unit) * gap + of_length


# ---- The bound for one unit on many random networks, critical points of whole networks, passes over units ----

#: A critical point is off the line beyond this distance (norm of S), M singular below this relative size.
AWAY, SINGULAR = 1e-4, 1e-6


#: (network, W, run, halvings) -> of each step left over right side, printed and corrected, and the equality's error.
Sides = Callable[[TanhNetwork, np.ndarray, UnitRun, int], Iterable[tuple[float, float, float | None]]]


def unit_margins(seed: int, networks: int, steps: int, both_sides: Sides) -> dict[str, np.ndarray]:
    """Of the bound for one of two units, at every step of random runs: "printed" with the other unit anywhere,
    "on_line" as printed with the other unit on the line of S⁻¹u, "corrected" with the whole second term squared
    as well; "pythagoras" of the equality behind it. Runs whose interval holds no zero of the slope are left out.
    """
    rng = np.random.default_rng([seed, 7])
    found: dict[str, list[float]] = {name: [] for name in ("printed", "on_line", "corrected", "pythagoras")}
    for number in range(networks):
        loss = LOSSES[("logistic", "welsch")[number % 2]]
        network = draw_network(rng, loss, 2, int(rng.integers(2, 7)), False)
        problem, d = network.problem, len(network.problem.u)
        w, other = rng.standard_normal(d), rng.standard_normal(d)
        iterations = int(rng.integers(2, 15))  # beyond, the sums' own error would show
        lined = rng.uniform(-2, 2) / np.sqrt(problem.attainable) * problem.direction
        lined *= number % 3 > 0  # or 0
        for where, fixed in (("anywhere", other / np.sqrt(other @ problem.S @ other)), ("line", lined)):
            W = np.stack([np.zeros(d), fixed])
            run = descend(network, W, 0, w, steps, iterations)
            for printed, corrected, error in (
                both_sides(network, W, run, iterations) if run.zero_inside else ()
            ):
                found["printed" if where == "anywhere" else "on_line"].append(printed)
                if where == "line":
                    found["corrected"].append(corrected)
                    found["pythagoras"] += [] if error is None else [error]
    return {name: np.array(values) for name, values in found.items()}


def critical_points(network: TanhNetwork, rng: np.random.Generator, starts: int) -> list[np.ndarray]:
    """Bounded critical points W (m, d) of all units together, by descent of f, then Newton's method.

    Every other start lies on the line of S⁻¹u (which descent does not leave), the rest anywhere.
    """
    whiten = network.problem.whitening
    shape = (len(network.theta), len(network.problem.u))

    def unfold(z):
        return z.reshape(shape) @ whiten

    coarse, found = replace(network, spacing=0.2), []

    def gradient(z):
        return (network.direct_gradient(unfold(z)) @ whiten).ravel()

    def roughly(z):
        return (coarse.direct_gradient(unfold(z)) @ whiten).ravel()

    for number in range(starts):
        start = rng.standard_normal(shape)
        if number % 2:
            start = np.outer(start[:, 0], np.linalg.solve(whiten, network.problem.direction)) / np.sqrt(
                network.problem.attainable
            )
        start = start.ravel()
        near = minimize(
            lambda z: coarse.value(unfold(z)),
            start,
            jac=roughly,
            method="BFGS",
            options={"maxiter": 60, "gtol": 1e-6},
        )
        end = root(gradient, near.x, tol=1e-12)
        if np.abs(gradient(end.x)).max() < 1e-9 and np.abs(end.x).max() < 6:
            found.append(unfold(end.x))
    return found


def classify(network: TanhNetwork, points: list[np.ndarray]) -> dict[str, int]:
    """How many points there are, how many with a unit off the line; the same where M is invertible."""
    counts = {"found": 0, "off_line": 0, "regular_found": 0, "regular_off_line": 0}
    for W in points:
        away = bool(off_line(W, network.problem).max() > AWAY)
        sizes = np.abs(np.linalg.eigvalsh(network.system(W)[1]))
        regular = bool(sizes.min() > SINGULAR * sizes.max())
        counts["found"] += 1
        counts["off_line"] += away
        counts["regular_found"] += regular
        counts["regular_off_line"] += away and regular
    return counts


def search_points(seed: int, starts: int) -> tuple[dict[str, int], dict[str, np.ndarray]]:
    """How many critical points were found and how many of them off the line, by the result's name; and for
    each loss the places (k, 2) of all units along and across the line.

    points: of whole networks of two units, with equal output weights and with any; regular: M invertible.
    unit_points: of one unit, the other on the line or anywhere.
    """
    rng, places = np.random.default_rng([seed, 9]), {}
    kinds = ("found", "off_line", "regular_found", "regular_off_line")
    counts = {f"points.{kind}": 0 for kind in kinds}
    counts |= {f"unit_points.{kind}_{where}": 0 for kind in kinds[:2] for where in ("anywhere", "lined")}
    for name in ("logistic", "huber"):
        units: list[tuple[float, float]] = []
        of_loss = dict.fromkeys(kinds, 0)
        for equal in (True, False):
            network = draw_network(rng, LOSSES[name], 2, 2, equal)
            points = critical_points(network, rng, starts)
            for kind, number in classify(network, points).items():
                counts[f"points.{kind}"] += number
                of_loss[kind] += number
            for W in points:
                along = W @ network.problem.u / np.sqrt(network.problem.attainable)
                units += zip(-along, off_line(W, network.problem), strict=True)
        counts |= {f"{kind}_count.{name}": of_loss[kind] for kind in kinds[:2]}
        places[name] = np.array(units).reshape(-1, 2)
        for where, lined in (("anywhere", False), ("lined", True)):
            for _ in range(3):
                network = draw_network(rng, LOSSES[name], 2, 2, False)
                weight = one_unit(network, rng, lined)
                if weight is not None:
                    away = off_line(weight[None], network.problem)[0] > AWAY
                    counts[f"unit_points.found_{where}"] += 1
                    counts[f"unit_points.off_line_{where}"] += int(away)
    return counts, places


def one_unit(network: TanhNetwork, rng: np.random.Generator, on_line: bool) -> np.ndarray | None:
    """A bounded critical point of one of two units, the other on the line or anywhere; None if not found."""
    problem, whiten = network.problem, network.problem.whitening
    other = whiten @ rng.standard_normal(len(problem.u))
    if on_line:
        other = rng.uniform(-1.5, 1.5) / np.sqrt(problem.attainable) * problem.direction

    def gradient(z):
        return whiten @ network.direct_gradient(np.stack([whiten @ z, other]))[0]

    end = root(gradient, 0.7 * rng.standard_normal(len(problem.u)), tol=1e-12)
    if np.abs(gradient(end.x)).max() < 1e-9 and np.abs(end.x).max() < 6:
        return whiten @ end.x
    return None


# ---- Figures, of recorded results alone -------------------------------------------------------------------

#: Where the loss of two equal units is drawn: q across the line, p along it.
ACROSS, ALONG = np.linspace(-0.6, 0.6, 41), np.linspace(1.2, 3.2, 33)
PANELS = {
    "": {
        "printed": "printed: printed, other unit anywhere",
        "on_line": "l2: printed, other unit on the line",
        "corrected": "corrected: corrected, other unit on the line",
    }
}


def two_units(results: Mapping[str, np.ndarray]) -> plt.Figure:
    """Left, the loss above its minimum (across, along) of two equal units, its saddle and minimum; right, by
    loss, the units' places (1, k, 2) at critical points of random networks."""
    fig, (left, right) = subplots(1, 2, figsize=(7.4, 3.7))
    surface, p, q, p_on_line = (
        results[name][0]
        for name in ("curve.critical_points.surface", "example.p", "example.q", "example.p_on_line")
    )
    left.contour(ALONG, ACROSS, surface, levels=np.geomspace(4e-6, 4e-3, 16), cmap="cividis", linewidths=0.9)
    left.plot(ALONG, 0 * ALONG, "--", color=THEORY, linewidth=1, label="line of $S^{-1}u$")
    left.plot(p_on_line, 0, "o", color=THEORY, markersize=6, label="saddle")
    left.plot([p, p], [q, -q], "D", color=WRONG, markersize=6, label="minimum")
    left.set(xlabel="$p$, along the line", ylabel="$q$, across", title="two equal units")
    left.legend(loc="upper right", fontsize=8.5)
    for name, marker, face in (("logistic", "D", "none"), ("huber", "o", THEORY)):
        dots = {"color": THEORY, "markerfacecolor": face, "markersize": 4.5, "alpha": 0.7}
        places = results[f"curve.critical_points.{name}"].reshape(-1, 2)
        right.plot(*places.T, marker, label=f"{name} loss", **dots)
    right.axhline(0, color=THEORY, linewidth=1, linestyle="--")
    right.set(xlabel="along the line", ylabel="distance from the line", title="random networks")
    right.legend(title="critical points", loc="upper left", fontsize=8.5)  # full and empty: names do not tell
    return fig


def margins(results: Mapping[str, np.ndarray]) -> plt.Figure:
    """Left over right side of the bound for one unit."""
    return draw_ratios(results, PANELS, (-12, 8))


def passes(results: Mapping[str, np.ndarray]) -> plt.Figure:
    """The whole squared gradient after one pass (S, lengths) and after each of many passes (S, passes)."""
    whole = dict(also=lambda ax: ax.xaxis.set_major_locator(MaxNLocator(integer=True)))
    panels = [
        Panel(curve="single", x="length", title="one pass", xlabel="steps for each unit $T_d$"),
        Panel(curve="many", title="repeated passes, $T_d=4$", xlabel="passes", **whole),
    ]
    words = dict(by="geometric", look="o-", log="y", ylabel=r"$\sum_i\|\nabla_i f\|^2$ (norm of $S^{-1}$)")
    return compare(
        points_of(results, "passes"),
        panels,
        {"all": dict(color=APART)},
        figsize=(7.2, 3.4),
        sharey=True,
        **words,
    )
