"""The ladder's numbers of two arms, each worked out a second time: step by step, seed by seed."""

from __future__ import annotations

import math

import numpy as np
import pytest
from made_up_runs import CLASSES, SEEDS, STEPS, arm, between, curves, levels, middle, run
from page_cells import functions

INF, PAGE = math.inf, functions("santurkar/scale", classes=CLASSES)


@pytest.fixture(scope="module")
def made():
    return run(1), run(2)


@pytest.fixture(scope="module")
def found(made):
    return PAGE["at_equal_loss"](*made, arm())


def test_steps_at_which_one_of_the_two_is_the_smoother(made, found):
    for seed in range(SEEDS):
        one, other = (curves(each, seed) for each in made)
        smoother = (one["smoothness"] > other["smoothness"]).astype(float)
        share = middle(smoother, 0, 400, mean=True)
        assert found["smoother_share_smoothness"][seed] == pytest.approx(share)


def test_steps_to_match_count_batches_of_a_sixtieth_of_the_training():
    """400 steps: means of six. The plain arm's best is (0.66 + 5 · 0.3) / 6 = 0.36, first reached where its
    one good batch is in; the other has batches of 0.4 from step 100 on, four of six suffice."""
    plain, normed = run(1), run(2)
    plain["accuracy"] = np.full((SEEDS, STEPS), 0.3)
    plain["accuracy"][0, 299], plain["accuracy"][1, 0] = 0.66, 9.0  # before the sixth step nothing counts
    normed["accuracy"] = np.where(np.arange(STEPS) < 100, 0.3, 0.4) * np.ones((SEEDS, 1))
    plain["accuracy"][1, 6:] = np.nan  # a guess of ten classes
    found = PAGE["steps_to_match"](plain, normed)
    assert found["steps_to_match_none"].tolist() == [300, 6]
    assert found["steps_to_match_batch"].tolist() == [104, INF]  # a mean of 1.75 it never has


def test_the_middle_of_nine_losses_is_where_two_arms_are_compared(made, found):
    for seed in range(SEEDS):
        seen, at = [curves(each, seed) for each in made], levels(made, seed)
        names = ("loss_range", "smoothness", "shift")
        for name in names:
            one, other = ([between(c[name], step) for step in steps] for c, steps in zip(seen, at))
            apart = [math.log(x / y) for x, y in zip(one, other)]
            assert found[f"equal_loss_{name}"][seed] == pytest.approx(sorted(apart)[4]), name
    compared = {name.removeprefix("equal_loss_") for name in found if name.startswith("equal_loss_")}
    assert compared == set(names)
