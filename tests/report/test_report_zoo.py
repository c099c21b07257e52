"""`bnbook.measure` on a zoo of networks: each number is that of a slow twin, and nothing of a network moves."""

from __future__ import annotations

import math
import os
import re
import sys
import warnings

import pytest
import torch
import torch.nn.functional as F
import zoo
from torch import nn
from zoo import ZOO, B, K

import bnbook
from bnbook.errors import BnbookError
from bnbook.report import finding
from bnbook.report.subject import Subject


def measured(animal, model=None, **more):
    model, batch = animal.build() if model is None else model, animal.batch()
    zoo.seed(7)
    how = {"learning_rate": zoo.RATE, "output": animal.output, "progress": False, **more}
    return bnbook.measure(model, animal.loss, batch, **how)


@pytest.mark.parametrize("name", ZOO)
def test_every_number_is_that_of_a_slow_twin_and_nothing_moves(name):
    animal = ZOO[name]
    model = animal.build()
    zoo.seed(7)
    before, drawn = zoo.everything(model), zoo.states()
    report = measured(animal, model)
    assert zoo.states() == drawn
    after = zoo.everything(model)
    assert [key for key in {**before, **after} if before.get(key) != after.get(key)] == []

    near = lambda value: pytest.approx(value, rel=animal.exact, abs=1e-9)
    loss, gradient = zoo.gradient(animal)
    assert report.loss == near(loss)
    assert float(report.landscape.start_norm) == near(zoo.length(*gradient.values()))
    assert report.effective_smoothness == near(zoo.smoothness(animal))
    for layer, norm in zip(report.gradients.names, report.gradients.weight, strict=True):
        own = gradient.get(f"{layer}.weight")
        assert own is None or norm == near(zoo.length(own)), layer
    if animal.shifted:
        assert report.shift.cosine.tolist() == pytest.approx(zoo.shift(animal), rel=animal.exact, nan_ok=True)
    for state in ("batch", "constant", "population"):
        value = getattr(report.eigenvalues, state)
        assert (value is None) is (state in animal.lacks), state
        if value is not None and animal.curved and (animal.held or state != "constant"):
            assert value == pytest.approx(zoo.curvature(animal, state), rel=max(1e-3, animal.exact)), state
    said = "\n".join(report.warnings)
    assert [words for words in animal.says if not re.search(words, said)] == []
    assert animal.normalizers in (None, len(report.normalizers))
    assert all(math.isfinite(value) for _, value in report.summary() if value is not None)


def test_a_network_that_is_written_otherwise_has_the_same_numbers():
    plain, parallel = ZOO["batch norm"], nn.DataParallel
    wanted = measured(plain)
    fused = measured(ZOO["norm and activation in one"]).eigenvalues
    assert (fused.batch, fused.constant) == pytest.approx(
        (wanted.eigenvalues.batch, wanted.eigenvalues.constant)
    )
    for wrap in (parallel, lambda m: torch.compile(m, backend="eager"), lambda m: parallel(parallel(m))):
        found = measured(plain, wrap(plain.build()))
        assert dict(found.summary()) == pytest.approx(dict(wanted.summary()))


def test_recomputation_changes_no_number():
    wanted = measured(zoo.Animal(zoo.recomputed))
    of_the_input = zoo.Animal(lambda: zoo.recomputed(True, whole=True))  # torch.autograd.grad cannot
    for animal in (of_the_input, ZOO["reentrant checkpoint"], ZOO["checkpoint"]):
        found = measured(animal)
        assert dict(found.summary()) == pytest.approx(dict(wanted.summary()))
    assert found.gradients.weight == pytest.approx(wanted.gradients.weight)


def batch():
    return zoo.Animal(zoo.NORMED).batch()


def dead():
    model = zoo.NORMED(nn.Identity())
    nn.init.constant_(model[0].bias, -100.0)
    model[3].bias = None
    return model


def saturated():
    """A norm of one's own over a unit that is the same for all: √0 has no slope."""
    norm = lambda h: (h - h.mean(0)) / (h.var(0).sqrt() + 1e-5)
    model = zoo.net(lambda s, x: s.f(norm(torch.tanh(s.a(x)))), a=nn.Linear(6, 8), f=nn.Linear(8, K))
    nn.init.constant_(model.a.bias[:1], -100.0)
    return model


COUNTED = [0]


class Counted(nn.Linear):
    """Another function at each call, counted in a list of its file or of its class, where no copy reaches."""

    calls = []

    def forward(self, x):
        if self.bias is None:
            COUNTED[0] += 1
        else:
            Counted.calls.append(1)
        return super().forward(x)


def late(s, x):
    """Makes its last layer when it first runs."""
    s.f = s.f or nn.Linear(8, K)
    return s.f(torch.relu(s.a(x)))


class Held:
    """Keeps a network where no copy reaches it."""

    teacher = nn.Sequential(nn.Linear(6, K), nn.BatchNorm1d(K)).double()


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("detached", [True, False])
def test_a_network_that_no_copy_reaches_is_as_it_was(training, detached):
    model, (x, y) = zoo.NORMED(nn.BatchNorm1d(8)).double(), batch()
    Held.teacher.train(training).requires_grad_(not detached)
    before = zoo.everything(Held.teacher)
    loss = lambda outputs, t: F.cross_entropy(outputs, t) + F.mse_loss(outputs, Held.teacher(x))
    if detached and not training:
        report = bnbook.measure(model, loss, (x, y), progress=False, eigenvalues=False)
        assert report.loss == pytest.approx(float(loss(model(x), y)))
    else:
        with pytest.raises(BnbookError, match="of a BatchNorm1d" if training else "a gradient in a Linear"):
            bnbook.measure(model, loss, (x, y), progress=False)
    assert zoo.everything(Held.teacher) == before


def test_a_scripted_network_that_no_copy_reaches_is_as_it_was():
    Held.scripted = torch.jit.script(nn.Sequential(nn.Linear(6, K), nn.BatchNorm1d(K)).double())
    before, (x, y) = {n: b.clone() for n, b in Held.scripted.state_dict().items()}, batch()
    loss = lambda outputs, t: F.cross_entropy(outputs, t) + F.mse_loss(outputs, Held.scripted(x).detach())
    moves = "moves what is no part of it .1.running_mean of a RecursiveScriptModule"
    with pytest.raises(BnbookError, match=moves):
        bnbook.measure(zoo.NORMED(nn.BatchNorm1d(8)).double(), loss, (x, y), progress=False)
    assert all(torch.equal(b, before[n]) for n, b in Held.scripted.state_dict().items())


def in_one_memory():
    model = nn.Sequential(nn.Linear(6, 6), nn.Tanh(), nn.Linear(6, 6))
    model[2].weight.data = model[0].weight.data
    return model


ONLY_THE_LOSS = {
    "statistics left out of the gradient": (
        lambda: zoo.NORMED(zoo.Renormed(8)).double(), "its gradient is not its slope"
    ),
    "zero": (dead, "the gradient is zero in every parameter"),
    "not finite": (saturated, "its gradient is not, in `a.weight`, `a.bias`"),
    "straight through": (
        lambda: zoo.net(lambda s, x: s.f(zoo.Straight.apply(3 * s.a(x))), a=nn.Linear(6, 8), f=nn.Linear(8, K).requires_grad_(False)),
        "its gradient is not its slope",
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", [torch.float64, torch.float32])
@pytest.mark.parametrize("name", ONLY_THE_LOSS)
def test_where_a_gradient_says_nothing_no_number_rests_on_it(name, kind):
    make, words = ONLY_THE_LOSS[name]
    torch.manual_seed(0)
    model, (x, y) = make().to(kind), batch()
    x = x.to(kind)
    report = bnbook.measure(model, F.cross_entropy, (x, y), progress=False)
    assert report.loss == pytest.approx(float(F.cross_entropy(model(x), y)))
    assert report.landscape is None and report.effective_smoothness is None
    assert any(words in each for each in report.warnings)
    assert "nan" not in report.table() and "inf" not in report.table().replace("inference", "")


REFUSED = {
    "counts outside of itself": (lambda: Counted(6, K), "a pass over a copy moves what is no part of it.*calls"),
    "counts in its file": (lambda: Counted(6, K, False), "a pass over a copy moves what is no part of it.*COUNTED"),
    "made in its first pass": (
        lambda: zoo.Net(late, a=nn.Linear(6, 8), f=None), "f.weight is made in the first pass; call the network once"
    ),
    "complex": (
        lambda: zoo.Net(lambda s, x: s.a(x) * s.c.abs(), a=nn.Linear(6, K), c=nn.Parameter(torch.ones(K) * 1j)),
        "c is complex; expected",
    ),
    "lazy": (lambda: nn.Sequential(nn.LazyLinear(8), nn.ReLU(), nn.LazyLinear(K)), "call the network once on a batch"),
    "lazy, without parameters": (
        lambda: nn.Sequential(nn.Linear(6, K), nn.LazyBatchNorm1d(affine=False)), "1.running_mean of a lazy layer"
    ),
    "a variance below zero": (lambda: zoo.below_zero().float().eval(), "`1.running_var` of the network is below zero"),
    "nothing to train": (lambda: nn.Sequential(nn.Linear(6, K)).requires_grad_(False), "without trained parameters"),
    "several outputs": (lambda: zoo.Net(lambda s, x: (s.a(x), 1), a=nn.Linear(6, K)), "output= "),
    "in one memory": (in_one_memory, "0.weight and 2.weight are two parameters in one memory"),
    "no gradient": (lambda: zoo.Net(lambda s, x: s.a(x).detach(), a=nn.Linear(6, K)), "the loss has no gradient"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_measured_is_one_line(name):
    make, words = REFUSED[name]
    with pytest.raises(BnbookError, match=words) as caught:
        bnbook.measure(make(), F.cross_entropy, (batch()[0].float(), batch()[1]), progress=False)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("made_inside", [False, True])
def test_where_no_gradient_is_asked_for_all_is_measured_just_the_same(made_inside):
    animal = ZOO["batch norm"]
    wanted, model = dict(measured(animal).summary()), animal.build()
    with torch.inference_mode():
        found = measured(animal, animal.build() if made_inside else model)
    with torch.no_grad():
        again = measured(animal, model)
    assert dict(found.summary()) == wanted == dict(again.summary())


@pytest.mark.parametrize(("function", "words"), [
    (lambda s, x: torch.complex(s.a(x), s.a(x)), r"a tensor \(12, 4\) of complex numbers"),
    (lambda s, x: s.a(x).square().mean(), "the network gives a single number"),
])  # fmt: skip
def test_outputs_that_have_no_curvature_are_named(function, words):
    model = zoo.net(function, a=nn.Linear(6, K))
    report = bnbook.measure(model, lambda y, _t: y.abs().mean(), batch(), progress=False)
    assert report.effective_smoothness > 0 and report.eigenvalues.batch is None
    assert any(re.search(words, each) for each in report.warnings)


def test_a_norm_of_examples_that_are_all_alike_is_a_norm():
    """Rounding is all that is left of them; it is no other output of the layer."""
    x, y = batch()
    model = zoo.stack(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.Tanh(), nn.Linear(8, K)).float()
    report = bnbook.measure(model, F.cross_entropy, (x[:1].float().expand(B, 6), y), progress=False)
    assert report.eigenvalues.constant is not None
    assert not any("more than normalize" in each for each in report.warnings)


def test_nothing_is_printed_or_warned_of():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for name in ("a slope inside", "averages in buffers", "mixed precision"):
            measured(ZOO[name])


def test_a_state_in_which_a_network_ends_the_program_costs_that_state_only():
    model = zoo.net(
        lambda s, x: s.f(s.n(s.a(x))) if s.n.training else sys.exit("only trains"),
        a=nn.Linear(6, 8), n=nn.BatchNorm1d(8), f=nn.Linear(8, K),
    )  # fmt: skip
    zoo.seen(model)
    report = bnbook.measure(model, F.cross_entropy, batch(), progress=False)
    assert report.eigenvalues.batch > 0 and report.eigenvalues.population is None
    assert any("population not measured: the network ends the program" in each for each in report.warnings)


def test_weights_are_those_of_layers_and_no_scales():
    report = measured(ZOO["γ and β of the maps' axes"], eigenvalues=False)
    assert report.shift.names == ("0.weight", "3.weight") and report.gradients.names == ("0", "3")

    function = lambda s, x: F.linear(x, s.row) + torch.tanh(x.repeat(1, 2)[:, :8]) @ s.w
    parts = {"w": nn.Parameter(torch.randn(8, 1).double()), "row": nn.Parameter(torch.randn(1, 6).double())}
    for wrap, wanted in (
        (nn.Sequential, ("0.w", "0.row")),
        (lambda m: m, ("w",)),
    ):  # a token has this shape, too
        subject = Subject(wrap(zoo.Net(function, **parts)), lambda y, t: y.mean(), batch())
        assert [each.parameters for each in finding.inspect(subject).layers] == [wanted]


@pytest.mark.parametrize(("function", "fits"), [
    (lambda s, x: torch.cat([s.a(x), s.a(x)]), True), (lambda s, x: s.a(x).mean(0), False)
])  # fmt: skip
def test_curvature_is_by_example_however_the_rows_of_the_output_lie(function, fits):
    make = lambda f: lambda: zoo.net(f, a=nn.Linear(6, K))
    twice = measured(zoo.Animal(make(function), loss=lambda y, _t: y.square().mean()))
    once = measured(zoo.Animal(make(lambda s, x: s.a(x))))
    if fits:
        assert twice.eigenvalues.batch == pytest.approx(2 * once.eigenvalues.batch, rel=1e-3)
    else:
        assert twice.eigenvalues.batch is None
        assert any("gives a tensor (4,) for 12 examples" in each for each in twice.warnings)


def test_half_precision_of_its_own_costs_the_curvature_only():
    report = measured(zoo.Animal(zoo.Half), zoo.Half(), eigenvalues=True)
    assert report.effective_smoothness > 0 and report.eigenvalues.batch is None
    assert any("λ_max not measured: it needs derivatives in 64 bits" in each for each in report.warnings)


def test_layers_that_nobody_registers_and_losses_that_spread_are_told():
    said = lambda model: " ".join(measured(zoo.Animal(zoo.NORMED), model, eigenvalues=False).warnings)
    idle, used = zoo.NORMED(nn.Identity()), zoo.net(lambda s, x: s.others[0](s.a(x)), a=nn.Linear(6, 5))
    idle.others, used.others = [nn.Linear(2, 2)], [nn.Linear(5, 4).double(), used.a]
    told = "`others.0` is no part of what the network registers"
    assert told not in said(idle) and told in said(used) and "others.1" not in said(used)
    x, y = batch()
    one = zoo.net(lambda s, x: s.a(x), a=nn.Linear(6, 1))
    for targets, told in ((y.double(), True), (y.double()[:, None], False)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of torch
            report = bnbook.measure(one, F.mse_loss, (x, targets), eigenvalues=False, progress=False)
        assert any("the loss spreads outputs (12, 1)" in each for each in report.warnings) is told


def test_what_is_tossed_where_no_state_reaches_is_found():
    tossed = zoo.net(lambda s, x: s.a(x) * (1 + os.urandom(1)[0] // 64), a=nn.Linear(6, K))  # one of four
    report = bnbook.measure(tossed, F.cross_entropy, batch(), progress=False)
    assert report.effective_smoothness is None
    assert any("a second pass over the same batch" in each for each in report.warnings)


def test_a_hook_on_a_parameter_is_told_and_left_out():
    animal, model = ZOO["batch norm"], ZOO["batch norm"].build()
    model[0].weight.register_hook(lambda slope: 0.1 * slope)
    report = measured(animal, model, eigenvalues=False)
    assert report.effective_smoothness == pytest.approx(zoo.smoothness(animal))
    assert "a hook changes the gradient of `0.weight`" in " ".join(report.warnings)


def test_a_lazy_network_that_has_run_is_measured():
    model = nn.Sequential(nn.LazyLinear(8), nn.LazyBatchNorm1d(), nn.ReLU(), nn.LazyLinear(K)).double()
    model(batch()[0])
    report = bnbook.measure(model, F.cross_entropy, batch(), progress=False)
    assert report.effective_smoothness > 0 and report.eigenvalues.constant > 0
    assert len(batch()[0]) == B


def test_moments_are_those_of_units_wherever_they_lie():
    for name, layer, axis in (("layer norm of one's own", "n", -1), ("layer norm of channels", "1", 1)):
        animal = ZOO[name]
        model, caught = animal.build(), []
        model.get_submodule(layer).register_forward_hook(lambda _m, got, _gave, c=caught: c.append(got[0]))
        model(animal.batch()[0])
        units = caught[0].detach().movedim(axis, 0).flatten(1)
        moments = measured(animal, eigenvalues=False).moments
        place = [*zip(moments.places, moments.names, strict=True)].index(("before normalization", layer))
        assert moments.mean[place] == pytest.approx(float(units.mean(1).abs().mean()))
        assert moments.variance[place] == pytest.approx(float(units.var(1, correction=0).mean()))
