"""What chapters share: the ladder's own trainings, numbers of made-up curves, and what is drawn from a seed."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from page_cells import functions

from bnbook.chapters import lipschitz, minima, smoothness, vgg
from bnbook.chapters.theorems import draw_all
from bnbook.chapters.vgg import LOSS_LEVELS, at_equal_loss, progress
from bnbook.curves import over_window
from bnbook.deep_linear.problem import draw_examples, draw_problem
from bookpress.pipeline import chapters

CHAPTERS = (
    "landscape",
    "internal-covariate-shift",
    "predictiveness",
    "noisy-batch-norm",
    "lp-norms",
    "training",
)


def test_chapters_repeat_the_ladder_at_an_eighth_of_the_width_from_seeds_of_their_own():
    """The same settings, so that both may be compared; no seed that the chapter on scale has shown."""
    ladder = chapters.select(["santurkar/scale"])[0].parameters("laptop")
    starts = ladder["first_seed"], ladder["fresh_first_seed"], ladder["most"]
    shown = {seed for rung in vgg.RUNGS for seed in vgg.rung_seeds(rung, *starts)}
    for name in CHAPTERS:
        own = chapters.select([f"santurkar/{name}"])[0].parameters("laptop")
        arms = vgg.of_ladder(("none", "batch", "noisy"), own["width"], own)
        assert arms == vgg.rung_arms(vgg.find_rung("w1_8"), ladder), name
        assert not shown & {*range(own["first_seed"], own["first_seed"] + own["seeds"])}, name
    long = vgg.rung_arms(vgg.find_rung("long_fast"), ladder)
    assert {(arm.learning_rate, arm.steps) for arm in long.values()} == {(0.5, ladder["long_steps"])}
    assert all(arm.augment for arm in vgg.rung_arms(vgg.find_rung("long_cropped"), ladder).values())
    assert list(vgg.rung_seeds("w1", 100, 700, 10)) == [100, 101, 102]
    for name in vgg.FRESH:
        assert list(vgg.rung_seeds(name, 100, 700, 2)) == [700, 701]


def test_equal_is_not_lower_and_a_diverged_training_neither_descends_nor_rises():
    far = np.array([[[1.0, 8.0], [1.0, 8.0], [np.nan, np.nan]]])
    plain = dict(
        start_loss=np.array([[2.0, 2.0, np.nan]]),
        start_norm=np.array([[1.0, 1.0, np.nan]]),
        landscape_loss=np.array([[[2.0, 1.0], [1.9, 2.1], [np.nan, np.nan]]]),
        landscape_distance=far,
        landscape_norm=far,
    )
    seen = functions("santurkar/predictiveness")["at_length"](plain, 1, (1.0, 4.0))
    np.testing.assert_array_equal(seen["descends"], [[0.0, 1.0, np.nan]])
    assert all(np.isnan(values[0, 2]) for values in seen.values())


def test_what_is_no_number_is_left_out_and_what_never_starts_shows_nothing_at_equal_losses():
    values, steps = np.array([[9.0, np.nan, 9.0, 1.0, 5.0]]), np.array([0, 1, 2, 10, 20])
    # from 0 to 8: five steps of the early probes that are numbers, two of the one at 10
    assert over_window(values, steps, 0, 8, mean=True) == pytest.approx((5.0 * 9 + 2 * 1) / 7)
    assert np.isnan(over_window(np.full((1, 5), np.nan), steps, 0, 20))
    loss = np.where(np.arange(200) < 150, np.log(10.0), np.nan)[None]
    assert np.isnan(progress(loss)[0, 150:]).all() and np.isfinite(progress(loss)[0, :150]).all()
    come = np.full((1, 300), np.log(10)), np.linspace(2.3, 0.5, 300)[None]
    stuck, other = at_equal_loss([np.ones((1, 30))] * 2, come, np.arange(0, 300, 10), 10)
    assert np.isnan(stuck).all() and stuck.shape == other.shape == (1, LOSS_LEVELS)


EXPLOSION = functions("batch-norm/gradient-explosion")


def net():
    torch.manual_seed(0)
    return EXPLOSION["chain"]((5, 6, 6, 10), "tanh")


LEAST_SQUARES = functions("decoupling/least-squares", problems=1, pencils=1)
HALF_SPACES = functions("decoupling/halfspaces", starts=1, AWAY=1e-5)
ONE_UNIT = functions("decoupling/neural-networks", networks=1, BRACKET=(-4.0, 4.25))
#: Of a seed, whatever numbers come out.
DRAWS = {
    "lipschitz": lambda seed: draw_all(lipschitz.draw_layer, 1, 1, seed, 0)[0][0].case.g,
    "smoothness": lambda seed: draw_all(smoothness.draw_layer, 1, 1, seed, 1)[0][0].minimum,
    "minima": lambda seed: draw_all(minima.draw_problem, 1, 1, seed, 2)[0][0].t,
    "least squares": lambda seed: next(LEAST_SQUARES["data_sets"](seed))[1],
    "rayleigh": lambda seed: LEAST_SQUARES["rayleigh"](seed)["corrected"],
    "half-spaces": lambda seed: HALF_SPACES["search"](seed)[0],
    "one unit": lambda seed: ONE_UNIT["trials"](seed)["printed"],
    "batch": lambda seed: EXPLOSION["gaussian_batch"](4, 3, seed)[0],
    "labels": lambda seed: EXPLOSION["gaussian_batch"](40, 3, seed)[1],
    "gradients": lambda seed: EXPLOSION["gradients"](net(), 8, seed).weight,
    "roughness": lambda seed: EXPLOSION["roughness"](net(), 8, seed),
    "nonlinearities": lambda seed: next(EXPLOSION["random_nonlinearities"](1, seed))[0](torch.ones(1)),
    "examples": lambda seed: draw_examples(seed, 3, 8)[0],
    "maps": lambda seed: draw_examples(seed, 3, 8)[1],
    "first weights": lambda seed: draw_problem([seed], 2, 3, 8).weights,
}


@pytest.mark.parametrize("name", DRAWS)
def test_seeds_differ_and_repeat(name):
    one, other, again = (np.asarray(DRAWS[name](seed), dtype=float) for seed in (0, 1, 0))
    assert np.array_equal(one, again) and one.size
    assert one.shape != other.shape or not np.allclose(one, other, rtol=1e-3, atol=0)
