"""Figures of the chapters on theorems."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np

from bnbook.figures import COLORS
from bnbook.studies.theorems import minima
from bnbook.studies.theorems.margins import EDGES, TOLERANCE

FIRST = int(np.flatnonzero(EDGES == -TOLERANCE)[0])  # first bin without violations


def draw_margins(tallies: Mapping[str, np.ndarray], rows: Mapping[str, tuple[str, str]]) -> plt.Figure:
    """One histogram per row: violated bounds in red, the others grey (printed) or green (corrected).

    tallies: counts (S, bins of EDGES) by name; rows: name -> label and "printed" or "corrected". Heights are
    square roots of counts, so that a handful of violations among thousands can be seen.
    """
    fig, ax = plt.subplots(figsize=(7.2, 0.62 * len(rows) + 0.9))
    edges = np.delete(EDGES, FIRST)
    style = {"fill": True, "linewidth": 0, "zorder": 3}
    for place, (name, (_, form)) in enumerate(reversed(rows.items())):
        counts = np.asarray(tallies[name]).sum(axis=0)
        none = np.zeros(FIRST - 1)
        bad, good = np.concatenate([counts[:FIRST], none]), np.concatenate([none, counts[FIRST:]])
        total = np.sqrt(bad + good)
        total *= 0.8 / total.max()
        red = total * np.divide(bad, bad + good, out=np.zeros(len(bad)), where=bad + good > 0)
        for below, above, color in ((0 * red, red, COLORS["wrong"]), (red, total, COLORS[form])):
            above = np.where(above > below, place + above, np.nan)  # no outline of nothing
            ax.stairs(above, edges, baseline=place + below, color=color, **style)
        ax.axhline(place, color="#cccccc", linewidth=0.7, zorder=1)
        share = bad.sum() / counts.sum()
        words = f"{100 * share:.{0 if share >= 0.1 else 1}f} % violated" if share else "none violated"
        ink = "#222222" if share else COLORS[form]
        ax.text(1.05, place + 0.2, words, va="center", color=ink, fontsize=10)
    ax.axvline(0, color="#222222", linewidth=1, zorder=2)
    ax.set_yticks(np.arange(len(rows)) + 0.2, labels=[label for label, _ in reversed(rows.values())])
    ax.set(xlim=(-1.03, 1.03), ylim=(-0.1, len(rows)), xticks=(-1, -0.5, 0, 0.5, 1))
    ax.set_xlabel("margin: (bound − value) / (|bound| + |value|)")
    ax.tick_params(axis="y", length=0)
    ax.grid(axis="y", visible=False)
    ax.spines["left"].set_visible(False)
    return fig


def weight_gains(cosine: np.ndarray, gain: np.ndarray) -> plt.Figure:
    """σ |∂L̂/∂w| / |∂L/∂w| against |cos| of input and gradient, (S, K), and readings of Theorem 3.2.

    Mirrored gradients lie on (1/|cos| ± 1) / 2: plus where batch norm deletes the smaller part of the input.
    """
    line = np.geomspace(3e-3, 1, 200)
    fig, ax = plt.subplots(figsize=(7.2, 4.0))
    dots = {"color": COLORS["theory"], "markersize": 3.5, "alpha": 0.5, "zorder": 4}
    ax.plot(np.ravel(cosine), np.ravel(gain), ".", label="random instances", **dots)
    for bound, style, label in (
        (
            1 + line**-0.5,
            {"color": COLORS["printed"], "linestyle": "--"},
            r"printed, $c$ the cosine: $1+|\cos|^{-1/2}$",
        ),
        (1 + 1 / line, {"color": COLORS["printed"]}, r"$c$ the squared cosine: $1+1/|\cos|$"),
        ((1 + 1 / line) / 2, {"color": COLORS["corrected"]}, r"best: $(1+1/|\cos|)/2$"),
    ):
        ax.plot(line, bound, zorder=3, label=label, **style)
    ax.axhline(1, color="#999999", linewidth=0.8, linestyle=":")
    ax.set(xscale="log", yscale="log", xlim=(3e-3, 1), ylim=(1e-3, 1e3))
    ax.set_xlabel(r"$|\cos|$ of the angle between input and gradient")
    ax.set_ylabel(r"$\sigma\,|\partial\hat{\mathcal{L}}/\partial w|\;/\;|\partial\mathcal{L}/\partial w|$")
    ax.legend(loc="lower left")
    return fig


def hessian_entries(dense: np.ndarray, printed: np.ndarray, corrected: np.ndarray) -> plt.Figure:
    """Two formulas for an entry of the Hessian against automatic differentiation, (S, K) each."""
    fig, axes = plt.subplots(1, 2, figsize=(7.2, 3.6), sharey=True)
    for ax, values, form, title in (
        (axes[0], printed, "printed", "equation 58 as printed"),
        (axes[1], corrected, "corrected", "corrected"),
    ):
        ax.axline((0, 0), slope=1, color="#999999", linewidth=0.8, zorder=1)
        dots = {"color": COLORS[form], "markersize": 4, "alpha": 0.6, "zorder": 3}
        ax.plot(np.ravel(dense), np.ravel(values), ".", **dots)
        ax.set(title=title, xlabel="dense Hessian, automatic", xlim=(-0.8, 0.8), ylim=(-0.8, 0.8))
    axes[0].set_ylabel("formula")
    return fig


def two_landscapes(
    side: np.ndarray, losses: Sequence[np.ndarray], plain: np.ndarray, ray: np.ndarray
) -> plt.Figure:
    """Losses (W, W) over two weights without and with batch norm; W* (2,) and the direction (2,) of the
    optima with it."""
    fig, axes = plt.subplots(1, 2, figsize=(7.2, 3.8), sharey=True)
    for ax, loss, title in zip(axes, losses, ("without batch norm", "with batch norm"), strict=True):
        levels = np.linspace(np.nanmin(loss), np.nanquantile(loss, 0.9), 14)
        ax.contourf(side, side, loss, levels=levels, cmap="cividis_r", alpha=0.75, extend="max")
        ax.plot(*plain, "o", color=COLORS["none"], markersize=8, zorder=5, label="$W^*$, best without")
        ax.set(title=title, xlabel="$w_1$", aspect="equal", xlim=side[[0, -1]], ylim=side[[0, -1]])
        ax.grid(visible=False)
    foot = max(plain @ ray, 0) / (ray @ ray) * ray
    for ends, style in (
        ((0 * ray, 2 * ray), {"color": COLORS["batch"], "linewidth": 3, "label": "best with"}),
        ((0 * ray, 3 * plain), {"color": COLORS["wrong"], "linewidth": 1.5, "ls": "--", "label": "claimed"}),
        ((plain, foot), {"color": "#222222", "linewidth": 1.2, "ls": ":"}),
    ):
        axes[1].plot(*np.stack(ends).T, **style)
    axes[0].set_ylabel("$w_2$")
    for ax in axes:
        ax.legend(loc="upper left", fontsize=9, frameon=True)
    return fig


def near_optimal(epsilon: np.ndarray, loss: np.ndarray) -> plt.Figure:
    """The loss with batch norm against Lemma 3.3's ε, one dot a problem, and its bounds."""
    line = np.linspace(1e-3, 0.499, 200)
    fig, ax = plt.subplots(figsize=(7.2, 3.8))
    printed, least = minima.lemma_33(line), [minima.sharp_33(e) for e in line]
    label = r"printed: $3\varepsilon(1+\varepsilon)/(1-2\varepsilon)$"
    ax.plot(line, printed, color=COLORS["printed"], label=label)
    three = {"color": COLORS["theory"], "linestyle": "--", "linewidth": 1.2}
    ax.plot(line, 3 * line, label=r"$3\varepsilon$", **three)
    ax.plot(line, least, color=COLORS["corrected"], label=r"least bound, about $\sqrt{2}\,\varepsilon$")
    dots = {"color": COLORS["batch"], "markersize": 4, "alpha": 0.6, "zorder": 3}
    ax.plot(np.ravel(epsilon), np.ravel(loss), ".", label="random problems", **dots)
    ax.set(xlim=(0, 0.5), ylim=(0, 2), ylabel="loss of $W$ with batch norm")
    ax.set_xlabel(r"$\varepsilon$: loss without batch norm, and the best with it, are below")
    ax.legend(loc="upper left")
    return fig
