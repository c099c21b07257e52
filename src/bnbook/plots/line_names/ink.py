"""Where a figure's axes are drawn on, in pixels, and whether a box is free."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.collections import LineCollection, PathCollection
from matplotlib.contour import ContourSet
from matplotlib.lines import Line2D

STEP = 2.0  # points between two places of a line that are looked at
SHADE = 0.2  # an area no more opaque than that is a ground on which words may stand


class Ink:
    """Where something is drawn in some axes, on a grid of STEP points: whether a box is free is one sum of
    four numbers."""

    def __init__(self, ax: plt.Axes, xy: np.ndarray):
        self.cell = STEP * ax.figure.dpi / 72
        self.origin = np.array([ax.bbox.x0, ax.bbox.y0])
        shape = (np.array([ax.bbox.width, ax.bbox.height]) / self.cell).astype(int) + 2
        drawn = np.zeros(shape, dtype=int)
        at = ((xy - self.origin) / self.cell).astype(int).clip(0, shape - 1)
        drawn[at[:, 0], at[:, 1]] = 1
        self.sums = np.pad(drawn.cumsum(axis=0).cumsum(axis=1), ((1, 0), (1, 0)))

    def free(self, boxes: np.ndarray, margin: float) -> np.ndarray:
        """Whether nothing is drawn within `margin` points of each of the boxes (M, 4)."""
        wide = boxes + margin / STEP * self.cell * np.array([-1, -1, 1, 1])
        low = np.floor((wide[:, :2] - self.origin) / self.cell).astype(int)
        high = np.ceil((wide[:, 2:] - self.origin) / self.cell).astype(int)
        (a, b), (c, d) = (np.clip(ends, 0, np.array(self.sums.shape) - 1).T for ends in (low, high))
        return self.sums[c, d] - self.sums[a, d] - self.sums[c, b] + self.sums[a, b] == 0


def points_of(ax: plt.Axes, line: Line2D) -> np.ndarray:
    """Places along a line in pixels (K, 2), of a line of markers the markers, inside the axes."""
    xy = line.get_transform().transform(np.asarray(line.get_xydata(), dtype=float))
    return _inside(ax, _dense(xy, STEP * ax.figure.dpi / 72) if line.get_linestyle() != "None" else xy)


def others(ax: plt.Axes, own: Line2D | None) -> np.ndarray:
    """Everything drawn that a name or a legend must keep away from, as points in pixels (K, 2)."""
    step = STEP * ax.figure.dpi / 72
    found = [points_of(ax, line) for line in ax.lines if line is not own and line.get_visible()]
    for drawn in ax.collections:
        if isinstance(drawn, LineCollection):
            transform = drawn.get_transform()
            found += [
                _inside(ax, _dense(transform.transform(np.reshape(part, (-1, 2))), step))
                for part in drawn.get_segments()
            ]
        elif isinstance(drawn, ContourSet):
            transform = drawn.get_transform()
            parts = [part for path in drawn.get_paths() for part in path.to_polygons(closed_only=False)]
            found += [_inside(ax, _dense(transform.transform(part), step)) for part in parts]
        elif isinstance(drawn, PathCollection):
            offsets = np.asarray(np.ma.filled(drawn.get_offsets(), np.nan), dtype=float)
            found.append(_inside(ax, drawn.get_offset_transform().transform(offsets)))
    for patch in ax.patches:
        if patch.get_visible() and max(patch.get_facecolor()[3], patch.get_edgecolor()[3]) > SHADE:
            parts = patch.get_transform().transform_path(patch.get_path()).to_polygons(closed_only=False)
            found += [_inside(ax, _dense(part, step)) for part in parts]
    for words in ax.texts:
        if words.get_visible() and words.get_text():
            box = words.get_window_extent()
            x, y = np.arange(box.x0, box.x1 + step, step), np.arange(box.y0, box.y1 + step, step)
            found.append(np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2))
    return np.concatenate([np.empty((0, 2)), *found])


def _dense(xy: np.ndarray, step: float) -> np.ndarray:
    """Points (K, 2) at most about `step` apart along a path (P, 2), which breaks where it is no number; an
    error bar without a length is a path without a place."""
    xy, pieces = np.reshape(xy, (-1, 2)), []
    for (a, b), (c, d) in zip(xy[:-1], xy[1:]):
        if np.isfinite([a, b, c, d]).all():
            count = int(min(np.hypot(c - a, d - b) / step, 2000)) + 1
            share = np.linspace(0, 1, count, endpoint=False)[:, None]
            pieces.append(np.array([[a, b]]) + share * np.array([[c - a, d - b]]))
    ends = xy[np.isfinite(xy).all(axis=1)][-1:]
    return np.concatenate([*pieces, ends]) if pieces or len(ends) else np.empty((0, 2))


def _inside(ax: plt.Axes, xy: np.ndarray) -> np.ndarray:
    xy = xy[np.isfinite(xy).all(axis=1)]
    box = ax.bbox
    inside = (xy[:, 0] >= box.x0 - 1) & (xy[:, 0] <= box.x1 + 1) & (xy[:, 1] >= box.y0 - 1)
    return xy[inside & (xy[:, 1] <= box.y1 + 1)]
