"""What many figures do to their axes: means with intervals, ticks that a reader can use at both ends, whole marks."""

from __future__ import annotations

from collections.abc import Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axis import Axis
from matplotlib.ticker import AutoLocator, FixedLocator, Locator, LogLocator, MultipleLocator, NullLocator

from bookpress.intervals import mean_and_interval


def points(ax: plt.Axes, x: Sequence[float], values: np.ndarray, fmt: str, **options) -> None:
    """Means over the seeds with 95 % intervals; x (X,), values (S, X)."""
    mean, half = mean_and_interval(values)
    ax.errorbar(x, mean, half, fmt=fmt, **{"capsize": 3, "markersize": 5.5, **options})


def band(ax: plt.Axes, x: np.ndarray, values: np.ndarray, *, label: str, color: str, **line) -> None:
    """Draw the mean over seeds with its 95 % band; x (T,), values (S, T)."""
    mean, half = mean_and_interval(values)
    ax.plot(x, mean, label=label, color=color, **line)
    if np.isfinite(half).any():
        ax.fill_between(x, mean - half, mean + half, color=color, alpha=0.2, linewidth=0)


def log_band(ax: plt.Axes, x: np.ndarray, values: np.ndarray, *, color: str, **line) -> None:
    """Draw the geometric mean over seeds with its 95 % band; values (S, X), no point where one is not a
    positive number.

    x (X,), or (S, X) for curves whose places differ from seed to seed: then at the geometric mean of the
    places.
    """
    x = np.asarray(x) if np.ndim(x) == 1 else np.exp(np.log(x).mean(axis=0))
    with np.errstate(divide="ignore", invalid="ignore"):
        middle, half = mean_and_interval(np.where(np.isfinite(values) & (values > 0), np.log(values), np.nan))
        high = np.exp(np.minimum(middle + half, 690.0))  # what is about to overflow would be no number
    ax.plot(x, np.exp(middle), color=color, **line)
    ax.fill_between(x, np.exp(middle - half), high, color=color, alpha=0.18, linewidth=0)


def in_powers(axis: Axis) -> None:
    """An axis of decimal logarithms that is read as one of the numbers: 10⁻³ at -3."""
    axis.set_major_locator(MultipleLocator(1))
    axis.set_major_formatter(lambda place, _: f"$10^{{{place:.0f}}}$")


def in_factors(axis: Axis, factors: Sequence[float]) -> None:
    """An axis of decimal logarithms that is read as one of these factors: 2 at 0.3, 1,000 at 3."""
    axis.set_major_locator(FixedLocator(np.log10(factors)))
    axis.set_major_formatter(lambda place, _: f"{float(f'{10**place:.2g}'):,g}")


def power(rate: float) -> str:
    """3e-05 -> 3·10⁻⁵, as a formula, to two digits."""
    digits, exponent = f"{rate:.1e}".replace(".0", "").split("e")
    times = "" if digits == "1" else rf"{digits}\cdot "
    return f"${times}10^{{{int(exponent)}}}$"


# ---- What every figure has done to its axes before it is saved ------------------------------------------------------

GAP = 2.0  # points around a number of an axis
FEWEST = 3  # numbers that an axis shows; a short axis has no more than two powers of ten
MANY = 15  # ticks that a locator may set, however short the axis is
STEPS = ((1.0, 3.0), (1.0, 2.0, 5.0), (1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0))


def name_few_decades(fig: plt.Figure) -> None:
    """Numbers at 1 and 3, at 1, 2 and 5 or closer for each logarithmic axis with fewer than FEWEST powers of
    ten; an axis whose ticks the figure has set stays."""
    for axis in (axis for ax in fig.axes for axis in (ax.xaxis, ax.yaxis)):
        locator = axis.get_major_locator()
        if axis.get_scale() == "log" and isinstance(locator, LogLocator) and _count(axis, locator) < FEWEST:
            axis.set_minor_locator(NullLocator())
            if _count(axis, LogLocator(numticks=MANY)) >= FEWEST:  # it is short, and has powers enough
                axis.set_major_locator(LogLocator(numticks=FEWEST + 1))
                continue
            finer = (LogLocator(subs=steps, numticks=MANY) for steps in STEPS)
            axis.set_major_locator(next((s for s in finer if _count(axis, s) >= FEWEST), AutoLocator()))
            axis.set_major_formatter(lambda value, _: number(value))


def number(value: float) -> str:
    """0.02, 300, and 2·10⁵ where that would be long."""
    return f"{value:g}" if 1e-3 <= value < 1e5 else power(value)


def thin_numbers(ax: plt.Axes) -> None:
    """Where numbers of the horizontal axis meet, show every other one; slanted words meet by their boxes alone."""
    shown = [label for label in ax.get_xticklabels() if label.get_text() and label.get_visible()]
    numbers = [label for label in shown if not label.get_rotation()]
    boxes = [label.get_window_extent().padded(GAP * ax.figure.dpi / 72) for label in numbers]
    if any(one.overlaps(other) for one, other in zip(boxes, boxes[1:])):
        limits = ax.get_xlim()  # which ticks beyond them would widen
        ax.set_xticks(ax.get_xticks()[::2], [label.get_text() for label in ax.get_xticklabels()][::2])
        ax.set_xlim(limits)


def uncut_marks(fig: plt.Figure) -> None:
    """Draw marks on the frame whole, unless their line goes on outside it."""
    for ax in fig.axes:
        ax.get_xlim(), ax.get_ylim()  # sets limits that are still open
        for line in ax.lines:
            if line.get_marker() in ("None", None, "", " ") or line.get_transform() != ax.transData:
                continue
            xy = np.asarray(line.get_xydata(), dtype=float)
            at = (ax.transData - ax.transAxes).transform(xy[np.isfinite(xy).all(axis=1)])
            if len(at) and (at >= -1e-6).all() and (at <= 1 + 1e-6).all():
                line.set_clip_on(False)


def _count(axis: Axis, locator: Locator) -> int:
    """How many ticks there are within the axis."""
    low, high = sorted(axis.get_view_interval())
    places = np.asarray(locator.tick_values(low, high))
    return int(((places >= low) & (places <= high)).sum())
