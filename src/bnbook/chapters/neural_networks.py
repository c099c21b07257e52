"""Figures of the page on a layer of tanh units, of recorded results alone."""

from __future__ import annotations

from collections.abc import Mapping

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.ticker import MaxNLocator

from bnbook.chapters.length_direction import draw_ratios
from bnbook.figures import COLORS, points_of
from bnbook.plots.layout import subplots
from bnbook.plots.panels import Panel, compare

#: Where the loss of two equal units is drawn: q across the line, p along it.
ACROSS, ALONG = np.linspace(-0.6, 0.6, 41), np.linspace(1.2, 3.2, 33)
PANELS = {
    "": {
        "printed": "printed: printed, other unit anywhere",
        "on_line": "part: printed, other unit on the line",
        "corrected": "corrected: corrected, other unit on the line",
    }
}


def two_units(results: Mapping[str, np.ndarray]) -> plt.Figure:
    """Left, the loss above its minimum (across, along) of two equal units, its saddle and minimum; right, by
    loss, the units' places (1, k, 2) at critical points of random networks."""
    theory, points = COLORS["theory"], points_of(results, "critical-points")
    p, q, p_on_line = (results[f"example.{name}"][0] for name in ("p", "q", "p_on_line"))
    fig, (left, right) = subplots(1, 2, figsize=(7.4, 3.7))
    levels = dict(levels=np.geomspace(4e-6, 4e-3, 16), cmap="cividis", linewidths=0.9)
    left.contour(ALONG, ACROSS, points["surface"][0], **levels)
    left.plot(ALONG, 0 * ALONG, "--", color=theory, linewidth=1, label="line of $S^{-1}u$")
    left.plot(p_on_line, 0, "o", color=theory, markersize=6, label="saddle")
    left.plot([p, p], [q, -q], "D", color=COLORS["wrong"], markersize=6, label="minimum")
    left.set(xlabel="$p$, along the line", ylabel="$q$, across", title="two equal units")
    left.legend(loc="upper right", fontsize=8.5)
    for name, marker, face in (("logistic", "D", "none"), ("huber", "o", theory)):
        dots = dict(color=theory, markerfacecolor=face, markersize=4.5, alpha=0.7)
        right.plot(*points[name].reshape(-1, 2).T, marker, label=f"{name} loss", **dots)
    right.axhline(0, color=theory, linewidth=1, linestyle="--")
    right.set(xlabel="along the line", ylabel="distance from the line", title="random networks")
    right.legend(title="critical points", loc="upper left", fontsize=8.5)  # full and empty: names do not tell
    return fig


def margins(results: Mapping[str, np.ndarray]) -> plt.Figure:
    """Left over right side of the bound for one unit."""
    return draw_ratios(results, PANELS, (-12, 8))


def passes(results: Mapping[str, np.ndarray]) -> plt.Figure:
    """The whole squared gradient after one pass (S, lengths) and after each of many passes (S, passes)."""
    whole = dict(also=lambda ax: ax.xaxis.set_major_locator(MaxNLocator(integer=True)))
    panels = [
        Panel(curve="single", x="length", title="one pass", xlabel="steps for each unit $T_d$"),
        Panel(curve="many", title="repeated passes, $T_d=4$", xlabel="passes", **whole),
    ]
    words = dict(by="geometric", look="o-", log="y", ylabel=r"$\sum_i\|\nabla_i f\|^2$ (norm of $S^{-1}$)")
    arms = {"all": dict(color="apart")}
    return compare(points_of(results, "passes"), panels, arms, figsize=(7.2, 3.4), sharey=True, **words)
