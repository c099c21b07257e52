"""Least squares in length and direction: formulas against autograd and fractions, the theorem on many
problems."""

from __future__ import annotations

from fractions import Fraction as F

import numpy as np
import pytest
import torch

from bnbook.chapters import least_squares
from bnbook.chapters.length_direction import KINDS, Quadratic, draw_quadratic, from_examples
from bnbook.errors import BnbookError


def problems(count):
    rng = np.random.default_rng(0)
    for number in range(count):
        yield (rng, *draw_quadratic(rng, KINDS[number % len(KINDS)]))


def as_torch(problem):
    return torch.tensor(problem.S), torch.tensor(problem.u)


def test_gradient_and_convexity_are_those_of_autograd():
    for rng, problem, w in problems(24):
        S, u = as_torch(problem)
        rho = lambda v: -((u @ v) ** 2) / (v @ S @ v)
        expected = torch.autograd.functional.jacobian(rho, torch.tensor(w)).numpy()
        np.testing.assert_allclose(
            least_squares.gradient(w, problem), expected, rtol=1e-6, atol=1e-9 * abs(expected).max()
        )
        gamma = torch.tensor(rng.standard_normal(), dtype=torch.float64)
        length = (torch.tensor(w) @ S @ torch.tensor(w)).sqrt()
        corrected = lambda g: 2 * g * (u @ torch.tensor(w)) / length + g**2
        assert torch.autograd.functional.hessian(corrected, gamma).item() == pytest.approx(2, rel=1e-12)
        assert corrected(gamma).item() == pytest.approx(
            least_squares.objective(w, gamma.item(), problem), rel=1e-12
        )


def test_the_gap_has_no_cancellation():
    mpmath = pytest.importorskip("mpmath")
    mpmath.mp.dps = 60
    problem, w = draw_quadratic(np.random.default_rng(1), "random", 1e3, 5)
    near = problem.direction + 1e-9 * w
    S, u, v = (
        mpmath.matrix(problem.S.tolist()),
        mpmath.matrix(problem.u.tolist()),
        mpmath.matrix(near.tolist()),
    )
    attainable = (u.T * mpmath.lu_solve(S, u))[0]
    exact = attainable - (u.T * v)[0] ** 2 / (v.T * S * v)[0]
    assert float(exact) == pytest.approx(float(least_squares.gap(near, problem)), rel=1e-4)
    assert least_squares.gap(w, problem) == pytest.approx(
        least_squares.rho(w, problem) + problem.attainable, rel=1e-9
    )


def test_the_step_is_the_one_of_the_proof():
    """z' = p - (I - S/L)(p - z), with p on the line of S^(-1/2) u where the right angle at z ends."""
    for _, problem, w in problems(16):
        values, basis = np.linalg.eigh(problem.S)
        root = (basis * np.sqrt(values)) @ basis.T
        z, v = root @ w, np.linalg.solve(root, problem.u)
        p = v * (z @ z) / (v @ z)
        expected = p - (p - z) + problem.S @ (p - z) / problem.largest
        found = root @ least_squares.descend(w, problem, 1)[1]
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-9 * np.linalg.norm(p))


def test_rank_one_steps_are_those_of_least_squares():
    for _, problem, w in problems(8):
        pencil = least_squares.make_pencil(np.outer(problem.u, problem.u), problem.S)
        pencil.of_pair[0] = 0  # exactly; eigh says 1e-17
        expected = least_squares.descend(w, problem, 1)[1]
        np.testing.assert_allclose(
            least_squares.fixed_step(w, pencil), expected, rtol=1e-6, atol=1e-9 * abs(expected).max()
        )
        best = least_squares.quotient(least_squares.best_step(w, pencil), pencil)
        assert best >= least_squares.quotient(expected, pencil) * (1 - 1e-9)


def test_counter_examples_in_fractions():
    # A lost constant: x = y = 1 always.
    u, S = F(-1), F(1)
    assert (1 - 1 * F(1)) ** 2 == 0 and 2 * u * 1 + 1 * S * 1 == -1
    # A fraction that swallows γ²: d = 1, S = 1, u = -1, w = 1, γ = 2.
    gamma = F(2)
    true, printed = 2 * gamma * u + gamma**2, 2 * gamma * u / (1 + gamma**2)
    assert (true, printed) == (0, F(-4, 5))
    problem = Quadratic(np.eye(1), np.array([-1.0]))
    assert least_squares.objective(np.ones(1), 2.0, problem) == float(true)
    assert least_squares.objective(np.ones(1), 2.0, problem, "printed") == float(printed)
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
    pencil = least_squares.make_pencil(np.diag([2.0, 1.0, 0.0]), np.eye(3))
    assert (
        least_squares.printed_factor(pencil, 2) == half**4
        and least_squares.corrected_factor(pencil) == half**2
    )
    w = np.array([2.0, 1.0, 1.0])
    for ratio in ratios:
        assert least_squares.shortfall(least_squares.quotient(w, pencil), pencil.of_pair) == pytest.approx(
            float(ratio)
        )
        w = least_squares.fixed_step(w, pencil)


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
    pencil = least_squares.make_pencil(np.ones((3, 3)), np.diag([1.0, 2.0, 4.0]))
    best = least_squares.quotient(least_squares.best_step(np.ones(3), pencil), pencil)
    assert least_squares.quotient(np.ones(3), pencil) < best < pencil.of_pair[-1] - 1e-3
    problem = Quadratic(np.diag([1.0, 2.0, 4.0]), np.ones(3))
    assert least_squares.gradient(np.ones(3), problem) == pytest.approx(
        -2 / 7 * np.array(gradient, dtype=float)
    )


def test_a_round_problem_needs_one_step_and_best_lengths_lie_on_a_sphere():
    problem, w = draw_quadratic(np.random.default_rng(4), "round")
    assert least_squares.gap(least_squares.descend(w, problem, 1), problem)[1] < 1e-25 * problem.attainable
    problem, w = draw_quadratic(np.random.default_rng(5), "random", 100, 4)
    weights = least_squares.weights_at_best_length(least_squares.descend(w, problem, 20), problem)
    middle = -problem.direction / 2
    radii = [least_squares.norm(v - middle, problem.S) for v in weights]
    np.testing.assert_allclose(radii, np.sqrt(problem.attainable) / 2, rtol=1e-9)
    gamma = least_squares.optimal_length(w, problem)
    np.testing.assert_allclose(least_squares.weight(w, gamma, problem.S), weights[0], rtol=1e-12)


@pytest.mark.parametrize(
    "call",
    [
        lambda: Quadratic(np.zeros((2, 2)), np.ones(2)),
        lambda: Quadratic(np.array([[1.0, 2.0], [0.0, 1.0]]), np.ones(2)),
        lambda: from_examples(np.ones((3, 2)), np.ones(2)),
        lambda: draw_quadratic(np.random.default_rng(0), "nasty"),
        lambda: least_squares.weight(np.zeros(2), 1.0, np.eye(2)),
        lambda: least_squares.step_size(np.array([0.0, 1.0]), Quadratic(np.eye(2), np.array([1.0, 0.0]))),
    ],
)
def test_bad_input_is_said_in_one_line(call):
    with pytest.raises(BnbookError) as error:
        call()
    assert "\n" not in str(error.value) and "expected" in str(error.value)
