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
from bnbook.training.stack import Stack, cross_entropy

CELLS = page_cells.functions("practice/ingredients")
DRAWN = torch.Generator().manual_seed(3)
PLAN = IngredientArm("none", "textures-standin", 4, (8, 8, 8), (), 16, 10, (0.1, 0.4, 1.6), 2)
DATA = load("textures-standin")
CONVOLUTIONAL = replace(PLAN, units=(4, 8), strides=(2, 1))


def of(arm, plan=PLAN, **changes):
    return replace(plan, arm=arm, **changes)


INPUTS = 1.5 * torch.randn(12, 48, generator=DRAWN) + 0.3
LABELS = torch.arange(12) % 10


def slow_moments(values):
    middle = sum(values) / len(values)
    return (
        middle,
        sum((v - middle) ** 2 for v in values) / len(values),
        sum(v**2 for v in values) / len(values),
    )


def by_loops(z, name):
    """An ingredient, value by value; z (B, N) or (B, C, H, W)."""
    z = z.double().numpy()
    found = np.empty_like(z)
    for place in np.ndindex(z.shape):
        b, c, *where = place
        pooled = [z[(k, c, *at)] for k in range(z.shape[0]) for at in np.ndindex(z.shape[2:])]
        own = [z[(b, k, *at)] for k in range(z.shape[1]) for at in np.ndindex(z.shape[2:])]
        size = z.shape[1] // 8
        group = [z[(b, k, *where)] for k in range(c // size * size, (c // size + 1) * size)] if size else own
        over = (
            pooled if name in ("centre", "divide", "batch", "second") else group if name == "groups" else own
        )
        middle, variance, square = slow_moments(over)
        shift = 0.0 if name in ("divide", "second", "rms") else middle
        scale = {"centre": 1.0, "units": 1.0, "second": square + EPS, "rms": square + EPS}.get(
            name, variance + EPS
        )
        found[place] = (z[place] - shift) / scale**0.5
    return found


@pytest.mark.parametrize("name", STATISTICS)
def test_each_ingredient_is_its_formula_value_by_value(name):
    for shape in ((6, 16),) if name == "groups" else ((6, 16), (3, 4, 2, 2)):
        z = 2 * torch.randn(shape, generator=DRAWN) + torch.linspace(-1, 2, shape[1]).view(
            -1, *[1] * (len(shape) - 2)
        )
        middle, divisor = STATISTICS[name](z)
        z_bar = (z if middle is None else z - middle) / (1 if divisor is None else divisor)
        np.testing.assert_allclose(z_bar.double().numpy(), by_loops(z, name), rtol=2e-5, atol=2e-5)


def test_standardized_weights_have_mean_zero_and_hes_variance_and_are_blind_to_their_length():
    for shape in ((5, 30), (5, 3, 3, 3)):
        v = 3 * torch.randn(shape, generator=DRAWN, dtype=torch.float64) + 1
        w = ingredients.standardized(v).flatten(1)
        assert w.mean(1).abs().max() < 1e-12
        np.testing.assert_allclose(w.var(1, correction=0), 2 / w.shape[1], rtol=1e-4)
        np.testing.assert_allclose(ingredients.standardized(7 * v).flatten(1), w, rtol=1e-4)


def slow_network(model, x, arm, depth):
    """The answers of a fully connected arm, layer by layer in NumPy, from the arm's name alone."""
    h = x.double().numpy()
    for k, layer in enumerate(list(model)[:depth]):
        gamma, beta, alpha = (p.detach().double().numpy() for p in (layer.gamma, layer.beta, layer.alpha))
        v = layer.v.detach().double().numpy()
        names = [(n, p) for n, p in terms(arm)]
        if "weights" in [n for n, _ in names]:
            v = (v - v.mean(1, keepdims=True)) / np.sqrt(v.var(1, keepdims=True) + EPS / v.shape[1])
            v = v * np.sqrt(2 / v.shape[1])
        z = h @ v.T

        def here(place, k=k):
            at = {
                "all": range(depth),
                "first": [0],
                "last": [depth - 1],
                "behind": [],
                "early": range(depth // 2),
            }
            return k in (at | {"late": range(depth // 2, depth), "butlast": range(depth - 1)})[place]

        for name, place in names:
            if here(place) and name == "tanh":
                z = np.tanh(alpha * z)
            elif here(place) and name in STATISTICS:
                z = by_loops(torch.from_numpy(z), name)
        h = np.maximum(gamma * z + beta, 0)
        for name, place in names:
            if place == "behind" and k == depth - 1:
                h = by_loops(torch.from_numpy(h), name)
    return h @ model[-1].weight.detach().double().numpy().T


@pytest.mark.parametrize("arm", ARMS)
def test_each_arm_has_its_ingredients_where_its_name_says(arm):
    model = of(arm).network(4, INPUTS)
    with torch.no_grad():
        for layer in list(model)[:3]:
            layer.gamma.mul_(1 + 0.3 * torch.sin(torch.arange(8.0)))
            layer.beta.add_(0.2 * torch.cos(torch.arange(8.0)))
        found = model(INPUTS).double().numpy()
    np.testing.assert_allclose(found, slow_network(model, INPUTS, arm, 3), rtol=1e-3, atol=1e-4)


def test_batch_norm_everywhere_is_torchs_and_first_weights_are_those_of_every_arm():
    own, plain = of("batch").network(4, INPUTS), of("none").network(4, INPUTS)
    h = INPUTS
    for layer in list(plain)[:3]:
        h = F.relu(nn.BatchNorm1d(8)(h @ layer.v.T))
    torch.testing.assert_close(own(INPUTS), h @ plain[-1].weight.T, rtol=1e-4, atol=1e-5)


def test_convolutions_are_torchs():
    images = torch.randn(5, 3, 8, 8, generator=DRAWN)
    model = of("batch", CONVOLUTIONAL).network(1, images)
    h = images
    for layer, stride in zip(list(model)[:2], (2, 1)):
        h = F.relu(nn.BatchNorm2d(layer.v.shape[0])(F.conv2d(h, layer.v, stride=stride, padding=1)))
    torch.testing.assert_close(model(images), h.flatten(1) @ model[-1].weight.T, rtol=1e-4, atol=1e-5)


def test_a_stack_is_as_many_plain_loops():
    models = [of("rms_batch_last").network(seed, INPUTS) for seed in (0, 1, 2)]
    batches = [(torch.randn(3, 12, 48, generator=DRAWN), LABELS.expand(3, 12)) for _ in range(4)]
    rates = torch.tensor([0.05, 0.1, 0.2])
    stack = Stack.of(models)
    seen = []
    for step, batch in enumerate(batches):
        losses, gradients = stack.gradients(batch)
        stack.step(gradients, lambda name, step=step: rates / (step + 1))
        seen.append(losses)
    for k, model in enumerate(models):
        for step, (x, y) in enumerate(batches):
            loss = F.cross_entropy(model(x[k]), y[k])
            torch.testing.assert_close(seen[step][k], loss.detach(), rtol=1e-4, atol=1e-5)
            trained = [p for p in model.parameters() if p.requires_grad]
            for p, g in zip(trained, torch.autograd.grad(loss, trained, allow_unused=True)):
                p.data -= float(rates[k]) / (step + 1) * (torch.zeros_like(p) if g is None else g)
        for mine, plain in zip(stack.member(k).parameters(), model.parameters()):
            torch.testing.assert_close(mine, plain, rtol=1e-4, atol=1e-5)


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
    assert cross_entropy(model(INPUTS)[None], LABELS[None]).item() == pytest.approx(np.log(10), rel=1e-6)
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
