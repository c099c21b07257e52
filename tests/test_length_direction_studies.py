"""What the chapters on length and direction measure: searches, tallies, fits, and both sides of formulas."""

from __future__ import annotations

import math

import numpy as np
import pytest

from bnbook.chapters import halfspaces, least_squares, length_direction, neural_networks
from bnbook.chapters.halfspaces import Gaussian, draw_gaussian
from bnbook.chapters.length_direction import LOSSES, Quadratic, Ratios, tally


def test_ratios_are_counted_by_quarter_decades():
    counts = tally([np.array([1.0, 1.01, 0.0, np.inf]), np.array([1e-1, 10.0, 1e9])], (-1, 1))
    assert counts.tolist() == [[1, 0, 0, 1, 1, 0, 0, 1], [1, 0, 0, 0, 0, 0, 0, 2]]  # 1 counts below
    seen = Ratios(np.array([0.5, 1.0, 1 + 2e-9, np.inf, np.nan]))
    assert (seen.violations, seen.trials) == (3, 5)


def test_decay_rate_between_two_levels():
    excess = np.exp(-0.3 * np.arange(40.0))
    excess[:5] = 7.0
    assert length_direction.decay_rate(excess, 1e-1, 1e-4) == pytest.approx(-0.3)
    assert math.isnan(length_direction.decay_rate(excess[:10], 1e-1, 1e-4))


def test_largest_difference_of_both_sides():
    sets = list(least_squares.data_sets(3, 5))
    assert all(abs(x.mean(axis=0)).max() < 1e-9 * abs(x).max() for x, *_ in sets)

    def both_sides(x, y, w, gamma):
        yield "same", x, x
        yield "double", np.ones(2), 2 * np.ones(2)
        yield "sized", gamma, gamma + 1, 4.0
        yield "sized", gamma, gamma - 2, 4.0

    assert least_squares.worst_differences(both_sides, 3, 5) == pytest.approx(
        {"same": 0.0, "double": 1 / 3, "sized": 1 / 2}
    )
    assert least_squares.not_convex(0, 10, "corrected") == 0 < least_squares.not_convex(0, 10, "printed")


def test_search_for_critical_points_of_half_spaces():
    halfspace = draw_gaussian(np.random.default_rng(0), LOSSES["huber"], 2)
    weight = np.array([0.3, -0.2]) / halfspace.length(np.array([0.3, -0.2]))
    assert halfspaces.plane_gradient(halfspace, weight) == pytest.approx(halfspace.gradient(weight))
    error, found, away = halfspaces.search_line(1, 3)
    assert error < 1e-9 and list(found) == list(away) == list(LOSSES)
    assert all(away[name] <= found[name] for name in found)
    assert sum(away[name] for name, loss in LOSSES.items() if loss.turns <= 1) == 0 < found["logistic"]

    ripple = Gaussian(Quadratic(np.eye(2), np.array([0.5, 0.0])), LOSSES["ripple"])
    on_line, off_line = halfspaces.critical_points_in_plane(ripple, 1.5)
    assert abs(on_line[:, 1]).max() < 1e-6
    assert {(round(a, 6), round(abs(b), 6)) for a, b in off_line} == {(0.0, 1.0)}  # (0, ±1), from the text


def test_search_for_critical_points_of_networks():
    counts, places = neural_networks.search_points(0, 1)
    assert counts["points.found"] == sum(counts[f"found_count.{name}"] for name in places)
    assert counts["points.off_line"] == sum(counts[f"off_line_count.{name}"] for name in places)
    assert counts["points.regular_off_line"] == 0 == counts["unit_points.off_line_lined"]
    assert sum(map(len, places.values())) == 2 * counts["points.found"] > 0  # two units each
    assert all((points[:, 1] >= 0).all() for points in places.values())


def test_what_races_start_from():
    halfspace, w = halfspaces.draw_race(np.random.default_rng(0))
    problem = halfspace.problem
    assert (problem.attainable, problem.largest / problem.smallest) == pytest.approx((0.5, 30))
    assert len(w) == 20 and halfspace.loss.name == "logistic"
    assert problem.whitening @ problem.S @ problem.whitening == pytest.approx(np.eye(20), abs=1e-12)
