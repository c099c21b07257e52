"""What the VGG chapters share: the ladder's own trainings, and numbers of made-up curves."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bnbook.chapters import internal_covariate_shift, predictiveness, vgg
from bnbook.probes.places import PLACES
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
S = (2, 4)  # seeds, probed steps


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


def test_arms_beside_the_ladder_differ_in_what_they_say_alone():
    whole = arm(
        probe_steps=(0, 5, 15),
        landscape=(1.0,),
        random_directions=(1.0,),
        covariate_shift=True,
        placed_layers=(2,),
        removed_gradient=True,
        evaluate_every=5,
    )
    first = vgg.at_rate(whole, 0.3, 9)
    assert first == replace(
        whole,
        learning_rate=0.3,
        steps=9,
        probe_steps=(0, 5, 7),
        evaluate_every=0,
        random_directions=(),
        placed_layers=(),
        removed_gradient=False,
    )
    assert first.covariate_shift and first.landscape == (1.0,)
    some = vgg.smoothed(whole)
    assert some.landscape == (1.0,) and some.placed_layers == (2,) and not some.covariate_shift
    assert vgg.moments_only(whole) == replace(some, landscape=())


def test_the_share_of_the_steps_and_from_when_on():
    run = {"probe_step": np.repeat(P, 2, axis=0), "start_loss": np.ones(S)}
    one = {"x": np.array([[0.0, 2, 2, 2], [2, 2, 2, 0]])}
    found = vgg.curves_compared(one, {"x": np.ones(S)}, ("x",), run)
    np.testing.assert_allclose(found["share.x"], [0.9, 0.7])
    np.testing.assert_allclose(found["from.x"], [2, np.inf])


def test_moments_are_named_by_way_moment_and_place():
    change = np.zeros((2, 4, 10, 3, 2))
    change[..., PLACES.index("next_input"), 1] = 5.0
    change[:, :, 4, PLACES.index("before_nonlinearity"), 0] = 3.0  # convolution 5, one of three
    run = {"update_change": change, "batch_change": change, "checkpoint_change": change[:, :2]}
    run["probe_step"] = np.repeat(P, 2, axis=0)
    found = vgg.moment_numbers(run, arm(placed_layers=vgg.LAYERS), logs=vgg.MOVES)
    for way in vgg.MOVES:
        np.testing.assert_allclose(found[f"{way}_variance_next_input"], 5)
        np.testing.assert_allclose(found[f"{way}_mean_before_nonlinearity"], 1)
        np.testing.assert_allclose(found[f"{way}_variance_next_input_log"], np.log(5))
    some = vgg.moment_numbers(run, arm(placed_layers=vgg.LAYERS), logs=("batch",))
    assert {name.split("_")[0] for name in some if name.endswith("_log")} == {"batch"}
    run["median_variance"] = np.arange(3 * 10 * 3.0).reshape(1, 3, 10, 3)
    usual = vgg.usual_variance(run, arm(placed_layers=vgg.LAYERS), (2, 8))
    np.testing.assert_allclose(usual[0, 0], [3, 21])
    assert set(vgg.WORDS) == set(PLACES)


def test_the_larger_shift_is_the_lower_cosine():
    def run(distance, cosine):
        ones = np.ones((1, 4, 2))
        found = {"shift_distance": distance * ones, "shift_norm": 2 * ones, "shift_cosine": cosine * ones}
        more = {"probe_step": P, "start_loss": np.ones((1, 4)), "accuracy": np.full((1, 20), 0.5)}
        return found | more | {"loss": np.linspace(2.3, 1, 20)[None]}

    plain, normed = run(1.0, 0.5), run(3.0, 0.9)
    found = internal_covariate_shift.of_pair(plain, normed, 10)
    assert [found[f"worse_share.{name}"][0] for name in internal_covariate_shift.MEASURES] == [1, 1, 0]
    assert found["worse_from.shift"] == 0 and np.isinf(found["worse_from.cosine"])
    assert found["equal_loss_shift.none"] == 1 and found["equal_loss_shift.batch"] == 3
    of_arm = internal_covariate_shift.of_arm(normed, arm(steps=10), 10)
    assert of_arm["shift"] == 3 and of_arm["relative_shift"] == 1.5 and of_arm["shift_decline"] == 1
    up, down = np.array([[1.0, 2, 5, 9]]), np.array([[3.0, 2, 1, 0]])
    assert internal_covariate_shift.rank_correlation(up, down) == -1
    np.testing.assert_allclose(internal_covariate_shift.at_rates([plain, normed], 5)["cosine"], [[0.5, 0.9]])


def test_how_far_ahead_a_step_still_descends():
    run = {
        "probe_step": P,
        "start_loss": np.ones((1, 4)),
        "start_norm": np.full((1, 4), 2.0),
        "landscape_loss": np.stack([np.full((1, 4), 0.5), np.array([[0.5, 2, 2, 2]])], axis=-1),
        "landscape_distance": np.ones((1, 4, 2)) * [1.0, 4.0],
        "landscape_norm": np.full((1, 4, 2), 2.0),
    }
    found = predictiveness.of_arm(run, (1.0, 4.0), ahead=(1, 4))
    assert found["descends.x1"] == 1 and found["descends.x4"] == pytest.approx(0.1)
    assert found["error.x4"] == 4 and found["relative_error.x1"] == 0.5
    assert found["cosine.x1"] == pytest.approx((4 + 4 - 1) / 8)
    worse = run | {"landscape_distance": 3 * run["landscape_distance"]}
    pair = predictiveness.of_pair(worse, run, (1.0, 4.0), 0.1)
    assert pair["better_share"] == 1 and pair["better_from"] == 0
    assert pair["equal_distance_ratio"] == pytest.approx(3)
    assert predictiveness.AHEAD == (1, 2, 4, 8, 16)


def test_equal_is_not_lower_and_a_dead_plain_network_takes_nothing_back():
    from bnbook.chapters import predictiveness

    steps, lengths = np.array([[0.0, 10.0, 20.0]]), (1.0, 4.0)
    far = np.array([[[1.0, 8.0], [1.0, 8.0], [np.nan, np.nan]]])
    plain = dict(
        probe_step=steps,
        start_loss=np.array([[2.0, 2.0, np.nan]]),
        start_norm=np.array([[1.0, 1.0, np.nan]]),
        landscape_loss=np.array([[[2.0, 1.0], [1.9, 2.1], [np.nan, np.nan]]]),
        landscape_distance=far,
        landscape_norm=far,
    )
    normed = plain | dict(
        start_loss=np.full((1, 3), 2.0),
        start_norm=np.ones((1, 3)),
        landscape_distance=np.full((1, 3, 2), 0.5),
    )
    assert predictiveness.at_length(plain, lengths, 1.0)["descends"][0, :2].tolist() == [0.0, 1.0]
    assert predictiveness.of_pair(plain, normed, lengths, 0.1)["better_from"].tolist() == [0.0]
