"""A layer of tanh units: Stein's gradient against autograd and the plane, the minimum off the line, the bound
for one unit."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from bnbook.chapters import neural_networks
from bnbook.chapters.length_direction import LOSSES, Quadratic, plane
from bnbook.chapters.neural_networks import TanhNetwork, draw_network, off_line
from bnbook.errors import BnbookError

TORCH = {"logistic": torch.nn.functional.softplus, "huber": lambda t: (1 + (t + 1) ** 2).sqrt()}


def networks(count, units=2, size=2):
    rng = np.random.default_rng(0)
    for number in range(count):
        network = draw_network(rng, LOSSES[("logistic", "huber")[number % 2]], units, size, number % 3 == 0)
        W = rng.standard_normal((units, size))
        yield network, 0.9 * W / np.sqrt(np.einsum("ij,jk,ik->i", W, network.problem.S, W))[:, None]


def test_gradients_are_those_of_autograd_over_the_plane():
    nodes, p = (torch.tensor(a) for a in plane(0.1))
    for network, W in networks(8, units=3):
        z = torch.tensor(network.problem.u) + nodes @ torch.tensor(network.root).T
        f = lambda V: p @ TORCH[network.loss.name](torch.tanh(z @ V.T) @ torch.tensor(network.theta))
        expected = torch.autograd.functional.jacobian(f, torch.tensor(W)).numpy()
        np.testing.assert_allclose(network.gradient(W), expected, rtol=0, atol=1e-6 * abs(expected).max())
        np.testing.assert_allclose(
            network.direct_gradient(W), expected, rtol=1e-9, atol=1e-12 * abs(expected).max()
        )
        assert network.value(W) == pytest.approx(f(torch.tensor(W)).item(), rel=1e-6)
        assert network.squared_norm(expected) == pytest.approx(
            np.sum(expected * np.linalg.solve(network.problem.S, expected.T).T)
        )
        hessian = torch.autograd.functional.hessian(
            lambda w: f(torch.cat([w[None], torch.tensor(W[1:])])), torch.tensor(W[0])
        )
        largest = np.abs(np.linalg.eigvalsh(hessian.numpy())).max()
        assert largest <= neural_networks.smoothness(network, 0) * (1 + 1e-9)


def test_the_system_is_the_articles_where_m_is_invertible():
    """At any W: ∇_i f = κ_i u + S Σ_j M_ij w_j, so where ∇f = 0 and M is regular, W = -M⁻¹ κ (S⁻¹u)ᵀ."""
    for network, W in networks(6):
        e, M = network.system(W)
        assert np.allclose(M, M.T, rtol=1e-12)
        kappa = e - M @ (W @ network.problem.u)
        solved = -np.outer(np.linalg.solve(M, kappa), network.problem.direction)
        at_solved = np.outer(kappa, network.problem.u) + M @ solved @ network.problem.S
        assert np.abs(at_solved).max() < 1e-9 * np.abs(kappa).max() * np.abs(
            network.problem.u
        ).max() * np.linalg.cond(M)
        assert off_line(solved, network.problem).max() < 1e-6 * np.abs(solved).max() * np.sqrt(
            network.problem.largest
        )


EXAMPLE = TanhNetwork(
    Quadratic(np.eye(2), np.array([-0.5, 0.0])), np.array([0.5, 0.5]), LOSSES["logistic"], 0.1
)


def example_minimum():
    from scipy.optimize import root

    return root(
        lambda v: EXAMPLE.gradient(np.array([[v[0], v[1]], [v[0], -v[1]]]))[0], [2.0, 0.25], tol=1e-14
    ).x


def test_two_equal_units_have_their_minimum_off_the_line():
    p, q = example_minimum()
    W = np.array([[p, q], [p, -q]])
    assert (p, q) == (pytest.approx(2.0320, abs=1e-3), pytest.approx(0.2517, abs=1e-3))
    for spacing in (0.1, 0.05):
        assert np.abs(replace(EXAMPLE, spacing=spacing).gradient(W)).max() < 1e-12
    eigenvalues = np.linalg.eigvalsh(EXAMPLE.system(W)[1])
    assert abs(eigenvalues[0]) < 1e-12 < eigenvalues[1]
    np.testing.assert_allclose(off_line(W, EXAMPLE.problem), abs(q), rtol=1e-9)
    lower = [
        EXAMPLE.value(np.array([[a, 0.0], [b, 0.0]]))
        for a in np.linspace(0.2, 4, 20)
        for b in np.linspace(0.2, 4, 20)
    ]
    assert EXAMPLE.value(W) < min(lower) - 1e-6, "no two points of the line are as low"
    nodes, p_ = (torch.tensor(a) for a in plane(0.1))
    z = torch.tensor(EXAMPLE.problem.u) + nodes @ torch.tensor(EXAMPLE.root).T
    f = lambda v: p_ @ torch.nn.functional.softplus(torch.tanh(z @ v.reshape(2, 2).T).sum(1) / 2)
    curvature = torch.linalg.eigvalsh(torch.autograd.functional.hessian(f, torch.tensor(W.ravel())))
    assert curvature[0] > 1e-6, "a true minimum, isolated"


def test_a_unit_with_the_others_on_the_line_moves_as_in_least_squares():
    from bnbook.chapters import least_squares

    rng = np.random.default_rng(5)
    network = draw_network(rng, LOSSES["huber"], 2, 4, False)
    W, w = np.stack([np.zeros(4), 1.3 * network.problem.direction]), rng.standard_normal(4)
    run = neural_networks.descend(network, W, 0, w, 5, 25)
    expected = least_squares.gap(least_squares.descend(w, network.problem, 5), network.problem)
    np.testing.assert_allclose(run.gaps, expected, rtol=1e-6, atol=1e-12 * expected[0])
    assert neural_networks.constant(network, W, 0) >= (run.first**2).max()
    for weight, slope, gradient in zip(run.weights, run.slopes, run.gradients, strict=True):
        g = network.gradient(neural_networks.with_unit(W, 0, weight))[0]
        assert network.squared_norm(g) == pytest.approx(gradient, rel=1e-9)
        assert abs(g @ weight) / np.sqrt(weight @ network.problem.S @ weight) == pytest.approx(
            abs(slope), abs=1e-9
        )


def test_bad_input_is_said_in_one_line():
    for call in (
        lambda: TanhNetwork(Quadratic(np.eye(1), np.array([1.0])), np.ones(1), LOSSES["logistic"]),
        lambda: next(networks(1, 3, 3))[0].value(np.eye(3)),
        lambda: next(networks(1, 2, 3))[0].direct_gradient(np.ones((2, 3))),
    ):
        with pytest.raises(BnbookError) as error:
            call()
        assert "\n" not in str(error.value) and "expected" in str(error.value)


def test_a_unit_may_be_critical_beside_the_line_that_the_other_lies_on():
    """Where its own M_ii is zero: the two numbers of the page's remark."""
    network = TanhNetwork(
        Quadratic(np.eye(2), np.array([-0.5, 0.0])), np.array([0.04, 1.17960528]), LOSSES["logistic"]
    )
    W = np.array([[0.8574123, 0.3], [3.0, 0.0]])
    assert np.abs(network.gradient(W)[0]).max() < 1e-9
    assert np.abs(network.gradient(W + [[0.0, 0.1], [0.0, 0.0]])[0]).max() > 1e-6
