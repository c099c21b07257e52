"""At each network's own best rate: what is trained, and what is drawn of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import matplotlib.pyplot as plt
import numpy as np

from bnbook.chapters.training import HE
from bnbook.figures import COLORS, mean_and_interval, parameters_of, points_of
from bnbook.plots.layout import subplots
from bnbook.plots.panels import Panel, compare
from bnbook.training.tuned import TunedArm
from bookpress.results import Results

#: What is trained together and published together, the most asked for first; "long" is beside them.
GROUPS = {
    "start": ("none", "he", "batch"),
    "mending": ("put_back", "clip"),
    "norms": ("layer", "group", "rms", "standardized", "standardized_centred"),
    "optimizers": ("he_momentum", "batch_momentum", "he_adamw", "batch_adamw"),
    "cropped": ("he_cropped", "batch_cropped"),
}
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
MOMENTUM, DECAY = 0.9, 0.01  # of momentum; of AdamW, torch's own


def arms(settings: Mapping[str, Any]) -> dict[str, TunedArm]:
    """Every arm of `GROUPS`; settings: the chapter's parameters of these names."""
    names = ("data", "width", "batch_size", "steps", "evaluate_every", "train_examples", "test_examples")
    common = {name: settings[name] for name in names}
    plain = dict(options=HE, warm_up=settings["warm_up"])
    momentum, adamw = dict(momentum=MOMENTUM), dict(optimizer="adamw", weight_decay=DECAY)
    own: dict[str, dict[str, Any]] = {
        "none": {},
        "he": plain,
        "clip": dict(options=HE, clip=settings["clip"]),
        "batch": dict(norm="batch"),
        "put_back": dict(norm="batch", lengths_kept=True),
        "layer": dict(norm="layer"),
        "group": dict(norm="group", options=(("groups", 4),)),  # the first layer has eight channels
        "rms": dict(norm="rms"),
        "standardized": dict(norm="standardized"),
        "standardized_centred": dict(norm="standardized_centred"),
        "he_momentum": plain | momentum,
        "batch_momentum": dict(norm="batch") | momentum,
        "he_adamw": plain | adamw,
        "batch_adamw": dict(norm="batch") | adamw,
        "he_cropped": plain | dict(augment=True),
        "batch_cropped": dict(norm="batch", augment=True),
    }
    return {name: TunedArm(**common, **changes) for name, changes in own.items()}


def is_plain_sgd(arm: TunedArm) -> bool:
    """Whether a rate means to it what it means on the other pages."""
    return arm.optimizer == "sgd" and not arm.momentum and not arm.augment


def grid(arm: TunedArm, settings: Mapping[str, Any]) -> list[float]:
    """The rates that are tried first: of SGD, a tenth of them with momentum 0.9, whose steps add up to ten; AdamW's."""
    if arm.optimizer == "adamw":
        return list(settings["adamw_rates"])
    return [rate / 10 if arm.momentum else rate for rate in settings["rates"]]


# ---- Figures, of the results of a run ---------------------------------------------------------------------


def ink(name: str) -> str:
    """Batch norm's and the plain network's own colours; what is neither has the ink of text."""
    first = name.split("_")[0]
    if name in ("none", "he", "clip") or first == "he":
        return COLORS["none"]
    return (
        COLORS["layer"]
        if name == "layer"
        else COLORS["batch"]
        if first in ("batch", "put")
        else COLORS["theory"]
    )


def _reached(results: Results) -> list[str]:
    return [name for name in WORDS if f"test_accuracy.{name}" in results]


def accuracy(results: Results) -> plt.Figure:
    """Test accuracy in per cent with intervals, an arm a row: filled at its own best rate, open at the common one."""
    names = _reached(results)
    fig, ax = subplots(figsize=(7.4, 1.2 + 0.36 * len(names)))
    for place, name in enumerate(names):
        for kind, filled in (("common_accuracy", False), ("test_accuracy", True)):
            if f"{kind}.{name}" not in results:
                continue
            mean, half = mean_and_interval(100 * results[f"{kind}.{name}"][:, None])
            style = dict(fmt="o", color=ink(name), capsize=3, markersize=6, zorder=3 if filled else 2)
            fill = {} if filled else dict(markerfacecolor="white", alpha=0.75)
            ax.errorbar(mean, [place + (0 if filled else 0.22)], xerr=half, **style, **fill)
    ax.set_yticks(range(len(names)), [WORDS[name] for name in names], fontsize=10)
    common = parameters_of(results).common
    ax.set(xlabel=f"test accuracy, % (open: at the rate {common:g})", ylim=(len(names) - 0.4, -0.6))
    ax.grid(visible=False, axis="y")
    return fig


def rates(results: Results) -> plt.Figure:
    """Mean late training loss of the selection's seeds against the rate, a line for each arm of plain SGD."""
    drawn = [name for group in ("start", "mending") for name in GROUPS[group] if f"tried.{name}" in results]
    guess, arms, ticks = np.log(10), {}, set()
    for name, dash in zip(drawn, ("-", "--", "-", "--", ":")):
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
