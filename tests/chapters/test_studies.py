"""What the VGG chapters share: the ladder's own trainings, and numbers of made-up curves."""

from __future__ import annotations

import numpy as np
import page_cells
import pytest
import torch
from page_cells import functions

from bnbook.chapters import lipschitz, minima, smoothness, vgg
from bnbook.chapters.theorems import draw_all
from bnbook.chapters.vgg import LOSS_LEVELS, at_equal_loss, progress
from bnbook.curves import over_window
from bnbook.deep_linear.problem import draw_examples, draw_problem
from bnbook.errors import BnbookError
from bookpress.pipeline import chapters

CHAPTERS = (
    "landscape",
    "internal-covariate-shift",
    "predictiveness",
    "noisy-batch-norm",
    "lp-norms",
    "training",
)


@pytest.mark.parametrize("name", CHAPTERS)
def test_a_chapter_repeats_the_ladder_at_an_eighth_of_the_width_from_seeds_of_its_own(name):
    """The same settings, so that both may be compared; no seed that the chapter on scale has shown."""
    own = chapters.select([f"santurkar/{name}"])[0].parameters("laptop")
    ladder = chapters.select(["santurkar/scale"])[0].parameters("laptop")
    assert vgg.of_ladder(("none", "batch", "noisy"), own["width"], own) == vgg.rung_arms(
        vgg.find_rung("w1_8"), ladder
    )
    own_seeds = set(range(own["first_seed"], own["first_seed"] + own["seeds"]))
    for rung in vgg.RUNGS:
        theirs = vgg.rung_seeds(rung, ladder["first_seed"], ladder["fresh_first_seed"], ladder["most"])
        assert not own_seeds & set(theirs)


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


SETTINGS = dict(
    data="textures-standin",
    batch_size=16,
    shrink=0.25,
    train_examples=16,
    test_examples=16,
    activation_examples=16,
    lengths=[0.05, 1.0, 2.0, 4.0, 8.0],
    random_lengths=[0.5],
    early_probes=[1],
    steps=6,
    probe_every=2,
    evaluate_every=3,
    long_steps=8,
    long_probe_every=4,
    long_evaluate_every=4,
)
STEPS = np.array([0, 1, 2, 10, 20])


def test_a_window_leaves_out_what_is_no_number():
    values = np.array([[9.0, np.nan, 9.0, 1.0, 5.0]])
    # from 0 to 8: five steps of the early probes that are numbers, two of the one at 10
    assert over_window(values, STEPS, 0, 8, mean=True) == pytest.approx((5.0 * 9 + 2 * 1) / 7)
    assert np.isnan(over_window(np.full((1, 5), np.nan), STEPS, 0, 20))
    loss = np.where(np.arange(200) < 150, np.log(10.0), np.nan)[None]
    assert np.isnan(progress(loss)[0, 150:]).all() and np.isfinite(progress(loss)[0, :150]).all()


def test_what_never_starts_shows_nothing_at_equal_losses():
    come = np.full((1, 300), np.log(10)), np.linspace(2.3, 0.5, 300)[None]
    stuck, other = at_equal_loss([np.ones((1, 30))] * 2, come, np.arange(0, 300, 10), 10)
    assert np.isnan(stuck).all() and stuck.shape == other.shape == (1, LOSS_LEVELS)


def test_the_rungs():
    with pytest.raises(BnbookError, match="no size 'w2'.*w1_16"):
        vgg.find_rung("w2")
    long = vgg.rung_arms(vgg.find_rung("long_fast"), SETTINGS)
    assert {arm.learning_rate for arm in long.values()} == {0.5} and long["none"].steps == 8
    assert all(arm.augment for arm in vgg.rung_arms(vgg.find_rung("long_cropped"), SETTINGS).values())
    assert list(vgg.rung_seeds("w1", 100, 700, 10)) == [100, 101, 102]
    assert list(vgg.rung_seeds("w1_16", 100, 700, 2)) == [100, 101]
    for name in vgg.FRESH:
        assert list(vgg.rung_seeds(name, 100, 700, 2)) == [700, 701]
    for name, rung in vgg.RUNGS.items():
        assert not rung.of or vgg.RUNGS[rung.of].width == rung.width and name != rung.of


EXPLOSION = page_cells.functions("batch-norm/gradient-explosion")


def net():
    torch.manual_seed(0)
    return EXPLOSION["chain"]((5, 6, 6, 10), "tanh")


LEAST_SQUARES = page_cells.functions("decoupling/least-squares", problems=1, pencils=1)
HALF_SPACES = page_cells.functions("decoupling/halfspaces", starts=1, AWAY=1e-5)
ONE_UNIT = page_cells.functions("decoupling/neural-networks", networks=1, BRACKET=(-4.0, 4.25))
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
