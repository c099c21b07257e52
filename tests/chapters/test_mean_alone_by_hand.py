"""The page on the mean alone with made-up trainings: what it tries, picks and records; and the layer, by hand."""

from __future__ import annotations

import numpy as np
import page_cells
import pytest
import torch

from bnbook import runs
from bnbook.data import load
from bnbook.training.tuned import TunedArm, hidden

PAGE = "santurkar/mean-alone"
#: Where the made-up loss is lowest: (warm-up, rate); the warm start ends lower.
BEST = {False: 0.4, True: 0.025}
LEVEL = {"none": 0.5, "batch": 0.6, "standardized_centred": 0.61, "centred": 0.57}


def made(arm: TunedArm, seed: int) -> dict:
    warm = bool(arm.warm_up)
    apart = np.log2(arm.learning_rate / BEST[warm]) if arm.norm == "centred" else 0.0
    loss = np.full(arm.steps, 1.0 - 0.1 * warm + apart**2)
    found = {"loss": loss, "accuracy": np.full(arm.steps, 0.5), "seconds": np.float64(1.0)}
    if arm.evaluate_every:
        accuracy = LEVEL[arm.norm] + 0.01 * (seed % 3) + 0.005 * warm
        found |= {
            name: np.full(len(arm.checkpoints()), accuracy) for name in ("test_accuracy", "train_accuracy")
        }
    return found | {"diverged": np.float64(0.0), "diverged_step": np.float64(np.nan)}


@pytest.fixture(scope="module")
def ran():
    calls, true = [], runs.train_all

    def train_all(wanted, seeds, *_, **__):
        calls.extend((arm, tuple(seeds)) for arm in wanted.values())
        each = {key: [made(arm, seed) for seed in seeds] for key, arm in wanted.items()}
        return {key: {k: np.stack([one[k] for one in rows]) for k in rows[0]} for key, rows in each.items()}

    runs.train_all = train_all
    changed = dict(seeds=3, selection_seeds=2, selection_first=11, first_seed=21, steps=40, evaluate_every=10)
    try:
        names, recorded = page_cells.run(
            PAGE, **changed, rates=[0.05, 0.1, 0.2], extensions=4, data="textures-standin"
        )
    finally:
        runs.train_all = true
    return names, recorded, calls


def test_the_best_rate_is_found_beyond_both_ends_of_the_grid_by_seeds_that_do_not_judge(ran):
    _, recorded, calls = ran
    assert recorded["best_rate.mean_glorot"][0] == 0.4 and recorded["best_rate.mean_warm"][0] == 0.025
    assert {seeds for arm, seeds in calls if not arm.evaluate_every} == {(11, 12)}
    judged = [(arm.norm, arm.learning_rate) for arm, seeds in calls if seeds == (21, 22, 23)]
    others = [("none", 0.1), ("batch", 0.4), ("standardized_centred", 0.1)]
    assert judged == [*others, ("centred", 0.4), ("centred", 0.025)]


def test_the_better_start_by_training_loss_stands_for_the_mean_and_half_a_lead_is_counted_by_seed(ran):
    _, recorded, _ = ran
    test = {name: recorded[f"test_accuracy.{name}"] for name in ("plain", "batch", "mean", "mean_warm")}
    assert recorded["warm_is_better"][0] == 1 and np.array_equal(test["mean"], test["mean_warm"])
    for seed in range(3):
        lead, kept = test["batch"][seed] - test["plain"][seed], test["mean"][seed] - test["plain"][seed]
        assert recorded["over_half.mean"][seed] == pytest.approx(kept - lead / 2)


def test_the_layer_subtracts_the_mean_and_leaves_the_weights_their_length():
    torch.manual_seed(0)
    arm = TunedArm(norm="centred", width=0.0625, data="textures-standin")
    network = arm.model(load("textures-standin")).double().train()
    layer, norm = hidden(network)[0], dict(network.named_modules())["norm1"]
    x = torch.rand(7, 3, 32, 32, dtype=torch.float64)
    z = layer(x).detach()
    mean = torch.stack([z[:, unit].sum() / z[:, unit].numel() for unit in range(z.shape[1])])
    g = (2 / (1 - 1 / np.pi)) ** 0.5
    assert torch.allclose(norm(z), g * (z - mean[:, None, None]), atol=1e-12)
    with torch.no_grad():
        layer.weight.mul_(3)
    assert torch.allclose(norm(layer(x)), 3 * g * (z - mean[:, None, None]), atol=1e-4), (
        "it is not blind to scale"
    )
