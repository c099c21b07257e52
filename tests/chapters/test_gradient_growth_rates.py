"""The rate of gradient explosion against closed forms, dense Jacobians, fractions and higher precision."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import numpy as np
import page_cells
import pytest
import torch
from scipy import integrate

from bnbook.chapters.gradient_explosion import KINK, STEEPNESS, growth, relu_growth, zigzag
from bnbook.meanfield import FullyConnected, solve

SIZES = (4, 5, 6, 8, 16, 64, 1024)


@pytest.mark.parametrize("m", [5, 6, 8, 16, 64])
def test_the_cube_in_fractions(m):
    """Moments of a uniform point on the sphere: E y^(2a) = (2a-1)!! / n(n+2)…; the second value is c u +
    √(1-c²) v, u ⊥ v."""
    n, c = m - 1, Fraction(-1, m - 1)

    def moment(a, b):  # E t^(2a) v^(2b) for two orthonormal coordinates, radius √n so that E t² = 1
        below = math.prod(range(n, n + 2 * (a + b), 2))
        above = math.prod(range(1, 2 * a, 2)) * math.prod(range(1, 2 * b, 2))
        return Fraction(n ** (a + b) * above, below)

    v2 = 1 - c * c

    def pair(i, j):  # E u_1^i u_2^j with i + j even
        return sum(
            math.comb(j, k) * c ** (j - k) * v2 ** (k // 2) * moment((i + j - k) // 2, k // 2)
            for k in range(0, j + 1, 2)
        )

    top = (
        9 * moment(2, 0)
        - Fraction(9, m) * (moment(2, 0) + moment(3, 0))
        + Fraction(9, m) * (pair(2, 2) + pair(3, 3))
    )
    exact = Fraction(m, m - 3) * top / (moment(3, 0) - pair(3, 3))
    assert growth(lambda x: x**3, m).through == pytest.approx(float(exact), rel=1e-10)


@pytest.mark.parametrize("m", SIZES)
def test_relu_by_quadrature(m):
    assert growth("relu", m).through == pytest.approx(float(relu_growth(m)), rel=5e-5)


def test_infinite_batches():
    assert growth("relu").through == pytest.approx(math.pi / (math.pi - 1), rel=1e-12)
    assert growth("linear").through == pytest.approx(1, rel=1e-12)
    hermite = {
        1: lambda x: x,
        2: lambda x: x**2,
        3: lambda x: x**3 - 3 * x,
        4: lambda x: x**4 - 6 * x**2,
        5: lambda x: x**5 - 10 * x**3 + 15 * x,
    }
    for degree, phi in hermite.items():
        assert growth(phi).through == pytest.approx(degree, rel=1e-10)
    assert growth(lambda x: x**3).through == pytest.approx(1.8, rel=1e-10)  # the exercise
    density = lambda x: math.exp(-x * x / 2) / math.sqrt(2 * math.pi)
    top = integrate.quad(lambda x: (1 - math.tanh(x) ** 2) ** 2 * density(x), -12, 12, epsabs=1e-13)[0]
    bottom = integrate.quad(lambda x: math.tanh(x) ** 2 * density(x), -12, 12, epsabs=1e-13)[0]
    assert growth("tanh").through == pytest.approx(top / bottom, rel=1e-10)


@pytest.mark.parametrize("name", ["relu", "tanh", "linear"])
def test_dense_jacobians_of_random_units(name):
    """λ = σ_w² E‖G J‖² / (m-1) for J = ∂φ(BN(z))/∂z, z ~ N(0, σ_w² V): nothing derived by hand but V."""
    m, draws = 12, 20_000
    one = growth(name, m)
    phi = {"relu": torch.relu, "tanh": torch.tanh, "linear": lambda x: x}[name]
    z = (
        torch.randn(draws, m, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
        * one.spread**0.5
    )

    def layer(z):
        centred = z - z.mean()
        h = phi(centred / centred.square().mean().sqrt())
        return h - h.mean()

    squares = torch.func.vmap(torch.func.jacrev(layer))(z).square().sum((1, 2)) / (m - 1)
    spread = torch.func.vmap(layer)(z).square().sum(1) / (m - 1)
    for values, expected in ((squares, one.through), (spread, one.spread)):
        assert abs(values.mean() - expected) < 4 * values.std() / draws**0.5 + 1e-9


@pytest.mark.parametrize("m", [4, 8, 64, 1024])
def test_the_mean_field_package_says_the_same(m):
    """Derived there from equations for pairs of inputs, here from the sphere."""
    network = FullyConnected((500,) * 14 + (10,))
    for equations, expected in (
        ("through_batch", float(relu_growth(m))),
        ("corrected", growth("relu", m).constant),
    ):
        q = solve(network, "batch", 1.3, 0.7, 0.2, equations, m).q_tilde
        assert float(q[5] / q[6]) == pytest.approx(
            expected, rel=1e-9 if equations == "through_batch" else 1e-4
        )


def test_the_zigzag_explodes_more_in_larger_batches():
    """λ_8 = 6/5 exactly; λ_∞ ≥ (P(|g| ≤ k) + s² P(|g| > k)) / E g², for φ is odd and |φ(x)| ≤ |x|."""
    x = torch.linspace(-9, 9, 100_001, dtype=torch.float64)
    assert (zigzag(x).abs() <= x.abs() + 1e-12).all()
    assert math.sqrt(7) < KINK < math.sqrt(8)
    assert growth("zigzag", 8).through == pytest.approx(1.2, rel=1e-12)
    with mpmath.workdps(40):
        outside = mpmath.erfc(mpmath.mpf(KINK) / mpmath.sqrt(2))
        assert 1 + (STEEPNESS**2 - 1) * outside > mpmath.mpf("3.7")
    assert growth("zigzag").through > 3.7
    coarse, fine = (growth("zigzag", 64, panels=p, kinks=(-KINK, KINK)).through for p in (60, 150))
    assert fine == pytest.approx(coarse, rel=5e-3)
    tail = torch.randn(200_000, 64, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    u = tail - tail.mean(1, keepdim=True)
    u = (u / u.square().mean(1, keepdim=True).sqrt())[:, :1]
    squared_slope = 1 + (STEEPNESS**2 - 1) * (u.abs() > KINK).double()
    leading = (
        (squared_slope * (1 - (1 + u**2) / 64)).mean().item()
    )  # pairs left out, and a variance of almost 1
    assert fine == pytest.approx(64 / 61 * leading, rel=0.05)


def test_the_page_draws_a_layer_at_random_and_finds_its_rate():
    simulated = page_cells.functions("batch-norm/gradient-explosion")["simulated"]
    found = simulated(lambda u: np.maximum(u, 0), lambda u: u > 0, 12, units=40_000)
    assert found == pytest.approx(float(relu_growth(12)), rel=0.03)
    assert simulated(lambda u: u, np.ones_like, 12, units=40_000) == pytest.approx(10 / 9, rel=0.02)
