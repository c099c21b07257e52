"""The smoothness theorems: closed formulas against dense Hessians, brute force, exact fractions and fifty
digits."""

from __future__ import annotations

import numpy as np
import pytest

from bnbook.chapters import smoothness
from bnbook.chapters.smoothness import FAMILIES, draw_curved
from bnbook.chapters.theorems import differentiate, error, hessian, normalize, project


def test_chosen_derivatives_are_the_layers():
    for number, family in enumerate(FAMILIES):
        curved = draw_curved(np.random.default_rng(number), number)
        assert curved.family == family
        found = differentiate(curved.instance)
        assert error(found.shared, curved.slope) < 1e-12
        y = curved.instance.y
        z = curved.instance.gamma * (y - y.mean(0)) / y.std(0) + curved.instance.beta
        assert error(hessian(curved.instance.loss, z), curved.curvature) < 1e-12


@pytest.mark.parametrize("seed", range(4))
def test_ball_maximum_equals_a_search(seed):
    """Against the best of many X Xᵀ v, and of many points of the ball."""
    rng = np.random.default_rng(seed)
    a, v = rng.standard_normal((3, 3)), rng.standard_normal(3)
    a = a + a.T
    best = smoothness.ball_maximum(a, v)
    x = rng.standard_normal((20000, 3, 2))
    x = x / np.linalg.norm(x, 2, axis=(1, 2))[:, None, None]
    w = np.einsum("nij,nkj,k->ni", x, x, v)
    reached = np.einsum("ni,ij,nj->n", w, a, w)
    assert reached.max() <= best + 1e-12
    sphere = rng.standard_normal((100000, 3))
    w = v / 2 + np.linalg.norm(v) / 2 * sphere / np.linalg.norm(sphere, axis=1)[:, None]
    assert np.einsum("ni,ij,nj->n", w, a, w).max() == pytest.approx(best, rel=0.01, abs=1e-3)


def test_constant_of_the_trilinear_form():
    rng = np.random.default_rng(0)
    a, b, c = (u / np.linalg.norm(u, axis=1)[:, None] for u in rng.standard_normal((3, 200000, 3)))
    inner = lambda p, q: (p[:, 1:] * q[:, 1:]).sum(1)
    form = c[:, 0] * inner(a, b) + a[:, 0] * inner(b, c) + b[:, 0] * inner(a, c)
    assert 0.95 * smoothness.TRILINEAR < form.max() <= smoothness.TRILINEAR


def test_corrected_c6_is_reached_between_two_units():
    rng = np.random.default_rng(5)
    for m in (4, 9):
        x, x2, y, y2 = (v - v.mean() for v in rng.standard_normal((4, m)))
        kept = np.outer(project(x, normalize(y)), project(x2, normalize(y2)))
        h = 2 * kept - np.outer(x, x2)  # x x2ᵀ mirrored
        through = project(x, normalize(y)) @ h @ project(x2, normalize(y2))
        plain, cosine = x @ h @ x2, smoothness.matrix_cosine(h, x, x2)
        if plain > 0:
            assert through == pytest.approx((1 + 1 / cosine) / 2 * plain)
        else:  # the mirror's other sign
            assert abs(through) <= (1 + 1 / cosine) / 2 * abs(plain)
