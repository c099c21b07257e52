"""Numbers out of the instruments' arrays and histograms, with answers that were worked out on paper."""

from __future__ import annotations

import math

import numpy as np
import pytest

from bnbook import curves
from bnbook.errors import BnbookError
from bnbook.probes import activations, summaries

NAN, INF = math.nan, math.inf
near = pytest.approx


def one(*values: float) -> np.ndarray:
    """One member at one probed step: (1, 1, A)."""
    return np.array(values, dtype=float)[None, None]


def place(found: dict[str, np.ndarray]) -> dict[str, float]:
    return {n: v[0, 0] if v[0, 0].ndim == 0 else v[0, 0].tolist() for n, v in found.items()}


LINE = {"start_loss": np.array([[2.0]]), "start_norm": np.array([[4.0]])}
LENGTHS = [0.4, 0.5, 4.0, 4.1, 10.0]


def line(loss=(9, 1, 4, 7, 2), distance=(80, 3, 16, 41, 40)):
    return LINE | {"landscape_loss": one(*loss), "landscape_distance": one(*distance)}


def test_a_landscape():
    """η = ½, so the distances are 2 a: 0.8, 1, 8, 8.2, 20; the paper's lengths are ½ to 4, both of them."""
    assert place(summaries.landscape(line(), LENGTHS, 0.5)) == near(
        {
            "loss_range": 3.0,
            "gradient_change": 16.0,
            "smoothness": 3.0,  # of 3/1 and 16/8
            "gradient_norm": 4.0,
            "relative_range": 1.5,
            "relative_change": 4.0,
            "beyond": 5.0,  # of 41/8.2 and 40/20
            "beyond_range": 5.0,
        }
    )
    wide = place(summaries.landscape(line(), LENGTHS, 0.5, reach=(0.4, 10.0)))
    assert wide["smoothness"] == near(100) and wide["loss_range"] == 8 and "beyond" not in wide
    with pytest.raises(BnbookError, match="no step length within"):
        summaries.landscape(line(), [0.1, 0.2, 0.3, 0.4, 9.0], 0.5)


def test_an_overflow_on_the_way_is_infinite_and_a_training_that_is_over_has_no_number():
    for loss in (INF, NAN):
        seen = place(
            summaries.landscape(line(loss=(9, 1, loss, 7, 2), distance=(80, 3, loss, 41, 40)), LENGTHS, 0.5)
        )
        inside = {seen[name] for name in ("loss_range", "gradient_change", "smoothness", "relative_range")}
        assert inside == {INF} and seen["beyond"] == near(5)
    assert (
        place(summaries.landscape(line(loss=(9, INF, INF, 7, 2)), LENGTHS, 0.5))["loss_range"] == INF
    )  # no less no more
    over = {name: np.full_like(values, NAN) for name, values in line().items()}
    assert all(np.isnan(values).all() for values in summaries.landscape(over, LENGTHS, 0.5).values())


def test_a_random_direction_and_the_covariate_shift():
    run = LINE | {"random_loss": one(2.5, -3.0), "random_distance": one(6, 12)}
    assert place(summaries.random_direction(run, [1.0, 3.0], 0.5)) == near(
        {"random_loss_change": 5.0, "random_gradient_change": 12.0, "random_smoothness": 3.0}
    )
    run = {"shift_distance": one(99, 1, 3), "shift_norm": one(99, 2, 4), "shift_cosine": one(99, 0.5, -0.1)}
    assert place(summaries.covariate_shift(run)) == near(
        {"shift": 2.0, "relative_shift": 0.625, "cosine": 0.2}
    )


def test_predictiveness():
    """‖g‖ = 4, ‖h‖ = 3, ‖g - h‖ = 5 and √13: a right angle and 60°. h = -g/2, h = g. Then an overflow; then no training."""
    run = LINE | {"landscape_norm": one(3, 3, 2, 4, INF), "landscape_distance": one(5, 13**0.5, 6, 0, INF)}
    seen = place(summaries.predictiveness(run, [1, 2, 3, 4, 5]))
    assert seen["cosine"] == near([0, 0.5, -1, 1, 0]) and seen["error"] == near([5, 13**0.5, 6, 0, INF])
    assert seen["relative_error"] == near([1.25, 13**0.5 / 4, 1.5, 0, INF])
    lost = {name: np.full_like(values, NAN) for name, values in run.items()}
    assert np.isnan(summaries.predictiveness(lost, [1, 2, 3, 4, 5])["cosine"]).all()
    inexact = LINE | {"landscape_norm": one(4.0), "landscape_distance": one(8.0 + 1e-7)}
    assert place(summaries.predictiveness(inexact, [1]))["cosine"] == [-1.0]  # cut off, not below
    with pytest.raises(BnbookError, match="expected the lengths"):
        summaries.predictiveness(inexact, [1, 2])


STEPS = np.array([0, 50, 90, 100])  # they stand for 25, 45, 25 and 5
FIVE = np.array([0, 1, 10, 50, 99])  # for 0.5, 5, 24.5, 44.5 and 24.5
FALL = [9.0, 8, 7, 1, 2]
LATE = (50, 100)
OVER_TRAINING = [  # values (S, P), steps, window, whether the mean, what comes out (S,)
    ([[9.0, 1, 2, 3]], STEPS, (), False, [2]),  # 45, 70, 75, 100: half is within 2's
    ([[9.0, 1, 2, 3]], STEPS, LATE, False, [2]),  # 20, 45 and 50 of 50
    ([[9.0, 1, 2, 3]], STEPS, LATE, True, [(20 + 50 + 15) / 50]),
    ([[4.0, 1, NAN, 3]], STEPS, (), True, [(100 + 45 + 15) / 75]),
    ([[9.0, 1, 2, 3], [-9, -1, -2, -3]], np.stack([STEPS, STEPS]), (), False, [2, -2]),
    ([[1.0, 2]], np.array([0, 10]), (), False, [1]),  # each stands for a half: the lower middle
    ([FALL, [9, 8, NAN, NAN, NAN], [NAN] * 5, [INF, 1, 1, 1, 1]], FIVE, (), False, [2, 8, NAN, 1]),
    ([FALL], FIVE, (), True, [(4.5 + 40 + 171.5 + 44.5 + 49) / 99]),
]


@pytest.mark.parametrize("values, steps, window, mean, expected", OVER_TRAINING)
def test_steps_weigh_by_what_they_stand_for(values, steps, window, mean, expected):
    over = curves.over_window if window else curves.over_training
    assert over(np.array(values), steps, *window, mean) == near(expected, nan_ok=True)


def test_how_long_and_when_something_holds():
    alive = np.array([[True, True, True, True, False]])
    assert curves.share_of_training(np.array([FALL]) > 5, alive, FIVE) == near([30 / 74.5])
    holds = np.array([[False, True, True], [True, False, True], [True] * 3, [False] * 3])
    for own in (lambda *steps: np.array(steps), lambda *steps: np.array([steps] * 4)):
        assert curves.holds_from(holds, own(0, 5, 10)).tolist() == [5, 10, 0, INF]
        assert curves.holds_until(holds, own(0, 5, 10)).tolist() == [0, 5, INF, 0]
    assert curves.holds_from(holds[:2], np.array([[0, 5, 9], [0, 7, 8]])).tolist() == [5, 8]


def test_started_by_the_mean_of_the_last_sixth():
    late = np.array([2.4] * 299 + [0.0])  # 49/50 · 2.4 = 2.352, above 0.98 · 2.3026
    assert (
        not curves.started(late)
        and curves.started(late, margin=-0.03)
        and curves.started(np.array([2.4] * 297 + [0.0] * 3))
    )
    assert not curves.started(np.array([0.0] * 250 + [2.4] * 50))
    assert curves.started(np.array([9.0] * 10 + [0.0] * 2)) and curves.started(
        np.array([0.0])
    )  # two of twelve; one of one
    assert not curves.started(np.full(6, 0.98 * math.log(10))) and not curves.started(
        np.array([0.0] * 11 + [NAN])
    )
    assert curves.started(np.full(6, 0.6), classes=2) and not curves.started(np.full(6, 0.69), classes=2)


def test_other_numbers_of_a_curve():
    assert curves.guessing(np.array([0.5, NAN, INF])).tolist() == [0.5, 0.1, 0.1]
    assert curves.guessing(np.array([NAN]), classes=4).tolist() == [0.25]
    assert curves.moving_mean(np.array([1.0, 3.0, 5.0, 7.0]), 2).tolist() == [1, 2, 4, 6]
    assert np.isnan(curves.moving_mean(np.array([1.0, NAN, 5.0]), 1)).tolist() == [False, True, True]
    path = np.array([0.7, 0.0, 0.2, 0.6, 1.0])  # the first alone is no window of two
    assert (
        curves.steps_to_reach(path, 0.4, window=2) == 4 and curves.steps_to_reach(path, 0.9, window=2) == INF
    )
    assert curves.steps_to_reach(path, 0.7, window=1) == 1
    assert curves.steps_to_reach(np.array([0.0, 1.0]), 0.5, window=9) == 2


def test_quantiles_and_edges_of_histograms():
    histogram = np.array([[0.25, 0.75], [NAN, NAN]])
    found = activations.quantiles(histogram, [0.125, 0.25, 0.625], np.array([0.0, 1.0, 3.0]))
    assert found[0] == near([0.5, 1.0, 2.0]) and np.isnan(found[1]).all()
    assert len(activations.EDGES) == 242 and activations.EDGES[[0, -1]] == near([-30, 30])
    assert np.diff(np.arcsinh(100 * activations.EDGES)) == near(2 * math.asinh(3000) / 241)


def test_how_far_moments_move():
    mean = np.array([[0.0, 0.0, 5.0, 0.0], [1.0, 0.0, 5.0, 2.0]])
    variance = np.array([[1.0, 4.0, 0.0, 0.0], [1.0, 1.0, 0.0, 0.0]])
    # by unit: one standard deviation; no shift; a dead unit that stays; a dead unit that moves (the bound, 2)
    shift, spread = activations.moment_change(mean, variance)
    assert shift == near([(1 / math.sqrt(1 + 1 / 4) + 0 + 0 + 2) / 4]) and spread == near([(2 * 3 / 5) / 4])
    small = activations.moment_change(mean * 1e-3, variance * 1e-6)  # whatever the unit's scale
    assert small == (near(shift), near(spread))
    draws = np.random.default_rng(0)
    first, second = draws.normal(0.3, 2.0, 100_000), draws.normal(1.5, 1.0, 100_000)
    of = lambda what: np.array([[what(first)], [what(second)]])
    pooled = (second.mean() - first.mean()) / np.concatenate([first, second]).std()
    assert activations.moment_change(of(np.mean), of(np.var))[0] == near([pooled])
    assert np.isnan(activations.moment_change(np.array([[NAN], [1.0]]), np.ones((2, 1)))[0]).all()
