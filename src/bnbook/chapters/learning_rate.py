"""How large may the learning rate be? The steepest direction by layers, what training changes, best rates,
and where theories say that it breaks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
import torch
from matplotlib.colors import ListedColormap
from matplotlib.patheffects import Normal, Stroke
from matplotlib.ticker import LogLocator

from bnbook.chapters.mean_field import NETS, SETS, TOLERANCE, Panels
from bnbook.data import Dataset
from bnbook.figures import COLORS, parameters_of, points_of
from bnbook.plots.axes import in_factors, in_powers
from bnbook.plots.layout import subplots
from bnbook.probes.fisher import LargestEigenvalue, largest_eigenvalue
from bnbook.small_networks import PhaseArm, full_batch, train_model
from bookpress.results import Results

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

Curves = Mapping[str, np.ndarray]
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
ORDERS = 3  # decades of η over which "the theory matches the experiments": caption of the paper's Figure 2


def titles(panels: Panels) -> dict[str, str]:
    """What names end in -> network and set in words."""
    return {suffix: f"{NETS[net]}, {SETS.get(name, name)}" for (name, net), suffix in panels.items()}


def grid(panels: Panels) -> tuple[plt.Figure, dict[str, plt.Axes]]:
    """A row for each set, a panel for each network, titled; what names end in -> its axes."""
    rows = -(-len(panels) // 2)
    fig, axes = subplots(rows, 2, figsize=(7.8, 3.2 * rows + 0.5), sharex=True, squeeze=False)
    for ax in axes[-1]:
        ax.set_xlabel(r"$\gamma$")
    for ax in axes[:, 0]:
        ax.set_ylabel(r"learning rate $\eta$")
    for ax in axes.flat:
        in_powers(ax.yaxis)
    found = dict(zip(panels.values(), axes.ravel()))
    for suffix, words in titles(panels).items():
        found[suffix].set_title(words, fontsize=10.5)
    return fig, found


def boundary(panels: Panels, gammas: Sequence[float], measured: Curves, curves: Curves) -> plt.Figure:
    """log10 of critical rates against γ: measured P (S, γ); curves "gamma" and "LINE.P" (1, fine)."""
    fig, axes = grid(panels)
    for suffix, ax in axes.items():
        for name, (words, dash, color) in LINES.items():
            if name != "from1" or "conv" in suffix:
                line = curves[f"{name}.{suffix}"][0]
                ax.plot(curves["gamma"][0], line, dash, color=color, label=words)
        found = measured[suffix]
        style = {"color": COLORS["batch"], "markersize": 4, "alpha": 0.7, "label": "measured"}
        ax.plot(np.tile(gammas, len(found)), found.ravel(), "o", **style)
        _orders(ax, found.max(), gammas[-1])
    handles, words = list(axes.values())[-1].get_legend_handles_labels()
    fig.legend(handles, words, loc="outside lower center", ncols=3, fontsize=9.5)
    return fig


def _orders(ax: plt.Axes, top: float, last: float) -> None:
    """The orders of magnitude that the paper prints, as a scale right of the last γ, down from the largest
    rate."""
    style = {"color": COLORS["printed"], "linewidth": 1.0, "linestyle": (0, (4, 3)), "marker": "_"}
    ax.plot([1.06 * last] * 2, [top - ORDERS, top], **style)
    place = {"ha": "right", "va": "top", "color": COLORS["printed"], "fontsize": 9.5}
    ax.text(1.04 * last, top, "paper: three orders\nof magnitude", **place)


def offsets(panels: Panels, margin: float, curves: Curves) -> plt.Figure:
    """log10 of the measured over each predicted rate, "PREDICTION.P" (S,), a row a network and set."""
    fig, ax = subplots(figsize=(7.2, 0.9 + 0.5 * len(panels)))
    ax.axvspan(-margin, margin, color="0.9")
    for row, suffix in enumerate(panels.values()):
        for place, (name, (words, mark, color)) in enumerate(MARKS.items()):
            values = curves[f"{name}.{suffix}"]
            height = np.full(len(values), -row - 0.12 * (place - 2))
            ax.plot(values, height, mark, color=color, markersize=5, label=words if row == 0 else None)
    ax.set_yticks([-row for row in range(len(panels))], list(titles(panels).values()))
    in_factors(ax.xaxis, (0.7, 1, 1.4, 2, 3, 4, 6, 10))
    ax.set_xlabel("measured over predicted critical rate")
    ax.set_title("Which prediction is nearest to where training breaks?")
    fig.legend(loc="outside lower center", ncols=3, fontsize=9.5)
    return fig


def hidden_alone(panels: Panels, curves: Curves) -> plt.Figure:
    """Loss by step, "all.P" and "hidden.P" (S, T), a line a restart, all of networks with batch norm."""
    rows = -(-len(panels) // 2)
    fig, axes = subplots(rows, 2, figsize=(7.4, 2.5 * rows + 0.5), sharex=True, sharey=True, squeeze=False)
    arms = (("all", "all weights", "--"), ("hidden", "hidden weights alone", "-"))
    for ax, (suffix, title) in zip(axes.flat, titles(panels).items()):
        for name, words, dash in arms:
            style = {"color": COLORS["batch"], "linewidth": 1.2, "linestyle": dash}
            for place, loss in enumerate(curves[f"{name}.{suffix}"]):
                ax.plot(loss, label=words if place == 0 else None, **style)
        ax.set(yscale="log")
        ax.set_title(title, fontsize=10.5)
    for ax in axes[-1]:
        ax.set_xlabel("step")
    for ax in axes[:, 0]:
        ax.set_ylabel("loss")
    handles, words = axes[0, 0].get_legend_handles_labels()
    fig.legend(handles, words, loc="outside lower center", ncols=2, fontsize=9.5)
    return fig


def without_batch_norm(variances: Sequence[float], measured: np.ndarray, curves: Curves) -> plt.Figure:
    """log10 of critical rates (S, V) against σ_w²; curves "variance", "from0" and "corrected" (1, fine)."""
    fig, ax = subplots(figsize=(6.2, 3.3))
    x = np.tile(variances, len(measured))
    ax.plot(x, measured.ravel(), "o", color=COLORS["none"], markersize=4, label="measured")
    for name in ("from0", "corrected"):
        words, dash, color = LINES[name]
        ax.plot(curves["variance"][0], curves[name][0], dash, color=color, label=words)
    ax.set(xlabel=r"variance of the first weights, $\sigma_w^2$", ylabel=r"learning rate $\eta$")
    in_powers(ax.yaxis)
    ax.set_title("Where does a network without batch norm break?")
    ax.legend(fontsize=9.5)
    return fig


def sides(names: Mapping[str, str], gammas: Sequence[float], largest: float, curves: Curves) -> plt.Figure:
    """log10 of critical rates in other settings, NAME (S, γ), over the line through the batch: a row a
    setting, names: setting -> words, a colour a γ. No rate above `largest` was tried, and what has none is
    an arrow there. curves: "gamma", "LINE" (1, fine), "below" (1, γ) that line at the γ of the settings."""
    fig, ax = subplots(figsize=(7.2, 1.4 + 0.5 * len(names)))
    ax.axvline(0, color=COLORS["theory"], linestyle=":", label="through the batch")
    printed = np.interp(gammas, curves["gamma"][0], (curves["from0"] - curves["through_batch"])[0])
    shades = plt.cm.viridis(np.linspace(0.0, 0.75, len(gammas)))
    for row, name in enumerate(names):
        for place, (gamma, shade) in enumerate(zip(gammas, shades)):
            found, height = curves[name][:, place], -row - 0.17 * (place - (len(gammas) - 1) / 2)
            for chosen, mark, limit in ((np.isfinite(found), "o", None), (np.isinf(found), ">", largest)):
                x = np.minimum(found[chosen], largest) - curves["below"][0, place]
                label = f"γ = {gamma:g}" if not row and not limit else None
                ax.plot(x, np.full(len(x), height), mark, color=shade, markersize=4.5, label=label)
            ax.plot([printed[place]], [height], "|", color=COLORS["printed"], markersize=6)
    ax.plot([], [], "|", color=COLORS["printed"], markersize=6, label="paper: η* as printed")
    ax.set_yticks([-row for row in range(len(names))], list(names.values()))
    in_factors(ax.xaxis, (0.5, 1, 2, 5, 10, 30, 100, 300, 1000))
    ax.set_xlabel("measured critical rate over that through the batch")
    ax.set_title("Where does training break when it is set otherwise?")
    fig.legend(loc="outside lower center", ncols=3, fontsize=9.7)
    return fig


def loss_map(panels: Panels, gammas: Sequence[float], losses: Curves, curves: Curves) -> plt.Figure:
    """log10 of the mean test loss, losses P (S, γ, rates), over γ and the rates "rates.P" (1, γ, rates);
    "boundary.P" (S, γ) as points, "from0.P" (1, γ) dashed, half of it dotted; grey: it exploded."""
    fig, axes = grid(panels)
    every = np.concatenate([np.log10(found.mean(axis=0)).ravel() for found in losses.values()])
    scale = dict(zip(("vmin", "vmax"), np.nanpercentile(every, [0, 95])))  # one for all panels
    for suffix, ax in axes.items():
        levels = curves[f"rates.{suffix}"][0]
        x = np.repeat(np.array(gammas)[:, None], levels.shape[1], 1)
        loss = np.log10(losses[suffix].mean(axis=0))
        lost = np.where(np.isfinite(loss), np.nan, 0.0)
        ax.pcolormesh(x, levels, lost, shading="nearest", cmap=ListedColormap(["#bbbbbb"]))
        painted = ax.pcolormesh(x, levels, loss, shading="nearest", cmap="viridis", **scale)
        printed = curves[f"from0.{suffix}"][0]
        for words, line, dash in (("η*", printed, "--"), ("η*/2", printed - np.log10(2), ":")):
            (drawn,) = ax.plot(gammas, line, dash, color="white", linewidth=1.6, label=f"paper: {words}")
            drawn.set_path_effects([Stroke(linewidth=3.2, foreground="black"), Normal()])
        found = curves[f"boundary.{suffix}"]
        style = {"color": "white", "markeredgecolor": "black", "markersize": 4}
        ax.plot(np.tile(gammas, len(found)), found.ravel(), "o", label="measured boundary", **style)
        ax.grid(False)
    bar = fig.colorbar(painted, ax=list(axes.values()), extend="max", aspect=40)
    bar.set_label(r"$\log_{10}$ of the test loss", fontsize=9.5)
    fig.legend(*ax.get_legend_handles_labels(), loc="outside lower center", ncols=3, fontsize=9.5)
    return fig


def after_epochs(
    gammas: Sequence[float], losses: np.ndarray, rates: np.ndarray, edges: np.ndarray, printed: np.ndarray
) -> plt.Figure:
    """Test losses (S, γ, rates) against the rates, log10 (γ, rates), a colour each γ; edges (γ,): log10 of
    the rates at which the short trainings break, as vertical lines; printed (γ,): log10 of the paper's η*,
    half of which is marked below."""
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


# ---- Each figure of the page, from the results of its run -----------------------------------------------


def _panels(results: Results) -> dict[tuple[str, str], str]:
    names = parameters_of(results).datasets
    return {(name, net): f"{net}.set{place}" for place, name in enumerate(names) for net in ("fc", "conv")}


def _draw_boundary(results: Results) -> plt.Figure:
    panels = _panels(results)
    measured = {suffix: results[f"boundary.{suffix}"] for suffix in panels.values()}
    return boundary(panels, parameters_of(results).gammas, measured, points_of(results, "boundary"))


def _draw_offsets(results: Results) -> plt.Figure:
    panels, found = _panels(results), points_of(results, "offsets")
    for name in ("readout", *LINES):
        found |= {f"{name}.{suffix}": results[f"offset.{name}.{suffix}"] for suffix in panels.values()}
    return offsets(panels, 0.15, found)


def _draw_hidden(results: Results) -> plt.Figure:
    return hidden_alone(_panels(results), points_of(results, "hidden"))


def _draw_sides(results: Results) -> plt.Figure:
    own = parameters_of(results)
    names = {
        "squared": "as above",
        "long": f"{own.long_steps} steps",
        "batch": f"batches of {own.other_batch}",
    }
    names |= {"full": "one full batch", "cross_entropy": "cross-entropy", "survives": "does not explode"}
    return sides(names, own.side_gammas, 2.0, points_of(results, "sides"))


def _draw_vanilla(results: Results) -> plt.Figure:
    return without_batch_norm(
        parameters_of(results).variances, results["vanilla"], points_of(results, "vanilla")
    )


def _draw_map(results: Results) -> plt.Figure:
    panels, curves = _panels(results), points_of(results, "map")
    losses = {suffix: results[f"map.{suffix}"] for suffix in panels.values()}
    curves |= {f"boundary.{suffix}": results[f"boundary.{suffix}"] for suffix in panels.values()}
    return loss_map(panels, parameters_of(results).gammas, losses, curves)


def _draw_epochs(results: Results) -> plt.Figure:
    own, found = parameters_of(results), points_of(results, "epochs")
    places = [own.gammas.index(gamma) for gamma in own.end_gammas]
    edges = results["boundary.fc.set0"].mean(axis=0)[places]
    printed = points_of(results, "map")["from0.fc.set0"][0, places]
    return after_epochs(own.end_gammas, found["losses"], found["rates"][0], edges, printed)


FIGURES = {
    "boundary": _draw_boundary,
    "offsets": _draw_offsets,
    "hidden": _draw_hidden,
    "sides": _draw_sides,
    "vanilla": _draw_vanilla,
    "map": _draw_map,
    "epochs": _draw_epochs,
}
