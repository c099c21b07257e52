"""What the VGG chapters sum up of a training, each number worked out a second time, step by step."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from made_up_runs import (
    CLASSES,
    LAYERS,
    LENGTHS,
    PROBES,
    RATE,
    SEEDS,
    arm,
    between,
    curves,
    levels,
    middle,
    run,
    start_step,
)
from scipy.stats import spearmanr, t

from bnbook.chapters import internal_covariate_shift, predictiveness, vgg
from bnbook.probes.places import PLACES

MEASURES = ("shift", "relative_shift", "cosine")
T2 = t.ppf(0.975, 1)  # of two seeds


@pytest.fixture(scope="module")
def made():
    return run(3), run(4)


def rows(made, name):
    return np.array([curves(made, seed)[name] for seed in range(SEEDS)])


def test_curves_of_a_landscape(made):
    seen, ends = vgg.landscape(made[0], arm()), vgg.edges(made[0], arm())
    for name in ("loss_range", "loss_change", "gradient_change", "smoothness", "gradient_norm"):
        np.testing.assert_allclose(seen[name], rows(made[0], name), err_msg=name)
    assert (seen["start_loss"] == made[0]["start_loss"]).all() and "random_loss_change" in seen
    assert "random_loss_change" not in vgg.landscape(made[0], arm(random_directions=()))
    for name in ("low", "high"):
        np.testing.assert_allclose(ends[name], rows(made[0], name))


def test_at_equal_progress_the_middle_of_nine_losses(made):
    found = vgg.at_equal_progress([rows(each, "shift") for each in made], made, CLASSES)
    of_shift = internal_covariate_shift.of_pair(*made, CLASSES)
    for k, norm in enumerate(("none", "batch")):
        for seed in range(SEEDS):
            steps = levels(made, seed)[k]
            for name in ("shift", "cosine"):
                values = sorted(between(curves(made[k], seed)[name], step) for step in steps)
                assert of_shift[f"equal_loss_{name}.{norm}"][seed] == pytest.approx(values[4])
            assert found[k][seed] == of_shift[f"equal_loss_shift.{norm}"][seed]


def test_numbers_of_covariate_shift(made):
    found, late = (
        internal_covariate_shift.of_arm(made[0], arm(), CLASSES),
        [k for k, p in enumerate(PROBES) if p >= 0.05 * 398],
    )
    assert PROBES[late[0]] == 24 and PROBES[late[0] - 1] == 16  # behind the first twentieth
    for seed in range(SEEDS):
        seen, start = curves(made[0], seed), start_step(made[0]["loss"][seed])
        windows = {"": (0, 400), "_early": (0, 40), "_late": (200, 400), "_started": (start, start + 40)}
        for name, (part, window) in product(MEASURES, windows.items()):
            expected = middle(seen[name], *window, name == "cosine")
            assert found[f"{name}{part}"][seed] == pytest.approx(expected), f"{name}{part}"
        decline = middle(seen["shift"], 0, 40) / middle(seen["shift"], 200, 400)
        assert found["shift_decline"][seed] == pytest.approx(decline)
        follows = spearmanr(seen["shift"][late], made[0]["start_loss"][seed][late]).statistic
        assert found["shift_follows_loss"][seed] == pytest.approx(follows)
        assert found["training_accuracy"][seed] == pytest.approx(made[0]["accuracy"][seed].mean())
    two, three = np.array([[1.0, 2.0]]), np.array([[1.0, 3.0, 2.0]])
    assert np.isnan(internal_covariate_shift.rank_correlation(two, two)).all()
    assert internal_covariate_shift.rank_correlation(three, 10 * three**3) == pytest.approx(1)
    assert internal_covariate_shift.rank_correlation(three, np.array([[1.0, 2.0, 3.0]])) == pytest.approx(0.5)


def test_covariate_shift_layer_by_layer_and_rate_by_rate(made):
    lines, layers = internal_covariate_shift.drawn(made[0]), internal_covariate_shift.by_layer(made[0])
    for name in MEASURES:
        one, two = (curves(made[0], seed)[name] for seed in range(2))
        if name == "cosine":
            center, half = (one + two) / 2, T2 * abs(one - two) / 2
            np.testing.assert_allclose(lines[name], [[center - half, center, center + half]])
        else:
            center, half = np.sqrt(one * two), np.exp(T2 * abs(np.log(one / two)) / 2)
            np.testing.assert_allclose(lines[name], [[center / half, center, center * half]])
    for place, k in enumerate((1, 2, 3)):
        cosines = [middle(made[0]["shift_cosine"][s, :, k], 0, 400, mean=True) for s in range(SEEDS)]
        relative = made[0]["shift_distance"][..., k] / made[0]["shift_norm"][..., k]
        middles = [middle(relative[s], 0, 400) for s in range(SEEDS)]
        assert layers["cosine"][0, 1, place] == pytest.approx(np.mean(cosines))
        assert layers["relative_shift"][0, 1, place] == pytest.approx(math.sqrt(middles[0] * middles[1]))
    assert layers["cosine"].shape == (1, 3, 3)
    found = internal_covariate_shift.at_rates(list(made), 70)
    for k, each in enumerate(made):
        for seed in range(SEEDS):
            seen = curves(each, seed)
            assert found["cosine"][seed, k] == pytest.approx(middle(seen["cosine"], 0, 70, mean=True))
            assert found["relative_shift"][seed, k] == pytest.approx(middle(seen["relative_shift"], 0, 70))


def test_how_wrong_a_gradient_becomes(made):
    found = predictiveness.of_arm(made[0], LENGTHS)
    assert len(found) == 5 * (4 + 2)
    for seed in range(SEEDS):
        seen = curves(made[0], seed)
        for length in (1, 2, 4, 8, 16):
            for name in ("error", "relative_error", "cosine", "descends"):
                each, mean = seen[f"{name}_x{length}"], name in ("cosine", "descends")
                assert found[f"{name}.x{length}"][seed] == pytest.approx(middle(each, 0, 398, mean))
            error = seen[f"error_x{length}"]
            assert found[f"error.x{length}.early"][seed] == pytest.approx(middle(error, 0, 39.8))
            assert found[f"error.x{length}.late"][seed] == pytest.approx(middle(error, 199, 398))
    pair = predictiveness.of_pair(*made, LENGTHS, RATE)
    one, other = (rows(each, "error_x4") for each in made)
    for seed in range(SEEDS):
        share = middle((one[seed] > other[seed]).astype(float), 0, 398, mean=True)
        assert pair["better_share"][seed] == pytest.approx(share)
        worse = [k for k in range(len(PROBES)) if not one[seed, k] > other[seed, k]]
        held = PROBES[worse[-1] + 1] if worse[-1] + 1 < len(PROBES) else math.inf
        assert pair["better_from"][seed] == held


def test_errors_are_drawn_at_a_fiftieth_a_quarter_and_the_end():
    assert predictiveness.shown(np.array([0, 1, 2, 10, 24, 25, 60, 100])) == [2, 5, 7]
    assert predictiveness.shown(np.array([0, 3, 40, 100])) == [1, 2, 3]  # the first probe at it or behind


def test_moments_of_an_arm(made):
    found = vgg.moment_numbers(made[0], arm(), logs=("update", "checkpoint"))
    of = [LAYERS.index(layer) for layer in (2, 5, 8)]
    for seed in range(SEEDS):
        for way in ("update", "batch", "checkpoint"):
            change = made[0][f"{way}_change"][seed]
            for m, moment in enumerate(("mean", "variance")):
                for k, place in enumerate(PLACES):
                    each = np.array([sum(row[j, k, m] for j in of) / 3 for row in change])
                    expected = sum(each) / 4 if way == "checkpoint" else middle(each, 0, 398)
                    name = f"{way}_{moment}_{place}"
                    assert found[name][seed] == pytest.approx(expected), name
                    if way != "batch":
                        assert found[f"{name}_log"][seed] == pytest.approx(math.log(expected))
    assert not any(name.startswith("batch") and name.endswith("_log") for name in found)
