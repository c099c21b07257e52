"""What chapters compute or choose with what draws, which no chapter's stamp sees.

Whoever changes one of these runs the chapters again that use it (test_chapter_plots.py names them), and only
then changes it here.
"""

from __future__ import annotations

import inspect

import matplotlib.pyplot as plt
import numpy as np
import pytest

from bnbook import figures
from bnbook.chapters import fisher, length_direction
from bookpress import results
from bookpress.runs import kinds


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


def test_a_curve_is_drawn_at_every_step_up_to_20_and_at_120_more():
    assert length_direction.drawn_steps(260).tolist() == [*range(21), *range(22, 261, 2)]
    assert length_direction.drawn_steps(1220).tolist() == [*range(21), *range(30, 1221, 10)]
    assert length_direction.drawn_steps(80).tolist() == list(range(81))
    assert length_direction.drawn_steps(7).tolist() == list(range(8))


def test_points_measured_at_one_gamma_are_drawn_at_others_by_its_square():
    assert fisher.AT.tolist() == [0.5, 1, 2, 3, 4, 5]
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


def test_what_changes_committed_numbers_and_makes_no_chapter_stale():
    """Running, recording and drawing are exempt from a chapter's stamp."""
    assert kinds.THREADS == 1  # another count of threads is another training
    assert results.DIGITS == 9 and figures.CURVE_DIGITS == 4  # of every recorded number, of every drawn point
    for record in (results.record, results.record_table):
        assert inspect.signature(record).parameters["digits"].default == 9


def test_the_line_like_the_square_of_the_first_gamma():
    from bnbook.chapters import gamma_initialisation

    tags = [gamma_initialisation.tag(net, g) for net in gamma_initialisation.NAMES for g in (3.0, 0.1, 1.0)]
    found = {f"curve.eigenvalue.{tag}": np.array([2.0, 8.0]) for tag in tags}
    (ax,) = gamma_initialisation.eigenvalues(found).axes
    means, _, square = (line.get_ydata() for line in ax.lines[:3])
    assert means == pytest.approx([4, 4, 4]) and square == pytest.approx([0.04, 4, 36])
    assert ax.lines[3].get_ydata()[0] == pytest.approx(2 * 1.9 / 0.1)  # the paper's rate is critical there
