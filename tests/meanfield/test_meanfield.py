"""The recursions against a second program with integrals by quadrature, closed forms and sampled Gaussians."""

from __future__ import annotations

import math
from itertools import product
from math import pi, sqrt

import numpy as np
import pytest

from bnbook.errors import BnbookError
from bnbook.meanfield import Convolutional, FullyConnected, recursions, solve

PAPER = FullyConnected((784, 1000, 1000, 1000, 10))


def test_lambda_max_of_the_papers_setting():
    batch, corrected = (solve(PAPER, "batch", equations=each) for each in ("printed", "corrected"))
    assert batch.f == pytest.approx(1000 / (2 * pi) * np.array([0, 1 / 9, 1 / 3, 1]))
    ratio = pi / (2 * (pi - 1))
    assert corrected.lambda_max == pytest.approx(1000 / (2 * pi) * (1 + ratio + ratio**2))


def test_corrected_crossing_is_the_one_of_the_chapter_s_exercise():
    batch = solve(PAPER, norm="batch", equations="corrected").lambda_max
    assert (solve(PAPER).lambda_max / batch) ** 0.5 == pytest.approx(2.486, abs=5e-4)


def test_corrected_backward_ratio_is_pi_over_pi_minus_one_inside():
    theory = solve(FullyConnected((50, *[30] * 9, 1)), "batch", 3.0, equations="corrected")
    assert theory.q_tilde[2:9] / theory.q_tilde[3:10] == pytest.approx([pi / (pi - 1)] * 7)
    assert theory.q_tilde_xy[2:9] / theory.q_tilde_xy[3:10] == pytest.approx([pi / (2 * (pi - 1))] * 7)


def test_corrected_sums_over_places_pass_as_in_a_fully_connected_network():
    conv, flat = Convolutional((3, 32, 32)), FullyConnected((27, 270, 540, 810, 10))
    theory, expected = (solve(each, "batch", 1.5, equations="corrected") for each in (conv, flat))
    for name in ("q_tilde", "q_tilde_xy"):
        sums = np.array(conv.positions) * getattr(theory, name)
        np.testing.assert_allclose(sums[1:], getattr(expected, name)[1:])
    np.testing.assert_allclose(theory.f, expected.f)
    assert theory.q_tilde_ab_xy[1:4].tolist() == [0, 0, 0]


def test_images_with_something_in_common_at_a_place_have_correlated_units():
    """q̂_xy above q̂_αβ at the start: above γ²/2π at one place, below it at two."""
    conv = Convolutional((3, 32, 32))
    theory = solve(conv, "batch", equations="corrected", q_hat_xy_0=0.4, q_hat_ab_xy_0=0.1)
    assert theory.q_hat_xy[1] > 1 / (2 * pi) > theory.q_hat_ab_xy[1]
    pooled = (1.3 + 224 * 0.7) / 225  # of q_xy = 1.3 and q_αβ = 0.7 in layer 1, where q = 2.5
    assert theory.q_hat_xy[1] == pytest.approx(products((1.3 - pooled) / (2.5 - pooled))[1])


def test_many_settings_are_solved_at_once():
    gamma, sigma_w2 = np.linspace(0.1, 5, 4)[:, None], np.linspace(0.5, 4, 3)
    through = dict(equations="through_batch", batch=100)
    for network, norm, how in ((PAPER, "none", {}), (PAPER, "batch", {}), (CONV, "batch", through)):
        grid, alone = (
            solve(network, norm, gamma, sigma_w2, **how),
            solve(network, norm, gamma[3, 0], 4.0, **how),
        )
        assert grid.lambda_max.shape == (4, 3) and grid.f[..., 3, 2] == pytest.approx(alone.f)


def test_one_batch_normalized_layer_against_sampled_gaussians():
    """u and s² of z(x) = a + g(x) over m inputs, drawn: the finite-batch forms of equations 24 and 25."""
    m, rng = 5, np.random.default_rng(0)
    samples, q, q_xy, gamma, sigma_w2 = 200_000, 3.0, 1.2, 1.7, 2.5
    z = sqrt(q_xy) * rng.standard_normal((samples, 1)) + sqrt(q - q_xy) * rng.standard_normal((samples, m))
    variance = z.var(axis=1, keepdims=True)
    u = (z - z.mean(axis=1, keepdims=True)) / np.sqrt(variance)
    h, step = np.maximum(gamma * u, 0), (u > 0) / np.sqrt(variance)
    c, effective = recursions.pair_correlation(m), recursions.data_variance(np.array(q), np.array(q_xy), m)

    def close(drawn: np.ndarray, formula: np.ndarray) -> bool:
        return abs(drawn.mean() - formula) < 4 * drawn.std() / sqrt(samples)

    def pairs(a: np.ndarray) -> np.ndarray:
        return (a.sum(axis=1) ** 2 - (a**2).sum(axis=1)) / (m * (m - 1))

    assert close((h**2).mean(axis=1), recursions.batch_forward(np.array(gamma)))
    assert close(pairs(h), recursions.batch_forward_pairs(np.array(gamma), c))
    factor = gamma**2 * sigma_w2
    assert close(factor * (step**2).mean(axis=1), recursions.batch_backward(1.0, gamma, sigma_w2, effective))
    assert close(factor * pairs(step), recursions.batch_backward_pairs(1.0, gamma, sigma_w2, effective, c))
    # What the paper prints instead lies far outside.
    assert not close(factor * pairs(step), recursions.batch_backward_pairs(1.0, gamma, sigma_w2, q, c))
    assert not close(pairs(h), recursions.batch_forward_pairs(np.array(gamma), 0.0))


CORRECTED = {"norm": "batch", "equations": "corrected"}
SETTINGS = [  # of the paper's network
    ({"sigma_w2": -1.0}, "sigma_w2 is -1"),
    ({"sigma_b2": [-0.1, 0.5]}, "sigma_b2 is -0.1"),
    ({"gamma": 0.0}, "gamma is 0"),
    ({"gamma": np.nan}, "gamma is not finite"),
    ({"gamma": [1, 2], "sigma_b2": [1, 2, 3]}, "broadcast"),
    ({"norm": "layer"}, "none, batch"),
    ({"equations": "exact"}, "printed, corrected, through_batch"),
    *(({name: value}, "printed") for name, value in (("batch", 100), ("q_hat_0", [1.0, 2.0]))),
    *(({name: [0.0, 0.1]}, "printed") for name in ("q_hat_xy_0", "q_hat_ab_xy_0")),
    *((CORRECTED | {"batch": wrong}, "4 or more") for wrong in (3, 50.0)),
    *((CORRECTED | {"batch": wrong, "norm": "none"}, "2 or more") for wrong in (1, True)),
    (CORRECTED | {"q_hat_xy_0": [0.5, 1.0]}, "no variance"),
    (CORRECTED | {"q_hat_xy_0": -1.5}, "q_hat_xy_0 is larger than q_hat_0"),
    (CORRECTED | {"q_hat_ab_xy_0": 2.0}, "q_hat_ab_xy_0 is larger"),
]
IMPOSSIBLE = [
    *((lambda change=change: solve(PAPER, **change), words) for change, words in SETTINGS),
    *((lambda widths=widths: FullyConnected(widths), "expected") for widths in ((784, 10), (7, 0, 10), 784)),
    (lambda: solve((784, 1000, 10)), "FullyConnected"),
    *((lambda m=m: solve(PAPER).critical_learning_rate(m), "momentum") for m in (1.0, -0.1)),
    (lambda: Convolutional((3, 2, 32), (4,)), "3×3 does not fit the map of 2×32"),
    (lambda: Convolutional((1, 3, 3), (1, 1)), "map of 1×1 that layer 2 meets"),
    (lambda: Convolutional((3, 32)), "channels, height, width"),
    (lambda: Convolutional((3, 32, 32), ()), "at least one convolution"),
    (lambda: Convolutional((3, 32, 32), (4,), stride=0), "below 1"),
]


@pytest.mark.parametrize("call, words", IMPOSSIBLE)
def test_what_is_impossible_is_one_line(call, words):
    with pytest.raises(BnbookError, match=words) as caught:
        call()
    assert "\n" not in str(caught.value)


def test_the_edges_of_what_is_possible():
    assert FullyConnected((1, 1, 1)).depth == 2
    assert Convolutional((1, 3, 3), (1,), kernel=3, stride=1, outputs=1).maps == ((3, 3), (1, 1))
    assert solve(FC, equations="corrected", batch=2).batch == 2
    assert solve(FC, "batch", equations="corrected", batch=4, sigma_b2=0.0).lambda_max > 0
    # Products up to ±q_hat_0 are possible, without batch norm even equal inputs
    assert solve(FC, equations="corrected", q_hat_xy_0=[1.0, -1.0]).q_xy[1] == pytest.approx([2.5, -1.5])
    assert Convolutional((3, 32, 32)).positions == (1024, 225, 49, 9, 1)  # section 6.2 has 1024 and 225
    assert Convolutional((2, 5, 9), (4,), kernel=5, stride=1).positions == (45, 5, 1)


NODES, WEIGHTS = np.polynomial.legendre.leggauss(120)
GAMMA, SW, SB = 1.5, 1.2, 0.3
CONV, FC = Convolutional((1, 6, 6), (2, 3), kernel=3, stride=1, outputs=5), FullyConnected((7, 4, 6, 5))


def products(c: float) -> tuple[float, float]:
    """E φ'(a) φ'(b) and E φ(a) φ(b), by an integral over a > 0; given a, b is N(c a, 1 - c²)."""
    a, w = 6 * (NODES + 1), 6 * WEIGHTS * np.exp(-((6 * (NODES + 1)) ** 2) / 2) / math.sqrt(2 * math.pi)
    s = math.sqrt(1 - c * c)
    t = c * a / s
    above = np.array([(1 + math.erf(v / math.sqrt(2))) / 2 for v in t])
    return w @ above, w @ (a * s * (t * above + np.exp(-t * t / 2) / math.sqrt(2 * math.pi)))


def twin(places, fan_in, norm, equations, m, base) -> dict[str, float]:
    """q, q̂ (forwards), T = Σ over places (backwards), f and what further parameters add, all by layer."""
    printed, batch = equations == "printed", norm == "batch"
    through = batch and equations == "through_batch"
    one_over_m = 0.0 if m is None else 1 / m
    h, c, variance, found = base, {}, {}, {}
    for layer in (1, 2, 3):
        found |= {f"q_hat{layer - 1}": h[0], f"q_hat_xy{layer - 1}": h[1], f"q_hat_ab_xy{layer - 1}": h[2]}
        q, q_xy, q_ab = (SB + SW * value for value in h)
        found |= {f"q{layer}": q, f"q_xy{layer}": q_xy, f"q_ab_xy{layer}": q_ab}
        k, n = places[layer], None if m is None else m * places[layer]
        if not batch:
            variance[layer], c[layer] = q, (q_xy / q, q_ab / q)
            h = (q / 2, q * products(q_xy / q)[1], q * products(q_ab / q)[1])
            continue
        if printed:
            variance[layer], c[layer] = q, (0.0, 0.0)
        else:
            mean = (q_xy + (k - 1) * q_ab) / k  # over all pairs of places
            variance[layer] = (q - mean) * (1 if n is None else (n - 3) / n)
            less = 0 if n is None else 1 / (n - 1)
            c[layer] = tuple((other - mean) / (q - mean) - less for other in (q_xy, q_ab))
        h = (GAMMA**2 / 2, *(GAMMA**2 * products(value)[1] for value in c[layer]))
    T = {3: (1.0, 1.0, 0.0)}
    for layer in (2, 1):
        (same, pairs, apart), k, behind = T[layer + 1], places[layer], places[layer + 1]
        scale = SW / variance[layer] * (GAMMA**2 if batch else variance[layer])
        step, relu = products(c[layer][0])
        if printed:  # means over places are handed on as they are
            mean_apart = apart / (behind * (behind - 1)) if behind > 1 else 1.0
            apart = k * (k - 1) * scale * mean_apart * products(c[layer][1])[0]
            T[layer] = (k * scale * same / behind / 2, k * scale * pairs / behind * step, apart)
        elif not through:
            T[layer] = (scale * same / 2, scale * pairs * step, 0.0)
        else:
            n = math.inf if m is None else m * k
            if layer == 2:
                removed = (one_over_m * same + (1 - one_over_m) * (step + relu) * pairs) / k
                kept = scale * step * pairs * (1 - 1 / k)
            else:
                removed = one_over_m * (1 - step - relu) * same / k
                above = math.inf if m is None else m * behind
                common = pairs + (same - pairs) / above
                kept = scale * step * common if k > 1 else 0.0
            total = scale * (same / 2 - removed)
            paired = kept - (total - kept) / (n - 1)
            # every input and place together: 0
            T[layer] = (total, paired, -(one_over_m * total + (1 - one_over_m) * paired) if k > 1 else 0.0)
    everything = 0.0
    for layer in (1, 2, 3):
        k, (same, pairs, apart) = places[layer], T[layer]
        q_tilde = (same / k, pairs / k, apart / (k * (k - 1)) if k > 1 else math.nan)
        found |= dict(zip((f"{name}{layer}" for name in ("q_tilde", "q_tilde_xy", "q_tilde_ab_xy")), q_tilde))
        hats = [found[f"{name}{layer - 1}"] for name in ("q_hat", "q_hat_xy", "q_hat_ab_xy")]
        over_pairs = lambda xy, xx: (1 - one_over_m) * xy + one_over_m * xx
        here = over_pairs(q_tilde[1] * hats[1], q_tilde[0] * hats[0])
        if k > 1 and printed:
            here = ((k - 1) * q_tilde[2] + q_tilde[1]) * ((k - 1) * hats[2] + hats[1]) / k
        elif k > 1:
            here += (k - 1) * q_tilde[2] * hats[2]
        found[f"f{layer}"] = fan_in[layer - 1] * k * here
        bias = over_pairs(pairs, same) + (apart if printed else 0.0)
        everything += found[f"f{layer}"] + (0.0 if through and layer < 3 else bias)
        if batch and layer < 3:  # γ and β: of the step's and of the ReLU's product
            same, pairs, _ = T[layer + 1]
            for share in products(c[layer][0]):
                fluctuating = through and layer == 1
                more = (
                    one_over_m * same * (0.5 - share) if fluctuating else over_pairs(pairs * share, same / 2)
                )
                everything += SW * more
    return found | {"full": everything}


CASES = [(norm, "printed", None) for norm in ("none", "batch")]
CASES += [*product(("none", "batch"), ("corrected", "through_batch"), (None, 6))]


@pytest.mark.parametrize("network", [CONV, FC], ids=["conv", "fc"])
@pytest.mark.parametrize("norm, equations, m", CASES)
def test_theory_equals_the_twin(network, norm, equations, m):
    base = (1.0, 0.0, 0.0) if equations == "printed" else (1.1, 0.4, 0.2)
    theory = solve(network, norm, GAMMA, SW, SB, equations, m, *base)
    places, fan_in = ((36, 16, 4, 1), (9, 18, 12)) if network is CONV else ((1,) * 4, (7, 4, 6))
    expected = twin(places, fan_in, norm, equations, m, base)
    for name, value in expected.items():
        letters, layer = name.rstrip("0123"), int(name[-1]) if name != "full" else 0
        if letters == "full":
            assert theory.lambda_max_full == pytest.approx(value)
        elif letters == "f":
            assert theory.f[layer - 1] == pytest.approx(value), name
        elif "_ab_" in letters and places[layer] == 1:
            assert layer == 0 or np.isnan(getattr(theory, letters)[layer])
        else:
            assert getattr(theory, letters)[layer] == pytest.approx(value), name
    assert theory.lambda_max == pytest.approx(sum(expected[f"f{layer}"] for layer in (1, 2, 3)))
    assert theory.critical_learning_rate() == pytest.approx(2 * 1.9 / theory.lambda_max)
    assert theory.critical_learning_rate(0.0) == pytest.approx(2 / theory.lambda_max)


def test_correlations_are_cut_off_at_both_ends():
    one, beyond = np.array(1.0), np.array(1.0 + 1e-15)
    for sign in (1.0, -1.0):
        assert recursions.correlation(one, sign * beyond) == sign
        assert recursions.centred_correlation(one, sign * beyond, 0 * one, None) == sign
    assert recursions.centred_correlation(one, -one, 0 * one, 4) == -1  # -1 - 1/3
    assert recursions.centred_correlation(one, one, 0 * one, 4) == pytest.approx(2 / 3)
