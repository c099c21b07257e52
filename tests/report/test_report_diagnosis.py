"""Each sentence of the diagnosis: a network that has the fault, and one that has not; its number by hand."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
import zoo
from torch import nn

import bnbook
from bnbook.errors import BnbookError
from bnbook.report.diagnosis import RULES, Seen
from bookpress.pipeline import chapters

B, K = 32, 4


def batch():
    draw = torch.Generator().manual_seed(1)
    return torch.randn(B, 6, generator=draw, dtype=torch.float64), torch.arange(B) % K


def first(count):
    return tuple(part[:count] for part in batch())


def scaled(by=3.0, plus=2.0):
    x, y = batch()
    return by * x + plus, y


def filled(model, seen=100):
    """Averages filled by the batch that is measured."""
    for _ in range(seen):
        model(batch()[0])
    return model


def network(*, bias=False, norm=None, width=8, depth=1, seen=100, **options):
    """Dense layers, batch norm and a ReLU each; averages filled."""
    torch.manual_seed(0)
    layers, inputs = [], 6
    for _ in range(depth):
        make = nn.BatchNorm1d if norm is None else norm
        layers += [nn.Linear(inputs, width, bias=bias), make(width, **options), nn.ReLU()]
        inputs = width
    return filled(nn.Sequential(*layers, nn.Linear(width, K)).double(), seen)


def said(model, data=None, **more):
    how = {"learning_rate": 0.1, "eigenvalues": False, "progress": False, **more}
    return bnbook.measure(model, F.cross_entropy, data or batch(), **how)


def about(report):
    return {each.about: each for each in report.diagnosis}


def gap(model, x):
    """‖f_batch − f_averages‖ / ‖f_batch‖."""
    with torch.no_grad():
        other, one = (model.train(mode)(x) for mode in (False, True))
    return float((one - other).norm() / one.norm())


def test_training_and_inference_differ_where_few_batches_filled_the_averages():
    model = network(seen=2)
    found = about(said(model))
    assert found["modes"].value == pytest.approx(gap(copy.deepcopy(model), batch()[0]))
    assert found["averages"].value == pytest.approx(0.9**2) and "81%" in found["averages"].says
    assert "taken out of the averages it differs by" in found["modes"].says
    assert "averages" not in about(said(network(seen=40)))  # 0.9⁴⁰ is 1.5 %
    told = "population is that of averages of which 81% is what they were made with"
    assert any(told in words for words in said(network(seen=2), eigenvalues=True).warnings)
    assert not any("of which" in words for words in said(network(seen=40), eigenvalues=True).warnings)
    assert "sampling errors from what this batch has" in about(said(network(), scaled()))["modes"].says


def healthy(depth, count=64, batches=100, **options):
    """Averages filled by many batches of the same data and weights; and one further batch."""
    model = network(depth=depth, width=24, seen=0, **options)
    draw = torch.Generator().manual_seed(3)
    for _ in range(batches):
        model(torch.randn(count, 6, generator=draw, dtype=torch.float64))
    return model, (torch.randn(count, 6, generator=draw, dtype=torch.float64), torch.arange(count) % K)


def test_the_factor_of_the_variances_is_said_where_it_makes_the_gap():
    """As twenty layers with batches of 16 have it (pytorch/pytorch#100048); averages of the same batch, and of others."""
    model, (x, y) = healthy(20, count=16, batches=0, affine=False)
    for _ in range(100):
        model(x)
    modes = about(said(model, (x, y)))["modes"].says
    assert "times (n - 1)/n" in modes and "it is this factor" in modes
    assert "factor" not in about(said(*healthy(20, count=16, affine=False)))["modes"].says


@pytest.mark.parametrize("norm", [nn.BatchNorm3d, nn.InstanceNorm3d])
def test_one_volume_a_batch(norm):
    """Volumes of many brightnesses, one at a time: batch norm takes each one's statistics as if by instance."""
    torch.manual_seed(0)
    layers = [nn.Conv3d(1, 8, 3, 4, 1, bias=False), norm(8), nn.ReLU(), nn.Conv3d(8, K, 1)]
    model = nn.Sequential(*layers).double()
    draw = lambda: (torch.randn(1, 1, 8, 8, 8) * 4 * torch.rand(1) + 4 * torch.randn(1)).double()
    for _ in range(100):
        model(draw())
    found = about(said(model, (draw(), torch.arange(8).view(1, 2, 2, 2) % K)))
    assert ({"modes", "values"} <= set(found)) is (norm is nn.BatchNorm3d)
    if norm is nn.BatchNorm3d:
        assert found["values"].value == 8 and "mean and variance of half of these" in found["values"].says
        assert "one batch cannot tell" in found["modes"].says


@pytest.mark.parametrize("tracked", [True, False])
def test_instance_norm_that_keeps_averages_infers_with_them(tracked):
    torch.manual_seed(0)
    layers = [nn.Conv2d(3, 8, 3), nn.InstanceNorm2d(8, affine=True, track_running_stats=tracked), nn.ReLU()]
    model = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, K)).double()
    scale = torch.linspace(0.2, 3, B).double().view(B, 1, 1, 1)  # images of many contrasts
    x, y = scale * torch.randn(B, 3, 8, 8, dtype=torch.float64) + scale, torch.arange(B) % K
    for _ in range(200):
        model(x)
    found = about(said(model, (x, y)))
    assert ("modes" in found) is tracked and not {"values", "averages", "constant", "frozen"} & set(found)
    if tracked:
        assert found["modes"].value == pytest.approx(gap(model, x))
        says = found["modes"].says
        assert "with each example's statistics" in says and "as with track_running_stats=False" in says


def test_averages_that_saw_one_pass_over_the_data_hold_nothing_of_their_start():
    """As torch.optim.swa_utils.update_bn leaves them: ten batches, each with the same weight, momentum 0.1 after that."""
    model, data = healthy(1, batches=0)
    torch.optim.swa_utils.update_bn([(data[0],)] * 10, model)
    assert model[1].num_batches_tracked == 10 and "averages" not in about(said(model, data))
    model[1].reset_running_stats()
    for _ in range(10):
        model(data[0])
    assert about(said(model, data))["averages"].value == pytest.approx(0.9**10, rel=1e-3)


def test_averages_that_are_not_finite_are_named_in_both_modes():
    model = network()
    model[1].running_var[3] = float("nan")
    found = about(said(model))
    assert "`1` are not finite numbers" in found["averages"].says and "modes" not in found
    with pytest.raises(BnbookError, match="`1.running_var` of the network is no finite number"):
        said(model.eval())


@pytest.mark.parametrize("front", [True, False])
def test_dropout_in_front_of_batch_norm(front):
    torch.manual_seed(0)
    wide, drop = (lambda n: nn.Linear(n, 64, bias=False)), nn.Dropout(0.5)
    parts = [wide(16), *[drop] * front, wide(64), nn.BatchNorm1d(64), *[drop] * (not front)]
    model = nn.Sequential(*parts, nn.ReLU(), nn.Linear(64, K)).double()
    draw = lambda: torch.randn(1024, 16, dtype=torch.float64)
    for _ in range(60):
        model(draw())
    for mode in (True, False):
        found = about(said(model.train(mode), (draw(), torch.arange(1024) % K)))
        assert ("modes" in found) is front
        assert not front or "Dropout makes the variance before layer `3`" in found["modes"].says


def test_a_layer_that_does_not_run_is_not_blamed():
    spare = zoo.Net(lambda s, x: s.body(x), body=network(), spare=nn.BatchNorm1d(6)).double()
    for data in (batch(), scaled()):
        assert not any("spare" in name for each in said(spare, data).diagnosis for name in each.layers)


class ByHand(zoo.Net):
    """As courses write it: names of its own, plain tensors, and inference where gradients are off."""

    def __init__(self, width):
        kept = {"mean": torch.zeros(width).double(), "var": torch.ones(width).double()}
        super().__init__(zoo.by_hand, **zoo.of(width), **kept)


def test_a_layer_whose_tensors_have_names_of_their_own():
    found, few = about(said(network(norm=ByHand))), about(said(network(norm=ByHand, seen=2)))
    assert "averages" not in found and "modes" not in found and "modes" in few
    assert about(said(network(norm=ByHand, seen=0)))["averages"].value == 1.0
    away = about(said(network(norm=ByHand), scaled()))
    assert "lie" in away["modes"].says and "sampling errors" in away["modes"].says
    assert away["fast path"].layers == ("1",) and "asks whether gradients are on" in away["fast path"].says
    one, other = (said(network(norm=norm), eigenvalues=True).eigenvalues for norm in (ByHand, nn.BatchNorm1d))
    assert one.constant == pytest.approx(other.constant, rel=1e-4) and one.batch == pytest.approx(other.batch)


class FrozenBatchNorm1d(zoo.Net):
    """Statistics that never change, as torchvision's has them."""

    def __init__(self, width):
        kept = {"running_mean": nn.Buffer(torch.zeros(width)), "running_var": nn.Buffer(torch.ones(width))}
        super().__init__(lambda s, x: (x - s.running_mean) / (s.running_var + 1e-5).sqrt(), **kept)


def test_where_examples_meet_elsewhere_one_batch_tells_no_scatter():
    """As the nodes of a graph do, whose halves are not drawn apart."""
    near = torch.eye(64).double() + (torch.rand(64, 64, generator=torch.Generator().manual_seed(4)) < 0.1)
    near /= near.sum(1, keepdim=True)
    torch.manual_seed(0)
    layers = {"a": nn.Linear(6, 16), "bn": nn.BatchNorm1d(16), "b": nn.Linear(16, K)}
    model = zoo.net(lambda s, x: s.b(s.bn(near @ s.a(x)).relu()), **layers)
    batches = [(torch.randn(64, 6).double(), torch.arange(64) % K) for _ in range(200)]
    for x, _ in batches:
        model(x)
    assert "one batch cannot tell" in about(said(model, batches[0]))["modes"].says
    assert "scatter as much" in about(said(model, batches[:8]))["modes"].says


def test_several_batches_tell_a_scatter_from_averages_of_other_data():
    model, (x, y) = healthy(6)
    draw = torch.Generator().manual_seed(9)
    batches = [(torch.randn(64, 6, generator=draw, dtype=torch.float64), y) for _ in range(8)]
    modes = about(said(model, batches))["modes"].says
    assert "averages made anew from 8 batches differ by" in modes and "scatter as much" in modes
    rest = said(model, [*batches, (x[:1], y[:1])])  # as a loader ends
    assert len(rest.batches.losses) == 8 and about(rest)["modes"].says == modes
    moved = about(said(model, [(3 * x + 2, y) for x, y in batches]))["modes"].says
    assert "anew from 8 batches differ by" in moved and "let the averages see such data" in moved


class Transposed(nn.BatchNorm1d):
    """Over the batch and positions of (B, T, C)."""

    def forward(self, x):
        return super().forward(x.transpose(1, 2)).transpose(1, 2)


@pytest.mark.parametrize("norm", [Transposed, nn.LayerNorm])
def test_torchs_fast_path_computes_a_layer_norm_in_the_place_of_a_batch_norm(norm):
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(8, 2, 16, 0.0, batch_first=True)
    layer.norm1, layer.norm2 = norm(8), norm(8)
    model = nn.Sequential(layer, nn.Flatten(), nn.Linear(8 * 5, K))
    x, y = 2 * torch.randn(B, 5, 8) + 1, torch.arange(B) % K
    for _ in range(200):
        model(x)
    found = about(said(model, (x, y)))
    assert ("fast path" in found) is (norm is Transposed) and "modes" not in found
    if norm is Transposed:
        with torch.no_grad():
            fast = model.eval()(x)
        slow = model(x).detach()
        assert found["fast path"].value == pytest.approx(float((fast - slow).norm() / slow.norm()), rel=1e-3)
        assert "set_fastpath_enabled(False) closes the gap" in found["fast path"].says


class Keras(nn.Module):
    """A model as Keras makes it: torch sees its parameters, under other names in a copy, and none of its layers."""

    def __init__(self, *layers):
        super().__init__()
        self.__dict__["_layers"] = [*layers]
        for place, layer in enumerate(layers):
            layer.name = f"layer{place}"
        self.named("model/")

    def named(self, prefix):
        own = {f"{prefix}{n}": p for each in self._layers for n, p in each.named_parameters(each.name)}
        self._modules["_params"] = nn.ParameterDict({k.replace(".", "/"): p for k, p in own.items()})

    def _flatten_layers(self, include_self=True):
        return [self] * include_self + self._layers

    def __deepcopy__(self, memo):
        memo[id(self)] = found = Keras(*copy.deepcopy(self._layers, memo))
        found.named("")
        return found

    def forward(self, x):
        for layer in self._layers:
            x = layer(x)
        return x


def test_a_model_whose_layers_torch_does_not_see():
    plain = network(bias=True, seen=0)
    one, other = said(plain), said(Keras(*network(bias=True, seen=0)))
    assert one.loss == other.loss and one.effective_smoothness == pytest.approx(other.effective_smoothness)
    assert [n.kind for n in other.normalizers] == ["BatchNorm1d"]
    values = [{k: s.value for k, s in about(each).items()} for each in (one, other)]
    assert values[0] == pytest.approx(values[1])


def test_a_small_branch_is_neither_idle_nor_blind():
    torch.manual_seed(0)
    front = nn.Linear(6, 8), nn.BatchNorm1d(8), nn.ReLU()
    parts = {"one": nn.Linear(8, 8), "two": nn.Linear(8, 8), "gamma": nn.Parameter(torch.tensor(1e-5))}
    branch = zoo.Net(lambda s, x: x + s.gamma * s.two(s.one(x).relu()), **parts)
    found = about(said(nn.Sequential(*front, branch, nn.Linear(8, K)).double(), learning_rate=1.0))
    assert found["bias"].layers == ("0.bias",)
    assert set(found["turn"].layers if "turn" in found else ()) <= {"0"}


def test_weights_that_are_zero_are_not_blind_to_their_length():
    torch.manual_seed(0)
    parts = {"base": nn.Linear(6, 8), "a": nn.Linear(6, 2, bias=False), "b": nn.Linear(2, 8, bias=False)}
    low = zoo.Net(lambda s, x: s.base(x) + s.b(s.a(x)), **parts)
    nn.init.zeros_(low.b.weight)
    model = nn.Sequential(low, nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, K)).double()
    turned = about(said(model, learning_rate=9.0)).get("turn")
    assert turned and "0.b" not in turned.layers


def test_a_branch_whose_last_gamma_is_zero_stands_at_a_kink_and_is_measured():
    torch.manual_seed(0)
    front = nn.Linear(6, 8)
    block = lambda: zoo.Net(
        lambda s, x: (x + s.bn(s.conv(x))).relu(), conv=nn.Linear(8, 8, bias=False), bn=nn.BatchNorm1d(8)
    )
    model = nn.Sequential(front, nn.ReLU(), block(), block(), nn.Linear(8, K)).double()
    for gamma, kind in ((0.0, "kink"), (1.0, "fits")):
        for each in model[2:4]:
            nn.init.constant_(each.bn.weight, gamma)
        report = said(model)
        assert report.landscape is not None and report.findings.slope.kind == kind


class Switched(nn.Module):
    """A layer that does something else where no gradient is asked for."""

    def forward(self, x):
        return x if torch.is_grad_enabled() else 100 * x


def test_layers_that_infer_where_gradients_are_off_are_told_what_they_do_in_training():
    plain, other = network(bias=True), network(bias=True)
    other.append(Switched())
    one, two = about(said(plain, learning_rate=20.0)), about(said(other, learning_rate=20.0))
    assert two.pop("fast path").value == pytest.approx(99)
    assert {k: s.value for k, s in one.items()} == {k: s.value for k, s in two.items()}


def test_inputs_with_a_class_in_a_column_are_measured():
    """As conditional batch norm takes them: another number than a class's is none."""
    torch.manual_seed(0)
    parts = {"a": nn.Linear(6, 8), "bn": nn.BatchNorm1d(8, affine=False), "f": nn.Linear(8, K)}
    conditional = lambda s, x: s.f((s.bn(s.a(x[:, 1:])) * s.gain(x[:, 0].long())).relu())
    model = zoo.net(conditional, **parts, gain=nn.Embedding(3, 8))
    x, y = batch()
    x = torch.cat([(torch.arange(B) % 3).double()[:, None], x], 1)
    report = said(model, (x, y), eigenvalues=True)
    assert report.findings.meeting == ("bn",) and report.eigenvalues.constant > report.eigenvalues.batch


def test_the_heaviest_comes_first_and_all_is_data():
    report = said(network(seen=2, bias=True, momentum=0.9), first(6))
    weights = [each.weight for each in report.diagnosis]
    assert len(weights) > 2 and weights == sorted(weights, reverse=True)
    data = json.loads(report.to_json())["diagnosis"]
    assert [each["about"] for each in data] == [each.about for each in report.diagnosis]
    assert data[0]["value"] == report.diagnosis[0].value
    lines = report.table().split("what to know, the heaviest first\n")[1].splitlines()
    assert len(lines) == len(data) and data[0]["says"] in lines[0]


def test_what_the_loss_keeps_in_32_bits_hides_no_bias():
    (x, y), second = batch(), nn.Sequential(nn.Linear(K, 1), nn.BatchNorm1d(1))
    by_class = partial(F.cross_entropy, weight=torch.rand(K) + 1)
    for loss in (by_class, lambda outputs, _: F.softplus(second(outputs)).mean()):
        model = network(bias=True).float()
        report = bnbook.measure(model, loss, (x.float(), y), eigenvalues=False, progress=False)
        assert about(report)["bias"].layers[0] == "0.bias"


# --- a fault, and its repaired twins ----------------------------------------------------------------


def pair(norms):
    """The same layers for two views, as in siamese networks; one batch norm for both, or one for each."""
    torch.manual_seed(0)
    views = lambda s, x: [s.norms[0](s.a(x)), s.norms[-1](s.a(3 * x.abs() + 4))]
    parts = {"a": nn.Linear(6, 8), "norms": nn.ModuleList(nn.BatchNorm1d(8) for _ in range(norms))}
    return filled(zoo.net(lambda s, x: s.f(torch.cat(views(s, x), 1)), **parts, f=nn.Linear(16, K)))


def changed(model, change):
    with torch.no_grad():
        change(model)
    return model


def kept_still():
    """Filled averages that a momentum of 0 keeps."""
    return changed(network(), lambda m: setattr(m[1], "momentum", 0.0))


def trained(model=None):
    """γ and β that are no longer those that layers are made with."""
    scale = torch.linspace(0.5, 1.5, 8)
    return changed(model or network(), lambda m: (m[1].weight.copy_(scale), m[1].bias.copy_(scale - 1)))


def frozen(model):
    model[1].requires_grad_(False)
    return model


def without(norm):
    """No normalizer in its place."""
    return nn.Identity()


def spare():
    """A layer that runs and does not reach the loss."""
    return zoo.net(lambda s, x: (s.spare(x), s.body(x))[1], body=network(), spare=nn.Linear(6, 3))


def at_rest(model):
    """Whose own code keeps its normalizer there."""
    model.train = lambda mode=True: (nn.Sequential.train(model, mode), model[1].eval())[0]
    return model.train()


def generator():
    """From one position to 8 by 8, as those of DCGAN, and the batch that it takes."""
    torch.manual_seed(0)
    up = nn.ConvTranspose2d
    body = [up(16, 32, 4), nn.BatchNorm2d(32), nn.ReLU(), up(32, 16, 4, 2, 1), nn.BatchNorm2d(16), nn.ReLU()]
    model = nn.Sequential(*body, up(16, 8, 3, 1, 1), nn.ReLU(), up(8, K, 3, 1, 1), nn.Tanh()).double()
    return model, (torch.randn(B, 16, 1, 1).double(), torch.arange(B * 64).view(B, 8, 8) % K)


def small(factor=1.0):
    """Weights before the normalizer times a factor, with averages of these."""
    return filled(changed(network(), lambda m: m[0].weight.mul_(factor)))


def across():
    """No normalizer, and small first weights at right angles to their gradient."""
    model = changed(network(norm=without), lambda m: m[0].weight.mul_(1e-3))
    (slope,) = slopes(model, model[0].weight)
    along = lambda w: (w * slope).sum() / slope.square().sum() * slope
    return changed(model, lambda m: m[0].weight.sub_(along(m[0].weight)))


def slopes(model, *of):
    x, y = batch()
    return torch.autograd.grad(F.cross_entropy(model(x), y), of)


def turn_by_hand():
    model = small(0.05)
    (slope,) = slopes(model, model[0].weight)
    return float(slope.norm() / model[0].weight.norm())


def epsilon_by_hand():
    return float((1e-5 / small(1e-3)[0](batch()[0]).detach().var(0, correction=0)).max())


def last_layer_by_hand(rate=50.0):
    model, (x, y) = network(), batch()
    own = list(model[3].parameters())
    before = float(F.cross_entropy(model(x), y).detach())
    for parameter, slope in zip(own, slopes(model, *own), strict=True):
        parameter.data -= rate * slope
    return float(F.cross_entropy(model(x), y).detach()) / before


def growth_by_hand():
    """exp of the slope of log ‖∂ℓ/∂z‖, z what each dense layer hands on, towards the input."""
    model, gave = network(**DEEP), []
    for layer in model:
        if isinstance(layer, nn.Linear):
            layer.register_forward_hook(lambda _m, _got, z: gave.append(z))
    x, y = batch()
    value = F.cross_entropy(model(x), y)
    norms = [float(g.norm()) for g in torch.autograd.grad(value, gave)]
    return np.exp(-np.polyfit(np.arange(len(norms)), np.log(norms), 1)[0])


def decaying(apart):
    """Batch norm under an optimizer that pulls all to zero, or all but its γ and β."""
    model = network()
    norms, others = list(model[1].parameters()), [p for p in model.parameters() if p.dim() > 1]
    groups = [{"params": others, "weight_decay": 1e-4}, {"params": norms, "weight_decay": 0.0}]
    every = {"lr": 0.1, "weight_decay": 1e-4}
    return said(
        model,
        optimizer=torch.optim.SGD(groups, 0.1) if apart else torch.optim.SGD(model.parameters(), **every),
    )


def columns(alike=False):
    """Of a table, whose variances lie 16 powers of ten apart; one of them the same for all, in 32 bits."""
    model, (x, y) = nn.Sequential(nn.BatchNorm1d(6), network()).double(), batch()
    scales = torch.tensor([1e6, 1e-2, 1, 1, 1, 1]).double()
    if not alike:
        return said(model, (x * scales + scales, y))
    x[:, 2] = 7.1
    return said(model.float(), ((x * scales).float(), y))


@dataclass
class Pair:
    """What is said of, with its number (or how it is taken by hand), its layers and words of it, of a network at fault; and
    networks of which it is not said."""

    topic: str
    value: float | Callable[[], float] | None
    layers: tuple[str, ...] | None
    words: str
    faulty: Callable[[], Any]
    repaired: Sequence[Callable[[], Any]] = ()


DEEP = {"depth": 12, "width": 24}
PAIRS = {
    "one batch of a healthy deep network": Pair("modes", None, None, "to its sampling error", lambda: said(*healthy(6))),
    "one norm for two views": Pair(
        "modes", None, None, "the 2 calls in one pass of `norms.0` has averages of its own", lambda: said(pair(1)),
        [lambda: said(pair(2))],
    ),
    "averages in buffers": Pair(
        "averages", 1.0, ("1",), "let it see more batches", lambda: said(network(norm=zoo.InBuffers, seen=0)),
        [lambda: said(network(norm=zoo.InBuffers))],
    ),
    "averages without a counter": Pair(
        "averages", 1.0, ("1",), "", lambda: said(network(norm=zoo.Functional, seen=0)),
        # averages that nothing moves are none, of one example either
        [
            lambda: said(network(norm=zoo.Functional)),
            lambda: said(network(norm=FrozenBatchNorm1d)),
            lambda: said(network(norm=FrozenBatchNorm1d), first(1)),
        ],
    ),
    "momentum 0": Pair(
        "averages", 1.0, ("1",), "with momentum 0 they stay so", lambda: said(network(momentum=0.0)),
        [lambda: said(network())],
    ),
    "momentum the other way round": Pair(  # the weight of the old averages, as in other libraries
        "momentum", 0.6, ("1",), "the last 2 batches; where 0.6 was meant as the weight of the old averages, expected 0.4",
        lambda: said(network(momentum=0.6)),
        # the newest of n batches weighs 1/n in a plain mean
        [
            lambda: said(network(momentum=0.4)),
            *[lambda seen=seen: said(network(momentum=None, seen=seen)) for seen in (0, 1, 3)],
        ],
    ),
    "a variance below zero": Pair(
        "averages", 1, ("1",), "hold a variance below zero",
        lambda: said(changed(network(), lambda m: m[1].running_var[3:].neg_())), [lambda: said(network())],
    ),
    "momentum 1": Pair(
        "momentum", 1.0, ("1",), "so that they are those of the last batch", lambda: said(network(momentum=1.0))
    ),
    "frozen in name only": Pair(
        "frozen", 1, ("1",), "and moves the averages: with .eval() on it alone", lambda: said(frozen(trained()), scaled(1.5, 1.0)),
        # at rest; as made, with no training to keep; not frozen; and without γ and β
        [
            lambda: said(changed(frozen(trained()), lambda m: m[1].eval()), scaled(1.5, 1.0)),
            lambda: said(frozen(network()), scaled(1.5, 1.0)),
            lambda: said(trained(), scaled(1.5, 1.0)),
            lambda: said(network(affine=False), scaled(1.5, 1.0)),
        ],
    ),
    "frozen, with averages that stay": Pair(
        "frozen", 1, ("1",), "normalizes there: with .eval()", lambda: said(frozen(trained(kept_still())), scaled(1.5, 1.0)),
        [lambda: said(trained(kept_still()), scaled(1.5, 1.0))],
    ),
    "companions": Pair(
        "companions", None, ("1",), "in inference, too", lambda: said(network(track_running_stats=False).eval()),
        [lambda: said(network().eval())],
    ),
    "values": Pair(
        "values", 8, ("1",), "8 values", lambda: said(network(), first(8)),
        # sixteen are enough; a norm at rest takes none
        [
            lambda: said(network(), first(16)),
            lambda: said(zoo.seen(zoo.NORMED(zoo.Kept(8)), times=1), first(8)),
            lambda: said(changed(network(), lambda m: m[1].eval()), first(8)),
            lambda: said(at_rest(network()), tuple(part[:4] for part in scaled())),
        ],
    ),
    "values of a layer that cuts the batch itself": Pair(
        "values", 8, ("1",), "in another order of the batch", lambda: said(network(norm=zoo.Ghost), first(16)),
        [lambda: said(network(), first(16))],
    ),
    "ε beside small variances": Pair(
        "epsilon", epsilon_by_hand, ("1",), "use a smaller ε", lambda: said(small(1e-3), learning_rate=1e-9),
        [lambda: said(network())],
    ),
    "constant units": Pair(
        "constant", 3, ("1",), "3 of 8 units", lambda: said(changed(network(), lambda m: m[0].weight[2:5].zero_())),
        [lambda: said(network()), lambda: said(network().eval(), first(1))],  # one example is no constant unit
    ),
    "a constant column": Pair("constant", 1, ("0",), "1 of 14 units", lambda: columns(alike=True), [columns]),
    "biases": Pair(
        "bias", 2, ("0.bias", "3.bias"), "bias=False", lambda: said(network(bias=True, depth=2)),
        # nothing subtracts a mean; another layer hides it, as where a residual branch starts at zero; it reaches no loss
        [
            lambda: said(network(bias=True, norm=without)),
            lambda: said(changed(network(bias=True, depth=2), lambda m: m[4].weight.zero_())),
            lambda: said(spare()),
        ],
    ),
    "layers that a step turns": Pair(  # a gradient of twenty times the length
        "turn", turn_by_hand, ("0",), "a step only turns them", lambda: said(small(0.05), learning_rate=1.0),
        [
            lambda: said(small(0.05), learning_rate=1e-4),
            lambda: said(network(norm=without), learning_rate=1.0),
            lambda: said(across(), learning_rate=1.0),
        ],
    ),
    "decay of γ and β": Pair(
        "decay", 2, ("1.weight", "1.bias"), "without decay", lambda: decaying(False), [lambda: decaying(True)]
    ),
    "a rate that the last layer does not bear": Pair(
        "last layer", last_layer_by_hand, ("3",), "at rate 50", lambda: said(network(), learning_rate=50.0),
        [lambda: said(network())],
    ),
    "growth": Pair(  # batch norm at first weights: sqrt(π/(π−1)) = 1.21 in width without end
        "growth", growth_by_hand, None, "layers at both ends", lambda: said(network(**DEEP)),
        # no normalizer; gradients of few positions, whose layer bears as large a step as the last one
        [lambda: said(network(**DEEP, norm=without)), lambda: said(*generator())],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", PAIRS)
def test_a_sentence_stands_where_the_fault_is_and_not_at_its_repaired_twins(name):
    each = PAIRS[name]
    found = about(each.faulty())[each.topic]
    wanted = each.value() if callable(each.value) else each.value
    assert wanted is None or found.value == pytest.approx(wanted)
    assert each.words in found.says and each.layers in (None, found.layers) and found.weight >= 1
    assert [k for k, twin in enumerate(each.repaired) if each.topic in about(twin())] == []


def test_a_sound_network_is_told_nothing():
    assert said(network()).diagnosis == ()


def test_every_sentence_names_a_chapter_of_the_book():
    names = {chapter.name for chapter in chapters.discover()}
    assert {chapter for _, chapter, _ in RULES.values()} <= names


def test_another_scaling_of_the_inputs_is_told_from_averages_of_other_weights():
    torch.manual_seed(0)
    layers = (
        nn.Conv2d(3, 16, 3, bias=False),
        nn.BatchNorm2d(16),
        nn.ReLU(),
        nn.Conv2d(16, 8, 3),
        nn.BatchNorm2d(8),
    )
    model, y = nn.Sequential(*layers, nn.Flatten(), nn.Linear(128, K)).double(), torch.arange(B) % K
    channel = lambda *values: torch.tensor(values).double().view(3, 1, 1)
    draw = lambda: torch.randn(B, 3, 8, 8).double() * channel(0.4, 0.6, 0.5) + channel(0.3, -0.2, 0.1)
    for _ in range(200):
        model(draw())
    x = draw()
    scaled = 255 * x * channel(1, 2, 3) + 130
    for data in ((scaled, y), [(scaled, y)] * 2):
        says = about(said(model, data))["modes"].says
        words = "on another scaling, with mean (.*) and standard deviation (.*) by channel where these have"
        means, spreads = ([float(v) for v in each.split(", ")] for each in re.search(words, says).groups())
        assert means == pytest.approx([0.3, -0.2, 0.1], abs=0.1)
        assert spreads == pytest.approx([0.4, 0.6, 0.5], rel=0.2)
    with torch.no_grad():
        model[0].weight.add_(0.3 * torch.randn(16, 3, 3, 3))
    says = about(said(model, (x, y)))["modes"].says
    assert "another scaling" not in says and "by channel, are scaled as in its training" in says


def test_what_is_ten_times_off_and_more_is_told_in_times():
    one = torch.ones(3)
    told = [f"{Seen.away(None, other, one):.0%}" for other in (one, 1.12 * one, 1295 * one)]
    assert told == ["0%", "12%", "1,294 times its size"]
