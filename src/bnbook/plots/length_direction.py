"""Figures of the chapters on length and direction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.ticker import MaxNLocator

from bnbook.figures import COLORS, log_band

#: `wrong` is the half where a bound fails, and what lies off the line that should hold all critical points.
APART, THEORY, WRONG = COLORS["apart"], COLORS["theory"], COLORS["wrong"]
#: Ink, dash and words for each method of a race.
METHODS = {
    "direction": (APART, "-", "length and direction"),
    "gdnp": (APART, "-", "GDNP"),
    "gradient_descent": (THEORY, "-", "gradient descent"),
    "accelerated": (THEORY, "--", "accelerated"),
}
#: The inks that chapters ask for by an arm's key where a method or a reading is meant.
MEANT = {"batch": "apart", "none": "theory", "l2": "part"}


def drawn_steps(last: int) -> np.ndarray:
    """The steps at which a curve is drawn: all up to 20, then 120 more up to the last."""
    steps = np.unique(np.r_[0:21, np.linspace(20, last, 121).astype(int)])
    return steps[steps <= last]


def draw_ratios(
    panels: Mapping[str, Mapping[str, str]], tallies: Mapping[str, np.ndarray], decades: tuple[int, int]
) -> plt.Figure:
    """Left side over right side of bounds, a panel each; the half where they are violated is shaded.

    panels: title -> tally's name -> label, which begins with its colour's key and a colon; tallies: counts
    (S, bins) of `ratios.tally` by name.
    """
    rows, columns = (len(panels) + 1) // 2, min(len(panels), 2)
    size = {"figsize": (5.4 + columns, 1.4 + 2.1 * rows), "squeeze": False}
    fig, axes = plt.subplots(rows, columns, sharex=True, sharey=True, **size)
    for ax, (title, lines) in zip(axes.ravel(), panels.items(), strict=True):
        for name, words in lines.items():
            counts = np.asarray(tallies[name]).sum(axis=0)
            edges = np.linspace(*decades, len(counts) + 1)
            color, label = words.split(": ")
            style = {"histtype": "step", "linewidth": 1.8, "label": label}
            style["color"] = COLORS[MEANT.get(color, color)]
            ax.hist(edges[:-1], edges, weights=counts / counts.sum(), **style)
        ax.axvline(0, color=THEORY, linewidth=1)
        ax.axvspan(0, decades[1], color=WRONG, alpha=0.07, linewidth=0)
        ax.set(title=title, xlim=decades, yscale="log", ylim=(1e-4, 6))
        ticks = np.arange(decades[0], decades[1] + 1, 4)
        ax.set_xticks(ticks, [f"$10^{{{tick}}}$" if tick else "1" for tick in ticks])
        ax.legend(loc="upper left", fontsize=8.5)
    for ax in axes[-1]:
        ax.set_xlabel("left side / right side")
    for ax in axes[:, 0]:
        ax.set_ylabel("share of trials")
    return fig


def conditioning(
    steps: np.ndarray,
    excess: Mapping[str, np.ndarray],
    conditions: Sequence[int],
    needed: Mapping[str, np.ndarray],
) -> plt.Figure:
    """The excess (S, T) of each method at condition number 100, and the steps (S, conditions) it needs."""
    fig, (left, right) = plt.subplots(1, 2, figsize=(7.4, 3.7))
    for name, values in excess.items():
        color, dash, label = METHODS[name]
        style = {"color": color, "linestyle": dash}
        log_band(left, steps, values, label=label, **style)
        log_band(right, np.array(conditions), needed[name], marker="o", markersize=4, label=label, **style)
    bound = excess["direction"][:, 0].mean() * (1 - 1 / 100) ** (2 * steps)
    left.plot(steps, bound, ":", color=THEORY, label=r"$(1-\mu/L)^{2t}$")
    left.set(yscale="log", ylim=(1e-9, 2), xlabel="step $t$", ylabel="relative excess")
    left.set_title("condition number 100")
    left.legend(loc="upper right", fontsize=8.5)
    right.set(xscale="log", yscale="log", xlabel=r"condition number $L/\mu$", ylabel="steps")
    right.set_title("to a relative excess of $10^{-8}$")
    right.legend(loc="upper left", fontsize=8.5)
    right.set_xticks(conditions, [str(condition) for condition in conditions])
    right.minorticks_off()
    return fig


def races(steps: np.ndarray, panels: Mapping[str, Mapping[str, np.ndarray]]) -> plt.Figure:
    """Relative excess loss (S, T) at some steps (T,): title -> method -> values."""
    fig, axes = plt.subplots(1, 2, figsize=(7.4, 3.6), sharey=True)
    for ax, (title, runs) in zip(axes, panels.items(), strict=True):
        for name, values in runs.items():
            color, dash, label = METHODS[name]
            log_band(ax, steps, np.maximum(values, 1e-15), color=color, linestyle=dash, label=label)
        ax.set(yscale="log", ylim=(1e-8, 3), title=title, xlabel="step $t$")
        ax.legend(loc="upper right")
    axes[0].set_ylabel("relative excess loss")
    return fig


def surfaces(
    side: np.ndarray, values: Mapping[str, np.ndarray], line: np.ndarray, points: Mapping[str, np.ndarray]
) -> plt.Figure:
    """Losses (W, W) over the plane by name, and the line along `line` (2,).

    points: LOSS.on_line and LOSS.away, critical points (1, k, 2) on and off the line.
    """
    fig, axes = plt.subplots(1, 2, figsize=(7.4, 3.9))
    titles = {"logistic": "logistic loss", "ripple": r"$t-\sqrt{e}\,\sin t$"}
    for ax, (name, surface) in zip(axes, values.items(), strict=True):
        ax.contour(side, side, surface, 22, cmap="cividis", linewidths=0.9)
        ax.plot(*np.outer(line, (-9, 9)), "--", color=THEORY, linewidth=1, label="line of $S^{-1}u$")
        for where, marker, color, label in (
            ("on_line", "o", THEORY, "critical, on the line"),
            ("away", "D", WRONG, "critical, off the line"),
        ):
            ax.plot(*points[f"{name}.{where}"][0].T, marker, color=color, markersize=6, label=label)
        ax.set(title=titles[name], xlim=side[[0, -1]], ylim=side[[0, -1]], aspect="equal")
        ax.set_xlabel(r"$\tilde w_1$")
    axes[0].set_ylabel(r"$\tilde w_2$")
    handles, labels = axes[1].get_legend_handles_labels()
    fig.legend(handles, labels, ncols=3, loc="outside lower center", fontsize=9)
    return fig


def two_units(
    along: np.ndarray,
    across: np.ndarray,
    surface: np.ndarray,
    saddle: np.ndarray,
    minimum: np.ndarray,
    places: Mapping[str, np.ndarray],
) -> plt.Figure:
    """Left, the loss above its minimum (across, along) of two equal units, its saddle and minimum (2,);
    right, by loss, the units' places (1, k, 2) at critical points of random networks."""
    fig, (left, right) = plt.subplots(1, 2, figsize=(7.4, 3.7))
    left.contour(along, across, surface, levels=np.geomspace(4e-6, 4e-3, 16), cmap="cividis", linewidths=0.9)
    left.plot(along, 0 * along, "--", color=THEORY, linewidth=1, label="line of $S^{-1}u$")
    left.plot(*saddle, "o", color=THEORY, markersize=6, label="saddle")
    both = np.array([1, -1])
    left.plot(minimum[0] + 0 * both, minimum[1] * both, "D", color=WRONG, markersize=6, label="minimum")
    left.set(xlabel="$p$, along the line", ylabel="$q$, across", title="two equal units")
    left.legend(loc="upper right", fontsize=8.5)
    for (name, points), (marker, face) in zip(places.items(), (("D", "none"), ("o", THEORY))):
        dots = {"color": THEORY, "markerfacecolor": face, "markersize": 4.5, "alpha": 0.7}
        right.plot(*np.reshape(points, (-1, 2)).T, marker, label=f"{name} loss", **dots)
    right.axhline(0, color=THEORY, linewidth=1, linestyle="--")
    right.set(xlabel="along the line", ylabel="distance from the line", title="random networks")
    right.legend(title="critical points", loc="upper left", fontsize=8.5)  # full and empty: names do not tell
    return fig


def passes(lengths: Sequence[int], single: np.ndarray, many: np.ndarray) -> plt.Figure:
    """The whole squared gradient after one pass (S, lengths) and after each of many passes (S, passes)."""
    fig, (left, right) = plt.subplots(1, 2, figsize=(7.2, 3.4), sharey=True)
    log_band(left, np.array(lengths), single, color=APART, marker="o", markersize=5)
    log_band(right, np.arange(1, many.shape[1] + 1), many, color=APART, marker="o", markersize=5)
    right.xaxis.set_major_locator(MaxNLocator(integer=True))
    left.set(yscale="log", xlabel="steps for each unit $T_d$", title="one pass")
    left.set_ylabel(r"$\sum_i\|\nabla_i f\|^2$ (norm of $S^{-1}$)")
    right.set(xlabel="passes", title="repeated passes, $T_d=4$")
    return fig
