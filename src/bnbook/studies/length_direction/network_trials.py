"""The bound for one unit on many random networks, critical points of whole networks, passes over units."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.optimize import minimize, root

from bnbook.studies.length_direction import unit_descent
from bnbook.studies.length_direction.losses import LOSSES
from bnbook.studies.length_direction.network import TanhNetwork, draw_network, off_line

#: A critical point is off the line beyond this distance (norm of S), M singular below this relative size.
AWAY, SINGULAR = 1e-4, 1e-6


def unit_margins(seed: int, networks: int, steps: int) -> dict[str, np.ndarray]:
    """Left over right side of the bound for one of two units, at every step: "printed" with the other unit
    anywhere, "on_line" as printed with the other unit on the line of S⁻¹u, "corrected" with the whole second
    term squared as well; "pythagoras" is the relative error of the equality behind it. Runs whose interval
    holds no zero of the slope are left out.
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
            run = unit_descent.descend(network, W, 0, w, steps, iterations)
            for t, left in enumerate(run.gradients if run.zero_inside else ()):
                printed, corrected = (
                    left / unit_descent.unit_bound(network, W, 0, t, run.gaps[0], iterations, form)
                    for form in ("printed", "corrected")
                )
                if where == "anywhere":
                    found["printed"].append(printed)
                    continue
                found["on_line"].append(printed)
                found["corrected"].append(corrected)
                if left > 1e-12:
                    whole = run.first[t] ** 2 * run.gaps[t] + run.slopes[t] ** 2
                    found["pythagoras"].append(abs(whole - left) / left)
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


def passes(
    seed: int, units: int, lengths: list[int], sweeps: int
) -> tuple[np.ndarray, np.ndarray, TanhNetwork]:
    """Σ_i ‖∇_i f‖² after one pass with T_d steps for each unit, for each T_d; and after each of many passes
    with T_d = 4.

    Equal output weights, d = 2, logistic loss; all units start at 0, and what enters GDNP are random
    directions.
    """
    rng = np.random.default_rng([seed, 8])
    network = draw_network(rng, LOSSES["logistic"], units, 2, True)
    network = replace(network, theta=np.full(units, 2.0 / units), spacing=0.2)
    starts, zero = rng.standard_normal((units, 2)), np.zeros((units, 2))
    single = [unit_descent.sweep(network, zero, steps, 30, starts) for steps in lengths]
    W, many = zero, []
    for _ in range(sweeps):
        W = unit_descent.sweep(network, W, 4, 30, starts)
        many.append(network.squared_norm(network.gradient(W)))
    return np.array([network.squared_norm(network.gradient(W)) for W in single]), np.array(many), network
