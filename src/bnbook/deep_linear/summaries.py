"""Single numbers out of the arrays of `train_stack`: losses as shares, landscapes."""

from __future__ import annotations

import numpy as np

from bnbook.deep_linear.arm import LinearArm

#: The largest step length, in multiples of the learning rate, that the paper's ranges reach (appendix A.2.2).
PAPER_REACH = 30.0
Arrays = dict[str, np.ndarray]


def loss_share(arm: LinearArm, run: Arrays) -> np.ndarray:
    """The loss as a share of the loss of answering zero, (S, T); a diverged network counts as answering zero,
    1."""
    whole = run["target_energy"].sum(1) * (1.0 if arm.reduction == "sum" else 1.0 / arm.examples)
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
    """What the instruments saw at each probed step, (S, P) each; NaN after a divergence, infinity for an
    overflow.

    loss_range: largest less smallest loss along the gradient, up to 30 times the learning rate, as a share of
    the loss of answering zero; gradient_change: the largest ‖∇L(θ) - ∇L(θ_a)‖ there; relative_change: the
    same in units of ‖∇L(θ)‖; smoothness: the effective β, the largest change over the distance moved; local:
    the change over the distance at the smallest length, which is the curvature ‖H g‖ / ‖g‖ along the gradient
    g; gradient_norm: ‖∇L(θ)‖; beyond: β at the lengths above 30 alone; random_change: the largest |L - L(θ)|
    along the random direction, as a share; cosine, shift: the covariate shift's cosine and ‖G - G'‖, means
    over the layers from the second on; absolute_cosine: of |cosine|; relative_shift: of ‖G - G'‖ / ‖G‖.
    Source of the quantities: Santurkar et al. 2018, sections 2.2, 3.2 and captions of v1 Figure 10, NeurIPS
    Figure 9.
    """
    lengths = np.array(arm.lengths)
    near = lengths <= PAPER_REACH
    alive = np.isfinite(run["start_loss"])
    unit = run["target_energy"].sum(1)[:, None] * (1.0 if arm.reduction == "sum" else 1.0 / arm.examples)
    norm = run["start_norm"]

    def overflow(values: np.ndarray) -> np.ndarray:
        """A number that is none, met on the way by a network that still trains, is an overflow."""
        extra = (1,) * (values.ndim - 2)
        return np.where(
            np.isfinite(values), values, np.where(alive.reshape(*alive.shape, *extra), np.inf, np.nan)
        )

    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        loss, change = overflow(run["landscape_loss"]), overflow(run["landscape_distance"])
        slope = overflow(change / (lengths * arm.learning_rate * norm[:, :, None]))
        found = {
            "loss_range": overflow(loss[:, :, near].max(2) - loss[:, :, near].min(2)) / unit,
            "gradient_change": change[:, :, near].max(2),
            "relative_change": change[:, :, near].max(2) / norm,
            "smoothness": slope[:, :, near].max(2),
            "local": slope[:, :, lengths.argmin()],
            "gradient_norm": norm,
        }
        if not near.all():
            found["beyond"] = slope[:, :, ~near].max(2)
        if arm.random_lengths:
            away = overflow(run["random_loss"]) - run["start_loss"][:, :, None]
            found["random_change"] = np.abs(away).max(2) / unit
        if arm.covariate_shift:
            cosine, distance = run["shift_cosine"][:, :, 1:], run["shift_distance"][:, :, 1:]
            found |= {
                "cosine": cosine.mean(2),
                "absolute_cosine": np.abs(cosine).mean(2),
                "shift": distance.mean(2),
                "relative_shift": (distance / run["shift_norm"][:, :, 1:]).mean(2),
            }
    return found


def largest_stable(runs: dict[float, Arrays]) -> np.ndarray:
    """Each member's largest learning rate such that at it and at all smaller ones tried it does not diverge,
    (S,)."""
    rates = sorted(runs)
    stable = np.cumprod([diverged(runs[rate]) == 0 for rate in rates], axis=0)  # (rates, S)
    return np.where(stable.any(0), np.array(rates)[np.maximum(stable.sum(0).astype(int) - 1, 0)], np.nan)
