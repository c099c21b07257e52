"""The ladder's numbers against closed forms."""

from __future__ import annotations

import numpy as np
import pytest

from bnbook.chapters import vgg
from bnbook.chapters.vgg import LOSS_LEVELS, at_equal_loss, over_window, progress, start_step
from bnbook.errors import BnbookError

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


def test_a_window_counts_steps_and_not_probes():
    values = np.array([[9.0, 9.0, 9.0, 1.0, 5.0]])
    assert over_window(values, STEPS, 0, 20) == 5.0  # 9 steps have 1, 5 have 5 and 6 have 9
    assert over_window(values, STEPS, 0, 2) == 9.0
    # from 0 to 8: six steps of the three early probes, two of the one at 10
    assert over_window(values, STEPS, 0, 8, mean=True) == pytest.approx((6 * 9 + 2 * 1) / 8)
    assert over_window(values, STEPS, np.array([15.0]), 20) == 5.0
    values[0, 1] = np.nan
    assert over_window(values, STEPS, 0, 8, mean=True) == pytest.approx((5.0 * 9 + 2 * 1) / 7)
    assert np.isnan(over_window(np.full((1, 5), np.nan), STEPS, 0, 20))


def test_learning_starts_where_the_loss_has_fallen():
    flat = np.full(200, np.log(10.0))
    loss = np.stack([flat, np.where(np.arange(200) < 100, flat, 2.0)])
    assert start_step(loss, 10)[0] == 200
    # the mean of 50 batches is 2 % lower once 8 of them have a loss of 2.0
    assert start_step(loss, 10)[1] == 100 + int(np.ceil(0.02 * np.log(10) / (np.log(10) - 2.0) * 50))
    loss[1, 150:] = np.nan
    assert np.isnan(progress(loss)[1, 150:]).all() and np.isfinite(progress(loss)[1, :150]).all()


def test_at_equal_loss_two_speeds_show_the_same_curve():
    """One training is another, three times as fast: whatever depends on the loss alone is equal."""
    probe_step, steps = np.arange(0, 3000, 10), np.arange(3000)
    come = [np.maximum(2.3 - steps * speed, 0.5)[None] for speed in (0.001, 0.003)]
    curves = [each[:, probe_step] ** 2 for each in come]
    one, other = at_equal_loss(curves, come, probe_step, 10)
    assert one.shape == (1, LOSS_LEVELS)
    np.testing.assert_allclose(one, other, rtol=0.02)
    assert one[0, 0] == pytest.approx((0.98 * np.log(10)) ** 2, rel=0.02) and one[0, -1] == pytest.approx(
        0.25, rel=0.05
    )
    stuck = np.full_like(come[0], np.log(10))
    assert np.isnan(at_equal_loss(curves, (stuck, come[1]), probe_step, 10)[0]).all()


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


def test_from_how_many_seeds_each_rung_is_trained():
    from bnbook.chapters.vgg import RUNGS

    seeds = dict(w1_16=10, w1_8=5, w1_4=5, w1_2=4, w1=3, w1_noisy=3, full=3, full_first=1)
    seeds |= dict.fromkeys(("long", "long_others", "long_fast", "long_cropped"), 5)
    seeds |= dict.fromkeys(("long_w1_8", "long_w1_16"), 5)
    assert {name: rung.seeds for name, rung in RUNGS.items()} == seeds
