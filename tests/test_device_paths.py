"""What a GPU would do, where there is none: training steps on the meta device, which has shapes and no
values.

Found this way: a tensor left on the CPU (mixing devices is an error), a value that the host reads inside a
step (there is none), and operations whose GPU kernels torch lists as not repeatable. Not found: wrong
numbers, speed, memory, what only the GPU's own kernels do, and what torch forgives on a GPU but not here.
"""

from __future__ import annotations

import copy
import re
from functools import partial

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from bnbook.data import load
from bnbook.models import resnet
from bnbook.small_networks.arm import PhaseArm
from bnbook.small_networks.descent import Descent
from bnbook.training.arm import Arm
from bnbook.training.engine import SGD

NORMS = ("none", "batch", "noisy", "l1", "l2", "linf", "layer", "weight")


@pytest.fixture(scope="module")
def dataset():
    """A data set without values."""
    found = copy.copy(load("textures-standin"))
    for name, value in vars(found).items():
        if isinstance(value, torch.Tensor):
            object.__setattr__(found, name, value.to("meta"))
    return found


class Seen(TorchDispatchMode):
    """Names of the operations that ran."""

    def __init__(self) -> None:
        super().__init__()
        self.names: set[str] = set()

    def __torch_dispatch__(self, function, types, arguments=(), more=None):
        self.names.add(function.overloadpacket.__name__)
        return function(*arguments, **(more or {}))


def arm(norm: str, **changes) -> Arm:
    common = dict(norm=norm, steps=3, width=0.0625, batch_size=8, evaluate_every=0)
    return Arm(**(common | changes))


def start(kind: str, dataset):
    if kind == "crops and flips":
        return SGD(arm("batch", augment=True, momentum=0.9, weight_decay=1e-3), 0, dataset)
    if kind == "residual":
        return SGD(arm("batch"), 0, dataset, build=lambda _: resnet(width=0.125, norm="batch", classes=10))
    if kind.startswith("small"):
        members = [(PhaseArm(norm="batch", steps=3, learning_rate=0.1 * k, batch_size=4), k) for k in (1, 2)]
        return Descent(members, dataset, unfolded=True)
    return SGD(arm(kind), 0, dataset)


@pytest.mark.parametrize("kind", [*NORMS, "crops and flips", "residual", "small networks"])
def test_a_step_stays_on_its_device_and_reads_nothing(dataset, kind):
    training = start(kind, dataset)
    with Seen() as seen:
        training.make_step()
        training.make_step()
    assert training.losses.device.type == "meta" and training.step == 2
    assert not seen.names & not_repeatable()
    assert len(seen.names) > 10


def not_repeatable() -> set[str]:
    """Operations for which torch's own documentation says that a GPU has no repeatable kernel, as the
    dispatcher calls them, forward and backward."""
    text = torch.use_deterministic_algorithms.__doc__
    text = text.split("normally-nondeterministic operations will throw", 1)[1].split("In addition", 1)[0]
    listed = re.findall(
        r":(?:class|func):`torch\.(?:[\w.]+\.)?(\w+)`(?!\s+when called with a quantized)", text
    )
    words = {re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower() for name in listed}
    assert {"cumsum", "bincount", "adaptive_avg_pool2d"} <= words
    # The loss over classes is repeatable; that over pixels (two-dimensional targets) is what torch means.
    words = words - {"nll_loss", "nllloss"} | {"nll_loss2d_forward", "nll_loss2d_backward"}
    return words | {f"{word}_backward" for word in words} | {f"_{word}_backward" for word in words}


def test_what_it_would_find(dataset):
    class Host(torch.nn.Module):
        def __init__(self, how):
            super().__init__()
            self.how, self.layer = how, torch.nn.Linear(3, 10)

        def forward(self, x):
            z = self.layer(x.mean((2, 3)))
            return {"left": lambda: z + torch.ones(1, 10), "read": lambda: z * z.sum().item(),
                    "sums": lambda: z.cumsum(0)}[self.how]()  # fmt: skip

    for how, error in (("left", RuntimeError), ("read", RuntimeError)):
        training = SGD(arm("none"), 0, dataset, build=partial(lambda how, _: Host(how), how))
        with pytest.raises(error):
            training.make_step()
    training = SGD(arm("none"), 0, dataset, build=lambda _: Host("sums"))
    with Seen() as seen:
        training.make_step()
    assert seen.names & not_repeatable() == {"cumsum"}
