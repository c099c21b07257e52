"""The trainings that several chapters show: those of the ladder, and short ones beside them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from bnbook.studies.ladder.rungs import Rung
from bnbook.studies.ladder.rungs import arms as rung_arms
from bnbook.training.arm import Arm
from bnbook.training.placed import PlacedArm
from bnbook.training.probed import probe_schedule

Arms = dict[str, PlacedArm]


def of_ladder(norms: Iterable[str], width: float, settings: Mapping[str, Any]) -> Arms:
    """The ladder's arms at a width, with all instruments, by their norm; settings as `rungs.arms` has them,
    and the learning rate.

    Where width and settings are a rung's, so are the trainings, and nothing is trained again.
    """
    rung = Rung(width, 1, tuple(norms), learning_rate=settings["learning_rate"])
    return rung_arms(rung, {"shrink": 1.0} | dict(settings))


def smoothed(arm: PlacedArm) -> PlacedArm:
    """The same with the moments and the landscape alone."""
    return replace(arm, random_directions=(), covariate_shift=False, removed_gradient=False)


def moments_only(arm: PlacedArm) -> PlacedArm:
    """The same with the moments at three places alone."""
    return replace(smoothed(arm), landscape=())


def at_rate(arm: PlacedArm, rate: float, steps: int) -> PlacedArm:
    """The first steps of an arm at another learning rate, probed along the gradient and for covariate shift:
    at the arm's own steps and, so that these first steps are seen to their end, at the last that can be."""
    return replace(
        arm,
        learning_rate=rate,
        steps=steps,
        evaluate_every=0,
        probe_steps=probe_schedule(steps, steps, (*arm.probe_steps, steps - 2)),
        random_directions=(),
        placed_layers=(),
        removed_gradient=False,
    )


def unprobed(norm: str, width: float, settings: Mapping[str, Any], **changes: Any) -> Arm:
    """A training without instruments; changes: of its settings."""
    names = ["data", "batch_size", "steps", "learning_rate"]
    names += ["evaluate_every", "train_examples", "test_examples"]
    return Arm(norm=norm, width=width, **{name: settings[name] for name in names} | changes)


def watched(
    norm: str, width: float, settings: Mapping[str, Any], layers: Iterable[int], **changes: Any
) -> Arm:
    """One without instruments, whose distributions at these layers are kept at its checkpoints."""
    kept = {"activation_layers": tuple(layers), "activation_examples": settings["activation_examples"]}
    return unprobed(norm, width, settings, **kept | changes)
