"""What the VGG chapters share: the ladder's own trainings, and numbers of made-up curves."""

from __future__ import annotations

import numpy as np
import pytest
from page_cells import functions

from bnbook.chapters import vgg
from bnbook.training.placed import PlacedArm
from bookpress.pipeline import chapters

CHAPTERS = (
    "landscape",
    "internal-covariate-shift",
    "predictiveness",
    "noisy-batch-norm",
    "lp-norms",
    "training",
)
P = np.array([[0, 2, 4, 10]])


def arm(**changes):
    return PlacedArm(**dict(norm="none", steps=20, batch_size=16, learning_rate=0.1) | changes)


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


def test_the_share_of_the_steps_and_from_when_on():
    """Equal is not larger, and where the plain network is no more nothing is taken back."""
    run = {"probe_step": np.repeat(P, 3, axis=0), "start_loss": np.ones((3, 4))}
    run["start_loss"][2, 3] = np.nan
    one = {"x": np.array([[0.0, 2, 2, 2], [2, 2, 2, 1], [1, 2, 2, np.nan]])}
    found = vgg.curves_compared(one, {"x": np.ones((3, 4))}, ("x",), run)
    np.testing.assert_allclose(found["share.x"], [0.9, 0.7, 6 / 7])
    np.testing.assert_allclose(found["from.x"], [2, np.inf, 2])


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
