"""How often the tests err, simulated: true effects on the edge itself, few seeds, three kinds of data.

On the edge every decision but one is a coin that must not fall: a test that says "holds" or "fails" there is
wrong in one of two ways, each of which may happen in 2.5 % of all books. The intervals are those of
bookpress.intervals, written for many books at once: values (R, ..., S), R books of S seeds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from math import comb

import numpy as np

from bookpress import intervals

BOOKS = 4_000
SEEDS = (4, 5, 20)
RNG_SEED = 20260713
CROWDED = (4.5, 0.5)  # of the beta distribution
STEPS, CELLS = 3, 12  # of an ordering, of a worst case

#: Data with mean 0: normal, with tails as heavy as t of three degrees of freedom, and shares near their end
#: (a beta distribution of mean 0.9).
DATA: dict[str, Callable[[np.random.Generator, tuple[int, ...]], np.ndarray]] = {
    "normal": lambda rng, shape: rng.normal(size=shape),
    "heavy tails": lambda rng, shape: rng.standard_t(3, size=shape),
    "shares near 1": lambda rng, shape: rng.beta(*CROWDED, size=shape) - CROWDED[0] / sum(CROWDED),
}


@dataclass(frozen=True)
class Rates:
    """Share of books in which a test errs while the truth lies on the edge: "holds", and "fails"."""

    holds: float
    fails: float


def one_mean(data: str, seeds: int) -> Rates:
    """Student's interval of one mean: levels, rates, paired differences, and ratios by their logarithms."""
    low, high = student_ends(_draw(data, (BOOKS, seeds)))
    return Rates(float((low > 0).mean()), float((high <= 0).mean()))


def relative_error(data: str, seeds: int) -> Rates:
    """Measurement over theory, both with a spread of a tenth per seed: the linearised interval."""
    noise = 0.1 * _draw(data, (BOOKS, 2, seeds)) / DATA_SPREAD[data]
    a, b = 1 + noise[:, 0], 1 + noise[:, 1]
    bottom = b.mean(-1, keepdims=True)
    ratio = a.mean(-1, keepdims=True) / bottom
    low, high = student_ends((a - ratio * b) / bottom)
    ratio = ratio[:, 0] - 1
    return Rates(float((ratio + low > 0).mean()), float((ratio + high <= 0).mean()))


def ordering(data: str, seeds: int) -> Rates:
    """Steps that are all exactly 0 ("fails" by mistake); one that is 0 among large ones ("holds")."""
    low, high = student_ends(_draw(data, (BOOKS, STEPS, seeds)), 1 - 0.05 / STEPS)
    return Rates(float((low[:, 0] > 0).mean()), float((high <= 0).any(axis=1).mean()))


def worst_cell(data: str, seeds: int) -> Rates:
    """Cells that all lie on the upper edge of a wide margin ("fails"); one that does ("holds")."""
    values = _draw(data, (BOOKS, CELLS, seeds))
    own, sure = student_ends(values), student_ends(values, 1 - 0.05 / CELLS)
    return Rates(float((own[1][:, 0] < 0).mean()), float((sure[0] > 0).any(axis=1).mean()))


def share(chance: float, seeds: int) -> Rates:
    """A share of seeds against its true chance, by the exact interval; all outcomes counted, none drawn."""
    hits = np.arange(seeds + 1)
    weights = np.array([comb(seeds, k) * chance**k * (1 - chance) ** (seeds - k) for k in range(seeds + 1)])
    ends = np.array([intervals.clopper_pearson(int(k), seeds) for k in hits])
    return Rates(float(weights[ends[:, 0] > chance].sum()), float(weights[ends[:, 1] <= chance].sum()))


def paired_shares(chance: float, seeds: int) -> Rates:
    """Two arms whose seeds differ with a chance, as often one way as the other: the truth is 0."""
    half = chance / 2
    held = failed = 0.0
    for a, b in product(range(seeds + 1), repeat=2):
        if a + b <= seeds:
            arms = np.arange(seeds)
            first, second = (arms < a).astype(float), ((arms >= a) & (arms < a + b)).astype(float)
            _, low, high = intervals.paired_shares(first, second)
            ways = comb(seeds, a) * comb(seeds - a, b)
            weight = ways * half ** (a + b) * (1 - chance) ** (seeds - a - b)
            held, failed = held + weight * (low > 0), failed + weight * (high <= 0)
    return Rates(held, failed)


def recorded_coverage(samples: list[np.ndarray], seeds: int, books: int = 1000) -> np.ndarray:
    """In how many books of `seeds` drawn from each recorded sample its mean lies in Student's interval."""
    rng = np.random.default_rng(RNG_SEED)
    found = []
    for values in samples:
        if np.ptp(values) == 0:  # the rounding of its mean must not miss it
            found.append(1.0)
            continue
        low, high = student_ends(rng.choice(values, (books, seeds)) - values.mean())
        found.append(float(((low <= 0) & (high >= 0)).mean()))
    return np.array(found)


def student_ends(values: np.ndarray, level: float = intervals.LEVEL) -> tuple[np.ndarray, np.ndarray]:
    """Student's interval over the last axis."""
    from scipy.special import stdtrit

    count = values.shape[-1]
    half = stdtrit(count - 1, (1 + level) / 2) * values.std(axis=-1, ddof=1) / np.sqrt(count)
    middle = values.mean(axis=-1)
    return middle - half, middle + half


def _draw(data: str, shape: tuple[int, ...]) -> np.ndarray:
    return DATA[data](np.random.default_rng(RNG_SEED), shape)


#: Standard deviations of DATA.
DATA_SPREAD = {"normal": 1.0, "heavy tails": 3**0.5, "shares near 1": (0.9 * 0.1 / 6) ** 0.5}
#: What the page and the tests show, by name; each takes the kind of data and the number of seeds.
KINDS: dict[str, Callable[[str, int], Rates]] = {
    "a mean, difference, rate, equivalence, or ratio in logarithms": one_mean,
    "a relative error": relative_error,
    "an ordering of four": ordering,
    "the worst of twelve cells": worst_cell,
}
CHANCES = (0.5, 0.9)
EVENTS: dict[str, Callable[[float, int], Rates]] = {
    "a share of seeds": share,
    "a difference of two shares of seeds": paired_shares,
}
