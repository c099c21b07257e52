"""Panels, fans and shares draw what they are given."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pytest

from bnbook.plots.panels import fans, panels, shares


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


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
    import matplotlib.pyplot as plt

    fig, ax = plt.subplots()
    shares(ax, {("x", "batch"): np.array([1.0, 0.0, 0.0, 0.0])}, ["x"], "started")
    (bar,) = ax.containers[0][2][0].get_segments()
    assert sorted(bar[:, 1]) == pytest.approx([0.63, 80.59], abs=0.01)  # Clopper and Pearson of 1 in 4
    assert ax.containers[0][0].get_ydata() == pytest.approx([25])
    plt.close(fig)
