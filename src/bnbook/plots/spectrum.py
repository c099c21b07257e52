"""Figure of the chapter on the spectrum: its density in three modes, without and with batch norm."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np

from bnbook.figures import COLORS, LABELS

#: Arm -> ink, dash and words: batch norm has one ink, whatever its statistics.
LINES = {
    "none": ("none", "-", LABELS["none"]),
    "batch": ("batch", "-", "statistics of the batch"),
    "constant": ("batch", "--", "held constant"),
    "running": ("batch", ":", "running averages"),
}
SMOOTH = 3  # places, standard deviation


def densities(
    places: np.ndarray, width: float, depths: Sequence[int], found: Mapping[str, np.ndarray]
) -> plt.Figure:
    """Density of the Hessian's eigenvalues on the axis asinh(λ / width), "ARM.DEPTH" (S, X): mean over the seeds,
    smoothed over SMOOTH places, for near zero few nodes of the quadrature stand for many eigenvalues."""
    bell = np.exp(-((np.arange(-4 * SMOOTH, 4 * SMOOTH + 1) / SMOOTH) ** 2) / 2)
    fig, axes = plt.subplots(1, 2, figsize=(8.0, 4.0), sharey=True)
    ticks = np.array([-10, -1, -0.1, 0, 0.1, 1, 10, 100])
    names = [f"{'−' if tick < 0 else ''}{abs(tick):g}" for tick in ticks]
    for ax, name, depth in zip(axes, ("shallow", "deep"), depths):
        for arm, (ink, dash, words) in LINES.items():
            mean = np.convolve(found[f"{arm}.{name}"].mean(axis=0), bell / bell.sum(), mode="same")
            ax.plot(places, np.maximum(mean, 1e-12), color=COLORS[ink], linestyle=dash, label=words)
        ax.set(yscale="log", ylim=(1e-5, 2), title=f"{depth} layers", xlabel="eigenvalue")
        ax.set_xticks(np.arcsinh(ticks / width), labels=names)
        ax.set_xticks([], minor=True)
        ax.set_xlim(places[0], places[-1])
    axes[0].set_ylabel("density")
    handles, labels = axes[0].get_legend_handles_labels()
    fig.legend(handles, labels, loc="outside lower center", ncols=4, fontsize=9)
    return fig
