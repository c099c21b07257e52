"""The book's band and the reader's run in one figure, for `run --compare --figure`."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from bookpress import atomic
from bookpress.pipeline import compare
from bookpress.pipeline.chapter_runs import Evidence
from bookpress.pipeline.compare import Row
from bookpress.pipeline.inks import PALETTE

#: How far a row reaches, in half widths of its band; what lies further stands at the edge as an arrow.
REACH = 2.0
BOOK, MINE, WRONG = PALETTE["printed"][0], PALETTE["text"][0], PALETTE["wrong"][0]


def write(run: Evidence) -> Path | None:
    """Draw what `compare` has to say into NAME.compare.svg beside the run; None where no result has a band.

    At another profile than the book's, too: there the figure says that its bands are not for this run.
    """
    book = compare.counterpart(run)
    if not (rows := list(compare.rows(run, book))):
        return None
    title = f"{run.chapter.name}: this {run.profile} run in the bands of the book's {book.profile} run"
    if run.profile != book.profile:
        title += "\nnot comparable: the bands are those of another profile"
    buffer = io.BytesIO()
    draw(title, rows).savefig(buffer, format="svg", metadata={"Date": None})
    atomic.write_bytes(run.comparison_path, buffer.getvalue())
    return run.comparison_path


def places(row: Row, values: np.ndarray) -> np.ndarray:
    """Where values stand in the band of a row: −1 and 1 at its ends, on the scale on which it was made."""
    values = np.asarray(values, float)
    scale = np.log if row.log else np.asarray
    with np.errstate(divide="ignore", invalid="ignore"):
        low, high, at = (scale(each) for each in (row.low, row.high, values))
        found = 2 * (at - low) / (high - low) - 1
    return np.where(values == row.book, 0.0, found) if not high > low else found


def draw(title: str, rows: Sequence[Row]) -> Figure:
    """A line for each result: the band with the book's seeds, this run's seeds (small) and mean (large)."""
    height = 1.3 + 0.32 * len(rows)
    figure = Figure(figsize=(12.0, height))
    axes = figure.add_axes((0.22, 0.75 / height, 0.38, 0.32 * len(rows) / height))
    for level, row in enumerate(reversed(rows)):
        telling = not row.outcome.startswith("cannot tell")
        style = {"color": BOOK, "alpha": 0.35} if telling else {"fill": False, "hatch": "////", "ec": BOOK}
        axes.barh(level, 2, left=-1, height=0.62, linewidth=0, **style)
        ink = WRONG if row.outcome == "DIFFERS" else MINE
        for values, mark, color, size in (
            (row.book_seeds, "|", BOOK, 9),
            (row.mine_seeds, ".", ink, 5),
            (np.array([row.mine]), "D", ink, 7),
        ):
            _marks(axes, level, places(row, values), mark, color, size)
        outcome = row.outcome.partition(" (")[0]
        words = f"{row.mine:.4g}   book {row.book:.4g} ({row.low:.4g} to {row.high:.4g})   {outcome}"
        axes.text(REACH + 0.2, level, words, va="center", fontsize=9, color=ink)
    axes.axvline(0, color=BOOK, linewidth=0.6, zorder=0)
    axes.set(xlim=(-REACH - 0.1, REACH + 0.1), ylim=(-0.6, len(rows) - 0.4), yticks=range(len(rows)))
    axes.set_yticklabels([row.name for row in reversed(rows)], fontsize=9)
    axes.set_xticks([-1, 0, 1], ["band", "book", "band"])
    axes.set_xlabel("grey: the book's band and its seeds; ◆ this run, · its seeds; hatched: too wide to tell")
    axes.set_title(title, fontsize=11, loc="left")
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(left=False)
    return figure


def _marks(axes, level: int, at: np.ndarray, mark: str, color: str, size: int) -> None:
    for inside, shape in ((np.abs(at) <= REACH, mark), (at > REACH, ">"), (at < -REACH, "<")):
        shown = np.clip(at[inside], -REACH, REACH)
        axes.plot(
            shown,
            np.full(len(shown), level),
            shape,
            color=color,
            markersize=size,
            linestyle="",
            clip_on=False,
        )
