"""Panels of lines with bands, rows of dots, shares of seeds, fans of quantiles: what most figures are."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import matplotlib.pyplot as plt
import numpy as np

from bnbook.plots import COLORS, LABELS
from bnbook.plots.axes import band, log_band, points
from bnbook.plots.layout import cells, letters, name_rows, subplots
from bnbook.plots.names import marks
from bookpress.intervals import clopper_pearson, mean_and_interval

Curves = Mapping[str, np.ndarray]
Arms = Sequence[str] | Mapping[str, str | Mapping[str, Any]]
SHARED = {"sharex", "sharey", "width_ratios", "height_ratios"}  # of all panels
FANS = ((0, 6, 0.18), (1, 5, 0.3), (2, 4, 0.45))  # from one of seven quantiles to another, opacity


def line_with_band(ax: plt.Axes, x: Sequence[float], curve: np.ndarray, **line) -> None:
    """A line with its band, (1, 3, X): low, middle, high."""
    low, middle, high = np.asarray(curve, dtype=float)[0]
    ax.plot(x, middle, **line)
    if np.isfinite(low).any():
        ax.fill_between(x, low, high, color=line["color"], alpha=0.2, linewidth=0)


@dataclass(frozen=True, kw_only=True)
class Panel:
    """What stands in one panel of `compare`; what is None is as for the whole figure.

    curve: name of the points, {} stands for the arm. x: places, or the name of the points that hold them; None: 1, 2, …
    arms: this panel's own. by: how the seeds are drawn, a key of `WAYS`. look: mark and dash, as "o--". times: factor of
    all values. log: of "x", "y", "xy". ticks, yticks: places, or place -> words. rows: names of 0, 1, … from above.
    marks_x, marks_y: words -> place. also: what no table says.
    """

    curve: str | None = None
    x: str | Sequence[float] | None = None
    title: str | None = None
    arms: Arms | None = None
    by: str | None = None
    look: str | None = None
    times: float | None = None
    log: str | None = None
    xlabel: str | None = None
    ylabel: str | None = None
    xlim: tuple | None = None
    ylim: tuple | None = None
    ticks: Sequence[float] | Mapping[float, str] | None = None
    yticks: Sequence[float] | Mapping[float, str] | None = None
    rows: Sequence[str] | None = None
    marks_x: Mapping[str, float] | None = None
    marks_y: Mapping[str, float] | None = None
    also: Callable[[plt.Axes], object] | None = None


def compare(
    points: Mapping[str, np.ndarray],
    panels: Mapping[str, str] | Sequence[Panel] | Sequence[Sequence[Panel]],
    arms: Arms = ("none", "batch"),
    *,
    figsize: tuple[float, float],
    columns: int | None = None,
    legend: str = "",
    **words: Any,
) -> plt.Figure:
    """A grid of panels, in each a line with its band for each arm: what most figures are.

    points: NAME -> (S, X), seeds first; (1, 3, X), low, middle and high; or (X,), a line. panels: `Panel`s, in rows or in
    one, or curve -> title. arms: names, or name -> words, or name -> what a line takes: color (an arm's name too), label,
    and x, y (both as a panel has x), by, look, times of its own. An arm without points is left out.
    columns: so many panels in a row, in reading order. legend: "below" all, in "each", or "none"; else below several and
    in a single one. words: what each `Panel` has that says nothing else, and SHARED.
    """
    if isinstance(panels, Mapping):
        panels = [Panel(curve=curve, title=title) for curve, title in panels.items()]
    rows = [panels] if isinstance(panels[0], Panel) else panels
    share = {name: words.pop(name) for name in SHARED & set(words)}
    each = [_filled(panel, {"arms": arms} | words) for row in rows for panel in row]
    if columns:
        fig, axes = cells(len(each), columns, figsize, **share)
        across = axes[0].get_gridspec().ncols
    else:
        fig, grid = subplots(len(rows), len(rows[0]), figsize=figsize, squeeze=False, **share)
        axes, across = list(grid.flat), len(rows[0])
    for place, (ax, panel) in enumerate(zip(axes, each)):
        _draw(ax, points, panel)
        ax.set_title(panel.title or "", **({"fontsize": 10.5} if len(each) > 1 else {}))
        below = each[place + across] if place + across < len(each) else None
        left = each[place - 1] if place % across else None
        ax.set_xlabel(panel.xlabel if panel.xlabel and not (below and below.xlabel == panel.xlabel) else "")
        ax.set_ylabel(panel.ylabel if panel.ylabel and not (left and left.ylabel == panel.ylabel) else "")
    if (legend or ("below" if len(each) > 1 else "each")) == "below":
        legend_below(fig)
    elif legend != "none":
        for ax in (ax for ax in axes if ax.get_legend_handles_labels()[1]):
            ax.legend(fontsize=letters(ax))
    return without_minor_ticks(fig)


def styles_of(arms: Arms) -> dict[str, dict[str, Any]]:
    """Arm -> what its line takes."""
    named = arms if isinstance(arms, Mapping) else {arm: LABELS[arm] for arm in arms}
    return {
        arm: {"color": arm if arm in COLORS else "theory"}
        | ({"label": own} if isinstance(own, str) else dict(own))
        for arm, own in named.items()
    }


def _filled(panel: Panel, common: Mapping[str, Any]) -> Panel:
    own = {each.name: getattr(panel, each.name) for each in fields(panel)}
    return Panel(**{**common, **{name: value for name, value in own.items() if value is not None}})


def _draw(ax: plt.Axes, points: Mapping[str, np.ndarray], panel: Panel) -> None:
    for arm, style in styles_of(panel.arms).items():
        if "y" not in style and panel.curve is None:
            continue
        y, x = style.pop("y", panel.curve), style.pop("x", panel.x)
        values = points.get(y.format(arm)) if isinstance(y, str) else y
        if values is None:
            continue
        values = np.asarray(values, dtype=float) * style.pop("times", panel.times or 1)
        x = (
            points[x][0]
            if isinstance(x, str)
            else np.arange(1, values.shape[-1] + 1)
            if x is None
            else np.asarray(x)
        )
        way = style.pop("by", panel.by or "mean")
        marker, dash = re.fullmatch(r"([^-: ]?)(|--?|-\.|:)", style.pop("look", panel.look or "-")).groups()
        style = {
            "label": None,
            "marker": marker or None,
            "linestyle": dash or "none",
            "markersize": 4.5,
        } | style
        style["color"] = COLORS.get(style["color"], style["color"])
        if values.ndim == 1 or values.ndim == 3 and way != "fan":
            way = "line" if values.ndim == 1 else "recorded"
        WAYS[way](ax, x, values, **style)
    for way, axis in (("x", ax.xaxis), ("y", ax.yaxis)):
        if way in (panel.log or "") and axis.get_scale() != "log":  # shared axes keep the ticks they have
            ax.set(**{f"{way}scale": "log"})
    marks(ax, x=panel.marks_x, y=panel.marks_y)
    if any(panel.marks_y or ()):
        ax.margins(y=0.12)  # room for the words
    for ticks, setter in ((panel.ticks, ax.set_xticks), (panel.yticks, ax.set_yticks)):
        if ticks is not None:
            named = ticks if isinstance(ticks, Mapping) else {place: f"{place:g}" for place in ticks}
            setter(list(named), list(named.values()))
    if panel.rows:
        name_rows(ax, panel.rows)
        ax.set_ylim(len(panel.rows) - 0.4, -0.6)
        ax.grid(visible=False, axis="y")
    ax.set(**{name: at for name in ("xlim", "ylim") if (at := getattr(panel, name)) is not None})
    if panel.also:
        panel.also(ax)


def _line(ax: plt.Axes, x: np.ndarray, values: np.ndarray, **style: Any) -> None:
    ax.plot(x, np.atleast_2d(values).mean(axis=0), **style)


def _seeds(
    ax: plt.Axes, x: np.ndarray, values: np.ndarray, *, label: str | None = None, **style: Any
) -> None:
    for place, row in enumerate(values):
        ax.plot(x, row, label=None if place else label, **style)


def _dots(ax: plt.Axes, x: np.ndarray, values: np.ndarray, **style: Any) -> None:
    ax.plot(np.tile(x, len(values)), values.ravel(), **style)


def _points(ax: plt.Axes, x: np.ndarray, values: np.ndarray, **style: Any) -> None:
    points(ax, x, values, "", **style)


def _across(ax: plt.Axes, places: np.ndarray, values: np.ndarray, **style: Any) -> None:
    mean, half = mean_and_interval(values)
    ax.errorbar(mean, places, xerr=half, capsize=3, **style)


def _shares(ax: plt.Axes, x: np.ndarray, values: np.ndarray, *, label: str | None, **style: Any) -> None:
    """Share of seeds, each 0 or 1, in per cent with its exact interval and how many they are."""
    for at, hits in zip(x, values.sum(axis=0)):
        share = 100 * hits / len(values)
        low, high = (100 * end for end in clopper_pearson(int(hits), len(values)))
        error = [[share - low], [high - share]]
        ax.errorbar(at, share, error, label=label, capsize=4, clip_on=False, zorder=3, **style)
        side = (-6, "right") if at < round(at) else (6, "left")
        words = dict(textcoords="offset points", fontsize=letters(ax), color=style["color"], ha=side[1])
        ax.annotate(f"{hits:.0f}", (at, share), (side[0], 3), **words)
        label = None
    ax.set_ylim(-3, 103)
    ax.grid(axis="x", visible=False)


def _fan(ax: plt.Axes, x: np.ndarray, values: np.ndarray, *, color: str, **_: Any) -> None:
    """Bands of the quantiles of `deep_linear.LEVELS`, (1, X, 7), about their median."""
    for low, high, opacity in FANS:
        ax.fill_between(x, values[0, :, low], values[0, :, high], color=color, alpha=opacity, linewidth=0)
    ax.plot(x, values[0, :, 3], color=COLORS["theory"], linewidth=1.1)


#: How seeds are drawn: their mean with its band, in logarithms, with bars, across at places of rows, alone; each as a line,
#: each as dots; as shares of seeds; what was recorded with its band, or as quantiles.
WAYS: dict[str, Callable[..., None]] = {
    "mean": band,
    "geometric": log_band,
    "points": _points,
    "across": _across,
    "line": _line,
    "seeds": _seeds,
    "dots": _dots,
    "shares": _shares,
    "recorded": line_with_band,
    "fan": _fan,
}


def legend_below(fig: plt.Figure, title: str | None = None) -> None:
    """One legend below all panels of what any of them shows, as many entries in a row as there is room for."""
    entries: dict[str, Any] = {}
    for ax in fig.axes:
        for handle, label in zip(*ax.get_legend_handles_labels()):
            entries.setdefault(label, handle)
    if entries:
        size = letters(fig.axes[0])
        room = 72 * fig.get_figwidth() / (0.55 * size * max(map(len, entries)) + 4 * size)
        rows = -(-len(entries) // max(1, int(room)))
        place = dict(loc="outside lower center", ncols=-(-len(entries) // rows), fontsize=size, title=title)
        fig.legend(entries.values(), entries, **place)


def without_minor_ticks(fig: plt.Figure) -> plt.Figure:
    """On logarithmic axes minor ticks are most of a figure's time and size."""
    for ax in fig.axes:
        ax.minorticks_off()
    return fig


def fans(
    curves: Curves, x: Sequence[float], rows: Sequence[str], titles: Mapping[str, str] = LABELS
) -> plt.Figure:
    """Bands of quantiles about their median, a column a key of `curves`, a row a layer, of one scale.

    curves: NAME -> (1, X, rows, 7), the quantiles of `deep_linear.LEVELS`; the part of NAME before a dot
    gives the colour, titles[NAME] the title.
    """

    def panel(name: str, place: int, row: str) -> Panel:
        arms = {name: dict(y=curves[name][:, :, place], color=name.split(".")[0])}
        return Panel(title=None if place else titles[name], ylabel=row, arms=arms)

    panels = [[panel(name, place, row) for name in curves] for place, row in enumerate(rows)]
    size = (min(1.75 * len(curves) + 0.4, 7.8), 1.75 * len(rows) + 0.5)
    words = dict(x=x, by="fan", xlabel="training step", sharex=True, sharey="row", legend="none")
    return compare({}, panels, figsize=size, **words)
