"""The formulas of length and direction once each, with numbers that were worked out on paper.

The problem of all of them: S = diag(2, 8), u = (0.8, 1.6). So μ = 2, L = 8, 1 - μ/L = 3/4, S⁻¹u = (0.4, 0.2),
κ = uᵀS⁻¹u = 0.64. With w = (7, 0.5): Sw = (14, 4), ‖w‖²_S = 100, uᵀw = 6.4, ρ(w) = -0.4096, gap 0.2304.
"""

from __future__ import annotations

import math

import numpy as np
import page_cells
import pytest

from bnbook.chapters import halfspaces, least_squares, length_direction, neural_networks
from bnbook.chapters.length_direction import LOSSES, Quadratic, from_examples, tally
from bnbook.chapters.neural_networks import LARGEST_BEND, TanhNetwork, off_line
from bnbook.errors import BnbookError

PROBLEM = Quadratic(np.diag([2.0, 8.0]), np.array([0.8, 1.6]))
W = np.array([7.0, 0.5])
HUBER = halfspaces.Gaussian(PROBLEM, LOSSES["huber"])  # sup |φ'| = sup |φ''| = 1


def test_the_problem():
    assert (PROBLEM.smallest, PROBLEM.largest, PROBLEM.rate) == (2, 8, 0.75)
    assert PROBLEM.direction == pytest.approx([0.4, 0.2]) and PROBLEM.attainable == pytest.approx(0.64)
    assert PROBLEM.value(W) == pytest.approx(2 * 6.4 + 100)
    assert PROBLEM.gradient(W) == pytest.approx([2 * 14.8, 2 * 5.6])
    assert PROBLEM.excess(np.stack([W, 0 * W])) == pytest.approx([112.8 + 0.64, 0.64])
    examples = from_examples(np.array([[1.0, 0], [1, 2]]), np.array([3.0, -1]))
    assert examples.S.tolist() == [[1, 1], [1, 2]] and examples.u.tolist() == [-1, 1]
    with pytest.raises(BnbookError, match="symmetric"):
        Quadratic(np.array([[1.0, 0.1], [0.0, 1.0]]), np.ones(2))
    with pytest.raises(BnbookError, match="positive definite"):
        Quadratic(np.diag([1.0, 0.0]), np.ones(2))


def test_bounds():
    assert halfspaces.smoothness(HUBER) == 8
    assert halfspaces.smoothness(halfspaces.Gaussian(PROBLEM, LOSSES["logistic"])) == 2
    assert halfspaces.phi(HUBER, "printed") == 1 and halfspaces.phi(HUBER, "corrected") == pytest.approx(
        1 / 0.6
    )
    welsch = halfspaces.Gaussian(PROBLEM, LOSSES["welsch"])
    assert halfspaces.phi(welsch, "printed") == pytest.approx(math.exp(-0.5))
    assert halfspaces.length_bound(HUBER, 3, 8.0, "printed") == pytest.approx(8 * 8 / 8 / 4)
    assert halfspaces.length_bound(HUBER, 3, 8.0, "corrected") == pytest.approx((8 / 2) ** 2)
    assert halfspaces.direction_bound(HUBER, 3, 0.5, "printed") == pytest.approx(0.75**6 * 0.5)
    assert halfspaces.direction_bound(HUBER, 3, 0.5, "corrected") == pytest.approx(0.75**6 * 0.5 / 0.36)
    vector = np.array([2.0, 4.0])
    assert halfspaces.squared_norm(vector, HUBER, "printed") == 20
    assert halfspaces.squared_norm(vector, HUBER, "corrected") == pytest.approx(4 / 2 + 16 / 8)


def test_gradient_descents_step_by_step():
    slope = lambda w: 2 * w
    assert length_direction.plain(slope, np.array([1.0]), 0.25, 3)[:, 0] == pytest.approx(
        [1, 1 / 2, 1 / 4, 1 / 8]
    )
    # v = w + (w - before)/2, then v/2: 1, 1/2, (1/2 - 1/4)/2, (1/8 - 3/16)/2
    path = length_direction.accelerated(slope, np.array([1.0]), 0.25, 0.5, 3)
    assert path[:, 0] == pytest.approx([1, 1 / 2, 1 / 8, -1 / 32])
    # β = 0, 1/4, 2/5: 1, 1/2, (1/2 - 1/8)/2 = 3/16, (3/16 - 2/5 · 5/16)/2 = 1/32
    path = length_direction.accelerated(slope, np.array([1.0]), 0.25, None, 3)
    assert path[:, 0] == pytest.approx([1, 1 / 2, 3 / 16, 1 / 32])
    assert length_direction.momentum_for(4.0) == pytest.approx(1 / 3)


PENCIL = least_squares.make_pencil(
    np.diag([3.0, 2, 0]), np.diag([1.0, 2, 4])
)  # pair 3, 1, 0; B 3, 2, 0; A 1, 2, 4


def test_rayleigh_quotients():
    w = np.ones(3)
    assert least_squares.quotient(w, PENCIL) == pytest.approx(5 / 7)
    # w + (16, 4, -20)/7 / (4 · 5/7)
    assert least_squares.fixed_step(w, PENCIL) == pytest.approx([1.8, 1.2, 0.0])
    ascent = np.array([16.0, 4, -20]) / 7
    best = max(least_squares.quotient(w + s * ascent, PENCIL) for s in np.linspace(0, 20, 20001))
    step = least_squares.best_step(w, PENCIL)
    assert least_squares.quotient(step, PENCIL) == pytest.approx(best, rel=1e-6) and step @ PENCIL.A @ w > 0
    assert least_squares.shortfall(2.5, PENCIL.of_pair) == pytest.approx(0.5 / 1.5)
    assert least_squares.printed_factor(PENCIL, 1) == pytest.approx((1 - 1 / 3) ** 2)
    assert least_squares.printed_factor(PENCIL, 3) == pytest.approx((1 - 1 / 3) ** 6)
    assert least_squares.corrected_factor(PENCIL) == pytest.approx((1 - 1 / 4 * 2 / 3) ** 2)


def test_margins_of_the_linear_bound():
    ratio = least_squares.linear_margins(np.array([4.0, 2.25]), PROBLEM)
    assert ratio == pytest.approx([1.0])  # 4 · 9/16; the start is not counted
    assert least_squares.linear_margins(np.array([1.0, 1.0, 1.0]), PROBLEM, 4.0) == pytest.approx(
        [(4 / 3) ** 4, (4 / 3) ** 8]
    )
    floor = (
        4 * 2.220446e-16 / 1e-9
    ) ** 2 * PROBLEM.attainable  # below it rounding is above the slack of 1e-9
    assert len(least_squares.linear_margins(np.array([1.0, 0.99 * floor, 1.01 * floor]), PROBLEM)) == 1
    round_ = Quadratic(np.eye(2), np.ones(2))
    assert least_squares.linear_margins(np.array([1.0, 0.5]), round_) == [math.inf]
    seen = length_direction.Ratios(np.array([0.5, 1.0, 1 + 1e-10, 1 + 1e-8, np.inf, np.nan]))
    assert (seen.violations, seen.trials) == (3, 6)
    excess = np.array([1.0, 0.2, 0.5, 0.1, 0.1])
    steps_to = length_direction.steps_to
    assert [steps_to(excess, target) for target in (2.0, 0.5, 0.2, 0.1, 0.05)] == [0, 1, 3, 3, 5]
    assert steps_to(np.array([1.0, math.nan, 0.1]), 0.5) == 2
    counts = tally([np.array([1.0, 1.01, 0.0, np.inf]), np.array([1e-1, 10.0, 1e9])], (-1, 1))
    assert counts.tolist() == [[1, 0, 0, 1, 1, 0, 0, 1], [1, 0, 0, 0, 0, 0, 0, 2]]  # 1 counts below


NETWORK = TanhNetwork(PROBLEM, np.array([-0.5, 2.0]), LOSSES["huber"])


def test_the_constants_of_the_bound_for_one_unit():
    t = np.linspace(-3, 3, 100_001)
    assert pytest.approx(np.abs(2 * np.tanh(t) * (1 - np.tanh(t) ** 2)).max()) == LARGEST_BEND
    own = 0.25 + 0.5 * LARGEST_BEND
    assert neural_networks.smoothness(NETWORK, 0) == pytest.approx(8 * own)
    weights = np.stack([np.zeros(2), W])  # ‖w̃_2‖_S = 10
    # 0.5 + own √0.64 · 4.25 + 0.5 · (2 · 10) · 0.36 / 0.8
    constant = (0.5 + own * 0.8 * 4.25 + 4.5) ** 2
    assert neural_networks.constant(NETWORK, weights, 0) == pytest.approx(constant)
    bound = [neural_networks.unit_bound(NETWORK, weights, 0, 3, 0.5, 3, f) for f in ("printed", "corrected")]
    of_length = 8 * own * 8.25 / 8
    expected = [of_length / 4, (of_length / 2) ** 2]
    assert np.array(bound) - 0.75**6 * constant * 0.5 == pytest.approx(expected)


def test_one_pass_over_the_units():
    """Each in turn, from its own weight or, where that is 0, from its start; the next sees it moved."""
    weights, starts = np.array([[0.0, 0.0], [0.3, -0.2]]), np.array([[1.0, 2.0], [5.0, 5.0]])
    first = neural_networks.descend(NETWORK, weights, 0, starts[0], 2, 30).weights[-1]
    between = np.stack([first, weights[1]])
    second = neural_networks.descend(NETWORK, between, 1, weights[1], 2, 30).weights[-1]
    one_pass = page_cells.functions("decoupling/neural-networks")["one_pass"]
    assert one_pass(NETWORK, weights, 2, starts) == pytest.approx(np.stack([first, second]))


def test_distances_from_the_line():
    """(1, 1) less 2.4/0.64 S⁻¹u = (1.5, 0.75) is (-0.5, 0.25), of length √(0.5 + 0.5) in the norm of S."""
    points = np.array([[1.0, 1.0], [0.8, 0.4], [0.0, 0.0]])
    assert off_line(points, PROBLEM) == pytest.approx([1, 0, 0], abs=1e-9)
    assert halfspaces.sine_off_line(points, HUBER) == pytest.approx([1 / math.sqrt(10), 0, 0], abs=1e-7)
    assert len(halfspaces.sine_off_line(np.zeros((0, 2)), HUBER)) == 0
