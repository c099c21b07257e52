"""A training with all instruments is the plain one, bit for bit; what it kept is what slow twins find."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from bnbook.data import fixed_sample, load, normalise
from bnbook.data.batches import Batches
from bnbook.models import vgg
from bnbook.probes import places, removed_gradient
from bnbook.probes.activations import moment_change
from bnbook.training.arm import Arm, build_model
from bnbook.training.engine import Seen, train
from bnbook.training.numerics import numerics
from bnbook.training.probes import Probes, probe_schedule

SETTINGS = dict(data="textures-standin", width=1 / 32, batch_size=16, steps=5, evaluate_every=2)
SETTINGS |= dict(train_examples=16, test_examples=16, activation_examples=20)
LOOKS = (0, 2, 3)
PROBES = Probes(
    probe_steps=LOOKS,
    landscape=(0.5, 4.0),
    random_directions=(1.0,),
    covariate_shift=True,
    placed_layers=(2, 9),
    removed_gradient=True,
)
#: Of a layer: what its nonlinearity receives, and the layer behind it.
POINTS = {2: ("norm2", "conv3"), 9: ("norm9", "linear10")}
SEED = 3


@cache
def dataset():
    return load("textures-standin")


@cache
def watched(norm):
    return train(Arm(norm=norm, instruments=PROBES, **SETTINGS), SEED, dataset(), threads=1)


def by_unit(y):
    return y.detach().transpose(0, 1).flatten(1).double()


def moments(y):
    """Mean and variance of each unit, (2, units)."""
    return torch.stack([by_unit(y).mean(1), by_unit(y).var(1, correction=0)]).numpy()


@cache
def walked(norm):
    """The training once more, as a plain loop over modules: of each step the loss, accuracy, the gradient's length and the moments
    (images, name of a module) -> (2, units) of what a normalizer hands on and of what a layer receives."""
    arm, data = Arm(norm=norm, **SETTINGS), dataset()
    with numerics(
        torch.device("cpu"), threads=1
    ):  # with another number of threads it would be another training
        torch.manual_seed(SEED)
        model = build_model(arm, data).train()
        fixed = normalise(fixed_sample(data, 20, "train")[0], data).to(memory_format=torch.channels_last)
        batches = Batches(data, 16, torch.Generator().manual_seed(1_000_003 + SEED))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        steps = []
        for _ in range(arm.steps):
            inputs, targets = next(batches)
            kept = torch.get_rng_state(), {k: v.clone() for k, v in model.state_dict().items()}
            row = {}
            for images, x in (("fixed", fixed), ("batch", inputs.to(memory_format=torch.channels_last))):
                torch.set_rng_state(kept[0])
                model.load_state_dict(kept[1])
                for name, module in model.named_children():
                    if name in ("conv3", "linear10"):
                        row[images, name] = moments(x)
                    x = module(x)
                    if name in ("norm2", "norm9"):
                        row[images, name] = moments(x)
            loss = F.cross_entropy(x, targets)
            optimizer.zero_grad()
            loss.backward()
            length = torch.cat([p.grad.flatten() for p in model.parameters()]).double().norm().item()
            hits = (x.argmax(1) == targets).double().mean().item()
            steps.append((loss.item(), hits, length, row))
            optimizer.step()
    return steps


@pytest.mark.parametrize("norm", ["none", "batch", "noisy", "l1"])
def test_the_instruments_change_nothing_and_see_each_step_as_it_is_made(norm):
    found, steps = watched(norm), walked(norm)
    plain = train(Arm(norm=norm, **SETTINGS), SEED, dataset(), threads=1)
    assert all(found[name].tobytes() == values.tobytes() for name, values in plain.items())
    np.testing.assert_allclose(found["loss"], [loss for loss, *_ in steps], rtol=2e-4)
    np.testing.assert_allclose(found["accuracy"], [hits for _, hits, *_ in steps], atol=1e-6)
    shapes = dict(update_change=(3, 2, 3, 2), batch_change=(3, 2, 3, 2), checkpoint_change=(3, 2, 3, 2))
    shapes |= dict(median_variance=(4, 2, 3), removed_along_one=(3, 10), removed_norm_part=(3, 10))
    assert {name: found[name].shape for name in shapes} == shapes
    assert all(np.isfinite(found[name]).all() and (found[name] >= 0).all() for name in shapes)
    for row, step in enumerate(LOOKS):
        # the batch, the statistics, the noise and the weights are those of the step itself, before its update
        assert found["start_loss"][row] == found["loss"][step] == pytest.approx(steps[step][0], rel=1e-6)
        assert found["start_norm"][row] == pytest.approx(steps[step][2], rel=1e-5)


def test_moments_move_as_they_do_in_a_loop_over_the_modules():
    """Without normalizer: before and after each update, from batch to batch, and from one evaluation to the next."""
    found, rows = watched("none"), [row for *_, row in walked("none")]

    def moved(images, point, one, other):
        both = np.stack([rows[one][images, point], rows[other][images, point]], axis=1)
        return np.concatenate(moment_change(*both))

    close = dict(rtol=2e-3, atol=1e-7)
    for way, images in (("update", "fixed"), ("batch", "batch")):
        for place, step in enumerate(LOOKS):
            for layer, (point, behind) in enumerate(POINTS.values()):
                changes = found[f"{way}_change"][place, layer]
                np.testing.assert_allclose(changes[0], moved(images, point, step, step + 1), **close)
                np.testing.assert_array_equal(changes[0], changes[1])  # nothing lies between the two
                np.testing.assert_allclose(changes[2], moved(images, behind, step, step + 1), **close)
    apart = [moved("fixed", "norm2", *pair) for pair in ((0, 2), (2, 4))]
    np.testing.assert_allclose(found["checkpoint_change"][:2, 0, 0], apart, **close)
    assert found["median_variance"][1, 1, 0] == pytest.approx(
        np.sort(rows[2]["fixed", "norm9"][1])[(len(rows[2]["fixed", "norm9"][1]) - 1) // 2], rel=1e-3
    )


@pytest.mark.parametrize("norm", ["batch", "noisy"])
def test_the_three_places_of_a_normalized_layer(norm):
    torch.manual_seed(1)
    model, x = vgg(width=1 / 32, norm=norm).eval(), torch.randn(12, 3, 32, 32)
    with torch.no_grad():
        model.norm2.weight.fill_(3.0)
        model.norm2.bias.fill_(0.5)
    state = torch.get_rng_state()
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    (found,) = places.measure(model, x, (2,))
    assert torch.equal(state, torch.get_rng_state()) and not model.norm2.training
    assert all(torch.equal(before[name], tensor) for name, tensor in model.state_dict().items())
    model.train()
    met = {}
    for name, module in model.named_children():
        met[name] = moments(x)
        x = module(x)
    for (mean, variance), name in zip(found, ("norm2", "relu2", "conv3"), strict=True):
        np.testing.assert_allclose(mean, met[name][0], atol=1e-5)
        np.testing.assert_allclose(variance, met[name][1], rtol=1e-4)
    if norm == "batch":  # behind it the two moments are β and γ²
        assert torch.allclose(found[1][0], torch.tensor(0.5).double(), atol=1e-5)
        assert torch.allclose(found[1][1], torch.tensor(9.0).double(), rtol=1e-3)


@pytest.mark.parametrize("layer", [3, 9])  # a convolution, a fully connected layer
@pytest.mark.parametrize("norm", ["none", "batch", "noisy"])
def test_the_removed_gradient_against_autograd_and_theorem_41(norm, layer):
    torch.manual_seed(2)
    model = vgg(width=1 / 32, norm=norm).double()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "norm" in name:
                parameter.add_(torch.rand_like(parameter))
    x, targets = 100 * torch.randn(6, 3, 32, 32).double(), torch.arange(6)
    state = torch.get_rng_state()
    found = removed_gradient.measure(model, F.cross_entropy, (x, targets))
    assert torch.equal(state, torch.get_rng_state())
    assert all(parameter.grad is None for parameter in model.parameters())
    for name, module in model.named_children():
        if name != f"norm{layer}":
            x = module(x)
            continue
        into = out = x
        if norm == "noisy":  # batch norm first, then its noise
            out = F.batch_norm(x, None, None, module.weight, module.bias, True, 0.0, module.eps)
            x = module.noise(out)
        else:
            x = out = module(x)
    y, m = by_unit(into), into.numel() // into.shape[1]
    g, into = map(by_unit, torch.autograd.grad(F.cross_entropy(x, targets), [out, into]))
    deviation = (y.var(1, correction=0) + 1e-5).sqrt()[:, None]
    x_hat = (y - y.mean(1, keepdim=True)) / deviation
    one = torch.stack([(g[j] @ torch.ones(m).double()) ** 2 / m for j in range(len(g))])
    along = torch.stack([(g[j] @ x_hat[j]) ** 2 / (x_hat[j] @ x_hat[j]) for j in range(len(g))])
    size = torch.stack([g[j] @ g[j] for j in range(len(g))])
    alive = size > 0  # units without gradient are left out
    for name, part in (("one", one), ("values", along)):
        seen = [getattr(found, f"{way}_{name}")[layer - 1].item() for way in ("along", "unit")]
        assert seen == pytest.approx(
            [(part.sum() / size.sum()).item(), (part / size)[alive].mean().item()], rel=1e-9
        )
    assert found.norm[layer - 1] == pytest.approx(size.sum().sqrt().item(), rel=1e-9)
    if norm != "none":  # what is not removed is all that comes out of batch norm backwards
        gamma = model.get_submodule(f"norm{layer}").weight.detach()[:, None]
        left = (into * deviation / gamma).square().sum().item()
        assert left == pytest.approx((size.sum() - one.sum() - along.sum()).item(), rel=1e-4)
        assert left < 0.999 * size.sum()


def test_a_diverged_training_has_nan_from_there_on():
    own = SETTINGS | dict(evaluate_every=1, learning_rate=1e6)
    with np.errstate(all="ignore"):
        found = train(Arm(norm="none", instruments=PROBES, **own), 0, dataset(), threads=1)
    later = np.asarray(LOOKS) >= found["diverged_step"]
    assert found["diverged"] == 1 and later.any() and np.isfinite(found["removed_norm"][0]).all()
    assert np.isnan(found["removed_norm"][later]).all() and np.isnan(found["update_change"][later]).all()


def test_the_parts_of_a_batch_are_its_four_quarters():
    torch.manual_seed(SEED)
    model = build_model(Arm(norm="batch", **SETTINGS), dataset()).train()
    batch = next(Batches(dataset(), 16, torch.Generator().manual_seed(1_000_003 + SEED)))
    quarters = [tuple(part[k : k + 4] for part in batch) for k in (0, 4, 8, 12)]
    shares = [removed_gradient.measure(model, F.cross_entropy, quarter).along_one for quarter in quarters]
    found = watched("batch")["removed_along_one_part"][0]
    np.testing.assert_allclose(found, torch.stack(shares).mean(0), rtol=1e-3)


def test_noise_is_drawn_anew_for_the_moments_after_the_update():
    looks = Probes(probe_steps=(0, 3), placed_layers=(1,))
    arm = Arm(norm="noisy", learning_rate=1e-12, instruments=looks, **SETTINGS)
    found = train(arm, 0, dataset(), threads=1)["update_change"][:, 0]
    assert (found[:, 0] < 1e-6).all() and (found[:, 1, 0] > 0.05).all()


def test_the_schedule_has_the_early_steps_and_every_kth():
    assert probe_schedule(10, 4, (1, 9)) == (0, 1, 4, 8)


@pytest.mark.parametrize(
    "diverged, lost", [(2.0, [False, True, True]), (3.0, [False, False, True]), (np.nan, [False] * 3)]
)
def test_what_was_probed_at_the_step_that_diverged_does_not_count(diverged, lost):
    seen = Seen({step: {"start_loss": torch.tensor(1.0)} for step in LOOKS})
    found = Probes(probe_steps=LOOKS).result(Arm(**SETTINGS), seen, diverged)
    assert np.isnan(found["start_loss"]).tolist() == lost
