"""What passes without it? The figure of the page."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np

from bnbook.chapters.mean_field import ARMS, by_set
from bnbook.figures import LABELS
from bnbook.plots.panels import Panel
from bookpress.results import Results


def alone(results: Results) -> plt.Figure:
    """Loss by step of everything but the readout, a line for each seed, with and without batch norm."""

    def panel(suffix: str) -> Panel:
        rows = [results[f"curve.alone.{suffix}.{norm}"] for norm in ARMS]
        limits = (None, 1e6 * max(np.nanmax(each[:, 0]) for each in rows))
        return Panel(
            curve=f"curve.alone.{suffix}.{{}}", x=range(len(rows[0][0])), by="seeds", log="y", ylim=limits
        )

    arms = {norm: dict(label=LABELS[norm], linewidth=1.1) for norm in ARMS}
    return by_set(results, panel, results, 5.6, arms=arms, xlabel="step", ylabel="loss")
