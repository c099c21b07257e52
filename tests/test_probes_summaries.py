"""Curves out of the instruments' arrays, against loops."""

from __future__ import annotations

import numpy as np
import pytest

from bnbook.errors import BnbookError
from bnbook.probes import summaries

LENGTHS, RATE = [0.1, 0.5, 2.0, 4.0, 16.0], 0.1


def run(seed=0):
    draw = np.random.default_rng(seed)
    shape = (2, 3)
    return {
        "start_loss": draw.uniform(1, 2, shape),
        "start_norm": draw.uniform(1, 2, shape),
        "landscape_loss": draw.uniform(0, 9, (*shape, 5)),
        "landscape_distance": draw.uniform(0, 9, (*shape, 5)),
        "random_loss": draw.uniform(0, 9, (*shape, 2)),
        "random_distance": draw.uniform(0, 9, (*shape, 2)),
        "shift_distance": draw.uniform(0, 9, (*shape, 4)),
        "shift_norm": draw.uniform(1, 9, (*shape, 4)),
        "shift_cosine": draw.uniform(-1, 1, (*shape, 4)),
    }


def test_only_the_lengths_of_the_paper_count_and_the_distance_divides():
    made = run()
    seen = summaries.landscape(made, LENGTHS, RATE)
    for s in range(2):
        for p in range(3):
            losses, changes = made["landscape_loss"][s, p, 1:4], made["landscape_distance"][s, p, 1:4]
            norm, start = made["start_norm"][s, p], made["start_loss"][s, p]
            beta = max(d / (a * RATE * norm) for d, a in zip(changes, LENGTHS[1:4]))
            expected = {
                "loss_range": max(losses) - min(losses),
                "gradient_change": max(changes),
                "smoothness": beta,
                "gradient_norm": norm,
                "relative_range": (max(losses) - min(losses)) / start,
                "relative_change": max(changes) / norm,
                "beyond_range": 0.0,
                "beyond": made["landscape_distance"][s, p, 4] / (16 * RATE * norm),
            }
            assert {name: seen[name][s, p] for name in seen} == pytest.approx(expected)


def test_an_overflow_on_the_way_is_infinite_and_a_diverged_training_is_nan():
    made = run()
    made["landscape_loss"][0, 0, 3] = np.nan
    made["landscape_distance"][0, 0, 3] = np.inf
    for name in made:
        made[name][1, 2] = np.nan
    seen = summaries.landscape(made, LENGTHS, RATE)
    assert all(
        np.isinf(seen[name][0, 0])
        for name in ("loss_range", "gradient_change", "smoothness", "relative_range")
    )
    assert np.isfinite(seen["beyond"][0, 0]) and all(np.isnan(values[1, 2]) for values in seen.values())
    assert np.isfinite(seen["smoothness"][0, 1])


def test_a_landscape_without_lengths_in_reach_is_refused():
    with pytest.raises(BnbookError, match="no step length within"):
        summaries.landscape(run(), [0.1, 0.2, 0.3, 0.4, 9.0], RATE)


def test_equal_distance_takes_out_the_gradient_s_scale():
    lengths = np.array([0.1, 1.0, 10.0])

    def quadratic(norm, beta):  # error = beta times the distance
        error = beta * lengths * RATE * norm
        return {"start_norm": np.array([[norm]]), "landscape_distance": error[None, None]}

    ratio = summaries.error_ratio_at_equal_distance(quadratic(5.0, 3.0), quadratic(1.0, 2.0), lengths, RATE)
    assert ratio[0, 0] == pytest.approx(1.5)
    far = summaries.error_ratio_at_equal_distance(quadratic(5000.0, 3.0), quadratic(1.0, 2.0), lengths, RATE)
    assert np.isnan(far[0, 0])
