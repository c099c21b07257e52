"""One look for every figure: style, the colour of each arm, bands, and saving."""

from __future__ import annotations

import io
import os
import re
import sys
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import matplotlib
import matplotlib.pyplot as plt
import numpy as np

from bnbook.errors import BnbookError
from bnbook.plots.legends import clear_legends
from bnbook.plots.line_names import name_lines
from bnbook.plots.narrow import narrowed
from bnbook.plots.ticks import name_few_decades, thin_numbers, uncut_marks
from bnbook.results import current, record_table
from bookpress import atomic, parameters
from bookpress.intervals import mean_and_interval
from bookpress.pipeline.inks import palette
from bookpress.pipeline.pictures import PHONE

CURVE_DIGITS = 4  # of a figure's points: more than the eye can tell apart

#: The arm's colour everywhere in the book, as the site's palette has it on white.
INKS = palette()
COLORS = {name: light for name, (light, _) in INKS.items()} | {"theory": INKS["text"][0]}
LABELS = {
    "none": "without batch norm",
    "batch": "with batch norm",
    "noisy": "noisy batch norm",
    "noise": "noise alone",
    "l1": "ℓ1 norm",
    "l2": "ℓ2 norm",
    "linf": "ℓ∞ norm",
    "layer": "layer norm",
}


def use_style() -> None:
    """Set the book's Matplotlib style: SVG with text as outlines (the same on every machine), light grid, no
    box; as a chapter begins with it, its parameters are checked here, wherever they come from."""
    parameters.check(sys._getframe(1).f_globals)
    if os.environ.get("BNBOOK_FIGURES"):
        matplotlib.use("agg")
    # Said where a legend's place took a second, which only tells that the machine was busy.
    warnings.filterwarnings("ignore", message='Creating legend with loc="best"')
    plt.rcParams.update(
        {
            "figure.figsize": (6.8, 3.6),
            "figure.constrained_layout.use": True,
            "figure.facecolor": "white",
            "font.size": 11,
            "axes.titlesize": 11.5,
            "axes.labelsize": 11,
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.grid": True,
            "axes.axisbelow": True,  # no grid across bars and theory's lines
            "grid.color": "#e3e3e3",
            "grid.linewidth": 0.7,
            "lines.linewidth": 1.7,
            "legend.frameon": False,
            "legend.fontsize": 10,
            "svg.hashsalt": "bnbook",
            "text.usetex": False,  # whatever the user's own style says
        }
    )


def save_figure(fig: plt.Figure, name: str, curves: Mapping[str, Any] | None = None) -> None:
    """Save as NAME.svg beside the run's notebook, and one of a single panel for phones too; outside
    `bnbook run` show it below the cell instead.

    A page shows the saved file with the `figure` directive, which carries its alternative text and its
    caption. curves: the drawn points that no result holds yet, seeds first, recorded as curve.NAME.KEY (with
    _ for -), so that the figure can be drawn again from the results file.
    """
    if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name):
        raise BnbookError(f"figure name {name!r} is malformed; expected lower-case words joined by hyphens")
    points = {f"curve.{name.replace('-', '_')}.{key}": values for key, values in (curves or {}).items()}
    record_table(points, note=f"drawn in the figure {name}", digits=CURVE_DIGITS)
    folder = os.environ.get("BNBOOK_FIGURES")
    name_few_decades(fig)
    uncut_marks(fig)
    phone = narrowed(fig) if folder else None
    name_lines(fig)
    clear_legends(fig)
    for ax in fig.axes:
        thin_numbers(ax)
    if folder:
        _write(fig, Path(folder) / f"{name}.svg")
        if phone is not None:
            _write(phone, Path(folder) / f"{name}{PHONE}")
    else:
        from IPython.display import display

        display(fig)
    plt.close(fig)


def figure(name: str, draw: Callable[[Mapping[str, np.ndarray]], plt.Figure]) -> None:
    """Save what `draw` makes of the results recorded so far as NAME.svg; it takes no other numbers, so that a
    published figure can be drawn again from its results file."""
    save_figure(draw(current()), name)


def _write(fig: plt.Figure, path: Path) -> None:
    buffer = io.BytesIO()
    fig.savefig(buffer, format="svg", metadata={"Date": None})
    atomic.write_bytes(path, buffer.getvalue())


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
