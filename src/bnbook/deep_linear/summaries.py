"""Single numbers out of the arrays of `train_stack`: losses as shares, landscapes."""

from __future__ import annotations

import numpy as np

from bnbook.deep_linear.arm import LinearArm
from bnbook.probes import summaries

#: The largest step length, in multiples of the learning rate, that the paper's ranges reach (appendix A.2.2).
PAPER_REACH = 30.0
Arrays = dict[str, np.ndarray]


def loss_share(arm: LinearArm, run: Arrays) -> np.ndarray:
    """The loss as a share of the loss of answering zero, (S, T); a diverged network counts as answering zero,
    1."""
    whole = run["target_energy"].sum(1) * arm.network().scale
    return np.where(np.isfinite(run["loss"]), run["loss"] / whole[:, None], 1.0)


def mean_log_loss(arm: LinearArm, run: Arrays) -> np.ndarray:
    """The geometric mean of `loss_share` over all steps of the training, (S,): the lower, the faster it
    trained."""
    log, steps = np.log(loss_share(arm, run)), run["loss_step"]
    return np.exp(((log[:, 1:] + log[:, :-1]) / 2 * np.diff(steps)).sum(1) / (steps[:, -1] - steps[:, 0]))


def diverged(run: Arrays) -> np.ndarray:
    """1 for each member whose loss ceased to be finite, else 0, (S,)."""
    return np.isfinite(run["diverged_at"]).astype(float)


def settled(arm: LinearArm, run: Arrays, margin: float = 0.01) -> np.ndarray:
    """1 where the loss fell by less than `margin` of itself over the last tenth of the steps, (S,); 0 if it
    diverged."""
    share = loss_share(arm, run)
    before = share[np.arange(len(share)), (run["loss_step"] <= 0.9 * arm.steps).sum(1) - 1]
    return ((before - share[:, -1] < margin * before) & (diverged(run) == 0)).astype(float)


def landscape(arm: LinearArm, run: Arrays) -> Arrays:
    """What the instruments saw at each probed step, (S, P) each: `bnbook.probes.summaries.landscape` up to 30 times
    the learning rate, its `covariate_shift`, and of its `random_direction` the change of the loss.

    loss_range and random_change are shares of the loss of answering zero; local: smoothness at the smallest length,
    which is the curvature ‖H g‖ / ‖g‖ along the gradient g; absolute_cosine: the mean of |cosine| over the layers.
    Source of the quantities: Santurkar et al. 2018, sections 2.2, 3.2 and captions of v1 Figure 10, NeurIPS
    Figure 9.
    """
    rate, unit = arm.learning_rate, run["target_energy"].sum(1)[:, None] * arm.network().scale
    found = summaries.landscape(run, arm.lengths, rate, (0.0, PAPER_REACH))
    found["loss_range"] = found["loss_range"] / unit
    found["local"] = summaries.landscape(run, arm.lengths, rate, (0.0, min(arm.lengths)))["smoothness"]
    alive = np.isfinite(run["start_loss"])
    for name in found.keys() & {"smoothness", "beyond", "local"}:  # an overflow over a norm that is one, too
        found[name] = np.where(alive & np.isnan(found[name]), np.inf, found[name])
    if arm.random_lengths:
        away = summaries.random_direction(run, arm.random_lengths, rate)
        found["random_change"] = away["random_loss_change"] / unit
    if arm.covariate_shift:
        found |= summaries.covariate_shift(run)
        found["absolute_cosine"] = np.abs(run["shift_cosine"][:, :, 1:]).mean(2)
    return found


def largest_stable(runs: dict[float, Arrays]) -> np.ndarray:
    """Each member's largest learning rate such that at it and at all smaller ones tried it does not diverge,
    (S,)."""
    rates = sorted(runs)
    stable = np.cumprod([diverged(runs[rate]) == 0 for rate in rates], axis=0)  # (rates, S)
    return np.where(stable.any(0), np.array(rates)[np.maximum(stable.sum(0).astype(int) - 1, 0)], np.nan)
