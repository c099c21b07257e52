"""Must it be the variance? Division by other norms: what it does to a unit, and what came of it in the linear
and the VGG network."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
import torch
from torch import Tensor

from bnbook.chapters import vgg as networks
from bnbook.deep_linear import LinearArm, spread_probes
from bnbook.deep_linear import summaries as of
from bnbook.figures import COLORS, LABELS, parameters_of, points_of
from bnbook.normalizers import make_normalizer
from bnbook.plots import printed
from bnbook.plots.axes import points, power
from bnbook.plots.layout import WIDTH, is_narrow, subplots
from bnbook.plots.names import letters, marks
from bnbook.plots.panels import fans, legend_below, line_with_band, panels, without_minor_ticks
from bnbook.probes import distributions
from bnbook.probes.activations import moment_change
from bnbook.probes.over_steps import over_training, share_of_training
from bookpress.results import Results

# ---- What the ℓp normalizations make of one unit whose mean moves away from zero --------------------------

LP = ("l1", "l2", "linf")


def average_norm(values: Tensor, norm: str) -> Tensor:
    """(mean |x|^p)^(1/p) of each unit, max |x| for ℓ∞, (m, units) -> (units,)."""
    if norm == "linf":
        return values.abs().amax(0)
    return values.abs().mean(0) if norm == "l1" else (values**2).mean(0).sqrt()


def moved_gaussian(offsets: Tensor, values: int = 4096) -> Tensor:
    """Gaussian values of variance 1, one unit for each mean of `offsets`, (m, units)."""
    drawn = torch.randn(values, 1, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    return (drawn - drawn.mean(0)) / drawn.std(0, correction=0) + offsets


def outputs(norm: str, x: Tensor) -> dict[str, np.ndarray]:
    """size, deviation: average ℓp norm and standard deviation of what the layer makes of x, (1, units);
    output_norm: largest difference of that size from the centred over the uncentred norm of x; centred_norm:
    largest difference from 1 where x is centred first."""
    layer = make_normalizer(norm, x.shape[1], 0, eps=1e-14).double()
    y, centred = layer(x).detach(), x - x.mean(0)
    found = {"deviation": y.std(0, correction=0)[None].numpy()}
    if norm in LP:
        size, other = average_norm(y, norm), average_norm(layer(centred).detach(), norm)
        ratio = average_norm(centred, norm) / average_norm(x, norm)
        found["size"] = size[None].numpy()
        found["output_norm"] = np.array([(size - ratio).abs().max().item()])
        found["centred_norm"] = np.array([(other - 1).abs().max().item()])
    return found


def l2_from_batch(x: Tensor) -> float:
    """Largest difference between ℓ2 normalization and batch norm on centred input."""
    centred = x - x.mean(0)
    layers = (make_normalizer(norm, x.shape[1], 0).double() for norm in ("l2", "batch"))
    one, other = (layer(centred).detach() for layer in layers)
    return float((one - other).abs().max())


def largest_of(m: int) -> float:
    """E max |z| of m standard Gaussian values: the integral of 1 - P(|z| < t)^m."""
    t = np.linspace(0, 12, 24001)
    inside = np.array([math.erf(value / math.sqrt(2)) for value in t])
    return float((1 - inside**m).sum() * (t[1] - t[0]))


def matched_rates(rate: float, examples: int) -> dict[str, float]:
    """The rate at which batch norm starts with the same kernel as ℓ1 and ℓ∞ at `rate`: η c², c the standard
    deviation of what they make of a Gaussian unit of mean zero, √(π/2) and 1/M."""
    stretch = {"l1": math.sqrt(math.pi / 2), "linf": 1 / largest_of(examples)}
    return {norm: float(f"{rate * factor**2:.3g}") for norm, factor in stretch.items()}


# ---- Numbers of the deep linear network with ℓp normalizations --------------------------------------------

Arrays = dict[str, np.ndarray]
EXAMPLES = LinearArm.examples
MEASURES = ("loss_range", "gradient_change", "smoothness")


def linear_numbers(arm: LinearArm, run: Arrays) -> Arrays:
    """mean_loss, final_loss: share of the loss of answering zero, over all steps and at the end; diverged;
    the medians over the training of MEASURES and their natural logarithms, log_NAME; mean_change,
    variance_change: of what a layer hands on, between twenty even parts of the training, median over them."""
    found = {
        "mean_loss": of.mean_log_loss(arm, run),
        "final_loss": of.loss_share(arm, run)[:, -1],
        "diverged": of.diverged(run),
    }
    seen = of.landscape(arm, run)
    for name in MEASURES:
        found[name] = over_training(seen[name], run["probe_step"])
        with np.errstate(divide="ignore"):
            found[f"log_{name}"] = np.log(found[name])
    for name, values in zip(("mean_change", "variance_change"), moved(arm, run)):
        found[name] = lived(values)
    return found


def moved(arm: LinearArm, run: Arrays) -> np.ndarray:
    """Change of mean and variance between even parts of the training, mean over all units: (2, S, T)."""
    steps = run["probe_step"][0]
    regular = np.isin(steps, np.arange(0, steps[-1] + 1, max(1, arm.steps // 20)))
    handed = [run[f"handed_on_{name}"][:, regular, :-1] for name in ("mean", "deviation")]
    mean, deviation = (values.reshape(*values.shape[:2], -1).astype(float) for values in handed)
    with np.errstate(invalid="ignore", over="ignore"):  # shortly before a divergence
        return np.moveaxis(np.array([moment_change(m, v**2) for m, v in zip(mean, deviation)]), 1, 0)


def smoother(plain: tuple[LinearArm, Arrays], other: tuple[LinearArm, Arrays]) -> np.ndarray:
    """Share of the steps at which the other has the smaller β, as far as the plain network lived, (S,)."""
    one, two = (of.landscape(*pair)["smoothness"] for pair in (plain, other))
    return share_of_training(one > two, np.isfinite(plain[1]["start_loss"]), plain[1]["probe_step"][0])


def lived(values: np.ndarray) -> np.ndarray:
    """Median over all axes but the first, NaN (after a divergence, or a unit without spread) left out."""
    rows = np.asarray(values, dtype=float).reshape(len(values), -1)
    return np.array([np.median(row[~np.isnan(row)]) if (~np.isnan(row)).any() else np.nan for row in rows])


# ---- Shapes and moments of what the VGG network's rectifiers receive, over its checkpoints; (S,) each -----


def shape_numbers(run: Arrays, layers: Sequence[int]) -> Arrays:
    """skewness, kurtosis: sizes, medians over units, layers and checkpoints; normal_distance: largest
    difference from a Gaussian's distribution function; variance_spread, variance_spread_start: half the range
    from 16 % to 84 % of ln v over units and layers, median over the checkpoints and before the first update;
    variance_start, variance_end: of the usual unit; mean_at_start: largest |mean| of a unit in its standard
    deviations before the first update; distance_moved: between checkpoints, not divided by a spread."""
    seen = distributions.shape(run["histogram"])
    units = np.concatenate([run[f"variance_{k}"] for k in layers], axis=-1)  # (S, E, units)
    means = np.concatenate([run[f"mean_{k}"] for k in layers], axis=-1)
    unequal = np.where(np.isfinite(units).all(-1), distributions.spread(units), np.nan)
    with np.errstate(invalid="ignore", divide="ignore"):
        away = np.abs(means[:, 0]) / np.sqrt(units[:, 0])
    return {
        "skewness": lived(np.abs(seen.skewness)),
        "kurtosis": lived(np.abs(seen.excess_kurtosis)),
        "normal_distance": lived(seen.normal_distance),
        "variance_spread": lived(unequal),
        "variance_spread_start": unequal[:, 0],
        "variance_start": np.median(units[:, 0], axis=-1),
        "variance_end": np.median(units[:, -1], axis=-1),
        "mean_at_start": np.nanmax(away, axis=-1),
        "distance_moved": lived(distributions.movement(np.moveaxis(run["histogram"], 1, 3))),
    }


def steadiness(moves: Mapping[str, np.ndarray], speeds: Mapping[str, np.ndarray]) -> float:
    """Rank correlation over networks of how little one moves with how fast it trains, means over seeds."""
    still = -np.array([moves[norm].mean() for norm in moves])
    fast = np.array([speeds[norm].mean() for norm in moves])
    return float(np.corrcoef(np.argsort(np.argsort(still)), np.argsort(np.argsort(fast)))[0, 1])


# ---- Figures ----------------------------------------------------------------------------------------------

Curves = Mapping[str, np.ndarray]
NAMES = LABELS | {"none": "no normalization", "batch": "batch norm"}
NORMS = ("none", "batch", "l1", "l2", "linf")


def division(curves: Curves, offsets: Sequence[float]) -> plt.Figure:
    """Average norm and deviation of the output by the input's mean: size.NORM, deviation.NORM (1, X)."""
    fig, axes = subplots(1, 2, figsize=(7.4, 3.0), sharex=True)
    titles = {"size": "average ℓp norm of the output", "deviation": "standard deviation of the output"}
    for ax, (name, title) in zip(axes, titles.items()):
        for norm in (norm for norm in NORMS if f"{name}.{norm}" in curves):
            ax.plot(offsets, curves[f"{name}.{norm}"][0], color=COLORS[norm], label=NAMES[norm])
        ax.set(title=title, xlabel="mean of the input, in standard deviations", ylim=(0, 1.35))
        ax.legend(fontsize=letters(ax))
    return fig


def performance(
    vgg: Curves, steps: Sequence[int], linear: Curves, linear_steps: Sequence[float], chance: float
) -> plt.Figure:
    """Left batch accuracy in per cent of the VGG network, right loss of the linear one: NORM (1, 3, X)."""
    fig, axes = subplots(1, 2, figsize=(7.6, 3.6))
    for ax, x, curves in zip(axes, (steps, linear_steps), (vgg, linear)):
        for norm in NORMS:
            line_with_band(ax, x, curves[norm], color=COLORS[norm], label=NAMES[norm])
        ax.set(xlabel="training step")
    axes[0].set(title="VGG", ylabel="training accuracy (%)", ylim=(0, 102))
    marks(axes[0], y={"guessing": chance})
    axes[1].set(title="deep linear", ylabel="loss, share of answering zero")
    axes[1].set(xscale="log", yscale="log", ylim=(0.02, 3))
    legend_below(fig, axes[0], len(NORMS))
    return fig


def matched(curves: Curves, steps: Sequence[float], rates: Mapping[str, float], paper: float) -> plt.Figure:
    """A panel a norm: its loss NORM beside batch norm's, batch, and that at the matched rate, batch.NORM."""
    fig, axes = subplots(1, len(rates), figsize=(8.2, 3.3), sharey=True)
    for ax, (norm, rate) in zip(axes, rates.items()):
        line_with_band(ax, steps, curves[norm], color=COLORS[norm], label=f"{NAMES[norm]}, {power(paper)}")
        style = dict(color=COLORS["batch"])
        if rate != paper:
            label = f"batch norm, {power(rate)}"
            line_with_band(ax, steps, curves[f"batch.{norm}"], label=label, **style)
            style["linestyle"] = ":"
        line_with_band(ax, steps, curves["batch"], label=f"batch norm, {power(paper)}", **style)
        ax.set(xscale="log", yscale="log", xlabel="training step", title=f"{NAMES[norm]} at {power(paper)}")
        ax.legend(fontsize=letters(ax), loc="lower left")
    axes[0].set_ylabel("loss, share of answering zero")
    return without_minor_ticks(fig)


def landscape(curves: Curves, x: Sequence[float]) -> plt.Figure:
    """Above the range of the loss, from low.NORM to high.NORM (1, P), their logarithms, a panel a norm; below
    gradient_change.NORM and smoothness.NORM (1, 3, P)."""
    fig, upper, lower = _two_rows()
    middle = np.nanmedian(np.asarray(curves["high.batch"], dtype=float))
    for ax, norm in zip(upper, NORMS):
        edges = (np.asarray(curves[f"{edge}.{norm}"], dtype=float)[0] for edge in ("low", "high"))
        low, high = (np.exp(np.minimum(edge, middle + 14)) for edge in edges)  # about to overflow
        ax.plot(x, high - low, color=COLORS[norm])  # as a band on this axis its width would be no range
        ax.set(xscale="log", yscale="log")
        ax.set_title(NAMES[norm], fontsize=10.5)
    upper[0].set_ylabel("range of\nthe loss")
    titles = {"gradient_change": "change of the gradient", "smoothness": "effective β"}
    for ax, (name, title) in zip(lower, titles.items()):
        for norm in NORMS:
            line_with_band(ax, x, curves[f"{name}.{norm}"], color=COLORS[norm], label=NAMES[norm])
        usual = np.nanmedian(np.asarray(curves[f"{name}.batch"], dtype=float)[0, 1])
        bottom, top = ax.get_ylim()
        ax.set(xscale="log", yscale="log", title=title, xlabel="training step")
        ax.set_ylim(max(ax.get_ylim()[0], usual / 1e5), min(top, usual * 1e6))
    legend_below(fig, lower[0], len(NORMS))
    return without_minor_ticks(fig)


def _two_rows() -> tuple[plt.Figure, Sequence[plt.Axes], Sequence[plt.Axes]]:
    """A narrow panel for each norm, of one scale, and two below them; on a phone the two stand below each other."""
    if is_narrow():
        fig = plt.figure(figsize=(WIDTH, 8.6))
        first, *below = fig.add_gridspec(3, 1, height_ratios=(2, 1, 1))
        upper, lower = (
            list(first.subgridspec(2, 3).subplots(sharey=True).flat),
            [fig.add_subplot(each) for each in below],
        )
        upper.pop().remove()  # five norms
        return fig, upper, lower
    fig = plt.figure(figsize=(8.4, 5.4))
    rows = fig.add_gridspec(2, 1, height_ratios=(1, 1.25))
    return fig, rows[0].subgridspec(1, len(NORMS)).subplots(sharey=True), rows[1].subgridspec(1, 2).subplots()


def by_rate(speeds: Mapping[str, np.ndarray], rates: Sequence[float]) -> plt.Figure:
    """Accuracy of the VGG network over its first steps in per cent, NORM (S, rates)."""
    fig, ax = subplots(figsize=(6.2, 3.3))
    for place, norm in enumerate(NORMS):
        beside = np.array(rates) * 1.03 ** (place - 2)
        style = dict(color=COLORS[norm], label=NAMES[norm], markersize=4, capsize=2)
        points(ax, beside, speeds[norm], "o-", **style)
    ax.set(xscale="log", xlabel="learning rate", ylabel="mean batch accuracy (%)")
    ax.set_xticks(rates, [f"{rate:g}" for rate in rates])
    ax.set_title("Does a larger learning rate change the order?")
    marks(ax, x=printed.RATE)
    legend_below(fig, ax, len(NORMS))
    return without_minor_ticks(fig)


# ---- Each figure of the page, from the results of its run -----------------------------------------------


def _draw_division(results: Results) -> plt.Figure:
    return division(points_of(results, "division"), np.linspace(0, 3, 31))


def _linear_steps(results: Results) -> np.ndarray:
    """The steps at which a loss of the linear network is drawn."""
    x = np.maximum(LinearArm(steps=parameters_of(results).linear_steps).loss_steps(), 0.7)
    return x[np.unique(np.searchsorted(x, np.geomspace(0.7, x[-1], 110)))]


def _draw_performance(results: Results) -> plt.Figure:
    found = points_of(results, "performance")
    vgg, linear = ({norm: found[f"{side}.{norm}"] for norm in NORMS} for side in ("vgg", "linear"))
    steps = networks.batch_steps(parameters_of(results).steps)
    return performance(vgg, steps, linear, _linear_steps(results), 100 / CLASSES)


def _draw_matched(results: Results) -> plt.Figure:
    rates = {"l2": PAPER} | {norm: results[f"matched_rate.{norm}"][0] for norm in ("l1", "linf")}
    return matched(points_of(results, "matched"), _linear_steps(results), rates, PAPER)


def _draw_vgg(results: Results) -> plt.Figure:
    return landscape(points_of(results, "vgg"), np.maximum(_probe_steps(results), 0.7))


def _probe_steps(results: Results) -> Sequence[int]:
    own = parameters_of(results)
    return networks.of_ladder(("none",), own.width, results.header["parameters"])["none"].probe_steps


def _draw_linear(results: Results) -> plt.Figure:
    x = np.maximum(spread_probes(parameters_of(results).linear_steps), 0.7)
    return landscape(points_of(results, "linear"), x)


def _draw_histograms(results: Results) -> plt.Figure:
    own = parameters_of(results)
    steps = networks.of_ladder(("none",), own.width, results.header["parameters"])["none"].checkpoints()
    rows = [f"convolution {layer}" for layer in networks.PLACED]
    return fans(points_of(results, "histograms"), steps, rows, NAMES)


def _draw_linear_histograms(results: Results) -> plt.Figure:
    own = parameters_of(results)
    layers = (1, own.linear_depth // 2 + 1, own.linear_depth - 1)  # behind the last nothing normalizes
    rows = [f"layer {layer}" for layer in layers]
    return fans(points_of(results, "linear-histograms"), spread_probes(own.linear_steps), rows, NAMES)


def _draw_shift(results: Results) -> plt.Figure:
    titles = {
        f"update_{moment}_{place}": f"{moment},\n{words}"
        for moment in networks.MOMENTS
        for place, words in networks.WORDS.items()
    }
    x = np.maximum(_probe_steps(results), 0.7)
    return panels(points_of(results, "shift"), x, titles, NORMS, log="xy", labels=NAMES)


def _draw_rates(results: Results) -> plt.Figure:
    own = parameters_of(results)
    rates = sorted({*own.sweep_rates, own.learning_rate})
    tags = [f"lr{rate:g}".replace(".", "_") for rate in rates]
    found = {
        norm: np.stack([100 * results[f"sweep_speed.{tag}.{norm}"] for tag in tags], 1) for norm in NORMS
    }
    return by_rate(found, rates)


PAPER, CLASSES = 1e-6, 10  # the deep linear network's rate; classes of every set that the page may be run on
FIGURES = {
    "division": _draw_division,
    "performance": _draw_performance,
    "matched": _draw_matched,
    "vgg": _draw_vgg,
    "linear": _draw_linear,
    "histograms": _draw_histograms,
    "linear-histograms": _draw_linear_histograms,
    "shift": _draw_shift,
    "rates": _draw_rates,
}
