"""Names beside lines: next to their own, clear of all else, or else the legend stays."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pytest

from bnbook.figures import use_style
from bnbook.plots.names import name_lines

X = np.linspace(0, 10, 50)


@pytest.fixture
def figure():
    use_style()
    opened = []

    def make(*lines, panels: int = 1):
        fig, axes = plt.subplots(1, panels, squeeze=False, figsize=(6.8, 3.6))
        for ax in axes[0]:
            for number, y in enumerate(lines):
                ax.plot(X, y, label=f"line {number}", color=f"C{number}")
        opened.append(fig)
        return fig

    yield make
    for fig in opened:
        plt.close(fig)


def boxes(fig):
    fig.draw_without_rendering()
    return {text.get_text(): text.get_window_extent() for ax in fig.axes for text in ax.texts}


def distance(box, ax, line) -> float:
    """Pixels from a box to the nearest of many points of a line."""
    fine = np.linspace(0, 10, 4000)
    xy = ax.transData.transform(np.stack([fine, np.interp(fine, *line.get_data())], axis=1))
    dx = np.maximum(np.maximum(box.x0 - xy[:, 0], xy[:, 0] - box.x1), 0)
    dy = np.maximum(np.maximum(box.y0 - xy[:, 1], xy[:, 1] - box.y1), 0)
    return np.hypot(dx, dy).min()


def test_each_name_stands_next_to_its_own_line_and_clear_of_the_others(figure):
    fig = figure(np.sin(X), np.sin(X) + 0.9, 0.3 * X)
    (ax,) = fig.axes
    ax.legend()
    name_lines(fig)
    assert ax.get_legend() is None
    found = boxes(fig)
    assert set(found) == {"line 0", "line 1", "line 2"}
    for line in ax.lines:
        box = found[line.get_label()]
        apart = {other.get_label(): distance(box, ax, other) for other in ax.lines}
        assert 0 < apart.pop(line.get_label()) < min(8, *apart.values()), (line.get_label(), apart)
        assert min(apart.values()) > 4 and ax.bbox.x0 < box.x0 and box.x1 <= ax.bbox.x1 + 1
        assert all(not box.overlaps(other) for other in found.values() if other is not box)


def test_a_legend_without_room_for_names_stays_as_it_was(figure):
    fig = figure(*(np.sin(X) + 0.05 * k for k in range(12)))
    legend = fig.axes[0].legend()
    name_lines(fig)
    assert fig.axes[0].get_legend() is legend and legend.get_visible() and not fig.axes[0].texts


@pytest.mark.parametrize("kind", ["title", "patch", "colour scale"])
def test_what_is_no_list_of_lines_stays(figure, kind):
    fig = figure(np.sin(X))
    (ax,) = fig.axes
    if kind == "patch":
        ax.bar([1], [1], label="a bar")
    if kind == "colour scale":
        ax.pcolormesh(np.eye(3))
    ax.legend(title="these are" if kind == "title" else None)
    name_lines(fig)
    assert ax.get_legend() is not None and not ax.texts


def test_a_legend_of_several_panels_becomes_names_in_one(figure):
    fig = figure(np.sin(X), np.sin(X) + 2, panels=3)
    fig.legend(*fig.axes[0].get_legend_handles_labels(), loc="outside lower center")
    before = fig.axes[0].get_position().height
    name_lines(fig)
    assert not fig.legends and [len(ax.texts) for ax in fig.axes] == [2, 0, 0]
    fig.draw_without_rendering()
    assert fig.axes[0].get_position().height > before, "the legend's room goes to the panels"


def test_a_legend_of_several_panels_stays_where_dashes_tell_its_lines_apart(figure):
    fig = figure(np.sin(X), np.sin(X) + 2, panels=2)
    for ax in fig.axes:
        ax.lines[1].set(color="C0", linestyle="--")
    fig.legend(*fig.axes[0].get_legend_handles_labels(), loc="outside lower center")
    name_lines(fig)
    assert fig.legends and not any(ax.texts for ax in fig.axes)
    (ax,) = (alone := figure(np.sin(X), np.sin(X) + 2)).axes
    ax.lines[1].set(color="C0", linestyle="--")
    ax.legend()
    name_lines(alone)
    assert set(boxes(alone)) == {"line 0", "line 1"}, "in one panel the names stand beside their lines"


def test_points_without_intervals_and_lines_without_places_are_no_hindrance(figure):
    fig = figure(np.sin(X))
    (ax,) = fig.axes
    ax.errorbar([2, 4], [3.0, 3.5], [np.nan, 0.2], label="measured", color="C3", fmt="o")
    ax.errorbar([6], [np.nan], [np.nan], color="C4", fmt="o")
    ax.plot([], [], color="C5")
    ax.legend()
    name_lines(fig)
    assert ax.get_legend() is None and set(boxes(fig)) == {"line 0", "measured"}
    ax.plot([], [], label="nothing")
    legend = ax.legend()
    name_lines(fig)
    assert ax.get_legend() is legend, "what is nowhere has no place for its name"


def test_names_keep_clear_of_contours(figure):
    fig = figure(np.full_like(X, 5.0))
    (ax,) = fig.axes
    drawn = ax.contour(X, X, np.tile(X[:, None], (1, 50)), levels=[5.3, 5.6, 5.9, 6.2])
    ax.legend()
    name_lines(fig)
    (box,) = boxes(fig).values()
    lines = [path.vertices for path in drawn.get_paths() if len(path.vertices)]
    ends = [drawn.get_transform().transform(line) for line in lines]
    assert ends and not any(box.padded(2).y0 < line[:, 1].max() < box.padded(2).y1 for line in ends)
