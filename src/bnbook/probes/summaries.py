"""Curves over a training out of the arrays of `bnbook.training.probes.Probes`: what the instruments
saw, (S, P)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bnbook.errors import BnbookError

Arrays = dict[str, np.ndarray]
#: The step lengths of the paper's VGG landscape, in multiples of the learning rate (appendix A.2.2).
PAPER_REACH = (0.5, 4.0)


def landscape(
    run: Arrays, lengths: Sequence[float], learning_rate: float, reach: tuple[float, float] = PAPER_REACH
) -> Arrays:
    """What was met along the gradient at each probed step, within `reach`; arrays (S, P).

    loss_range: largest less smallest loss; gradient_change: largest ‖∇L(θ) - ∇L(θ_a)‖; smoothness: the
    effective β, largest ‖∇L(θ) - ∇L(θ_a)‖ / (a ‖∇L(θ)‖); the same without a scale: relative_range, over the
    loss at θ, and relative_change, over ‖∇L(θ)‖; gradient_norm: ‖∇L(θ)‖. beyond, beyond_range: smoothness and
    range at the lengths above `reach`, where there are any. A number that is none at a place on the way (an
    overflow) counts as infinite; NaN where the training had diverged. Source: Santurkar et al. 2018, section
    3.2, Figure 4, appendix A.2.2.
    """
    lengths = np.asarray(lengths, dtype=float)
    within, above = (lengths >= reach[0]) & (lengths <= reach[1]), lengths > reach[1]
    if not within.any():
        raise BnbookError(f"no step length within {reach}; the arm has {lengths.tolist()}; give it some")
    start, norm = run["start_loss"], run["start_norm"]
    loss, change = or_infinite(run["landscape_loss"], start), or_infinite(run["landscape_distance"], start)
    with np.errstate(invalid="ignore", divide="ignore"):
        slope = change / (lengths * learning_rate * norm[..., None])
        found = {
            "loss_range": spread(loss[..., within]),
            "gradient_change": change[..., within].max(-1),
            "smoothness": slope[..., within].max(-1),
            "gradient_norm": norm,
        }
        found["relative_range"] = found["loss_range"] / start
        found["relative_change"] = found["gradient_change"] / norm
        if above.any():
            found |= {"beyond": slope[..., above].max(-1), "beyond_range": spread(loss[..., above])}
    return found


def random_direction(run: Arrays, lengths: Sequence[float], learning_rate: float) -> Arrays:
    """What was met along the random direction; arrays (S, P).

    random_loss_change: largest |L - L(θ)|; random_gradient_change, random_smoothness: as in `landscape`.
    """
    start, norm = run["start_loss"], run["start_norm"]
    loss, change = or_infinite(run["random_loss"], start), or_infinite(run["random_distance"], start)
    with np.errstate(invalid="ignore"):
        slope = change / (np.asarray(lengths, dtype=float) * learning_rate * norm[..., None])
        return {
            "random_loss_change": np.abs(loss - start[..., None]).max(-1),
            "random_gradient_change": change.max(-1),
            "random_smoothness": slope.max(-1),
        }


def covariate_shift(run: Arrays) -> Arrays:
    """Internal covariate shift, means over the layers from the second on (the first has none); arrays (S, P).

    shift: ‖G - G'‖; relative_shift: ‖G - G'‖ / ‖G‖; cosine: of the angle between G and G'.
    Source: Santurkar et al. 2018, section 2.2.
    """
    distance, norm, cosine = (run[f"shift_{name}"][..., 1:] for name in ("distance", "norm", "cosine"))
    with np.errstate(invalid="ignore", divide="ignore"):
        return {
            "shift": distance.mean(-1),
            "relative_shift": (distance / norm).mean(-1),
            "cosine": cosine.mean(-1),
        }


def predictiveness(run: Arrays, lengths: Sequence[float]) -> Arrays:
    """How wrong the gradient has become at each length along it; arrays (S, P, A).

    error: ‖∇L(θ) - ∇L(θ_a)‖; relative_error: over ‖∇L(θ)‖; cosine: between the two, 0 where the far one is
    not finite. Source: Santurkar et al. 2018, Figure 11 (v1), 10 (NeurIPS).
    """
    start, there = run["start_norm"][..., None], run["landscape_norm"]
    error = or_infinite(run["landscape_distance"], run["start_loss"])
    if error.shape[-1] != len(lengths):
        raise BnbookError(
            f"{len(lengths)} lengths for {error.shape[-1]} columns; expected the lengths of the arm"
        )
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        cosine = (start**2 + there**2 - error**2) / (2 * start * there)
        cosine = np.where(np.isnan(start), np.nan, np.where(np.isfinite(cosine), np.clip(cosine, -1, 1), 0.0))
        return {"error": error, "relative_error": error / start, "cosine": cosine}


def or_infinite(values: np.ndarray, start: np.ndarray) -> np.ndarray:
    """Infinity for what is not finite on the way of a training that still has a finite loss, NaN after its
    end."""
    alive = np.isfinite(start)[..., None]
    return np.where(np.isfinite(values), values, np.where(alive, np.inf, np.nan))


def spread(loss: np.ndarray) -> np.ndarray:
    """Largest less smallest (S, P, A) -> (S, P); infinite if any is, NaN if any is NaN."""
    with np.errstate(invalid="ignore"):
        spread = loss.max(-1) - loss.min(-1)
    return np.where(np.isinf(loss).any(-1), np.inf, spread)
