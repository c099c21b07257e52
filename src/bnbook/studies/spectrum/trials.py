"""What the chapter on the spectrum measures of each seed: two matrices in three modes, before and after training."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from bnbook.data import load
from bnbook.probes.functional import Batch
from bnbook.probes.spectrum import curvature, krylov, quadrature, share, signs, top, trace
from bnbook.studies.decay.network import pooled
from bnbook.studies.decay.training import Rows
from bnbook.studies.spectrum.network import images, residual, train, warm
from bnbook.training.numerics import numerics

#: Arm -> the network's norm and the statistics of `bnbook.probes.statistics` under which it is looked at.
ARMS = {
    "none": ("none", "batch"),
    "batch": ("batch", "batch"),
    "constant": ("batch", "detached"),
    "running": ("batch", "population"),
}
TOP = 11  # largest eigenvalues: ten that may stand out, and the next, which stands for the rest
LOOKED = 4_000_037  # of the seeds of the batch that is looked at; of the probes of each seed
DRAWS = 5_000_011


@dataclass(frozen=True)
class Plan:
    """The settings that all seeds share."""

    data: str
    pool: int  # pixels a side that are averaged
    channels: int
    depths: Sequence[int]  # shallow, deep
    batch_size: int  # of the training
    steps: int
    rate: float
    examples: int  # of the batch that is looked at
    krylov: int  # Lanczos steps, k
    probes: int  # starts of the quadrature
    signs: int  # probes of the trace outside of the Krylov space


def look(plan: Plan, model: nn.Module, batch: Batch, matrix: str, statistics: str, seed: int) -> dict:
    """Of one matrix: "top" (TOP,), their "residual" over the largest, "trace", "share" of the gradient in the
    first ten eigenvectors, "loss", "nodes" and "weights" (probes, k); the space itself as "basis" (k, N)."""
    with curvature(model, F.cross_entropy, batch, matrix, statistics) as found:
        starts = signs(plan.probes + plan.signs, len(found.gradient), DRAWS + seed).to(found.gradient)
        runs = [krylov(found.product, start, plan.krylov) for start in starts[: plan.probes]]
        first = runs[0]
        largest = top(first, TOP)
        whole = trace(found.product, first.basis, starts[plan.probes :], float(first.alphas.sum()))
        nodes, weights = (np.stack(each) for each in zip(*map(quadrature, runs)))
        return {
            "top": largest.values,
            "residual": largest.residuals / abs(largest.values[0]),
            "trace": whole,
            "share": share(found.gradient, largest.vectors[: TOP - 1]),
            "loss": found.loss,
            "nodes": nodes,
            "weights": weights,
            "basis": first.basis,
        }


def in_halves(plan: Plan, model: nn.Module, batch: Batch, basis: torch.Tensor, seed: int) -> float:
    """The trace of the mean of two half-batches' Hessians, by the same probes as in `look`."""
    with curvature(model, F.cross_entropy, batch, "hessian", "batch", parts=2) as found:
        starts = signs(plan.probes + plan.signs, len(found.gradient), DRAWS + seed).to(found.gradient)
        return trace(found.product, basis, starts[plan.probes :])


def measure(plan: Plan, seed: int) -> dict[str, np.ndarray]:
    """All of a seed: "WHEN.MATRIX.ARM.WHAT", an array over the depths first.

    WHEN is "start" (the Hessian alone) or "end", ARM one of `ARMS`, WHAT as in `look`, without the basis; and
    "halves.ARM", the trace of the mean over two halves at the end, "halves.none" and "halves.batch";
    "training.NORM", the training's loss by step. Both networks of a depth have the same first weights and batches.
    """
    found: dict[str, list] = {}

    def keep(name: str, value: object) -> None:
        found.setdefault(name, []).append(np.asarray(value, dtype=np.float64))

    with numerics(torch.device("cpu"), 1):
        rows, labels = pooled(load(plan.data), "train", plan.pool)
        inputs, targets = next(Rows(rows, labels, plan.examples, LOOKED + seed))
        batch = images(inputs), targets
        for depth in plan.depths:
            for norm in ("none", "batch"):
                model = residual(depth, plan.channels, norm, seed)
                order = Rows(rows, labels, plan.batch_size, seed)
                warm(model, order)
                for when, matrices in (("start", ("hessian",)), ("end", ("hessian", "gauss_newton"))):
                    if when == "end":
                        keep(f"training.{norm}", train(model, order, plan.steps, plan.rate))
                    for matrix in matrices:
                        for arm in (arm for arm, (own, _) in ARMS.items() if own == norm):
                            seen = look(plan, model, batch, matrix, ARMS[arm][1], seed)
                            basis = seen.pop("basis")
                            for what, value in seen.items():
                                keep(f"{when}.{matrix}.{arm}.{what}", value)
                            if (when, matrix) == ("end", "hessian") and arm in ("none", "batch"):
                                keep(f"halves.{arm}", in_halves(plan, model, batch, basis, seed))
    return {name: np.stack(values) for name, values in found.items()}


def log_ratio(values: np.ndarray, others: np.ndarray) -> np.ndarray:
    """log10(values / others), NaN where one of them is not positive: such a trace has no factor."""
    good = (values > 0) & (others > 0)
    return np.where(good, np.log10(np.where(good, values, 1) / np.where(good, others, 1)), np.nan)


def contrasts(logs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Of logarithms y (S, modes, depths) of a trace with over one without batch norm, two by two: |Σ y| / 4, the
    effect of batch norm, and |y_11 - y_10 - y_01 + y_00| / 4, how far mode and depth together turn it; (S,) each.

    The contrasts of a factorial design with three factors of two levels (norm, mode, depth), where the mode makes no
    difference without batch norm.
    """
    effect = np.abs(logs.sum(axis=(1, 2))) / 4
    turned = np.abs(logs[:, 1, 1] - logs[:, 1, 0] - logs[:, 0, 1] + logs[:, 0, 0]) / 4
    return effect, turned


def alike(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Share of the pairs of cells that two quantities (S, K) put in the same order, (S,)."""
    pairs = list(combinations(range(one.shape[1]), 2))
    same = [(one[:, a] < one[:, b]) == (other[:, a] < other[:, b]) for a, b in pairs]
    return np.mean(same, axis=0)
