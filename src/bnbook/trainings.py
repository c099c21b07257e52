"""The kinds of training of this book, for the press's runner: which arm trains with what."""

from __future__ import annotations

from typing import Any

#: Arm -> the function that starts its training. What a result rests on is found by reading this table, so it
#: is made of texts: nothing here is imported before it trains.
TRAINS = {
    "bnbook.training.arm:Arm": "bnbook.training.engine:start",
    "bnbook.training.probes:Probes": "bnbook.training.engine:start",  # an arm that has these
    "bnbook.training.practice:Practice": "bnbook.training.engine:start",  # likewise
    "bnbook.small_networks.arm:PhaseArm": "bnbook.small_networks.descent:start",
    "bnbook.deep_linear.arm:LinearArm": "bnbook.deep_linear.descent:start",
    "bnbook.chapters.ingredients:IngredientArm": "bnbook.chapters.ingredients:start",
}
#: The function that makes the data set of those that take one.
LOADS = "bnbook.data:load"
#: How the hash of a training's code begins -> what the committed trainings are named by, which were made by code that gave
#: the same numbers.
ALIASES = {
    "0620df7683be91f5": "1c93dfc4e975bcc1283a83aea9247597767d34789d11c05417cc3a5a70ae35f2",
    "3ff354c455bd7067": "a45fbf742a5bb5f11cd3fd387bddef15d234d459f56a83145ffd348785c2c97b",
    "7ec6b2ebc65d8c02": "dd6a925d202f588ca4ce6005fbca45ccb91232a374999f49afbbcac20e212a76",
    "3df33f9f88902747": "1578adec76a8edf39c69580e8a18c37c51b28c12f1c9dce99246a9e5df6536be",
}


def numerics(device: Any, threads: int) -> Any:
    """What a training computes with, as a context (`bnbook.training.numerics`)."""
    from bnbook.training.numerics import numerics  # takes torch with it

    return numerics(device, threads)
