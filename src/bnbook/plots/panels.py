"""Panels of lines with bands, fans of quantiles and shares of seeds: what most figures on training are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np

from bnbook.plots import COLORS, LABELS
from bnbook.plots.axes import log_band
from bnbook.plots.layout import cells, last_of_columns, letters, subplots
from bnbook.plots.names import marks
from bookpress.intervals import clopper_pearson

Curves = Mapping[str, np.ndarray]
FANS = ((0, 6, 0.18), (1, 5, 0.3), (2, 4, 0.45))  # from one of seven quantiles to another, opacity


def line_with_band(ax: plt.Axes, x: Sequence[float], curve: np.ndarray, **line) -> None:
    """A line with its band, (1, 3, X): low, middle, high."""
    low, middle, high = np.asarray(curve, dtype=float)[0]
    ax.plot(x, middle, **line)
    if np.isfinite(low).any():
        ax.fill_between(x, low, high, color=line["color"], alpha=0.2, linewidth=0)


def compare(
    results: Mapping[str, np.ndarray],
    name: str,
    panels: Mapping[str, str],
    lines: Mapping[str, Mapping[str, Any]],
    *,
    figsize: tuple[float, float],
    xlabel: str,
    ylabel: str,
    level: float | None = None,
) -> plt.Figure:
    """A panel for each entry of `panels` (KEY -> title), in it for each of `lines` (ARM -> label, color …) the geometric
    mean over seeds with its band, of the points KEY.ARM (S, X) of the figure NAME (ARM alone where the key is "") against
    1 to X; both axes logarithmic. level: a grey line across. Legends: in the panel, or one below several."""
    fig, axes = subplots(1, len(panels), figsize=figsize, sharey=True, squeeze=False)
    for ax, (key, title) in zip(axes[0], panels.items()):
        for arm, style in lines.items():
            values = results[".".join(filter(None, ("curve", name.replace("-", "_"), key, arm)))]
            log_band(ax, np.arange(1, values.shape[1] + 1), values, **style)
        if level is not None:
            ax.axhline(level, color=COLORS["grid"], linewidth=1)
        ax.set(xscale="log", yscale="log", xlabel=xlabel, title=title)
    axes[0, 0].set_ylabel(ylabel)
    if len(panels) > 1:
        legend_below(fig, axes[0, -1], len(lines))
    else:
        axes[0, 0].legend(fontsize=9.5)
    return fig


def legend_below(fig: plt.Figure, ax: plt.Axes, columns: int) -> None:
    """One legend for all panels, of what `ax` shows."""
    place = dict(loc="outside lower center", ncols=columns, fontsize=letters(ax))
    fig.legend(*ax.get_legend_handles_labels(), **place)


def without_minor_ticks(fig: plt.Figure) -> plt.Figure:
    """On logarithmic axes minor ticks are most of a figure's time and size."""
    for ax in fig.axes:
        ax.minorticks_off()
    return fig


def panels(
    curves: Curves,
    x: Sequence[float] | Mapping[str, Sequence[float]],
    titles: Mapping[str, str],
    norms: Sequence[str],
    *,
    xlabel: str = "training step",
    log: str = "",
    linear: Sequence[str] = (),
    columns: int = 3,
    ticks: bool = False,
    levels: Mapping[str, Mapping[str, float]] | None = None,
    upright: Mapping[str, float] | None = None,
    labels: Mapping[str, str] = LABELS,
) -> plt.Figure:
    """A panel for each measure of `titles`, a line with its band for each norm: curves["MEASURE.NORM"] over
    x, or over x[MEASURE].

    log: "x", "y" or "xy", the logarithmic axes, but for the y of the measures in `linear`; ticks: a marker
    and a tick at each x; levels: MEASURE -> words -> y, marks across its panel; upright: words -> x, marks in
    every panel.
    """
    columns = min(columns, len(titles))
    rows = -(-len(titles) // columns)
    size = (2.6 * columns + 0.6, 2.7 * rows + 0.6)
    fig, axes = cells(len(titles), columns, size, sharex=True)
    marked = dict(marker="o", markersize=4) if ticks else {}
    for ax, (name, title) in zip(axes, titles.items()):
        own = x[name] if isinstance(x, Mapping) else x
        for norm in (norm for norm in norms if f"{name}.{norm}" in curves):
            style = dict(color=COLORS[norm], label=labels[norm], **marked)
            line_with_band(ax, own, curves[f"{name}.{norm}"], **style)
        if levels and name in levels:
            marks(ax, y=levels[name])
            ax.margins(y=0.12)  # room for the words
        marks(ax, x=upright)
        ax.set_title(title, fontsize=10.5)
        ax.set(xscale="log" if "x" in log else "linear")
        ax.set(yscale="log" if "y" in log and name not in linear else "linear")
        if ticks:
            ax.set_xticks(own, [f"{place:g}" for place in own])
    for ax in last_of_columns(axes):
        ax.set_xlabel(xlabel)
    entries: dict[str, object] = {}
    for ax in axes:
        for handle, label in zip(*ax.get_legend_handles_labels()):
            entries.setdefault(label, handle)
    place = dict(loc="outside lower center", ncols=min(len(entries), columns + 1), fontsize=letters(axes[0]))
    fig.legend(entries.values(), entries, **place)
    return without_minor_ticks(fig)


def fans(
    curves: Curves, x: Sequence[float], rows: Sequence[str], titles: Mapping[str, str] = LABELS
) -> plt.Figure:
    """Bands of quantiles about their median, a column a key of `curves`, a row a layer, of one scale.

    curves: NAME -> (1, X, rows, 7), the quantiles of `deep_linear.LEVELS`; the part of NAME before a dot
    gives the colour, titles[NAME] the title.
    """
    size = (min(1.75 * len(curves) + 0.4, 7.8), 1.75 * len(rows) + 0.5)
    fig, axes = subplots(len(rows), len(curves), figsize=size, sharex=True, sharey="row", squeeze=False)
    for column, (name, values) in zip(axes.T, curves.items()):
        color = COLORS[name.split(".")[0]]
        for ax, spread in zip(column, np.moveaxis(np.asarray(values, dtype=float)[0], 1, 0)):
            for a, b, opacity in FANS:
                ax.fill_between(x, spread[:, a], spread[:, b], color=color, alpha=opacity, linewidth=0)
            ax.plot(x, spread[:, 3], color=COLORS["theory"], linewidth=1.1)
            ax.tick_params(labelsize=letters(ax))
            ax.locator_params(nbins=3)
        column[0].set_title(titles[name], color=color, fontsize=10)
        column[-1].set_xlabel("training step", fontsize=10)
    for ax, label in zip(axes[:, 0], rows):
        ax.set_ylabel(label)
    return fig


def shares(
    ax: plt.Axes, events: Mapping[tuple[str, str], np.ndarray], places: Sequence[str], ylabel: str
) -> None:
    """Share of seeds, each 0 or 1, with exact intervals: events[(place, norm)] (S,), side by side."""
    for (place, norm), values in events.items():
        hits, count = int(np.sum(values)), len(values)
        share, (low, high) = hits / count, clopper_pearson(hits, count)
        beside = [other for where, other in events if where == place]
        apart = 0.18 * (beside.index(norm) - (len(beside) - 1) / 2) if len(places) > 1 else 0.0
        at = list(places).index(place) + apart
        error = 100 * np.array([[share - low], [high - share]])
        style = dict(fmt="o", color=COLORS[norm], capsize=4, markersize=6, clip_on=False, zorder=3)
        known = ax.get_legend_handles_labels()[1]
        label = LABELS[norm] if LABELS[norm] not in known else None
        ax.errorbar(at, 100 * share, error, label=label, **style)
        side = (-6, "right") if apart < 0 else (6, "left")
        words = dict(textcoords="offset points", fontsize=letters(ax), color=COLORS[norm], ha=side[1])
        ax.annotate(f"{hits}", (at, 100 * share), (side[0], 3), **words)
    ax.set_xticks(range(len(places)), places)
    ax.set(ylabel=ylabel, ylim=(-3, 103), xlim=(-0.6, len(places) - 0.4))
    ax.grid(axis="x", visible=False)
