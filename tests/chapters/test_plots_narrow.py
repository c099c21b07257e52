"""What is drawn for a phone: columns below each other, their scales as on a page, words in as many lines as they need."""

import matplotlib.pyplot as plt
import pytest
from matplotlib.lines import Line2D

from bnbook.figures import finish, use_style
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


@pytest.fixture(autouse=True)
def style():
    use_style()
    yield
    plt.close("all")


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


def test_a_drawing_that_asks_pyplot_is_narrow_too_and_pyplot_is_itself_again():
    usual = plt.subplots
    with pytest.raises(ZeroDivisionError), on_a_phone():
        fig, axes = plt.subplots(1, 2, figsize=(7, 3), layout="constrained")
        assert fig.get_figwidth() == WIDTH and axes[0].get_subplotspec().rowspan.start == 0
        assert axes[1].get_subplotspec().rowspan.start == 1
        raise ZeroDivisionError
    assert plt.subplots is usual and plt.subplots(figsize=(7, 3))[0].get_figwidth() == 7


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
