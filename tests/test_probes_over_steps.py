"""What is taken out of curves over the probed steps, on made-up curves whose answers are known."""

from __future__ import annotations

import numpy as np

from bnbook.probes.over_steps import holds_from, holds_until, over_training, share_of_training

NAN, INF = np.nan, np.inf


def test_over_training():
    steps = np.array([0, 1, 10, 50, 99])
    values = np.array([[9.0, 8, 7, 1, 2], [9, 8, NAN, NAN, NAN], [NAN] * 5, [INF, 1, 1, 1, 1]])
    # Steps that each probe stands for: 0.5, 5, 24.5, 44.5, 24.5.
    np.testing.assert_allclose(over_training(values, steps), [2, 8, NAN, 1])
    np.testing.assert_allclose(
        over_training(values[:1], steps, mean=True), [(4.5 + 40 + 171.5 + 44.5 + 49) / 99]
    )
    np.testing.assert_allclose(over_training(values[:1], steps, "early"), [8])
    np.testing.assert_allclose(over_training(values[:1], steps, "late"), [1])
    alive = np.array([[True, True, True, True, False]])
    np.testing.assert_allclose(share_of_training(values[:1] > 5, alive, steps), [30 / 74.5])


def test_when_a_claim_holds():
    steps = np.array([0, 5, 10])
    holds = np.array([[False, True, True], [True, False, True], [True, True, True], [False, False, False]])
    assert list(holds_from(holds, steps)) == [5, 10, 0, INF]
    assert list(holds_until(holds, steps)) == [0, 5, INF, 0]
