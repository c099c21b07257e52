"""What turns in larger and longer trainings? What is recorded of each size, and an effect against the width."""

from __future__ import annotations

import re
import textwrap
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.ticker import LogLocator

from bnbook.chapters.landscape import DISTANCE, PAIR, SLOPE
from bnbook.chapters.vgg import RUNGS
from bnbook.figures import COLORS, mean_and_interval, parameters_of
from bnbook.plots.layout import cells, last_of_columns
from bnbook.plots.names import mark_curve
from bnbook.plots.panels import Panel, compare
from bnbook.probes.summaries import PAPER_REACH
from bookpress.results import Results

Arrays = dict[str, np.ndarray]


#: Of a curve over the looks, the parts of a training over which it is summed up as well.
WINDOWED = {
    "loss_range": ("early", "late", "started"),
    "gradient_change": ("early",),
    "smoothness": ("early",),
}
UNASKED = ("diverged", "not_started", "seconds")  # of what other chapters ask about learning
#: What is asked of the arms that are compared by little; of the others all numbers are.
ASKED = {
    "noisy": (
        "training_speed",
        "end_accuracy",
        "accuracy_path",
        "batch_mean_next_input",
        "batch_variance_next_input",
        "checkpoint_mean_before_nonlinearity",
        "checkpoint_variance_before_nonlinearity",
    ),
    "noise": ("end_accuracy",),
    "l1": ("training_speed",),
    "l2": ("training_speed",),
    "linf": ("training_speed",),
}


def asked(numbers: Mapping[str, Any], norm: str = "") -> list[str]:
    """Of the names of an arm's numbers those that are recorded; of a pair, which has no norm, all."""
    return [name for name in numbers if name in ASKED.get(norm, numbers) and name not in UNASKED]


# ---- Figures ----------------------------------------------------------------------------------------------

WIDTHS = {1 / 16: "1/16", 1 / 8: "1/8", 1 / 4: "1/4", 1 / 2: "1/2", 1.0: "1"}
GREY = "#777777"
MARKERS = "os^v"  # of the effects of one panel, whose inks may be alike in grey
#: Where the rungs of 15,000 steps stand, right of the widths.
LONG = {"long": 2.6, "long_w1_8": 5.2, "long_w1_16": 10.4, "full": 20.8}
AXIS = re.compile(r", (points|[^,]* [/−] [^,]*)$")
TITLE = 32  # letters in a line of a panel's title, so that it stays above its own panel
#: Rungs that differ in width and length alone.
PLAIN = ("w1_16", "w1_8", "w1_4", "w1_2", "w1", "long", "full", "long_w1_8", "long_w1_16")
#: Their titles in a figure that has a panel for each.
TITLES = {
    "w1_16": "1/16 of the width, 2,000 steps",
    "w1_8": "1/8, 2,000 steps",
    "w1_4": "1/4, 2,000 steps",
    "w1_2": "1/2, 2,000 steps",
    "w1": "the whole width, 2,000 steps",
    "long": "1/4, 15,000 steps",
    "long_w1_8": "1/8, 15,000 steps, fresh",
    "long_w1_16": "1/16, 15,000 steps, fresh",
    "full": "the whole width, 15,000 steps",
}


@dataclass(frozen=True)
class Compared:
    """What is compared at each rung: results whose names hold `{rung}`; `zero` is where a claim turns.

    kind: "ratio" a/b on a logarithmic axis, "difference" a - b, "level" a alone, "log" e^a. scale multiplies
    differences and levels (100: points).
    """

    kind: str
    a: str
    b: str = ""
    zero: float = 0.0
    scale: float = 1.0

    def values(self, results: Mapping[str, np.ndarray], rung: str) -> np.ndarray | None:
        """One number per seed, (S,), a logarithm where the axis is one; None for a rung not reached."""
        names = [name.replace("{rung}", rung) for name in (self.a, self.b) if name]
        if not set(names) <= set(results):
            return None
        one, *other = (np.asarray(results[name], dtype=float) for name in names)
        if self.kind == "ratio":
            with np.errstate(divide="ignore", invalid="ignore"):
                return np.log(one / other[0])
        return one if self.kind == "log" else self.scale * (one - other[0] if other else one)

    @property
    def logarithmic(self) -> bool:
        return self.kind in ("ratio", "log")


def ratio(name: str, zero: float = 1.0, arms: tuple[str, str] = ("none", "batch")) -> Compared:
    """One arm's number over the other's."""
    return Compared("ratio", *_names(name, arms), zero)


def difference(
    name: str, zero: float = 0.0, arms: tuple[str, str] = ("batch", "none"), scale: float = 1.0
) -> Compared:
    """One arm's number less the other's."""
    return Compared("difference", *_names(name, arms), zero, scale)


def points(name: str, zero: float = 0.0, arms: tuple[str, str] = ("batch", "none")) -> Compared:
    """The difference of two shares in points."""
    return difference(name, zero, arms, 100.0)


def level(name: str, arm: str, zero: float, scale: float = 1.0) -> Compared:
    """An arm's number alone."""
    return Compared("level", *_names(name, (arm,)), "", zero, scale)


def logarithm(name: str, zero: float = 1.0) -> Compared:
    """A factor that a pair of arms recorded the logarithm of."""
    return Compared("log", f"{name}.{{rung}}", zero=zero)


def _names(name: str, arms: tuple[str, ...]) -> list[str]:
    return [f"{name}.{{rung}}.{arm}" for arm in arms]


def against_width(
    results: Mapping[str, np.ndarray], panels: Mapping[str, Mapping[str, Compared]]
) -> plt.Figure:
    """One panel a title, two in a row; in it one curve an effect (its label's colour if it names an arm). What
    stands behind the last comma of a title is the name of its axis.

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
        if next(iter(effects.values())).logarithmic:
            ax.set_yscale("log")
            low, high = ax.get_ylim()
            ax.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if high < 100 * low else (1,)))
            ax.yaxis.set_major_formatter("{x:g}")
        for zero in {effect.zero for effect in effects.values()}:
            ax.axhline(zero, color=GREY, linewidth=0.9, linestyle=(0, (4, 3)), zorder=0.9)
        ax.axvline(1.0, color=GREY, linewidth=0.9, linestyle=":", zorder=0.9)
        named, _, axis = title.rpartition(", ") if AXIS.search(title) else (title, "", _axis(effects))
        ax.set(xscale="log", title=textwrap.fill(named, TITLE), ylabel=axis, xlim=(0.05, 1.3))
        places = WIDTHS | {
            LONG[name]: f"{WIDTHS[RUNGS[name].width]},\nlong" for name in LONG if _reached(results, name)
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
    ax: plt.Axes,
    results: Mapping[str, np.ndarray],
    effect: Compared,
    label: str | None,
    style: dict[str, object],
    shift: float,
) -> None:
    for long in (False, True):
        found = {name: effect.values(results, name) for name in PLAIN if RUNGS[name].long == long}
        shown = {name: values for name, values in found.items() if values is not None}
        if not shown:
            continue
        x = np.array([LONG.get(name, RUNGS[name].width) * shift for name in shown])
        middle, half = (np.array(each) for each in zip(*(_middle(values) for values in shown.values())))
        low, high = middle - half, middle + half
        if effect.logarithmic:
            middle, low, high = np.exp(middle), np.exp(low), np.exp(np.minimum(high, 690.0))
        look = dict(markersize=6, marker="D", markerfacecolor="white") if long else dict(markersize=5)
        bars = [np.nan_to_num(middle - low), np.nan_to_num(high - middle)]
        line = "none" if long else "-"
        ax.errorbar(x, middle, bars, linestyle=line, capsize=3, label=label, **style | look)
        label = None  # one entry of the legend, also where only long rungs were trained


def _reached(results: Mapping[str, np.ndarray], rung: str) -> bool:
    return any(f".{rung}." in name or name.endswith(f".{rung}") for name in results)


def _axis(effects: Mapping[str, Compared]) -> str:
    """What is divided by what, where all effects of a panel do that."""
    words = {"none": "without", "batch": "with", "noisy": "noisy"}
    found = {
        tuple(words.get(name.rpartition(".")[2], "") for name in (one.a, one.b)) for one in effects.values()
    }
    divided = {one.kind for one in effects.values()} == {"ratio"} and len(found) == 1 and all(*found)
    return " / ".join(found.pop()) if divided else ""


def _middle(values: np.ndarray) -> tuple[float, float]:
    if not np.isfinite(values).all():  # a factor of 0 or ∞ has no place on the axis
        return np.nan, np.nan
    mean, half = mean_and_interval(values[:, None])
    return float(mean[0]), float(half[0])


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


# ---- Each figure of the page, from the results of its run -----------------------------------------------


SPEED = {
    "batch accuracy, points": {"ahead": points("training_speed")},
    "steps to the same accuracy": {
        "ratio": Compared("ratio", "steps_to_match_none.{rung}", "steps_to_match_batch.{rung}", 2.0)
    },
    "steps until it starts": {"ratio": ratio("start_step")},
}
ACCURACY = {
    "test accuracy, points": {"ahead": points("test_accuracy", 3.0)},
    "training images, points": {"ahead": points("train_accuracy")},
}
NOISY = {
    "noisy − batch norm, whole training": {"ahead": points("training_speed", -3.0, ("noisy", "batch"))},
    "the same, last tenth": {"ahead": points("end_accuracy", -3.0, ("noisy", "batch"))},
    "noisy − without, whole training": {"ahead": points("training_speed", 3.0, ("noisy", "none"))},
}
LANDSCAPE = {
    "range of the loss": {"all": ratio("loss_range"), "early": ratio("loss_range_early")},
    "change of the gradient": {
        "all": ratio("gradient_change", 30.0),
        "early": ratio("gradient_change_early", 30.0),
    },
    "effective β": {"all": ratio("smoothness"), "early": ratio("smoothness_early")},
    "range of the loss, from the start": {"started": ratio("loss_range_started")},
    "at equal loss": {"range": logarithm("equal_loss_loss_range"), "β": logarithm("equal_loss_smoothness")},
    "gradient norm": {"all": ratio("gradient_norm")},
}
AHEAD = (1, 2, 4, 8)  # learning rates along the gradient
PREDICTIVE = {
    "error, without / with": {f"× {k}": ratio(f"error_x{k}", 2.0) for k in AHEAD},
    "cosine, with − without": {f"× {k}": difference(f"cosine_x{k}") for k in AHEAD},
    "steps that descend, points": {f"× {k}": points(f"descends_x{k}") for k in AHEAD},
}
SHIFT = {
    "cosine, with − without": {"all": difference("cosine", 0.05)},
    "‖G − G′‖, with / without": {"all": ratio("shift", 0.8, ("batch", "none"))},
    "at equal loss, without / with": {"all": logarithm("equal_loss_shift", 1.25)},
}
WAYS = {"batch": "successive batches", "update": "same images", "checkpoint": "checkpoints"}
PLACES = {
    "before norm": "before_normalization",
    "before ReLU": "before_nonlinearity",
    "next input": "next_input",
}
MOMENTS = {
    f"{moment}, {words}": {
        label: ratio(f"{way}_{moment}_{place}", 1.0, ("batch", "none")) for label, place in PLACES.items()
    }
    for way, words in WAYS.items()
    for moment in ("mean", "variance")
}
WHERE = {"none": "removed_fc_{}", "batch": "removed_along_{}"}
REMOVED = {
    "along 1": {norm: level(name.format("one"), norm, 10, 100) for norm, name in WHERE.items()},
    "along the values": {norm: level(name.format("values"), norm, 1, 100) for norm, name in WHERE.items()},
    "exponent of growth": {
        "none": level("removed_fc_growth", "none", 2),
        "batch": level("removed_growth", "batch", 2),
    },
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
    "moments": partial(against_width, panels=MOMENTS),
    "removed": partial(against_width, panels=REMOVED),
}


def drawing(name: str) -> Callable[[Results], plt.Figure]:
    """What draws a figure of the page."""
    return FIGURES[name]
