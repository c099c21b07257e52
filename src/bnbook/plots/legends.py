"""Legends that lie on what is drawn move to a free corner, or below their panel."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.legend import Legend
from matplotlib.transforms import ScaledTranslation

from bnbook.plots.line_names.ink import Ink, others

CORNERS = ("upper right", "upper left", "lower left", "lower right")
CLEAR = 1.0  # points between the box of a legend and what is drawn


def clear_legends(fig: plt.Figure) -> None:
    """Move each legend that lies on lines, marks, bars or words of its own axes; one outside them stays, and
    one with a frame, which hides what is behind it."""
    found = [(ax, ax.get_legend()) for ax in fig.axes if ax.get_legend() is not None]
    found = [(ax, legend) for ax, legend in found if legend.get_visible() and not legend.get_frame_on()]
    if not found:
        return
    fig.draw_without_rendering()
    below = [(ax, legend) for ax, legend in found if not _in_free_corner(ax, legend)]
    heights: dict[int, float] = {}
    for ax, legend in below:
        row = ax.get_subplotspec().rowspan.start if ax.get_subplotspec() else 0
        heights[row] = max(heights.get(row, 0.0), legend.get_window_extent().height)
        _put_below(ax, legend)
    fig.set_figheight(fig.get_figheight() + sum(heights.values()) / fig.dpi)  # the panels stay as high


def _in_free_corner(ax: plt.Axes, legend: Legend) -> bool:
    if _is_free(ax, legend):
        return True
    for corner in CORNERS:  # inside its axes it moves no panel, so nothing is laid out again
        legend.set_bbox_to_anchor(None)
        legend.set_loc(corner)
        if _is_free(ax, legend):
            return True
    return False


def _is_free(ax: plt.Axes, legend: Legend) -> bool:
    box = legend.get_window_extent()
    inside = box.x0 >= ax.bbox.x0 and box.x1 <= ax.bbox.x1
    ink = Ink(ax, others(ax, None))
    return not box.overlaps(ax.bbox) or bool(inside and ink.free(np.array([box.extents]), CLEAR)[0])


def _put_below(ax: plt.Axes, legend: Legend) -> None:
    """Centred below the panel's horizontal axis and what names it."""
    named = ax.xaxis.get_tightbbox()
    drop = ax.bbox.y0 - (named.y0 if named else ax.bbox.y0)
    legend.set_loc("upper center")
    down = ScaledTranslation(0, -drop / ax.figure.dpi, ax.figure.dpi_scale_trans)
    legend.set_bbox_to_anchor((0.5, 0), transform=ax.transAxes + down)
