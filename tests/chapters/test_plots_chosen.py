"""What chapters compute or choose with what draws, which no chapter's stamp sees.

Whoever changes one of these runs the chapters again that use it (test_chapter_plots.py names them), and only
then changes it here.
"""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pytest

from bnbook.chapters import fisher, learning_rate, least_squares, length_direction, order_parameters
from bnbook.plots import axes, panels, printed
from bnbook.results import Results


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


def test_a_curve_is_drawn_at_every_step_up_to_20_and_at_120_more():
    assert length_direction.drawn_steps(260).tolist() == [*range(21), *range(22, 261, 2)]
    assert length_direction.drawn_steps(1220).tolist() == [*range(21), *range(30, 1221, 10)]
    assert length_direction.drawn_steps(80).tolist() == list(range(81))
    assert length_direction.drawn_steps(7).tolist() == list(range(8))


def test_what_stands_in_titles_and_decides_which_marks_are_drawn():
    assert [axes.power(rate) for rate in (3e-5, 1e-6, 1.57e-6, 0.25, 1.0)] == [
        r"$3\cdot 10^{-5}$",
        r"$10^{-6}$",
        r"$1.6\cdot 10^{-6}$",
        r"$2.5\cdot 10^{-1}$",
        "$10^{0}$",
    ]
    assert printed.SIZE == (1.0, 15000)
    # Quantiles 2 % and 98 %, 10 % and 90 %, 25 % and 75 % of seven: bands of 96 %, 80 % and one half.
    assert [pair[:2] for pair in panels.FANS] == [(0, 6), (1, 5), (2, 4)]


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


def test_bounds_that_are_drawn_beside_random_gains():
    from bnbook.chapters import lipschitz

    (ax,) = lipschitz.weight_gains(
        {f"curve.weights.{name}": np.ones((1, 1)) for name in ("cosine", "gain")}
    ).axes
    cosine = ax.lines[1].get_xdata()
    root, squared, best = (line.get_ydata() for line in ax.lines[1:4])
    assert root == pytest.approx(1 + cosine**-0.5) and squared == pytest.approx(1 + 1 / cosine)
    assert best == pytest.approx(squared / 2) and best[-1] == pytest.approx(1)


def test_the_papers_two_orders_of_magnitude_above_batch_norms_curve():
    from bnbook.chapters import landscape

    assert printed.ORDERS == 100 and printed.SIGMA == 5 and printed.SIZE == (1.0, 15000)
    steps = [0, 9, 99]
    curves = {f"{edge}.{norm}": np.zeros((1, 3)) for edge in ("low", "high") for norm in ("none", "batch")}
    names = ("gradient_change", "smoothness")
    curves |= {
        f"{name}.{norm}": np.ones((1, 3, 3)) * [1, 2, 3]
        for name in names
        for norm in ("none", "batch", "noisy")
    }
    fig = landscape.landscape_panels(curves, steps)
    claimed = [line for line in fig.axes[1].lines if np.allclose(line.get_ydata(), [100, 200, 300])]
    assert len(claimed) == 1 and claimed[0].get_xdata().tolist() == [1, 10, 100]


def test_the_line_like_the_square_of_the_first_gamma():
    from bnbook.chapters import gamma_initialisation

    tags = [gamma_initialisation.tag(net, g) for net in gamma_initialisation.NAMES for g in (3.0, 0.1, 1.0)]
    found = {f"curve.eigenvalue.{tag}": np.array([2.0, 8.0]) for tag in tags}
    (ax,) = gamma_initialisation.eigenvalues(found).axes
    means, _, square = (line.get_ydata() for line in ax.lines[:3])
    assert means == pytest.approx([4, 4, 4]) and square == pytest.approx([0.04, 4, 36])
    assert ax.lines[3].get_ydata()[0] == pytest.approx(2 * 1.9 / 0.1)  # the paper's rate is critical there


def test_the_linear_bound_at_condition_number_100():
    steps, excess = np.array([0, 1, 50]), np.full((2, 3), 0.5)
    results = {
        "curve.conditioning.step": steps[None],
        "curve.conditioning.condition": np.array([[10.0, 100.0]]),
    }
    for name in least_squares.RACERS:
        results[f"curve.conditioning.excess.{name}"] = excess
        results[f"curve.conditioning.needed.{name}"] = np.ones((2, 2))
    fig = least_squares.conditioning(results)
    assert fig.axes[0].lines[-1].get_ydata() == pytest.approx([0.5, 0.5 * 0.99**2, 0.5 * 0.99**100])


def test_rates_over_the_line_through_the_batch_and_half_the_printed_one():
    points = {"gamma": [[1.0, 2.0]], "gammas": [[1.0, 2.0]], "from0": [[0.0, 1.0]], "below": [[0.1, 2.0]]}
    points |= {"through_batch": [[0.0, 0.5]]} | dict.fromkeys(learning_rate.SIDES, [[0.5, 3.0]])
    (ax,) = learning_rate.sides({f"curve.sides.{name}": np.array(each) for name, each in points.items()}).axes
    dots = [line.get_xdata() for line in ax.lines if line.get_marker() == "o" and len(line.get_xdata())]
    assert np.concatenate(dots) == pytest.approx([0.4, 0.0] * len(learning_rate.SIDES))
    ticks = [line.get_xdata()[0] for line in ax.lines if line.get_marker() == "|" and len(line.get_xdata())]
    assert ticks == pytest.approx([0.0, 0.5] * len(learning_rate.SIDES))

    maps = {
        "curve.map.rates": [[[0.0, 1.0, 2.0]] * 2],
        "curve.map.from0": [[0.3, 0.9]],
        "map": np.ones((1, 2, 3)),
    }
    each = {f"{name}.{net}.set0": values for name, values in maps.items() for net in ("fc", "conv")}
    each |= {f"boundary.{net}.set0": np.zeros((1, 2)) for net in ("fc", "conv")}
    each["curve.boundary.gammas"] = [[1.0, 2.0]]
    entries = {name: {"values": np.array(values).tolist()} for name, values in each.items()}
    recorded = Results({"data": [{"name": "mnist"}]}, entries)
    drawn = {line.get_label(): line.get_ydata() for line in learning_rate.loss_map(recorded).axes[0].lines}
    assert drawn["paper: η*"] == pytest.approx([0.3, 0.9])
    assert 10 ** drawn["paper: η*/2"] == pytest.approx(10 ** np.array([0.3, 0.9]) / 2)


def test_guides_fall_like_one_over_the_root_of_the_width_and_one_over_the_inputs():
    drawn = {name: np.full((2, 2), 0.8) for name in ("none", "batch", "excess")}
    drawn |= {"widths": [[100, 400]], "batches": [[4, 16]], "predicted": [[0.5, 0.1]]}
    fig = order_parameters.convergence(
        {f"curve.convergence.{name}": np.array(each) for name, each in drawn.items()}
    )
    dotted = [[line.get_ydata() for line in ax.lines if line.get_linestyle() == ":"] for ax in fig.axes]
    assert dotted[0][0] == pytest.approx([0.8, 0.4]) and dotted[1][0] == pytest.approx([0.8, 0.2])


def test_the_curvature_at_which_a_rate_is_critical():
    from bnbook.chapters import deep_linear

    names = ("loss_range", "gradient_change", "smoothness", "local")
    arms = [f"{name}.lr1e_06.{norm}" for name in names for norm in ("none", "batch")]
    curves = {f"curve.landscape.{arm}": np.full((1, 3, 2), 1e5) for arm in arms}
    fig = deep_linear.landscape(curves | {"curve.landscape.step": np.array([[1, 10]])})
    levels = [line.get_ydata()[0] for line in fig.axes[2].lines if len(set(line.get_ydata())) == 1]
    assert 2e6 in np.round(levels)


def test_curves_of_several_seeds_stand_at_the_geometric_mean_of_their_places():
    from bnbook.figures import log_band

    fig, ax = plt.subplots()
    log_band(ax, np.array([[1.0, 2.0], [100.0, 8.0]]), np.array([[1.0, 9.0], [4.0, 1.0]]), color="k")
    assert ax.lines[0].get_xdata() == pytest.approx([10, 4]) and ax.lines[0].get_ydata() == pytest.approx(
        [2, 3]
    )
