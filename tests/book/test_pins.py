"""Pins: of every instrument that works on a grid (lengths, brackets, windows, probes, rates), fed with what says nothing,
which value does it take? A value that changes with the grid alone stands in its paragraph."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import page_cells
import pytest

from bnbook import curves
from bnbook.chapters.length_direction import steps_to
from bnbook.chapters.vgg import STARTS, at_equal_loss
from bnbook.deep_linear import LinearArm
from bnbook.deep_linear import summaries as linear
from bnbook.deep_linear.arm import LENGTHS
from bnbook.probes import summaries
from bnbook.small_networks import bisect
from bnbook.training.probes import PARTS, probe_schedule
from bookpress.claims import load_instruments
from bookpress.pipeline import chapters

INSTRUMENTS = {one.id: one.own for one in load_instruments()}
PROBES = probe_schedule(2000, 100, (5, 10, 20, 50, 100, 150, 200, 250, 300, 350, 400))
VGG = [0.05, 0.2, 0.5, 1, 1.5, 2, 2.5, 3, 3.5, 4, 8, 16]


def of(chapter: str, name: str) -> Any:
    """A parameter of a chapter: the grid that was used."""
    return chapters.select([chapter])[0].parameters("laptop")[name]


def spent(lengths: list[float]) -> dict[str, np.ndarray]:
    """A training whose batch's gradient, of length 1, has changed by its own length at every length ahead."""
    found = {name: np.ones((1, 1)) for name in ("start_loss", "start_norm", "target_energy")}
    names = (f"{way}_{what}" for way in ("landscape", "random") for what in ("loss", "norm", "distance"))
    return found | {name: np.ones((1, 1, len(lengths))) for name in names}


def ahead(name: str, reach: tuple[float, float] = (0.5, 4.0)):
    return lambda lengths: summaries.landscape(spent(lengths), lengths, 0.1, reach)[name]


def random_smoothness(lengths: list[float]) -> np.ndarray:
    return summaries.random_direction(spent(lengths), lengths, 0.1)["random_smoothness"]


def linear_smoothness(lengths: list[float]) -> np.ndarray:
    """In learning rates, so that the rate itself is left out."""
    arm = LinearArm(lengths=tuple(lengths), learning_rate=1.0, random_lengths=(), covariate_shift=False)
    return linear.landscape(arm, spent(lengths))["smoothness"]


def bracket(least: float, of_ends):
    """Of the last bracket around 0 that a bisection leaves, where rates work below the least that does not: its width, or
    its middle."""
    return lambda grid: of_ends(*bisect(lambda rates: rates < least, [-grid[0] / 2], [grid[0] / 2], grid[1]))


def longest(rising: bool):
    """Steps to match of a plain network that learns to the end, or gets worse to the end."""

    def measure(steps: int) -> float:
        accuracy = np.linspace(0.1, 0.9, steps)[None, :: 1 if rising else -1]
        matched = page_cells.functions("santurkar/training")["matched"]
        return matched(accuracy, accuracy, max(1, steps // 60))[0]

    return measure


def weight_of_a_probe(probes: tuple[int, ...]) -> float:
    """The most that one probe changes a share of the steps, in per cent."""
    alive = np.ones((1, len(probes)), dtype=bool)
    each = np.eye(len(probes), dtype=bool)
    return 100 * max(float(curves.share_of_training(one[None], alive, np.array(probes))[0]) for one in each)


def starts_at(fall: float):
    """The last step at which a loss of guessing may fall by this share of itself and counts as started."""

    def measure(steps: int) -> float:
        late = np.arange(steps) < np.arange(steps + 1)[:, None]
        return curves.started(np.where(late, 1, 1 - fall) * math.log(10)).nonzero()[0].max()

    return measure


def early_window(steps: int) -> float:
    """How many of the first steps, each with a value of its own, the median of "early" knows."""
    probes = np.arange(steps + 1)
    return 2 * curves.over_window(probes[None].astype(float), probes, 0.0, 0.1 * steps)


def at_equal_losses(probes: tuple[int, ...]) -> float:
    """A curve that is the step itself, of a network that reaches every loss at step 3."""
    come = np.where(np.arange(probes[-1] + 1) < 3, 2.4, 0.1)[None]
    curve = np.array(probes, dtype=float)[None] ** 2
    return np.median(at_equal_loss((curve, curve), (come, come), np.array(probes), 10)[0])


def best_of_scan(rates: list[float]) -> np.ndarray:
    """The best rate of a loss that falls from one rate to the next."""
    best_rates = page_cells.functions("mean-field/learning-rate")["best_rates"]
    return best_rates(1.0 - 0.01 * np.arange(len(rates))[None, None], np.array([rates]))[1]


def all_stable(rates: list[float]) -> np.ndarray:
    return linear.largest_stable({rate: {"diverged_at": np.array([np.inf])} for rate in rates})


def growth_exponent(parts: int) -> float:
    """Of what is removed along the one, a gradient without correlation: a share of 1/m of m values."""
    values = np.random.default_rng(0).normal(size=(4000, 128))

    def share(part):
        return (part.sum(1) ** 2 / part.shape[1] / (part**2).sum(1)).mean()

    quarters = [share(each) for each in np.split(values, parts, axis=1)]
    return round(2 + np.log(share(values) / np.mean(quarters)) / np.log(parts), 1)


def orders_at_random(layers: int) -> float:
    """Standard deviation of the rank correlation of two orders that have nothing to do with one another."""
    drawn = np.random.default_rng(0).normal(size=(1000, 2, layers))
    return round(float(np.std([curves.rank_correlation(*pair) for pair in drawn])), 1)


def steadiness(depths: list[int]) -> np.ndarray:
    """Of a growth that is a power of the depth and no exponential one."""
    steady = page_cells.functions("batch-norm/gradient-explosion")["steadiness"]
    return steady(np.array([depths], dtype=float), depths)


def mean_cosine(weights: int) -> float:
    """Mean size of the cosine of two directions that have nothing to do with one another."""
    one, other = np.random.default_rng(0).normal(size=(2, 4000, weights))
    lengths = np.linalg.norm(one, axis=1) * np.linalg.norm(other, axis=1)
    return round(float((np.abs((one * other).sum(1)) / lengths).mean()), 2)


def not_arrived(steps: int) -> np.ndarray:
    return steps_to(np.ones(steps + 1), 1e-4)


width, middle = (lambda low, high: high - low), (lambda low, high: (low + high) / 2)
DEPTHS = of("batch-norm/gradient-explosion", "depths")
ROUNDS, READOUT = of("mean-field/learning-rate", "rounds"), of("mean-field/readout", "rounds")
#: Instrument, what it takes of nothing, its grid, the value, its words in the paragraph.
PINS = [
    ("effective-beta", ahead("smoothness"), VGG, 20, "is 20 at the learning rate 0.1"),
    ("effective-beta", ahead("beyond"), VGG, 1.25, "is 1.25, beyond"),
    ("effective-beta", ahead("smoothness", (0, 0.05)), VGG, 200, "would be 200"),
    ("effective-beta", random_smoothness, [0.5, 2, 4], 20, "along a random direction"),
    ("effective-beta", linear_smoothness, LENGTHS, 100, "100/η in the deep linear"),
    ("roughness", lambda shares: 1 / min(shares), (1e-4, 1e-3, 1e-2), 1e4, "10,000 times"),
    ("loss-range", lambda a: sum(0.5 <= one <= 4 for one in a), VGG, 8, "eight for the VGG"),
    ("share-of-steps", weight_of_a_probe, PROBES, 100 / 19, "at most 5.3 % of the training"),
    ("parts-of-training", early_window, 2000, 200, "200 steps of 2,000"),
    ("equal-loss", at_equal_losses, PROBES, 15, "between two probes is read from these two alone"),
    ("steps-to-match", longest(True), 2000, 2000, "it takes the last step, 2,000"),
    ("steps-to-match", longest(False), 2000, 33, "after 33"),
    ("started", starts_at(0.5), STARTS, 297, "at step 297 has started, at step 298 not"),
    ("started", starts_at(0.04), STARTS, 274, "by step 274"),
    ("rate-scan", all_stable, of("santurkar/deep-linear", "rates"), 1e-3, "10⁻³ in the deep linear"),
    ("rate-scan", best_of_scan, np.linspace(-1.5, 0.3, 7), 0.3, "0.3 decades above the line"),
    ("removed-share", growth_exponent, PARTS, 1, "One without correlation has the exponent 1"),
    ("gradient-growth", steadiness, DEPTHS, 0.25, "the first depth over the last but one, 0.25"),
    ("rank-over-layers", orders_at_random, 25, 0.2, "0.2 for 25 layers"),
    ("shift-cosine", mean_cosine, 100, 0.08, "For the 100 weights of a linear layer that is 0.08"),
    ("critical-rate", bracket(0.013, width), (1.6, ROUNDS), 0.05, "1.6 decades halved five times leave 0.05"),
    ("critical-rate", bracket(0.013, width), (0.8, READOUT), 0.05, "0.8 halved four times likewise"),
    ("critical-rate", bracket(np.inf, middle), (0.8, 4), 16.375, "16 decades for the readout"),
    ("critical-rate", bracket(-np.inf, middle), (0.8, 4), -16.375, "about twenty widths away"),
    ("steps-to-arrive", not_arrived, of("decoupling/halfspaces", "steps"), 601, "counts one more, 601"),
]


@pytest.mark.parametrize("instrument, measure, grid, value, said", PINS)
def test_a_value_that_hangs_on_the_grid_alone_stands_in_the_instruments_paragraph(
    instrument, measure, grid, value, said
):
    assert np.ravel(measure(grid))[0] == pytest.approx(value, abs=1e-9)
    assert said in INSTRUMENTS[instrument]
