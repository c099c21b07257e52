"""Figures of the chapter on the transform."""

from __future__ import annotations

import math
from collections.abc import Sequence

import matplotlib.pyplot as plt
import numpy as np

from bnbook.figures import COLORS
from bnbook.plots.axes import name_ticks, points

INK = COLORS["theory"]  # every quantity here is batch norm's: marks and dashes tell them apart

EDGES = {"before": np.linspace(-9, 9, 145), "after": np.linspace(-4, 4, 81)}


def strips(**layers: np.ndarray) -> dict[str, np.ndarray]:
    """What `distribution` draws of the layers `before` and `after`, (examples, units) each: histograms
    (1, units, bins), means and standard deviations (1, units)."""
    found = {}
    for name, values in layers.items():
        columns = [np.histogram(column, EDGES[name], density=True)[0] for column in values.T]
        found |= {f"{name}.height": np.stack(columns)[None]}
        found |= {f"{name}.mean": values.mean(0)[None], f"{name}.deviation": values.std(0, ddof=1)[None]}
    return found


def distribution(curves: dict[str, np.ndarray]) -> plt.Figure:
    """The histograms of `strips`, scaled to one height; below each a dot and a bar, mean and deviation."""
    fig, axes = plt.subplots(1, 2, figsize=(7.2, 3.7), sharey=True)
    for ax, (name, edges) in zip(axes, EDGES.items()):
        heights, means, deviations = (curves[f"{name}.{what}"][0] for what in ("height", "mean", "deviation"))
        shades = plt.cm.cividis(np.linspace(0.0, 0.75, len(heights)))
        for k, (height, mean, spread) in enumerate(zip(heights, means, deviations)):
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
    axes[0].set_yticks(range(len(heights)), labels=[f"unit {k + 1}" for k in range(len(heights))])
    axes[1].set(title=r"after, with $\gamma=1$, $\beta=0$", xlabel=r"value of a unit, $\hat x$")
    return fig


def epsilon(ratio: np.ndarray, variance: np.ndarray, share: np.ndarray) -> plt.Figure:
    """Variance of x̂ and the gradient's share along it, (S, R), against σ²/ε, (R,)."""
    fig, ax = plt.subplots(figsize=(7.2, 3.2))
    fine = np.geomspace(ratio[0], ratio[-1], 97)
    for values, law, mark, dash, face, label in (
        (variance, fine / (1 + fine), "o", "-", INK, r"variance of $\hat x$"),
        (share, 1 / (1 + fine), "s", "--", "white", r"share of the gradient along $\hat x$ that passes"),
    ):
        ax.plot(fine, law, dash, color=INK, linewidth=1.2, zorder=2)
        style = {"color": INK, "markerfacecolor": face, "markersize": 5, "zorder": 3}
        style |= {"clip_on": False, "label": label}
        ax.plot(ratio, np.mean(values, axis=0), mark, **style)
    ax.axvline(1, color="#777777", linewidth=1, linestyle=":")
    words = {"ha": "center", "va": "center", "color": "#444444", "fontsize": 9.5}
    ax.text(10**-2.3, 0.5, "stretched,\nnot\nnormalized", **words)
    ax.text(10**5.5, 0.72, "normalized", **words)
    ax.set(xscale="log", ylim=(-0.04, 1.06), xlim=(ratio[0], ratio[-1]))
    ax.set(xlabel=r"variance of the unit over the constant, $\sigma^2/\epsilon$", ylabel="fraction")
    ax.legend(loc="center right", bbox_to_anchor=(1.0, 0.42))
    return fig


def gradients(errors: dict[str, np.ndarray], shown: int = 1500) -> plt.Figure:
    """One dot per instance of each formula, relative errors (S, instances); `shown` of them at random."""
    fig, ax = plt.subplots(figsize=(7.2, 3.7))
    symbols = (r"\hat x", r"\gamma", r"\beta", r"\sigma^2", r"\mu", "x")
    scatter = np.random.default_rng(0)
    for place, values in enumerate(reversed(errors.values())):
        some = scatter.permutation(values.ravel())[:shown]
        height = place + 0.27 * scatter.uniform(-1, 1, len(some))
        ax.plot(some, height, ".", color=COLORS["printed"], markersize=2.4, alpha=0.45, rasterized=True)
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


def population_variance(
    sizes: Sequence[int], corrected: np.ndarray, deviation: np.ndarray, uncorrected: np.ndarray
) -> plt.Figure:
    """Three estimates over the population's value, (S, sizes), with what theory says of Gaussian units."""
    fig, ax = plt.subplots(figsize=(7.2, 3.6))
    fine = np.geomspace(2, 512, 200)
    c4 = [math.sqrt(2 / (m - 1)) * math.exp(math.lgamma(m / 2) - math.lgamma((m - 1) / 2)) for m in fine]
    for values, theory, mark, face, label in (
        (corrected, 1 + 0 * fine, "o", INK, r"$\frac{m}{m-1}\,\sigma_{\mathcal{B}}^2$, corrected variance"),
        (deviation, c4, "^", INK, r"$\sqrt{\frac{m}{m-1}}\;\sigma_{\mathcal{B}}$, its square root"),
        (uncorrected, (fine - 1) / fine, "s", "white", r"$\sigma_{\mathcal{B}}^2$, variance of the batch"),
    ):
        ax.plot(fine, theory, color=INK, linewidth=1.1)
        points(ax, sizes, values, mark, color=INK, markerfacecolor=face, label=label)
    ax.set(
        xscale="log", xlabel="batch size $m$", ylabel="mean estimate / population value", ylim=(0.45, 1.06)
    )
    name_ticks(ax.set_xticks, [2, 4, 8, 16, 32, 64, 128, 512])
    ax.legend(loc="lower right")
    return fig


def inference_gap(sizes: Sequence[int], gap: np.ndarray, running_gap: np.ndarray) -> plt.Figure:
    """Root mean square differences of two outputs, (S, sizes), against the batch size."""
    fig, ax = plt.subplots(figsize=(7.2, 3.6))
    leading = np.sqrt(1.5 / np.array(sizes))
    theory = {"color": "#555555", "linewidth": 1.1, "linestyle": "--"}
    ax.plot(sizes, leading, label="theory for large $m$", **theory)
    ax.plot(sizes, leading * math.sqrt(0.1 / 1.9), **theory)
    points(ax, sizes, gap, "o", color=INK, label="training against inference")
    points(
        ax,
        sizes,
        running_gap,
        "s",
        color=INK,
        markerfacecolor="white",
        label="running average against population",
    )
    ax.set(xscale="log", yscale="log", xlabel="batch size $m$")
    ax.set(ylabel="difference of the outputs\n(root mean square, std. deviations)")
    name_ticks(ax.set_xticks, sizes)
    name_ticks(ax.set_yticks, [0.01, 0.03, 0.1, 0.3, 1])
    ax.legend(loc="lower left")
    return fig
