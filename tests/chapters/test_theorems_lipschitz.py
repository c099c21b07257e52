"""The Lipschitz theorems: closed formulas against automatic differentiation, exact fractions and fifty
digits."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.colors import to_rgba

from bnbook.chapters import lipschitz, theorems
from bnbook.chapters.theorems import EDGES, FIRST, Trials, draw_margins, exact, normalize
from bnbook.errors import BnbookError
from bnbook.figures import COLORS


def test_printed_32_with_a_correlation_is_safe_from_0_17_on():
    safe = 3 - 8**0.5
    unit = theorems.Unit(np.zeros(1), 1.0, 1)
    for c, holds in ((safe * 1.001, True), (safe * 0.999, False)):
        assert (lipschitz.sharp_32(1.0, c, unit) <= lipschitz.theorem_32(1.0, c, unit)) == holds


def test_the_outlines_of_margins_are_roots_of_counts_in_the_ink_of_their_side():
    bins = len(EDGES) - 1
    counts = np.zeros((2, bins))  # two seeds
    counts[0, [3, FIRST, bins - 1]] = 4, 2, 16
    counts[1, FIRST - 1] = 2
    results = {"curve.margins.one": counts, "curve.margins.two": counts}
    fig = draw_margins(results, {"one": ("", "printed"), "two": ("", "corrected")})
    for row, form in ((1, "printed"), (0, "corrected")):  # the first row stands above
        wrong, good = (patch.get_data() for patch in fig.axes[0].patches[2 * row : 2 * row + 2])
        inks = [patch.get_facecolor() for patch in fig.axes[0].patches[2 * row : 2 * row + 2]]
        assert inks == [to_rgba(COLORS["wrong"]), to_rgba(COLORS[form])]
        # The bins on both sides of no violation are one: 2 of its 4 are violations.
        for outline, places, roots in (
            (wrong, [3, FIRST - 1], [2, 1]),
            (good, [FIRST - 1, bins - 2], [1, 4]),
        ):
            drawn = np.flatnonzero(np.isfinite(outline.values))
            assert drawn.tolist() == places
            heights = (outline.values - outline.baseline)[drawn]
            np.testing.assert_allclose(heights, 0.8 * np.array(roots) / 4)
            assert len(outline.edges) == bins
        assert wrong.baseline[3] == row and good.baseline[FIRST - 1] == wrong.values[FIRST - 1]


@pytest.mark.parametrize(
    "wrong, words",
    [
        (lambda: normalize(np.ones(4)), "without spread"),
        (lambda: normalize(np.ones(1)), "batch of at least 2"),
        (lambda: normalize(exact(1, 2, 4)), "no rational square root"),
        (lambda: Trials({}).worst("nothing"), "no trial gave"),
        (lambda: Trials({"error.a": [[0.1], []]}).errors("a"), "expected more instances"),
    ],
)
def test_bad_input_is_said_in_a_line(wrong, words):
    with pytest.raises(BnbookError, match=words):
        wrong()


def test_numbers_of_trials():
    """Not a number is an infinite error and a violated bound; a bound that was never tried is violated by none."""
    nan = float("nan")
    found = Trials({"margin.one": [[-0.5, 0.0, 0.3], [1.0, nan, -1e-9]], "margin.two": [[-2e-9] * 3, []]})
    found |= Trials({"error.a": [[nan, 0.5], [0.25, 2.0, 0.75]]})
    assert found.errors("a") == {"error.a": [np.inf, 2.0]} and found.median("error.a")[1] == 0.75
    assert found.all("margin.two").tolist() == [-2e-9] * 3
    assert found.bounds("one two") == {
        "trials.one": [3, 3], "violations.one": [1, 1], "trials.two": [3, 0], "violations.two": [3, 0],
    }  # fmt: skip
    assert found.shares("one two") == {"share.one": [1 / 3, 1 / 3], "share.two": [1.0, 0.0]}
    tallies = found.tallies(["one", "two"])
    assert [counts.sum(axis=1).tolist() for counts in tallies.values()] == [[3, 3], [3, 0]]
    fig = draw_margins(tallies, {"one": ("first", "printed"), "two": ("second", "corrected")})
    assert [text.get_text() for text in fig.axes[0].texts] == ["100 % violated", "33 % violated"]
    assert [tick.get_text() for tick in fig.axes[0].get_yticklabels()] == ["second", "first"]


def test_every_instance_has_random_numbers_of_its_own():
    draw_one = lambda rng, number: (rng.uniform(), number)
    drawn = theorems.draw_all(draw_one, 2, 3, first=0, stream=0)
    assert len({value for row in drawn for value, _ in row}) == 6
    assert theorems.draw_all(draw_one, 1, 3, first=1, stream=0) == drawn[1:]
    assert theorems.draw_all(draw_one, 2, 3, first=0, stream=1)[0][0] != drawn[0][0]
    found = theorems.on_all(lambda one: {"u": one[0], **({"odd": one[1]} if one[1] % 2 else {})}, drawn)
    assert found.values["u"] == [[value for value, _ in row] for row in drawn]
    assert found.values["odd"] == [[1.0], [1.0]]
