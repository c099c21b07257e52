"""What a GPU would do, where there is none: training steps and probes on the meta device, which has shapes
and no values.

Found this way: a tensor left on the CPU (mixing devices is an error), a value that the host reads inside a
step (there is none), and operations whose GPU kernels torch lists as not repeatable. Probes may read numbers,
as their results are; here they read ones. What this cannot find: docs/gpu.md.
"""

from __future__ import annotations

import copy
import re
from functools import partial

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from bnbook.data import load
from bnbook.models import mlp
from bnbook.probes import covariate_shift, fisher, landscape, layer_gradients
from bnbook.probes.statistics import STATISTICS
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


def sgd(dataset, norm: str = "batch", **changes) -> SGD:
    return SGD(Arm(norm, steps=3, width=0.0625, batch_size=8, evaluate_every=0, **changes), 0, dataset)


def small(dataset) -> Descent:
    members = [(PhaseArm(norm="batch", steps=3, learning_rate=0.1 * k, batch_size=4), k) for k in (1, 2)]
    return Descent(members, dataset, unfolded=True)


TRAININGS = {norm: partial(sgd, norm=norm) for norm in NORMS} | {
    "crops and flips": partial(sgd, augment=True, momentum=0.9, weight_decay=1e-3),
    "residual": partial(sgd, architecture="resnet"),
    "small networks": small,
}


@pytest.mark.parametrize("kind", TRAININGS)
def test_a_step_stays_on_its_device_and_reads_nothing(dataset, kind):
    training = TRAININGS[kind](dataset)
    with Seen() as seen:
        training.make_step()
        training.make_step()
    assert training.losses.device.type == "meta" and training.step == 2
    assert not seen.names & not_repeatable()
    assert len(seen.names) > 10


@pytest.fixture
def reads_give_ones(monkeypatch):
    """Whatever the host reads of a tensor without values is 1."""
    item, copied = torch.Tensor.item, torch.Tensor.cpu
    one = lambda tensor: torch.ones((), dtype=tensor.dtype).item() if tensor.is_meta else item(tensor)
    ones = lambda tensor: torch.ones(tensor.shape, dtype=tensor.dtype) if tensor.is_meta else copied(tensor)
    monkeypatch.setattr(torch.Tensor, "item", one)
    monkeypatch.setattr(torch.Tensor, "cpu", ones)
    for kind in (float, int, bool):
        monkeypatch.setattr(torch.Tensor, f"__{kind.__name__}__", lambda tensor, kind=kind: kind(one(tensor)))


LOSS = torch.nn.functional.cross_entropy


def eigenvalue(statistics: str):
    return lambda model, batch: fisher.largest_eigenvalue(model, batch[0], "all", "all", statistics).value


PROBES = {
    "landscape": lambda model, batch: landscape.along_gradient(model, LOSS, batch, [0.1, 0.2]).loss,
    "covariate shift": lambda model, batch: covariate_shift.measure(model, LOSS, batch, 0.1).cosine,
    "gradients": lambda model, batch: layer_gradients.measure(model, LOSS, batch).weight,
} | {f"fisher, {each}": eigenvalue(each) for each in STATISTICS}


@pytest.mark.parametrize("norm", ["batch", "noisy"])
@pytest.mark.parametrize("probe", PROBES)
def test_a_probe_stays_on_its_device(reads_give_ones, probe, norm):
    model = mlp((6, 5, 4), norm).to("meta")
    batch = torch.randn(8, 6), torch.zeros(8, dtype=torch.long)
    assert PROBES[probe](model, tuple(each.to("meta") for each in batch)) is not None
    with pytest.raises(RuntimeError, match="device"):  # what it would find
        PROBES[probe](model, batch)


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
