"""Half-spaces: Stein's gradient against autograd and the plane, GDNP's bounds on many problems,
counter-examples."""

from __future__ import annotations

from fractions import Fraction as F

import numpy as np
import pytest
import torch

from bnbook.chapters import halfspaces, least_squares, length_direction
from bnbook.chapters.length_direction import LOSSES, Quadratic
from bnbook.errors import BnbookError

TORCH = {
    "logistic": torch.nn.functional.softplus,
    "huber": lambda t: (1 + (t + 1) ** 2).sqrt(),
    "welsch": lambda t: 1 - torch.exp(-((t + 1) ** 2) / 2),
    "sigmoid": torch.sigmoid,
    "ripple": lambda t: t - np.exp(0.5) * torch.sin(t),
}


def objective(halfspace):
    """f(w̃) for torch: the mean of the loss over the nodes of the trapezoid rule."""
    S, u = torch.tensor(halfspace.problem.S), torch.tensor(halfspace.problem.u)
    nodes, weights = torch.tensor(length_direction.NODES), torch.tensor(length_direction.WEIGHTS)
    return lambda w: weights @ TORCH[halfspace.loss.name](u @ w + (w @ S @ w - (u @ w) ** 2).sqrt() * nodes)


def gaussian(u, loss="huber"):
    return halfspaces.Gaussian(Quadratic(np.eye(len(u)), np.array(u)), LOSSES[loss])


def cases(count, size=None):
    rng = np.random.default_rng(0)
    for number in range(count):
        halfspace = halfspaces.draw_gaussian(rng, list(LOSSES.values())[number % 5], size)
        w = rng.standard_normal(len(halfspace.problem.u))
        yield halfspace, w * rng.uniform(0.2, 1.5) / halfspace.length(w)


@pytest.mark.parametrize("name", LOSSES)
def test_losses_have_the_stated_derivatives_bounds_and_turns(name):
    loss, t = LOSSES[name], torch.linspace(-12, 12, 4801, dtype=torch.float64, requires_grad=True)
    value = TORCH[name](t)
    first = torch.autograd.grad(value.sum(), t, create_graph=True)[0]
    second = torch.autograd.grad(first.sum(), t)[0]
    at = t.detach().numpy()
    np.testing.assert_allclose(loss.value(at), value.detach().numpy(), atol=1e-12)
    np.testing.assert_allclose(loss.first(at), first.detach().numpy(), atol=1e-12)
    np.testing.assert_allclose(loss.second(at), second.numpy(), atol=1e-12)
    for found, bound in (
        (abs(loss.first(at)).max(), loss.largest_first),
        (abs(loss.second(at)).max(), loss.largest_second),
    ):
        assert 0.95 * bound < found <= bound * (1 + 1e-12)
    turns = (np.diff(np.sign(loss.first(at))) != 0).sum()
    assert turns > 5 if loss.turns == np.inf else (np.diff(loss.first(at) > 0) != 0).sum() == loss.turns


def test_gradients_are_those_of_autograd_and_the_hessian_is_below_zeta():
    for halfspace, w in cases(20):
        f, v = objective(halfspace), torch.tensor(w)
        expected = torch.autograd.functional.jacobian(f, v).numpy()
        np.testing.assert_allclose(
            halfspace.gradient(w), expected, rtol=1e-8, atol=1e-10 * abs(expected).max()
        )
        assert halfspace.value(w) == pytest.approx(f(v).item(), rel=1e-12)
        largest = np.abs(torch.linalg.eigvalsh(torch.autograd.functional.hessian(f, v)).numpy()).max()
        assert largest <= halfspaces.smoothness(halfspace) * (1 + 1e-9)
        S, gamma = torch.tensor(halfspace.problem.S), torch.tensor(0.8, dtype=torch.float64)
        both = lambda d, g: f(g * d / (d @ S @ d).sqrt())
        in_direction, in_length = torch.autograd.functional.jacobian(both, (v * 3, gamma))
        got = halfspace.gradient_in_direction(3 * w, 0.8)
        np.testing.assert_allclose(got, in_direction.numpy(), rtol=1e-7, atol=1e-9 * abs(expected).max())
        assert halfspace.slope(*halfspace.margins(w), 0.8) == pytest.approx(in_length.item(), rel=1e-9)


def test_the_printed_criterion_depends_on_the_length_of_w_and_on_its_sign():
    for halfspace, w in cases(15):
        gamma = 1.7
        right, scaled = (halfspaces.criterion(factor * w, gamma, halfspace) for factor in (1, 10))
        assert scaled == pytest.approx(10 * right, rel=1e-12)
        assert halfspaces.criterion(-w, -gamma, halfspace) == pytest.approx(-right, rel=1e-12)
        length = halfspace.length(w)
        at_length = halfspaces.criterion(w, length, halfspace, "printed")
        assert at_length == pytest.approx(halfspaces.criterion(w, length, halfspace), rel=1e-9), (
            "they agree at γ = ‖w‖_S"
        )
        if abs(halfspace.coefficients(gamma * w / length)[1]) > 1e-3:
            printed = [halfspaces.criterion(factor * w, gamma, halfspace, "printed") for factor in (1, 10)]
            assert abs(printed[1] - 10 * printed[0]) > 1e-6 * abs(printed[0])


def test_a_smooth_loss_has_critical_points_off_the_line():
    mpmath = pytest.importorskip("mpmath")
    mpmath.mp.dps = 40
    density = lambda t: mpmath.npdf(t)
    root_e = mpmath.sqrt(mpmath.e)
    first = mpmath.quad(lambda t: (1 - root_e * mpmath.cos(t)) * density(t), [-mpmath.inf, 0, mpmath.inf])
    second = mpmath.quad(lambda t: root_e * mpmath.sin(t) * density(t), [-mpmath.inf, 0, mpmath.inf])
    assert abs(first) < 1e-30 and abs(second) < 1e-30
    halfspace = halfspaces.Gaussian(Quadratic(np.eye(2), np.array([0.5, 0.0])), LOSSES["ripple"])
    point = np.array([0.0, 1.0])
    assert np.linalg.norm(halfspace.gradient(point)) < 1e-14
    assert halfspaces.sine_off_line(point[None], halfspace)[0] == pytest.approx(1)
    assert np.linalg.norm(halfspace.gradient(np.array([0.0, 1.1]))) > 0.01, "an isolated pair of points"
    on_line, off_line = halfspaces.critical_points_in_plane(halfspace, 1.5)
    assert abs(on_line[:, 1]).max() < 1e-6
    assert {(round(a, 6), round(abs(b), 6)) for a, b in off_line} == {(0.0, 1.0)}


def test_the_printed_bisection_bound_fails_in_fractions():
    # z = 1 always, so S = μ = 1; φ(t) = 4 √(1 + t²), ζ = 4; interval [-3/4, 1], one halving.
    low, high = F(-3, 4), F(1)
    middle = (low + high) / 2
    assert middle > 0  # where the slope 4 t / √(1 + t²) is positive, so the left end stays
    root = F(5, 4)
    assert root**2 == 1 + low**2
    slope, zeta = 4 * low / root, F(4)
    assert slope == F(-12, 5)
    assert slope**2 == F(144, 25) > F(1, 2) * zeta * (high - low) == F(7, 2)
    assert slope**2 <= (F(1, 2) * zeta * (high - low)) ** 2 == F(49, 4)
    assert halfspaces.bisection(lambda g: 4 * g / np.sqrt(1 + g * g), -0.75, 1.0, 1) == (-0.75, 0.125)


def test_the_coefficient_can_exceed_the_derivative():
    nodes, weights = length_direction.NODES, length_direction.WEIGHTS
    delta, a, b = 0.1, -0.5, 0.5
    t = a + b * nodes
    first = (t + 1) / np.sqrt(delta**2 + (t + 1) ** 2)
    second = delta**2 / (delta**2 + (t + 1) ** 2) ** 1.5
    assert abs(first).max() <= 1
    c1 = weights @ first - a * (weights @ (first * nodes)) / b  # E φ'' = E[φ' ξ] / b
    assert 1.14 < c1 < 1.1666  # 1.1666 is E|1 + ξ|, the limit for a small delta
    assert weights @ second == pytest.approx(weights @ (first * nodes) / b, rel=1e-6)


def test_gdnp_finds_the_closed_form_of_the_logistic_loss():
    rng = np.random.default_rng(2)
    for _ in range(3):
        halfspace = halfspaces.draw_gaussian(rng, LOSSES["logistic"], 2)
        best = halfspaces.best_weight(halfspace)
        assert np.linalg.norm(halfspace.gradient(best)) < 1e-12 * np.linalg.norm(halfspace.problem.u)
        run = halfspaces.gdnp(halfspace, rng.standard_normal(2), 700, 50)
        np.testing.assert_allclose(run.weight(700, halfspace), best, rtol=1e-6, atol=1e-9 * abs(best).max())
        assert least_squares.gap(run.directions, halfspace.problem)[-1] < 1e-12
        assert halfspaces.alignment(halfspace) == pytest.approx(1)


def test_gradients_on_examples_are_those_of_autograd():
    rng = np.random.default_rng(3)
    y = rng.choice((-1.0, 1.0), 300)
    halfspace = halfspaces.from_labelled(
        rng.standard_normal((300, 4)) + 0.4 * y[:, None], y, LOSSES["logistic"]
    )
    z, w = torch.tensor(halfspace.z), rng.standard_normal(4)
    f = lambda v: torch.nn.functional.softplus(z @ v).mean()
    expected = torch.autograd.functional.jacobian(f, torch.tensor(w)).numpy()
    np.testing.assert_allclose(halfspace.gradient(w), expected, rtol=1e-9)
    assert np.linalg.norm(halfspace.gradient(halfspaces.best_weight(halfspace))) < 1e-12
    assert 0.9 < halfspaces.alignment(halfspace) <= 1 + 1e-12


@pytest.mark.parametrize(
    "call",
    [
        lambda: gaussian([1.0], "logistic"),
        lambda: halfspaces.from_labelled(np.ones((3, 1)), np.ones(3), LOSSES["logistic"]),
        lambda: halfspaces.criterion(np.ones(1), 1.0, gaussian([0.5]), "x"),
        lambda: halfspaces.gdnp(gaussian([0.5, 0]), np.array([0.0, 1.0]), 1),
        lambda: halfspaces.best_weight(gaussian([0.5])),
        lambda: halfspaces.best_weight(
            halfspaces.from_labelled(np.array([[-1.0], [1.0]]), np.array([-1.0, 1.0]), LOSSES["logistic"])
        ),
    ],
)
def test_bad_input_is_said_in_one_line(call):
    with pytest.raises(BnbookError) as error:
        call()
    assert "\n" not in str(error.value) and "expected" in str(error.value)
