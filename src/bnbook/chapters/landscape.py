"""Is the landscape smoother? The figures."""

from __future__ import annotations

from functools import partial

import matplotlib.pyplot as plt
import numpy as np

from bnbook.chapters.vgg import PAIR
from bnbook.figures import COLORS, parameters_of, points_of
from bnbook.plots import printed
from bnbook.plots.names import mark, mark_curve
from bnbook.plots.panels import Panel, compare
from bookpress.results import Results

DISTANCE, SLOPE = "distance, in learning rates", "slope of the gradient"
TITLES = {
    "loss_range": "range of the loss",
    "gradient_change": "change of the gradient",
    "smoothness": "effective β",
}


def crossing(x: np.ndarray, one: np.ndarray, other: np.ndarray) -> float | None:
    """Where two curves cross for the last time, half way on a logarithmic axis between two of the x (X,);
    None where they never do."""
    signs = np.sign(one - other)
    turns = np.flatnonzero(signs[1:] * signs[:-1] < 0)
    return float(np.sqrt(x[turns[-1]] * x[turns[-1] + 1])) if len(turns) else None


def landscape(results: Results) -> plt.Figure:
    """Left, from the smallest to the largest loss, low.NORM and high.NORM (1, P), their logarithms; then the
    change of the gradient and β, NAME.NORM (1, 3, P), marked where the plain network's line crosses batch
    norm's for good, and what the paper prints of the first."""
    points = points_of(results, "landscape")
    x = results["probe_step"][0] + 1  # the first has a place on a log axis

    def between(ax: plt.Axes) -> None:
        for norm in PAIR:
            low, high = (np.exp(points[f"{edge}.{norm}"][0]) for edge in ("low", "high"))
            ax.fill_between(x, low, high, color=COLORS[norm], alpha=0.35, linewidth=0.8)
        ax.set(xscale="log", ylim=(0, None))  # on a logarithmic axis the width of a band is no range

    def turns(name: str, ax: plt.Axes) -> None:
        turn = crossing(x, *(points[f"{name}.{norm}"][0, 1] for norm in PAIR))
        if turn is not None:
            mark(ax, "the order turns", x=turn, linestyle=":")
        if name == "gradient_change":
            claimed = printed.ORDERS * points[f"{name}.batch"][0, 1]
            mark_curve(ax, x, claimed, f"paper: close to {printed.ORDERS:g} × batch norm's")

    panels = [Panel(title=TITLES["loss_range"], also=between)]
    for name in ("gradient_change", "smoothness"):
        panels.append(Panel(curve=f"{name}.{{}}", title=TITLES[name], log="xy", also=partial(turns, name)))
    words = dict(x=x, xlabel="training step + 1")
    return compare(points, panels, (*PAIR, "noisy"), figsize=(8.2, 3.5), **words)


def random(results: Results) -> plt.Figure:
    """Largest change of the loss and β, a column each: above along a random direction (random_NAME.NORM),
    below along the gradient (NAME.NORM)."""
    titles = {"loss_change": "largest change of the loss", "smoothness": "effective β"}
    ways = {"random_": "in a random direction", "": "along the gradient"}
    panels = [
        [Panel(curve=f"{way}{name}.{{}}", title=f"{title},\n{words}") for name, title in titles.items()]
        for way, words in ways.items()
    ]
    words = dict(
        x=results["probe_step"][0] + 1, log="xy", xlabel="training step + 1", sharex=True, sharey="col"
    )
    return compare(points_of(results, "random"), panels, PAIR, figsize=(7.4, 5.2), **words)


def width(results: Results) -> plt.Figure:
    own, titles = parameters_of(results), {f"{name}.{{}}": title for name, title in TITLES.items()}
    widths = sorted({*own.sweep_widths, own.width})
    words = dict(x=widths, ticks=widths, xlabel="width, share of VGG-A", log="xy", look="o-", sharex=True)
    return compare(points_of(results, "width"), titles, PAIR, figsize=(8.4, 3.3), columns=3, **words)
