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


def test_least_squares():
    assert least_squares.norm(W, PROBLEM.S) == 10
    assert least_squares.weight(W, 2.0, PROBLEM.S) == pytest.approx([1.4, 0.1])
    assert least_squares.objective(W, 2.0, PROBLEM) == pytest.approx(4 * 6.4 / 10 + 4)
    assert least_squares.objective(W, 2.0, PROBLEM, "printed") == pytest.approx(4 * 6.4 / (10 + 4))
    assert least_squares.optimal_length(W, PROBLEM) == pytest.approx(-0.64)
    assert least_squares.rho(W, PROBLEM) == pytest.approx(-0.4096)
    assert least_squares.gap(W, PROBLEM) == pytest.approx(0.2304)
    # -2 (6.4 u - 0.4096 Sw) / 100
    slope = [-2 * (5.12 - 5.7344) / 100, -2 * (10.24 - 1.6384) / 100]
    assert least_squares.gradient(W, PROBLEM) == pytest.approx(slope)
    assert least_squares.step_size(W, PROBLEM) == pytest.approx(100 / (2 * 8 * 0.4096))
    path = least_squares.descend(W, PROBLEM, 2, factor=0.5)
    assert path[1] == pytest.approx(W - 0.5 * 100 / 6.5536 * np.array(slope)) and path.shape == (3, 2)
    assert least_squares.weights_at_best_length(W[None], PROBLEM)[0] == pytest.approx(-0.064 * W)


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


def test_half_spaces():
    assert HUBER.length(W) == 10 and HUBER.value(np.zeros(2)) == pytest.approx(math.sqrt(2))
    points, weights = HUBER.margins(W)  # mean 0.64, standard deviation √(1 - 0.64²)
    assert weights.sum() == pytest.approx(1) and weights @ points == pytest.approx(0.64)
    assert weights @ points**2 == pytest.approx(1)
    first, second = (HUBER.expectation(f, W) for f in (HUBER.loss.first, HUBER.loss.second))
    assert HUBER.coefficients(W) == pytest.approx((first - 6.4 * second, second))
    for gamma in (2.0, -0.7):
        first, second = (HUBER.expectation(f, gamma * W / 10) for f in (HUBER.loss.first, HUBER.loss.second))
        if gamma > 0:  # for γ < 0 the margins are those of -w
            assert halfspaces.criterion(W, gamma, HUBER, "printed") == pytest.approx(
                first * 6.4 - second * 6.4**2
            )
        corrected = first * 6.4 - second * 6.4**2 * gamma / 10
        assert halfspaces.criterion(W, gamma, HUBER) == pytest.approx(corrected)
        s = -(10**3) / (8 * gamma * corrected)
        expected = W - s * HUBER.gradient_in_direction(W, gamma)
        assert halfspaces.next_direction(W, gamma, HUBER) == pytest.approx(expected)
    assert halfspaces.next_direction(W, 0.0, HUBER) is W


def test_examples_of_a_half_space():
    x, y = np.array([[1.0, 0], [3, 2], [2, 7]]), np.array([1.0, -1, 1])
    found = halfspaces.from_labelled(x, y, LOSSES["logistic"])
    assert found.z.tolist() == [[1, 3], [1, -1], [0, -4]]  # centred at (2, 3)
    moved = halfspaces.from_labelled(x + 5, y, LOSSES["logistic"])
    assert moved.z == pytest.approx(found.z)
    assert pytest.approx(np.array([[2, 2], [2, 26]]) / 3) == found.problem.S
    assert found.problem.u == pytest.approx([2 / 3, -2 / 3])
    points, weights = found.margins(np.array([1.0, 0]))
    assert points == pytest.approx(np.array([1, 1, 0]) / math.sqrt(2 / 3)) and weights.tolist() == [1 / 3] * 3
    with pytest.raises(BnbookError, match="expected both of -1 and 1"):
        halfspaces.from_labelled(x, np.array([1.0, 0, -1]), LOSSES["logistic"])


def test_bisection():
    assert halfspaces.bisection(lambda g: g - 0.3, 0.0, 1.0, 3) == (0.25, 0.375)
    assert halfspaces.bisection(lambda g: g, -1.0, 1.0, 1) == (-1.0, 0.0)  # a zero is not below zero
    assert halfspaces.bisection(lambda g: 1.0, -1.0, 1.0, 50)[1] < -1 + 1e-12
    run = halfspaces.gdnp(HUBER, W, 1, 5)
    slope = lambda g: HUBER.slope(*HUBER.margins(W), g)
    assert run.lengths[0] == halfspaces.bisection(slope, -16.0, 16.5, 5)[0] and len(run.lengths) == 2
    assert run.directions[1] == pytest.approx(halfspaces.next_direction(W, run.lengths[0], HUBER))
    assert run.weight(0, HUBER) == pytest.approx(run.lengths[0] * W / 10)
    default = halfspaces.gdnp(HUBER, W, 0).lengths[0]
    assert default == halfspaces.bisection(slope, -16.0, 16.5, 40)[0]


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


def test_races_against_loops():
    logistic = halfspaces.Gaussian(PROBLEM, LOSSES["logistic"])
    best = halfspaces.best_weight(logistic)
    assert best == pytest.approx([-2 * 0.4 / 0.36, -2 * 0.2 / 0.36])
    race = page_cells.functions("decoupling/halfspaces", steps=4)["race"]
    found, run = race(logistic, W), halfspaces.gdnp(logistic, W, 4, 50)
    share = lambda v: (logistic.value(v) - logistic.value(best)) / (math.log(2) - logistic.value(best))
    start = before = slow = run.lengths[0] * W / 10
    fast = slow
    for t in range(5):
        shares = [found[name][t] for name in ("gdnp", "gradient_descent", "accelerated")]
        assert shares == pytest.approx([share(v) for v in (run.weight(t, logistic), slow, fast)])
        slow = slow - logistic.gradient(slow) / 2  # ζ = 8/4
        ahead = fast + t / (t + 3) * (fast - before)
        before, fast = fast, ahead - logistic.gradient(ahead) / 2
    assert found["gdnp"][0] == pytest.approx(share(start))
    excess = np.array([1.0, 0.2, 0.5, 0.1, 0.1])
    steps_to = length_direction.steps_to
    assert [steps_to(excess, target) for target in (2.0, 0.5, 0.2, 0.1, 0.05)] == [0, 1, 3, 3, 5]
    assert steps_to(np.array([1.0, math.nan, 0.1]), 0.5) == 2
    assert halfspaces.alignment(logistic) == pytest.approx(1)


def test_principal_components():
    images, labels = np.array([[0.0, 0], [2, 0], [9, 9], [0, 8], [2, 8]]), np.array([3, 3, 5, 4, 4])
    x, y = halfspaces.principal(images, labels, (4, 3), 2)
    assert y.tolist() == [1, 1, -1, -1]  # the first of the classes is -1
    assert np.abs(x) == pytest.approx(np.array([[4.0, 1]] * 4)) and x.sum(0) == pytest.approx([0, 0])


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


def test_margins_of_the_rayleigh_bounds():
    """From ρ = 2.5 to 2.75: q of the pair 1/3 to 1/7, of B 1 to 1/3."""
    of = lambda name, t=1, new=2.75: least_squares._one_margin(name, 2.5, new, t, PENCIL)
    assert of("printed") == pytest.approx((1 / 3) / (4 / 9)) and of("printed", 2) == pytest.approx(27 / 16)
    assert of("charitable") == pytest.approx((1 / 7) / (1 / 9 / 3))
    assert of("corrected") == pytest.approx((1 / 7) / (25 / 36 / 3))
    assert of("printed", 0) == pytest.approx(1 / 3)
    # A right side below rounding: violated without end, or not at all.
    assert of("printed", 40) == math.inf and of("printed", 40, 3.0) == 0.0


def test_margins_of_the_linear_bound():
    ratio = least_squares.linear_margins(np.array([4.0, 2.25]), PROBLEM)
    assert ratio == pytest.approx([1.0])  # 4 · 9/16; the start is not counted
    assert least_squares.linear_margins(np.array([1.0, 1.0, 1.0]), PROBLEM, 4.0) == pytest.approx(
        [(4 / 3) ** 4, (4 / 3) ** 8]
    )
    assert len(least_squares.linear_margins(np.array([1.0, 1e-21, 1e-19]), PROBLEM)) == 1
    round_ = Quadratic(np.eye(2), np.ones(2))
    assert least_squares.linear_margins(np.array([1.0, 0.5]), round_) == [math.inf]
    seen = length_direction.Ratios(np.array([0.5, 1.0, 1 + 1e-10, 1 + 1e-8, np.inf, np.nan]))
    assert (seen.violations, seen.trials) == (3, 6)
    counts = tally([np.array([1.0, 1.01, 0.0, np.inf]), np.array([1e-1, 10.0, 1e9])], (-1, 1))
    assert counts.tolist() == [[1, 0, 0, 1, 1, 0, 0, 1], [1, 0, 0, 0, 0, 0, 0, 2]]  # 1 counts below


def test_decay_rate_between_two_levels():
    excess = np.exp(-0.3 * np.arange(40.0))
    excess[:5] = 7.0
    assert length_direction.decay_rate(excess, 1e-1, 1e-4) == pytest.approx(-0.3)
    assert math.isnan(length_direction.decay_rate(excess[:10], 1e-1, 1e-4))


def test_largest_difference_of_both_sides():
    def both_sides(x, y, w, gamma):
        assert abs(x.mean(axis=0)).max() < 1e-9 * abs(x).max()
        yield "same", x, x
        yield "double", np.ones(2), 2 * np.ones(2)
        yield "sized", gamma, gamma + 1, 4.0
        yield "sized", gamma, gamma - 2, 4.0

    found = least_squares.worst_differences(both_sides, 3, 5)
    assert found == pytest.approx({"same": 0.0, "double": 1 / 3, "sized": 1 / 2})
    assert least_squares.not_convex(0, 10, "corrected") == 0 < least_squares.not_convex(0, 10, "printed")


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


def test_the_coefficient_of_one_unit():
    """∇_i f = C₁ u + M_ii S w̃_i + S o⊥, the other units anywhere."""
    rng = np.random.default_rng(0)
    for unit in (0, 1):
        weights = rng.standard_normal((2, 2)) / 2
        M = NETWORK.system(weights)[1]
        other = M[unit, 1 - unit] * weights[1 - unit]
        across = other - PROBLEM.u @ other / 0.64 * PROBLEM.direction
        expected = neural_networks.first_coefficient(NETWORK, weights, unit) * PROBLEM.u
        expected = expected + PROBLEM.S @ (M[unit, unit] * weights[unit] + across)
        assert NETWORK.gradient(weights)[unit] == pytest.approx(expected)


def test_one_pass_over_the_units():
    """Each in turn, from its own weight or, where that is 0, from its start; the next sees it moved."""
    weights, starts = np.array([[0.0, 0.0], [0.3, -0.2]]), np.array([[1.0, 2.0], [5.0, 5.0]])
    first = neural_networks.descend(NETWORK, weights, 0, starts[0], 2, 30).weights[-1]
    between = np.stack([first, weights[1]])
    second = neural_networks.descend(NETWORK, between, 1, weights[1], 2, 30).weights[-1]
    one_pass = page_cells.functions("decoupling/neural-networks")["one_pass"]
    assert one_pass(NETWORK, weights, 2, starts) == pytest.approx(np.stack([first, second]))
    assert weights.tolist() == [[0, 0], [0.3, -0.2]]


def test_distances_from_the_line():
    """(1, 1) less 2.4/0.64 S⁻¹u = (1.5, 0.75) is (-0.5, 0.25), of length √(0.5 + 0.5) in the norm of S."""
    points = np.array([[1.0, 1.0], [0.8, 0.4], [0.0, 0.0]])
    assert off_line(points, PROBLEM) == pytest.approx([1, 0, 0], abs=1e-9)
    assert halfspaces.sine_off_line(points, HUBER) == pytest.approx([1 / math.sqrt(10), 0, 0], abs=1e-7)
    assert len(halfspaces.sine_off_line(np.zeros((0, 2)), HUBER)) == 0


def test_classes_of_critical_points():
    """Two equal units: at equal weights M is not singular, at mirrored ones (±) it is."""
    network = TanhNetwork(
        Quadratic(np.eye(2), np.array([-0.5, 0.0])), np.array([0.5, 0.5]), LOSSES["logistic"]
    )
    from scipy.optimize import root

    p, q = root(lambda v: network.gradient(np.array([[v[0], v[1]], [v[0], -v[1]]]))[0], [2.0, 0.25]).x
    points = [
        np.array([[p, q], [p, -q]]),
        np.array([[1.0, 0.0], [0.5, 0.0]]),
        np.array([[1.0, 1e-3], [0.5, 0]]),
    ]
    counts = neural_networks.classify(network, points)
    assert counts == {"found": 3, "off_line": 2, "regular_found": 2, "regular_off_line": 1}
