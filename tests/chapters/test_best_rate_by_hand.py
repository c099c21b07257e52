"""The page on best rates with made-up trainings, whose best rate is known: what it tries, picks and records."""

from __future__ import annotations

import numpy as np
import page_cells
import pytest

from bnbook import runs

PAGE = "santurkar/best-rate"
GRID = [0.05, 0.1, 0.2]
#: Where the made-up loss is lowest, of (norm, lengths kept, He's start, clipped).
BEST = {
    ("none", False, False, False): 0.1,
    ("none", False, True, False): 0.05 / 4,  # two below the grid
    ("none", False, True, True): 0.2,
    ("batch", False, False, False): 0.8,  # two above it
    ("batch", True, False, False): 0.2 * 2**8,  # farther than it may be extended
}
DIVERGES = 1.5  # batch norm, from here on


def kind(arm):
    return arm.norm, arm.lengths_kept, bool(arm.options), bool(arm.clip)


def fake(calls):
    def made(arm, seed):
        rng = np.random.default_rng([seed, int(1e6 * arm.learning_rate)])
        depth = 0.1 if kind(arm)[2] else 0.0  # He's start ends lower than the book's
        apart = np.log2(arm.learning_rate / BEST[kind(arm)])
        loss = 1.0 - depth + apart**2 + 0.5 * (np.arange(arm.steps)[::-1] > arm.steps // 20)
        if arm.norm == "batch" and not arm.lengths_kept and arm.learning_rate >= DIVERGES:
            loss[-1] = np.nan
        found = {"loss": loss, "accuracy": rng.integers(0, 17, arm.steps) / 16, "seconds": np.float64(1.0)}
        if arm.evaluate_every:
            count = len(arm.checkpoints())
            level = {"none": 0.4, "batch": 0.6}[arm.norm] + 0.01 * (seed % 7) - 0.02 * abs(apart)
            found |= {
                "test_accuracy": level + 0.001 * np.arange(count),
                "train_accuracy": np.full(count, 0.5),
            }
        return found | {"diverged": np.float64(0.0), "diverged_step": np.float64(np.nan)}

    def train_all(wanted, seeds, *_, **__):
        calls.extend((arm, tuple(seeds)) for arm in wanted.values())
        each = {key: [made(arm, seed) for seed in seeds] for key, arm in wanted.items()}
        return {
            key: {name: np.stack([one[name] for one in rows]) for name in rows[0]}
            for key, rows in each.items()
        }

    return train_all


@pytest.fixture(scope="module")
def ran():
    calls, true = [], runs.train_all
    runs.train_all = fake(calls)
    changed = dict(seeds=3, selection_seeds=2, selection_first=11, first_seed=20, steps=120, long_steps=130)
    changed |= dict(
        rates=GRID, extensions=4, evaluate_every=20, groups=["start", "mending", "long"], common=0.1
    )
    try:
        names, recorded = page_cells.run(PAGE, **changed | dict(data="textures-standin"))
    finally:
        runs.train_all = true
    return names, recorded, calls


def test_the_rate_with_the_lowest_loss_is_found_also_beyond_the_grid(ran):
    _, recorded, _ = ran
    rates = {name: recorded[f"best_rate.{name}"][0] for name in ("none", "he", "clip", "batch", "put_back")}
    assert rates == pytest.approx(dict(none=0.1, he=0.0125, clip=0.2, batch=0.8, put_back=0.2 * 2**4))
    assert {name: recorded[f"at_end.{name}"][0] for name in rates} == dict(
        none=0, he=0, clip=0, batch=0, put_back=1
    )
    assert list(recorded["rates.none"][0]) == GRID
    assert recorded["rates.he"][0] == pytest.approx([0.00625, 0.0125, 0.025, *GRID])
    assert recorded["rates.batch"][0] == pytest.approx([*GRID, 0.4, 0.8, 1.6])
    assert recorded["tried.batch"].shape == (2, 6) and np.isinf(recorded["tried.batch"][:, -1]).all()
    expected = [[1.0 + np.log2(rate / 0.1) ** 2 for rate in GRID]] * 2
    np.testing.assert_allclose(recorded["tried.none"], expected)  # of the last twentieth alone


def test_seeds_that_choose_do_not_judge_and_the_others_do_not_choose(ran):
    _, _, calls = ran
    assert {seeds for arm, seeds in calls if not arm.evaluate_every} == {(11, 12)}
    assert {seeds for arm, seeds in calls if arm.evaluate_every} == {(20, 21, 22)}
    judged = {
        arm.learning_rate for arm, _ in calls if arm.evaluate_every and arm.steps == 120 and kind(arm)[2]
    }
    assert judged == {0.0125, 0.2, 0.1}  # its own, the clipped one's, the common one


def test_the_better_plain_start_is_picked_by_training_loss_and_the_leads_are_against_it(ran):
    names, recorded, _ = ran
    assert names["plain"] == "he"
    level = np.array([0.01 * (seed % 7) for seed in (20, 21, 22)])
    end = 0.001 * np.arange(7)[-3:].mean()  # checkpoints 0, 20, ..., 120
    np.testing.assert_allclose(recorded["test_accuracy.plain"], 0.4 + level + end)
    np.testing.assert_allclose(recorded["test_accuracy.batch"], 0.6 + level + end)
    np.testing.assert_allclose(recorded["common_accuracy.batch"], 0.6 - 0.02 * 3 + level + end)
    np.testing.assert_allclose(recorded["lead.tuned"], 0.2)
    np.testing.assert_allclose(recorded["lead.common"], 0.2 - 0.06)
    np.testing.assert_allclose(recorded["over_half.tuned"], 0.2 - 0.14 / 2)
    put_back = 0.6 - 0.02 * 4  # its rate is four doublings short
    np.testing.assert_allclose(recorded["over_half.put_back"], put_back - 0.4 - 0.1, atol=1e-9)


def test_the_long_trainings_take_the_better_of_two_rates_and_the_same_seeds(ran):
    _, recorded, calls = ran
    long = [(arm, seeds) for arm, seeds in calls if arm.steps == 130]
    assert {arm.learning_rate for arm, seeds in long if len(seeds) == 2} == {0.4, 0.8, 0.0125, 0.00625}
    assert recorded["best_rate.long_batch"] == 0.8 and recorded["best_rate.long_plain"] == 0.0125
    np.testing.assert_allclose(recorded["lead.long"], 0.2, atol=1e-9)


def test_steps_to_match_are_a_loop_that_looks_for_the_plain_networks_best(ran):
    names, recorded, _ = ran
    window, runs_of = 120 // 60, names["runs"]
    for row in range(3):
        plain, normed = (runs_of[name]["accuracy"][row] for name in ("he", "batch"))
        means = [[a[t - window : t].mean() for t in range(window, 121)] for a in (plain, normed)]
        top = max(means[0])
        needed = [next((t + window for t, m in enumerate(each) if m >= top), np.inf) for each in means]
        assert [recorded["steps_to_match.plain"][row], recorded["steps_to_match.batch"][row]] == needed
