"""The theorems beside their formulas by hand: least bounds by search, three points by derivatives, counts and drawings of trials."""

from __future__ import annotations

import math
from fractions import Fraction as F
from types import SimpleNamespace

import numpy as np
import page_cells
import pytest

from bnbook.chapters import theorems
from bnbook.chapters.theorems import (
    TOLERANCE,
    Counterexample,
    Trials,
    as_table,
    error,
    exact,
    margin,
    normalize,
    project,
)
from bnbook.errors import BnbookError

lipschitz, smoothness, minima = (
    SimpleNamespace(**page_cells.functions(f"theory/{name}", OUTPUTS=""))
    for name in ("lipschitz", "smoothness", "minima")
)


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
def test_bad_input_is_said(wrong, words):
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
    fig = theorems.draw_margins(tallies, {"one": ("first", "printed"), "two": ("second", "corrected")})
    assert [text.get_text() for text in fig.axes[0].texts] == ["100 % violated", "33 % violated"]


def test_every_instance_has_random_numbers_of_its_own():
    draw_one = lambda rng, number: (rng.uniform(), number)
    drawn = theorems.draw_all(draw_one, 2, 3, first=0, stream=0)
    assert len({value for row in drawn for value, _ in row}) == 6
    assert theorems.draw_all(draw_one, 1, 3, first=1, stream=0) == drawn[1:]
    assert theorems.draw_all(draw_one, 2, 3, first=0, stream=1)[0][0] != drawn[0][0]
    found = theorems.on_all(lambda one: {"u": one[0], **({"odd": one[1]} if one[1] % 2 else {})}, drawn)
    assert found.values == {"u": [[u for u, _ in row] for row in drawn], "odd": [[1.0], [1.0]]}


@pytest.mark.parametrize("seed", range(2))
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
    assert 0.95 * 2 / math.sqrt(3) < form.max() <= 2 / math.sqrt(3)


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


UNIT = normalize(exact(2, 2, -2, -2))
G, X, X2 = exact(5, 1, 2, 0), exact(3, 0, 1, 0), exact(2, 2, -1, 1)
GAMMA = F(3)


def test_the_unit():
    assert list(theorems.gradient(G, UNIT, GAMMA)) == [3, -3, F(3, 2), F(-3, 2)]  # 3/2 of P g
    soft = normalize(exact(1, 3), eps=3)  # variance 1, + 3
    assert soft.sigma == 2 and list(soft.y_hat) == [F(-1, 2), F(1, 2)]
    other = normalize(exact(1, 3), eps=2, unbiased=True)  # 2 / (2 - 1), + 2
    assert (other.sigma, other.count, other.m) == (2, 1, 2)
    assert normalize(np.array([0.0, 1e-160])).sigma > 0 and theorems.square_root(F(4, 9)) == F(2, 3)


def test_a_gradient_keeps_nothing_along_the_activation_but_by_epsilon():
    passed = theorems.gradient(G, UNIT, GAMMA)
    assert (passed @ UNIT.y_hat, passed.sum()) == (0, 0) and G @ UNIT.y_hat == 4
    soft = normalize(exact(1, 3), eps=3)  # ε / σ² of it is left
    assert theorems.project(exact(1, -1), soft).tolist() == [F(3, 4), F(-3, 4)]


def test_lipschitz_formulas():
    # (4 df - 8 - 7) / (4 · 2)
    assert list(lipschitz.fact_c1_v1(G, F(7), UNIT)) == [F(5, 8), F(-11, 8), F(-7, 8), F(-15, 8)]
    # (x - 2 ŷ / 4) / 2
    assert list(lipschitz.fact_c2_v1(X, F(2), UNIT)) == [F(5, 4), F(-1, 4), F(3, 4), F(1, 4)]
    # λ = 2: G = 120, mean 2
    assert lipschitz.theorem_44(G, UNIT, GAMMA, 2, printed=True) == F(9, 4) * (120**2 - 4 * 4 - 4 * 16)
    assert lipschitz.theorem_31(X, F(2), UNIT) == (10 - F(4, 4)) / 4
    assert lipschitz.theorem_31(X, F(2), UNIT, power=0) == F(10 - 4, 4)
    for sign in (1, -1):
        assert lipschitz.theorem_32(3, sign * 0.25, UNIT) == (2 + 1) ** 2 / 4 * 9
        assert lipschitz.sharp_32(3, sign * F(1, 3), UNIT) == F((3 + 1) ** 2, 4 * 4) * 9
        assert lipschitz.threshold_c4(sign * 0.25, 0.05) == pytest.approx(1.5**2 / 0.2)
    assert lipschitz.cosine_of(np.array([3.0, 4]), np.array([4.0, 3])) == 24 / 25
    assert lipschitz.pearson(np.array([1.0, 2, 3]), np.array([1.0, 3, 2])) == pytest.approx(1 / 2)


def test_steps_of_a_proof():
    """x = (3, -1, 2, -4) of σ_x = √7.5, ŷ = (1, 1, -1, -1): α = 4."""
    unit, x, g = normalize(exact(2, 2, -2, -2)), exact(3, -1, 2, -4), exact(1, 0, 2, 0)
    # x·g = 7, g·ŷ = -1, so α <g, ŷ>/m = -1; S = 5
    assert lipschitz.squares_15(x, g, unit) == (49, 14, 1)
    middle = lipschitz.middle_16(x.astype(float), g.astype(float), unit)
    assert middle == pytest.approx(2 * 4 * 5 * math.sqrt(7.5))
    assert lipschitz.middle_16(-x.astype(float), g.astype(float), unit) == pytest.approx(-middle)
    c = 49 / (30 * 5)
    for sign in (1.0, -1.0):  # charitably with |α|
        printed, right = (
            lipschitz.middle_17(sign * x.astype(float), g.astype(float), unit, printed=p)
            for p in (True, False)
        )
        assert printed == pytest.approx(2 * math.sqrt(c * 4) * 5 * math.sqrt(7.5))
        assert right == pytest.approx(2 * math.sqrt(c) * 4 * 5 * math.sqrt(7.5))


def test_smoothness_formulas():
    h, v = np.diag([F(1), F(2), F(3), F(4)]), exact(1, 0, -1, 2)  # v'Hv = 20, g'Hg = 39, ‖v‖² = 6
    first = smoothness.theorem_42(h, G, UNIT, GAMMA, v, second=False)
    assert first == F(9, 4) * 20 - F(3, 4 * 4) * 4 * 6
    assert smoothness.theorem_42(h, G, UNIT, GAMMA, v, second=True) == F(9, 4) * 39 - F(9, 2)
    # β = 5/4, α = 2, α₂ = 4
    assert smoothness.equation_55(G, X, X2, UNIT) == ((F(-5, 4) + F(16, 16)) * 4 - F(20, 4)) / 4
    assert smoothness.equation_56(F(7), G, X, X2, UNIT) == (7 + (F(-5, 4) + F(8, 16)) * 4) / 4
    inside = 7 - (F(5, 2) - F(24, 16)) * 4 - F(20, 4)
    assert smoothness.equation_58(F(7), G, X, X2, UNIT, printed=True) == inside / 4 == F(-1, 2)


def test_smoothness_bounds():
    unit, g, x, x2 = normalize(np.array([2.0, 2, -2, -2])), *(v.astype(float) for v in (G, X, 2 * X2))
    # σ_x = √2.5, σ_x2 = √10, their product 5; x2·g = 20; |X| = 7
    expected = (7 + 5 * 5 * 4 + math.sqrt(2.5) * 20) / 4
    assert smoothness.equation_59(-7.0, g, x, x2, unit) == pytest.approx(expected)
    assert smoothness.equation_59(7.0, -g, x, x2, unit) == pytest.approx((14 - expected * 4) / 4)
    assert smoothness.equation_61(-7.0, g, x, x2, unit, 6.0) == pytest.approx((7 + 6 * 5 * math.sqrt(30)) / 4)
    h = np.array([[1.0, 2], [0, 3]])
    assert smoothness.column_share(h, np.ones(2)) == pytest.approx((1 + 25) / (14 * 2))
    assert smoothness.matrix_cosine(h, np.ones(2), np.array([1.0, -1])) == pytest.approx(4 / math.sqrt(56))
    # ((1 + ½)(1 + 0.4) + 0.3) / (½ · 0.4 - 0.05) = 2.4 / 0.15
    assert smoothness.threshold_c6(0.25, 0.16, 0.3, 0.05) == pytest.approx(16)
    expected = (0.75 + 2 / math.sqrt(3) * 0.1) / 0.3
    assert smoothness.threshold_c6_corrected(0.5, 0.1, 0.2) == pytest.approx(expected)
    # M of H = I is ‖g‖² = 30; κ = 4 · 6 / (4 · 3) = 2; ‖P g‖ = √10
    v, one = np.array([1.0, 0, -1, 2]), np.eye(4)
    assert smoothness.theorem_c1(one, g, unit, 3.0, v, printed=True) == pytest.approx(9 / 4 * (30 - 2))
    swing = 3 * math.sqrt(3) / 8 * math.sqrt(4 * 10) / 3
    for sign, plus in ((1, 0.0), (-1, 12 / 9)):  # (-γ <g, ŷ>)₊ / γ²
        expected = 9 / 4 * (9 / 4 * 30 + (plus + swing) * 6 / 4)
        assert smoothness.theorem_c1(one, sign * g, unit, 3.0, v, printed=False) == pytest.approx(expected)
    turn = np.linspace(0, math.pi, 100_001)
    assert ((1 + np.cos(turn)) * np.sin(turn) / 2).max() == pytest.approx(3 * math.sqrt(3) / 8)


def test_the_ball_s_maximum_at_its_edges():
    assert smoothness.ball_maximum(np.eye(2), np.zeros(2)) == 0
    assert smoothness.ball_maximum(np.diag([-1.0, 0.0]), np.array([1.0, 1])) == 0
    for scale in (1e-3, 1e3):  # scales as A ‖v‖²; A = diag(1, 2), v = (0, 2): w = v
        found = smoothness.ball_maximum(scale * np.diag([1.0, 2.0]), np.array([0.0, 2.0]))
        assert found == pytest.approx(8 * scale)
    # v = (1, 1), A = diag(0, 1): from the centre (½, ½) straight up by the radius 1/√2
    found = smoothness.ball_maximum(np.diag([0.0, 1.0]), np.ones(2))
    assert found == pytest.approx((1 / 2 + 1 / math.sqrt(2)) ** 2)


def test_minima_formulas():
    start, minimum = exact(3, 2), exact(2, 1)  # <W*, W₀> = 8, ‖W*‖² = 5, ‖W₀ - W*‖² = 2
    assert minima.lemma_45(start, minimum) == 2 - F((5 - 8) ** 2, 5)
    assert minima.distance_to_ray(start, minimum) == 13 - F(64, 5) == minima.lemma_45(start, minimum)
    assert minima.distance_to_ray(start, -minimum) == 13
    assert minima.distance_to_ray(exact(1, -2), minimum) == 5  # at right angles
    assert minima.lemma_33(F(1, 4)) == 3 * F(1, 4) * F(5, 4) / F(1, 2)
    assert minima.sharp_33_squared(0.16) == pytest.approx(0.6**2 + 1 - 2 * math.sqrt(0.2))
    assert minima.sharp_33_squared(0.36) == pytest.approx(1.6**2)  # outputs may point away
    assert minima.sharp_33(0.48) == pytest.approx(math.sqrt(0.52**2 + 1 - 2 * 0.2))
    target, output = minima.worst_for_33(3 / 8)  # length 5/8, sine 3/5, cosine 4/5
    assert target == pytest.approx([5 / 8, 0]) and output == pytest.approx([2 / 5, 3 / 10])
    assert np.linalg.norm(output - target) == pytest.approx(3 / 8)


def test_exact_counterexamples_by_hand():
    of_lipschitz, *others = (
        [each for name, made in vars(page).items() if name.startswith("against_") for each in made()]
        for page in (lipschitz, smoothness, minima)
    )
    rest = sum(others, [])
    assert all(type(e.value) is type(e.bound) is F and e.refutes for e in [*of_lipschitz, *rest])
    found = {e.name: (e.value, e.bound) for e in of_lipschitz}
    assert (found["th32"], found["th41_appendix"]) == ((400, 256), (2, -2))
    # x = 2 ŷ, g = ŷ: x·g = 8, α = 8, S = 4, σ_x = 2, c = 1: terms 64, 128, 64
    assert found["equation_12"] == (1, 0)  # (64 - 128 + 64) on the right
    assert found["equation_16"] == (256, 0)  # x = -2 ŷ: 64 - 128 + 64
    assert found["equation_17"] == (256, F(347, 2))  # 64 + 2 √8 · 4 · 2 + 64 = 173.25 and up
    table = as_table([*of_lipschitz, Counterexample("a", "4.1", "$m=2$", F(-3, 2), F(2))]).splitlines()
    assert len(table) == len(found) + 3 and table[-1] == r"| 4.1 | $m=2$ | $-\frac{3}{2} \le 2$ |"
    found = {e.name: (e.value, e.bound) for e in rest}
    assert found == {
        # γ = 2, H = I, g ⟂ 1, ŷ: v = 2 g, v'(4 P)v = 64, and the line allows 4 · ‖g‖² = 16
        "second_large": (64, 16),
        # γ = ½, H = -I: v = g/2, v'(-P/4)v = -1/4; it would say -1/4 · 4 = -1
        "second_concave": (F(-1, 4), -1),
        # linear: Ĥ = -(g ŷᵀ + ŷ gᵀ)/4, Ĥ g = -ŷ; then H = I, g = p + ŷ/2: Ĥ p = p - p/2 - ŷ, 5 over 4
        "predictive_linear": (1, 0),
        "predictive": (F(5, 4), 1),
        "c1": (0, -4),  # -<g, ŷ> ‖p‖² / 4 = -4 · 4 / 4
        "sign": (-4, 0),
        # α = 4, β = 0, <g, ŷ> = 0: -α <x2, g> / 4 with x2 = g, or with α = 0
        "equation_58": (-4, 0),
        "equation_59": (4, -20),  # |-<g, ŷ> p'P p / 4|, and 5 σ σ <g, ŷ>
        "plain": (4, 2),
        # y = (3x + 4p)/5: P p = p - 4/5 ŷ, so x·P p = -(4/5)(3/5) 4, over 16
        "c6_zero": (F(3, 25), 0),
        # x·P H P x = (p·x)²/100 = 16/100; -(<g, ŷ> ...) with g = -p: + 2 · 4 · 4 / 4; all over 25
        "c6_flat": ((F(16, 100) + 8) / 25, F(2, 5) * F(64, 100)),
        "observation": (F(-1, 3), 0),  # (2/3, -1/3, 1/3) - (1, 0, 0)
        "lemma_45": (F(4, 9), 0),
        "lemma_45_far": (4, 0),
        "lemma_33": (0, 3 * F(3, 5) * F(8, 5) / F(-1, 5)),
        # BN(W x) = (-1, 1): (3/2)² over both; 3 · 0.26 · 1.26 / 0.48
        "lemma_33_squared": (F(9, 4), F(819, 400)),
    }


@pytest.mark.parametrize("relation, refuted", [(r"\le", "+"), ("<", "0+"), (">", "-0"), ("=", "-+")])
def test_what_refutes_a_line(relation, refuted):
    for sign, value in (("-", F(-1)), ("0", F(0)), ("+", F(1))):
        assert Counterexample("", "", "", value, F(0), relation).refutes == (sign in refuted)


def test_margins_and_errors():
    assert TOLERANCE == 1e-9
    assert margin(1.0, 2.0, 1.0) == 1 / 4 and margin(-1.0, 2.0) == 1.0 and margin(2.0, -1.0) == -1.0
    assert margin(0.0, 0.0, 0.0) == 0 and margin(0.0, 1e-300) == 1
    assert error(np.array([3.0, -4]), np.array([3.0, -2])) == 0.5  # 2 over the larger size
    assert error(1.0, -3.0) == 4 / 3 and error(1.0, 2.0, 10.0) == 0.1 and error(0.0, 0.0) == 0
