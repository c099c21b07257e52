"""What every figure gets when it is saved: legends clear of what is drawn, numbers on axes, whole marks."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.ticker import FixedLocator

from bnbook.figures import use_style
from bnbook.plots.axes import name_few_decades, number, thin_numbers, uncut_marks
from bnbook.plots.names import clear_legends

X = np.linspace(0, 1, 60)


@pytest.fixture(autouse=True)
def style():
    use_style()
    yield
    plt.close("all")


def legend_box(ax: plt.Axes):
    ax.figure.draw_without_rendering()
    return ax.get_legend().get_window_extent()


@pytest.mark.parametrize("kind", ["line", "bars", "histogram"])
def test_a_legend_moves_to_the_corner_where_nothing_is_drawn(kind):
    _, ax = plt.subplots(figsize=(6, 3))
    if kind == "line":
        ax.plot(X, X**0.2, label="a line")
        ax.plot(X, 0 * X + 1)
    elif kind == "bars":
        ax.bar([1, 2, 3], [1, 4, 9], label="bars")
    else:
        ax.hist(X**0.5, histtype="step", label="a histogram")
    ax.legend(loc="upper right")
    clear_legends(ax.figure)
    box = legend_box(ax)
    lower = kind == "line"
    assert ax.bbox.x0 < box.x0 < box.x1 < ax.bbox.x1 and ax.bbox.y0 < box.y0 < box.y1 < ax.bbox.y1
    assert (box.y1 < ax.bbox.y0 + 0.5 * ax.bbox.height) == lower
    assert (box.x1 < ax.bbox.x0 + 0.5 * ax.bbox.width) == (not lower)


def test_without_a_free_corner_it_stands_below_what_names_the_axis_and_the_panel_keeps_its_height():
    fig, axes = plt.subplots(1, 2, figsize=(6, 3))
    for ax in axes:
        for row in np.linspace(0, 1, 12):
            ax.plot(X, 0 * X + row, label="a line" if row == 0 else None)
        ax.set(xlabel="what is named")
    axes[0].legend(loc="upper right")
    fig.draw_without_rendering()
    before = axes[0].bbox.height, axes[1].bbox.width
    clear_legends(fig)
    box = legend_box(axes[0])
    assert box.y0 >= 0 and box.y1 <= axes[0].xaxis.label.get_window_extent().y0
    assert axes[0].bbox.x0 < box.x0 < box.x1 < axes[0].bbox.x1
    assert (axes[0].bbox.height, axes[1].bbox.width) == pytest.approx(before, rel=0.05)


@pytest.mark.parametrize("kind", ["clear", "framed", "outside", "pale ground"])
def test_a_legend_that_hides_nothing_stays(kind):
    _, ax = plt.subplots(figsize=(6, 3))
    ax.plot(X, 0.1 * X if kind in ("clear", "pale ground") else 0 * X + 1, label="a line")
    ax.set_ylim(0, 1.05)
    if kind == "pale ground":
        ax.axvspan(0.5, 0.9, alpha=0.1)
    place = (
        {"loc": "lower center", "bbox_to_anchor": (0.5, 1.0)} if kind == "outside" else {"loc": "upper right"}
    )
    ax.legend(**place, frameon=kind == "framed")
    before = legend_box(ax).extents
    clear_legends(ax.figure)
    assert legend_box(ax).extents == pytest.approx(before)


@pytest.mark.parametrize(
    "limits", [(0.02, 0.7), (1.2, 900), (0.31, 0.66), (2e-5, 9e-5), (3e5, 2e6), (4.1, 4.6)]
)
def test_a_short_logarithmic_axis_shows_three_numbers_or_more_and_they_do_not_crowd(limits):
    fig, ax = plt.subplots(figsize=(3, 3))
    ax.set(yscale="log", ylim=limits)
    name_few_decades(fig)
    fig.draw_without_rendering()
    shown = [tick.label1 for tick in ax.yaxis.get_major_ticks() if limits[0] <= tick.get_loc() <= limits[1]]
    boxes = sorted((label.get_window_extent().y0, label.get_window_extent().y1) for label in shown)
    assert len(shown) >= 3 and all(label.get_text() for label in shown)
    assert all(top < bottom for (_, top), (bottom, _) in zip(boxes, boxes[1:]))
    assert not any(tick.label1.get_text() for tick in ax.yaxis.get_minor_ticks())


def test_a_short_axis_of_many_powers_has_numbers():
    fig, axes = plt.subplots(1, 7, figsize=(7, 1.7))
    for ax in axes:
        ax.set(xscale="log", xlim=(0.7, 1.2e4))
    name_few_decades(fig)
    fig.draw_without_rendering()
    for ax in axes:
        shown = [tick for tick in ax.xaxis.get_major_ticks() if 0.7 <= tick.get_loc() <= 1.2e4]
        assert 3 <= len(shown) <= 5 and all(tick.label1.get_text() for tick in shown)


def test_axes_with_powers_enough_or_with_ticks_of_their_own_stay():
    fig, (powers, own) = plt.subplots(1, 2)
    powers.set(yscale="log", ylim=(1e-4, 1))
    own.set(yscale="log", ylim=(1, 4), yticks=[1, 2])
    before = powers.yaxis.get_major_locator()
    name_few_decades(fig)
    assert powers.yaxis.get_major_locator() is before
    assert isinstance(own.yaxis.get_major_locator(), FixedLocator)


def test_numbers_are_plain_where_that_is_short():
    found = [number(value) for value in (0.02, 300, 20000, 2e5, 1e-4, 1.5e-5)]
    assert found == ["0.02", "300", "20000", r"$2\cdot 10^{5}$", "$10^{-4}$", r"$1.5\cdot 10^{-5}$"]


def test_marks_on_the_frame_are_whole_and_a_line_that_leaves_it_is_cut():
    fig, ax = plt.subplots()
    edge, leaving = ax.plot([0, 1], [0, 1], "o")[0], ax.plot([0, 2], [0.5, 0.5], "o-")[0]
    plain = ax.plot([0, 1], [1, 0])[0]
    ax.set(xlim=(0, 1), ylim=(0, 1))
    uncut_marks(fig)
    assert (edge.get_clip_on(), leaving.get_clip_on(), plain.get_clip_on()) == (False, True, True)


def test_the_grid_lies_behind_bars_and_lines():
    _, ax = plt.subplots()
    bar, line = ax.bar([1], [1])[0], ax.plot([0, 1], [0, 1], zorder=1)[0]
    grid = ax.yaxis.get_major_ticks()[0].gridline
    ax.figure.draw_without_rendering()
    assert ax.get_axisbelow() is True and ax.yaxis.get_zorder() < min(bar.get_zorder(), line.get_zorder())
    assert grid.get_visible()


@pytest.mark.parametrize(("count", "shown"), [(1, 7), (4, 4)])
def test_numbers_that_meet_are_thinned_and_the_axis_stays(count, shown):
    rates = [0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1]
    fig, axes = plt.subplots(1, count, figsize=(7.8, 3), squeeze=False)
    for ax in axes.flat:
        ax.plot(rates, rates)
        ax.set(xscale="log", xlim=(0.0008, 1.2))
        ax.set_xticks(rates, [f"{rate:g}" for rate in rates])
        ax.minorticks_off()
    fig.draw_without_rendering()
    for ax in axes.flat:
        thin_numbers(ax)
        words = [label.get_text() for label in ax.get_xticklabels()]
        assert words == ["0.001", "0.003", "0.01", "0.03", "0.1", "0.3", "1"][:: 1 if shown == 7 else 2]
        boxes = [label.get_window_extent() for label in ax.get_xticklabels()]
        assert not any(one.overlaps(other) for one, other in zip(boxes, boxes[1:]))
        assert ax.get_xlim() == (0.0008, 1.2)


def test_a_number_beyond_the_axis_does_not_widen_it():
    fig, ax = plt.subplots(figsize=(2, 2))
    ax.set(xlim=(0.5, 9.5))
    ax.set_xticks(range(-3, 12), [f"{k} millions" for k in range(-3, 12)], fontsize=9)
    ax.set_xlim(0.5, 9.5)
    thin_numbers(ax)
    assert ax.get_xlim() == (0.5, 9.5)
