"""What does it compute? Random and nasty units in double precision, on which batch norm's formulas are on trial, and
the drawings."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

import matplotlib.pyplot as plt
import numpy as np
import torch
from torch import Generator, Tensor

from bnbook.figures import COLORS
from bnbook.plots.layout import subplots
from bnbook.plots.panels import Panel, compare

# ---- Random units of every size, with difficult ones among them, and the errors that a formula makes on them ----

D = torch.float64


def generators(seeds: Iterable[int], section: int) -> list[Generator]:
    """Random numbers for each seed in one section of the chapter."""
    return [Generator().manual_seed(1000 * section + seed) for seed in seeds]


def power_of_ten(low: float, high: float, count: int, g: Generator) -> Tensor:
    """10 to a uniform power, (count,)."""
    return 10 ** (low + (high - low) * torch.rand(count, generator=g, dtype=D))


def sign(count: int, g: Generator) -> Tensor:
    """1 or -1, (count,)."""
    return 1 - 2 * torch.randint(2, (count,), generator=g)


def draw_units(m: int, count: int, g: Generator) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Units of every size, a quarter of them difficult: x (m, count), γ, β, ε (count,).

    Of eight units in a row one has almost no variance, one an outlier, one half its batch equal, one heavy
    tails.
    """
    spread = power_of_ten(-3, 3, count, g)
    gamma, beta = sign(count, g) * power_of_ten(-2, 2, count, g), torch.randn(count, generator=g, dtype=D)
    eps = power_of_ten(-12, -1, count, g)
    z = torch.randn(m, count, generator=g, dtype=D)
    kind = torch.arange(count) % 8
    spread[kind == 0], eps[kind == 0] = 1e-8, 1e-5
    z[0, kind == 1] += 1e3
    z[: m // 2, kind == 2] = z[0, kind == 2]
    z = torch.where(kind == 3, z**3, z)
    z = (z - z.mean(0)) / z.std(0, correction=0)  # so that the spread is the standard deviation of the batch
    offset = sign(count, g) * power_of_ten(-1, 3, count, g)
    return spread * (z + offset), gamma, beta, eps


def by_seed(trials: Iterable[Iterable[dict[str, Tensor]]]) -> dict[str, np.ndarray]:
    """The size of every unit's error, {name: (S, units of all trials)}, from each seed's trials.

    A trial gives an error for each unit, (C, ...), or for each example too, (m, C): of these the largest
    counts.
    """
    rows = [list(of_seed) for of_seed in trials]

    def sizes(error: Tensor) -> np.ndarray:
        return (error.abs().amax(0) if error.ndim > 1 else error.abs()).flatten().numpy()

    return {
        name: np.array([np.concatenate([sizes(trial[name]) for trial in row]) for row in rows])
        for name in rows[0][0]
    }


def largest(errors: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The largest error of each seed, {name: (S,)}."""
    return {name: sizes.max(axis=1) for name, sizes in errors.items()}


# ---- What the page's cells draw and what they measure at -----------------------------------------------------

EDGES = {"before": np.linspace(-9, 9, 145), "after": np.linspace(-4, 4, 81)}
#: Batch sizes for the bias of the variance, and for the gap between training and inference.
SIZES, GAP_SIZES = [2, 3, 4, 6, 8, 16, 32, 64, 128, 512], [4, 8, 16, 32, 64, 128, 256, 512]
#: Five units from strokes, two intensities and noise.
MIXED = torch.tensor(
    [
        [0.0, 0.55, 0.1, 0.1],
        [4.0, 0.0, 0.0, 0.9],
        [0.1, 0.0, -0.9, 0.3],
        [0.3, 0.2, 0.0, 0.35],
        [0.0, -0.6, 0.9, 1.6],
    ],
    dtype=D,
)
OFFSETS = torch.tensor([-5.5, 1.0, -0.5, 5.0, -3.5], dtype=D)
#: σ²/ε of the units on which the constant is tried.
RATIO = torch.logspace(-4, 8, 97, dtype=D)
#: What the six formulas differentiate by, in their order.
FORMULAS = ("x_hat", "gamma", "beta", "variance", "mean", "x")


# ---- Figures, of recorded results alone -------------------------------------------------------------------

INK = COLORS["theory"]  # every quantity here is batch norm's: marks and dashes tell them apart
Recorded = Mapping[str, np.ndarray]


def distribution(results: Recorded) -> plt.Figure:
    """The histograms of `strips`, scaled to one height; below each a dot and a bar, mean and deviation."""
    fig, axes = subplots(1, 2, figsize=(7.2, 3.7), sharey=True)
    for ax, (name, edges) in zip(axes, EDGES.items()):
        of_units = (
            results[f"curve.distribution.{name}.{part}"][0] for part in ("height", "mean", "deviation")
        )
        shades = plt.cm.cividis(np.linspace(0.0, 0.75, 5))
        for k, (height, mean, spread) in enumerate(zip(*of_units)):
            top = k + 0.8 * height / height.max()
            middle = (edges[1:] + edges[:-1]) / 2
            ax.fill_between(middle, k, top, color=shades[k], alpha=0.8, linewidth=0, zorder=3)
            bar = {"color": shades[k], "linewidth": 2.5, "solid_capstyle": "butt"}
            ax.plot([mean - spread, mean + spread], [k - 0.08] * 2, **bar)
            ax.plot(mean, k - 0.08, "o", color=shades[k], markersize=5)
        ax.grid(axis="y", visible=False)
        ax.spines["left"].set_visible(False)
        ax.tick_params(axis="y", length=0)
    axes[0].set(title="before", xlabel="value of a unit, $x$", xticks=(-8, -4, 0, 4, 8))
    axes[0].set_yticks(range(5), labels=[f"unit {k + 1}" for k in range(5)])
    axes[1].set(title=r"after, with $\gamma=1$, $\beta=0$", xlabel=r"value of a unit, $\hat x$")
    return fig


def epsilon(results: Recorded) -> plt.Figure:
    """Variance of x̂ and the gradient's share along it, (S, R), against σ²/ε of every fourth unit."""
    fine, ends = RATIO.numpy(), (-0.04, 1.06)
    arms = {"one": dict(x=[1, 1], y=ends, color="#777777", look=":", linewidth=1)}
    for name, law, mark, dash, face, label in (
        ("variance", fine / (1 + fine), "o", "-", INK, r"variance of $\hat x$"),
        ("share", 1 / (1 + fine), "s", "--", "white", r"share of the gradient along $\hat x$ that passes"),
    ):
        arms[f"law of {name}"] = dict(x=fine, y=law, look=dash, linewidth=1.2)
        points = dict(x=fine[::4], y=f"curve.epsilon.{name}", by="line", look=mark, clip_on=False)
        arms[name] = points | dict(markerfacecolor=face, zorder=3, label=label)

    def told(ax: plt.Axes) -> None:
        words = dict(ha="center", va="center", color="#444444", fontsize=9.5)
        ax.text(10**-2.3, 0.5, "stretched,\nnot\nnormalized", **words)
        ax.text(10**5.5, 0.72, "normalized", **words)

    axes = dict(log="x", xlim=(fine[0], fine[-1]), ylim=ends, ylabel="fraction", also=told)
    axes |= dict(xlabel=r"variance of the unit over the constant, $\sigma^2/\epsilon$")
    return compare(results, [Panel(**axes)], arms, figsize=(7.2, 3.2))


def gradients(results: Recorded) -> plt.Figure:
    """The errors of each formula, (1, quantiles), a dot for each quantile."""
    fig, ax = subplots(figsize=(7.2, 3.7))
    symbols = (r"\hat x", r"\gamma", r"\beta", r"\sigma^2", r"\mu", "x")
    scatter = np.random.default_rng(0)
    for place, name in enumerate(reversed(FORMULAS)):
        some = results[f"curve.gradients.{name}"][0]
        height = place + 0.27 * scatter.uniform(-1, 1, len(some))
        ax.plot(some, height, ".", color=COLORS["printed"], markersize=3.2, alpha=0.6, rasterized=True)
        exact = f"{np.mean(some == 0):.0%}".replace("%", " %")
        ax.text(2e-20, place, exact, ha="center", va="center", color="#333333")
    ax.axvspan(1e-21, 10**-18.6, color="#f0f0f0", linewidth=0)
    ax.axvline(1e-10, color=INK, linewidth=1.6)
    ax.axvline(2**-52, color="#555555", linewidth=1.1, linestyle="--")
    for place, side, color, words in (
        (2e-20, "center", "#333333", "no error"),
        (3e-16, "left", "#444444", "machine precision"),
        (7e-11, "right", INK, "tolerance"),
    ):
        ax.text(place, 5.72, words, ha=side, va="center", color=color, fontsize=9.5)
    ax.set(xscale="log", xlim=(1e-21, 1e-9), ylim=(-0.5, 6.05))
    ax.set_xlabel("error relative to the size of the formula's terms")
    ax.set_xticks([1e-18, 1e-16, 1e-14, 1e-12, 1e-10])
    labels = [rf"$\partial\ell/\partial {symbol}$" for symbol in reversed(symbols)]
    ax.set_yticks(range(6), labels=labels, fontsize=12)
    ax.tick_params(axis="y", length=0)
    ax.grid(axis="y", visible=False)
    return fig


def population_variance(results: Recorded) -> plt.Figure:
    """Three estimates over the population's value, (S, sizes), with what theory says of Gaussian units."""
    fine, arms = np.geomspace(2, 512, 200), {}
    c4 = [math.sqrt(2 / (m - 1)) * math.exp(math.lgamma(m / 2) - math.lgamma((m - 1) / 2)) for m in fine]
    corrected, root = (
        r"$\frac{m}{m-1}\,\sigma_{\mathcal{B}}^2$",
        r"$\sqrt{\frac{m}{m-1}}\;\sigma_{\mathcal{B}}$",
    )
    batch = r"$\sigma_{\mathcal{B}}^2$"
    for name, theory, mark, face, label in (
        ("variance_ratio.corrected", 1 + 0 * fine, "o", INK, f"{corrected}, corrected variance"),
        ("deviation_ratio.corrected", c4, "^", INK, f"{root}, its square root"),
        ("variance_ratio.uncorrected", (fine - 1) / fine, "s", "white", f"{batch}, variance of the batch"),
    ):
        arms[f"theory of {name}"] = dict(x=fine, y=np.array(theory), color=INK, linewidth=1.1)
        arms[name] = dict(y=name, color=INK, look=mark, markerfacecolor=face, label=label)
    words = dict(
        xlabel="batch size $m$", ylabel="mean estimate / population value", ylim=(0.45, 1.06), log="x"
    )
    ticks = [2, 4, 8, 16, 32, 64, 128, 512]
    return compare(results, [Panel(x=SIZES, by="points", ticks=ticks, **words)], arms, figsize=(7.2, 3.6))


def inference_gap(results: Recorded) -> plt.Figure:
    """Root mean square differences of two outputs, (S, sizes), against the batch size."""
    leading = np.sqrt(1.5 / np.array(GAP_SIZES))
    theory = dict(color="#555555", linewidth=1.1, look="--")
    arms = {"theory": dict(y=leading, label="theory for large $m$", **theory)}
    arms["running"] = dict(y=leading * math.sqrt(0.1 / 1.9), **theory)
    for name, mark, face, label in (
        ("inference_gap", "o", INK, "training against inference"),
        ("running_gap", "s", "white", "running average against population"),
    ):
        arms[name] = dict(y=name, color=INK, look=mark, markerfacecolor=face, label=label)
    words = dict(
        xlabel="batch size $m$", ylabel="difference of the outputs\n(root mean square, std. deviations)"
    )
    panel = Panel(
        x=GAP_SIZES, ticks=GAP_SIZES, yticks=(0.01, 0.03, 0.1, 0.3, 1), by="points", log="xy", **words
    )
    return compare(results, [panel], arms, figsize=(7.2, 3.6))
