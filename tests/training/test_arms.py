"""The settings of every kind of training: what is refused, and that JSON gives back the same arm."""

from __future__ import annotations

import json
import math

import pytest

from bnbook.deep_linear import LinearArm
from bnbook.errors import BnbookError
from bnbook.small_networks import PhaseArm
from bnbook.training.arm import Arm
from bnbook.training.practice import Practice
from bnbook.training.probes import Probes

COUNTS = "needs steps >= 1, batch_size >= 2 and evaluate_every >= 0"
NUMBERS = "expected the first two above 0 and the third from 0 to below 1"
RATE, MEMBER, PART = "above 0, and 0 to below 1", "a member without", "needs steps, depth and width"
LOOKS = Probes(probe_steps=(0, 3), removed_gradient=True)
REFUSED = {  # an arm as it may be -> changes that it may not have, and words of what is said
    Arm(norm="batch", steps=5): [
        *(({name: value}, COUNTS) for name, value in (("steps", 0), ("batch_size", 1), ("evaluate_every", -1))),
        ({"learning_rate": 0.0}, "expected a number above 0"), ({"architecture": "lstm"}, "vgg, vgg16, resnet"),
        ({"instruments": Probes(), "optimizer": Practice()}, "expected one of the two"),
    ],
    Arm(steps=5, batch_size=8, instruments=LOOKS): [
        ({"batch_size": 7}, "8 or more"), ({"steps": 4}, "probe step 3 .* expected 0 to 2"),
        ({"instruments": Probes(probe_steps=(-1,))}, "probe step -1 "),
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
        *(({"target_std": c}, "expected a factor of A above 0") for c in (0.0, -1.0, math.nan)),
        ({"norm": "batchnorm"}, "none, batch, l1"), ({"reduction": "max"}, "sum, mean"), ({"init": "he"}, "glorot"),
    ],
    Probes(): [({name: (a,)}, "not above 0") for name, a in (("landscape", 0.0), ("random_directions", -1.0))],
    Practice(): [({"optimizer": "lion"}, "sgd, adamw"), ({"warm_up": -1}, "or more"), ({"clip": -1.0}, "or more")],
}  # fmt: skip
ARMS = [arm for arm in REFUSED if hasattr(arm, "steps")]
ARMS += [Arm("batch", options=(("init", "glorot-normal"), ("gamma", 0.5))), LinearArm(target_std=0.5)]
ARMS += [Arm("batch", optimizer=Practice(clip=1.0, warm_up=3))]


@pytest.mark.parametrize("arm", REFUSED, ids=lambda arm: type(arm).__name__)
def test_bad_settings_are_one_line(arm):
    for change, words in REFUSED[arm]:
        given = {name: value for name, value in vars(arm).items() if name != "moment_layers"}
        with pytest.raises(BnbookError, match=words) as caught:
            type(arm)(**given | change)
        assert "\n" not in str(caught.value), change


@pytest.mark.parametrize("arm", ARMS, ids=lambda arm: type(arm.kind).__name__)
def test_settings_survive_json(arm):
    assert type(arm.kind).from_settings(json.loads(json.dumps(arm.settings()))) == arm


def test_stored_trainings_say_what_they_said_when_each_kind_had_a_class_of_its_own():
    plain, linear = Arm().settings(), LinearArm().settings()
    probed, tuned = Arm(steps=5, instruments=LOOKS).settings(), Arm(optimizer=Practice()).settings()
    assert len(plain) == 17 and "target_std" not in linear
    assert probed.keys() - plain.keys() == {
        *("probe_steps", "landscape", "random_directions", "covariate_shift", "moment_layers"),
        *("placed_layers", "removed_gradient"),
    }
    assert tuned.keys() - plain.keys() == {"optimizer", "warm_up", "clip", "lengths_kept"}
    labels = {arm: arm.kind.label for arm in ARMS}
    assert labels[ARMS[0]] == labels[ARMS[1]] == "arm" and labels[ARMS[-1]] == "tuned_arm"
    assert (LinearArm().label, LinearArm(target_std=0.5).label) == ("linear_arm", "target_arm")


def test_arms_of_one_stack():
    one, other = PhaseArm(gamma=2.0, learning_rate=0.3), PhaseArm(gamma=0.5)
    assert one.stack_key() == other.stack_key() != PhaseArm(momentum=0.0).stack_key()
    linear = LinearArm("batch", 1e-3, momentum=0.5)
    assert linear.stack_key() == LinearArm("batch").stack_key() != LinearArm("l1").stack_key()
    sizes = [arm.stack_size(device) for arm in (Arm(), one, linear) for device in ("cpu", "cuda:0")]
    assert sizes == [1, 1, 1, 64, 100, 100] and LinearArm("l1").stack_size("cpu") == 20
