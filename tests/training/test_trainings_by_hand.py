"""Small and deep linear networks, and what is read off a training, with numbers worked out on paper."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from bnbook.curves import guessing, moving_mean, started, steps_to_reach
from bnbook.deep_linear import LinearArm, draw_examples, draw_problem, instruments, spread_probes
from bnbook.deep_linear import summaries as of

NAN, INF = math.nan, math.inf
TINY = dict(depth=3, width=3, examples=8, steps=6, learning_rate=1e-3)


# Curves


def test_started_by_the_mean_of_the_last_sixth():
    late = np.array([2.4] * 299 + [0.0])  # 49/50 · 2.4 = 2.352, above 0.98 · 2.3026
    assert not started(late) and started(late, margin=-0.03) and started(np.array([2.4] * 297 + [0.0] * 3))
    assert not started(np.array([0.0] * 250 + [2.4] * 50))
    assert started(np.array([9.0] * 10 + [0.0] * 2)) and started(np.array([0.0]))  # two of twelve; one of one
    assert not started(np.full(6, 0.98 * math.log(10))) and not started(np.array([0.0] * 11 + [NAN]))
    assert started(np.full(6, 0.6), classes=2) and not started(np.full(6, 0.69), classes=2)


def test_other_numbers_of_a_curve():
    assert guessing(np.array([0.5, NAN, INF])).tolist() == [0.5, 0.1, 0.1]
    assert guessing(np.array([NAN]), classes=4).tolist() == [0.25]
    assert moving_mean(np.array([1.0, 3.0, 5.0, 7.0]), 2).tolist() == [1, 2, 4, 6]
    assert np.isnan(moving_mean(np.array([1.0, NAN, 5.0]), 1)).tolist() == [False, True, True]
    path = np.array([0.7, 0.0, 0.2, 0.6, 1.0])  # the first alone is no window of two
    assert steps_to_reach(path, 0.4, window=2) == 4 and steps_to_reach(path, 0.9, window=2) == INF
    assert steps_to_reach(path, 0.7, window=1) == 1
    assert steps_to_reach(np.array([0.0, 1.0]), 0.5, window=9) == 2


# Deep linear networks


def test_every_stream_of_random_numbers_is_its_own():
    x, a = draw_examples(3, 20, 400)
    problem = draw_problem([3], depth=1, width=20, examples=400, init="glorot-normal")
    weights = problem.weights[0, 0]
    for one, two in ((weights, a), (weights, x[:20]), (a, x[:20])):
        together = torch.stack([one.flatten(), two.flatten()])
        assert abs(torch.corrcoef(together)[0, 1]) < 0.2
    assert x.std() == pytest.approx(1, abs=0.05) and a.std() == pytest.approx(1, abs=0.1)
    assert draw_examples(3, 20, 400, 0.5)[0].std() == pytest.approx(0.5, abs=0.03)
    assert weights.var() == pytest.approx(1 / 20, rel=0.2)


def test_steps_that_are_looked_at():
    assert instruments.LEVELS == (0.02, 0.1, 0.25, 0.5, 0.75, 0.9, 0.98)
    assert spread_probes(20) == (0, 1, 2, 5, 10, 15, 19) and spread_probes(1) == (0,)
    assert spread_probes(100, regular=2, early=(3, 100)) == (0, 3, 50, 99)
    steps = LinearArm(steps=400).loss_steps()
    assert steps[:7] == [0, 1, 2, 3, 4, 5, 6] and steps[-1] == 400 and steps[-2] == 398
    assert LinearArm(steps=1).loss_steps() == [0, 1] and LinearArm(steps=10_000).loss_steps()[-2] == 9950


def test_a_stable_rate_by_hand():
    runs = {rate: {"diverged_at": np.array(ends)} for rate, ends in ((1.0, [INF, 5]), (2.0, [7, INF]))}
    assert of.largest_stable(runs)[0] == 1 and np.isnan(of.largest_stable(runs)[1])


def test_settled_means_a_flat_last_tenth():
    steps = np.array([[0.0, 50, 90, 95, 100]])
    run = {"loss_step": steps, "diverged_at": np.array([INF]), "target_energy": np.array([[1.0]])}
    for before, last, expected in ((0.5, 0.4951, 1), (0.5, 0.4949, 0), (0.5, 0.6, 1)):
        loss = {"loss": np.array([[9.0, 9.0, before, 7.0, last]])}
        assert of.settled(LinearArm(steps=100), run | loss) == expected
    assert (
        of.settled(LinearArm(steps=100), run | {"loss": np.full((1, 5), NAN), "diverged_at": np.ones(1)}) == 0
    )


# Probed trainings
