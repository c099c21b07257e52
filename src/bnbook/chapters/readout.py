"""Which layer breaks? The figures, and where a training ended."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np

from bnbook.chapters.mean_field import by_set
from bnbook.figures import COLORS, points_of
from bnbook.plots.panels import Panel
from bnbook.results import Results


def end(loss: np.ndarray) -> np.ndarray:
    """log10 of the mean loss (S, T) of the last tenth over the first; inf where that is no number."""
    share = loss[:, -max(1, loss.shape[1] // 10) :].mean(axis=1) / loss[:, 0]
    with np.errstate(divide="ignore"):
        return np.where(share < np.inf, np.log10(share), np.inf)


# ---- Figures ----------------------------------------------------------------------------------------------

#: What is trained -> words, ink, dash (a dashed line lies on top). As in `boundaries`, what was measured in
#: networks with batch norm has their ink, and the readout that of text.
PARTS = {
    "all": ("everything", COLORS["batch"], "--"),
    "readout": ("the readout alone", COLORS["theory"], "-"),
    "hidden": ("everything but the readout", COLORS["batch"], "-"),
}


def boundaries(results: Results) -> plt.Figure:
    """Critical rates against γ: a point a restart, the readout's and the printed lines."""
    points = points_of(results, "boundary")
    gammas = points["gamma"][0]
    lines = {"readout": ("-", COLORS["theory"], "readout"), "from0": ("--", COLORS["printed"], "printed")}
    lines["from1"] = (":", COLORS["printed"], "printed, from 1")

    def panel(suffix: str) -> Panel:
        measured = 10 ** results[f"boundary.{suffix}"]
        arms = {"measured": dict(y=measured, by="dots", look="o", color="batch", alpha=0.7, label="measured")}
        for key, (dash, color, words) in lines.items():
            if key != "from1" or "conv" in suffix:
                line = 10 ** points[f"{key}.{suffix}"].mean(axis=0)
                arms[key] = dict(y=line, look=dash, color=color, label=words, linewidth=1.3)
        return Panel(arms=arms, x=gammas, ticks=gammas, log="xy")

    return by_set(results, panel, points, 6.2, xlabel=r"$\gamma$", ylabel=r"critical $\eta$")


def parts(results: Results) -> plt.Figure:
    """Loss by step, a line for each restart and each part that is trained."""

    def panel(suffix: str) -> Panel:
        arms = {
            name: dict(
                y=losses,
                x=range(losses.shape[1]),
                color=color,
                look=dash,
                label=words,
                zorder=2 + (dash == "--"),
            )
            for name, (words, color, dash) in PARTS.items()
            for losses in [results[f"curve.parts.{name}.{suffix}"]]
        }
        highest = max(arm["y"][:, 0].max() for arm in arms.values())
        # what tells them apart is over after three steps
        early = dict(also=lambda ax: (ax.set_xscale("symlog", linthresh=1), ax.set_xlim(0, None)))
        return Panel(arms=arms, by="seeds", log="y", ylim=(None, 1e6 * highest), **early)

    return by_set(results, panel, results, 5.6, xlabel="step", ylabel="loss")
