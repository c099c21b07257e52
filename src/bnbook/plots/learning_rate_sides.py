"""More figures of the chapter on the critical learning rate: other settings, and the test loss below it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.patheffects import Normal, Stroke
from matplotlib.ticker import LogLocator

from bnbook.figures import COLORS
from bnbook.plots.axes import in_factors
from bnbook.plots.critical_rate import Panels
from bnbook.plots.learning_rate import Curves, grid


def sides(names: Mapping[str, str], gammas: Sequence[float], largest: float, curves: Curves) -> plt.Figure:
    """log10 of critical rates in other settings, NAME (S, γ), over the line through the batch: a row a
    setting, names: setting -> words, a colour a γ. No rate above `largest` was tried, and what has none is
    an arrow there. curves: "gamma", "LINE" (1, fine), "below" (1, γ) that line at the γ of the settings."""
    fig, ax = plt.subplots(figsize=(7.2, 1.4 + 0.5 * len(names)))
    ax.axvline(0, color=COLORS["theory"], linestyle=":", label="through the batch")
    printed = np.interp(gammas, curves["gamma"][0], (curves["from0"] - curves["through_batch"])[0])
    shades = plt.cm.viridis(np.linspace(0.0, 0.75, len(gammas)))
    for row, name in enumerate(names):
        for place, (gamma, shade) in enumerate(zip(gammas, shades)):
            found, height = curves[name][:, place], -row - 0.17 * (place - (len(gammas) - 1) / 2)
            for chosen, mark, limit in ((np.isfinite(found), "o", None), (np.isinf(found), ">", largest)):
                x = np.minimum(found[chosen], largest) - curves["below"][0, place]
                label = f"γ = {gamma:g}" if not row and not limit else None
                ax.plot(x, np.full(len(x), height), mark, color=shade, markersize=4.5, label=label)
            ax.plot([printed[place]], [height], "|", color=COLORS["printed"], markersize=6)
    ax.plot([], [], "|", color=COLORS["printed"], markersize=6, label="paper: η* as printed")
    ax.set_yticks([-row for row in range(len(names))], list(names.values()))
    in_factors(ax.xaxis, (0.5, 1, 2, 5, 10, 30, 100, 300, 1000))
    ax.set_xlabel("measured critical rate over that through the batch")
    ax.set_title("Where does training break when it is set otherwise?")
    fig.legend(loc="outside lower center", ncols=3, fontsize=9.7)
    return fig


def loss_map(panels: Panels, gammas: Sequence[float], losses: Curves, curves: Curves) -> plt.Figure:
    """log10 of the mean test loss, losses P (S, γ, rates), over γ and the rates "rates.P" (1, γ, rates);
    "boundary.P" (S, γ) as points, "from0.P" (1, γ) dashed, half of it dotted."""
    fig, axes = grid(panels)
    every = np.concatenate([np.log10(found.mean(axis=0)).ravel() for found in losses.values()])
    scale = dict(zip(("vmin", "vmax"), np.nanpercentile(every, [0, 95])))  # one for all panels
    for suffix, ax in axes.items():
        levels = curves[f"rates.{suffix}"][0]
        x = np.repeat(np.array(gammas)[:, None], levels.shape[1], 1)
        loss = np.log10(losses[suffix].mean(axis=0))
        painted = ax.pcolormesh(x, levels, loss, shading="nearest", cmap="viridis", **scale)
        bar = fig.colorbar(painted, ax=ax, extend="max")
        bar.set_label(r"$\log_{10}$ of the test loss", fontsize=9.5)
        printed = curves[f"from0.{suffix}"][0]
        for words, line, dash in (("η*", printed, "--"), ("η*/2", printed - np.log10(2), ":")):
            (drawn,) = ax.plot(gammas, line, dash, color="white", linewidth=1.6, label=f"paper: {words}")
            drawn.set_path_effects([Stroke(linewidth=3.2, foreground="black"), Normal()])
        found = curves[f"boundary.{suffix}"]
        style = {"color": "white", "markeredgecolor": "black", "markersize": 4}
        ax.plot(np.tile(gammas, len(found)), found.ravel(), "o", label="measured boundary", **style)
        ax.grid(False)
    fig.legend(*ax.get_legend_handles_labels(), loc="outside lower center", ncols=3, fontsize=9.5)
    return fig


def after_epochs(
    gammas: Sequence[float], losses: np.ndarray, rates: np.ndarray, edges: np.ndarray, printed: np.ndarray
) -> plt.Figure:
    """Test losses (S, γ, rates) against the rates, log10 (γ, rates), a colour each γ; edges (γ,): log10 of
    the rates at which the short trainings break, as vertical lines; printed (γ,): log10 of the paper's η*,
    half of which is marked below."""
    fig, ax = plt.subplots(figsize=(6.8, 3.8))
    shades = plt.cm.viridis(np.linspace(0.0, 0.75, len(gammas)))
    for place, (gamma, shade) in enumerate(zip(gammas, shades)):
        x = 10 ** rates[place]
        ax.plot(x, losses[:, place].mean(axis=0), color=shade, label=f"γ = {gamma:g}")
        ax.plot(np.tile(x, len(losses)), losses[:, place].ravel(), "o", color=shade, markersize=4)
        ax.axvline(10 ** edges[place], color=shade, linestyle=":")
        half = {"transform": ax.get_xaxis_transform(), "color": shade, "markersize": 8, "clip_on": False}
        ax.plot([10 ** printed[place] / 2], [0.04], "^", **half)
    ax.plot([], [], "^", color=COLORS["printed"], markersize=8, label="paper: best at η*/2")
    ax.set(xscale="log", yscale="log", xlabel=r"learning rate $\eta$", ylabel="test loss")
    ax.yaxis.set_major_locator(LogLocator(subs=(1, 1.5, 2, 3, 5, 7)))
    ax.yaxis.set_major_formatter("{x:g}")
    ax.minorticks_off()
    ax.set_title("Which learning rate leaves the lowest test loss?")
    ax.legend(fontsize=9.5)
    return fig
