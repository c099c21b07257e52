"""What every probe keeps and refuses, and those of gradients and activations against slow twins and by hand."""

from __future__ import annotations

import copy
import itertools
import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from test_probes_landscape import STEPS, assert_untouched, small, snapshot
from torch import nn

from bnbook import models
from bnbook.errors import BnbookError
from bnbook.probes import (
    activations,
    covariate_shift,
    fisher,
    functional,
    hessian,
    landscape,
    layer_gradients,
    order_parameters,
    statistics,
)

RATE, NAN, near = 0.3, math.nan, pytest.approx
CE, D = F.cross_entropy, torch.float64
summed = lambda outputs, _targets: outputs.sum()
PROBES = {
    "landscape": lambda m, b: landscape.along_gradient(m, CE, b, STEPS),
    "direction": lambda m, b: landscape.along_direction(m, CE, b, STEPS),
    "covariate shift": lambda m, b: covariate_shift.measure(m, CE, b, RATE),
    "layer gradients": lambda m, b: layer_gradients.measure(m, CE, b),
    "fisher": lambda m, b: fisher.largest_eigenvalue(m, b[0], tolerance=0.1),
    "hessian": lambda m, b: hessian.largest_curvature(m, CE, b, tolerance=0.1),
    "curvature along": lambda m, b: hessian.curvature_along_gradient(m, CE, b),
    "activations": lambda m, b: activations.measure(m, b[0], [1, 2]),
    "order parameters": lambda m, b: [order_parameters.measure(m, b[0], s) for s in ("detached", "batch")],
}


@pytest.mark.parametrize("probe", PROBES)
@pytest.mark.parametrize("norm", ["batch", "noisy"])
def test_nothing_of_a_model_changes(probe, norm):
    model, batch = small(norm)
    CE(model(batch[0]), batch[1]).backward()
    model[2].eval()  # a mode that no call of .train() would restore
    before = snapshot(model)
    PROBES[probe](model, batch)
    assert_untouched(before, model)
    with pytest.raises(RuntimeError):  # whose first layer does not take these inputs
        PROBES[probe](model, (batch[0][:, :5], batch[1]))
    assert_untouched(before, model)
    assert not any(module._forward_hooks for module in model.modules()) and not batch[0].requires_grad


X, Y = torch.randn(10, 12, dtype=D, generator=torch.Generator().manual_seed(0)), torch.arange(10) % 5
PLAIN, NORMED = (lambda: small("none")[0]), (lambda: small("batch")[0])
SAME, COUNT = nn.Linear(12, 12).double(), itertools.count(1)
REFUSED = [
    *((lambda a=a: landscape.along_gradient(PLAIN(), CE, (X, Y), a), "expected at least one, each above 0")
      for a in ([], [0.0], [0.1, -1.0], [NAN])),
    (lambda: landscape.along_direction(PLAIN(), CE, (X, Y), STEPS, [torch.zeros_like(p) for p in PLAIN().parameters()]),
     "length above 0"),
    (lambda: landscape.along_direction(PLAIN(), CE, (X, Y), STEPS, [torch.ones(3)]), "shapes of the 6 trained parameters"),
    (lambda: landscape.along_gradient(PLAIN(), lambda y, t: y, (X, Y), STEPS), "reduce it"),
    (lambda: landscape.along_gradient(nn.Identity(), CE, (X, Y), STEPS), "without trained parameters"),
    *((lambda a=a: covariate_shift.measure(PLAIN(), CE, (X, Y), a), "expected a number above 0") for a in (0.0, -1.0, NAN)),
    (lambda: covariate_shift.measure(nn.BatchNorm1d(12).double(), CE, (X, Y), RATE), "without a layer"),
    (lambda: layer_gradients.measure(nn.Sequential(nn.ReLU()), CE, (X, Y)), "no linear"),
    (lambda: layer_gradients.measure(nn.Sequential(SAME, SAME), CE, (X, Y)), "runs twice"),
    *((lambda k=k: activations.measure(PLAIN(), X, [k]), f"no layer {k}") for k in (0, 3)),
    *((lambda o=o: fisher.largest_eigenvalue(NORMED(), X, o), words)
      for o, words in ((5, "below that"), (-6, "below that"), ("some", "or 'all'"))),
    (lambda: fisher.largest_eigenvalue(NORMED(), X, parameters="biases"), "weights, all"),
    (lambda: fisher.largest_eigenvalue(NORMED(), X, statistics="exact"), "batch, detached, population"),
    (lambda: fisher.largest_eigenvalue(NORMED(), X, tolerance=1e-12, max_iterations=2), "after 2 iterations"),
    *((lambda s=s: fisher.largest_eigenvalue(NORMED(), X, statistics=s, chunk=3), "ties the examples")
      for s in ("batch", "detached")),
    (lambda: fisher.largest_eigenvalue(NORMED(), X, statistics="population"), "no population statistics yet"),
    (lambda: fisher.largest_eigenvalue(small("l1")[0], X, statistics="detached"), "not for LpNorm"),
    (lambda: fisher.largest_eigenvalue(Through().double(), X[:, :2]), "no weights"),
    (lambda: hessian.largest_curvature(NORMED(), lambda y, t: CE(y, t) * next(COUNT), (X, Y)), "two passes give"),
    (lambda: hessian.largest_curvature(NORMED(), CE, [(X, Y), (X, Y)]), "in parts"),
    (lambda: hessian.largest_curvature(nn.DataParallel(NORMED()), CE, (X, Y)), "in parts"),
    (lambda: hessian.largest_curvature(NORMED(), lambda y, t: y, (X, Y)), "one finite number"),
    (lambda: hessian.largest_curvature(NORMED().requires_grad_(False), CE, (X, Y)), "trained"),
    (lambda: hessian.largest_curvature(NORMED(), CE, (X, Y), tolerance=1e-12, max_iterations=2), "after 2 iterations"),
]  # fmt: skip


@pytest.mark.parametrize("call, words", REFUSED)
def test_what_is_refused_is_one_line(call, words):
    with pytest.raises(BnbookError, match=words) as caught:
        call()
    assert "\n" not in str(caught.value)


# ---- covariate shift: partial updates done by hand ------------------------------------------------


def network(norm="batch"):
    torch.manual_seed(2)
    model = models.mlp((12, 8, 8, 8, 5), norm=norm, init="meanfield").double().train()
    with torch.no_grad():
        for name, p in model.named_parameters():
            if "norm" in name:
                p += 0.2 * torch.randn_like(p)
    return model, (torch.randn(10, 12).double(), torch.arange(10) % 5)


def by_hand(model, batch, layer, updated):
    """Gradient of one weight before and after the named parameters are updated, in copies of the model."""
    state, found, other = torch.get_rng_state(), [], copy.deepcopy(model)
    for _ in range(2):
        torch.set_rng_state(state)
        named = dict(other.named_parameters())
        slopes = torch.autograd.grad(CE(other(batch[0]), batch[1]), list(named.values()))
        found.append(dict(zip(named, slopes, strict=True)))
        with torch.no_grad():
            for name in updated:
                named[name] -= RATE * found[0][name]
    torch.set_rng_state(state)
    return found[0][layer].flatten(), found[1][layer].flatten()


@pytest.mark.parametrize("norm", ["none", "batch", "noisy", "l1", "layer"])
def test_covariate_shift_equals_partial_updates(norm):
    model, batch = network(norm)
    seen = covariate_shift.measure(model, CE, batch, RATE)
    assert seen.names == tuple(f"linear{k}.weight" for k in (1, 2, 3, 4))
    assert seen.distance[0] == 0 and seen.cosine[0] == 1
    names = [name for name, _ in model.named_parameters()]
    for index, layer in enumerate(seen.names):
        # everything of the modules before: weights, biases, γ and β; nothing of the layer's own, nothing later
        updated = [n for n in names if int(n.split(".")[0][-1]) <= index]
        g, h = by_hand(model, batch, layer, updated)
        assert float(seen.distance[index]) == near((g - h).norm().item(), rel=1e-9, abs=1e-14)
        assert float(seen.cosine[index]) == near(F.cosine_similarity(g, h, dim=0).item(), abs=1e-12)
        assert float(seen.norm[index]) == near(g.norm().item(), rel=1e-12)


def test_the_biases_and_the_normalizers_of_the_layers_before_count_and_its_own_do_not():
    model, batch = network("batch")
    seen = covariate_shift.measure(model, CE, batch, RATE).distance[2].item()
    before = [n for n, _ in model.named_parameters() if int(n.split(".")[0][-1]) < 3]

    def distance(updated):
        g, h = by_hand(model, batch, "linear3.weight", updated)
        return (g - h).norm().item()

    assert len(before) == 8 and seen == near(distance(before), rel=1e-9)
    others = [[n for n in before if "bias" not in n], [n for n in before if "norm" not in n]]
    others += [[*before, f"{more}.weight"] for more in ("norm3", "linear3", "linear4")]
    for other in others:
        assert abs(distance(other) - seen) > 1e-6 * seen, other


def test_a_weight_normalized_layer_is_one_layer_whose_own_bias_stays():
    batch, other = network("none")[1], models.mlp((12, 8, 8, 8, 5), norm="weight").double().train()
    seen = covariate_shift.measure(other, CE, batch, RATE)
    assert seen.names == tuple(f"linear{k}.weight" for k in (1, 2, 3, 4))
    updated = [n for n, _ in other.named_parameters() if n.startswith(("linear1.", "linear2."))]
    parts = [f"linear3.parametrizations.weight.original{k}" for k in (0, 1)]
    g, h = (torch.cat(side) for side in zip(*(by_hand(other, batch, part, updated) for part in parts)))
    assert seen.distance[2].item() == near((g - h).norm().item(), rel=1e-9)


# ---- gradients by layer --------------------------------------------------------------------------


@pytest.mark.parametrize("norm", ["none", "batch", "weight"])
def test_layer_gradients_equal_a_walk_whose_outputs_keep_theirs(norm):
    """Of the effective weight W = γ v/‖v‖ where it is computed from others: a network that holds that W as its own."""
    torch.manual_seed(5)
    model, x, y = models.mlp((7, 6, 5, 4), norm).double(), torch.randn(9, 7, dtype=D), torch.arange(9) % 4
    before = snapshot(model)
    seen = layer_gradients.measure(model, CE, (x, y))
    assert_untouched(before, model)
    plain, outputs, values = models.mlp((7, 6, 5, 4), norm.replace("weight", "none")).double(), [], x
    with torch.no_grad():
        for name in seen.names:
            one, other = (each.get_submodule(name) for each in (plain, model))
            one.weight.copy_(other.weight), one.bias.copy_(other.bias)
    for module in plain:
        values = module(values)
        if isinstance(module, nn.Linear):
            values.retain_grad()
            outputs.append(values)
    CE(values, y).backward()
    weights = [plain.get_submodule(name).weight for name in seen.names]
    assert seen.names == ("linear1", "linear2", "linear3")
    assert seen.weight == near([w.grad.norm().item() for w in weights])
    assert seen.preactivation == near([z.grad.norm().item() for z in outputs])
    assert seen.along == near([(w * w.grad).sum().item() for w in weights], abs=1e-9)
    assert seen.size == near([w.norm().item() for w in weights])
    if (
        norm == "batch"
    ):  # held constant, statistics give another gradient: they only take away, layer by layer
        held = layer_gradients.measure(model, CE, (x, y), "detached").preactivation
        assert held[-1] == near(seen.preactivation[-1])
        assert (held[:-1] > seen.preactivation[:-1] * 1.01).all()


def test_layers_by_hand():
    """y = 2 · 3 x, x = 1: ∂/∂W = (2, 3), by the outputs (2, 1); a step of 0.1 turns by 0.2/3 and 0.3/2."""
    model = nn.Sequential(nn.Linear(1, 1, bias=False), nn.Linear(1, 1, bias=False)).double()
    with torch.no_grad():
        model[0].weight.fill_(3.0), model[1].weight.fill_(-2.0)
    x = torch.ones(1, 1).double()
    seen = layer_gradients.measure(model, summed, (x, x))
    assert seen.weight.tolist() == [2, 3] and seen.preactivation.tolist() == [2, 1]
    assert seen.size.tolist() == [3, 2] and seen.along.tolist() == [-6, -6]
    assert seen.scale_free.tolist() == [6, 6] and seen.turn(0.1) == near([0.2 / 3, 0.15])


# ---- what nonlinearities receive -----------------------------------------------------------------


class Through(nn.Module):
    """A model whose only layer hands its input on."""

    def __init__(self) -> None:
        super().__init__()
        self.norm1, self.weight = nn.Identity(), nn.Parameter(torch.ones(2))

    def forward(self, x):
        return self.norm1(x * self.weight if x.dim() == 2 else x)


@pytest.mark.parametrize("norm", ["none", "noisy"])
def test_activations_equal_a_walk_from_layer_to_layer(norm):
    torch.manual_seed(1)
    x, model = torch.randn(12, 3, 32, 32), models.vgg(width=1 / 32, norm=norm).eval()
    state = torch.get_rng_state()
    seen = activations.measure(model, x, layers=(2, 9), units=(0, 3))
    torch.set_rng_state(state)
    model.train()  # the batch's statistics, whatever the mode
    for name, module in model.named_children():
        x = module(x)
        if name in ("norm2", "norm9"):
            at, units = ("norm2", "norm9").index(name), x.detach().transpose(0, 1).flatten(1).double().numpy()
            assert seen.mean[at].numpy() == near(units.mean(1), abs=1e-6)
            assert seen.variance[at].numpy() == near(units.var(1), rel=1e-4)
            counts = np.histogram(units[3], bins=activations.EDGES)[0]
            assert seen.histogram[at, 1].numpy() == near(counts / counts.sum(), abs=1e-9)


def test_moments_and_histograms_in_float64():
    """A unit far from zero: float32 would lose its variance."""
    x = 1e4 + 0.01 * torch.randn(500, 2, generator=torch.Generator().manual_seed(0))
    seen, values = activations.measure(Through(), x, [1], units=(0, 3)), x.double()
    assert seen.mean[0].numpy() == near(values.mean(0).numpy(), rel=1e-13)
    assert seen.variance[0].numpy() == near(values.var(0, correction=0).numpy(), rel=1e-9)
    maps = torch.tensor([[[[0.5, 2.0]], [[-9.0, 9.0]]], [[[1.0, 2.5]], [[0.0, 0.0]]]])  # (2, 2, 1, 2)
    seen = activations.measure(Through(), maps, [1], units=(0, 3), edges=np.array([0.0, 1.0, 2.0, 3.0]))
    assert seen.mean[0].tolist() == [1.5, 0] and seen.variance[0].tolist() == [0.625, 40.5]
    # unit 0: ½, 1 in the first bin (a value on an edge belongs below it), 2, then 2½; unit 3 is unit 1 again
    assert seen.histogram[0].tolist() == [[0.5, 0.25, 0.25], [0.75, 0, 0.25]]
    maps[0, 0] = NAN
    assert activations.measure(Through(), maps, [1]).histogram.isnan().all()


# ---- a loss at other parameters, and statistics --------------------------------------------------


def test_norms_are_summed_in_float64():
    tiny = [torch.full((2,), 3e-30), torch.full((1, 2), 4e-30)]
    assert functional.total_norm(tiny).item() == near(math.sqrt(50) * 1e-30)
    apart = functional.total_norm([torch.tensor([1.0, 2.0**-13])]).item()  # float32 says 1
    assert apart == near(math.sqrt(1 + 2.0**-26), rel=1e-12, abs=0)
    at = functional.loss_at(Through(), summed, (torch.ones(1, 2), torch.ones(1)))
    loss, (gradient,) = at({}, ["weight"])
    assert loss.dtype == D and gradient.tolist() == [1, 1]
    assert at({"weight": torch.tensor([3.0, 4.0])}, ["weight"])[0].item() == 7


def test_statistics_held_constant_by_hand():
    """y = (x - 3)/√(8/3 + ε) of x = 1, 3, 5, without γ and β; the gradient by x is 1/√(8/3 + ε)."""
    layer = nn.BatchNorm1d(1, eps=1 / 3, affine=False).double().eval()
    x, scale = torch.tensor([[1.0], [3.0], [5.0]], dtype=D, requires_grad=True), 1 / math.sqrt(3)
    with statistics.copied(layer, "detached") as twin:
        y = twin(x)
    assert y.flatten().tolist() == near([-2 * scale, 0, 2 * scale])
    assert torch.autograd.grad(y[2], x)[0].flatten().tolist() == near([0, 0, scale])
    assert not layer.training and layer.num_batches_tracked == 0
