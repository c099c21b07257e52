"""How large may the learning rate be? Many small trainings at once, the steepest direction by layers, what training
changes, and the figures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import matplotlib.pyplot as plt
import numpy as np
import torch
from matplotlib.colors import ListedColormap
from matplotlib.patheffects import Normal, Stroke
from matplotlib.ticker import LogLocator

from bnbook.chapters.mean_field import TOLERANCE, by_set, titles
from bnbook.data import Dataset
from bnbook.figures import COLORS, points_of
from bnbook.plots.axes import in_factors, in_powers
from bnbook.plots.layout import subplots
from bnbook.plots.panels import Panel, compare
from bnbook.probes.fisher import LargestEigenvalue, largest_eigenvalue
from bnbook.runs import train_members
from bnbook.small_networks import PhaseArm, bisect, full_batch, train_model, works
from bookpress.results import Results

# ---- Trainings at many rates ------------------------------------------------------------------------------

#: log10 of the largest rate that is tried.
LARGEST = 2.0


class Trainings:
    """Trainings of all seeds side by side; `runs` keeps each that was made: (settings, seed) -> its arrays."""

    def __init__(self, first_seed: int, workers: int) -> None:
        self.first_seed, self.workers, self.runs = first_seed, workers, {}

    def restarts(self, count: int) -> range:
        """The first so many seeds."""
        return range(self.first_seed, self.first_seed + count)

    def at(self, settings: Sequence[PhaseArm], rates: np.ndarray, of: str = "loss") -> np.ndarray:
        """What became of each at its log10 η (S, X), which counts to four digits: (S, X, ...)."""
        found = self._made(self._members(settings, rates), of)
        return np.reshape(found, (*rates.shape, *np.shape(found[0])))

    def work(
        self, settings: Sequence[PhaseArm], rates: np.ndarray, good: Callable[[np.ndarray], bool] = works
    ) -> np.ndarray:
        """Whether the loss of each is `good` at its log10 η (S, X), (S, X); above `LARGEST` none is tried, and none
        is."""
        fine, inside = np.zeros(rates.shape, dtype=bool), rates <= LARGEST
        members = [each for each, tried in zip(self._members(settings, rates), inside.ravel()) if tried]
        fine[inside] = [good(loss) for loss in self._made(members, "loss")]
        return fine

    def bracket(
        self,
        settings: Sequence[PhaseArm],
        middle: np.ndarray,
        width: float,
        good: Callable[[np.ndarray], bool],
    ) -> tuple[np.ndarray, np.ndarray]:
        """log10 η, each (S, X): one that works and one that does not, from a bracket around `middle` (S, X) that is
        moved by its own width until it is right."""

        def flat(rates: np.ndarray) -> np.ndarray:
            return self.work(settings, rates.reshape(middle.shape), good).ravel()

        low, high = bisect(flat, np.ravel(middle) - width / 2, np.ravel(middle) + width / 2, 0)
        return low.reshape(middle.shape), high.reshape(middle.shape)

    def exploded(self, loss: str) -> float:
        """Of the trainings with this loss that do not work, the share that exploded; 0 where all work."""
        own = [run for (one, _), run in self.runs.items() if one.loss == loss and not works(run["loss"])]
        return float(np.mean([np.isfinite(run["exploded_step"]) for run in own])) if own else 0.0

    def _members(self, settings: Sequence[PhaseArm], rates: np.ndarray) -> list[tuple[PhaseArm, int]]:
        return [
            (replace(one, learning_rate=float(f"{10**rate:.4g}")), seed)
            for seed, row in zip(self.restarts(len(rates)), rates, strict=True)
            for one, rate in zip(settings, row, strict=True)
        ]

    def _made(self, members: list[tuple[PhaseArm, int]], of: str) -> list[np.ndarray]:
        self.runs.update(train_members(list(dict.fromkeys(members)), self.workers))
        return [self.runs[member][of] for member in members]


def survives(loss: np.ndarray) -> bool:
    """Whether a training (T,) did not explode, whatever it learnt."""
    return bool(np.isfinite(loss).all())


# ---- One network, closely -----------------------------------------------------------------------------------

#: Points that are kept of a loss by step.
POINTS = 60


def weights_curvature(arm: PhaseArm, seed: int, dataset: Dataset) -> LargestEigenvalue:
    """λ_max over all outputs and the weights, through the batch, of the network and the batch of a seed."""
    images, _ = full_batch(arm, seed, dataset)
    network = arm.drawn(seed, dataset).train()
    return largest_eigenvalue(network, images, "all", "weights", tolerance=TOLERANCE)


def layer_shares(arm: PhaseArm, seed: int, dataset: Dataset, found: LargestEigenvalue) -> np.ndarray:
    """Shares of the layers' weights, (L,), in the eigenvector J^T v of the Fisher matrix, squares summed."""
    network = arm.drawn(seed, dataset).train()
    images, _ = full_batch(arm, seed, dataset)
    weights = [p for p in network.parameters() if p.ndim >= 2]
    gradients = torch.autograd.grad((network(images) * found.vector.to(images)).sum(), weights)
    squares = np.array([g.double().square().sum().item() for g in gradients])
    return squares / squares.sum()


def after_training(arm: PhaseArm, seed: int, dataset: Dataset) -> dict[str, float]:
    """What a training changed: log10 of λ_max (of the weights, all outputs, through the batch) over before,
    the spread of the hidden weights over before where it grew most, that of the readout, the root mean
    square of the last γ, and log10 of the loss of the last tenth of the steps over the first."""
    before = arm.drawn(seed, dataset)
    after, loss = train_model(arm, seed, dataset)
    images, _ = full_batch(arm, seed, dataset)
    top = largest_eigenvalue(after.train(), images, "all", "weights", tolerance=TOLERANCE).value
    pairs = zip(before.parameters(), after.parameters(), strict=True)
    *spread, readout = [float(q.detach().std() / p.detach().std()) for p, q in pairs if p.ndim >= 2]
    gamma = [module.weight for module in after.modules() if hasattr(module, "running_mean")][-1]
    with np.errstate(divide="ignore"):  # -inf: every unit died
        return {
            "curvature": np.log10(top / weights_curvature(arm, seed, dataset).value),
            "hidden": max(spread),
            "readout": readout,
            "gamma": float(gamma.detach().square().mean().sqrt()),
            "loss": np.log10(loss[-max(1, len(loss) // 10) :].mean() / loss[0]),
        }


def best_rates(losses: np.ndarray, log_rates: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The lowest test loss of each restart at each γ and log10 of its rate, (S, γ) both.

    losses (S, γ, rates), NaN where a training exploded; log_rates (γ, rates). inf where all exploded.
    """
    known = np.where(np.isfinite(losses), losses, np.inf)
    place = known.argmin(axis=2)[..., None]
    every = np.broadcast_to(log_rates, losses.shape)
    return known.min(axis=2), np.take_along_axis(every, place, 2)[..., 0]


def kept_steps(steps: int) -> np.ndarray:
    """At most `POINTS` steps of so many, evenly from the first to the last, counted from 0."""
    return np.unique(np.linspace(0, steps - 1, min(POINTS, steps)).round().astype(int))


# ---- Figures ----------------------------------------------------------------------------------------------

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
    rows = titles(results)
    fig, ax = subplots(figsize=(7.2, 0.9 + 0.5 * len(rows)))
    ax.axvspan(-MARGIN, MARGIN, color="0.9")
    for row, suffix in enumerate(rows):
        for place, (name, (words, mark, color)) in enumerate(MARKS.items()):
            values = results[f"curve.offsets.own.{suffix}" if name == "own" else f"offset.{name}.{suffix}"]
            height = np.full(len(values), -row - 0.12 * (place - 2))
            ax.plot(values, height, mark, color=color, markersize=5, label=words if row == 0 else None)
    ax.set_yticks([-row for row in range(len(rows))], list(rows.values()))
    in_factors(ax.xaxis, (0.7, 1, 1.4, 2, 3, 4, 6, 10))
    ax.set_xlabel("measured over predicted critical rate")
    ax.set_title("Which prediction is nearest to where training breaks?")
    fig.legend(loc="outside lower center", ncols=3, fontsize=9.5)
    return fig


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
    ax.set_yticks([-row for row in range(len(SIDES))], list(SIDES.values()))
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
