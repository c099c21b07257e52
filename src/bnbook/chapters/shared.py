"""What several chapters share: bands over the seeds, agreement with theory, seeds in processes of their own."""

from __future__ import annotations

import multiprocessing
import pickle
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from typing import Any

import cloudpickle
import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from bnbook.data import Dataset, normalise
from bookpress.cores import cores
from bookpress.intervals import mean_and_interval

# ---- A line with its band over the seeds, as figures draw it: (S, X) -> (1, 3, X), low, middle, high ------

LARGEST = 1e200  # what an overflow is drawn as: a logarithmic axis still has room above it


def arithmetic(values: np.ndarray) -> np.ndarray:
    """Mean with its 95 % interval; a diverged seed makes it NaN."""
    middle, half = mean_and_interval(values)
    return np.stack([middle - half, middle, middle + half])[None]


def geometric(values: np.ndarray) -> np.ndarray:
    """Geometric mean with the 95 % interval of the logarithms; NaN where a value is no positive number."""
    values = np.asarray(values, dtype=float)
    kept = np.isfinite(values) & (values > 0)
    middle, half = mean_and_interval(np.log(np.where(kept, values, 1.0)))
    half = np.where(kept.all(0), half, np.nan)
    middle = np.where(kept.all(0), middle, np.nan)
    with np.errstate(over="ignore"):
        return np.minimum(np.exp([middle - half, middle, middle + half]), LARGEST)[None]


def quartiles(values: np.ndarray) -> np.ndarray:
    """Median and middle half over the seeds that still train; an overflow counts as infinite."""
    values = np.minimum(np.asarray(values, dtype=float), LARGEST)
    found = np.full((3, values.shape[1]), np.nan)
    alive = np.isfinite(values).any(0)
    found[:, alive] = np.nanquantile(values[:, alive], (0.25, 0.5, 0.75), axis=0)
    return found[None]


# ---- How far measurements are from theory: the ratio of the two, where it is worst ------------------------


def furthest_from_one(ratios: np.ndarray) -> np.ndarray:
    """The column, (S,), of ratios (S, K) whose 95 % interval over the seeds reaches furthest from 1."""
    mean, half = mean_and_interval(ratios)
    return ratios[:, (np.abs(mean - 1) + half).argmax()]


class Rows:
    """Batches of rows without an end, a fresh order an epoch."""

    def __init__(self, inputs: Tensor, labels: Tensor, size: int, seed: int) -> None:
        self.inputs, self.labels, self.size = inputs, labels, size
        self.generator, self.left = torch.Generator().manual_seed(1_000_003 + seed), torch.empty(0)

    def __next__(self) -> tuple[Tensor, Tensor]:
        if len(self.left) < self.size:
            self.left = torch.randperm(len(self.labels), generator=self.generator)
        chosen, self.left = self.left[: self.size], self.left[self.size :]
        return self.inputs[chosen], self.labels[chosen]


def pooled(dataset: Dataset, split: str, pool: int) -> tuple[Tensor, Tensor]:
    """Normalised images of a split, each pixel the mean over pool × pool, as rows (m, values), and labels."""
    images, labels = (
        (dataset.train_images, dataset.train_labels)
        if split == "train"
        else (dataset.test_images, dataset.test_labels)
    )
    parts = [F.avg_pool2d(normalise(part, dataset), pool).flatten(1) for part in images.split(5000)]
    return torch.cat(parts), labels


def in_processes(work, plan: Any, seeds: Sequence[int], workers: int) -> list:
    """`work(plan, seed)` for each seed, one thread each: what it gives does not depend on `workers`.

    `work` may be a function of a notebook's cell: it travels with what it calls.
    """
    if workers == 1:
        return [work(plan, seed) for seed in seeds]
    with ProcessPoolExecutor(workers or cores(), mp_context=multiprocessing.get_context("spawn")) as pool:
        return list(pool.map(partial(_call, cloudpickle.dumps(partial(work, plan))), seeds))


def _call(packed: bytes, seed: int) -> Any:
    return pickle.loads(packed)(seed)


# ---- The largest usable rate of a grid ---------------------------------------------------------------------

CLASSES = 10
#: A rate is usable where the mean loss of the last steps at the full rate, a fifth of the training, lies below
#: this share of that of guessing.
USABLE = 0.9


def largest_usable(rates: Sequence[float], late: np.ndarray) -> float:
    """log2 of the rate above the largest usable one of the grid (A,) where the late loss (A,) reaches the limit.

    Between it and the next by a straight line of the loss, of which more than guessing's counts as guessing's, over
    the logarithm of the rate. An octave below the grid where none is usable; the last of the grid where that is.
    """
    guess = np.log(CLASSES)
    usable = np.flatnonzero(late < USABLE * guess)
    if not usable.size:
        return float(np.log2(rates[0])) - 1
    low, last = usable[-1], len(rates) - 1
    if low == last:
        return float(np.log2(rates[low]))
    share = (USABLE * guess - late[low]) / (min(late[low + 1], guess) - late[low])
    return float((1 - share) * np.log2(rates[low]) + share * np.log2(rates[low + 1]))
