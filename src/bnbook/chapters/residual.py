"""Why does a residual network want it? Its images, and the page's figures."""

from __future__ import annotations

from functools import lru_cache

import matplotlib.pyplot as plt
import numpy as np
from torch import Tensor

from bnbook.chapters.shared import pooled
from bnbook.data import load
from bnbook.figures import LABELS, parameters_of, points_of
from bnbook.plots.panels import Panel, compare
from bookpress.results import Results


@lru_cache(maxsize=1)  # a seed asks for the same again for each of its trainings
def standardised(data: str, pool: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """All training images as rows (m, values) with their labels, and the test images: means over pool × pool
    pixels, each value less its mean, over its standard deviation, of the training images."""
    dataset = load(data)
    (rows, labels), (tests, test_labels) = (pooled(dataset, split, pool) for split in ("train", "test"))
    mean, std = rows.mean(0), rows.std(0)
    return (rows - mean) / std, labels, (tests - mean) / std, test_labels


# ---- Figures ----------------------------------------------------------------------------------------------

#: Recipe -> ink, dash and words: what has no batch norm has one ink, whatever it has in its place.
RECIPES = {
    "batch": ("batch", "-", "batch norm"),
    "plain": ("none", "-", "nothing"),
    "halved": ("none", "--", r"sum over $\sqrt{2}$"),
    "scaled": ("none", ":", r"branch times $1/\sqrt{L}$"),
}


def starts(results: Results) -> plt.Figure:
    """By block the mean square of the skip, "square.NAME" (S, L), and the branch's share, "share.NAME", with laws."""
    blocks, curves = parameters_of(results).start_blocks, points_of(results, "starts")
    ell, alpha = np.arange(1, blocks + 1), blocks**-0.5
    laws = {  # mean square behind block ℓ, and the branch's share of it
        "batch": dict(square=ell + 1.0, share=1 / (ell + 1)),
        "plain": dict(square=2.0**ell, share=0.5 + 0 * ell),
        "scaled": dict(square=(1 + alpha**2) ** ell, share=alpha**2 / (1 + alpha**2) + 0 * ell),
        "halved": dict(square=1.0 + 0 * ell, share=0.5 + 0 * ell),
    }
    arms = {name: dict(color=ink, look=dash, label=words) for name, (ink, dash, words) in RECIPES.items()}
    thin = dict(color="theory", linewidth=0.8, zorder=1)
    left = dict(ylabel="mean square behind the block", title="what is passed on")
    right = dict(ylabel="of it the branch's", title="share of the branch", yticks=(0.02, 0.05, 0.1, 0.2, 0.5))
    panels = []
    for what, words in (("square", left), ("share", right)):
        drawn = {f"law of {name}": dict(y=laws[name][what], **thin) for name in arms}
        panels.append(Panel(curve=f"{what}.{{}}", arms=arms | drawn, **words))
    ticks = [place for place in (1, 2, 4, 8, 16, 32) if place <= blocks]
    words = dict(by="geometric", log="xy", xlabel="block", ticks=ticks)
    return compare(curves, panels, figsize=(8.0, 3.9), **words)


def best_rates(results: Results) -> plt.Figure:
    """The best learning rate by batch size, "batch" and "skipinit" (S, sizes)."""
    sizes, curves = parameters_of(results).batch_sizes, points_of(results, "rates")
    arms = {
        "batch": dict(look="o-", label="batch norm"),
        "skipinit": dict(color="none", look="o--", label="SkipInit"),
    }
    words = dict(by="geometric", log="xy", xlabel="batch size", ylabel="best learning rate")
    return compare(curves, [Panel(curve="{}", x=sizes, ticks=sizes, **words)], arms, figsize=(6.0, 3.6))


#: Recipe of a trained network -> panel, ink, dash and words.
DEPTH_LINES = {
    "batch": (0, "batch", "-", "batch norm"),
    "zero": (0, "batch", "--", r"batch norm, last $\gamma=0$"),
    "constant": (0, "batch", ":", "batch norm, statistics held"),
    "quiet_centre": (1, "none", (0, (5, 1, 1, 1, 1, 1)), r"centred, times $1/\sqrt{L}$"),
    "scaled": (1, "none", ":", r"times $1/\sqrt{L}$"),
    "skipinit": (1, "none", "--", r"SkipInit, $\alpha=0$"),
    "halved": (1, "none", "-.", r"sum over $\sqrt{2}$"),
}
GUESSING = np.log(10)


def by_rate(results: Results) -> plt.Figure:
    """Training loss by learning rate, "NAME" (S, rates), a panel for recipes with batch norm and one for the others;
    what is above guessing is left out. Line: no network without blocks gets below it."""
    rates, found = parameters_of(results).depth_rates, points_of(results, "depth")
    arms = ({}, {})
    for name, (panel, ink, dash, words) in DEPTH_LINES.items():
        values = np.where(np.isfinite(found[name]).all(0), found[name], np.nan)
        shown = np.where(np.nan_to_num(values, nan=np.inf).mean(0) < 1.05 * GUESSING, values, np.nan)
        arms[panel][name] = dict(y=shown, color=ink, linestyle=dash, label=words)
    titles = ("with batch norm", "without division by a variance")
    panels = [Panel(arms=own, title=title) for own, title in zip(arms, titles)]
    words = dict(
        x=rates, ticks=rates, log="x", by="points", look="o-", xlabel="learning rate", ylabel="training loss"
    )
    marks = {"without blocks, at best": GUESSING}
    return compare(found, panels, figsize=(8.0, 4.4), sharey=True, legend="each", marks_y=marks, **words)


def awake(results: Results) -> plt.Figure:
    """Over the training the root of the mean square of α, "skipinit.dDEPTH", and of the last γ, "zero.dDEPTH",
    (S, looks), each at its best rate."""
    steps, curves = parameters_of(results).depth_steps, points_of(results, "awake")
    deepest, arms = max(int(name.split(".d")[1]) for name in curves), {}
    for name, values in curves.items():
        recipe, depth = name.split(".d")
        ink, words = ("batch", r"last $\gamma$") if recipe == "zero" else ("none", r"SkipInit's $\alpha$")
        y, look = np.concatenate([0 * values[:, :1], values], axis=1), "-" if int(depth) == deepest else "--"
        label = f"{words}, {depth} blocks"
        arms[name] = dict(x=np.linspace(0, steps, y.shape[1]), y=y, color=ink, look=look, label=label)
    words = dict(xlabel="step", ylabel="root mean square over the blocks", ylim=(0, None))
    return compare(curves, [Panel(**words)], arms, figsize=(6.4, 3.6))


#: Network of the far gradients -> ink, mark and place on the axis.
FAR_MARKS = {
    "chain.none": ("none", 0.9, "no skip"),
    "chain.batch": ("batch", 1.1, "no skip"),
    "sum.none": ("none", 1.9, "skip"),
    "sum.batch": ("batch", 2.1, "skip"),
    "skipinit.none": ("none", 3.0, "SkipInit"),
}


def far(results: Results) -> plt.Figure:
    """How wrong a gradient is 16 learning rates on, "NETWORK.NORM" (S,), a dot for each seed."""
    found, arms = points_of(results, "far"), {}
    for name, (ink, place, _) in FAR_MARKS.items():
        label = LABELS[ink] if name.startswith("chain") else None
        arms[name] = dict(x=[place], y=found[name][:, None], color=ink, label=label, alpha=0.8)
    ticks = {k: FAR_MARKS[name][2] for k, name in enumerate(("chain.none", "sum.none", "skipinit.none"), 1)}
    words = dict(xlim=(0.5, 3.5), ylabel="change of the gradient, over itself", ticks=ticks)
    return compare(found, [Panel(by="dots", look="o", log="y", **words)], arms, figsize=(6.0, 3.4))
