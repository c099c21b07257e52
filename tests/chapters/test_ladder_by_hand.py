"""The ladder's numbers of an arm, each worked out a second time: step by step, seed by seed, on paper."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from made_up_runs import (
    CLASSES,
    LAYERS,
    LENGTHS,
    PROBES,
    RATE,
    SEEDS,
    STEPS,
    arm,
    curves,
    middle,
    run,
    start_step,
)
from page_cells import functions

from bnbook.chapters import scale, vgg
from bnbook.models.vgg import HIDDEN
from bnbook.probes.places import PLACES

NAN = np.nan
PAGE = SimpleNamespace(**functions("santurkar/scale", classes=CLASSES))


@pytest.fixture(scope="module")
def made():
    return run()


@pytest.fixture(scope="module")
def found(made):
    found = vgg.learning(made, arm(), CLASSES) | {"accuracy_path": PAGE.path(made)}
    for each in (PAGE.landscape, PAGE.by_distance, PAGE.trusted, PAGE.shifted, PAGE.moved):
        found |= each(made, arm())
    return found | dict(zip(("removed_along_one", "removed_along_values"), PAGE.removed(made)))


def test_middles_of_all_of_a_training_its_first_tenth_its_second_half_and_its_start(made, found):
    for seed in range(SEEDS):
        start = start_step(made["loss"][seed])
        assert found["start_step"][seed] == start and 60 < start < STEPS
        windows = {"": (0, 400), "_early": (0, 40), "_late": (200, 400), "_started": (start, start + 40)}
        seen = curves(made, seed)
        parts = {"loss_range": windows, "gradient_change": ("", "_early"), "smoothness": ("", "_early")}
        for name, asked in parts.items():
            for part in asked:
                expected = middle(seen[name], *windows[part])
                assert found[f"{name}{part}"][seed] == pytest.approx(expected), f"{name}{part}"
            assert {each.removeprefix(name) for each in found if each.startswith(name)} == set(asked)
        for name, mean in {
            "gradient_norm": False,
            "shift": False,
            "cosine": True,
            "removed_along_one": True,
        }.items():
            assert found[name][seed] == pytest.approx(middle(seen[name], 0, 400, mean)), name
        early, late = (middle(seen["shift"], *windows[part]) for part in ("_early", "_late"))
        assert found["shift_decline"][seed] == pytest.approx(early / late)
        for length in (1, 2, 4, 8):
            for name, mean in (("error", False), ("cosine", True), ("descends", True)):
                each = f"{name}_x{length}"
                assert found[each][seed] == pytest.approx(middle(seen[each], 0, 400, mean)), each
    assert "error_x16" not in found and 16 in LENGTHS


def test_what_is_removed_grows_with_the_batch_by_an_exponent():
    """<1, g>^2 is the share times B |g|^2, and |g|^2 grows as B: a share that does not change means B^2, one
    that is a quarter over four times the batch B^1."""
    base = run()
    for factor, exponent in ((0.25, 1.0), (1.0, 2.0), (4.0, 3.0), (0.5, 1.5)):
        base["removed_along_one"] = np.full((SEEDS, len(PROBES), 3), 0.2 * factor)
        base["removed_along_one_part"] = np.full((SEEDS, len(PROBES), 3), 0.2)
        base["removed_along_values"] = np.full((SEEDS, len(PROBES), 3), 0.1)
        for found, expected in zip(PAGE.removed(base), (0.2 * factor, 0.1, exponent)):
            np.testing.assert_allclose(found, expected)


def test_of_the_fully_connected_layers_each_step_counts_alike():
    made = run()
    made |= {name: values[..., [0, 1, 2, 2, 1]] for name, values in made.items() if "removed" in name}
    found = PAGE.removed(made, slice(-len(HIDDEN), None))
    for seed in range(SEEDS):
        one, values, part = (
            middle([sum(row[3:]) / 2 for row in made[f"removed_along_{name}"][seed]], 0, 400, mean=True)
            for name in ("one", "values", "one_part")
        )
        expected = one, values, np.log(16 * one / part) / np.log(4)
        assert [each[seed] for each in found] == pytest.approx(expected)


def test_an_update_is_looked_at_behind_the_first_and_the_last_layer(made, found):
    received = PLACES.index("next_input")
    for seed in range(SEEDS):
        for word, row in (("first", 0), ("last", len(LAYERS) - 1)):
            for m, moment in enumerate(("mean", "variance")):
                each = np.array([probe[row, received, m] for probe in made["update_change"][seed]])
                assert found[f"update_{moment}_{word}"][seed] == pytest.approx(middle(each, 0, 400))


def slope_by_hand(made, seed, probe, k):
    """|g - g_a| / (a |g|) at one length, at one look of one training."""
    return made["landscape_distance"][seed, probe, k] / (LENGTHS[k] * RATE * made["start_norm"][seed, probe])


def test_the_slope_by_its_distance_and_what_the_effective_beta_owes_to_its_shortest_step(made, found):
    reach = [k for k, length in enumerate(LENGTHS) if 0.5 <= length <= 4]
    for seed in range(SEEDS):
        rows = [
            [slope_by_hand(made, seed, probe, k) for k in range(len(LENGTHS))] for probe in range(len(PROBES))
        ]
        for k in range(len(LENGTHS)):
            expected = middle([row[k] for row in rows], 0, 400)
            assert found["slopes"][seed, k] == pytest.approx(expected)
        assert found["near_slope"][seed] == pytest.approx(middle([row[0] for row in rows], 0, 400))
        largest = [max(row[k] for k in reach) for row in rows]
        assert found["of_pin"][seed] == pytest.approx(0.5 * RATE * middle(largest, 0, 400))
        first = [float(row[reach[0]] == most) for row, most in zip(rows, largest, strict=True)]
        assert found["shortest_share"][seed] == pytest.approx(middle(first, 0, 400, mean=True))
        assert 0 < found["shortest_share"][seed] < 1


def test_who_overtakes_is_ahead_from_there_to_the_end():
    """Four parts of a training of 400 steps: ahead from the third on, never, always, and ahead but not to the end."""
    other = np.zeros((4, 4))
    one = np.array([[-1.0, -1, 1, 1], [-1, 1, 1, -1], [1, 1, 1, 1], [1, -1, 1, 0]])
    np.testing.assert_array_equal(PAGE.overtaken(one, other, 400), [200, np.inf, 0, np.inf])


def learning(steps=400, **changes):
    flat = dict(loss=np.full((1, steps), 2.4), accuracy=np.full((1, steps), 0.5))
    flat |= {name: np.array([[0.9, 0.9, 0.2, 0.3, 0.7]]) for name in ("train_accuracy", "test_accuracy")}
    flat |= dict(diverged=np.zeros(1), seconds=np.ones(1))
    return {k: v[0] for k, v in vgg.learning(flat | changes, arm(steps=steps, probe_steps=()), 10).items()}


def test_the_end_is_the_last_tenth_and_the_gain_that_over_the_tenth_before():
    """Twenty steps: the last two have 0.8 and 1.0, the two before 0.5 and 0.7, all others 0.1."""
    found = learning(20, accuracy=np.array([[0.1] * 16 + [0.5, 0.7, 0.8, 1.0]]))
    assert found["end_accuracy"] == pytest.approx(0.9) and found["last_tenth_gain"] == pytest.approx(0.3)
    assert found["training_speed"] == pytest.approx((1.6 + 3.0) / 20)
    few = learning(5, accuracy=np.array([[0.1, 0.2, 0.3, 0.4, 0.8]]))  # a tenth is one step at least
    assert few["end_accuracy"] == pytest.approx(0.8) and few["last_tenth_gain"] == pytest.approx(0.4)


def test_how_far_a_training_has_come_is_the_lowest_mean_of_50_losses():
    loss = np.full((1, 400), 3.0)
    loss[0, 100:150] = 1.0
    come = vgg.progress(loss)[0]
    # k of the 50 last losses are 1: 3 - 2 k / 50; never up again
    assert come[109] == pytest.approx(3 - 2 * 10 / 50) and come[149] == pytest.approx(1)
    assert come[399] == pytest.approx(1)
    short = np.array([[9.0, 3.0, 0.0, 9.0, 0.0, 9.0, 0.0, 0.0, 3.0, 9.0, 9.0, 9.0]])  # 12 steps: means of 3
    np.testing.assert_allclose(vgg.progress(short)[0], [9, 6, 4, 4, 3, 3, 3, 3, 1, 1, 1, 1])
    np.testing.assert_allclose(vgg.progress(np.array([[3.0, 1.0, 2.0]]))[0], [3, 1, 1])  # of one


def test_what_it_shows_at_a_loss_is_looked_up_by_the_losses_around():
    loss = np.full((1, 400), 3.0)
    loss[0, 100:151] = 1.0
    come = vgg.come_to(loss)[0]
    assert come[124] == pytest.approx(3 - 2 * 50 / 51) and come[125] == pytest.approx(1), "25 on each side"
    assert come[74] == 3 and come[399] == pytest.approx(1)
    short = np.array([[9.0, 3.0, 0.0, 9.0, 0.0, 0.0, 3.0, 9.0, 9.0, 3.0, 0.0, 0.0]])  # one on each side
    np.testing.assert_allclose(vgg.come_to(short)[0], [9, 4, 4, 3, 3, 1, 1, 1, 1, 1, 1, 1])
    short[0, 5] = 1e20  # what came before and comes after is not lost in the digits of a sum
    np.testing.assert_allclose(vgg.come_to(short)[0], [9, 4, 4, 3, 3, 3, 3, 3, 3, 3, 1, 1], atol=1e-9)
    broken = vgg.come_to(np.array([[5.0, 4.0, 3.0, 2.0, np.nan, 1.0, 1.0, 1.0]]))[0]
    np.testing.assert_array_equal(np.isnan(broken), [False] * 3 + [True] * 5)


def test_what_is_compared_at_a_rung():
    results = {"x.w1.none": np.array([np.e, 4.0]), "x.w1.batch": np.array([1.0, 2.0])}
    assert scale.ratio("x").values(results, "w1") == pytest.approx([1.0, np.log(2)])
    assert scale.points("x").values(results, "w1") == pytest.approx([100 * (1 - np.e), -200])
    assert scale.level("x", "none", 0.0, 10.0).values(results, "w1") == pytest.approx([10 * np.e, 40])
    assert scale.logarithm("x").values({"x.w1": np.ones(2)}, "w1").tolist() == [1.0, 1.0]
    assert scale.ratio("x").values(results, "w1_2") is None
