"""Marks: beside their line, in no legend, and only where the axes reach."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pytest

from bnbook.chapters import landscape, noisy_batch_norm, training
from bnbook.figures import COLORS
from bnbook.plots.axes import power
from bnbook.plots.names import mark, marks, name_lines


@pytest.fixture
def axes():
    fig, axes = plt.subplots(1, 2, figsize=(7, 3), layout="constrained")
    for ax in axes:
        ax.plot([0, 10], [0, 1], label="a line")
        ax.legend()
    yield axes
    plt.close("all")


def words(ax):
    return [text.get_text().replace("\n", " ") for text in ax.texts]


def test_a_mark_is_named_and_in_no_legend(axes):
    marks(axes[0], x={"paper: 3": 3.0}, y={"guessing": 0.5})
    name_lines(axes[0].figure)
    assert words(axes[0]) == ["a line", "paper: 3", "guessing"] and words(axes[1]) == ["a line"]
    assert {text.get_color() for text in axes[0].texts[1:]} == {COLORS["printed"]}


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


@pytest.mark.parametrize(
    "rate, words", [(1e-6, "$10^{-6}$"), (3e-5, r"$3\cdot 10^{-5}$"), (1.57e-6, r"$1.6\cdot 10^{-6}$")]
)
def test_powers_of_ten(rate, words):
    assert power(rate) == words


def test_the_papers_rate_stands_between_its_neighbours():
    rates = [0.01, 0.03, 0.1, 0.3, 0.5, 1.0]
    fig = training.starts({(rate, "none"): np.ones(3) for rate in rates}, rates)
    (place,) = {line.get_xdata()[0] for line in fig.axes[0].lines if "paper" in line.get_label()}
    assert 3 < place < 4
    plt.close(fig)


def test_convolutions_of_the_plain_network_have_its_colour():
    curve = np.ones((1, 3, 2))
    fig = noisy_batch_norm.control({"none": np.ones(2)}, {"2": curve, "5": curve}, [0, 1], 0.1, 300)
    lines = {line.get_label(): line for line in fig.axes[1].lines}
    assert {lines[f"convolution {layer}"].get_color() for layer in (2, 5)} == {COLORS["none"]}
    assert lines["convolution 2"].get_linestyle() != lines["convolution 5"].get_linestyle()
    plt.close(fig)
