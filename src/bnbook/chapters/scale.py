"""What turns in larger and longer trainings? An effect against the width, and each size in a panel of its own."""

from __future__ import annotations

import re
import textwrap
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.ticker import LogLocator

from bnbook.chapters.landscape import DISTANCE, PAIR, SLOPE
from bnbook.chapters.vgg import MOMENTS, RUNGS
from bnbook.figures import COLORS, mean_and_interval, parameters_of
from bnbook.plots.layout import cells, last_of_columns
from bnbook.plots.names import mark_curve
from bnbook.plots.panels import Panel, compare
from bnbook.probes.summaries import PAPER_REACH
from bookpress.results import Results

Recorded = Mapping[str, np.ndarray]
WIDTHS = {1 / 16: "1/16", 1 / 8: "1/8", 1 / 4: "1/4", 1 / 2: "1/2", 1.0: "1"}
GREY = "#777777"
MARKERS = "os^v"  # of the effects of one panel, whose inks may be alike in grey
#: Where the rungs of 15,000 steps stand, right of the widths.
LONG = {"long": 2.6, "long_w1_8": 5.2, "long_w1_16": 10.4, "full": 20.8}
TITLE = 32  # letters in a line of a panel's title, so that it stays above its own panel
#: Rungs that differ in width and length alone, and titles in a figure that has a panel for each.
TITLES = {
    "w1_16": "1/16 of the width, 2,000 steps",
    "w1_8": "1/8, 2,000 steps",
    "w1_4": "1/4, 2,000 steps",
    "w1_2": "1/2, 2,000 steps",
    "w1": "the whole width, 2,000 steps",
    "long": "1/4, 15,000 steps",
    "full": "the whole width, 15,000 steps",
    "long_w1_8": "1/8, 15,000 steps, fresh",
    "long_w1_16": "1/16, 15,000 steps, fresh",
}
PLAIN = tuple(TITLES)


class Effect(NamedTuple):
    """What is compared at each rung, NAME.RUNG.ARM of the arms of `way`: "none/batch" a ratio, "batch-none" a difference,
    "none" one alone, and "" e to what a pair recorded, NAME.RUNG. Ratios stand on logarithmic axes.

    zero: where a claim turns; scale: of a difference and of one alone (100: points, per cent).
    """

    name: str
    way: str
    zero: float
    scale: float = 1.0

    @property
    def log(self) -> bool:
        return "/" in self.way or not self.way

    def values(self, results: Recorded, rung: str) -> np.ndarray | None:
        """One number per seed, (S,), a logarithm where the axis is one; None for a rung not reached."""
        name = self.name if "{" in self.name else f"{self.name}.{{rung}}{'.{arm}' if self.way else ''}"
        names = [name.format(rung=rung, arm=arm) for arm in re.split("[/-]", self.way)]
        if not set(names) <= set(results):
            return None
        one, *other = (np.asarray(results[each], dtype=float) for each in names)
        if self.log and other:
            with np.errstate(divide="ignore", invalid="ignore"):
                return np.log(one / other[0])
        return self.scale * (one - other[0] if other else one)


def against_width(results: Recorded, panels: Mapping[str, Mapping[str, Effect]]) -> plt.Figure:
    """One panel a title, two in a row; in it one curve an effect (its label's colour if it names an arm). What
    stands behind | is the name of its axis.

    Lines join the rungs of 2,000 steps; open diamonds are rungs of 15,000 steps, at places of their own. Bars:
    95 % intervals over the seeds. Dashed: where the claim turns. Nothing is drawn where nothing was trained.
    """
    columns = min(2, len(panels))
    rows = -(-len(panels) // columns)
    size = (3.6 * columns + 0.4, 2.7 * rows)
    fig, axes = cells(len(panels), columns, size, sharex=True)
    for ax, (title, effects) in zip(axes, panels.items()):
        for place, (label, effect) in enumerate(effects.items()):
            color = COLORS.get(label, plt.cm.cividis(0.15 + 0.6 * place / max(1, len(effects) - 1)))
            style = dict(color=color, marker=MARKERS[place % len(MARKERS)])
            _curve(ax, results, effect, label if len(effects) > 1 else None, style, 1.06 ** (place - 0.5))
        if next(iter(effects.values())).log:
            ax.set_yscale("log")
            low, high = ax.get_ylim()
            ax.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if high < 100 * low else (1,)))
            ax.yaxis.set_major_formatter("{x:g}")
        for zero in {effect.zero for effect in effects.values()}:
            ax.axhline(zero, color=GREY, linewidth=0.9, linestyle=(0, (4, 3)), zorder=0.9)
        ax.axvline(1.0, color=GREY, linewidth=0.9, linestyle=":", zorder=0.9)
        named, _, axis = title.partition("|")
        ax.set(xscale="log", title=textwrap.fill(named, TITLE), ylabel=axis, xlim=(0.05, 1.3))
        places = WIDTHS | {
            LONG[name]: f"{WIDTHS[RUNGS[name].width]},\nlong"
            for name in LONG
            if any(f".{name}." in f"{each}." for each in results)
        }
        ax.set_xlim(right=1.3 * max(places))
        ax.set_xticks(list(places), list(places.values()), fontsize=9)  # all find room beside one another
        ax.minorticks_off()
    several = {ax: tuple(effects) for ax, effects in zip(axes, panels.values()) if len(effects) > 1}
    names, often = Counter(several.values()).most_common(1)[0] if several else ((), 0)
    alike = [ax for ax, labels in several.items() if labels == names and often > 1]
    if alike:  # one legend for the names that most panels share
        keys = alike[0].get_legend_handles_labels()
        fig.legend(*keys, fontsize=9, ncols=len(names), loc="outside lower center")
    for ax in (ax for ax in several if ax not in alike):
        ax.legend(fontsize=8)
    for ax in last_of_columns(axes):
        ax.set_xlabel("width (dotted: the paper's)")
    return fig


def _curve(
    ax: plt.Axes, results: Recorded, effect: Effect, label: str | None, style: dict[str, Any], shift: float
) -> None:
    for long in (False, True):
        found = {name: effect.values(results, name) for name in PLAIN if RUNGS[name].long == long}
        shown = {name: values for name, values in found.items() if values is not None}
        if not shown:
            continue
        x = np.array([LONG.get(name, RUNGS[name].width) * shift for name in shown])
        middle, half = np.array([_middle(values) for values in shown.values()]).T
        low, high = middle - half, middle + half
        if effect.log:
            middle, low, high = np.exp(middle), np.exp(low), np.exp(np.minimum(high, 690.0))
        look = dict(markersize=6, marker="D", markerfacecolor="white") if long else dict(markersize=5)
        bars = [np.nan_to_num(middle - low), np.nan_to_num(high - middle)]
        line = "none" if long else "-"
        ax.errorbar(x, middle, bars, linestyle=line, capsize=3, label=label, **style | look)
        label = None  # one entry of the legend, also where only long rungs were trained


def _middle(values: np.ndarray) -> tuple[float, float]:
    if not np.isfinite(values).all():  # a factor of 0 or ∞ has no place on the axis
        return np.nan, np.nan
    return tuple(float(each[0]) for each in mean_and_interval(values[:, None]))


def _rungs(points, rungs: Sequence[str], curve: str, arms: Sequence[str], own_x=None, **words) -> plt.Figure:
    """A panel for each rung, three in a row."""
    panels = [
        Panel(curve=curve.format(name), title=textwrap.fill(TITLES[name], TITLE), x=(own_x or {}).get(name))
        for name in rungs
    ]
    columns = min(3, len(rungs))
    size = (2.75 * columns + 0.4, 2.6 * -(-len(rungs) // columns) + 0.6)
    return compare(points, panels, arms, figsize=size, columns=columns, sharey=True, **words)


def slopes(results: Results) -> plt.Figure:
    """‖∇L(θ) - ∇L(θ_a)‖ / (a ‖∇L(θ)‖) at each distance a, slopes.RUNG.ARM (S, A), a panel for each rung of `PLAIN`
    that was reached. Dashed: 1/a, what a spent gradient gives whatever the network; shaded: the paper's reach."""
    lengths = np.array(parameters_of(results).lengths)
    rungs = [name for name in PLAIN if f"slopes.{name}.batch" in results]

    def reach(ax: plt.Axes) -> None:
        ax.axvspan(*PAPER_REACH, color="#777777", alpha=0.13, linewidth=0)
        mark_curve(ax, lengths, 1 / (lengths * 0.1), "1/a: the gradient is spent")

    words = dict(
        x=lengths, by="geometric", log="xy", ticks={0.05: "1/20", 0.5: "1/2", 4: "4", 16: "16"}, also=reach
    )
    return _rungs(results, rungs, "slopes.{}.{{}}", PAIR, xlabel=DISTANCE, ylabel=SLOPE, sharex=True, **words)


def overtaking(results: Results) -> plt.Figure:
    """How many points of batch accuracy batch norm, steady and noisy, is ahead of the plain network along the
    training, a panel for each rung of `PLAIN` that was reached: accuracy_path.RUNG.ARM (S, parts)."""
    own = parameters_of(results)
    rungs = [name for name in PLAIN if f"accuracy_path.{name}.noisy" in results]
    points, x = {}, {}
    for name in rungs:
        paths = {arm: results[f"accuracy_path.{name}.{arm}"] for arm in ("none", "batch", "noisy")}
        points |= {f"{name}.{arm}": paths[arm] - paths["none"] for arm in ("batch", "noisy")}
        parts, total = paths["none"].shape[1], own.long_steps if RUNGS[name].long else own.steps
        x[name] = (np.arange(parts) + 0.5) * total / parts
    words = dict(xlabel="training step", ylabel="points ahead of the plain network", times=100)
    return _rungs(
        points, rungs, "{}.{{}}", ("batch", "noisy"), x, marks_y={"the plain network": 0.0}, **words
    )


# ---- Each figure of the page ------------------------------------------------------------------------------

RATIO, LEAD = "none/batch", "batch-none"
SPEED = {
    "batch accuracy|points": {"ahead": Effect("training_speed", LEAD, 0, 100)},
    "steps to the same accuracy": {"ratio": Effect("steps_to_match_{arm}.{rung}", RATIO, 2)},
    "steps until it starts|without / with": {"ratio": Effect("start_step", RATIO, 1)},
}
ACCURACY = {
    "test accuracy|points": {"ahead": Effect("test_accuracy", LEAD, 3, 100)},
    "training images|points": {"ahead": Effect("train_accuracy", LEAD, 0, 100)},
}
NOISY = {
    "noisy − batch norm, whole training": {"ahead": Effect("training_speed", "noisy-batch", -3, 100)},
    "the same, last tenth": {"ahead": Effect("end_accuracy", "noisy-batch", -3, 100)},
    "noisy − without, whole training": {"ahead": Effect("training_speed", "noisy-none", 3, 100)},
}
EARLY = {"all": "", "early": "_early"}
LANDSCAPE = {
    f"{words}|without / with": {label: Effect(f"{name}{part}", RATIO, zero) for label, part in parts.items()}
    for words, name, zero, parts in (
        ("range of the loss", "loss_range", 1, EARLY),
        ("change of the gradient", "gradient_change", 30, EARLY),
        ("effective β", "smoothness", 1, EARLY),
        ("range of the loss, from the start", "loss_range", 1, {"started": "_started"}),
    )
} | {
    "at equal loss": {
        "range": Effect("equal_loss_loss_range", "", 1),
        "β": Effect("equal_loss_smoothness", "", 1),
    },
    "gradient norm|without / with": {"all": Effect("gradient_norm", RATIO, 1)},
}
AHEAD = (1, 2, 4, 8)  # learning rates along the gradient
PREDICTIVE = {
    "error|without / with": {f"× {k}": Effect(f"error_x{k}", RATIO, 2) for k in AHEAD},
    "cosine|with − without": {f"× {k}": Effect(f"cosine_x{k}", LEAD, 0) for k in AHEAD},
    "steps that descend|points": {f"× {k}": Effect(f"descends_x{k}", LEAD, 0, 100) for k in AHEAD},
}
SHIFT = {
    "cosine|with − without": {"all": Effect("cosine", LEAD, 0.05)},
    "‖G − G′‖|with / without": {"all": Effect("shift", "batch/none", 0.8)},
    "at equal loss|without / with": {"all": Effect("equal_loss_shift", "", 1.25)},
}
WAYS = {"batch": "successive batches", "update": "same images", "checkpoint": "checkpoints"}
PLACES = {
    "before norm": "before_normalization",
    "before ReLU": "before_nonlinearity",
    "next input": "next_input",
}
MOVED = {
    f"{moment}, {words}|with / without": {
        label: Effect(f"{way}_{moment}_{place}", "batch/none", 1) for label, place in PLACES.items()
    }
    for way, words in WAYS.items()
    for moment in MOMENTS
}
#: Norm -> the shares along 1 and along the values, and the exponent: of fully connected layers without batch norm.
WHERE = {
    "none": ("removed_fc_one", "removed_fc_values", "removed_fc_growth"),
    "batch": ("removed_along_one", "removed_along_values", "removed_growth"),
}
REMOVED = {
    title: {norm: Effect(names[k], norm, zero, scale) for norm, names in WHERE.items()}
    for k, (title, zero, scale) in enumerate(
        (("along 1", 10, 100), ("along the values", 1, 100), ("exponent of growth", 2, 1))
    )
}


FIGURES = {
    "speed": partial(against_width, panels=SPEED),
    "accuracy": partial(against_width, panels=ACCURACY),
    "noisy": partial(against_width, panels=NOISY),
    "overtaking": overtaking,
    "landscape": partial(against_width, panels=LANDSCAPE),
    "slopes": slopes,
    "predictiveness": partial(against_width, panels=PREDICTIVE),
    "shift": partial(against_width, panels=SHIFT),
    "moments": partial(against_width, panels=MOVED),
    "removed": partial(against_width, panels=REMOVED),
}


def drawing(name: str) -> Callable[[Results], plt.Figure]:
    """What draws a figure of the page."""
    return FIGURES[name]
