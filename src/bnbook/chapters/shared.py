"""What several chapters share: bands over the seeds, agreement with theory, seeds in processes of their own."""

from __future__ import annotations

import multiprocessing
import pickle
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from typing import Any

import cloudpickle
import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from bnbook.data import Dataset, normalise
from bnbook.training.numerics import numerics
from bnbook.training.stack import cross_entropy
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
        return [_on_one_thread(work, plan, seed) for seed in seeds]
    with ProcessPoolExecutor(workers or cores(), mp_context=multiprocessing.get_context("spawn")) as pool:
        return list(pool.map(partial(_call, cloudpickle.dumps((work, plan))), seeds))


def _call(packed: bytes, seed: int) -> Any:
    return _on_one_thread(*pickle.loads(packed), seed)


def _on_one_thread(work, plan: Any, seed: int) -> Any:
    with numerics(torch.device("cpu"), 1):
        return work(plan, seed)


def named(values: np.ndarray, *axes: Sequence[str]) -> Any:
    """Results (S, A, B, …) by the names of their places, as `record_table` takes them: {a: {b: (S, …)}}."""
    if not axes:
        return values
    return {name: named(values[:, place], *axes[1:]) for place, name in enumerate(axes[0])}


# ---- Stacks of small networks: M members side by side, all on the same batch -------------------------------


def he_weights(
    widths: Sequence[int], seed: int, members: int = 1, dtype: torch.dtype = torch.float32, gain: float = 1.0
) -> list[Tensor]:
    """Of each layer W (M, inputs, units), the same for all members: N(0, 2 / inputs), times the gain."""
    generator = torch.Generator().manual_seed(seed)
    drawn = (
        gain * (torch.randn(inputs, units, generator=generator, dtype=torch.float64) * (2 / inputs) ** 0.5)
        for inputs, units in zip(widths, widths[1:])
    )
    return [weight.to(dtype).repeat(members, 1, 1) for weight in drawn]


def batch_norm(
    z: Tensor,
    gamma: Tensor,
    beta: Tensor,
    eps: float = 1e-5,
    given: tuple[Tensor, Tensor] | None = None,
    used: list[tuple[Tensor, Tensor]] | None = None,
) -> Tensor:
    """γ (z - μ) / sqrt(σ² + ε) + β of the units of all members, z (B, U) or (1, U, B), γ and β (U,).

    `given` mean and variance (U,) stand in for the batch's; `used` takes those of the batch, with divisor B - 1, as for
    inference.
    """
    if given is not None:
        return F.batch_norm(z, *given, gamma, beta, eps=eps)
    running = (None, None) if used is None else (torch.zeros_like(gamma), torch.zeros_like(gamma))
    found = F.batch_norm(z, *running, gamma, beta, True, 1.0, eps)
    if used is not None:
        used.append(running)
    return found


def mean_loss(found: Tensor, labels: Tensor) -> Tensor:
    """Cross-entropy of each member, (M,), of its answers (M, B, classes)."""
    return cross_entropy(found, labels.expand(len(found), -1))


@torch.no_grad()
def accuracies(
    answers: Callable[[Tensor], Tensor], inputs: Tensor, labels: Tensor, size: int = 2000
) -> Tensor:
    """Share of right answers of each member, (M,) float64; answers: inputs (B, …) -> (M, B, classes)."""
    right = [answers(x).argmax(-1) == y for x, y in zip(inputs.split(size), labels.split(size))]
    return torch.cat(right, 1).double().mean(1)


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
