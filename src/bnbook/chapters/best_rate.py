"""At each network's own best rate: what is drawn of it."""

from __future__ import annotations

from collections.abc import Mapping

import matplotlib.pyplot as plt
import numpy as np

from bnbook.figures import COLORS, parameters_of, points_of
from bnbook.plots.panels import Panel, compare
from bookpress.results import Results

#: Of each arm the words of the figures.
WORDS = {
    "none": "nothing, the book's start",
    "he": "nothing, He's start and warm-up",
    "clip": "nothing, He's start, clipped",
    "batch": "batch norm",
    "put_back": "batch norm, lengths put back",
    "layer": "layer norm",
    "group": "group norm",
    "rms": "RMS norm",
    "standardized": "standardized weights",
    "standardized_centred": "the same, and centred",
    "he_momentum": "momentum: nothing",
    "batch_momentum": "momentum: batch norm",
    "he_adamw": "AdamW: nothing",
    "batch_adamw": "AdamW: batch norm",
    "he_cropped": "crop and flip: nothing",
    "batch_cropped": "crop and flip: batch norm",
}
#: Those whose tried rates are drawn, and their dashes.
TRIED = {"none": "-", "he": "--", "batch": "-", "put_back": "--", "clip": ":"}


def ink(name: str) -> str:
    """Batch norm's and the plain network's own colours; what is neither has the ink of text."""
    first = name.split("_")[0]
    own = {"he": "none", "clip": "none", "plain": "none", "put": "batch"}.get(first, first)
    return COLORS[own if own in ("none", "layer", "batch") else "theory"]


def dots(
    results: Results, rows: Mapping[str, str], height: float, filled: str, open_: str = "", also: str = ""
) -> plt.Figure:
    """Test accuracy in per cent with 95 % intervals, a row each: filled.ROW, and a little lower open_.ROW; also: what
    else the axis says."""
    pale = dict(markerfacecolor="white", alpha=0.75)
    arms = {
        f"{kind}.{name}": dict(
            x=[place + lower], y=results[f"{kind}.{name}"][:, None], color=ink(name), **look
        )
        for place, name in enumerate(rows)
        for kind, lower, look in ((open_, 0.22, pale), (filled, 0.0, {}))
        if f"{kind}.{name}" in results
    }
    panel = Panel(rows=[*rows.values()], xlabel=f"test accuracy, %{also}")
    words = dict(by="across", look="o", times=100, legend="none")
    return compare(results, [panel], arms, figsize=(7.4 if open_ else 7.2, height), **words)


def accuracy(results: Results) -> plt.Figure:
    """An arm a row: filled at its own best rate, open at the common one."""
    rows = {name: words for name, words in WORDS.items() if f"test_accuracy.{name}" in results}
    common = f" (open: at the rate {parameters_of(results).common:g})"
    return dots(results, rows, 1.2 + 0.36 * len(rows), "test_accuracy", "common_accuracy", common)


def rates(results: Results) -> plt.Figure:
    """Mean late training loss of the selection's seeds against the rate, a line for each arm of plain SGD."""
    guess, arms, ticks = np.log(10), {}, set()
    for name, dash in ((name, dash) for name, dash in TRIED.items() if f"tried.{name}" in results):
        x, late = results[f"rates.{name}"][0], results[f"tried.{name}"].mean(0)
        y = np.minimum(np.nan_to_num(late, nan=guess, posinf=guess), guess)
        arms[name] = dict(x=x, y=y, color=ink(name), look=f"o{dash}", label=WORDS[name])
        best = slice(late.argmin(), late.argmin() + 1)
        arms[f"best {name}"] = dict(
            x=x[best], y=y[best], color=ink(name), look="o", markersize=9, fillstyle="none"
        )
        ticks |= {float(rate) for rate in x}
    words = dict(log="x", ticks=sorted(ticks), xlabel="learning rate", ylabel="training loss at the end")
    panel = Panel(title="Which rate is each network's best?", marks_y={"": guess}, **words)
    return compare(results, [panel], arms, figsize=(7.0, 3.9))


def curves(results: Results) -> plt.Figure:
    """Test accuracy in per cent on the way, each network at its own best rate, means with bands."""
    own, points = parameters_of(results), points_of(results, "curves")
    looks = {name: "-" if name in ("batch", "none") else "--" for name in points}
    arms = {name: dict(color=ink(name), look=look, label=WORDS[name]) for name, look in looks.items()}
    steps = sorted({*range(0, own.steps, own.evaluate_every), own.steps})
    panel = Panel(curve="{}", x=steps, title="Who is ahead when each has its own rate?", ylim=(0, None))
    return compare(
        points, [panel], arms, figsize=(6.8, 3.4), xlabel="training step", ylabel="test accuracy (%)"
    )
