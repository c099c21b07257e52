"""The pages on best rates and on the mean alone with made-up trainings, whose best rate is known: what they try, pick and
record; and the layer that subtracts the mean, by hand."""

from __future__ import annotations

import numpy as np
import page_cells
import pytest
import torch

from bnbook.data import load
from bnbook.training.arm import Arm, build_model, hidden

GRID = [0.05, 0.1, 0.2]
#: Where the made-up loss is lowest, of (norm, lengths kept, He's start, clipped).
BEST = {
    ("none", False, False, False): 0.1,
    ("none", False, True, False): 0.05 / 4,  # two below the grid
    ("none", False, True, True): 0.2,
    ("batch", False, False, False): 0.8,  # two above it; from 1.5 on it diverges
    ("batch", True, False, False): 0.2 * 2**8,  # farther than it may be extended
}
CALLS = {"best-rate": [], "mean-alone": []}  # (arm, seed) of each training


def trained(loss, level, accuracy, arm):
    """What every training has, of this accuracy at its looks, where it has any."""
    found = {"loss": loss, "accuracy": accuracy, "seconds": np.float64(1.0)}
    found |= {"diverged": np.float64(0.0), "diverged_step": np.float64(np.nan)}
    if arm.evaluate_every:
        looks = len(arm.checkpoints())
        found |= {"test_accuracy": level + 0.001 * np.arange(looks), "train_accuracy": np.full(looks, 0.5)}
    return found


def of_best_rate(arm, seed):
    CALLS["best-rate"].append((arm, seed))
    own = arm.optimizer
    best = BEST[arm.norm, own.lengths_kept, bool(arm.options), bool(own.clip)]
    apart = np.log2(arm.learning_rate / best)
    depth = 0.1 if arm.options else 0.0  # He's start ends lower than the book's
    loss = 1.0 - depth + apart**2 + 0.5 * (np.arange(arm.steps)[::-1] > arm.steps // 20)
    if arm.norm == "batch" and not own.lengths_kept and arm.learning_rate >= 1.5:
        loss[-1] = np.nan
    drawn = np.random.default_rng([seed, int(1e6 * arm.learning_rate)]).integers(0, 17, arm.steps) / 16
    level = {"none": 0.4, "batch": 0.6}[arm.norm] + 0.01 * (seed % 7) - 0.02 * abs(apart)
    return trained(loss, level, drawn, arm)


def of_mean_alone(arm, seed):
    """The best rate is 0.4, with a warm-up 0.025, which ends lower."""
    CALLS["mean-alone"].append((arm, seed))
    warm = bool(arm.optimizer.warm_up)
    apart = np.log2(arm.learning_rate / (0.025 if warm else 0.4)) if arm.norm == "centred" else 0.0
    level = {"none": 0.5, "batch": 0.6, "standardized_centred": 0.61, "centred": 0.57}[arm.norm]
    loss = np.full(arm.steps, 1.0 - 0.1 * warm + apart**2)
    return trained(loss, level + 0.01 * (seed % 3) + 0.005 * warm, np.full(arm.steps, 0.5), arm)


SEEDS = dict(seeds=3, selection_seeds=2, selection_first=11, first_seed=20)
COMMON = SEEDS | dict(steps=120, evaluate_every=20, rates=GRID, extensions=4, data="textures-standin")


@pytest.fixture(scope="module")
def ran():
    more = dict(long_steps=130, groups=["start", "mending", "long"], common=0.1)
    return page_cells.run("santurkar/best-rate", of_best_rate, **COMMON, **more)


@pytest.fixture(scope="module")
def mean():
    return page_cells.run("santurkar/mean-alone", of_mean_alone, **COMMON)[1]


def test_the_rate_with_the_lowest_loss_is_found_also_beyond_the_grid(ran, mean):
    recorded = ran[1]
    rates = {name: recorded[f"best_rate.{name}"][0] for name in ("none", "he", "clip", "batch", "put_back")}
    assert rates == pytest.approx(dict(none=0.1, he=0.0125, clip=0.2, batch=0.8, put_back=0.2 * 2**4))
    at_end = {name: recorded[f"at_end.{name}"][0] for name in rates}
    assert at_end == dict(none=0, he=0, clip=0, batch=0, put_back=1)
    assert list(recorded["rates.none"][0]) == GRID
    assert recorded["rates.he"][0] == pytest.approx([0.00625, 0.0125, 0.025, *GRID])
    assert recorded["rates.batch"][0] == pytest.approx([*GRID, 0.4, 0.8, 1.6])
    assert recorded["tried.batch"].shape == (2, 6) and np.isinf(recorded["tried.batch"][:, -1]).all()
    expected = [[1.0 + np.log2(rate / 0.1) ** 2 for rate in GRID]] * 2
    np.testing.assert_allclose(recorded["tried.none"], expected)  # of the last twentieth alone
    assert mean["best_rate.mean_glorot"][0] == 0.4 and mean["best_rate.mean_warm"][0] == 0.025


def test_seeds_that_choose_do_not_judge_and_the_others_do_not_choose(ran, mean):
    for calls in CALLS.values():
        chosen_by, judged_by = ({s for arm, s in calls if bool(arm.evaluate_every) == of} for of in (0, 1))
        assert chosen_by == {11, 12} and judged_by == {20, 21, 22}
    judged = {
        page: {(arm.norm, bool(arm.options), arm.learning_rate) for arm, _ in calls if arm.evaluate_every}
        for page, calls in CALLS.items()
    }  # with He's start its own, half of it for long, the clipped one's, the common one
    assert {rate for _, he, rate in judged["best-rate"] if he} == {0.0125, 0.2, 0.1}
    others = {("none", True, 0.1), ("batch", False, 0.4), ("standardized_centred", False, 0.1)}
    assert judged["mean-alone"] == others | {("centred", False, 0.4), ("centred", True, 0.025)}
    long = [(arm, seed) for arm, seed in CALLS["best-rate"] if arm.steps == 130]
    assert {arm.learning_rate for arm, seed in long if seed < 20} == {0.4, 0.8, 0.0125, 0.00625}
    assert {seed for arm, seed in long} == {11, 12, 20, 21, 22}
    assert ran[1]["best_rate.long_batch"] == 0.8 and ran[1]["best_rate.long_plain"] == 0.0125


def test_the_better_start_is_picked_by_training_loss_and_the_leads_are_against_it(ran, mean):
    names, recorded = ran
    assert names["plain"] == "he"
    level = np.array([0.01 * (seed % 7) for seed in (20, 21, 22)])
    level += 0.001 * np.arange(7)[-3:].mean()  # checkpoints 0, 20, ..., 120
    wanted = {"test_accuracy.plain": 0.4 + level, "test_accuracy.batch": 0.6 + level}
    wanted |= {"common_accuracy.batch": 0.6 - 0.02 * 3 + level, "lead.tuned": 0.2, "lead.long": 0.2}
    wanted |= {"lead.common": 0.2 - 0.06, "over_half.tuned": 0.2 - 0.14 / 2}
    wanted["over_half.put_back"] = 0.6 - 0.02 * 4 - 0.4 - 0.1  # its rate is four doublings short
    for name, values in wanted.items():
        np.testing.assert_allclose(recorded[name], values, atol=1e-9, err_msg=name)
    test = {name: mean[f"test_accuracy.{name}"] for name in ("plain", "batch", "mean", "mean_warm")}
    assert mean["warm_is_better"][0] == 1 and np.array_equal(test["mean"], test["mean_warm"])
    kept = test["mean"] - test["plain"] - (test["batch"] - test["plain"]) / 2
    np.testing.assert_allclose(mean["over_half.mean"], kept)


def test_steps_to_match_are_a_loop_that_looks_for_the_plain_networks_best(ran):
    names, recorded = ran
    window, runs_of = 120 // 60, names["runs"]
    for row in range(3):
        plain, normed = (runs_of[name]["accuracy"][row] for name in ("he", "batch"))
        means = [[a[t - window : t].mean() for t in range(window, 121)] for a in (plain, normed)]
        top = max(means[0])
        needed = [next((t + window for t, m in enumerate(each) if m >= top), np.inf) for each in means]
        assert [recorded["steps_to_match.plain"][row], recorded["steps_to_match.batch"][row]] == needed


def test_the_layer_subtracts_the_mean_and_leaves_the_weights_their_length():
    torch.manual_seed(0)
    arm = Arm(norm="centred", width=0.0625, data="textures-standin")
    network = build_model(arm, load("textures-standin")).double().train()
    layer, norm = hidden(network)[0], dict(network.named_modules())["norm1"]
    x = torch.rand(7, 3, 32, 32, dtype=torch.float64)
    z = layer(x).detach()
    mean = torch.stack([z[:, unit].sum() / z[:, unit].numel() for unit in range(z.shape[1])])
    g = (2 / (1 - 1 / np.pi)) ** 0.5
    assert torch.allclose(norm(z), g * (z - mean[:, None, None]), atol=1e-12)
    with torch.no_grad():
        layer.weight.mul_(3)
    three = 3 * g * (z - mean[:, None, None])
    assert torch.allclose(norm(layer(x)), three, atol=1e-4), "it is not blind to scale"
