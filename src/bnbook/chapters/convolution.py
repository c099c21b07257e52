"""Does the theory survive convolutions? The figures."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np

from bnbook.chapters.mean_field import ARMS, DASHES, THEORY, letters
from bnbook.figures import COLORS, LABELS, mean_and_interval
from bnbook.plots.layout import subplots
from bnbook.plots.panels import Panel, compare
from bnbook.results import Results

FORWARD = ("q", "q_xy", "q_ab_xy", "q_hat", "q_hat_xy", "q_hat_ab_xy")
BACKWARD = ("q_tilde", "q_tilde_xy", "q_tilde_ab_xy")

# ---- Figures ----------------------------------------------------------------------------------------------


def nine_letters(results: Results) -> plt.Figure:
    """The nine letters by layer."""
    columns = {"pre-activations": FORWARD[:3], "activations": FORWARD[3:], "gradients": BACKWARD}
    whole = {title: (names, slice(None)) for title, names in columns.items()}
    return letters(results, "letters", whole, log="gradients")


def shares(results: Results) -> plt.Figure:
    """Shares f_l of the bound, a panel for each set."""
    shapes = [data["shape"] for data in results.header["data"]]
    names = [name for name in results if name.startswith("curve.bound.")]
    sets = sorted({name.split(".")[2] for name in names})
    fig, axes = subplots(1, len(sets), figsize=(4.0 * len(sets) + 0.6, 3.6), sharey=True, squeeze=False)
    for place, (ax, name) in enumerate(zip(axes[0], sets)):
        for norm, shift in (("none", -0.2), ("batch", 0.2)):
            mean, half = mean_and_interval(results[f"curve.bound.{name}.{norm}.measured"])
            layers = np.arange(1, len(mean) + 1)
            for equations, mark in zip(DASHES, ("_", "x"), strict=True):
                line = results[f"curve.bound.{name}.{norm}.{equations}"].mean(axis=0)
                label = equations if norm == "none" else None
                ax.plot(layers + shift, line, mark, markersize=11, markeredgewidth=1.6, label=label, **THEORY)
            style = {"color": COLORS[norm], "alpha": 0.8, "capsize": 2, "label": LABELS[norm]}
            ax.bar(layers + shift, mean, 0.36, yerr=half, **style)
        title = " × ".join(map(str, shapes[min(place, len(shapes) - 1)]))  # one set may be there twice
        ax.set(yscale="log", xlabel="layer $l$", title=title, xticks=layers)
    fig.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=4, fontsize=9.5)
    shown = np.concatenate([np.ravel(results[name]) for name in names])
    axes[0, 0].set_ylim(0.5 * shown[shown > 0].min(), 2 * shown.max())
    axes[0, 0].set_ylabel("share $f_l$ of the bound")
    return fig


def error_by_width(results: Results) -> plt.Figure:
    """Relative errors of single networks."""
    multiples = results["curve.width.multiples"][0]
    words = dict(xlabel="channels, multiples of the paper's", ylabel="relative error of one network")
    panel = Panel(
        curve="curve.width.{}", x=multiples, ticks=multiples, by="points", look="o-", log="xy", **words
    )
    return compare(results, [panel], ARMS, figsize=(6.4, 3.3))
