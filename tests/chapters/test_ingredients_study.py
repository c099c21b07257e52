"""The chapter on ingredients: each of them, the networks, the stack and the instruments against slow twins."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import page_cells
import pytest
import torch
import torch.nn.functional as F
from scipy.stats import spearmanr
from torch import nn

from bnbook.chapters import ingredients
from bnbook.chapters.ingredients import ARMS, EPS, REGRESSION, STATISTICS, IngredientArm, meets, terms
from bnbook.chapters.shared import Rows
from bnbook.curves import rank_correlation
from bnbook.data import load
from bnbook.training.resumable import arrays_of_one

CELLS = page_cells.functions("practice/ingredients")
DRAWN = torch.Generator().manual_seed(3)
PLAN = IngredientArm("none", "textures-standin", 4, (8, 8, 8), (), 16, 10, (0.1, 0.4, 1.6), 2)
DATA = load("textures-standin")
CONVOLUTIONAL = replace(PLAN, units=(4, 8), strides=(2, 1))
INPUTS = 1.5 * torch.randn(12, 48, generator=DRAWN) + 0.3
LABELS = torch.arange(12) % 10


def of(arm, plan=PLAN, **changes):
    return replace(plan, arm=arm, **changes)


#: Ingredient -> over whose values, whether their mean is subtracted, by what root is divided.
FORMULAS = {
    "centre": ("batch", True, lambda z, mean: 0 * z + 1 - EPS),
    "divide": ("batch", False, lambda z, mean: (z - mean) ** 2),
    "batch": ("batch", True, lambda z, mean: (z - mean) ** 2),
    "second": ("batch", False, lambda z, mean: z**2),
    "rms": ("example", False, lambda z, mean: z**2),
    "units": ("example", True, lambda z, mean: 0 * z + 1 - EPS),
    "layer": ("example", True, lambda z, mean: (z - mean) ** 2),
    "groups": ("group", True, lambda z, mean: (z - mean) ** 2),
}


def by_formula(z, name):
    """An ingredient in NumPy; z (B, N) or (B, C, H, W)."""
    over, centres, square = FORMULAS[name]
    parts = z.reshape(len(z), 8, -1) if over == "group" else z
    axes = {"batch": (0, *range(2, z.ndim)), "example": tuple(range(1, z.ndim)), "group": 2}[over]
    mean = parts.mean(axes, keepdims=True)
    size = square(parts, mean).mean(axes, keepdims=True) + EPS
    return ((parts - mean * centres) / np.sqrt(size)).reshape(z.shape)


@pytest.mark.parametrize("name", STATISTICS)
def test_each_ingredient_is_its_formula(name):
    for shape in ((6, 16),) if name == "groups" else ((6, 16), (3, 4, 2, 2)):
        shift = torch.linspace(-1, 2, shape[1]).view(-1, *[1] * (len(shape) - 2))
        z = 2 * torch.randn(shape, generator=DRAWN) + shift
        middle, divisor = STATISTICS[name](z)
        found = (z if middle is None else z - middle) / (1 if divisor is None else divisor)
        np.testing.assert_allclose(found, by_formula(z.double().numpy(), name), rtol=2e-5, atol=2e-5)


def test_standardized_weights_have_mean_zero_and_hes_variance_and_are_blind_to_their_length():
    for shape in ((5, 30), (5, 3, 3, 3)):
        v = 3 * torch.randn(shape, generator=DRAWN, dtype=torch.float64) + 1
        w = ingredients.standardized(v).flatten(1)
        assert w.mean(1).abs().max() < 1e-12
        np.testing.assert_allclose(w.var(1, correction=0), 2 / w.shape[1], rtol=1e-4)
        np.testing.assert_allclose(ingredients.standardized(7 * v).flatten(1), w, rtol=1e-4)


def slow_network(model, x, arm, depth):
    """The answers of a fully connected arm, layer by layer in NumPy, from the arm's name alone."""
    h, half = x.double().numpy(), depth // 2
    layers = {"all": range(depth), "first": [0], "last": [depth - 1], "butlast": range(depth - 1)}
    layers |= {"early": range(half), "late": range(half, depth), "behind": []}
    for k, layer in enumerate(list(model)[:depth]):
        gamma, beta, alpha, v = (
            p.detach().double().numpy() for p in (layer.gamma, layer.beta, layer.alpha, layer.v)
        )
        if ("weights", "all") in terms(arm):
            v = v - v.mean(1, keepdims=True)
            v = v / np.sqrt((v**2).mean(1, keepdims=True) + EPS / v.shape[1]) * np.sqrt(2 / v.shape[1])
        z = h @ v.T
        for name, place in terms(arm):
            if k in layers[place] and name == "tanh":
                z = np.tanh(alpha * z)
            elif k in layers[place] and name in FORMULAS:
                z = by_formula(z, name)
        h = np.maximum(gamma * z + beta, 0)
        for name, place in terms(arm):
            h = by_formula(h, name) if place == "behind" and k == depth - 1 else h
    return h @ model[-1].weight.detach().double().numpy().T


@pytest.mark.parametrize("arm", ARMS)
def test_each_arm_has_its_ingredients_where_its_name_says(arm):
    model, plain = of(arm).network(4, INPUTS), of("none").network(4, INPUTS)
    with torch.no_grad():
        for layer, other in zip(list(model)[:3], plain):
            assert torch.equal(layer.v, other.v), "first weights are those of every arm"
            layer.gamma.mul_(1 + 0.3 * torch.sin(torch.arange(8.0)))
            layer.beta.add_(0.2 * torch.cos(torch.arange(8.0)))
        found = model(INPUTS).double().numpy()
    np.testing.assert_allclose(found, slow_network(model, INPUTS, arm, 3), rtol=1e-3, atol=1e-4)


def test_convolutions_are_torchs():
    images = torch.randn(5, 3, 8, 8, generator=DRAWN)
    model = of("batch", CONVOLUTIONAL).network(1, images)
    h = images
    for layer, stride in zip(list(model)[:2], (2, 1)):
        h = F.relu(nn.BatchNorm2d(layer.v.shape[0])(F.conv2d(h, layer.v, stride=stride, padding=1)))
    torch.testing.assert_close(model(images), h.flatten(1) @ model[-1].weight.T, rtol=1e-4, atol=1e-5)


def plain_training(arm, seed, rate):
    """Losses of one network, one at a time, and its accuracy."""
    inputs, labels = arm.images(DATA, "train")
    model, rows, losses = arm.network(seed, inputs), Rows(inputs, labels, arm.batch_size, seed), []
    for step in range(arm.steps):
        x, y = next(rows)
        if not step and arm.held:
            held = 1 / ingredients.readout_curvature(model, x)[0]
        loss = F.cross_entropy(model(x), y)
        trained = [(n, p) for n, p in model.named_parameters() if p.requires_grad]
        own = torch.autograd.grad(loss, [p for _, p in trained], allow_unused=True)
        for (name, p), g in zip(trained, own):
            eta = held if arm.held and name.startswith(f"{len(model) - 1}.") else rate
            p.data -= arm.share(step) * eta * (torch.zeros_like(p) if g is None else g)
        losses.append(loss.item())
    return np.array(losses), ingredients.accuracy(model, inputs, arm.images(DATA, "test"))


def trained(arm, seed):
    return arrays_of_one(ingredients.start([(arm, seed)], DATA, threads=1))


def test_all_rates_are_plain_trainings_and_a_held_readout_keeps_its_rate():
    for arm in (of("rms_centre_last"), of("batch", held=True), of("batch", CONVOLUTIONAL, probes=0)):
        found, curves = trained(arm, 5), [plain_training(arm, 5, rate) for rate in arm.rates]
        late = [losses[arm.full - arm.steps // 5 : arm.full].mean() for losses, _ in curves]
        end = [losses[arm.full :].mean() for losses, _ in curves]
        np.testing.assert_allclose(found["late"], late, rtol=2e-3)
        np.testing.assert_allclose(found["end"], end, rtol=2e-3)
        assert found["accuracy"] == pytest.approx(curves[int(np.argmin(end))][1], abs=0.02)


def test_what_diverges_is_given_up_and_moves_no_other():
    wild, calm = (trained(of("none", rates=rates, steps=50), 5) for rates in ((0.1, 0.4, 1e4), (0.1, 0.4)))
    assert np.isinf(wild["late"][2]) and np.isfinite(wild["late"][:2]).all()
    for name in ("late", "end"):
        np.testing.assert_allclose(wild[name][:2], calm[name], rtol=1e-4)
    assert wild["drift"] == pytest.approx(calm["drift"], rel=1e-3)
    lost = trained(of("none", rates=(1e4, 1e5), steps=50, probes=0), 5)
    assert np.isinf(lost["end"]).all() and np.isnan(lost["accuracy"])


def test_the_readouts_curvature_is_that_of_autograds_hessian():
    model = of("rms_batch_last").network(3, INPUTS)
    h = model[:-1](INPUTS).detach().double()

    def loss(weight):
        return F.cross_entropy(h @ weight.view(10, -1).T, LABELS)

    hessian = torch.autograd.functional.hessian(loss, model[-1].weight.detach().double().flatten())
    curvature, common = ingredients.readout_curvature(model, INPUTS)
    assert curvature == pytest.approx(float(torch.linalg.eigvalsh(hessian)[-1]), rel=1e-5)
    assert common == pytest.approx(sum(float(column.mean()) ** 2 for column in h.T))


def test_at_inference_the_statistics_are_those_of_training_images():
    model = of("batch").network(4, INPUTS)
    test = torch.randn(7, 48, generator=DRAWN)
    labels = torch.arange(7) % 10
    share = ingredients.accuracy(model, INPUTS, (test, labels))
    plain, h, seen = of("batch").network(4, INPUTS), test, INPUTS
    for layer in list(plain)[:3]:
        z, own = h @ layer.v.T, seen @ layer.v.T
        mean, deviation = own.mean(0), (own.var(0, correction=0) + EPS).sqrt()
        h, seen = F.relu((z - mean) / deviation), F.relu((own - mean) / deviation)
    assert share == pytest.approx(float(((h @ plain[-1].weight.T).argmax(1) == labels).double().mean()))


def test_softmax_regression_starts_at_guessing_and_has_no_hidden_layer():
    model = of(REGRESSION).network(0, INPUTS)
    assert F.cross_entropy(model(INPUTS), LABELS).item() == pytest.approx(np.log(10), rel=1e-6)
    assert sum(p.numel() for p in model.parameters()) == 490
    assert trained(of(REGRESSION, probes=0), 3)["late"].shape == (3,)


def test_the_largest_usable_rate_is_the_last_before_the_first_that_fails_above_the_best():
    rates, inf = (1.0, 2.0, 4.0, 8.0), np.inf
    for late, largest in (
        ((1.5, 1.0, 1.9, 2.3), 4.0),
        ((2.3, 1.0, 2.2, 1.9), 2.0),  # what learns again above a rate that fails does not count
        ((1.9, 1.8, 1.7, 1.6), 8.0),
        ((2.3, inf, inf, inf), 0.5**0.5),
        ((1.9, inf, 1.95, inf), 1.0),
    ):
        assert CELLS["usable"](rates, np.array(late)) == pytest.approx(largest)


def test_near_far_and_drift_are_those_of_slow_twins():
    model = of("batch_last").network(2, INPUTS).double()
    batch = (INPUTS.double(), LABELS)
    found = ingredients.look(model, batch, batch, 0.1)
    trained = [p for p in model.parameters() if p.requires_grad]

    def gradient():
        own = torch.autograd.grad(F.cross_entropy(model(batch[0]), LABELS), trained, allow_unused=True)
        return torch.cat([(torch.zeros_like(p) if g is None else g).flatten() for p, g in zip(trained, own)])

    g, start = gradient(), nn.utils.parameters_to_vector(trained).detach().clone()
    for name, a, scale in (("near", 0.1 / 20, 20 / 0.1), ("far", 1.6, 1.0)):
        nn.utils.vector_to_parameters(start - a * g, trained)
        assert found[name] == pytest.approx(float(scale * (gradient() - g).norm() / g.norm()), rel=1e-6)
    nn.utils.vector_to_parameters(start, trained)
    h = INPUTS.double() @ model[0].v.T
    np.testing.assert_allclose(found["mean"][:8], h.detach().mean(0), atol=1e-9)
    moved = {"mean": found["mean"] + 0.5, "variance": found["variance"], "near": 2.0, "far": 8.0}
    read = ingredients.over_looks([found | {"near": 1.0, "far": 2.0}, moved])
    expected = [0.5 / (v + 0.0625) ** 0.5 for v in found["variance"]]
    assert read["drift"] == pytest.approx(np.mean(expected)) and (read["near"], read["far"]) == pytest.approx(
        (2**0.5, 4.0)
    )


def test_the_two_lists_share_every_kind_and_the_count_is_of_hidden_layers_that_centre():
    suggests, tests = ingredients.split(ARMS)
    assert sorted(suggests + tests) == sorted(ARMS)
    for kind in (True, False):
        one, other = (sum(meets(arm) == kind for arm in part) for part in (suggests, tests))
        assert one - other in (0, 1)
    counts = {"none": 0, "batch": 6, "rms_centre_last": 1, "centre_late": 3, "batch_butlast": 5, "divide": 0}
    counts |= {"centre_behind": 1, "divide_centre_last": 1}
    assert {arm: CELLS["centred_layers"](arm, 6) for arm in counts} == counts


def test_rank_correlation_is_scipys_and_its_interval_over_layers_is_about_that_of_layers_drawn_again():
    drawn = np.random.default_rng(1)
    one = drawn.integers(0, 6, 40).astype(float)  # with ties
    other = one + drawn.normal(0, 2.0, 40)
    assert rank_correlation(one, other) == pytest.approx(spearmanr(one, other).statistic)
    assert rank_correlation(np.array([1.0, np.nan, 2.0]), np.array([5.0, 1.0, 7.0])) == 1.0
    assert rank_correlation(np.ones(4), np.arange(4.0)) == 0.0
    values = CELLS["by_layer"](one, other)
    again = [spearmanr(one[k], other[k]).statistic for k in drawn.integers(0, 40, (2000, 40))]
    assert values.mean() == pytest.approx(spearmanr(one, other).statistic, abs=0.03)
    assert values.std(ddof=1) / 40**0.5 == pytest.approx(np.std(again), rel=0.25)
