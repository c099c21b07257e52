"""Figures of the chapters on order parameters, fully connected and convolutional."""

from __future__ import annotations

from collections.abc import Sequence

import matplotlib.pyplot as plt
import numpy as np

from bnbook.figures import COLORS, LABELS, band, mean_and_interval
from bnbook.plots.axes import name_ticks, points

Curves = dict[str, np.ndarray]
ARMS = ("none", "batch")
LETTERS = {
    "q": "$q$",
    "q_xy": "$q_{xy}$",
    "q_ab_xy": r"$q_{\alpha\beta}$",
    "q_hat": r"$\hat q$",
    "q_hat_xy": r"$\hat q_{xy}$",
    "q_hat_ab_xy": r"$\hat q_{\alpha\beta}$",
    "q_tilde": r"$\tilde q$",
    "q_tilde_xy": r"$\tilde q_{xy}$",
    "q_tilde_ab_xy": r"$\tilde q_{\alpha\beta}$",
}
DASHES = {"printed": "--", "corrected": "-"}
#: Inputs -> words, mark, and what fills it (None: the ink of the arm).
INPUTS = {
    "gaussian": ("Gaussian inputs", "o", None),
    "images": ("images", "s", "white"),
    "centred": ("images, centred pixel by pixel", "^", None),
}
THEORY = {"color": COLORS["theory"]}


def letters(columns: dict[str, tuple[Sequence[str], slice]], curves: Curves, log: str = "") -> plt.Figure:
    """Order parameters by layer, a row for each norm, a column for each title: its letters in these layers.

    curves: "NORM.measured.LETTER" (S, L+1), "NORM.printed.LETTER" and "NORM.corrected.LETTER" (any, L+1).
    log: title of the column with a logarithmic axis. Filled: one input; open: pairs; grey: two places too.
    """
    size = (3.7 * len(columns), 6.4) if len(columns) == 2 else (8.2, 5.6)
    fig, axes = plt.subplots(2, len(columns), figsize=size, sharex="col")
    for row, norm in zip(axes, ARMS):
        for ax, (title, (names, shown)) in zip(row, columns.items()):
            index = np.arange(curves[f"{norm}.measured.{names[0]}"].shape[1])[shown]
            for equations, dash in DASHES.items():
                for letter in names:
                    line = curves[f"{norm}.{equations}.{letter}"].mean(axis=0)[shown]
                    line = np.where(line > 0, line, np.nan) if title == log else line
                    label = equations if letter == names[0] else None
                    ax.plot(index, line, dash, color=COLORS[equations], zorder=1, label=label)
            for letter in names:
                mark = "D" if "tilde" in letter else "s" if "hat" in letter else "o"
                face = "#dddddd" if "_ab" in letter else "white" if "_xy" in letter else None
                style = {
                    "color": COLORS[norm],
                    "zorder": 2,
                    "markerfacecolor": face,
                    "label": LETTERS[letter],
                }
                points(ax, index, curves[f"{norm}.measured.{letter}"][:, shown], mark, **style)
            ax.set_xticks(index)
            if title == log:
                ax.set(yscale="log", ylim=(1e-4, 300), yticks=[1e-4, 1e-3, 1e-2, 1e-1, 1])
                ax.legend(loc="upper left", ncols=2, fontsize=7.5)
            else:  # room for the legend above what is drawn
                ax.set_ylim(-0.05 * ax.get_ylim()[1], 1.45 * ax.get_ylim()[1])
                small = {"ncols": 3 if len(names) > 3 else 2, "fontsize": 8.5 if len(columns) == 2 else 7.5}
                ax.legend(loc="upper left", **small)
            if norm == ARMS[0]:
                ax.set_title(title)
        row[0].set_ylabel(LABELS[norm])
    for ax in axes[1]:
        ax.set_xlabel("layer $l$")
    return fig


def ratios(names: Sequence[str], curves: Curves) -> plt.Figure:
    """Measured over theory, "NORM.KIND" (S, names), a panel for each norm."""
    fig, axes = plt.subplots(2, 1, figsize=(7.4, 5.6), sharex=True, sharey=True)
    for ax, norm in zip(axes, ARMS):
        ax.axhspan(0.9, 1.1, color="#000000", alpha=0.07, linewidth=0)
        ax.axhline(1, color=COLORS["theory"], linewidth=0.8)
        for shift, (kind, (label, marker, face)) in zip((-0.22, 0, 0.22), INPUTS.items()):
            style = {"markersize": 4.5, "capsize": 2, "linewidth": 1.2, "label": label}
            style |= {"color": COLORS[norm], "markerfacecolor": face}
            points(ax, np.arange(len(names)) + shift, curves[f"{norm}.{kind}"], marker, **style)
        ax.set_ylabel("measured / corrected")
        ax.set_title(LABELS[norm], loc="left")
    axes[1].set_xticks(range(len(names)), names)
    axes[0].legend(ncols=3, loc="lower center", bbox_to_anchor=(0.5, 1.08))
    return fig


def largest_eigenvalue(gammas: np.ndarray, theory: Curves, bound: dict, through: np.ndarray, momentum: float):
    """The bound on λ_max and the learning rate 2 (1 + μ) / λ_max against γ.

    theory: "none", "printed", "corrected" (1, G); bound at γ = 1: (norm, kind) -> (S,); through: the same
    with gradients through the statistics, (S,).
    """
    fig, axes = plt.subplots(1, 2, figsize=(7.4, 4.3))
    at = np.array([0.5, 1, 2, 3, 4, 5])
    for ax, of_lambda in zip(axes, (lambda bound: bound, lambda bound: 2 * (1 + momentum) / bound)):
        for name, dash, color, words in (
            ("none", "-", "none", "without batch norm"),
            ("printed", "--", "batch", "with, printed"),
            ("corrected", "-", "batch", "with, corrected"),
        ):
            ax.plot(gammas, of_lambda(theory[name][0]), dash, color=COLORS[color], label=f"theory, {words}")
        for kind, shift in (("gaussian", -0.03), ("images", 0.03)):
            words, marker, face = INPUTS[kind]
            for norm in ARMS:
                values = bound[norm, kind][:, None] * (at**2 if norm == "batch" else np.ones_like(at))
                label = f"measured, {words}" if norm == "batch" else None
                style = {"color": COLORS[norm], "markersize": 5, "capsize": 2, "markerfacecolor": face}
                points(ax, at + shift, of_lambda(values), marker, label=label, **style)
        line = of_lambda(through[:, None] * gammas**2).mean(axis=0)
        ax.plot(gammas, line, ":", label="measured, through statistics", **THEORY)
        ax.set(yscale="log", xlabel=r"$\gamma$")
    axes[0].set(title="(a)", ylabel=r"lower bound on $\lambda_{\max}$", ylim=(10, None))
    axes[1].set(title="(b)", ylabel=r"critical learning rate $\eta_*$", ylim=(None, 1))
    fig.legend(*axes[0].get_legend_handles_labels(), ncols=2, loc="outside lower center", fontsize=8.5)
    return fig


def convergence(widths: Sequence[int], errors: Curves, batches: Sequence[int], excess: np.ndarray, predicted):
    """Errors (S, widths) by norm, and the bound's excess (S, batches) beside what theory says, (batches,)."""
    fig, (left, right) = plt.subplots(1, 2, figsize=(7.4, 3.6))
    for norm in ARMS:
        points(left, widths, errors[norm], "o", color=COLORS[norm], label=LABELS[norm])
    guide = errors["none"].mean(axis=0)[0] * np.sqrt(widths[0] / np.array(widths))
    left.plot(widths, guide, ":", label=r"$\propto 1/\sqrt{N}$", **THEORY)
    left.set(xlabel="units of a layer $N$", ylabel="relative error of one network")
    points(right, batches, excess, "o", color=COLORS["batch"], label="measured")
    right.plot(batches, predicted, color=COLORS["corrected"], label="corrected for finite $m$")
    guide = excess.mean(axis=0)[0] * batches[0] / np.array(batches)
    right.plot(batches, guide, ":", label=r"$\propto 1/m$", **THEORY)
    right.set(xlabel="number of inputs $m$", ylabel="bound, relative excess")
    for ax, ticks in ((left, widths), (right, batches)):
        ax.set(xscale="log", yscale="log")
        low, high = ax.get_ylim()
        name_ticks(ax.set_xticks, ticks)
        rough = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5)
        name_ticks(ax.set_yticks, [tick for tick in rough if low <= tick <= high])
        ax.legend(loc="lower left")
    return fig


def depth(curves: Curves) -> plt.Figure:
    """Mean square gradients in layers 1 to L: measured "none" and "batch" (S, L), theory "theory.NAME"
    (1, L)."""
    fig, ax = plt.subplots(figsize=(7.2, 3.8))
    layers = np.arange(1, curves["batch"].shape[1] + 1)
    for norm in ARMS:
        style = {"color": COLORS[norm], "marker": "o", "linestyle": ""}
        band(ax, layers, curves[norm], label=f"measured, {LABELS[norm]}", **style)
    for equations, dash in DASHES.items():
        label = f"with batch norm, {equations}"
        ax.plot(layers, curves[f"theory.{equations}"][0], dash, color=COLORS[equations], label=label)
    ax.plot(layers, curves["theory.none"][0], ":", color=COLORS["none"], label="without, theory")
    ax.set(yscale="log", xlabel="layer $l$", ylabel=r"mean square gradient $\tilde q^{\,l}$")
    ax.legend(ncols=2, loc="lower center", bbox_to_anchor=(0.5, 1.0))
    return fig


def shares(titles: dict[str, str], curves: Curves) -> plt.Figure:
    """Shares f_l of the bound, a panel for each set: "SET.NORM.measured" (S, L), "SET.NORM.printed" (any,
    L)."""
    panels = {"figsize": (4.0 * len(titles) + 0.6, 3.6), "sharey": True, "squeeze": False}
    fig, axes = plt.subplots(1, len(titles), **panels)
    for ax, (name, title) in zip(axes[0], titles.items()):
        for norm, shift in (("none", -0.2), ("batch", 0.2)):
            mean, half = mean_and_interval(curves[f"{name}.{norm}.measured"])
            layers = np.arange(1, len(mean) + 1)
            for equations, mark in (("printed", "_"), ("corrected", "x")):
                line = curves[f"{name}.{norm}.{equations}"].mean(axis=0)
                label = equations if norm == "none" else None
                ax.plot(layers + shift, line, mark, markersize=11, markeredgewidth=1.6, label=label, **THEORY)
            style = {"color": COLORS[norm], "alpha": 0.8, "capsize": 2, "label": LABELS[norm]}
            ax.bar(layers + shift, mean, 0.36, yerr=half, **style)
        ax.set(yscale="log", xlabel="layer $l$", title=title, xticks=layers)
    fig.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=4, fontsize=9.5)
    shown = np.concatenate([np.ravel(values) for values in curves.values()])
    axes[0, 0].set_ylim(0.5 * shown[shown > 0].min(), 2 * shown.max())
    axes[0, 0].set_ylabel("share $f_l$ of the bound")
    return fig


def error_by_width(multiples: Sequence[int], errors: Curves) -> plt.Figure:
    """Relative errors of single networks, (S, multiples) by norm."""
    fig, ax = plt.subplots(figsize=(6.4, 3.3))
    for norm in ARMS:
        points(ax, multiples, errors[norm], "o-", markersize=6, color=COLORS[norm], label=LABELS[norm])
    ax.set(xscale="log", yscale="log", xlabel="channels, multiples of the paper's")
    ax.set_ylabel("relative error of one network")
    name_ticks(ax.set_xticks, multiples)
    ax.legend()
    return fig
