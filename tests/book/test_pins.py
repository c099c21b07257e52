"""Pins: an instrument that works on a grid (lengths, brackets, windows, probes, rates) takes of what says nothing a value
that the grid alone decides."""

from __future__ import annotations

import math

import numpy as np
import page_cells
import pytest

from bnbook import curves
from bnbook.chapters.length_direction import steps_to
from bnbook.chapters.vgg import STARTS, at_equal_loss
from bnbook.deep_linear import LinearArm
from bnbook.deep_linear import summaries as linear
from bnbook.probes import summaries
from bnbook.small_networks import bisect

LENGTHS = [0.05, 0.2, 0.5, 1, 2, 4, 16]


def test_a_gradient_that_changes_by_its_own_length_has_the_slope_of_the_shortest_length():
    spent = {name: np.ones((1, 1)) for name in ("start_loss", "start_norm", "target_energy")}
    names = (f"{way}_{what}" for way in ("landscape", "random") for what in ("loss", "norm", "distance"))
    spent |= {name: np.ones((1, 1, len(LENGTHS))) for name in names}
    found = summaries.landscape(spent, LENGTHS, 0.1, (0.5, 4.0))
    assert found["smoothness"] == pytest.approx(1 / (0.1 * 0.5))
    assert found["beyond"] == pytest.approx(1 / (0.1 * 16)), "the shortest length behind the reach"
    assert summaries.landscape(spent, LENGTHS, 0.1, (0, 0.05))["smoothness"] == pytest.approx(200)
    assert summaries.random_direction(spent, LENGTHS, 0.1)["random_smoothness"] == pytest.approx(200)
    arm = LinearArm(lengths=LENGTHS, learning_rate=1.0, random_lengths=(), covariate_shift=False)
    assert linear.landscape(arm, spent)["smoothness"] == pytest.approx(1 / 0.05)


@pytest.mark.parametrize("steps", [2000, 15000])
def test_a_training_takes_its_first_or_last_steps(steps):
    matched = page_cells.functions("santurkar/training")["matched"]
    rising = np.linspace(0.1, 0.9, steps)[None]
    assert matched(rising, rising, steps // 60)[0] == steps
    assert matched(rising[:, ::-1], rising[:, ::-1], steps // 60)[0] == steps // 60
    probes = np.arange(steps + 1)
    early = curves.over_window(probes[None].astype(float), probes, 0.0, 0.1 * steps)
    assert early == pytest.approx(steps / 20), "of the first tenth of the steps the middle one"


@pytest.mark.parametrize(("fall", "last"), [(0.5, 297), (0.04, 274)])
def test_a_late_fall_of_the_loss_is_no_start(fall, last):
    """The last step at which a loss of guessing may fall by this share of itself and counts as started."""
    late = np.arange(STARTS) < np.arange(STARTS + 1)[:, None]
    assert curves.started(np.where(late, 1, 1 - fall) * math.log(10)).nonzero()[0].max() == last


def test_a_probe_counts_half_of_the_steps_to_its_neighbours():
    probes, each = np.array([0, 10, 40, 50]), np.eye(4, dtype=bool)
    alive = np.ones((1, 4), dtype=bool)
    shares = [float(curves.share_of_training(one[None], alive, probes)[0]) for one in each]
    assert shares == pytest.approx([0.1, 0.4, 0.4, 0.1])
    come = np.where(np.arange(51) < 3, 2.4, 0.1)[None]  # every loss is reached at step 3
    curve = probes[None].astype(float) ** 2
    assert np.median(at_equal_loss((curve, curve), (come, come), probes, 10)[0]) == pytest.approx(30)


def test_a_scan_of_rates_takes_its_ends():
    best = page_cells.functions("mean-field/learning-rate")["best_rates"]
    rates = np.linspace(-1.5, 0.3, 7)
    assert best(1.0 - 0.01 * np.arange(7)[None, None], rates[None])[1] == pytest.approx(0.3)
    stable = {rate: {"diverged_at": np.array([np.inf])} for rate in (1e-8, 1e-6, 1e-3)}
    assert linear.largest_stable(stable) == pytest.approx(1e-3)
    steadiness = page_cells.functions("batch-norm/gradient-explosion")["steadiness"]
    depths = [4, 8, 16]  # of a growth that is a power of the depth
    assert steadiness(np.array([depths], dtype=float), depths) == pytest.approx(4 / 8)
    assert steps_to(np.ones(1201), 1e-4) == 1201


@pytest.mark.parametrize("rounds", [3, 5])
def test_a_bisection_halves_its_bracket_or_goes_twenty_of_them_away(rounds):
    ends = lambda works: bisect(works, [-0.4], [0.4], rounds)
    low, high = ends(lambda rates: rates < 0.013)
    assert high - low == pytest.approx(0.8 / 2**rounds) and low < 0.013 <= high
    half = 0.4 / 2**rounds
    assert np.mean(ends(lambda rates: rates < np.inf)) == pytest.approx(0.4 + 20 * 0.8 - half)
    assert np.mean(ends(lambda rates: rates > np.inf)) == pytest.approx(-0.4 - 20 * 0.8 + half)
