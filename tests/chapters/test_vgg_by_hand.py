"""What the VGG chapters sum up of a training, each number worked out a second time, step by step."""

from __future__ import annotations

import math

import numpy as np
import pytest
from made_up_runs import (
    LAYERS,
    LENGTHS,
    PROBES,
    RANDOM,
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
from page_cells import functions
from page_cells import run as run_page
from scipy.stats import spearmanr

from bnbook.chapters import internal_covariate_shift, predictiveness, vgg
from bnbook.probes.places import PLACES

MEASURES = ("shift", "relative_shift", "cosine")


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


def of_ten_layers(run):
    """The same, with moments of all ten layers; those that were not drawn are not looked at."""
    found = dict(run)
    for name in ("update_change", "batch_change", "checkpoint_change"):
        found[name] = np.full((*run[name].shape[:2], 10, *run[name].shape[3:]), np.nan)
        found[name][:, :, [layer - 1 for layer in LAYERS]] = run[name]
    return found


def page(name, made):
    """What the cells of a page record of three trainings that never took place, with parameters as they have."""
    whole = dict(steps=400, early_probes=list(PROBES), probe_every=400, seeds=SEEDS)
    whole |= dict(lengths=list(LENGTHS), random_lengths=list(RANDOM), learning_rate=RATE)
    whole |= dict(linear_seeds=2, slow_seeds=2, linear_steps=2)  # of which nothing is looked at here
    return run_page(
        f"santurkar/{name}",
        dict(zip(("none", "batch", "noisy"), map(of_ten_layers, (*made, made[1])))),
        **whole,
    )[1]


@pytest.fixture(scope="module")
def landscape(made):
    return page("landscape", made)


@pytest.fixture(scope="module")
def ahead(made):
    return page("predictiveness", made)


@pytest.fixture(scope="module")
def shifted(made):
    return page("internal-covariate-shift", made)


def test_middles_of_a_landscape_over_the_parts_of_a_training(made, landscape):
    for arm_of, each in zip(("none", "batch"), made):
        for seed in range(SEEDS):
            start, seen = start_step(each["loss"][seed]), curves(each, seed)
            windows = {"": (0, 400), "_early": (0, 40), "_late": (200, 400), "_started": (start, start + 40)}
            for name in ("loss_range", "gradient_change", "smoothness"):
                for part in windows if name == "loss_range" else ("", "_early", "_late"):
                    expected = middle(seen[name], *windows[part])
                    assert landscape[f"{name}{part}.{arm_of}"][seed] == pytest.approx(expected, rel=1e-5)
            relative = seen["loss_range"] / each["start_loss"][seed]
            for part in ("", "_early"):
                expected = middle(relative, *windows[part])
                assert landscape[f"relative_range{part}.{arm_of}"][seed] == pytest.approx(expected, rel=1e-5)
            assert landscape[f"gradient_norm.{arm_of}"][seed] == pytest.approx(
                middle(each["start_norm"][seed], 0, 400), rel=1e-5
            )
            for name, of, lengths in (
                ("beyond", "landscape", LENGTHS),
                ("random_smoothness", "random", RANDOM),
            ):
                change, norm = each[f"{of}_distance"][seed], each["start_norm"][seed]
                far = [k for k, length in enumerate(lengths) if of == "random" or length > 4]
                slopes = [max(row[k] / (lengths[k] * RATE * g) for k in far) for row, g in zip(change, norm)]
                expected = middle(np.array(slopes), 0, 400)
                assert landscape[f"{name}.{arm_of}"][seed] == pytest.approx(expected, rel=1e-5), name
            away = abs(each["random_loss"][seed] - each["start_loss"][seed][:, None]).max(1)
            assert landscape[f"random_loss_change.{arm_of}"][seed] == pytest.approx(
                middle(away, 0, 400), rel=1e-5
            )
    for part, (low, high) in {"early": (0, 40), "late": (200, 400)}.items():
        for seed in range(SEEDS):
            one, other = (middle(curves(each, seed)["loss_range"], low, high) for each in made)
            assert landscape[f"gap.loss_range.{part}"][seed] == pytest.approx(one / other, rel=1e-5)


def test_when_batch_norm_is_the_smoother_one(made, landscape):
    for name in ("loss_range", "gradient_change", "smoothness"):
        for seed in range(SEEDS):
            one, other = (curves(each, seed)[name] for each in made)
            expected = middle((one > other).astype(float), 0, 400, mean=True)
            assert landscape[f"smoother_share.{name}"][seed] == pytest.approx(expected, rel=1e-5)
            assert landscape[f"smoother_from.{name}"][seed] == last_turn(one > other)
            steps = levels(made, seed)
            medians = [
                sorted(between(curves(each, seed)[name], step) for step in at)[4]
                for each, at in zip(made, steps)
            ]
            assert landscape[f"equal_loss.{name}"][seed] == pytest.approx(medians[0] / medians[1], rel=1e-5)
    first = [each["start_norm"][:, 0] for each in made]
    np.testing.assert_allclose(landscape["first_gradient_norm_ratio"], first[0] / first[1], rtol=1e-5)


def last_turn(holds):
    """The first probe from which on it holds to the end."""
    fails = [k for k, each in enumerate(holds) if not each]
    return (
        PROBES[fails[-1] + 1] if fails and fails[-1] + 1 < len(PROBES) else math.inf if fails else PROBES[0]
    )


def test_numbers_of_covariate_shift(made, shifted):
    late = [k for k, p in enumerate(PROBES) if p >= 0.05 * 398]
    assert PROBES[late[0]] == 24 and PROBES[late[0] - 1] == 16  # behind the first twentieth
    for norm, each in zip(("none", "batch"), made):
        for seed in range(SEEDS):
            seen = curves(each, seed)
            expected = {name: middle(seen[name], 0, 400, name == "cosine") for name in MEASURES}
            expected["shift_decline"] = middle(seen["shift"], 0, 40) / middle(seen["shift"], 200, 400)
            expected["shift_follows_loss"] = spearmanr(
                seen["shift"][late], each["start_loss"][seed][late]
            ).statistic
            expected["training_accuracy"] = each["accuracy"][seed].mean()
            for name in ("shift", "cosine"):
                steps = levels(made, seed)[("none", "batch").index(norm)]
                expected[f"equal_loss_{name}"] = sorted(between(seen[name], step) for step in steps)[4]
            found = {name: shifted[f"{name}.{norm}"][seed] for name in expected}
            assert found == pytest.approx(expected, rel=1e-5)
    for name in MEASURES:
        for seed in range(SEEDS):
            one, other = (curves(each, seed)[name] for each in made)
            worse = other < one if name == "cosine" else other > one
            expected = middle(worse.astype(float), 0, 400, mean=True)
            assert shifted[f"worse_share.{name}"][seed] == pytest.approx(expected, rel=1e-5)
            assert shifted[f"worse_from.{name}"][seed] == last_turn(worse)


def test_rank_correlation():
    two, three = np.array([[1.0, 2.0]]), np.array([[1.0, 3.0, 2.0]])
    assert np.isnan(internal_covariate_shift.rank_correlation(two, two)).all()
    assert internal_covariate_shift.rank_correlation(three, 10 * three**3) == pytest.approx(1)
    assert internal_covariate_shift.rank_correlation(three, np.array([[1.0, 2.0, 3.0]])) == pytest.approx(0.5)


def test_moments_and_other_rates_beside_the_covariate_shift(made, shifted):
    for norm, each in zip(("none", "batch"), made):
        for name, values in vgg.moment_numbers(each, arm()).items():
            if name.startswith("update"):
                assert shifted[f"{name}.{norm}"] == pytest.approx(values, rel=1e-5)
        for seed in range(SEEDS):
            seen = curves(each, seed)
            for rate in ("0_01", "0_1"):
                expected = [middle(seen["cosine"], 0, 4, mean=True), middle(seen["relative_shift"], 0, 4)]
                found = [shifted[f"{name}.lr{rate}.{norm}"][seed] for name in ("cosine", "relative_shift")]
                assert found == pytest.approx(expected, rel=1e-5)


def test_how_wrong_a_gradient_becomes(made, ahead):
    for norm, each in zip(("none", "batch"), made):
        for seed in range(SEEDS):
            seen = curves(each, seed)
            for length in (1, 2, 4, 8, 16):
                for name in ("error", "relative_error", "cosine", "descends"):
                    if name != "descends" and length not in (1, 4):
                        assert f"{name}.x{length}.{norm}" not in ahead
                        continue
                    expected = middle(seen[f"{name}_x{length}"], 0, 398, name in ("cosine", "descends"))
                    assert ahead[f"{name}.x{length}.{norm}"][seed] == pytest.approx(expected, rel=1e-5)
            for length in (1, 4):
                error = seen[f"error_x{length}"]
                early, late = (ahead[f"error.x{length}.{part}.{norm}"][seed] for part in ("early", "late"))
                assert [early, late] == pytest.approx(
                    [middle(error, 0, 39.8), middle(error, 199, 398)], rel=1e-5
                )
    one, other = (rows(each, "error_x4") for each in made)
    for seed in range(SEEDS):
        share = middle((one[seed] > other[seed]).astype(float), 0, 398, mean=True)
        assert ahead["better_share"][seed] == pytest.approx(share, rel=1e-5)
        assert ahead["better_from"][seed] == last_turn(one[seed] > other[seed])


def test_errors_at_equal_distance():
    """Distances 1 to 100 and 10 to 1000 of errors d² and 5 d: at √(10 · 100) 1000 over 5 √1000."""

    def ratio(one, other, lengths):
        made = [
            {"start_norm": np.array([[g]]), "landscape_distance": np.array([[error]])}
            for g, error in (one, other)
        ]
        return functions("santurkar/predictiveness", lengths=lengths, learning_rate=0.5)["at_equal_distance"](
            *made
        )

    slow, fast, lengths = (2.0, [1.0, 100.0, 1e4]), (20.0, [50.0, 500.0, 5000.0]), [1, 10, 100]
    assert ratio(slow, fast, lengths) == pytest.approx(math.sqrt(1000) / 5)
    assert ratio(fast, slow, lengths) == pytest.approx(5 / math.sqrt(1000))
    assert ratio((2.0, [6.0]), (2.0, [3.0]), [1]) == pytest.approx(2)  # they touch
    for other in ((2.0, [0.0] * 3), (2.0, [math.nan, math.inf, math.nan]), (5000.0, [50.0, 500.0, 5000.0])):
        assert np.isnan(ratio(slow, other, lengths))


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


def test_errors_are_drawn_at_a_fiftieth_a_quarter_and_the_end():
    assert predictiveness.shown(np.array([0, 1, 2, 10, 24, 25, 60, 100])) == [2, 5, 7]
    assert predictiveness.shown(np.array([0, 3, 40, 100])) == [1, 2, 3]  # the first probe at it or behind
