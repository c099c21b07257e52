"""The theorems beside their formulas by hand: least bounds by search, three points by derivatives, counts and drawings of trials."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
import torch

from bnbook.chapters import lipschitz, minima, smoothness, theorems
from bnbook.chapters.minima import three_points
from bnbook.chapters.theorems import Trials, batch_norm, draw_margins, exact, normalize, project
from bnbook.errors import BnbookError


def test_printed_32_with_a_correlation_is_safe_from_0_17_on():
    safe = 3 - 8**0.5
    unit = theorems.Unit(np.zeros(1), 1.0, 1)
    for c, holds in ((safe * 1.001, True), (safe * 0.999, False)):
        assert (lipschitz.sharp_32(1.0, c, unit) <= lipschitz.theorem_32(1.0, c, unit)) == holds


@pytest.mark.parametrize(
    "wrong, words",
    [
        (lambda: normalize(np.ones(4)), "without spread"),
        (lambda: normalize(np.ones(1)), "batch of at least 2"),
        (lambda: normalize(exact(1, 2, 4)), "no rational square root"),
        (lambda: Trials({}).worst("nothing"), "no trial gave"),
        (lambda: Trials({"error.a": [[0.1], []]}).errors("a"), "expected more instances"),
    ],
)
def test_bad_input_is_said_in_a_line(wrong, words):
    with pytest.raises(BnbookError, match=words):
        wrong()


def test_numbers_of_trials():
    """Not a number is an infinite error and a violated bound; a bound that was never tried is violated by none."""
    nan = float("nan")
    found = Trials({"margin.one": [[-0.5, 0.0, 0.3], [1.0, nan, -1e-9]], "margin.two": [[-2e-9] * 3, []]})
    found |= Trials({"error.a": [[nan, 0.5], [0.25, 2.0, 0.75]]})
    assert found.errors("a") == {"error.a": [np.inf, 2.0]} and found.median("error.a")[1] == 0.75
    assert found.all("margin.two").tolist() == [-2e-9] * 3
    assert found.bounds("one two") == {
        "trials.one": [3, 3], "violations.one": [1, 1], "trials.two": [3, 0], "violations.two": [3, 0],
    }  # fmt: skip
    assert found.shares("one two") == {"share.one": [1 / 3, 1 / 3], "share.two": [1.0, 0.0]}
    tallies = found.tallies(["one", "two"])
    assert [counts.sum(axis=1).tolist() for counts in tallies.values()] == [[3, 3], [3, 0]]
    fig = draw_margins(tallies, {"one": ("first", "printed"), "two": ("second", "corrected")})
    assert [text.get_text() for text in fig.axes[0].texts] == ["100 % violated", "33 % violated"]
    assert [tick.get_text() for tick in fig.axes[0].get_yticklabels()] == ["second", "first"]


def test_every_instance_has_random_numbers_of_its_own():
    draw_one = lambda rng, number: (rng.uniform(), number)
    drawn = theorems.draw_all(draw_one, 2, 3, first=0, stream=0)
    assert len({value for row in drawn for value, _ in row}) == 6
    assert theorems.draw_all(draw_one, 1, 3, first=1, stream=0) == drawn[1:]
    assert theorems.draw_all(draw_one, 2, 3, first=0, stream=1)[0][0] != drawn[0][0]
    found = theorems.on_all(lambda one: {"u": one[0], **({"odd": one[1]} if one[1] % 2 else {})}, drawn)
    assert found.values["u"] == [[value for value, _ in row] for row in drawn]
    assert found.values["odd"] == [[1.0], [1.0]]


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


def loss_with_batch_norm(x, t, w):
    y = torch.as_tensor(x @ w, dtype=torch.float64)[:, None]
    return float(((batch_norm(y, np.ones(1), np.zeros(1))[:, 0].numpy() - t) ** 2).sum() / 2)


def test_least_bound_of_lemma_33_by_search():
    """Over all lengths of the targets and all places of y that ε allows."""
    for epsilon in (0.05, 0.3, 0.49):
        lengths = np.linspace(1 - epsilon, 1 + epsilon, 401)
        turn = np.linspace(0, 2 * math.pi, 721)
        y = lengths[:, None] + epsilon * np.exp(
            1j * turn
        )  # the circle of radius ε around ℓ, in the plane of both
        losses = np.abs(y / np.abs(y) - lengths[:, None])
        assert losses.max() == pytest.approx(minima.sharp_33(epsilon), rel=1e-3)
        assert losses.max() <= minima.sharp_33(epsilon) * (1 + 1e-12) < 3 * epsilon < minima.lemma_33(epsilon)
    assert minima.sharp_33(1e-4) == pytest.approx(math.sqrt(2) * 1e-4, rel=1e-3)


def test_three_points_by_hand_and_by_derivatives():
    problem = three_points()
    assert problem.plain.tolist() == [Fraction(2, 3), Fraction(-1, 3)] and problem.ray.tolist() == [0, -1]
    x, t = problem.x.astype(float), problem.t.astype(float)
    assert minima.least_squares(x, t) == pytest.approx([2 / 3, -1 / 3])
    best = loss_with_batch_norm(x, t, np.array([0.0, -1.0]))
    assert loss_with_batch_norm(x, t, np.array([2 / 3, -1 / 3])) > best + 0.01
    for angle in np.linspace(0.1, 6.2, 50):
        turned = np.array([math.sin(angle), -math.cos(angle)])
        assert loss_with_batch_norm(x, t, turned) > best
