# ruff: noqa: E501
"""Pins: of every instrument that works on a grid (lengths, brackets, windows, probes, rates, depths), fed with what
says nothing, which value does it take? A value that changes with the grid alone stands in its paragraph."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import page_cells
import pytest

from bnbook import curves
from bnbook.chapters.gradient_explosion import steadiness
from bnbook.chapters.learning_rate import best_rates
from bnbook.chapters.length_direction import steps_to
from bnbook.chapters.vgg import STARTS, at_equal_loss
from bnbook.deep_linear import LinearArm
from bnbook.deep_linear import summaries as linear
from bnbook.deep_linear.arm import LENGTHS
from bnbook.probes import summaries
from bnbook.small_networks import bisect
from bnbook.training.placed import PARTS
from bnbook.training.probed import probe_schedule
from bookpress.claims import load_instruments
from bookpress.pipeline import chapters

GUESS = math.log(10)


@cache
def of(chapter: str, name: str, profile: str = "laptop") -> Any:
    """A parameter of a chapter: the grid that was used."""
    return chapters.select([chapter])[0].parameters(profile)[name]


def spent(lengths: list[float], change: float = 1.0) -> dict[str, np.ndarray]:
    """A training whose batch's gradient, of length 1, has changed by its own length at every length ahead."""
    shape = (1, 1, len(lengths))
    found = {"start_loss": np.ones((1, 1)), "start_norm": np.ones((1, 1)), "target_energy": np.ones((1, 1))}
    for name in ("landscape", "random"):
        found |= {f"{name}_loss": np.ones(shape), f"{name}_norm": np.ones(shape)}
        found[f"{name}_distance"] = np.full(shape, change)
    return found


def seen(name: str, rate: float = 0.1):
    return lambda lengths: float(summaries.landscape(spent(lengths), lengths, rate)[name][0, 0])


def nearest(lengths: list[float]) -> float:
    reach = (0.0, min(lengths))
    return float(summaries.landscape(spent(lengths), lengths, 0.1, reach)["smoothness"][0, 0])


def linear_smoothness(lengths: list[float]) -> float:
    """In learning rates, so that the rate itself is left out."""
    arm = LinearArm(lengths=tuple(lengths), learning_rate=1.0, random_lengths=(), covariate_shift=False)
    return float(linear.landscape(arm, spent(lengths))["smoothness"][0, 0])


def random_smoothness(lengths: list[float]) -> float:
    return float(summaries.random_direction(spent(lengths), lengths, 0.1)["random_smoothness"][0, 0])


def boundary(good: bool):
    """Of the last middle: what a bisection returns where every rate works, or none, from a bracket around 0."""

    def measure(grid: tuple[float, int]) -> float:
        width, rounds = grid
        low, high = bisect(lambda rates: np.full(len(rates), good), [-width / 2], [width / 2], rounds)
        return float(low[0] + high[0]) / 2

    return measure


def last_bracket(grid: tuple[float, int]) -> float:
    width, rounds = grid
    low, high = bisect(lambda rates: rates < 0.013, [-width / 2], [width / 2], rounds)
    return float(high[0] - low[0])


def longest(steps: int, rising: bool = True) -> float:
    """Steps to match of a plain network that learns to the end, or gets worse to the end."""
    accuracy = np.linspace(0.1, 0.9, steps)[None, :: 1 if rising else -1]
    matched = page_cells.functions("santurkar/training")["matched"]
    return float(matched(accuracy, accuracy, max(1, steps // 60))[0][0])


def weight_of_a_probe(probes: tuple[int, ...]) -> float:
    """The most that one probe changes a share of the steps, in per cent."""
    at = [np.arange(len(probes)) == k for k in range(len(probes))]
    alive = np.ones((1, len(probes)), dtype=bool)
    return 100 * max(float(curves.share_of_training(one[None], alive, np.array(probes))[0]) for one in at)


def starts_at(fall: float):
    """The last step at which a loss of guessing may fall by this share of itself and counts as started."""

    def measure(steps: int) -> float:
        losses = np.where(np.arange(steps) < np.arange(steps + 1)[:, None], GUESS, (1 - fall) * GUESS)
        return float(curves.started(losses).nonzero()[0].max())

    return measure


def early_window(steps: int) -> float:
    """How many of the first steps, each with a value of its own, the median of "early" knows."""
    probes = np.arange(steps + 1)
    return 2 * float(curves.over_window(probes[None].astype(float), probes, 0.0, 0.1 * steps)[0])


def at_equal_losses(probes: tuple[int, ...]) -> float:
    """A curve that is the step itself, of a network that reaches every loss at step 3."""
    come = np.where(np.arange(probes[-1] + 1) < 3, 2.4, 0.1)[None]
    curve = np.array(probes, dtype=float)[None] ** 2
    return float(np.median(at_equal_loss((curve, curve), (come, come), np.array(probes), 10)[0]))


def best_of_scan(worse: float):
    """The best rate of a loss that changes by `worse` from one rate to the next."""

    def measure(rates: list[float]) -> float:
        losses = 1.0 + worse * np.arange(len(rates))[None, None]
        return float(best_rates(losses, np.array([rates]))[1][0, 0])

    return measure


def largest_stable(broken: float):
    return lambda rates: float(
        linear.largest_stable({rate: {"diverged_at": np.array([broken])} for rate in rates})[0]
    )


def growth_exponent(parts: int) -> float:
    """Of what is removed along the one, a gradient without correlation: a share of 1/m of m values."""
    values = np.random.default_rng(0).normal(size=(4000, 128))

    def share(part):
        return (part.sum(1) ** 2 / part.shape[1] / (part**2).sum(1)).mean()

    quarters = [share(each) for each in np.split(values, parts, axis=1)]
    return round(float(2 + np.log(share(values) / np.mean(quarters)) / np.log(parts)), 1)


PROBES = probe_schedule(2000, 100, (5, 10, 20, 50, 100, 150, 200, 250, 300, 350, 400))
VGG = [0.05, 0.2, 0.5, 1, 1.5, 2, 2.5, 3, 3.5, 4, 8, 16]


def orders_at_random(layers):
    """Standard deviation of the rank correlation of two orders that have nothing to do with one another."""
    drawn = np.random.default_rng(0).normal(size=(1000, 2, layers))
    return round(float(np.std([curves.rank_correlation(*pair) for pair in drawn])), 1)


@dataclass(frozen=True)
class Pin:
    """With this grid an instrument that is fed with nothing takes this value; with another grid another one, if it hangs on it."""

    instrument: str
    what: str
    measure: Any
    grid: Any
    value: float
    said: str  # in the instrument's paragraph
    other: Any = None  # another grid; None: the value hangs on no grid


PINS = [
    Pin("effective-beta", "a spent gradient", seen("smoothness"), VGG, 20, "is 20 at the learning rate 0.1", [1, 2, 4, 8]),
    Pin("effective-beta", "a spent gradient, beyond", seen("beyond"), VGG, 1.25, "is 1.25, beyond", [1, 16]),
    Pin("effective-beta", "a spent gradient, nearer", nearest, VGG, 200, "would be 200", [0.2, 1]),
    Pin("effective-beta", "a random direction", random_smoothness, [0.5, 2, 4], 20, "along a random direction", [2, 4]),
    Pin("effective-beta", "the deep linear network", linear_smoothness, LENGTHS, 100, "100/η in the deep linear", LENGTHS[1:]),
    Pin("roughness", "a spent gradient", lambda shares: 1 / min(shares), (1e-4, 1e-3, 1e-2), 1e4, "10,000 times", (1e-3, 1e-2)),
    Pin("loss-range", "lengths in reach", lambda a: sum(0.5 <= one <= 4 for one in a), VGG, 8, "eight for the VGG"),
    Pin("share-of-steps", "one probe", weight_of_a_probe, PROBES, 100 / 19, "at most 5.3 % of the training", PROBES[::2]),
    Pin("parts-of-training", "early", early_window, 2000, 200, "200 steps of 2,000", 15000),
    Pin("equal-loss", "all losses within a step", at_equal_losses, PROBES, 15, "between two probes is read from these two alone", (0, 10, 2000)),
    Pin("steps-to-match", "learns to the end", longest, 2000, 2000, "it takes the last step, 2,000", 15000),
    Pin("steps-to-match", "gets worse", lambda steps: longest(steps, False), 2000, 33, "after 33", 15000),
    Pin("started", "leaves the plateau late", starts_at(0.5), STARTS, 297, "at step 297 has started, at step 298 not", 2000),
    Pin("started", "leaves the plateau slowly", starts_at(0.04), STARTS, 274, "by step 274", 2000),
    Pin("rate-scan", "all stable", largest_stable(math.nan), of("santurkar/deep-linear", "rates"), 1e-3, "10⁻³ in the deep linear", [1e-8, 1e-6]),
    Pin("rate-scan", "a loss that falls", best_of_scan(-0.01), np.linspace(-1.5, 0.3, 7), 0.3, "0.3 decades above the line", np.linspace(-1, 0, 7)),
    Pin("removed-share", "no correlation", growth_exponent, PARTS, 1, "One without correlation has the exponent 1"),
    Pin("gradient-growth", "a power of the depth", lambda depths: float(steadiness(np.array([depths], dtype=float), depths)[0]), of("batch-norm/gradient-explosion", "depths"), 0.25, "the first depth over the last but one, 0.25", [4, 8, 16]),
    Pin("critical-rate", "the last bracket", last_bracket, (1.6, of("mean-field/learning-rate", "rounds")), 0.05, "1.6 decades halved five times leave 0.05", (1.6, 3)),
    Pin("critical-rate", "the last bracket, the readout", last_bracket, (0.8, of("mean-field/readout", "rounds")), 0.05, "0.8 halved four times likewise", (0.8, 3)),
    Pin("critical-rate", "every rate works", boundary(True), (0.8, 4), 0.4 + 20 * 0.8 - 0.025, "16 decades for the readout", (1.6, 4)),
    Pin("critical-rate", "no rate works", boundary(False), (0.8, 4), -0.4 - 20 * 0.8 + 0.025, "about twenty widths away", (1.6, 4)),
    Pin("steps-to-arrive", "never arrives", lambda steps: steps_to(np.ones(steps + 1), 1e-4), of("decoupling/halfspaces", "steps"), 601, "counts one more, 601", 1200),
    Pin("rank-over-layers", "two orders at random", orders_at_random, 25, 0.2, "0.2 for 25 layers", 12),
    Pin("shift-cosine", "two directions at random", lambda d: round(math.sqrt(2 / math.pi / d), 2), 100, 0.08, "For the 100 weights of a linear layer that is 0.08"),
]  # fmt: skip


@pytest.mark.parametrize("pin", PINS, ids=lambda pin: f"{pin.instrument}: {pin.what}")
def test_a_value_that_hangs_on_the_grid_alone_stands_in_the_instruments_paragraph(pin):
    assert pin.measure(pin.grid) == pytest.approx(pin.value, abs=1e-9)
    if pin.other is not None:
        assert pin.measure(pin.other) != pytest.approx(pin.value, abs=1e-9), "the grid alone decides it"
    (own,) = [one for one in load_instruments() if one.id == pin.instrument]
    assert pin.said in own.own
