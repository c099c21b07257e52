"""The kinds of training of this book, for the press's runner: which arm trains with what, where, how many at once."""

from __future__ import annotations

from typing import Any

#: Arm -> the function that starts its training. What a result rests on is found by reading this table, so it
#: is made of texts: nothing here is imported before it trains.
TRAINS = {
    "bnbook.training.arm:Arm": "bnbook.training.engine:start",
    "bnbook.training.probed:ProbedArm": "bnbook.training.probed:start",
    "bnbook.training.placed:PlacedArm": "bnbook.training.placed:start",
    "bnbook.training.tuned:TunedArm": "bnbook.training.tuned:start",
    "bnbook.training.first_gamma:ScaleArm": "bnbook.training.first_gamma:start",
    "bnbook.small_networks.arm:PhaseArm": "bnbook.small_networks.descent:start",
    "bnbook.deep_linear.arm:LinearArm": "bnbook.deep_linear.descent:start",
    "bnbook.deep_linear.target:TargetArm": "bnbook.deep_linear.target:start",
    "bnbook.chapters.ingredients:IngredientArm": "bnbook.chapters.ingredients:start",
}
#: The function that makes the data set of those that take one.
LOADS = "bnbook.data:load"
#: How the hash of a training's code begins -> what the committed trainings are named by, which were made by code that gave
#: the same numbers.
ALIASES = {
    "25e88030f91d9163": "1c93dfc4e975bcc1283a83aea9247597767d34789d11c05417cc3a5a70ae35f2",
    "7105aabd8baf136a": "a45fbf742a5bb5f11cd3fd387bddef15d234d459f56a83145ffd348785c2c97b",
    "9870af449fe8a6dc": "dd6a925d202f588ca4ce6005fbca45ccb91232a374999f49afbbcac20e212a76",
}
#: What an arm is called in the store.
LABELS = {
    "Arm": "arm",
    "ProbedArm": "arm",
    "PlacedArm": "arm",
    "TunedArm": "tuned_arm",
    "ScaleArm": "scale_arm",
    "PhaseArm": "phase_arm",
    "LinearArm": "linear_arm",
    "TargetArm": "target_arm",
    "IngredientArm": "ingredient_arm",
}
#: Arms of matrices of ten rows.
LINEAR = ("LinearArm", "TargetArm")
#: Arms that train on the CPU wherever they are: small matrices, of which a GPU would make nothing faster.
ON_CPU = (*LINEAR, "IngredientArm")


def device_of(arm: Any, device: str) -> str:
    """Where an arm trains: small matrices stay on the CPU."""
    return "cpu" if type(arm).__name__ in ON_CPU else device


def stack_size(arm: Any, device: str) -> int:
    """Members of one stack at most.

    Deep linear: more share the cost of a call, fewer stay in the cache; ℓ1 and ℓ∞ go back to the examples.
    Small networks on a CPU go one by one: alone each is bit-identical whatever runs beside it, and a stack of
    four was 8 % faster a member when fully connected and 19 % slower when convolutional.
    """
    if type(arm).__name__ in LINEAR:
        return 20 if arm.norm in ("l1", "linf") else 100
    return 64 if type(arm).__name__ == "PhaseArm" and not device.startswith("cpu") else 1


def numerics(device: Any, threads: int) -> Any:
    """What a training computes with, as a context (`bnbook.training.numerics`)."""
    from bnbook.training.numerics import numerics  # takes torch with it

    return numerics(device, threads)
