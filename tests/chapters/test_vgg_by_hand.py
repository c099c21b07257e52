"""What the VGG chapters and the ladder sum up of a training and of two, each number worked out a second time, step by
step (`made_up_runs`)."""

from __future__ import annotations

import math
from functools import cache
from types import SimpleNamespace

import numpy as np
import pytest
from made_up_runs import (
    CLASSES,
    LAYERS,
    LENGTHS,
    PROBES,
    RANDOM,
    RATE,
    SEEDS,
    STEPS,
    arm,
    between,
    curves,
    levels,
    middle,
    run,
    summed_up,
)
from page_cells import functions
from page_cells import run as run_page
from scipy.stats import spearmanr

from bnbook.chapters import scale, vgg
from bnbook.models.vgg import HIDDEN

NAN, INF, MEASURES = math.nan, math.inf, ("loss_range", "gradient_change", "smoothness")
MADE = run(3), run(4)
WANTED = {
    norm: [summed_up(each, seed) for seed in range(SEEDS)] for norm, each in zip(("none", "batch"), MADE)
}
LADDER = SimpleNamespace(**functions("santurkar/scale", classes=CLASSES))


def of_ten_layers(run):
    """The same, with moments of all ten layers; those that were not drawn are not looked at."""
    found = dict(run)
    for name in ("update_change", "batch_change", "checkpoint_change"):
        found[name] = np.full((*run[name].shape[:2], 10, *run[name].shape[3:]), np.nan)
        found[name][:, :, [layer - 1 for layer in LAYERS]] = run[name]
    return found


@cache
def page(name):
    """What the cells of a page record of three trainings that never took place, with parameters as they have."""
    whole = dict(steps=STEPS, early_probes=list(PROBES), probe_every=STEPS, seeds=SEEDS)
    whole |= dict(lengths=list(LENGTHS), random_lengths=list(RANDOM), learning_rate=RATE)
    whole |= dict(linear_seeds=2, slow_seeds=2, linear_steps=2)  # of which nothing is looked at here
    trained = dict(zip(("none", "batch", "noisy"), map(of_ten_layers, (*MADE, MADE[1]))))
    return run_page(f"santurkar/{name}", trained, **whole)[1]


# ---- Of one training ----

SHIFT, AHEAD = ("shift", "relative_shift", "cosine"), ("error", "relative_error", "cosine", "descends")
#: Page -> which of a training's numbers it records, name.NORM.
RECORDED = {
    "landscape": [f"{name}{part}" for name in MEASURES for part in ("", "_early", "_late")]
    + ["loss_range_started", "relative_range", "relative_range_early", "relative_change", "gradient_norm"]
    + ["start_loss", "beyond", "beyond_range", "random_smoothness", "random_loss_change"],
    "predictiveness": [f"{name}_x{k}" for name in AHEAD for k in (1, 4)] + ["descends_x2", "descends_x16"],
    "internal-covariate-shift": [*SHIFT, "shift_decline"]
    + [
        name for name in WANTED["none"][0] if name[:7] == "update_" and name[-3:] not in ("log", "rst", "ast")
    ],
}


@pytest.mark.parametrize(("page_of", "norm"), [(name, norm) for name in RECORDED for norm in WANTED])
def test_what_a_page_records_of_a_training(page_of, norm):
    recorded = page(page_of)
    for name in RECORDED[page_of]:
        found = recorded[f"{name.replace('_x', '.x')}.{norm}"]
        assert found == pytest.approx([each[name] for each in WANTED[norm]], rel=1e-5), name


def test_what_the_ladder_records_of_a_training():
    parts = LADDER.landscape, LADDER.by_distance, LADDER.trusted, LADDER.shifted, LADDER.moved
    for norm, each in zip(WANTED, MADE):
        found = {name: values for part in parts for name, values in part(each, arm()).items()}
        found |= dict(zip(("removed_along_one",), LADDER.removed(each)))
        found["start_step"] = vgg.learning(each, arm(), CLASSES)["start_step"]
        for name, values in found.items():
            np.testing.assert_allclose(values, [row[name] for row in WANTED[norm]], err_msg=name)
        assert {f"{name}_early" for name in MEASURES} | {"loss_range_started", "error_x8"} <= set(found)
        assert "error_x16" not in found and "checkpoint_mean_before_nonlinearity_log" not in found
        assert all(60 < row["start_step"] < STEPS and 0 < row["shortest_share"] < 1 for row in WANTED[norm])


def test_windows_of_the_gradient_ahead_and_of_other_rates_and_the_shift_beside_the_loss():
    late = [k for k, p in enumerate(PROBES) if p >= 0.05 * 398]
    assert PROBES[late[0]] == 24 and PROBES[late[0] - 1] == 16  # behind the first twentieth
    ahead, shifted = page("predictiveness"), page("internal-covariate-shift")
    for norm, each in zip(WANTED, MADE):
        for seed in range(SEEDS):
            seen = curves(each, seed)
            for k in (1, 4):
                for part, window in {"early": (0, 39.8), "late": (199, 398)}.items():
                    expected = middle(seen[f"error_x{k}"], *window)
                    assert ahead[f"error.x{k}.{part}.{norm}"][seed] == pytest.approx(expected, rel=1e-5)
            for rate in ("0_01", "0_1"):
                expected = [middle(seen["cosine"], 0, 4, mean=True), middle(seen["relative_shift"], 0, 4)]
                found = [shifted[f"{name}.lr{rate}.{norm}"][seed] for name in ("cosine", "relative_shift")]
                assert found == pytest.approx(expected, rel=1e-5)
            follows = spearmanr(seen["shift"][late], each["start_loss"][seed][late]).statistic
            assert shifted[f"shift_follows_loss.{norm}"][seed] == pytest.approx(follows, rel=1e-5)
            assert shifted[f"training_accuracy.{norm}"][seed] == pytest.approx(each["accuracy"][seed].mean())


def test_what_is_removed_grows_with_the_batch_by_an_exponent():
    """<1, g>^2 is the share times B |g|^2, and |g|^2 grows as B: a share that does not change means B^2, one
    that is a quarter over four times the batch B^1. Here of the last two layers, the fully connected ones."""
    made = run()
    made |= {name: values[..., [0, 1, 2, 2, 1]] for name, values in made.items() if "removed" in name}
    found = LADDER.removed(made, slice(-len(HIDDEN), None))
    for seed in range(SEEDS):
        one, values, part = (
            middle([sum(row[3:]) / 2 for row in made[f"removed_along_{name}"][seed]], 0, 400, mean=True)
            for name in ("one", "values", "one_part")
        )
        expected = one, values, np.log(16 * one / part) / np.log(4)
        assert [each[seed] for each in found] == pytest.approx(expected)


def test_the_end_is_the_last_tenth_and_the_gain_that_over_the_tenth_before():
    """Twenty steps: the last two have 0.8 and 1.0, the two before 0.5 and 0.7, all others 0.1."""

    def learning(*accuracy):
        flat = dict(loss=np.full((1, len(accuracy)), 2.4), accuracy=np.array([accuracy]))
        looks = np.array([[0.9, 0.9, 0.2, 0.3, 0.7]])
        flat |= dict(train_accuracy=looks, test_accuracy=looks, diverged=np.zeros(1), seconds=np.ones(1))
        found = vgg.learning(flat, arm(steps=len(accuracy), probe_steps=()), 10)
        return [found[k][0] for k in ("end_accuracy", "last_tenth_gain", "training_speed", "test_accuracy")]

    expected = [0.9, 0.3, (1.6 + 3.0) / 20, 0.4]  # of the test images at the last three looks
    assert learning(*[0.1] * 16, 0.5, 0.7, 0.8, 1.0) == pytest.approx(expected)
    assert learning(0.1, 0.2, 0.3, 0.4, 0.8)[:2] == pytest.approx([0.8, 0.4])  # one step at least


def test_how_far_a_training_has_come_by_its_losses_before_or_around():
    """Of 12 steps: means of three."""
    before = np.array([[9.0, 3.0, 0.0, 9.0, 0.0, 9.0, 0.0, 0.0, 3.0, 9.0, 9.0, 9.0]])
    np.testing.assert_allclose(vgg.progress(before)[0], [9, 6, 4, 4, 3, 3, 3, 3, 1, 1, 1, 1])
    np.testing.assert_allclose(vgg.progress(np.array([[3.0, 1.0, 2.0]]))[0], [3, 1, 1])
    around = np.array([[9.0, 3.0, 0.0, 9.0, 0.0, 0.0, 3.0, 9.0, 9.0, 3.0, 0.0, 0.0]])
    np.testing.assert_allclose(vgg.come_to(around)[0], [9, 4, 4, 3, 3, 1, 1, 1, 1, 1, 1, 1])
    around[0, 5] = 1e20  # what came before and comes after is not lost in the digits of a sum
    np.testing.assert_allclose(vgg.come_to(around)[0], [9, 4, 4, 3, 3, 3, 3, 3, 3, 3, 1, 1], atol=1e-9)
    broken = vgg.come_to(np.array([[5.0, 4.0, 3.0, 2.0, NAN, 1.0, 1.0, 1.0]]))[0]
    np.testing.assert_array_equal(np.isnan(broken), [False] * 3 + [True] * 5)


# ---- Of two trainings ----


def last_turn(holds):
    """The first probe from which on it holds to the end."""
    fails = [k for k, each in enumerate(holds) if not each]
    return PROBES[0] if not fails else PROBES[fails[-1] + 1] if fails[-1] + 1 < len(PROBES) else math.inf


@pytest.mark.parametrize("seed", range(SEEDS))
def test_when_batch_norm_is_the_better_one_and_what_the_two_show_at_equal_loss(seed):
    landscape, shifted, ahead = map(page, ("landscape", "internal-covariate-shift", "predictiveness"))
    ladder = {name: values[seed] for name, values in LADDER.at_equal_loss(*MADE, arm()).items()}
    at, seen = levels(MADE, seed), [curves(each, seed) for each in MADE]
    held = {f"smoother_{{}}.{name}": (landscape, seen[0][name] > seen[1][name]) for name in MEASURES}
    held |= {f"worse_{{}}.{name}": (shifted, seen[1][name] > seen[0][name]) for name in SHIFT[:2]}
    held["worse_{}.cosine"] = shifted, seen[1]["cosine"] < seen[0]["cosine"]
    held["better_{}"] = ahead, seen[0]["error_x4"] > seen[1]["error_x4"]
    for name, (recorded, holds) in held.items():
        share = middle(holds.astype(float), 0, 400, mean=True)
        assert recorded[name.format("share")][seed] == pytest.approx(share, rel=1e-5), name
        assert recorded[name.format("from")][seed] == last_turn(holds), name
        if "smoothness" in name:
            assert ladder["smoother_share_smoothness"] == pytest.approx(share)
    for name in (*MEASURES, "shift", "cosine"):
        one, other = ([between(each[name], step) for step in steps] for each, steps in zip(seen, at))
        if name in MEASURES:
            expected = sorted(one)[4] / sorted(other)[4]
            assert landscape[f"equal_loss.{name}"][seed] == pytest.approx(expected, rel=1e-5)
        else:
            found = [shifted[f"equal_loss_{name}.{norm}"][seed] for norm in WANTED]
            assert found == pytest.approx([sorted(one)[4], sorted(other)[4]], rel=1e-5)
        if f"equal_loss_{name}" in ladder:
            apart = [math.log(x / y) for x, y in zip(one, other)]
            assert ladder[f"equal_loss_{name}"] == pytest.approx(sorted(apart)[4]), name
    assert {f"equal_loss_{name}" for name in ("loss_range", "smoothness", "shift")} < set(ladder)
    for part in ("early", "late"):
        one, other = (WANTED[norm][seed][f"loss_range_{part}"] for norm in WANTED)
        assert landscape[f"gap.loss_range.{part}"][seed] == pytest.approx(one / other, rel=1e-5)
    first = [each["start_norm"][seed, 0] for each in MADE]
    assert landscape["first_gradient_norm_ratio"][seed] == pytest.approx(first[0] / first[1], rel=1e-5)


def test_errors_at_equal_distance():
    """Distances 1 to 100 and 10 to 1000 of errors d² and 5 d: at √(10 · 100) 1000 over 5 √1000."""

    def ratio(*pair, lengths=(1, 10, 100)):
        made = [{"start_norm": np.array([[g]]), "landscape_distance": np.array([[d]])} for g, d in pair]
        cells = functions("santurkar/predictiveness", lengths=lengths, learning_rate=0.5)
        return cells["at_equal_distance"](*made)

    slow, fast = (2.0, [1.0, 100.0, 1e4]), (20.0, [50.0, 500.0, 5000.0])
    assert ratio(slow, fast) == pytest.approx(math.sqrt(1000) / 5)
    assert ratio((2.0, [6.0]), (2.0, [3.0]), lengths=[1]) == pytest.approx(2)  # they touch
    for other in ((2.0, [0.0] * 3), (2.0, [NAN, INF, NAN]), (5000.0, fast[1])):
        assert np.isnan(ratio(slow, other))


def test_who_overtakes_is_ahead_from_there_to_the_end():
    """Four parts of a training of 400 steps: ahead from the third on, never, always, and ahead but not to the end."""
    other = np.zeros((4, 4))
    one = np.array([[-1.0, -1, 1, 1], [-1, 1, 1, -1], [1, 1, 1, 1], [1, -1, 1, 0]])
    np.testing.assert_array_equal(LADDER.overtaken(one, other, 400), [200, np.inf, 0, np.inf])


def test_steps_to_match_count_batches_of_a_sixtieth_of_the_training():
    """400 steps: means of six. The plain arm's best is (0.66 + 5 · 0.3) / 6 = 0.36, first reached where its
    one good batch is in; the other has batches of 0.4 from step 100 on, four of six suffice."""
    plain, normed = run(1), run(2)
    plain["accuracy"] = np.full((SEEDS, STEPS), 0.3)
    plain["accuracy"][0, 299], plain["accuracy"][1, 0] = 0.66, 9.0  # before the sixth step nothing counts
    normed["accuracy"] = np.where(np.arange(STEPS) < 100, 0.3, 0.4) * np.ones((SEEDS, 1))
    plain["accuracy"][1, 6:] = np.nan  # a guess of ten classes
    found = LADDER.steps_to_match(plain, normed)
    assert found["steps_to_match_none"].tolist() == [300, 6]
    assert found["steps_to_match_batch"].tolist() == [104, INF]  # a mean of 1.75 it never has
    pair = [np.where(np.isnan(each["accuracy"]), 0.1, each["accuracy"]) for each in (plain, normed)]
    for one, other in zip(functions("santurkar/training")["matched"](*pair, 6), found.values()):
        assert one.tolist() == other.tolist()


def test_what_is_compared_at_a_rung():
    results = {"x.w1.none": np.array([np.e, 4.0]), "x.w1.batch": np.array([1.0, 2.0])}
    expected = {"none/batch": [1.0, np.log(2)], "batch-none": [1 - np.e, -2], "none": [np.e, 4], "": [1, 1]}
    for way, values in expected.items():
        found = scale.Effect("x", way, 0.0).values(results | {"x.w1": np.ones(2)}, "w1")
        assert found == pytest.approx(values), way
    assert scale.Effect("x", "none", 0.0, 100).values(results, "w1") == pytest.approx([100 * np.e, 400])
    assert scale.Effect("{arm}_x.{rung}", "a/b", 1.0).values({"a_x.w1": [4.0], "b_x.w1": [4.0]}, "w1") == 0
    assert scale.Effect("x", "none/batch", 1.0).values(results, "w1_2") is None


# ---- Curves of accuracy and the starts of trainings, on paper ----


def test_accuracy_is_in_per_cent_of_the_batches_up_to_each_point():
    """120 steps in 60 points: means of two. The second seed diverged and guesses one of ten classes."""
    trained = {"accuracy": np.stack([np.linspace(0, 1.19, 120), np.full(120, NAN)])}
    assert vgg.batch_steps(120).tolist() == list(range(2, 121, 2)) and vgg.batch_steps(299)[0] == 4
    assert vgg.batch_steps(50).tolist() == list(range(1, 51)) and vgg.batch_steps(7, 3)[-1] == 6
    # means of 0.00 and 0.01, of 0.02 and 0.03, ... and of 0.1
    np.testing.assert_allclose(vgg.batch_accuracy(trained, 10)[0, 1], 50 * (0.005 + 0.02 * np.arange(60)) + 5)
    some = vgg.batch_accuracy(trained, 4, 3)[0, 1]  # means of 40 batches: 0.195, 0.595, 0.995
    np.testing.assert_allclose(some, [9.75 + 12.5, 29.75 + 12.5, 49.75 + 12.5])
    tested = {"test_accuracy": np.array([[0.1, 0.5], [0.3, NAN], [0.2, 0.9]])}
    low, center, high = vgg.test_accuracy(tested, 10)[0]
    np.testing.assert_allclose(center, [20, 50])
    assert center[0] - low[0] == pytest.approx(4.302653 * 10 / math.sqrt(3)) == high[0] - center[0]


def test_a_training_failed_by_its_last_sixth():
    loss = np.full((3, 12), 2.4)
    loss[0, 10:] = 2.2  # 2 of 12, below 0.98 ln 10 = 2.2565
    loss[1, 11] = 2.12  # mean 2.26
    loss[2, :10], loss[2, 10:] = 0.0, NAN
    failed = functions("santurkar/training", classes=10)["failed"]
    assert failed({"loss": loss}).tolist() == [0, 1, 1]
