"""The recursions against quadrature, numbers worked out by hand and sampled Gaussians."""

from __future__ import annotations

import time
from math import pi, sqrt

import numpy as np
import pytest

from bnbook.errors import BnbookError
from bnbook.meanfield import Convolutional, FullyConnected, recursions, solve

PAPER = FullyConnected((784, 1000, 1000, 1000, 10))
BY_LAYER = ("q", "q_hat", "q_xy", "q_hat_xy", "q_tilde", "q_tilde_xy")


# The closed integrals


@pytest.mark.parametrize("c", [-0.95, -0.3, 0.0, 0.2, 0.7, 0.999])
def test_integrals_equal_quadrature(c: float) -> None:
    # Polar coordinates, a = r cos t, b = r cos(t - arccos c): the radius by hand, the angle by midpoints.
    t = (np.arange(200_000) + 0.5) / 200_000 * 2 * pi
    a, b = np.cos(t), np.cos(t - np.arccos(c))
    product = 2 * np.mean(np.maximum(a, 0) * np.maximum(b, 0))
    assert recursions.relu_product(np.array(c)) == pytest.approx(product, abs=1e-9)
    assert recursions.step_product(np.array(c)) == pytest.approx(np.mean((a > 0) & (b > 0)), abs=1e-5)


# The recursions, number by number


def test_corrected_backward_ratio_is_pi_over_pi_minus_one_inside() -> None:
    theory = solve(FullyConnected((50, *[30] * 9, 1)), norm="batch", gamma=3.0, equations="corrected")
    assert theory.q_tilde[2:9] / theory.q_tilde[3:10] == pytest.approx([pi / (pi - 1)] * 7)
    assert theory.q_tilde_xy[2:9] / theory.q_tilde_xy[3:10] == pytest.approx([pi / (2 * (pi - 1))] * 7)
    # Layer 1 sees the data: q - q_xy = σ_w² there, so that its ratio is γ²/2 (γ²/4 for pairs).
    assert theory.q_tilde[1] / theory.q_tilde[2] == pytest.approx(9 / 2)
    assert theory.q_tilde_xy[1] / theory.q_tilde_xy[2] == pytest.approx(9 / 4)


def test_undefined_entries_are_nan() -> None:
    theory = solve(PAPER, norm="batch", gamma=np.ones((2, 3)))
    for name in BY_LAYER:
        values = getattr(theory, name)
        assert values.shape == (5, 2, 3)
        undefined = 4 if name.startswith("q_hat") else 0
        assert np.isnan(values[undefined]).all() and np.isfinite(np.delete(values, undefined, axis=0)).all()
    assert theory.f.shape == (4, 2, 3) and theory.lambda_max.shape == (2, 3)


# λ_max and η*


def test_lambda_max_of_the_papers_setting() -> None:
    batch = solve(PAPER, norm="batch")
    assert batch.f == pytest.approx(1000 / (2 * pi) * np.array([0, 1 / 9, 1 / 3, 1]))
    assert batch.lambda_max == pytest.approx(229.8905, rel=1e-6)
    vanilla = solve(PAPER)
    assert vanilla.f[3] == pytest.approx(1000 * vanilla.q_hat_xy[3])
    assert vanilla.lambda_max == pytest.approx(2234.1735, rel=1e-6)
    corrected = solve(PAPER, norm="batch", equations="corrected")
    ratio = pi / (2 * (pi - 1))
    assert corrected.lambda_max == pytest.approx(1000 / (2 * pi) * (1 + ratio + ratio**2))


def test_corrected_crossing_is_the_one_of_the_chapter_s_exercise() -> None:
    batch = solve(PAPER, norm="batch", equations="corrected").lambda_max
    assert (solve(PAPER).lambda_max / batch) ** 0.5 == pytest.approx(2.486, abs=5e-4)


def test_a_hundred_thousand_settings_in_a_second() -> None:
    gamma, sigma_w2 = np.linspace(0.1, 5, 500)[:, None], np.linspace(0.5, 4, 200)
    start = time.process_time()
    for norm in ("none", "batch"):
        grid = solve(PAPER, norm, gamma=gamma, sigma_w2=sigma_w2).lambda_max
    assert time.process_time() - start < 1
    assert grid.shape == (500, 200)
    one = solve(PAPER, "batch", gamma=gamma[7, 0], sigma_w2=sigma_w2[9])
    assert grid[7, 9] == pytest.approx(one.lambda_max)


# The corrections against brute force


@pytest.mark.parametrize("m", [5, 12])
def test_one_batch_normalized_layer_against_sampled_gaussians(m: int) -> None:
    """u and s² of z(x) = a + g(x) over m inputs, drawn: the finite-batch forms of equations 24 and 25."""
    rng = np.random.default_rng(0)
    samples, q, q_xy, gamma, sigma_w2 = 400_000, 3.0, 1.2, 1.7, 2.5
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


# Errors


CORRECTED = {"equations": "corrected"}
SETTINGS = [  # changes to the paper's network with batch norm
    ({"sigma_w2": -1.0}, "sigma_w2 is -1"), ({"sigma_b2": [-0.1, 0.5]}, "sigma_b2 is -0.1"),
    ({"gamma": 0.0}, "gamma is 0"), ({"gamma": np.nan}, "gamma is not finite"), ({"gamma": "large"}, "settings"),
    ({"gamma": [1, 2], "sigma_b2": [1, 2, 3]}, "broadcast"), ({"norm": "layer"}, "none, batch"),
    ({"equations": "exact"}, "printed, corrected, through_batch"), ({"batch": 100}, "printed"),
    *(({name: value}, "printed") for name, value in (("q_hat_xy_0", 0.3), ("q_hat_0", [1.0, 2.0]),
                                                     ("q_hat_xy_0", [0.0, 0.1]), ("q_hat_ab_xy_0", [0.1, 0.0]))),
    (CORRECTED | {"batch": 3}, "4 or more"), (CORRECTED | {"batch": 50.0}, "whole number"),
    *((CORRECTED | {"batch": wrong, "norm": "none"}, "expected") for wrong in (1, True)),
    (CORRECTED | {"q_hat_0": 0.0, "norm": "none"}, "expected"), (CORRECTED | {"q_hat_xy_0": 1.0}, "no variance"),
    (CORRECTED | {"q_hat_xy_0": [0.5, 1.0]}, "all inputs are the same"),
    (CORRECTED | {"q_hat_xy_0": 1.5}, "larger than q_hat_0"),
]  # fmt: skip
IMAGE = (3, 32, 32)
IMPOSSIBLE = [
    *((lambda change=change: solve(PAPER, **({"norm": "batch"} | change)), words) for change, words in SETTINGS),
    *((lambda widths=widths: FullyConnected(widths), "expected")
      for widths in ((784, 10), (784,), (784, 0, 10), (784, -5, 10), (7, 2.5, 10), 784, "ab")),
    (lambda: solve((784, 1000, 10)), "FullyConnected"),
    *((lambda m=m: solve(PAPER).critical_learning_rate(m), "momentum") for m in (1.0, -0.1)),
    *((lambda wrong=wrong: Convolutional(**{"image": (1, 3, 3), "channels": (1,)} | wrong), "expected")
      for wrong in (dict(kernel=4), dict(kernel=0), dict(stride=0), dict(outputs=0), dict(channels=(0,)))),
    (lambda: Convolutional((1, 3, 3), (1, 1)), "does not fit the map of 1×1 that layer 2 meets"),
    (lambda: Convolutional((1, 9, 2), (1,)), "does not fit"),
    (lambda: Convolutional(IMAGE, (4, 4, 4, 4, 4)), "kernel of 3×3 does not fit the map of 1×1 that layer 5"),
    (lambda: Convolutional((3, 2, 32), (4,)), "3×3 does not fit the map of 2×32"),
    (lambda: Convolutional((3, 32)), "channels, height, width"),
    (lambda: Convolutional(IMAGE, ()), "at least one convolution"),
    (lambda: Convolutional(IMAGE, (4,), stride=0), "below 1"), (lambda: Convolutional((3, 32.5, 32)), "whole numbers"),
    (lambda: solve(Convolutional(IMAGE), "batch", **CORRECTED, q_hat_ab_xy_0=2.0), "q_hat_ab_xy_0 is larger"),
]  # fmt: skip


@pytest.mark.parametrize("call, words", IMPOSSIBLE)
def test_what_is_impossible_is_one_line(call, words: str) -> None:
    with pytest.raises(BnbookError, match=words) as caught:
        call()
    assert "\n" not in str(caught.value)
