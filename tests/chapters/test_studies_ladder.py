"""The ladder's numbers against closed forms."""

from __future__ import annotations

import numpy as np
import pytest

from bnbook.chapters import vgg
from bnbook.chapters.vgg import LOSS_LEVELS, at_equal_loss, progress
from bnbook.curves import over_window
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
