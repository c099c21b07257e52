"""Drawings: panels and what they show; what every figure gets when it is saved; what is drawn for a phone."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator

from bnbook.chapters import landscape, noisy_batch_norm, training
from bnbook.figures import COLORS, as_svg, finish, use_style
from bnbook.plots.axes import name_few_decades, number, thin_numbers, uncut_marks
from bnbook.plots.layout import (
    LEAST,
    PHONE_COLUMN,
    WIDTH,
    cells,
    first_of_rows,
    last_of_columns,
    letters,
    on_a_phone,
    subplots,
)
from bnbook.plots.names import clear_legends, mark, marks, name_lines, others, with_bars
from bnbook.plots.panels import fans, panels, shares
from bookpress.pipeline import chapters
from bookpress.results import Results

X, LONG = np.linspace(0, 1, 60), np.linspace(0, 10, 50)


@pytest.fixture(autouse=True)
def style():
    use_style()
    yield
    plt.close("all")


def test_nothing_of_a_users_own_style_is_drawn():
    def lines(_=None):
        figure, ax = plt.subplots()
        ax.plot(X)
        return figure

    own = {"text.usetex": True, "svg.fonttype": "none", "lines.marker": "o", "axes.facecolor": "black"}
    drawn = as_svg(lines, Results(), False)
    with plt.rc_context(own):
        assert as_svg(lines, Results(), False) == drawn and plt.rcParams["text.usetex"]
        use_style()
        assert not own.items() & {name: plt.rcParams[name] for name in own}.items()


# ---- panels of lines, fans of quantiles, shares of seeds ----


def test_a_panel_a_measure_and_a_line_a_norm():
    curves = {f"{name}.{norm}": np.ones((1, 3, 4)) for name in "ab" for norm in ("none", "batch")}
    del curves["b.batch"]
    x = {"a": [1, 2, 3, 4], "b": [10, 20, 30, 40]}
    fig = panels(
        curves,
        x,
        {"a": "A", "b": "B"},
        ("none", "batch"),
        log="xy",
        linear=("b",),
        levels={"a": {"so much": 1}},
    )
    one, other = fig.axes[:2]
    assert [len(ax.lines) for ax in (one, other)] == [3, 1] and other.lines[0].get_xdata()[0] == 10
    assert one.get_yscale() == "log" and other.get_yscale() == "linear" and other.get_xscale() == "log"
    assert [text.get_text() for text in fig.legends[0].get_texts()] == [
        "without batch norm",
        "with batch norm",
    ]


def test_a_fan_a_column():
    values = np.tile(np.arange(7.0), (1, 5, 2, 1))
    fig = fans({"none": values, "batch": values}, range(5), ["one", "two"])
    assert len(fig.axes) == 4 and all(len(ax.collections) == 3 for ax in fig.axes)
    assert (fig.axes[0].lines[0].get_ydata() == 3).all(), "the median is the line"


def test_shares_stand_beside_each_other_and_are_counted():
    _, ax = plt.subplots()
    events = {
        ("0.1", "none"): np.array([1, 1, 0, 1]),
        ("0.1", "batch"): np.zeros(4),
        ("1", "none"): np.ones(4),
    }
    shares(ax, events, ["0.1", "1"], "failed")
    assert [text.get_text() for text in ax.texts] == ["3", "0", "4"]
    assert [line.get_ydata()[0] for line in ax.lines if len(line.get_ydata()) == 1][0] == 75
    places = [float(bars.lines[0].get_xdata()[0]) for bars in ax.containers]
    assert places == [-0.09, 0.09, 1.0], "one that is alone stands over its name"
    assert len(ax.get_legend_handles_labels()[1]) == 2


def test_a_share_stands_in_its_exact_interval():
    _, ax = plt.subplots()
    shares(ax, {("x", "batch"): np.array([1.0, 0.0, 0.0, 0.0])}, ["x"], "started")
    (bar,) = ax.containers[0][2][0].get_segments()
    assert sorted(bar[:, 1]) == pytest.approx([0.63, 80.59], abs=0.01)  # Clopper and Pearson of 1 in 4
    assert ax.containers[0][0].get_ydata() == pytest.approx([25])


# ---- legends, numbers on axes, marks on the frame ----


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


# ---- names beside lines: next to their own, clear of all else, or else the legend stays ----


@pytest.fixture
def figure():
    def make(*lines, panels: int = 1):
        fig, axes = plt.subplots(1, panels, squeeze=False, figsize=(6.8, 3.6))
        for ax in axes[0]:
            for k, y in enumerate(lines):
                ax.plot(LONG, y, label=f"line {k}", color=f"C{k}")
        return fig

    return make


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
    fig = figure(np.sin(LONG), np.sin(LONG) + 0.9, 0.3 * LONG)
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
    fig = figure(*(np.sin(LONG) + 0.05 * k for k in range(12)))
    legend = fig.axes[0].legend()
    name_lines(fig)
    assert fig.axes[0].get_legend() is legend and legend.get_visible() and not fig.axes[0].texts


@pytest.mark.parametrize("kind", ["title", "patch", "colour scale"])
def test_what_is_no_list_of_lines_stays(figure, kind):
    fig = figure(np.sin(LONG))
    (ax,) = fig.axes
    if kind == "patch":
        ax.bar([1], [1], label="a bar")
    if kind == "colour scale":
        ax.pcolormesh(np.eye(3))
    ax.legend(title="these are" if kind == "title" else None)
    name_lines(fig)
    assert ax.get_legend() is not None and not ax.texts


def test_a_legend_of_several_panels_becomes_names_in_one(figure):
    fig = figure(np.sin(LONG), np.sin(LONG) + 2, panels=3)
    fig.legend(*fig.axes[0].get_legend_handles_labels(), loc="outside lower center")
    before = fig.axes[0].get_position().height
    name_lines(fig)
    assert not fig.legends and [len(ax.texts) for ax in fig.axes] == [2, 0, 0]
    fig.draw_without_rendering()
    assert fig.axes[0].get_position().height > before, "the legend's room goes to the panels"


def test_a_legend_of_several_panels_stays_where_dashes_tell_its_lines_apart(figure):
    fig = figure(np.sin(LONG), np.sin(LONG) + 2, panels=2)
    for ax in fig.axes:
        ax.lines[1].set(color="C0", linestyle="--")
    fig.legend(*fig.axes[0].get_legend_handles_labels(), loc="outside lower center")
    name_lines(fig)
    assert fig.legends and not any(ax.texts for ax in fig.axes)
    (ax,) = (alone := figure(np.sin(LONG), np.sin(LONG) + 2)).axes
    ax.lines[1].set(color="C0", linestyle="--")
    ax.legend()
    name_lines(alone)
    assert set(boxes(alone)) == {"line 0", "line 1"}, "in one panel the names stand beside their lines"


def test_points_without_intervals_and_lines_without_places_are_no_hindrance(figure):
    fig = figure(np.sin(LONG))
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
    fig = figure(np.full_like(LONG, 5.0))
    (ax,) = fig.axes
    drawn = ax.contour(LONG, LONG, np.tile(LONG[:, None], (1, 50)), levels=[5.3, 5.6, 5.9, 6.2])
    ax.legend()
    name_lines(fig)
    (box,) = boxes(fig).values()
    lines = [path.vertices for path in drawn.get_paths() if len(path.vertices)]
    ends = [drawn.get_transform().transform(line) for line in lines]
    assert ends and not any(box.padded(2).y0 < line[:, 1].max() < box.padded(2).y1 for line in ends)


def test_error_bars_are_a_part_of_their_line(figure):
    (ax,) = figure(np.sin(LONG)).axes
    bars = ax.errorbar([2, 4], [3.0, 3.5], [0.1, 0.2], fmt="o", capsize=3)
    assert others(ax, with_bars(ax, bars.lines[0])) == [ax.lines[0]]
    assert with_bars(ax, ax.lines[0]) == [ax.lines[0]]


def test_a_name_stands_on_no_band_of_another_colour(figure):
    fig = figure(np.ones_like(LONG))
    (ax,) = fig.axes
    ax.fill_between(LONG[25:], 0, 2, color="C1", alpha=0.2)
    ax.fill_between(LONG[:5], 0, 2, color="C0", alpha=0.2)
    ax.legend()
    name_lines(fig)
    (box,) = boxes(fig).values()
    assert box.x1 <= ax.transData.transform((LONG[25], 0))[0]


# ---- marks: beside their line, in no legend, and only where the axes reach ----


@pytest.fixture
def axes():
    fig, axes = plt.subplots(1, 2, figsize=(7, 3), layout="constrained")
    for ax in axes:
        ax.plot([0, 10], [0, 1], label="a line")
        ax.legend()
    return axes


def words(ax):
    return [text.get_text().replace("\n", " ") for text in ax.texts]


def test_a_mark_is_named_and_in_no_legend(axes):
    marks(axes[0], x={"paper: 3": 3.0}, y={"guessing": 0.5})
    name_lines(axes[0].figure)
    assert words(axes[0]) == ["a line", "paper: 3", "guessing"] and words(axes[1]) == ["a line"]
    assert {text.get_color() for text in axes[0].texts[1:]} == {COLORS["printed"]}


def test_words_of_a_mark_stand_on_no_legend(axes):
    (ax, _), legend = axes, axes[0].legend(title="kept", loc="center right")
    mark(ax, "halfway", y=0.5)
    name_lines(ax.figure)
    (text,) = ax.texts
    assert text.get_text() == "halfway" and ax.get_legend() is legend
    assert not text.get_window_extent().overlaps(legend.get_window_extent())


def crowded(axes, *marked):
    for ax in axes:
        ax.plot(np.linspace(0, 10, 400), np.tile([0.0, 1.0], 200))
        for words_, height in marked:
            mark(ax, words_, y=height)
        ax.set_ylim(0, 1)
    name_lines(axes[0].figure)


def test_a_mark_without_room_is_named_in_a_legend_once_and_beyond_the_axes_not(axes):
    for ax in axes:
        ax.get_legend().remove()
    crowded(axes, ("crowded", 0.5), ("far away", 7.0))
    named = [text.get_text() for ax in axes if ax.get_legend() for text in ax.get_legend().get_texts()]
    assert named == ["crowded"]
    assert not {"crowded", "far away"} & set(words(axes[0]) + words(axes[1]))


def test_two_marks_in_a_legend_look_different_and_alike_in_every_panel(axes):
    crowded(axes, ("one", 0.3), ("other", 0.6))
    looks = [
        {line.get_label(): line._unscaled_dash_pattern for line in ax.lines if "_mark" in line.get_label()}
        for ax in axes
    ]
    assert looks[0] == looks[1] and looks[0]["_mark: one"] != looks[0]["_mark: other"]


def test_a_legend_that_is_there_takes_a_mark_without_room(axes):
    axes[0].legend(["what no line is called"], title="a title keeps it", fontsize=7)
    crowded(axes[:1], ("crowded", 0.5))
    legend = axes[0].get_legend()
    assert [text.get_text() for text in legend.get_texts()] == ["what no line is called", "crowded"]
    assert legend.get_title().get_text() == "a title keeps it"
    assert {text.get_fontsize() for text in legend.get_texts()} == {7.0}


def test_where_two_curves_cross_last():
    x = np.array([1.0, 10.0, 100.0, 1000.0])
    assert landscape.crossing(x, [1, 3, 1, 3], [2, 2, 2, 2]) == pytest.approx(np.sqrt(100 * 1000))
    assert landscape.crossing(x, [1, 1, 1, np.nan], [2, 2, 2, 2]) is None


def results_of(chapter, found):
    """What a drawing of that chapter is given, at the smoke profile."""
    entries = {name: {"values": np.asarray(values).tolist()} for name, values in found.items()}
    return Results({"parameters": chapters.select([chapter])[0].parameters("smoke")}, entries)


def test_the_papers_rate_stands_between_its_neighbours():
    rates = [0.01, 0.03, 0.1, 0.3, 0.5, 1.0]
    shown = {
        f"not_started.{training.tag(rate)}.{norm}": [1, 1, 1] for rate in rates for norm in training.ARMS
    }
    fig = training.starts(results_of("santurkar/training", shown))
    (place,) = {line.get_xdata()[0] for line in fig.axes[0].lines if "paper" in line.get_label()}
    assert 3 < place < 4


def test_convolutions_of_the_plain_network_have_its_colour():
    shown = {f"curve.control.{layer}": np.ones((1, 3, 3)) for layer in (2, 5)} | {"closed.m_variance": [0.1]}
    shown |= {f"not_started.{norm}": [1, 1] for norm in noisy_batch_norm.NORMS}
    fig = noisy_batch_norm.control(results_of("santurkar/noisy-batch-norm", shown))
    lines = {line.get_label(): line for line in fig.axes[1].lines}
    assert {lines[f"convolution {layer}"].get_color() for layer in (2, 5)} == {COLORS["none"]}
    assert lines["convolution 2"].get_linestyle() != lines["convolution 5"].get_linestyle()


# ---- for a phone: columns below each other, their scales as on a page, words in as many lines as they need ----


def narrow(fill, *panels, **how):
    """A drawing for a phone, finished: its panels, filled by `fill`."""
    with on_a_phone():
        fig, axes = subplots(*panels, **({"squeeze": False} | how))
        fill(axes)
        finish(fig, narrow=True)
    fig.draw_without_rendering()
    return fig


def test_all_words_stand_on_the_narrow_drawing():
    def fill(axes):
        axes[0, 0].set_title(
            "Two words and then many more of them, so that no phone shows all of it in one line"
        )
        axes[0, 0].set_xlabel(
            "what is measured $a b c d e f g h i j k l$ and, after all of that, in which unit it is"
        )
        axes[0, 0].set_ylabel("height in metres, measured from the ground to the ceiling of the room")

    fig = narrow(fill, figsize=(7.2, 3.2))
    (ax,) = fig.axes
    assert (fig.get_figwidth(), fig.get_figheight()) == (WIDTH, 3.2), "one panel is as high as on a page"
    for text in (ax.title, ax.xaxis.label, ax.yaxis.label):
        box = text.get_window_extent()
        assert box.x0 >= 0 and box.y0 >= 0 and box.x1 <= fig.bbox.x1 and box.y1 <= fig.bbox.y1
        assert text.get_fontsize() >= 8 and "\n" in text.get_text()
    assert "$a b c d e f g h i j k l$" in ax.get_xlabel(), "a formula is one word"


def test_long_names_of_rows_leave_the_panel_room_in_lines_as_even_as_can_be():
    names = ["4.4, true maximum over $X$", "the name of a row in a lot of words, of which no phone has room"]
    (ax,) = narrow(lambda axes: axes[0, 0].set_yticks([0, 1], names), figsize=(7.2, 4)).axes
    written = [name.get_text() for name in ax.get_yticklabels()]
    assert (
        ax.bbox.width > 0.5 * WIDTH * ax.figure.dpi and [" ".join(each.split()) for each in written] == names
    )
    assert written[0].split("\n") == ["4.4, true", "maximum", "over $X$"]


def test_on_a_page_panels_are_matplotlibs_own():
    fig, axes = subplots(2, 3, figsize=(7, 4), sharex=True, sharey="row")
    assert axes.shape == (2, 3) and fig.get_size_inches().tolist() == [7, 4]
    places = [ax.get_subplotspec() for ax in axes.flat]
    assert [(each.rowspan.start, each.colspan.start) for each in places] == [
        (r, c) for r in (0, 1) for c in (0, 1, 2)
    ]


@pytest.mark.parametrize(
    ("rows", "columns", "across"), [(1, 2, 1), (2, 3, 1), (3, 3, 2), (3, 5, 2), (7, 1, 1)]
)
def test_columns_stand_below_each_other_and_share_what_they_share_on_a_page(rows, columns, across):
    with on_a_phone():
        fig, axes = subplots(
            rows, columns, sharex="col", sharey="row", squeeze=False, figsize=(8, 2.5 * rows)
        )
    places = {
        (r, c): (ax.get_subplotspec().rowspan.start, ax.get_subplotspec().colspan.start)
        for (r, c), ax in zip([(r, c) for r in range(rows) for c in range(columns)], axes.flat)
    }
    assert places == {(r, c): (c // across * rows + r, c % across) for r, c in places}
    axes[0, 0].set(xlim=(0, 7), ylim=(0, 5))
    assert {ax.get_ylim() for ax in axes[0]} == {(0, 5)} and {ax.get_xlim() for ax in axes[:, 0]} == {(0, 7)}
    if rows > 1:
        assert axes[1, 0].get_ylim() != (0, 5), "no scale that a page does not share"
    assert fig.get_figwidth() == WIDTH and fig.get_figheight() * 358 / WIDTH < 1000


def test_each_block_has_the_numbers_and_the_name_of_its_rows():
    def fill(axes):
        for ax, words in zip(axes[:, 0], ("one", "two", "three")):
            ax.set_ylabel(words)
        for ax in axes[-1]:
            ax.set_xlabel("step")

    fig = narrow(fill, 3, 3, sharex=True, sharey="row")
    axes = fig.bnbook_blocks[0]
    assert [[ax.get_ylabel() for ax in row] for row in axes] == [[w, "", w] for w in ("one", "two", "three")]
    numbers = [
        [any(t.get_visible() and t.get_text() for t in ax.get_yticklabels()) for ax in row] for row in axes
    ]
    assert numbers == [[True, False, True]] * 3
    below = [
        [any(t.get_visible() and t.get_text() for t in ax.get_xticklabels()) for ax in row] for row in axes
    ]
    assert below == [[False] * 3, [False] * 3, [True] * 3]


@pytest.mark.parametrize(
    ("narrow", "count", "columns", "last"), [(False, 5, 3, 3), (True, 5, 1, 1), (True, 9, 2, 2)]
)
def test_a_list_of_panels_is_read_on_in_rows(narrow, count, columns, last):
    with on_a_phone(narrow):
        fig, axes = cells(count, 3, (7, 4), sharex=True, sharey=True)
    places = [ax.get_subplotspec() for ax in axes]
    assert [(p.rowspan.start, p.colspan.start) for p in places] == [divmod(k, columns) for k in range(count)]
    assert last_of_columns(axes) == axes[-last:] and first_of_rows(axes) == axes[::columns]
    axes[0].set(xlim=(0, 7), ylim=(0, 5))
    assert {(ax.get_xlim(), ax.get_ylim()) for ax in axes} == {((0, 7), (0, 5))}
    numbered = [any(text.get_visible() and text.get_text() for text in ax.get_xticklabels()) for ax in axes]
    assert numbered == [k + columns >= count for k in range(count)], "where no panel is below"
    assert fig.axes == axes
    assert fig.get_figheight() * 358 / WIDTH < 1000 or not narrow


def test_the_legend_of_all_stands_above_the_panels_with_the_same_marks():
    def fill(axes):
        for ax in axes.flat:
            ax.errorbar([0, 1], [0, 1], 0.1, fmt="o", label="a long name of a line")
            ax.axvspan(0, 1, label="one more long name of an area")
        axes[0, 0].figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=2)

    fig = narrow(fill, 1, 2)
    (legend,) = fig.legends
    box = legend.get_window_extent()
    assert box.x0 >= 0 and box.x1 <= fig.bbox.x1 and box.y0 >= max(ax.bbox.y1 for ax in fig.axes)
    assert len({text.get_window_extent().y0 for text in legend.get_texts()}) == 2
    assert "o" in {line.get_marker() for line in legend.findobj(Line2D)}


def test_legends_of_figure_and_panel_become_one_and_those_of_several_panels_stay():
    def fill(axes, both=False):
        (above,), (below,) = axes
        line, area = above.plot([0, 1])[0], above.axvspan(0, 1)
        above.figure.legend([line, area], ["a line", "an area"], loc="outside upper center")
        below.legend([below.axvspan(0, 1), line], ["a mark", "a line"], title="both")
        if both:
            above.legend([area], ["an area"], title="own")

    fig = narrow(fill, 2, 1)
    (legend,) = fig.legends
    assert sorted(text.get_text() for text in legend.get_texts()) == ["a line", "a mark", "an area"]
    assert legend.get_title().get_text() == "both" and not any(ax.get_legend() for ax in fig.axes)
    fig = narrow(lambda axes: fill(axes, True), 2, 1)
    assert all(ax.get_legend() for ax in fig.axes) and len(fig.legends) == 1


def test_texts_and_numbers_that_would_meet_are_broken_and_thinned():
    def fill(axes):
        axes[0, 0].text(0.3, 0.9, "the accuracy of numbers")
        axes[0, 0].text(0.62, 0.9, "what is let pass")
        axes[0, 0].set_xticks([0, 0.2, 0.4, 0.6, 0.8, 1], ["10 billions"] * 6)

    (ax,) = narrow(fill, figsize=(8, 3)).axes
    one, other = (text.get_window_extent() for text in ax.texts)
    assert not one.overlaps(other)
    boxes = [label.get_window_extent() for label in ax.get_xticklabels()]
    assert len(boxes) == 3 and not any(a.overlaps(b) for a, b in zip(boxes, boxes[1:]))


@pytest.mark.parametrize(
    ("phone", "width", "least"),
    [(True, 7, LEAST * WIDTH * 72 / PHONE_COLUMN), (False, 7, 9), (False, 9, 9 * 648 / 552)],
)
def test_no_letter_is_smaller_than_can_be_read_where_it_is_shown(phone, width, least):
    with on_a_phone(phone):
        fig, ax = subplots(figsize=(width, 3))
        ax.plot([0, 1], label="a line")
        ax.text(0.5, 0.5, "small", fontsize=5)
        ax.tick_params(labelsize=6)
        ax.legend(fontsize=7, title="kept as a legend")
        finish(fig, phone)
    assert letters(ax) == pytest.approx(least)
    fig.draw_without_rendering()
    legend = (fig.legends or [ax.get_legend()])[0]
    sizes = [text.get_fontsize() for text in (*ax.texts, *ax.get_xticklabels(), *legend.get_texts())]
    assert min(sizes) == pytest.approx(least)
