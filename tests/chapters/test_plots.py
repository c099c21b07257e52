"""Drawings: panels and what they show; names beside lines; what is drawn for a phone; what chapters compute as they draw,
which no chapter's stamp sees."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pytest

from bnbook.chapters import fisher, gamma_initialisation, landscape, length_direction, scale
from bnbook.figures import finish, use_style
from bnbook.plots import layout
from bnbook.plots.axes import name_few_decades, thin_numbers
from bnbook.plots.layout import WIDTH, cells, name_rows, on_a_phone, subplots
from bnbook.plots.names import name_lines
from bnbook.plots.panels import Panel, compare, fans

LONG = np.linspace(0, 10, 50)


@pytest.fixture(autouse=True)
def style():
    use_style()
    yield
    plt.close("all")


def test_a_panel_a_measure_and_a_line_an_arm():
    curves = {name: np.ones((1, 3, 4)) for name in ("a.none", "a.batch", "b.none")}
    first = Panel(curve="a.{}", x=[1, 2, 3, 4], title="A", log="xy", marks_y={"so much": 1})
    fig = compare(curves, [first, Panel(curve="b.{}", x=[10, 20, 30, 40], log="x")], figsize=(6, 3))
    one, other = fig.axes
    assert [len(ax.lines) for ax in (one, other)] == [3, 1] and other.lines[0].get_xdata()[0] == 10
    assert one.get_yscale() == "log" and other.get_yscale() == "linear" and other.get_xscale() == "log"
    words = [text.get_text() for text in fig.legends[0].get_texts()]
    assert words == ["without batch norm", "with batch norm"]


@pytest.mark.parametrize(
    ("by", "middle", "low"),
    [
        ("mean", 5.0, 5 - 12.706205 * 4),  # Student's t of two times s/√2
        ("geometric", 3.0, 3 * np.exp(-12.706205 * np.log(3))),
        ("line", 5.0, None),
    ],
)
def test_seeds_become_a_line_with_its_band(by, middle, low):
    values = np.array([[1.0, 1.0], [9.0, 9.0]])
    (ax,) = compare({"x": values}, [Panel(curve="x")], {"a": "words"}, figsize=(4, 3), by=by).axes
    assert ax.lines[0].get_ydata() == pytest.approx([middle] * 2)
    assert ax.lines[0].get_xdata().tolist() == [1, 2]
    bands = [each.get_paths()[0].vertices[:, 1].min() for each in ax.collections]
    assert bands == ([] if low is None else [pytest.approx(low)])


def test_a_share_stands_in_its_exact_interval():
    arms = {"batch": dict(y=np.array([[1.0, 1.0], [0.0, 1.0], [0.0, 0.0], [0.0, 0.0]]), label="started")}
    (ax,) = compare({}, [Panel(x=[0, 1], by="shares", look="o")], arms, figsize=(4, 3)).axes
    (bar,) = ax.containers[0][2][0].get_segments()
    assert sorted(bar[:, 1]) == pytest.approx([0.63, 80.59], abs=0.01)  # Clopper and Pearson of 1 in 4
    assert ax.containers[0][0].get_ydata() == pytest.approx([25])
    assert [text.get_text() for text in ax.texts] == ["1", "2"]


def test_rows_stand_from_above_with_their_intervals_across():
    arms = {"batch": dict(x=[1], y=np.array([[1.0], [9.0]]))}
    panel = Panel(rows=["first", "second"], by="across", look="o", times=2)
    (ax,) = compare({}, [panel], arms, figsize=(4, 3), legend="none").axes
    (bar,) = ax.containers[0][2][0].get_segments()
    assert ax.containers[0][0].get_xydata().tolist() == [[10, 1]]
    assert sorted(bar[:, 0]) == pytest.approx([10 - 12.706205 * 8, 10 + 12.706205 * 8])
    assert [text.get_text() for text in ax.get_yticklabels()] == ["first", "second"]
    assert ax.get_ylim()[0] > 1 and ax.get_ylim()[1] < 0, "the first one is above"


def test_a_fan_is_bands_of_quantiles_about_their_median():
    quantiles = np.tile(np.arange(7.0), (1, 2, 1, 1))  # (1, X, rows, 7)
    (ax,) = fans({"none": quantiles}, [1, 2], ["a layer"]).axes
    bands = [each.get_paths()[0].vertices[:, 1] for each in ax.collections]
    assert [(band.min(), band.max()) for band in bands] == [(0, 6), (1, 5), (2, 4)]
    assert ax.lines[0].get_xydata().tolist() == [[1, 3], [2, 3]]


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


def test_of_numbers_that_meet_every_other_one_is_shown():
    for width, shown in ((6.0, ["0", "20000", "40000", "60000"]), (1.6, ["0", "40000"])):
        fig, ax = plt.subplots(figsize=(width, 3))
        ax.set(xlim=(0, 60000), xticks=range(0, 60001, 20000))
        fig.draw_without_rendering()
        thin_numbers(ax)
        assert [label.get_text() for label in ax.get_xticklabels()] == shown


def curves(*lines, panels=1):
    fig, axes = plt.subplots(1, panels, squeeze=False, figsize=(6.8, 3.6))
    for ax in axes[0]:
        for k, y in enumerate(lines):
            ax.plot(LONG, y, label=f"line {k}", color=f"C{k}")
    return fig


def distance(box, ax, line):
    """Pixels from a box to the nearest of many points of a line."""
    fine = np.linspace(0, 10, 4000)
    xy = ax.transData.transform(np.stack([fine, np.interp(fine, *line.get_data())], axis=1))
    low, high = (np.array(corner) for corner in (box.min, box.max))
    return np.hypot(*np.maximum(np.maximum(low - xy, xy - high), 0).T).min()


def test_each_name_stands_next_to_its_own_line_and_clear_of_the_others():
    fig = curves(np.sin(LONG), np.sin(LONG) + 0.9, 0.3 * LONG)
    (ax,) = fig.axes
    ax.legend()
    name_lines(fig)
    assert ax.get_legend() is None
    fig.draw_without_rendering()
    found = {text.get_text(): text.get_window_extent() for text in ax.texts}
    assert set(found) == {"line 0", "line 1", "line 2"}
    for line in ax.lines:
        box = found[line.get_label()]
        apart = {other.get_label(): distance(box, ax, other) for other in ax.lines}
        assert 0 < apart.pop(line.get_label()) < min(8, *apart.values()), (line.get_label(), apart)
        assert min(apart.values()) > 4 and ax.bbox.x0 < box.x0 and box.x1 <= ax.bbox.x1 + 1
        assert all(not box.overlaps(other) for other in found.values() if other is not box)


def test_a_legend_without_room_for_names_stays_and_one_of_several_panels_becomes_names_in_one():
    fig = curves(*(np.sin(LONG) + 0.05 * k for k in range(12)))
    legend = fig.axes[0].legend()
    name_lines(fig)
    assert fig.axes[0].get_legend() is legend and legend.get_visible() and not fig.axes[0].texts
    fig = curves(np.sin(LONG), np.sin(LONG) + 2, panels=3)
    fig.legend(*fig.axes[0].get_legend_handles_labels(), loc="outside lower center")
    before = fig.axes[0].get_position().height
    name_lines(fig)
    assert not fig.legends and [len(ax.texts) for ax in fig.axes] == [2, 0, 0]
    fig.draw_without_rendering()
    assert fig.axes[0].get_position().height > before, "the legend's room goes to the panels"


def test_panels_stand_where_they_would_if_they_were_laid_out_at_every_question(monkeypatch):
    places = []
    for settled in (True, False):
        if not settled:
            monkeypatch.setattr(layout, "moved", lambda fig: None)
            never = property(lambda fig: False, lambda fig, _: None)
            monkeypatch.setattr(plt.Figure, "bnbook_settled", never, raising=False)
        fig, axes = subplots(1, 2, figsize=(6.4, 3.0))
        for ax in axes:
            for k in (1, 2):
                ax.loglog([1, 1e3], [k, k * 1e6], label=f"$x^{k}$, a line with a name")
            title = "a title that is longer than its panel is wide, with $\\lambda_{max}$"
            ax.set(title=title, xlabel="$\\eta$")
            ax.legend()
        finish(fig)
        fig.draw_without_rendering()
        named = [text.get_position() for ax in fig.axes for text in ax.texts]
        places.append(([ax.bbox.bounds for ax in fig.axes], named))
    (panels, names), (true, true_names) = places
    assert len(names) == len(true_names) > 0 and np.allclose(panels, true, atol=1.0), "pixels"
    assert np.allclose(names, true_names, atol=0.01), "shares of the panels"


# ---- for a phone: columns below each other, their scales as on a page, words in as many lines as they need ----


def test_all_words_stand_on_the_narrow_drawing():
    with on_a_phone():
        fig, ax = subplots(figsize=(7.2, 3.2))
        ax.set(
            title="Two words and then many more of them, so that no phone shows all of it in one line",
            xlabel="what is measured $a b c d e f g h i j k l$ and, after all of that, in which unit it is",
            ylabel="height in metres, measured from the ground to the ceiling of the room",
        )
        finish(fig, narrow=True)
    fig.draw_without_rendering()
    assert (fig.get_figwidth(), fig.get_figheight()) == (WIDTH, 3.2), "one panel is as high as on a page"
    for text in (ax.title, ax.xaxis.label, ax.yaxis.label):
        box = text.get_window_extent()
        assert box.x0 >= 0 and box.y0 >= 0 and box.x1 <= fig.bbox.x1 and box.y1 <= fig.bbox.y1
        assert text.get_fontsize() >= 8 and "\n" in text.get_text()
    assert "$a b c d e f g h i j k l$" in ax.get_xlabel(), "a formula is one word"


@pytest.mark.parametrize("count", [4, 16])
def test_names_of_rows_do_not_meet_however_many_lines_they_take(count):
    name = "a name of a row that takes some lines"
    with on_a_phone():
        fig, ax = subplots()
        name_rows(ax, [name] * count)
        finish(fig, narrow=True)
    fig.draw_without_rendering()
    boxes = [label.get_window_extent() for label in ax.get_yticklabels()]
    assert len(boxes) == count and not any(one.overlaps(other) for one, other in zip(boxes, boxes[1:]))
    assert all(label.get_text().count("\n") for label in ax.get_yticklabels())


@pytest.mark.parametrize(
    ("rows", "columns", "across", "height"),
    [(1, 2, 1, 4.8), (2, 3, 1, 8.8), (3, 3, 2, 8.8), (3, 5, 2, 10.05), (7, 1, 1, 8.8)],
)
def test_columns_stand_below_each_other_and_share_what_they_share_on_a_page(rows, columns, across, height):
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
    assert (fig.get_figwidth(), fig.get_figheight()) == pytest.approx((WIDTH, height)), "two screens at most"


# ---- what chapters compute as they draw ----


def test_where_two_curves_cross_last_and_factors_that_leave_a_gap():
    x = np.array([1.0, 10.0, 100.0, 1000.0])
    assert landscape.crossing(x, np.array([1, 3, 1, 3]), 2) == pytest.approx(np.sqrt(100 * 1000))
    assert landscape.crossing(x, np.array([1, 1, 1, np.nan]), 2) is None
    assert np.isnan(scale._middle(np.array([1.0, np.inf]))).all()
    assert scale._middle(np.array([1.0, 3.0]))[0] == 2


def test_a_curve_is_drawn_at_every_step_up_to_20_and_at_120_more():
    assert length_direction.drawn_steps(260).tolist() == [*range(21), *range(22, 261, 2)]
    assert length_direction.drawn_steps(1220).tolist() == [*range(21), *range(30, 1221, 10)]
    assert length_direction.drawn_steps(80).tolist() == list(range(81))


def test_points_measured_at_one_gamma_are_drawn_at_others_by_its_square():
    nets, lines = ("fc", "conv"), fisher.LINES
    results = {"curve.figure_one.gamma": np.array([[1.0, 2.0]]), "curve.figure_one.momentum": np.array([0.9])}
    results |= {f"curve.figure_one.{line}.{net}": np.ones((1, 2)) for line in lines for net in nets}
    results |= {f"value.{net}.gaussian.{case}": np.array([2.0, 2.0]) for net in nets for case in fisher.MARKS}
    left, right, *_ = fisher.figure_one(results).axes
    for ax, of in ((left, lambda top: top), (right, lambda top: 2 * 1.9 / top)):
        drawn = [np.asarray(container[0].get_ydata()) for container in ax.containers]
        assert drawn[0] == pytest.approx(of(np.full(6, 2.0)))
        for case in drawn[1:]:
            assert case == pytest.approx(of(np.array([0.5, 2, 8, 18, 32, 50])))
        assert ax.lines[0].get_ydata() == pytest.approx(of(np.ones(2)))


def test_the_line_like_the_square_of_the_first_gamma():
    tags = [gamma_initialisation.tag(net, g) for net in gamma_initialisation.NAMES for g in (3.0, 0.1, 1.0)]
    found = {f"curve.eigenvalue.{tag}": np.array([2.0, 8.0]) for tag in tags}
    (ax,) = gamma_initialisation.eigenvalues(found).axes
    means, _, square = (line.get_ydata() for line in ax.lines[:3])
    assert means == pytest.approx([4, 4, 4]) and square == pytest.approx([0.04, 4, 36])
    assert ax.lines[3].get_ydata()[0] == pytest.approx(2 * 1.9 / 0.1)  # the paper's rate is critical there


@pytest.mark.parametrize(
    ("count", "columns", "height"), [(3, 1, 3 * 2.1 + 0.6), (6, 1, 8.8), (8, 2, 8.8), (20, 2, 11.1)]
)
def test_panels_in_reading_order_take_two_screens_of_a_phone_unless_they_are_many(count, columns, height):
    with on_a_phone():
        fig, axes = cells(count, 4, (9, 5))
    assert len(axes) == count and axes[0].get_gridspec().ncols == columns
    assert (fig.get_figwidth(), fig.get_figheight()) == pytest.approx((WIDTH, height))
    plt.close(fig)
