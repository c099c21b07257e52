"""Summaries of stacked trainings, on made-up curves whose answers are known."""

from __future__ import annotations

import numpy as np

from bnbook.deep_linear import LinearArm, train_stack
from bnbook.deep_linear import summaries as of

NAN, INF = np.nan, np.inf


def made_up(loss, **more):
    loss = np.array(loss, dtype=float)
    ends = np.where(np.isfinite(loss).all(1), INF, 1.0)
    steps = np.tile(np.linspace(0, 100, loss.shape[1]), (len(loss), 1))
    energy = np.tile([6.0, 3.0, 1.0], (len(loss), 1))
    return {"loss": loss, "loss_step": steps, "diverged_at": ends, "target_energy": energy} | more


def test_losses():
    arm, run = LinearArm(steps=100), made_up([[10, 5, 2.5], [20, NAN, NAN]])
    np.testing.assert_allclose(of.loss_share(arm, run), [[1, 0.5, 0.25], [2, 1, 1]])
    np.testing.assert_allclose(of.mean_log_loss(arm, run), [0.5, 2**0.25])
    mean = LinearArm(steps=100, reduction="mean", examples=20)
    np.testing.assert_allclose(of.loss_share(mean, made_up([[1, 0.5]])), [[2, 1]])
    assert list(of.diverged(run)) == [0, 1]
    settling = made_up([[10] + [5] * 8 + [4.99, 4.98], [10] + [5] * 8 + [4.9, 4.8], [10] * 9 + [NAN] * 2])
    assert list(of.settled(arm, settling)) == [1, 0, 0]


def test_landscape():
    """Each measure against its definition, written out for one member and step."""
    arm = LinearArm(
        "batch", 1e-3, steps=4, depth=3, width=4, examples=20, probe_steps=(0, 3), lengths=(0.1, 30.0, 100.0)
    )
    run = train_stack([(arm, 0)])
    seen = of.landscape(arm, run)
    loss, distance = run["landscape_loss"][0, 1], run["landscape_distance"][0, 1]
    norm, whole = run["start_norm"][0, 1], run["target_energy"][0].sum()
    expected = {
        "loss_range": abs(loss[1] - loss[0]) / whole,
        "gradient_change": max(distance[:2]),
        "relative_change": max(distance[:2]) / norm,
        "smoothness": max(distance[0] / (1e-4 * norm), distance[1] / (0.03 * norm)),
        "local": distance[0] / (1e-4 * norm),
        "beyond": distance[2] / (0.1 * norm),
        "random_change": np.abs(run["random_loss"][0, 1] - run["start_loss"][0, 1]).max() / whole,
        "cosine": run["shift_cosine"][0, 1, 1:].mean(),
        "absolute_cosine": np.abs(run["shift_cosine"][0, 1, 1:]).mean(),
        "shift": run["shift_distance"][0, 1, 1:].mean(),
        "relative_shift": (run["shift_distance"] / run["shift_norm"])[0, 1, 1:].mean(),
    }
    for name, value in expected.items():
        np.testing.assert_allclose(seen[name][0, 1], value, rtol=1e-12, err_msg=name)
    run["landscape_loss"][0, 0, 1] = NAN  # overflowed on the way
    run["start_loss"][0, 1] = NAN  # diverged
    run["landscape_loss"][0, 1] = NAN
    again = of.landscape(arm, run)
    assert np.isinf(again["loss_range"][0, 0]) and np.isnan(again["loss_range"][0, 1])


def test_the_curvature_is_that_of_the_smallest_length_wherever_it_stands():
    arm = LinearArm("none", 0.5, lengths=(2.0, 1.0), random_lengths=(), covariate_shift=False)
    run = dict(
        start_loss=np.ones((1, 1)),
        start_norm=np.ones((1, 1)),
        target_energy=np.ones((1, 1)),
        landscape_loss=np.ones((1, 1, 2)),
        landscape_distance=np.array([[[3.0, 4.0]]]),
    )
    np.testing.assert_allclose(of.landscape(arm, run)["local"], 4.0 / (1.0 * 0.5))
