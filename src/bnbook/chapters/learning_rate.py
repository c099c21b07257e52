"""How large may the learning rate be? The figures."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import ListedColormap
from matplotlib.patheffects import Normal, Stroke
from matplotlib.ticker import LogLocator

from bnbook.chapters.mean_field import by_set, titles
from bnbook.figures import COLORS, points_of
from bnbook.plots.axes import in_factors, in_powers
from bnbook.plots.layout import name_rows, subplots
from bnbook.plots.panels import Panel, compare
from bookpress.results import Results

#: log10 of the largest rate that is tried.
LARGEST = 2.0

LINES = {
    "from0": ("paper: η* as printed", "--", COLORS["printed"]),
    "from1": ("paper: η* as printed, from 1", "-.", COLORS["printed"]),
    "corrected": ("corrected", "-", COLORS["corrected"]),
    "through_batch": ("through the batch", ":", COLORS["theory"]),
}
MARKS = {
    "from0": ("paper: η* as printed", "o", COLORS["printed"]),
    "corrected": ("corrected", "s", COLORS["corrected"]),
    "through_batch": ("through the batch", "D", COLORS["theory"]),
    "own": ("its own largest eigenvalue", "1", COLORS["theory"]),
    "readout": ("its own readout", "*", COLORS["theory"]),
}
MARGIN = 0.15  # decades, a factor of 1.4: what the claims' tests allow
ORDERS = 3  # decades of η over which "the theory matches the experiments": caption of the paper's Figure 2


AXES = dict(xlabel=r"$\gamma$", ylabel=r"learning rate $\eta$")  # rates in powers of ten


def boundary(results: Results) -> plt.Figure:
    """log10 of critical rates against γ, a point a restart, and the line of each theory."""
    curves = points_of(results, "boundary")
    (gammas,) = curves["gammas"]

    def panel(suffix: str) -> Panel:
        arms = {
            name: dict(x="gamma", y=f"{name}.{suffix}", look=dash, color=color, label=words)
            for name, (words, dash, color) in LINES.items()
            if name != "from1" or "conv" in suffix
        }
        found = results[f"boundary.{suffix}"]
        measured = dict(x=gammas, y=found, by="dots", look="o", color="batch", alpha=0.7, label="measured")
        return Panel(
            arms=arms | {"measured": measured},
            also=lambda ax: (in_powers(ax.yaxis), _orders(ax, found.max(), gammas[-1])),
        )

    return by_set(results, panel, curves, 6.9, **AXES)


def _orders(ax: plt.Axes, top: float, last: float) -> None:
    """The orders of magnitude that the paper prints, as a scale right of the last γ, down from the largest
    rate."""
    style = {"color": COLORS["printed"], "linewidth": 1.0, "linestyle": (0, (4, 3)), "marker": "_"}
    ax.plot([1.06 * last] * 2, [top - ORDERS, top], **style)
    place = {"ha": "right", "va": "top", "color": COLORS["printed"], "fontsize": 9.5}
    ax.text(1.04 * last, top, "paper: three orders\nof magnitude", **place)


def offsets(results: Results) -> plt.Figure:
    """log10 of the measured over each predicted rate, a mark a restart, a row a network and set."""
    rows, arms = titles(results), {}
    for place, (name, (words, mark, color)) in enumerate(MARKS.items()):
        start = "curve.offsets.own" if name == "own" else f"offset.{name}"
        found = [results[f"{start}.{suffix}"] for suffix in rows]
        heights = [np.full(len(values), row + 0.12 * (place - 2)) for row, values in enumerate(found)]
        arms[name] = dict(
            x=np.concatenate(found), y=np.concatenate(heights), look=mark, color=color, label=words
        )

    def scale(ax: plt.Axes) -> None:
        ax.axvspan(-MARGIN, MARGIN, color="0.9")
        in_factors(ax.xaxis, (0.7, 1, 1.4, 2, 3, 4, 6, 10))

    title = "Which prediction is nearest to where training breaks?"
    words = dict(title=title, xlabel="measured over predicted critical rate", also=scale)
    panel, size = Panel(rows=[*rows.values()], **words), (7.2, 0.9 + 0.5 * len(rows))
    return compare(results, [panel], arms, figsize=size, legend="below")


def hidden_alone(results: Results) -> plt.Figure:
    """Loss by step, a line a restart, of networks with batch norm: all weights trained, or the hidden ones alone."""
    ways = {"all": ("all weights", "--"), "hidden": ("hidden weights alone", "-")}
    arms = {
        way: dict(color="batch", linewidth=1.2, look=dash, label=words) for way, (words, dash) in ways.items()
    }

    def panel(suffix: str) -> Panel:
        length = len(results[f"curve.hidden.all.{suffix}"][0])
        return Panel(curve=f"curve.hidden.{{}}.{suffix}", x=range(length), by="seeds", log="y")

    return by_set(results, panel, results, 5.5, arms=arms, xlabel="step", ylabel="loss", sharey=True)


def without_batch_norm(results: Results) -> plt.Figure:
    """log10 of critical rates against σ_w², a point a restart, and the lines of two theories."""
    measured = dict(x="variances", y=results["vanilla"], by="dots", look="o", color="none", label="measured")
    lines = {name: LINES[name] for name in ("from0", "corrected")}
    arms = {name: dict(look=dash, color=color, label=words) for name, (words, dash, color) in lines.items()}
    words = dict(xlabel=r"variance of the first weights, $\sigma_w^2$", ylabel=r"learning rate $\eta$")
    title = "Where does a network without batch norm break?"
    panel = Panel(curve="{}", x="variance", title=title, also=lambda ax: in_powers(ax.yaxis), **words)
    return compare(points_of(results, "vanilla"), [panel], {"measured": measured} | arms, figsize=(6.2, 3.3))


#: Setting in which the boundary is looked for again -> words.
SIDES = {
    "squared": "as above",
    "long": "more steps",
    "batch": "larger batches",
    "full": "one full batch",
    "cross_entropy": "cross-entropy",
    "survives": "does not explode",
}


def sides(results: Results) -> plt.Figure:
    """log10 of critical rates in other settings over the line through the batch: a row a setting, a colour a γ. No
    rate above `LARGEST` was tried, and what has none is an arrow there."""
    curves = points_of(results, "sides")
    (gammas,) = curves["gammas"]
    fig, ax = subplots(figsize=(7.2, 1.4 + 0.5 * len(SIDES)))
    ax.axvline(0, color=COLORS["theory"], linestyle=":", label="through the batch")
    printed = np.interp(gammas, curves["gamma"][0], (curves["from0"] - curves["through_batch"])[0])
    shades = plt.cm.viridis(np.linspace(0.0, 0.75, len(gammas)))
    for row, name in enumerate(SIDES):
        for place, (gamma, shade) in enumerate(zip(gammas, shades)):
            found, height = curves[name][:, place], -row - 0.17 * (place - (len(gammas) - 1) / 2)
            for chosen, mark, limit in ((np.isfinite(found), "o", None), (np.isinf(found), ">", LARGEST)):
                x = np.minimum(found[chosen], LARGEST) - curves["below"][0, place]
                label = f"γ = {gamma:g}" if not row and not limit else None
                ax.plot(x, np.full(len(x), height), mark, color=shade, markersize=4.5, label=label)
            ax.plot([printed[place]], [height], "|", color=COLORS["printed"], markersize=6)
    ax.plot([], [], "|", color=COLORS["printed"], markersize=6, label="paper: η* as printed")
    name_rows(ax, [*SIDES.values()], [-row for row in range(len(SIDES))])
    in_factors(ax.xaxis, (0.5, 1, 2, 5, 10, 30, 100, 300, 1000))
    ax.set_xlabel("measured critical rate over that through the batch")
    ax.set_title("Where does training break when it is set otherwise?")
    fig.legend(loc="outside lower center", ncols=3, fontsize=9.7)
    return fig


def loss_map(results: Results) -> plt.Figure:
    """log10 of the mean test loss over γ and the rates, with the measured boundary as points, the printed line dashed
    and half of it dotted; grey: it exploded."""
    (gammas,), curves = results["curve.boundary.gammas"][0:1], points_of(results, "map")
    losses = {suffix: np.log10(results[f"map.{suffix}"].mean(axis=0)) for suffix in titles(results)}
    every = np.concatenate([loss.ravel() for loss in losses.values()])
    scale = dict(zip(("vmin", "vmax"), np.nanpercentile(every, [0, 95])))  # one for all panels

    def panel(suffix: str) -> Panel:
        levels, loss, printed = curves[f"rates.{suffix}"][0], losses[suffix], curves[f"from0.{suffix}"][0]
        white = dict(
            color="white", linewidth=1.6, path_effects=[Stroke(linewidth=3.2, foreground="black"), Normal()]
        )
        arms = {
            words: dict(x=gammas, y=line, look=dash, label=f"paper: {words}", **white)
            for words, line, dash in (("η*", printed, "--"), ("η*/2", printed - np.log10(2), ":"))
        }
        found = dict(
            y=results[f"boundary.{suffix}"], label="measured boundary", color="white", markeredgecolor="black"
        )
        arms["measured"] = dict(x=gammas, by="dots", look="o", **found)

        def paint(ax: plt.Axes) -> None:
            x = np.repeat(gammas[:, None], levels.shape[1], 1)
            lost = np.where(np.isfinite(loss), np.nan, 0.0)
            ax.pcolormesh(x, levels, lost, shading="nearest", cmap=ListedColormap(["#bbbbbb"]))
            ax.pcolormesh(x, levels, loss, shading="nearest", cmap="viridis", **scale)
            ax.grid(False)
            in_powers(ax.yaxis)

        return Panel(arms=arms, also=paint)

    fig = by_set(results, panel, curves, 6.9, **AXES)
    bar = fig.colorbar(fig.axes[-1].collections[-1], ax=fig.axes, extend="max", aspect=40)
    bar.set_label(r"$\log_{10}$ of the test loss", fontsize=9.5)
    return fig


def after_epochs(results: Results) -> plt.Figure:
    """Test losses against the rates, a colour each γ; the rates at which short trainings break as vertical lines, half
    of the paper's η* as marks below."""
    curves, every = points_of(results, "epochs"), results["curve.boundary.gammas"][0].tolist()
    (gammas,), (rates,), losses = curves["gammas"], curves["rates"], curves["losses"]
    places = [every.index(gamma) for gamma in gammas]
    edges = results["boundary.fc.set0"].mean(axis=0)[places]
    printed = results["curve.map.from0.fc.set0"][0, places]
    fig, ax = subplots(figsize=(6.8, 3.8))
    shades = plt.cm.viridis(np.linspace(0.0, 0.75, len(gammas)))
    for place, (gamma, shade) in enumerate(zip(gammas, shades)):
        x = 10 ** rates[place]
        ax.plot(x, losses[:, place].mean(axis=0), color=shade, label=f"γ = {gamma:g}")
        ax.plot(np.tile(x, len(losses)), losses[:, place].ravel(), "o", color=shade, markersize=4)
        ax.axvline(10 ** edges[place], color=shade, linestyle=":")
        half = {"transform": ax.get_xaxis_transform(), "color": shade, "markersize": 8, "clip_on": False}
        ax.plot([10 ** printed[place] / 2], [0.04], "^", **half)
    ax.plot([], [], "^", color=COLORS["printed"], markersize=8, label="paper: best at η*/2")
    ax.set(xscale="log", yscale="log", xlabel=r"learning rate $\eta$", ylabel="test loss")
    ax.yaxis.set_major_locator(LogLocator(subs=(1, 1.5, 2, 3, 5, 7)))
    ax.yaxis.set_major_formatter("{x:g}")
    ax.minorticks_off()
    ax.set_title("Which learning rate leaves the lowest test loss?")
    ax.legend(fontsize=9.5)
    return fig
