"""Does it stay flat when it is deep? The figures."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np

from bnbook.chapters.mean_field import sets_of
from bnbook.figures import COLORS
from bnbook.plots.panels import Panel, compare
from bnbook.results import Results

SIZES = ("few", "many")


def against_depth(results: Results) -> plt.Figure:
    """Largest eigenvalue by depth, a panel a batch size, and the rule N / 2π."""
    depths, (rule,) = results["curve.depth.depths"][0], results["curve.depth.rule"]
    titles = zip(SIZES, results["curve.depth.inputs"][0])
    panels = [Panel(curve=f"curve.depth.{{}}.{size}", title=f"batches of {m:.0f}") for size, m in titles]
    words = dict(xlabel="layers $L$", ylabel=r"$\lambda_{\max}$, $\gamma = 1$", marks_y={r"$N/2\pi$": rule})
    words |= dict(x=depths, ticks=depths, by="geometric", look="o-", log="y", ylim=(rule / 2, None))
    return compare(results, panels, figsize=(7.8, 3.9), sharey=True, **words)


def beside_rule(results: Results) -> plt.Figure:
    """Measured over N / 2π, for each set and batch size."""
    cases = [(place, size) for place in range(len(sets_of(results))) for size in SIZES]
    kinds = {"one": ("o", COLORS["batch"], "one output, weights", -0.09)}
    kinds["whole"] = ("s", "white", "all outputs, all parameters", 0.09)
    arms = {}
    for kind, (mark, face, words, shift) in kinds.items():
        values = np.stack([results[f"rule.{kind}.set{place}.{size}"] for place, size in cases], axis=1)
        style = dict(color="batch", markerfacecolor=face, look=mark, label=words)
        arms[kind] = dict(x=np.arange(len(cases)) + shift, y=values, **style)
    sizes = dict(zip(SIZES, results["curve.depth.inputs"][0]))
    names = {
        k: f"{sets_of(results)[place]}\n$m$ = {sizes[size]:.0f}" for k, (place, size) in enumerate(cases)
    }
    words = dict(
        ylabel=r"$\lambda_{\max}$ over $N\gamma^2/2\pi$", ylim=(0, None), ticks=names, marks_y={"": 1}
    )
    return compare(results, [Panel(by="points", **words)], arms, figsize=(7.2, 3.2))
