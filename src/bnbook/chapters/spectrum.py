"""Smooth in which mode? The spectrum of the loss's second derivatives in small residual networks, by the
statistics that batch norm takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import matplotlib.pyplot as plt
import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bnbook.chapters.shared import Rows, pooled
from bnbook.data import load
from bnbook.errors import BnbookError
from bnbook.figures import LABELS, parameters_of, points_of
from bnbook.normalizers import make_normalizer
from bnbook.plots.panels import Panel, compare
from bnbook.probes.functional import Batch
from bnbook.probes.krylov import krylov
from bnbook.probes.spectrum import curvature, quadrature, share, signs, top, trace
from bnbook.training.numerics import numerics
from bookpress.results import Results

# ---- A small residual network of any depth, with batch norm or nothing, and its training ------------------

SIGMA_W2 = (
    0.5  # of first weights N(0, σ_w² / fan-in): at He's 2 a pilot of the deep plain network learnt nothing
)
MOMENTUM = 0.9  # as is usual; the rate is in the chapter
WARM = 50  # batches that fill the running averages of a network that has not learnt: 0.9⁵⁰ is half a per cent


class Block(nn.Module):
    """relu(x + norm2(conv2(relu(norm1(conv1(x)))))), (B, C, H, W) to the same shape.

    Source: He et al. 2016, "Deep residual learning for image recognition", figure 2.
    """

    def __init__(self, channels: int, norm: str) -> None:
        super().__init__()
        self.conv1, self.conv2 = (convolution(channels, channels, norm) for _ in range(2))
        self.norm1, self.norm2 = (make_normalizer(norm, channels, 2) for _ in range(2))

    def forward(self, x: Tensor) -> Tensor:
        inner = F.relu(self.norm1(self.conv1(x)))
        return F.relu(x + self.norm2(self.conv2(inner)))


def convolution(inputs: int, channels: int, norm: str, stride: int = 1) -> nn.Conv2d:
    """A 3×3 convolution; a bias only where no batch norm follows, whose β is one."""
    return nn.Conv2d(inputs, channels, 3, stride, padding=1, bias=norm == "none")


def residual(depth: int, channels: int, norm: str, seed: int) -> nn.Sequential:
    """(B, 3, 8, 8) → (B, 10): a convolution of stride 2, (depth - 2) / 2 blocks, a mean over positions, a readout.

    Weights N(0, SIGMA_W2 / fan-in), the same whatever the norm; biases 0. Errors: BnbookError for a depth that is
    odd or below 4.
    """
    if depth < 4 or depth % 2:
        raise BnbookError(f"depth {depth} of the residual network; expected an even number from 4 on")
    blocks = [Block(channels, norm) for _ in range((depth - 2) // 2)]
    stem = [convolution(3, channels, norm, stride=2), make_normalizer(norm, channels, 2), nn.ReLU()]
    model = nn.Sequential(*stem, *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, 10))
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for layer in model.modules():
            if isinstance(layer, (nn.Conv2d, nn.Linear)):
                spread = (SIGMA_W2 / layer.weight[0].numel()) ** 0.5
                layer.weight.copy_(spread * torch.randn(layer.weight.shape, generator=generator))
                if layer.bias is not None:
                    layer.bias.zero_()
    return model.train()


def images(rows: Tensor) -> Tensor:
    """Rows of pooled pixels (B, 192) as images (B, 3, 8, 8)."""
    side = round((rows.shape[1] / 3) ** 0.5)
    return rows.view(-1, 3, side, side)


@torch.no_grad()
def warm(model: nn.Module, rows: Rows) -> None:
    """Fill the running averages with `WARM` batches, nothing else changes."""
    for _ in range(WARM):
        model.train()(images(next(rows)[0]))


def train(model: nn.Module, rows: Rows, steps: int, rate: float) -> Tensor:
    """v ← 0.9 v + ∇L, θ ← θ - η v on the cross-entropy of each batch, in place; the losses (steps,)."""
    parameters = list(
        model.parameters()
    )  # by hand: torch.optim takes seconds to import, as long as a smoke run
    velocity = [torch.zeros_like(p) for p in parameters]
    losses = []
    for _ in range(steps):
        inputs, labels = next(rows)
        loss = F.cross_entropy(model(images(inputs)), labels)
        gradients = torch.autograd.grad(loss, parameters)
        with torch.no_grad():
            for p, v, g in zip(parameters, velocity, gradients):
                p.sub_(v.mul_(MOMENTUM).add_(g), alpha=rate)
        losses.append(loss.detach())
    return torch.stack(losses)


# ---- What the chapter on the spectrum measures of each seed: two matrices in three modes, before and ------
# after training

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


# ---- Figures ----------------------------------------------------------------------------------------------

#: Arm -> ink, dash and words: batch norm has one ink, whatever its statistics.
LINES = {
    "none": ("none", "-", LABELS["none"]),
    "batch": ("batch", "-", "statistics of the batch"),
    "constant": ("batch", "--", "held constant"),
    "running": ("batch", ":", "running averages"),
}
SMOOTH = 3  # places, standard deviation


def densities(
    places: np.ndarray, width: float, depths: Sequence[int], found: Mapping[str, np.ndarray]
) -> plt.Figure:
    """Density of the Hessian's eigenvalues on the axis asinh(λ / width), "ARM.DEPTH" (S, X): mean over the seeds,
    smoothed over SMOOTH places, for near zero few nodes of the quadrature stand for many eigenvalues."""
    bell, panels = np.exp(-((np.arange(-4 * SMOOTH, 4 * SMOOTH + 1) / SMOOTH) ** 2) / 2), []
    for name, depth in zip(("shallow", "deep"), depths):
        arms = {}
        for arm, (ink, dash, words) in LINES.items():
            mean = np.convolve(found[f"{arm}.{name}"].mean(axis=0), bell / bell.sum(), mode="same")
            arms[arm] = dict(y=np.maximum(mean, 1e-12), color=ink, look=dash, label=words)
        panels.append(Panel(arms=arms, title=f"{depth} layers"))
    values = (-10, -1, -0.1, 0, 0.1, 1, 10, 100)
    ticks = {np.arcsinh(at / width): f"{at:g}".replace("-", "−") for at in values}
    words = dict(x=places, ticks=ticks, xlim=(places[0], places[-1]), log="y", ylim=(1e-5, 2))
    words |= dict(xlabel="eigenvalue", ylabel="density")
    return compare(found, panels, figsize=(8.0, 4.0), sharey=True, **words)


# ---- Each figure of the page, from the results of its run -----------------------------------------------


def _draw_densities(results: Results) -> plt.Figure:
    linear = 0.05  # the axis is linear below, logarithmic beyond
    places = np.linspace(np.arcsinh(-10 / linear), np.arcsinh(150 / linear), 121)
    return densities(places, linear, parameters_of(results).depths, points_of(results, "densities"))


FIGURES = {"densities": _draw_densities}
