"""More figures of the chapter on the critical learning rate: other settings, and the test loss below it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.patheffects import Normal, Stroke
from matplotlib.ticker import LogLocator

from bnbook.figures import COLORS
from bnbook.plots.axes import in_factors, in_powers
from bnbook.plots.critical_rate import Panels
from bnbook.plots.learning_rate import LINES, Curves, grid


def sides(names: Mapping[str, str], gammas: Sequence[float], largest: float, curves: Curves) -> plt.Figure:
    """log10 of critical rates in other settings, NAME (S, γ), names: setting -> words; no rate above
    `largest` was tried, and what has none is drawn there. curves: "gamma", "LINE" (1, fine), "below" (1, γ)
    the line through the batch at the γ of the settings."""
    fig, (left, right) = plt.subplots(1, 2, figsize=(8.2, 3.6))
    below = curves["below"]
    shades = plt.cm.cividis(np.linspace(0.0, 0.75, len(names)))
    for place, (name, mark, shade) in enumerate(zip(names, "osD^vP", shades)):
        found = curves[name]
        shown = np.where(np.isfinite(found), found, largest)
        x = np.tile(gammas, len(found)) * 1.02 ** (place - 2)
        left.plot(x, shown.ravel(), mark, color=shade, markersize=5, label=names[name])
        if name != "cross_entropy":
            right.plot(x, (shown - below).ravel(), mark, color=shade, markersize=5)
    for ax, zero in ((left, 0.0), (right, curves["through_batch"][0])):
        for name in ("through_batch", "from0"):
            words, dash, color = LINES[name]
            ax.plot(curves["gamma"][0], curves[name][0] - zero, dash, color=color, label=words)
        ax.set_xlabel(r"$\gamma$")
    left.set_title("Where does training break?", fontsize=10.5)
    right.set_title("The same over the dotted line", fontsize=10.5)
    left.set_ylabel(r"learning rate $\eta$")
    in_powers(left.yaxis)
    right.set_ylabel("times the dotted line")
    in_factors(right.yaxis, (0.5, 0.6, 0.7, 0.8, 1, 1.2, 1.4, 1.7, 2, 3))
    handles, words = left.get_legend_handles_labels()
    fig.legend(handles, words, loc="outside lower center", ncols=3, fontsize=9.7)
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
