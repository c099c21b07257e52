"""One look for every figure: style, the colour of each arm, bands, and drawing from recorded results.

A figure is a function of results, `draw(results) -> Figure`: the cell of a chapter calls it, and the build of the site
again, for a page and for a phone. What a module's `FIGURES` names is drawn by it where the cell has its own way.
"""

from __future__ import annotations

import importlib
import io
import os
import re
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.mathtext import MathTextParser

from bnbook.book import BOOK
from bnbook.errors import BnbookError
from bnbook.plots import COLORS, LABELS  # noqa: F401 (chapters take them from here)
from bnbook.plots.axes import band, log_band, name_few_decades, thin_numbers, uncut_marks  # noqa: F401
from bnbook.plots.layout import fit, legible, on_a_phone, refit
from bnbook.plots.names import clear_legends, name_lines
from bnbook.results import current, record_table
from bookpress import atomic, parameters
from bookpress.intervals import mean_and_interval  # noqa: F401
from bookpress.results import Results

CURVE_DIGITS = 4  # of a figure's points: more than the eye can tell apart

#: All that Matplotlib knows by itself, then ours: nothing that a user's own style says.
STYLE = {
    "figure.figsize": (6.8, 3.6),
    "figure.constrained_layout.use": True,
    "figure.facecolor": "white",
    "font.size": 11,
    "axes.titlesize": 11.5,
    "axes.labelsize": 11,
    "axes.titley": 1.0,  # looking for numbers above a panel, where none stand, takes a tenth of all time
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
}


def use_style() -> None:
    """Set the book's Matplotlib style: SVG with text as outlines (the same on every machine), light grid, no
    box; as a chapter begins with it, its parameters are checked here, wherever they come from."""
    names = sys._getframe(1).f_globals
    parameters.check(names)
    said = {name: names[name] for name in names.get("__annotations__", {}) if name in names}
    current().header["parameters"] = said  # for what is drawn before the run is done
    if os.environ.get("BNBOOK_FIGURES"):
        matplotlib.use("agg")
    # Said where a legend's place took a second, which only tells that the machine was busy; and of trainings that
    # diverge, which their numbers say.
    warnings.filterwarnings("ignore", message='Creating legend with loc="best"|overflow encountered')
    plt.style.use(["default", STYLE])


def figure(
    name: str, draw: Callable[[Results], plt.Figure], *, points: Mapping[str, Any] | None = None
) -> None:
    """Save what `draw` makes of the results recorded so far as NAME.svg; it takes no other numbers, so that a
    published figure can be drawn again from its results file.

    points: the drawn points that no result holds yet, seeds first, recorded as curve.NAME.KEY (with _ for -);
    `draw` reads them by `points_of`.
    """
    _record_points(name, points or {})
    _save(draw(current()), name)


def save_figure(fig: plt.Figure, name: str, curves: Mapping[str, Any] | None = None) -> None:
    """Save as NAME.svg beside the run's notebook; outside `bnbook run` show it below the cell instead.

    A page shows the figure of that name with the `figure` directive, which carries its alternative text and its
    caption. curves: the drawn points, as `figure` has them.
    """
    _record_points(name, curves or {})
    _save(fig, name)


def _record_points(name: str, points: Mapping[str, Any]) -> None:
    if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name):
        raise BnbookError(f"figure name {name!r} is malformed; expected lower-case words joined by hyphens")
    found = {f"{_points(name)}{key}": values for key, values in points.items()}
    record_table(found, note=f"drawn in the figure {name}", digits=CURVE_DIGITS)


def _save(fig: plt.Figure, name: str) -> None:
    finish(fig)
    if folder := os.environ.get("BNBOOK_FIGURES"):
        atomic.write_bytes(Path(folder) / f"{name}.svg", _saved(fig))
    else:
        from IPython.display import display

        display(fig)
    plt.close(fig)


def drawn(
    draw: Callable[[Results], plt.Figure], results: Results, narrow: bool, formats: Sequence[str] = ("svg",)
) -> list[bytes]:
    """What `draw` makes of a run's results, for a page or (narrow) for a phone, in each of the formats; of none nothing,
    but the results were read."""
    warnings.filterwarnings("ignore", message='Creating legend with loc="best"')
    MathTextParser.parse = _read_once
    with plt.style.context(["default", STYLE]), on_a_phone(narrow):
        fig = draw(results)
        try:
            if formats:
                finish(fig, narrow)
            return [_saved(fig, kind) for kind in formats]
        finally:
            plt.close(fig)


def finish(fig: plt.Figure, narrow: bool = False) -> None:
    """What is the same for all drawings: letters that can be read, numbers on short axes, whole marks, names beside
    lines, legends on nothing that is drawn."""
    legible(fig)
    name_few_decades(fig)
    uncut_marks(fig)
    if narrow:
        fit(fig)
    name_lines(fig)
    if narrow:
        refit(fig)
    clear_legends(fig)
    for ax in fig.axes:
        thin_numbers(ax)


def _saved(fig: plt.Figure, kind: str = "svg") -> bytes:
    buffer, dpi = io.BytesIO(), fig.dpi
    if kind == "svg":  # `savefig` draws everything once more, to lay it out before
        FigureCanvasSVG(fig).print_svg(buffer, metadata={"Date": None})
        fig.dpi = dpi
    else:
        FigureCanvasAgg(fig).print_figure(buffer, format=kind)
    return buffer.getvalue()


_read, _formulas = MathTextParser.parse, dict[tuple[Any, ...], Any]()


def _read_once(parser: MathTextParser, words: str, dpi: float = 72, prop: Any = None, **more: Any) -> Any:
    """What a formula looks like. Matplotlib remembers 50 for one drawing, and reads them again for the next: a sixth of
    all that the drawings of a book take."""
    key = (parser._output_type, words, dpi, prop and prop.copy(), *more.items())
    if key not in _formulas:
        _formulas[key] = _read(parser, words, dpi, prop, **more)
    return _formulas[key]


# ---- What the press asks for, and what a drawing reads of a run ------------------------------------------------------


def drawings(chapter: str) -> Mapping[str, Callable[[Results], plt.Figure]]:
    """What the `FIGURES` of a chapter's module name: figure -> draw(results)."""
    return {
        k: v
        for name in BOOK.modules(chapter)
        for k, v in getattr(importlib.import_module(name), "FIGURES", {}).items()
    }


def points_of(results: Mapping[str, np.ndarray], name: str) -> dict[str, np.ndarray]:
    """The points that were recorded with the figure NAME, by their key."""
    start = _points(name)
    return {key.removeprefix(start): results[key] for key in results if key.startswith(start)}


def parameters_of(results: Results) -> SimpleNamespace:
    """The parameters of the run, by name."""
    return SimpleNamespace(**results.header["parameters"])


def _points(name: str) -> str:
    return f"curve.{name.replace('-', '_')}."
