"""What chapters compute or choose with parts of `bnbook.plots`, which no chapter's stamp sees.

Whoever changes one of these runs the chapters again that use it (test_chapter_plots.py names them), and only
then changes it here.
"""

from __future__ import annotations

import numpy as np
import pytest

from bnbook.plots import (
    axes,
    fisher,
    gradient_explosion,
    learning_rate,
    length_direction,
    lp,
    mean_field,
    panels,
    printed,
    transform,
)
from bnbook.studies.gradient_growth.activations import ACTIVATIONS


def test_histograms_means_and_deviations_of_two_layers():
    """144 bins of an eighth from -9 to 9 before, 80 of a tenth from -4 to 4 after; areas of one; n - 1."""
    before = np.array([[-8.99, 1.0], [0.01, 3.0], [0.02, 5.0], [0.1, 8.99]])
    after = np.array([[-3.95], [0.05], [0.05], [3.95], [3.96]])
    found = transform.strips(before=before, after=after)
    assert set(found) == {
        f"{layer}.{x}" for layer in ("before", "after") for x in ("height", "mean", "deviation")
    }
    heights = np.zeros((1, 2, 144))
    heights[0, 0, [0, 72]] = 1 / (4 * 0.125), 3 / (4 * 0.125)
    heights[0, 1, [80, 96, 112, 143]] = 1 / (4 * 0.125)  # (1 + 9) · 8, and so on
    np.testing.assert_allclose(found["before.height"], heights)
    heights = np.zeros((1, 1, 80))
    heights[0, 0, [0, 40, 79]] = 1 / (5 * 0.1), 2 / (5 * 0.1), 2 / (5 * 0.1)
    np.testing.assert_allclose(found["after.height"], heights)
    np.testing.assert_allclose(found["before.mean"], [[-8.86 / 4, 17.99 / 4]])
    squares = sum((x - 0.812) ** 2 for x in after[:, 0])  # the mean is 4.06 / 5
    np.testing.assert_allclose(found["after.deviation"], [[np.sqrt(squares / 4)]])
    assert {name: (len(edges), edges[0], edges[-1]) for name, edges in transform.EDGES.items()} == {
        "before": (145, -9, 9),
        "after": (81, -4, 4),
    }


def test_a_curve_is_drawn_at_every_step_up_to_20_and_at_120_more():
    assert length_direction.drawn_steps(260).tolist() == [*range(21), *range(22, 261, 2)]
    assert length_direction.drawn_steps(1220).tolist() == [*range(21), *range(30, 1221, 10)]
    assert length_direction.drawn_steps(80).tolist() == list(range(81))
    assert length_direction.drawn_steps(7).tolist() == list(range(8))


TABLES = {
    "the norms of the chapter on other norms": (lp.NORMS, "none batch l1 l2 linf"),
    "the arms of the order parameters": (mean_field.ARMS, "none batch"),
    "nonlinearities": (gradient_explosion.NONLINEARITIES, "relu tanh linear zigzag"),
    "what is trained": (gradient_explosion.KINDS, "batch residual none one"),
    "where one batch norm stands": (gradient_explosion.PLACES, "batch one_last one_middle one_first none"),
    "equations for the largest eigenvalue": (
        fisher.LINES,
        "none.printed none.corrected batch.printed batch.corrected batch.through_batch",
    ),
    "equations for the critical rate": (learning_rate.LINES, "from0 from1 corrected through_batch"),
}


@pytest.mark.parametrize("table", TABLES)
def test_tables_that_say_what_is_measured(table):
    found, expected = TABLES[table]
    assert list(found) == expected.split()


def test_every_nonlinearity_that_is_drawn_is_one_that_is_measured():
    assert set(gradient_explosion.NONLINEARITIES) <= set(ACTIVATIONS)


def test_what_stands_in_titles_and_decides_which_marks_are_drawn():
    assert [axes.power(rate) for rate in (3e-5, 1e-6, 0.25, 1.0)] == [
        r"$3\cdot 10^{-5}$",
        r"$10^{-6}$",
        r"$2.5\cdot 10^{-1}$",
        "$10^{0}$",
    ]
    assert printed.SIZE == (1.0, 15000)
    # Quantiles 2 % and 98 %, 10 % and 90 %, 25 % and 75 % of seven: bands of 96 %, 80 % and one half.
    assert [pair[:2] for pair in panels.FANS] == [(0, 6), (1, 5), (2, 4)]
