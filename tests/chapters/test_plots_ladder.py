"""The ladder's figures: what has no place on an axis is left out, without a word."""

from __future__ import annotations

import warnings

import matplotlib.pyplot as plt
import numpy as np
import pytest

from bnbook.chapters.scale import Compared, against_width


@pytest.mark.parametrize("steps", [[np.inf, np.inf], [0.0, 0.0]], ids=["never", "at once"])
def test_a_factor_that_is_none_leaves_a_gap(steps):
    results = {
        f"steps.{rung}.{arm}": np.array([2.0, 3.0]) for rung in ("w1_16", "w1_4") for arm in ("a", "b")
    }
    results["steps.w1_16.b"] = np.array(steps)
    effect = Compared("ratio", "steps.{rung}.a", "steps.{rung}.b", 2.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fig = against_width(results, {"steps": {"ratio": effect}})
        fig.canvas.draw()
    (line,) = (line for line in fig.axes[0].lines if len(line.get_xdata()) == 2 and line.get_marker() == "o")
    assert np.isnan(line.get_ydata()).tolist() == [True, False] and line.get_ydata()[1] == pytest.approx(1.0)
    plt.close(fig)


def test_what_is_compared_at_a_rung():
    results = {"x.w1.none": np.array([np.e, 4.0]), "x.w1.batch": np.array([1.0, 2.0])}
    from bnbook.chapters import scale

    assert scale.ratio("x").values(results, "w1") == pytest.approx([1.0, np.log(2)])
    assert scale.points("x").values(results, "w1") == pytest.approx([100 * (1 - np.e), -200])
    assert scale.level("x", "none", 0.0, 10.0).values(results, "w1") == pytest.approx([10 * np.e, 40])
    assert scale.logarithm("x").values({"x.w1": np.ones(2)}, "w1").tolist() == [1.0, 1.0]
    assert scale.ratio("x").values(results, "w1_2") is None
