"""A figure of one panel is drawn once more for a phone: narrow, with letters of the same size."""

import pickle

import matplotlib.pyplot as plt
import pytest
from matplotlib.lines import Line2D

from bnbook.figures import save_figure, use_style
from bnbook.plots.narrow import WIDTH, narrowed


@pytest.fixture(autouse=True)
def style(monkeypatch, tmp_path):
    monkeypatch.setenv("BNBOOK_FIGURES", str(tmp_path))
    use_style()
    yield
    plt.close("all")


def figure(columns: int = 1, width: float = 7.2) -> plt.Figure:
    fig, axes = plt.subplots(1, columns, figsize=(width, 3.2), squeeze=False)
    ax = axes[0, 0]
    ax.plot([0, 1], [0, 1], label="a line")
    ax.set_title("Two words and then many more of them, so that no phone shows all of it in one line")
    ax.set_xlabel("what is measured $a b c d e f g h i j k l$ and, after all of that, in which unit it is")
    ax.set_ylabel("height in metres, measured from the ground to the ceiling of the room")
    return fig


def test_all_words_stand_on_the_narrow_drawing_as_large_as_before():
    narrow = narrowed(figure())
    assert narrow.get_figwidth() == WIDTH
    ax = narrow.axes[0]
    for text in (ax.title, ax.xaxis.label, ax.yaxis.label):
        box = text.get_window_extent()
        assert box.x0 >= 0 and box.y0 >= 0 and box.x1 <= narrow.bbox.x1 and box.y1 <= narrow.bbox.y1
        assert text.get_fontsize() >= 11 and "\n" in text.get_text()
    assert "$a b c d e f g h i j k l$" in ax.get_xlabel()
    assert " ".join(ax.get_title().split()).startswith(
        "Two words and then many more of them, so that no phone"
    )


def test_long_names_of_rows_leave_the_panel_room():
    fig, ax = plt.subplots(figsize=(7.2, 4))
    names = ["short", "the name of a row in a lot of words, of which no phone has room"]
    ax.set_yticks([0, 1], names)
    ax.set_xlabel("what the rows have in common is longer than the panel is wide")
    narrow = narrowed(fig).axes[0]
    assert "\n" in narrow.get_yticklabels()[1].get_text()
    assert narrow.bbox.width > 0.5 * WIDTH * fig.dpi
    assert [" ".join(name.get_text().split()) for name in narrow.get_yticklabels()] == names
    assert narrow.get_xlabel().count("\n") <= 1


def test_the_wide_drawing_is_as_it_was_and_pyplot_knows_no_other():
    fig = figure()
    fig.axes[0].xaxis.set_major_formatter(lambda value, place: f"{value:.1f}")  # what pickle refuses
    with pytest.raises((AttributeError, pickle.PicklingError)):
        pickle.dumps(fig)
    before = plt.get_fignums(), fig.get_figwidth(), fig.axes[0].get_title()
    assert narrowed(fig) is not None
    assert (plt.get_fignums(), fig.get_figwidth(), fig.axes[0].get_title()) == before


def test_columns_stack_by_themselves_and_what_is_narrow_stays():
    assert narrowed(figure(columns=2)) is None
    assert narrowed(figure(width=4.2)) is None


def test_panels_below_each_other_are_narrowed_together():
    fig, axes = plt.subplots(2, 1, figsize=(7, 5), sharex=True)
    for ax in axes:
        ax.plot([0, 1], label="a line")
    narrow = narrowed(fig)
    upper, lower = (ax.get_position() for ax in narrow.axes)
    assert narrow.get_figwidth() == WIDTH and upper.y0 > lower.y1 and upper.x0 == pytest.approx(lower.x0)
    assert narrowed(plt.subplots(2, 2, figsize=(7, 5))[0]) is None
    free = plt.figure(figsize=(7, 5))
    for height in (0.1, 0.6):
        free.add_axes((0.1, height, 0.8, 0.3))
    assert narrowed(free) is None, "who knows where they would stand"


def test_a_colour_bar_is_no_panel():
    fig, ax = plt.subplots(figsize=(7, 3))
    fig.colorbar(ax.imshow([[0, 1]]), ax=ax)
    assert narrowed(fig) is not None


def test_a_legend_stands_above_the_panel_with_the_same_marks():
    fig = figure()
    fig.axes[0].errorbar([0, 1], [0, 1], 0.1, fmt="o", label="another long name of a line")
    for label in ("one more long name of an area", "the last name of an area"):
        fig.axes[0].axvspan(0, 1, label=label)
    fig.axes[0].legend(ncols=4)
    narrow = narrowed(fig)
    (legend,) = narrow.legends
    box = legend.get_window_extent()
    assert box.x0 >= 0 and box.x1 <= narrow.bbox.x1 and box.y0 >= narrow.axes[0].bbox.y1
    assert len({text.get_window_extent().y0 for text in legend.get_texts()}) == 4
    assert "o" in {line.get_marker() for line in legend.findobj(Line2D)}


def test_legends_of_figure_and_panel_become_one():
    fig, (above, below) = plt.subplots(2, 1, figsize=(7, 5))
    line, area = above.plot([0, 1])[0], above.axvspan(0, 1)
    fig.legend([line, area], ["a line", "an area"], loc="outside upper center")
    below.legend([below.axvspan(0, 1), line], ["a mark", "a line"], title="both")
    narrow = narrowed(fig)
    (legend,) = narrow.legends
    assert sorted(text.get_text() for text in legend.get_texts()) == ["a line", "a mark", "an area"]
    assert legend.get_title().get_text() == "both" and not any(ax.get_legend() for ax in narrow.axes)


def test_texts_and_numbers_that_would_meet_are_broken_and_thinned():
    fig, ax = plt.subplots(figsize=(8, 3))
    ax.text(0.3, 0.9, "the accuracy of numbers")
    ax.text(0.62, 0.9, "what is let pass")
    ax.set_xticks([0, 0.2, 0.4, 0.6, 0.8, 1], ["10 billions"] * 6)
    narrow = narrowed(fig)
    one, other = (text.get_window_extent() for text in narrow.axes[0].texts)
    assert not one.overlaps(other)
    boxes = [label.get_window_extent() for label in narrow.axes[0].get_xticklabels()]
    assert len(boxes) == 3 and not any(a.overlaps(b) for a, b in zip(boxes, boxes[1:]))


def test_both_drawings_are_saved(tmp_path):
    save_figure(figure(), "one")
    save_figure(figure(columns=2), "two")
    assert {path.name for path in tmp_path.iterdir()} == {"one.svg", "one.narrow.svg", "two.svg"}


def test_the_lines_of_a_name_are_as_even_as_its_words_let_them_be():
    fig, ax = plt.subplots(figsize=(7.2, 4))
    ax.set_yticks([0, 1], ["4.4, true maximum over $X$", "v1 3.2, a quarter of that"])
    shown = [name.get_text().split("\n") for name in narrowed(fig).axes[0].get_yticklabels()]
    assert shown == [["4.4, true", "maximum", "over $X$"], ["v1 3.2, a", "quarter of that"]]
