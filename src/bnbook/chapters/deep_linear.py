"""What is left in a linear network? What is kept of its results, and the figures."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import matplotlib.pyplot as plt
import numpy as np

from bnbook.claims import load_claims
from bnbook.claims.judging import words_at
from bnbook.figures import COLORS, LABELS, points_of
from bnbook.plots import printed
from bnbook.plots.axes import power
from bnbook.plots.layout import name_rows, subplots
from bnbook.plots.names import letters, marks
from bnbook.plots.panels import Panel, compare, styles_of, without_minor_ticks
from bookpress.results import Results

# ---- Names of results, and what is kept of them -----------------------------------------------------------

PAPER = 1e-6  # the paper's learning rate
NORMS = ("none", "batch", "l2")  # cheap: they see no more of the data than its moments
PAIR = ("none", "batch")
LANDSCAPE = ("loss_range", "gradient_change", "smoothness")


def tag(rate: float) -> str:
    """1e-06 -> "lr1e_06", as result names have it."""
    return f"lr{rate:.0e}".replace("-", "_")


#: Results that the page or a claim names, of the arms that it trains at the paper's rate, a tenth of it, and all of the
#: scan, which the claims' tests read for the map of verdicts; of other arms what they were left with; of the other
#: readings the cosine; of targets of variance 1 some, and more at the paper's rate.
PAPERS, TENTH, OF_PAIR, TINY = tag(PAPER), tag(PAPER / 10), r"(\.none|\.batch)?", "lr1e_10|lr1e_09"
LOOKED = "loss_range|gradient_change|smoothness|gradient_norm|beyond|random_change|cosine|absolute_cosine"
AT_ALL = (
    rf"final_loss|mean_loss|settled|diverged|sigma|sigma_above_one|correlation|bounded|{LOOKED}|aligned_share|shift|"
    rf"smoother_share\.({'|'.join(LANDSCAPE)})"
)
UNIT = f"final_loss|cosine|absolute_cosine|{'|'.join(LANDSCAPE)}"
KEPT = (
    rf"(?!.*\.lr).*|.*\.{PAPERS}{OF_PAIR}",
    rf"({AT_ALL})\.(?!{TINY})lr\w+{OF_PAIR}",
    rf"({LOOKED}|smoother_from|edge|correlation|aligned_until|plateau_rank).*\.{TENTH}{OF_PAIR}",
    rf"(final_loss|diverged)\.(({TINY}){OF_PAIR}|{PAPERS}\.(none\.normal|batch\.(last|fixed|normal)))",
    rf"cosine\.{PAPERS}\.batch\.(last|fixed|normal)",
    rf"({UNIT})\.lr.*\.unit\..*|(mean_loss|aligned_share|shift|sigma)\.{PAPERS}\.unit\..*",
)


def shown(found: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Those of the results that are `KEPT`."""
    return {name: values for name, values in found.items() if any(re.fullmatch(each, name) for each in KEPT)}


def drawn_steps(steps: Sequence[int]) -> np.ndarray:
    """Which of the steps at which a loss is kept are drawn: 110 at most, even on the logarithmic axis."""
    x = np.maximum(steps, 0.7)
    return np.unique(np.searchsorted(x, np.geomspace(0.7, x[-1], 110)))


# ---- Figures ----------------------------------------------------------------------------------------------

#: l2 normalization runs on batch norm's very curve: dashed, it leaves that visible; the others are like it.
ON_ANOTHER = {"l2": (0, (3, 3)), "l1": (0, (4, 2)), "linf": (0, (4, 2))}


def _rates(curves: Mapping[str, np.ndarray], norm: str) -> dict[str, float]:
    """What names end in at each rate that curves of a norm are there for -> the rate."""
    tags = {
        part for name in curves for part in name.split(".") if part.startswith("lr") and name.endswith(norm)
    }
    return dict(
        sorted(((each, float(each[2:].replace("_", "-"))) for each in tags), key=lambda item: item[1])
    )


LINES = {
    norm: dict(label=LABELS[norm], linestyle=ON_ANOTHER.get(norm, "-")) for norm in (*NORMS, "l1", "linf")
}


def _usual(curve: np.ndarray) -> Callable[[plt.Axes], object]:
    """Limits by a curve's middle: a plain network that is about to diverge would need all of the axis."""
    usual = curve[0, 1][np.isfinite(curve[0, 1]) & (curve[0, 1] > 0)]
    low, high = (usual.min() / 1e4, usual.max() * 1e8) if len(usual) else (0.0, np.inf)
    return lambda ax: ax.set_ylim(max(low, ax.get_ylim()[0]), min(high, ax.get_ylim()[1]))


def losses(results: Results) -> plt.Figure:
    """Loss over the training: left at the paper's rate, right each norm at its best."""
    rates = {norm: float(results[f"best_rate.{norm}"][0]) for norm in NORMS}
    usual = {norm: LINES[norm] for norm in NORMS}
    best = {norm: usual[norm] | dict(label=f"{LABELS[norm]}, {power(rate)}") for norm, rate in rates.items()}
    panels = [
        Panel(curve="paper.{}", title=f"at the paper's rate, {power(PAPER)}", arms=usual),
        Panel(curve="best.{}", title="each at its best rate", arms=best),
    ]
    words = dict(
        x="step", log="xy", ylim=(0.01, 3), xlabel="training step", ylabel="loss, share of answering zero"
    )
    return compare(
        points_of(results, "curves"), panels, figsize=(7.4, 3.4), sharey=True, legend="each", **words
    )


def by_rate(results: Results) -> plt.Figure:
    """Above the final loss, below the share that diverged, against the rate."""
    points = points_of(results, "rates")
    lost = {
        norm: line | dict(look="o-", x="rates" if norm in NORMS else "coarse") for norm, line in LINES.items()
    }
    loss = {
        norm: line | ({} if norm in NORMS else dict(y=points[f"loss.{norm}"][0, 1]))
        for norm, line in lost.items()
    }
    title = "Which learning rate leaves the least, and which diverges?"
    panels = [
        [Panel(curve="loss.{}", arms=loss, log="xy", title=title, ylabel="final loss, share")],
        [
            Panel(
                curve="diverged.{}",
                arms=lost,
                log="x",
                ylabel="diverged",
                xlabel="learning rate",
                ylim=(-0.05, 1.05),
            )
        ],
    ]
    words = dict(sharex=True, height_ratios=(1.7, 1), marks_x=printed.LINEAR_RATE | printed.DIVERGES)
    return compare(points, panels, figsize=(6.8, 5.2), **words)


def plateaus(results: Results) -> plt.Figure:
    """Left, directions fitted by rate, a cross off every plateau; right, what is left of each direction."""
    curves, (rates,) = points_of(results, "plateaus"), results["curve.rates.rates"]
    fig, axes = subplots(1, 2, figsize=(7.4, 3.4))
    for norm in PAIR:
        rank, near, left = (curves[f"{name}.{norm}"] for name in ("rank", "near", "left"))
        apart = (0.07 if norm == "batch" else -0.07) + 0.05 * np.linspace(-1, 1, len(rank))
        for column, rate in enumerate(rates):
            style = dict(color=COLORS[norm], alpha=0.6, markersize=4)
            x, on = np.log10(rate) + apart, near[:, column] == 1
            dot = dict(marker="o", label=LABELS[norm]) if rate == PAPER else dict(marker=".")
            axes[0].plot(x, np.where(on, rank[:, column], np.nan), linestyle="none", **dot, **style)
            axes[0].plot(x, np.where(on, np.nan, rank[:, column]), "x", **style)
        directions = np.arange(1, left.shape[1] + 1)
        axes[1].plot(directions, left.T, ".", color=COLORS[norm], alpha=0.35, markersize=4)
        axes[1].plot(directions, np.nanmedian(left, axis=0), color=COLORS[norm], label=LABELS[norm])
    axes[0].set(xlabel="log₁₀ of the learning rate", ylabel="directions fitted, k", ylim=(-0.5, 9.5))
    axes[1].set(xlabel="singular direction of A, strongest first", ylabel="share of it left", ylim=(0, 3))
    axes[1].set_yscale("symlog", linthresh=1e-3)
    marks(axes[0], x={name: np.log10(rate) for name, rate in printed.LINEAR_RATE.items()})
    axes[0].set_title("How many directions are fitted?", fontsize=10.5)
    axes[1].set_title(f"What is left of each at {power(PAPER)}?", fontsize=10.5)
    for ax in axes:
        ax.legend(fontsize=letters(ax))
    return without_minor_ticks(fig)


def covariate_shift(results: Results) -> plt.Figure:
    """Cosine and relative difference over the training, and cosine by layer; a column a rate."""
    points = points_of(results, "covariate-shift")
    rates, steps = _rates(points, "none"), dict(x=np.maximum(points["step"][0], 0.7), xlabel="training step")
    cosine, change = (
        dict(ylabel="cosine of G and G′", log="x", ylim=(-1.3, 1.8)),
        dict(ylabel="‖G − G′‖ / ‖G‖", log="xy"),
    )
    layer = dict(ylabel="cosine, by layer", xlabel="layer", ylim=(-1.05, 1.05))
    told = {at: printed.LINEAR_SHIFT if rate == PAPER else None for at, rate in rates.items()}
    titles = {at: f"learning rate {power(rate)}" for at, rate in rates.items()}
    panels = [
        [
            Panel(curve=f"cosine.{at}.{{}}", title=titles[at], marks_y=told[at], **steps, **cosine)
            for at in rates
        ],
        [Panel(curve=f"relative_shift.{at}.{{}}", **steps, **change) for at in rates],
        [Panel(curve=f"layer.{at}.{{}}", **layer) for at in rates],
    ]
    return compare(points, panels, PAIR, figsize=(7.4, 6.4), sharey="row")


def landscape(results: Results) -> plt.Figure:
    """Range of the loss, change of the gradient and β over the training, a row a rate; dashed: 2/η."""
    points, titles = (
        points_of(results, "landscape"),
        ("range of the loss (share)", "change of the gradient", "effective β"),
    )
    panels = []
    for at, rate in _rates(points, "none").items():
        local = {
            f"local.{norm}": dict(color=norm, look=":", y=points[f"local.{at}.{norm}"][0, 1]) for norm in PAIR
        }
        arms, edge = styles_of(PAIR), dict(ylabel=f"learning rate {power(rate)}")
        row = [
            Panel(curve=f"{name}.{at}.{{}}", also=_usual(points[f"{name}.{at}.batch"]), **edge)
            for name in LANDSCAPE
        ]
        row[2] = replace(row[2], arms=arms | local, marks_y={"2 / η": 2 / rate})
        panels.append([replace(panel, title=None if panels else title) for panel, title in zip(row, titles)])
    words = dict(x=np.maximum(points["step"][0], 0.7), log="xy", xlabel="training step", sharex=True)
    return compare(points, panels, PAIR, figsize=(7.6, 2.4 * len(panels)), **words)


#: Mark and colour of a verdict in the map.
MARKS = {
    "reproduced": ("+", COLORS["corrected"]),
    "yes": ("+", COLORS["corrected"]),
    "not reproduced": ("−", COLORS["wrong"]),
    "no": ("−", COLORS["wrong"]),
    "mixed": ("±", COLORS["part"]),
    "partly refuted, rest open": ("∓", COLORS["part"]),
    "open": ("?", COLORS["printed"]),
    "diverged": ("", COLORS["grid"]),
}


def activations(results: Results) -> plt.Figure:
    """Fans of quantiles (1, P, layers, 7) of one unit's output, a row a norm, a column a layer."""
    curves = points_of(results, "activations")
    sigma = {f"paper: σ around {printed.SIGMA:g}": printed.SIGMA, "": -printed.SIGMA}

    def panel(norm: str, place: int, layer: float) -> Panel:
        arms = {norm: dict(y=curves[norm][:, :, place])}
        if norm == "none":
            return Panel(arms=arms, ylabel=LABELS[norm], title=f"layer {layer:.0f}", marks_y=sigma)
        return Panel(arms=arms, ylabel=LABELS[norm])

    panels = [[panel(norm, *each) for each in enumerate(curves["layer"][0])] for norm in PAIR]
    words = dict(x=np.maximum(curves["step"][0], 0.7), by="fan", log="x", xlabel="training step")
    return compare({}, panels, figsize=(7.6, 4.2), sharex=True, sharey="row", legend="none", **words)


def verdicts(results: Results) -> plt.Figure:
    """A row a claim, a column a rate, a mark a verdict: each test as at the paper's rate, on what was measured there."""
    (rates,) = results["curve.rates.rates"]
    mine = [claim for claim in load_claims() if claim.chapter == "santurkar/deep-linear"]
    mine = [claim for claim in mine if not claim.id.endswith("-unit")]  # trained at two rates alone
    words = words_at(mine, results, tag(PAPER), [tag(rate) for rate in rates])
    fig, ax = subplots(figsize=(7.4, 0.9 + 0.3 * max(1, len(words))))
    for row, found in enumerate(words.values()):
        for column, word in enumerate(found):
            mark, shade = MARKS[word]
            ax.add_patch(plt.Rectangle((column - 0.46, row - 0.44), 0.92, 0.88, color=shade))
            ax.text(column, row, mark, color="white", ha="center", va="center", fontsize=10)
    ax.set(xlim=(-0.5, len(rates) - 0.5), ylim=(max(1, len(words)) - 0.5, -0.5), xlabel="learning rate")
    names = [power(rate) + ("\npaper's" if rate == PAPER else "") for rate in rates]
    ax.set_xticks(range(len(rates)), names, fontsize=letters(ax))
    name_rows(ax, [_spoken(each) for each in words])
    ax.grid(False)
    ax.minorticks_off()
    return fig


def _spoken(claim: str) -> str:
    """dln-plain-almost-no-ics -> plain almost no shift."""
    known = {"ics": "shift", "sigma": "σ", "beta": "β"}
    return " ".join(known.get(word, word) for word in claim.removeprefix("dln-").split("-"))


def effects(results: Results) -> plt.Figure:
    """Without over with batch norm by rate, a panel a measure; hollow: most plain networks diverged."""
    curves = points_of(results, "effects")
    (rates,) = curves["rates"]
    titles = {
        "final_loss": "final loss",
        "loss_range": "range of the loss",
        "gradient_change": "change of gradient",
        "smoothness": "effective β",
    }
    fig, axes = subplots(2, 2, figsize=(7.4, 5.0), sharex=True)
    for ax, (name, title) in zip(axes.flat, titles.items()):
        low, middle, high = np.clip(curves[name][0], 1e-30, 1e30)
        ax.vlines(rates, low, high, color=COLORS["theory"], linewidth=1)
        for rate, value, hollow in zip(rates, middle, curves["hollow"][0]):
            face = "white" if hollow else COLORS["theory"]
            ax.plot(rate, value, "o", color=COLORS["theory"], markerfacecolor=face, markersize=4)
        marks(ax, x=printed.LINEAR_RATE, y={"equal": 1.0})
        finite = [rate for rate, value in zip(rates, middle) if 1e-8 < value < 1e12] or list(rates)
        ax.set(xscale="log", yscale="log", title=title, xlim=(finite[0] / 2, finite[-1] * 2))
        bottom, top = ax.get_ylim()
        ax.set_ylim(max(bottom, 1e-8), min(top, 1e12))
    for ax in axes[:, 0]:
        ax.set_ylabel("without / with batch norm")
    for ax in axes[-1]:
        ax.set_xlabel("learning rate")
    return without_minor_ticks(fig)


def by_depth(results: Results) -> plt.Figure:
    """Final loss, cosine and curvature against the number of layers, a column a rate."""
    points = points_of(results, "depth")
    (depths,), (rates,) = points["layers"].astype(int), points["rates"]
    titles = {"final_loss": "final loss, share", "cosine": "cosine of G and G′", "edge": "curvature × η / 2"}
    panels = [
        [
            Panel(curve=f"{name}.{tag(rate)}.{{}}", ylabel=words, log="" if name == "cosine" else "y")
            for rate in rates
        ]
        for name, words in titles.items()
    ]
    panels[0] = [
        replace(panel, title=f"learning rate {power(rate)}") for panel, rate in zip(panels[0], rates)
    ]
    panels[0][0] = replace(panels[0][0], marks_x=printed.DEPTH)
    arms = {norm: dict(label=LABELS[norm], look="o-") for norm in PAIR}
    words = dict(x=depths, ticks=depths, xlabel="layers", sharex=True, sharey="row")
    return compare(points, panels, arms, figsize=(2.3 * len(rates) + 0.7, 6.2), **words)
