"""What the chapter on residual networks measures of each seed: starts, trainings by depth, best rates, far gradients."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from bnbook.studies.decay.training import Rows
from bnbook.studies.residual.network import Arm, answers, draw, first_order, images
from bnbook.studies.residual.training import far_change, judged, train
from bnbook.training.numerics import numerics

#: Recipes by name: those that are drawn at the start, that are trained, and networks whose gradient is followed.
STARTED = ("batch", "plain", "halved", "scaled")
TRAINED = ("batch", "zero", "skipinit", "scaled", "halved", "plain")
FOLLOWED = ("chain.none", "chain.batch", "sum.none", "sum.batch", "skipinit.none")
#: Rates of a grid for a factor of two.
PER_DOUBLING = 4


def arms_by_norm(blocks: int) -> dict[str, dict[str, Arm]]:
    """The recipes for networks of so many blocks, by norm: plain sums, SkipInit from 0 and from 1/√L, sums
    over √2; batch norm, and batch norm whose last γ begins at 0."""
    return {
        "none": {
            "plain": Arm(),
            "skipinit": Arm(alpha=0.0, learned=True),
            "scaled": Arm(alpha=blocks**-0.5, learned=True),
            "halved": Arm(divisor=2**0.5),
        },
        "batch": {"batch": Arm("batch"), "zero": Arm("batch", gamma=0.0)},
    }


@dataclass(frozen=True)
class Plan:
    """The settings that all seeds share."""

    data: str
    pool: int  # pixels a side that are averaged
    width: int  # of trained networks
    examples: int  # training images of a seed
    start_width: int  # of those at the start
    start_blocks: int
    start_batch: int
    depths: Sequence[int]  # blocks
    depth_rates: Sequence[float]
    depth_batch: int
    depth_steps: int
    blocks: int  # of the networks at all batch sizes
    batch_sizes: Sequence[int]
    lowest: Sequence[float]  # for each batch size the first rate of a geometric grid
    tried: int  # rates of each grid
    epochs: int  # the same for all batch sizes
    far_blocks: int
    far_rate: float
    far_batch: int
    far_steps: int
    far_looks: int  # evenly over the last third

    def batches(self, size: int, seed: int, dtype: torch.dtype = torch.float32) -> tuple:
        """A seed's images, and batches of them."""
        data = images(self.data, self.pool, self.examples, seed, dtype)
        return data, Rows(data.inputs, data.labels, size, seed)


def start(plan: Plan, seed: int) -> dict[str, np.ndarray]:
    """Of fresh networks, by recipe, mean squares of x_ℓ and of its last branch, (L + 1, 2); at ℓ = 0 the stem's.

    The recipes of `arms_by_norm` but for the two that begin without branches, and "first": batch norm and a
    rectifier in front of both layers of a branch.
    """
    with numerics(torch.device("cpu"), 1), torch.no_grad():
        data, rows = plan.batches(plan.start_batch, seed)
        inputs, _ = next(rows)
        found = {}
        kinds = arms_by_norm(plan.start_blocks)
        size = (data.inputs.shape[1], plan.start_width, plan.start_blocks, seed)
        for name, arm in {**kinds["none"], **kinds["batch"], "first": Arm("batch")}.items():
            if name in ("skipinit", "zero"):
                continue
            network, watch = draw([arm], *size), []
            if name == "first":
                first_order(network, inputs, watch)
            else:
                answers(network, [arm], inputs, watch=watch)
            found[name] = torch.stack(watch)[..., 0].double().numpy()
    return found


def by_depth(plan: Plan, seed: int) -> dict[str, np.ndarray]:
    """Each recipe at each depth and rate: "NAME.dDEPTH.loss" and ".accuracy", (rates,)."""
    found, rates = {}, list(plan.depth_rates)
    for blocks in plan.depths:
        for recipes in arms_by_norm(blocks).values():
            arms = [arm for arm in recipes.values() for _ in rates]
            data, rows = plan.batches(plan.depth_batch, seed)
            network = draw(arms, data.inputs.shape[1], plan.width, blocks, seed)
            network = train(network, arms, rates * len(recipes), rows, plan.depth_steps)
            for what, values in judged(network, arms, data).items():
                for name, row in zip(recipes, values.reshape(len(recipes), -1)):
                    found[f"{name}.d{blocks}.{what}"] = row
    return found


def by_batch(plan: Plan, seed: int) -> dict[str, np.ndarray]:
    """Batch norm and SkipInit at each batch size and rate, so many epochs: "NAME.bSIZE.loss" and ".accuracy"."""
    found = {}
    for name, arm in (("batch", Arm("batch")), ("skipinit", Arm(alpha=0.0, learned=True))):
        for size, low in zip(plan.batch_sizes, plan.lowest):
            rates, arms = list(grid(low, plan.tried)), [arm] * plan.tried
            data, rows = plan.batches(size, seed)
            network = draw(arms, data.inputs.shape[1], plan.width, plan.blocks, seed)
            network = train(network, arms, rates, rows, plan.epochs * plan.examples // size)
            found |= {f"{name}.b{size}.{what}": row for what, row in judged(network, arms, data).items()}
    return found


#: The networks whose gradients are followed, by norm; all at one rate.
FAR_ARMS = {
    "none": {"chain": Arm(skip=False), "sum": Arm(), "skipinit": Arm(alpha=0.0, learned=True)},
    "batch": {"chain": Arm("batch", skip=False), "sum": Arm("batch")},
}


def far(plan: Plan, seed: int) -> dict[str, np.ndarray]:
    """How wrong the gradient is 16 learning rates on: "NAME.NORM", (looks,), on a fresh batch each; and the
    training loss at the end, "NAME.NORM.loss", (). In float64, for a plain network goes far."""
    found = {}
    first = 2 * plan.far_steps // 3
    gap = max(1, (plan.far_steps - first) // plan.far_looks)
    for norm, recipes in FAR_ARMS.items():
        arms, rates = list(recipes.values()), [plan.far_rate] * len(recipes)
        data, rows = plan.batches(plan.far_batch, seed, torch.float64)
        network = draw(arms, data.inputs.shape[1], plan.width, plan.far_blocks, seed, dtype=torch.float64)
        network, looked = train(network, arms, rates, rows, first), []
        for _ in range(plan.far_looks):
            network = train(network, arms, rates, rows, gap)
            looked.append(far_change(network, arms, rates, *next(rows)))
        for name, values, loss in zip(recipes, np.array(looked).T, judged(network, arms, data)["loss"]):
            found[f"{name}.{norm}"], found[f"{name}.{norm}.loss"] = values, loss
    return found


def trainings(plan: Plan, seed: int) -> dict[str, np.ndarray]:
    """All trainings of a seed: `by_depth`, `by_batch` and `far`, their names behind "depth:", "size:", "far:"."""
    with numerics(torch.device("cpu"), 1):
        parts = {"depth": by_depth, "size": by_batch, "far": far}
        return {
            f"{part}:{name}": values
            for part, work in parts.items()
            for name, values in work(plan, seed).items()
        }


def best_place(loss: np.ndarray) -> int:
    """Where the loss (rates,) is smallest; what is no number counts as infinite, and the first of equals wins."""
    return int(np.argmin(np.where(np.isfinite(loss), loss, np.inf)))


def grid(lowest: float, count: int) -> np.ndarray:
    """So many rates from the lowest on, `PER_DOUBLING` for a factor of two."""
    return lowest * 2.0 ** (np.arange(count) / PER_DOUBLING)


def best_rate(lowest: float, loss: np.ndarray) -> float:
    """The rate with the smallest loss (rates,) on `grid`: by the parabola through the logarithms of the losses at
    the best rate of the grid, at half of it and at twice it.

    log η = log η_k + (log 2 / 2) (a - c) / (a - 2 b + c) for log losses a, b, c. Where half or twice the rate
    lies outside of the grid or diverged, the rate of the grid itself.
    """
    rates, place = grid(lowest, len(loss)), best_place(loss)
    low, high = place - PER_DOUBLING, place + PER_DOUBLING
    if low < 0 or high >= len(loss) or not np.isfinite(loss[[low, place, high]]).all():
        return float(rates[place])
    a, b, c = np.log(loss[[low, place, high]])
    bend = a - 2 * b + c
    return float(rates[place] * 2 ** (0.5 * (a - c) / bend if bend > 0 else 0.0))
