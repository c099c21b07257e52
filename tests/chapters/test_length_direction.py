"""Length and direction: formulas against autograd, the plane, fractions and numbers that were worked out on paper.

The problem on paper: S = diag(2, 8), u = (0.8, 1.6). So μ = 2, L = 8, 1 - μ/L = 3/4, S⁻¹u = (0.4, 0.2),
κ = uᵀS⁻¹u = 0.64. With w = (7, 0.5): Sw = (14, 4), ‖w‖²_S = 100, uᵀw = 6.4, ρ(w) = -0.4096, gap 0.2304.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction as F
from types import SimpleNamespace

import numpy as np
import page_cells
import pytest
import torch
from torch.autograd.functional import hessian, jacobian

from bnbook.chapters import length_direction
from bnbook.chapters.length_direction import (
    KINDS,
    LOSSES,
    NODES,
    WEIGHTS,
    Quadratic,
    bisection,
    draw_quadratic,
    least_squares_step,
    plane,
)
from bnbook.errors import BnbookError

of_least_squares, of_halfspaces, of_networks = (
    SimpleNamespace(**page_cells.functions(f"decoupling/{name}", BRACKET=bracket, AWAY=1e-5))
    for name, bracket in (
        ("least-squares", None),
        ("halfspaces", (-16.0, 16.5)),
        ("neural-networks", (-4.0, 4.25)),
    )
)
HalfSpace, TanhNetwork = of_halfspaces.HalfSpace, of_networks.TanhNetwork

PROBLEM = Quadratic(np.diag([2.0, 8.0]), np.array([0.8, 1.6]))
W = np.array([7.0, 0.5])
HUBER = HalfSpace(PROBLEM, LOSSES["huber"])  # sup |φ'| = sup |φ''| = 1
NETWORK = TanhNetwork(PROBLEM, np.array([-0.5, 2.0]), LOSSES["huber"])
TORCH = {
    "logistic": torch.nn.functional.softplus,
    "huber": lambda t: (1 + (t + 1) ** 2).sqrt(),
    "welsch": lambda t: 1 - torch.exp(-((t + 1) ** 2) / 2),
    "sigmoid": torch.sigmoid,
    "ripple": lambda t: t - np.exp(0.5) * torch.sin(t),
}


def close(found, expected, rtol, atol=0.0):
    """atol: as a share of the largest."""
    np.testing.assert_allclose(found, expected, rtol=rtol, atol=atol * np.abs(expected).max())


# ---- On paper ---------------------------------------------------------------------------------------------


def test_the_problem():
    assert (PROBLEM.smallest, PROBLEM.largest, PROBLEM.rate) == (2, 8, 0.75)
    assert PROBLEM.gradient(W) == pytest.approx([2 * 14.8, 2 * 5.6])
    assert PROBLEM.excess(np.stack([W, 0 * W])) == pytest.approx([2 * 6.4 + 100 + 0.64, 0.64])
    assert (PROBLEM.norm(W), PROBLEM.rho(W), PROBLEM.gap(W)) == pytest.approx((10, -0.4096, 0.2304))


def test_bounds_of_gdnp():
    logistic, welsch = (HalfSpace(PROBLEM, LOSSES[name]) for name in ("logistic", "welsch"))
    sides = lambda half, t, gap, form: of_halfspaces.right_sides(half, t, gap, 3, form)
    width, linear = 32.5 / 8, 0.75**6 * 0.5
    assert sides(HUBER, 3, 0.5, "printed") == pytest.approx((8 * width / 4, linear))
    assert sides(HUBER, 3, 0.5, "corrected") == pytest.approx(((8 * width / 2) ** 2, linear / 0.36))
    assert sides(logistic, 3, 0.5, "printed") == pytest.approx((2 * width / 4, linear))  # ζ = 8/4
    assert sides(welsch, 0, 1.0, "printed")[1] == pytest.approx(math.exp(-1))
    vector = np.array([2.0, 4.0])
    assert of_halfspaces.squared_norm(vector, PROBLEM, "printed") == 20
    assert of_halfspaces.squared_norm(vector, PROBLEM, "corrected") == pytest.approx(4 / 2 + 16 / 8)


def test_gradient_descents_step_by_step():
    """From 1 by the slope 2 w: w/2 a step; accelerated from w + β (w - before), β = 1/2, or 0, 1/4, 2/5."""
    slope, start = lambda w: 2 * w, np.array([1.0])
    for momentum, wanted in ((0.5, [1, 1 / 2, 1 / 8, -1 / 32]), (None, [1, 1 / 2, 3 / 16, 1 / 32])):
        path = length_direction.accelerated(slope, start, 0.25, momentum, 3)
        assert path[:, 0] == pytest.approx(wanted)
    # The three methods from (7, 0.5) at its best length, w̃ = -0.064 w; Nesterov's β for κ = 4 is 1/3
    found = of_least_squares.excesses(W, PROBLEM, 2)
    descent = lambda w: w - PROBLEM.gradient(w) / 16
    one = descent(-0.064 * W)
    runs = {"gradient_descent": descent(one), "accelerated": descent(one + (one + 0.064 * W) / 3)}
    for name, two in runs.items():
        assert found[name] == pytest.approx([0.2304, PROBLEM.excess(one), PROBLEM.excess(two)])
    assert found["direction"][:2] == pytest.approx([0.2304, PROBLEM.gap(least_squares_step(W, PROBLEM))])


PENCIL = of_least_squares.pencil(np.diag([3.0, 2, 0]), np.diag([1.0, 2, 4]))  # pair 3, 1, 0; B 3, 2, 0


def test_rayleigh_quotients():
    w, page = np.ones(3), of_least_squares
    assert PENCIL.rho(w) == pytest.approx(5 / 7)
    assert PENCIL.ascent(w) == pytest.approx(np.array([16.0, 4, -20]) / 7)
    assert page.fixed_step(w, PENCIL) == pytest.approx([1.8, 1.2, 0.0])  # w + (16, 4, -20)/7 / (4 · 5/7)
    best = max(PENCIL.rho(w + s * PENCIL.ascent(w)) for s in np.linspace(0, 5, 2001))
    step = page.best_step(w, PENCIL)
    assert PENCIL.rho(step) == pytest.approx(best, rel=1e-5) and step @ PENCIL.A @ w > 0
    assert page.shortfall(2.5, PENCIL.of_pair) == pytest.approx(0.5 / 1.5)
    for form, t, right in (
        ("printed", 1, (1 - 1 / 3) ** 2 * 1),  # (3 - 2.5) / (2.5 - 2)
        ("printed", 3, (1 - 1 / 3) ** 6 * 1),
        ("charitable", 3, (1 - 2 / 3) ** 2 / 3),
        ("corrected", 3, (1 - 1 / 4 * 2 / 3) ** 2 / 3),
    ):
        assert page.bound(form, 2.5, t, PENCIL) == pytest.approx(right)
    assert page.over_its_bound("corrected", 2.5, 2.5, 0, PENCIL) == pytest.approx((6 / 5) ** 2)
    rank_one = page.pencil(np.diag([2.0, 0, 0]), np.eye(3))  # λ₂ = λ_min: the right side is 0
    assert [page.over_its_bound("printed", 1.0, new, 1, rank_one) for new in (1.5, 2.0)] == [math.inf, 0]


def test_what_is_left_of_a_bound():
    over = of_least_squares.over_bound
    assert over(np.array([4.0, 2.25]), PROBLEM) == pytest.approx([1.0])  # 4 · 9/16; the start is not counted
    floor = (4 * 2.220446e-16 / 1e-9) ** 2 * PROBLEM.attainable  # below it rounding is above the slack
    assert len(over(np.array([1.0, 0.99 * floor, 1.01 * floor]), PROBLEM)) == 1
    assert over(np.array([1.0, 0.5]), Quadratic(np.eye(2), np.ones(2))) == [math.inf]
    assert length_direction.violations([0.5, 1.0, 1 + 1e-10, 1 + 1e-8, np.inf, np.nan]) == 3
    steps_to, excess = length_direction.steps_to, np.array([1.0, 0.2, 0.5, 0.1, 0.1])
    assert [steps_to(excess, target) for target in (2.0, 0.5, 0.2, 0.1, 0.05)] == [0, 1, 3, 3, 5]
    assert steps_to(np.array([1.0, math.nan, 0.1]), 0.5) == 2
    seeds = [np.array([1.0, 1.01, 0.0, np.inf]), np.array([1e-1, 10.0, 1e9])]
    counts = length_direction.tally(seeds, (-1, 1))
    assert counts.tolist() == [[1, 0, 0, 1, 1, 0, 0, 1], [1, 0, 0, 0, 0, 0, 0, 2]]  # 1 counts below


def test_the_bound_for_one_unit():
    t = np.linspace(-3, 3, 100_001)
    bend = np.abs(2 * np.tanh(t) * (1 - np.tanh(t) ** 2)).max()  # sup |tanh''|
    own = 0.25 + 0.5 * bend
    # C: 0.5 + own √0.64 · 4.25 + 0.5 · (2 · 10) · 0.36 / 0.8, as ‖w̃_2‖_S = 10
    linear = 0.75**6 * (0.5 + own * 0.8 * 4.25 + 4.5) ** 2 * 0.5
    weights, of_length = np.stack([np.zeros(2), W]), 8 * own * 8.25 / 8
    for form, expected in (("printed", of_length / 4), ("corrected", (of_length / 2) ** 2)):
        found = of_networks.unit_bound(weights, 3, 0.5, 3, form, NETWORK)
        assert found - linear == pytest.approx(expected)


ROUND = Quadratic(np.eye(3), np.zeros(3))
SEPARATED = HalfSpace(Quadratic(np.eye(1), np.ones(1)), LOSSES["logistic"], np.array([[1.0], [1.0]]))


@pytest.mark.parametrize(
    "call, words",
    [
        (lambda: Quadratic(np.array([[1.0, 0.1], [0.0, 1.0]]), np.ones(2)), "expected a symmetric"),
        (lambda: Quadratic(np.diag([1.0, 0.0]), np.ones(2)), "expected a positive definite"),
        (lambda: Quadratic(np.eye(1), np.ones(1)).root, "expected less than 1"),
        (lambda: replace(NETWORK, problem=ROUND).value(np.eye(3)), "expected at most 2"),
        (lambda: of_halfspaces.best_weight(SEPARATED), "expected classes that no half-space separates"),
    ],
)
def test_bad_input_is_said(call, words):
    with pytest.raises((BnbookError, ValueError), match=words):
        call()


# ---- Least squares ----------------------------------------------------------------------------------------


def problems(count):
    rng = np.random.default_rng(0)
    for number in range(count):
        yield (rng, *draw_quadratic(rng, KINDS[number % len(KINDS)]))


def test_the_step_is_along_the_gradient_of_autograd_and_the_one_of_the_proof():
    """z' = p - (I - S/L)(p - z), with p on the line of S^(-1/2) u where the right angle at z ends."""
    for _, problem, w in problems(24):
        S, u, v = (torch.tensor(each) for each in (problem.S, problem.u, w))
        rho = lambda v: -((u @ v) ** 2) / (v @ S @ v)
        slope, size = jacobian(rho, v).numpy(), v @ S @ v / (2 * problem.largest * abs(rho(v)))
        after = least_squares_step(w, problem)
        close(w - after, size.item() * slope, 1e-6, 1e-9)
        values, basis = np.linalg.eigh(problem.S)
        root = (basis * np.sqrt(values)) @ basis.T
        z, aim = root @ w, np.linalg.solve(root, problem.u)
        p = aim * (z @ z) / (aim @ z)
        wanted, size = problem.S @ (p - z) / problem.largest + z, np.linalg.norm(p)
        np.testing.assert_allclose(root @ after, wanted, rtol=1e-6, atol=1e-9 * size)


def test_the_gap_has_no_cancellation():
    mpmath = pytest.importorskip("mpmath")
    mpmath.mp.dps = 60
    problem, w = draw_quadratic(np.random.default_rng(1), "random", 1e3, 5)
    near = problem.direction + 1e-9 * w
    S, u, v = (mpmath.matrix(each.tolist()) for each in (problem.S, problem.u, near))
    exact = (u.T * mpmath.lu_solve(S, u))[0] - (u.T * v)[0] ** 2 / (v.T * S * v)[0]
    assert float(exact) == pytest.approx(float(problem.gap(near)), rel=1e-4)
    assert problem.gap(w) == pytest.approx(problem.rho(w) + problem.attainable, rel=1e-9)


def test_counter_examples_in_fractions():
    # A lost constant: x = y = 1 always.
    u, S = F(-1), F(1)
    assert (1 - 1 * F(1)) ** 2 == 0 and 2 * u * 1 + 1 * S * 1 == -1
    # A fraction that swallows γ²: d = 1, S = 1, u = -1, w = 1, γ = 2.
    gamma = F(2)
    true, printed = 2 * gamma * u + gamma**2, 2 * gamma * u / (1 + gamma**2)
    assert (true, printed) == (0, F(-4, 5))
    problem = Quadratic(np.eye(1), np.array([-1.0]))
    for form, value in (("corrected", true), ("printed", printed)):
        assert of_least_squares.objective(np.ones(1), 2.0, problem, form) == float(value)
    # It is not convex: -2γ/(1 + γ²) at -2, -1, 0 bends downwards.
    values = [-2 * F(g) / (1 + F(g) ** 2) for g in (-2, -1, 0)]
    assert values[0] - 2 * values[1] + values[2] < 0


def test_the_printed_rayleigh_exponent_fails_in_fractions():
    B, w, ratios = (2, 1, 0), [F(2), F(1), F(1)], []
    for _ in range(4):
        value = sum(b * a * a for b, a in zip(B, w)) / sum(a * a for a in w)
        ratios.append((2 - value) / (value - 1))
        w = [b * a for b, a in zip(B, w)]
    assert ratios == [1, F(1, 16), F(1, 64), F(1, 256)]
    half = F(1, 2)  # 1 - (λ1 - λ2) / (λ1 - λmin)
    assert ratios[3] > half ** (2 * 2) * ratios[2] and ratios[3] <= half**2 * ratios[2]
    pair, w = of_least_squares.pencil(np.diag([2.0, 1.0, 0.0]), np.eye(3)), np.array([2.0, 1.0, 1.0])
    for ratio in ratios:
        assert of_least_squares.shortfall(pair.rho(w), pair.of_pair) == pytest.approx(float(ratio))
        w = of_least_squares.fixed_step(w, pair)


def test_no_step_along_the_gradient_solves_a_rank_one_problem_in_fractions():
    A, u, w = (F(1), F(2), F(4)), (1, 1, 1), (1, 1, 1)
    rho = F(sum(u)) ** 2 / sum(A)
    gradient = [sum(u) - rho * a for a in A]
    assert gradient == [F(12, 7), F(3, 7), F(-15, 7)]
    target = [1 / a for a in A]
    # w + c g parallel to the target: the first two coordinates ask for one c, the last two for another.
    wanted = [
        (target[i] * w[j] - target[j] * w[i]) / (target[j] * gradient[i] - target[i] * gradient[j])
        for i, j in ((0, 1), (1, 2))
    ]
    assert wanted[0] != wanted[1]
    pair = of_least_squares.pencil(np.ones((3, 3)), np.diag([1.0, 2.0, 4.0]))
    best = pair.rho(of_least_squares.best_step(np.ones(3), pair))
    assert pair.rho(np.ones(3)) < best < pair.of_pair[-1] - 1e-3


# ---- Half-spaces ------------------------------------------------------------------------------------------


def cases(count):
    rng = np.random.default_rng(0)
    for number in range(count):
        half = of_halfspaces.draw_gaussian(rng, [*LOSSES.values()][number % 5])
        w = rng.standard_normal(len(half.problem.u))
        yield half, w * rng.uniform(0.2, 1.5) / half.problem.norm(w)


@pytest.mark.parametrize("name", LOSSES)
def test_losses_have_the_stated_derivatives_bounds_and_turns(name):
    loss, t = LOSSES[name], torch.linspace(-12, 12, 4801, dtype=torch.float64, requires_grad=True)
    value = TORCH[name](t)
    first = torch.autograd.grad(value.sum(), t, create_graph=True)[0]
    second = torch.autograd.grad(first.sum(), t)[0]
    at = t.detach().numpy()
    for found, expected in ((loss.value, value), (loss.first, first), (loss.second, second)):
        np.testing.assert_allclose(found(at), expected.detach().numpy(), atol=1e-12)
    for found, bound in ((loss.first, loss.largest_first), (loss.second, loss.largest_second)):
        assert 0.95 * bound < abs(found(at)).max() <= bound * (1 + 1e-12)
    turns = (np.diff(np.sign(loss.first(at))) != 0).sum()
    assert turns > 5 if loss.turns == np.inf else (np.diff(loss.first(at) > 0) != 0).sum() == loss.turns


def test_the_gradient_in_the_direction_is_that_of_small_differences():
    for half, w in cases(5):
        along = lambda d: half.mean(half.loss.value, 0.8 * d / half.problem.norm(d))
        steps = 1e-4 * np.linalg.norm(w) * np.eye(len(w))
        wanted = [(along(w + step) - along(w - step)) / (2 * step.sum()) for step in steps]
        close(of_halfspaces.gradient_in_direction(w, 0.8, half), np.array(wanted), 0, 1e-5)


def test_the_printed_criterion_depends_on_the_length_of_w_and_on_its_sign():
    """The corrected one is c₁ uᵀw, ten times as large for ten times w; the printed one is not."""
    h, gamma = of_halfspaces.criterion, 1.7
    for half, w in cases(15):
        length, along = half.problem.norm(w), half.problem.u @ w
        c1, c2 = of_halfspaces.coefficients(gamma * w / length, half)
        for factor in (1, 10, -1):
            wanted = factor * c1 * along
            assert h(factor * w, np.sign(factor) * gamma, half) == pytest.approx(wanted, rel=1e-9, abs=1e-12)
        assert h(w, length, half, "printed") == pytest.approx(h(w, length, half), rel=1e-9)
        if abs(c2) > 1e-3:
            printed = [h(factor * w, gamma, half, "printed") for factor in (1, 10)]
            assert abs(printed[1] - 10 * printed[0]) > 1e-6 * abs(printed[0])


def test_a_smooth_loss_has_critical_points_off_the_line():
    mpmath = pytest.importorskip("mpmath")
    mpmath.mp.dps = 40
    mean = lambda f: mpmath.quad(lambda t: f(t) * mpmath.npdf(t), [-mpmath.inf, 0, mpmath.inf])
    root_e = mpmath.sqrt(mpmath.e)
    assert abs(mean(lambda t: 1 - root_e * mpmath.cos(t))) < 1e-30
    assert abs(mean(lambda t: root_e * mpmath.sin(t))) < 1e-30
    page, problem = of_halfspaces, Quadratic(np.eye(2), np.array([0.5, 0.0]))
    half, point = HalfSpace(problem, LOSSES["ripple"]), np.array([0.0, 1.0])
    assert np.linalg.norm(page.gradient(point, half)) < 1e-14
    assert page.sine_off_line(point[None], problem)[0] == pytest.approx(1)
    assert np.linalg.norm(page.gradient(1.1 * point, half)) > 0.01, "an isolated pair of points"
    page = page_cells.functions("decoupling/halfspaces", AWAY=1e-5)
    page |= {"IN_PLANE": problem, "SIDE": np.linspace(-1.5, 1.5, 2)}
    found = page["in_plane"]("ripple")
    assert abs(found["on_line"][0][:, 1]).max() < 1e-6
    assert {(round(a, 6), round(abs(b), 6)) for a, b in found["away"][0]} == {(0.0, 1.0)}


def test_the_printed_bisection_bound_fails_in_fractions():
    # z = 1 always, so S = μ = 1; φ(t) = 4 √(1 + t²), ζ = 4; interval [-3/4, 1], one halving.
    low, high, root, zeta = F(-3, 4), F(1), F(5, 4), F(4)
    assert (low + high) / 2 > 0  # where the slope 4 t / √(1 + t²) is positive, so the left end stays
    assert root**2 == 1 + low**2
    slope = zeta * low / root
    assert slope**2 == F(144, 25) > F(1, 2) * zeta * (high - low) == F(7, 2)
    assert slope**2 <= (F(1, 2) * zeta * (high - low)) ** 2 == F(49, 4)
    assert bisection(lambda g: 4 * g / np.sqrt(1 + g * g), -0.75, 1.0, 1) == (-0.75, 0.125)


def test_the_coefficient_can_exceed_the_derivative():
    delta, a, b = 0.1, -0.5, 0.5
    t = a + b * NODES
    first = (t + 1) / np.sqrt(delta**2 + (t + 1) ** 2)
    second = delta**2 / (delta**2 + (t + 1) ** 2) ** 1.5
    assert abs(first).max() <= 1
    c1 = WEIGHTS @ first - a * (WEIGHTS @ (first * NODES)) / b  # E φ'' = E[φ' ξ] / b
    assert 1.14 < c1 < 1.1666  # 1.1666 is E|1 + ξ|, the limit for a small delta
    assert WEIGHTS @ second == pytest.approx(WEIGHTS @ (first * NODES) / b, rel=1e-6)


def test_gdnp_finds_the_closed_form_of_the_logistic_loss():
    rng, page = np.random.default_rng(2), of_halfspaces
    half = page.draw_gaussian(rng, LOSSES["logistic"], 2)
    best = page.best_weight(half)
    assert np.linalg.norm(page.gradient(best, half)) < 1e-12 * np.linalg.norm(half.problem.u)
    directions, lengths = page.gdnp(half, rng.standard_normal(2), 700, 50)
    close(lengths[-1] * directions[-1] / half.problem.norm(directions[-1]), best, 1e-6, 1e-9)
    assert half.problem.gap(directions)[-1] < 1e-12 and page.alignment(half) == pytest.approx(1)


def test_gradients_on_examples_are_those_of_autograd():
    rng, page = np.random.default_rng(3), of_halfspaces
    y = rng.choice((-1.0, 1.0), 300)
    x = rng.standard_normal((300, 4)) + 0.4 * y[:, None]
    z, w = -y[:, None] * (x - x.mean(axis=0)), rng.standard_normal(4)
    half = HalfSpace(Quadratic(z.T @ z / 300, z.mean(axis=0)), LOSSES["logistic"], z)
    f = lambda v: torch.nn.functional.softplus(torch.tensor(z) @ v).mean()
    np.testing.assert_allclose(page.gradient(w, half), jacobian(f, torch.tensor(w)).numpy(), rtol=1e-9)
    assert np.linalg.norm(page.gradient(page.best_weight(half), half)) < 1e-12
    assert 0.9 < page.alignment(half) <= 1 + 1e-12


# ---- A layer of tanh units --------------------------------------------------------------------------------


def test_gradients_of_networks_are_those_of_autograd_over_the_plane():
    page, rng, (nodes, p) = of_networks, np.random.default_rng(0), (torch.tensor(each) for each in plane(0.1))
    for number in range(6):
        name = ("logistic", "huber")[number % 2]
        network = page.draw_network(rng, LOSSES[name], 3, 2, number % 3 == 0)
        problem, theta, W = network.problem, torch.tensor(network.theta), rng.standard_normal((3, 2))
        W *= 0.9 / np.array([problem.norm(w) for w in W])[:, None]
        z = torch.tensor(problem.u) + nodes @ torch.tensor(problem.root).T
        f = lambda V: p @ TORCH[name](torch.tanh(z @ V.T) @ theta)
        expected = jacobian(f, torch.tensor(W)).numpy()
        close(page.gradient(W, network), expected, 0, 1e-6)
        close(page.direct_gradient(W, network), expected, 1e-9, 1e-12)
        assert network.value(W) == pytest.approx(f(torch.tensor(W)).item(), rel=1e-6)
        square = np.sum(expected * np.linalg.solve(problem.S, expected.T).T)
        assert page.squared_norm(expected, problem) == pytest.approx(square)
        of_one = hessian(lambda w: f(torch.cat([w[None], torch.tensor(W[1:])])), torch.tensor(W[0]))
        zeta = page.unit_bound(W, 0, 0.0, 0, "printed", network) * problem.smallest**2 / 8.25
        assert np.abs(np.linalg.eigvalsh(of_one.numpy())).max() <= zeta * (1 + 1e-9)


def test_two_equal_units_have_their_minimum_off_the_line():
    from scipy.optimize import root

    page, problem = of_networks, Quadratic(np.eye(2), np.array([-0.5, 0.0]))
    example = TanhNetwork(problem, np.array([0.5, 0.5]), LOSSES["logistic"], 0.1)
    pair = lambda v: np.array([[v[0], v[1]], [v[0], -v[1]]])
    W = pair(root(lambda v: page.gradient(pair(v), example)[0], [2.0, 0.25], tol=1e-14).x)
    assert W[0] == pytest.approx([2.0320, 0.2517], abs=1e-3)
    for spacing in (0.1, 0.05):
        assert np.abs(page.gradient(W, replace(example, spacing=spacing))).max() < 1e-12
    eigenvalues = np.linalg.eigvalsh(page.system(W, example)[1])
    assert abs(eigenvalues[0]) < 1e-12 < eigenvalues[1]
    np.testing.assert_allclose(page.off_line(W, problem), abs(W[0, 1]), rtol=1e-9)
    line = np.linspace(0.2, 4, 20)
    lower = [example.value(np.array([[a, 0.0], [b, 0.0]])) for a in line for b in line]
    assert example.value(W) < min(lower) - 1e-6, "no two points of the line are as low"
    nodes, p = (torch.tensor(each) for each in plane(0.1))
    z = torch.tensor(problem.u) + nodes @ torch.tensor(problem.root).T
    f = lambda v: p @ torch.nn.functional.softplus(torch.tanh(z @ v.reshape(2, 2).T).sum(1) / 2)
    curvature = torch.linalg.eigvalsh(hessian(f, torch.tensor(W.ravel())))
    assert curvature[0] > 1e-6, "a true minimum, isolated"
