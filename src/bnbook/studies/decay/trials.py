"""What the chapter on weight decay measures of each seed: angles, relaxation, accuracies, pairs of recipes."""

from __future__ import annotations

import multiprocessing
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch

from bnbook.data import load
from bnbook.studies.decay.network import NO_EPS, Network, copied, draw, pooled
from bnbook.studies.decay.recipes import answers_by_step, apart, scaled
from bnbook.studies.decay.training import Recipe, Rows, train
from bnbook.training.numerics import numerics
from bookpress.cores import cores

#: Of the strengths that one takes with SGD and momentum: the usual decay and ten times that.
RATE, MOMENTUM, DECAYS = 0.05, 0.9, (5e-4, 5e-3)
#: Of AdamW: rate and decay.
ADAMW = (2e-3, 0.5)
#: What a settled angle is asked of, beside the grid: name, kind and member, momentum with the strong decay.
ARMS = (("momentum", "usual", 2), ("adamw", "adamw", 0))
#: Of two recipes side by side: rate and decay, and the largest factor on the weights.
PAIR, FACTOR = (0.1, 0.1), 10.0
#: |W|⁴ is doubled, and waited for over this many expected times of relaxation.
DOUBLED, WAITED = 2.0, 2.5
#: Points of a drawn curve.
DRAWN = 36


@dataclass(frozen=True)
class Plan:
    """The settings that all seeds share."""

    data: str
    pool: int  # pixels a side that are averaged
    width: int  # units of each of the hidden layers
    layers: int
    batch_size: int
    steps: int
    every: int  # steps between two looks at the angle
    pair_steps: int  # of two recipes side by side
    rates: Sequence[float]
    products: Sequence[float]  # ηλ

    @property
    def grid(self) -> list[Recipe]:
        """All rates for the first product, then for the next."""
        return [Recipe(rate, product / rate) for product in self.products for rate in self.rates]

    @property
    def recipes(self) -> dict[str, list[Recipe]]:
        """By kind: "grid", hidden weights decayed; "usual", SGD with momentum and decay on all weights, by
        `DECAYS`, first without and then with γ and β; "plain", the middle product without batch norm; "adamw".
        """
        row = len(self.products) // 2 * len(self.rates)
        middle = self.grid[row : row + len(self.rates)]
        return {
            "grid": self.grid,
            "usual": [Recipe(RATE, lam, MOMENTUM, what) for lam in DECAYS for what in ("weights", "all")],
            "plain": [Recipe(one.rate, one.decay, norm="none") for one in middle],
            "adamw": [Recipe(*ADAMW, optimizer="adamw")],
        }

    def network(self, inputs: int, seed: int, members: int, dtype: torch.dtype = torch.float32) -> Network:
        return draw((inputs, *[self.width] * self.layers, 10), seed, members, dtype)


def in_processes(work, plan: Plan, seeds: Sequence[int], workers: int) -> list:
    """`work(plan, seed)` for each seed, one thread each: what it gives does not depend on `workers`."""
    if workers == 1:
        return [work(plan, seed) for seed in seeds]
    with ProcessPoolExecutor(workers or cores(), mp_context=multiprocessing.get_context("spawn")) as pool:
        return list(pool.map(partial(work, plan), seeds))


def trainings(plan: Plan, seed: int) -> dict[str, np.ndarray]:
    """All trainings of a seed, by the kinds of `Plan.recipes`: "KIND.angle" (M, L, T / every) in radians,
    "KIND.norm", "KIND.accuracy" (M,); and "surplus" (products, L, steps), see `surplus`."""
    with numerics(torch.device("cpu"), 1):
        dataset = load(plan.data)
        seen, test = pooled(dataset, "train", plan.pool), pooled(dataset, "test", plan.pool)
        found = {}
        for kind, recipes in plan.recipes.items():
            network = plan.network(seen[0].shape[1], seed, len(recipes))
            rows = Rows(*seen, plan.batch_size, seed)
            read = train(network, recipes, rows, plan.steps, plan.every, test)
            found |= {f"{kind}.{name}": values for name, values in read.items()}
            if kind == "grid":
                found["surplus"] = surplus(plan, network, rows)
    return found


def surplus(plan: Plan, network: Network, rows: Rows) -> np.ndarray:
    """(products, L, steps): the trained members at the middle rate go on, beside copies whose |W|⁴ is
    `DOUBLED` in each hidden layer; the difference of |W|⁴ over what it was at first."""
    middle = [row * len(plan.rates) + len(plan.rates) // 2 for row in range(len(plan.products))]
    pair = copied(network, middle * 2)
    for weight in pair["weights"]:
        weight[len(middle) :] *= DOUBLED**0.25
    steps = int(np.ceil(WAITED / (4 * min(plan.products))))
    recipes = [plan.grid[member] for member in middle]
    fourth = train(pair, recipes * 2, rows, steps, 1)["norm"] ** 4  # (2 products, L, steps)
    excess = fourth[len(middle) :] - fourth[: len(middle)]
    return excess / excess[..., :1]


def degrees(plan: Plan, trained: Sequence[dict]) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """What the figure draws: at about `DRAWN` steps (X,), evenly in the logarithm, the root mean square over
    layers and looks of the angle in degrees, "with.pROW.eCOLUMN" and "without.p1.eCOLUMN" (S, X)."""
    looks = plan.steps // plan.every
    edges = np.unique(np.geomspace(1, looks + 1, DRAWN).astype(int)) - 1
    curves = {}
    for kind, name in (("grid", "with"), ("plain", "without")):
        square = np.array([one[f"{kind}.angle"] ** 2 for one in trained]).mean(axis=2)  # (S, M, looks)
        binned = np.add.reduceat(square[..., :looks], edges[:-1], axis=-1) / np.diff(edges)
        for place in range(binned.shape[1]):
            row, column = divmod(place, len(plan.rates))
            row += len(plan.products) // 2 if kind == "plain" else 0
            curves[f"{name}.p{row}.e{column}"] = np.degrees(np.sqrt(binned[:, place]))
    return plan.every * (edges[:-1] + edges[1:] + 1) / 2, curves


def e_folding(falling: np.ndarray) -> np.ndarray:
    """(..., T) -> (...): the first step, between two by a straight line in the logarithm, at which it is 1/e."""
    flat = falling.reshape(-1, falling.shape[-1])
    found = np.full(len(flat), np.nan)
    for place, row in enumerate(flat):
        below = np.flatnonzero(row <= np.exp(-1))
        if below.size and below[0] and row[below[0]] > 0:
            one, other = np.log(row[below[0] - 1 : below[0] + 1])
            found[place] = below[0] - 1 + (one + 1) / (one - other)
    return found.reshape(falling.shape[:-1])


def pairs(plan: Plan, seed: int) -> dict[str, np.ndarray]:
    """How far the answers of two recipes are apart at each step, (T,), in float64.

    "schedule": decay λ against none with η_t = η (1 - ηλ)^-(2t+1); "scaled": (W, η, λ) against
    (c W, c² η, λ / c²), c another for every seed; each with batch norm, with ε = 1e-5 ("eps") and without.
    """
    with numerics(torch.device("cpu"), 1):
        images, labels = pooled(load(plan.data), "train", plan.pool)
        images, (rate, decay), steps = images.double(), PAIR, plan.pair_steps
        factor = FACTOR ** np.random.default_rng(seed).uniform(-1, 1)
        growing = rate * (1 - rate * decay) ** -(2 * np.arange(steps) + 1.0)
        found = {}
        for name, norm, eps in (("batch", "batch", NO_EPS), ("eps", "batch", 1e-5), ("none", "none", NO_EPS)):
            start = plan.network(images.shape[1], seed, 2, torch.float64)
            longer = scaled(copied(start, (0, 1)), np.array([[1.0] * plan.layers, [factor] * plan.layers]))
            for kind, network, rates, decays in (
                ("schedule", start, [np.full(steps, rate), growing], [decay, 0.0]),
                (
                    "scaled",
                    longer,
                    np.full((2, steps), rate) * [[1], [factor**2]],
                    [decay, decay / factor**2],
                ),
            ):
                rows = Rows(images, labels, plan.batch_size, seed)
                each = np.stack(rates, axis=1), np.array(decays)
                found[f"{kind}.{name}"] = apart(answers_by_step(network, rows, *each, rate, norm, eps))
    return found
