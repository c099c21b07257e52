"""Is the landscape smoother? The figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np

from bnbook.figures import COLORS, LABELS, log_band, parameters_of, points_of
from bnbook.plots import printed
from bnbook.plots.layout import subplots
from bnbook.plots.names import mark, mark_curve
from bnbook.plots.panels import legend_below, line_with_band, panels, without_minor_ticks
from bnbook.probes.summaries import PAPER_REACH
from bookpress.results import Results

Curves = Mapping[str, np.ndarray]
PAIR = ("none", "batch")
DISTANCE, SLOPE = "distance, in learning rates", "slope of the gradient"


def landscape_panels(curves: Curves, steps: Sequence[int]) -> plt.Figure:
    """Left, from the smallest to the largest loss, low.NORM and high.NORM (1, P), their logarithms; then the
    change of the gradient and β, NAME.NORM (1, 3, P), marked where the plain network's line crosses batch
    norm's for good, and what the paper prints of the first."""
    fig, axes = subplots(1, 3, figsize=(8.2, 3.5))
    x = np.asarray(steps) + 1  # the first probe has a place on a logarithmic axis
    for norm in PAIR:
        low, high = (np.exp(np.asarray(curves[f"{edge}.{norm}"])[0]) for edge in ("low", "high"))
        axes[0].fill_between(x, low, high, color=COLORS[norm], alpha=0.35, linewidth=0.8)
    for norm in (*PAIR, "noisy"):
        for ax, name in zip(axes[1:], ("gradient_change", "smoothness")):
            line_with_band(ax, x, curves[f"{name}.{norm}"], color=COLORS[norm], label=LABELS[norm])
    for ax, name in zip(axes[1:], ("gradient_change", "smoothness")):
        turn = crossing(x, *(np.asarray(curves[f"{name}.{norm}"])[0, 1] for norm in PAIR))
        if turn is not None:
            mark(ax, "the order turns", x=turn, linestyle=":")
    claimed = printed.ORDERS * np.asarray(curves["gradient_change.batch"])[0, 1]
    mark_curve(axes[1], x, claimed, f"paper: close to {printed.ORDERS:g} × batch norm's")
    for ax, title in zip(axes, ("range of the loss", "change of the gradient", "effective β")):
        ax.set(xscale="log", yscale="log", title=title, xlabel="training step + 1")
    axes[0].set(yscale="linear", ylim=(0, None))  # on a logarithmic axis the width of a band is no range
    legend_below(fig, axes[2], 3)
    return without_minor_ticks(fig)


def crossing(x: np.ndarray, one: np.ndarray, other: np.ndarray) -> float | None:
    """Where two curves cross for the last time, half way on a logarithmic axis between two of the x (X,);
    None where they never do."""
    signs = np.sign(np.asarray(one, dtype=float) - np.asarray(other, dtype=float))
    turns = np.flatnonzero(signs[1:] * signs[:-1] < 0)
    return float(np.sqrt(x[turns[-1]] * x[turns[-1] + 1])) if len(turns) else None


def random_directions(curves: Curves, steps: Sequence[int]) -> plt.Figure:
    """Largest change of the loss and β, a column each: above along a random direction (random_NAME.NORM),
    below along the gradient (NAME.NORM)."""
    titles = {"loss_change": "largest change of the loss", "smoothness": "effective β"}
    ways = {"random_": "in a random direction", "": "along the gradient"}
    fig, axes = subplots(2, 2, figsize=(7.4, 5.2), sharex=True, sharey="col")
    x = np.asarray(steps) + 1
    for column, (name, title) in zip(axes.T, titles.items()):
        for ax, (way, words) in zip(column, ways.items()):
            for norm in PAIR:
                style = dict(color=COLORS[norm], label=LABELS[norm])
                line_with_band(ax, x, curves[f"{way}{name}.{norm}"], **style)
            ax.set(xscale="log", yscale="log")
            ax.set_title(f"{title},\n{words}", fontsize=10.5)
        column[-1].set_xlabel("training step + 1")
    legend_below(fig, axes[0, 0], 2)
    return without_minor_ticks(fig)


def slope_panel(
    ax: plt.Axes, lengths: Sequence[float], rate: float, slopes: Mapping[str, np.ndarray]
) -> None:
    """‖∇L(θ) - ∇L(θ_a)‖ / (a ‖∇L(θ)‖) at each a, NORM -> (S, A) at `lengths`, in learning rates of `rate`.

    Geometric means over the seeds with 95 % bands. Dashed: 1/a, what a spent gradient gives whatever the
    network; shaded: the paper's reach.
    """
    a = np.asarray(lengths, dtype=float)
    ax.axvspan(*PAPER_REACH, color="#777777", alpha=0.13, linewidth=0)
    mark_curve(ax, a, 1 / (a * rate), "1/a: the gradient is spent")
    for norm, values in slopes.items():
        log_band(ax, a, values, color=COLORS[norm], label=LABELS[norm])
    ax.set(xscale="log", yscale="log")
    ax.set_xticks([0.05, 0.5, 4, 16], ["1/20", "1/2", "4", "16"])
    ax.minorticks_off()


# ---- Each figure of the page, from the results of its run -----------------------------------------------


def landscape(results: Results) -> plt.Figure:
    return landscape_panels(points_of(results, "landscape"), results["probe_step"][0])


def random(results: Results) -> plt.Figure:
    return random_directions(points_of(results, "random"), results["probe_step"][0])


def width(results: Results) -> plt.Figure:
    own = parameters_of(results)
    titles = {"loss_range": "range of the loss", "gradient_change": "change of the gradient"}
    titles["smoothness"] = "effective β"
    words = dict(xlabel="width, share of VGG-A", log="xy", ticks=True)
    widths = sorted({*own.sweep_widths, own.width})
    return panels(points_of(results, "width"), widths, titles, PAIR, **words)


FIGURES = {"landscape": landscape, "random": random, "width": width}
