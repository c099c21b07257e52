"""The settings of every kind of training: what is refused, and that JSON gives back the same arm."""

from __future__ import annotations

import json
import math

import pytest

from bnbook.deep_linear import LinearArm
from bnbook.deep_linear.target import TargetArm
from bnbook.errors import BnbookError
from bnbook.small_networks import PhaseArm
from bnbook.training.arm import Arm
from bnbook.training.first_gamma import ScaleArm
from bnbook.training.placed import PlacedArm
from bnbook.training.probed import ProbedArm

FIVE = dict(norm="batch", steps=5)
COUNTS = "needs steps >= 1, batch_size >= 2 and evaluate_every >= 0"
NUMBERS = "expected the first two above 0 and the third from 0 to below 1"
RATE, MEMBER, PART = "above 0, and 0 to below 1", "a member without", "needs steps, depth and width"
REFUSED = {  # an arm as it may be -> changes that it may not have, and words of what is said
    Arm(**FIVE): [
        *(({name: value}, COUNTS) for name, value in (("steps", 0), ("batch_size", 1), ("evaluate_every", -1))),
        ({"learning_rate": 0.0}, "expected a number above 0"), ({"architecture": "lstm"}, "expected one of vgg"),
    ],
    ProbedArm(**FIVE): [
        *(({"probe_steps": (step,)}, f"probe step {step} .* expected 0 to 3") for step in (4, -1)),
        *(({name: (a,)}, "not above 0") for name, a in (("landscape", 0.0), ("random_directions", -1.0))),
    ],
    PlacedArm(**FIVE, batch_size=8, removed_gradient=True): [({"batch_size": 7}, "8 or more")],
    ScaleArm(): [
        ({"network": "vgg19"}, "vgg16, resnet"), ({"steps": 0}, COUNTS), ({"learning_rate": -1.0}, "above 0"),
        *(({"gamma": gamma}, "first γ of .* above 0") for gamma in (0.0, math.nan)),
    ],
    PhaseArm(momentum=0.0, batch_size=2, steps=1, examples=2): [
        *(({name: value}, NUMBERS) for name, value in (("learning_rate", 0.0), ("gamma", 0.0), ("momentum", -0.1),
                                                       ("momentum", 1.0))),
        *(({name: value}, MEMBER) for name, value in (("batch_size", 1), ("steps", 0), ("hidden", ()))),
        ({"examples": 1}, "1 examples for batches of 2; expected as many or more"),
        ({"norm": "l1"}, "none, batch"), ({"loss": "hinge"}, "squared, cross_entropy"),
    ],
    LinearArm(steps=5, probe_steps=(0, 4)): [
        *(({name: value}, RATE) for name, value in (("learning_rate", -1.0), ("learning_rate", 0), ("momentum", -0.1),
                                                    ("momentum", 1.0))),
        *(({name: 0} | {"probe_steps": ()}, PART) for name in ("steps", "width", "depth")),
        *(({"probe_steps": (step,)}, f"probe step {step} .*expected 0 to 4") for step in (5, -1)),
        ({"norm": "batchnorm"}, "none, batch, l1"), ({"reduction": "max"}, "sum, mean"), ({"init": "he"}, "glorot"),
    ],
    TargetArm(): [({"target_std": c}, "expected a factor of A above 0") for c in (0.0, -1.0, math.nan)],
}  # fmt: skip


@pytest.mark.parametrize("arm", REFUSED, ids=lambda arm: type(arm).__name__)
def test_bad_settings_are_one_line(arm):
    for change, words in REFUSED[arm]:
        with pytest.raises(BnbookError, match=words) as caught:
            type(arm)(**vars(arm) | change)
        assert "\n" not in str(caught.value), change


@pytest.mark.parametrize("arm", [*REFUSED, Arm("batch", options=(("init", "glorot-normal"), ("gamma", 0.5)))])
def test_settings_survive_json(arm):
    assert type(arm).from_settings(json.loads(json.dumps(arm.settings()))) == arm


def test_arms_of_one_stack():
    one, other = PhaseArm(gamma=2.0, learning_rate=0.3), PhaseArm(gamma=0.5)
    assert one.stack_key() == other.stack_key() != PhaseArm(momentum=0.0).stack_key()
    linear = LinearArm("batch", 1e-3, momentum=0.5)
    assert linear.stack_key() == LinearArm("batch").stack_key() != LinearArm("l1").stack_key()
