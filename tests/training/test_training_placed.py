"""A placed training is the plain one, bit for bit; what it kept is what slow twins find."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from bnbook.data import fixed_sample, load, normalise
from bnbook.data.batches import Batches
from bnbook.models import activation_points, vgg
from bnbook.probes import places, removed_gradient
from bnbook.probes.activations import moment_change
from bnbook.training.arm import Arm, build_model
from bnbook.training.engine import train
from bnbook.training.numerics import numerics
from bnbook.training.placed import PlacedArm, train_placed
from bnbook.training.probed import ProbedArm, probe_schedule, train_probed

SETTINGS = dict(data="textures-standin", width=1 / 32, batch_size=16, steps=5, evaluate_every=2)
PROBES = dict(probe_steps=(0, 2, 3), landscape=(0.5, 4.0), activation_examples=20)
PLACED = dict(placed_layers=(2, 9), removed_gradient=True)


@pytest.fixture(scope="module")
def dataset():
    return load("textures-standin")


def by_unit(y):
    return y.detach().transpose(0, 1).flatten(1).double()


@pytest.mark.parametrize("norm", ["none", "noisy", "linf"])
def test_the_instruments_change_nothing(norm, dataset):
    small = dict(train_examples=16, test_examples=16)
    found = train_placed(PlacedArm(norm=norm, **SETTINGS, **PROBES, **PLACED, **small), 3, dataset, threads=1)
    plain = train(Arm(norm=norm, **SETTINGS, **small), 3, dataset, threads=1)
    probed = train_probed(ProbedArm(norm=norm, **SETTINGS, **PROBES, **small), 3, dataset, threads=1)
    assert all(found[name].tobytes() == values.tobytes() for name, values in {**plain, **probed}.items())
    shapes = dict(update_change=(3, 2, 3, 2), batch_change=(3, 2, 3, 2), checkpoint_change=(3, 2, 3, 2))
    shapes |= dict(median_variance=(4, 2, 3), removed_along_one=(3, 10), removed_norm_part=(3, 10))
    assert {name: found[name].shape for name in shapes} == shapes
    assert all(np.isfinite(found[name]).all() and (found[name] >= 0).all() for name in shapes)
    shares = found["removed_along_one"] + found["removed_along_values"]
    assert (shares <= 1 + 1e-9).all() and (shares > 0).all()


def test_moments_are_those_of_the_places_before_and_after_each_update(dataset):
    """Without normalizer, by a plain loop over the modules."""
    arm = PlacedArm(norm="none", **SETTINGS, **PROBES, **PLACED)
    found = train_placed(arm, 3, dataset, threads=1)
    torch.manual_seed(3)
    model = build_model(arm, dataset)
    images, _ = fixed_sample(dataset, 20, "train")
    fixed = normalise(images, dataset)
    batches = Batches(dataset, 16, torch.Generator().manual_seed(1_000_003 + 3))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    seen = []
    for _ in range(5):
        inputs, targets = next(batches)
        row = {}
        for name, x in (("update", fixed), ("batch", inputs)):
            for module_name, module in model.named_children():
                if module_name in ("norm2", "conv3", "norm9", "linear10"):
                    row[name, module_name] = by_unit(x)
                x = module(x)
        seen.append(row)
        optimizer.zero_grad()
        F.cross_entropy(model(inputs), targets).backward()
        optimizer.step()

    def moved(one, other, way, point):
        y, z = one[way, point], other[way, point]
        both = [
            torch.stack([f(y), f(z)]).numpy() for f in (lambda t: t.mean(1), lambda t: t.var(1, correction=0))
        ]
        return np.concatenate(moment_change(*both))

    for way in ("update", "batch"):
        for place, step in enumerate(arm.probe_steps):
            for layer, (point, behind) in enumerate((("norm2", "conv3"), ("norm9", "linear10"))):
                expected = moved(seen[step], seen[step + 1], way, point)
                changes = found[f"{way}_change"][place, layer]
                np.testing.assert_allclose(changes[0], expected, rtol=2e-3, atol=1e-7)
                np.testing.assert_array_equal(changes[0], changes[1])  # nothing lies between the two
                behind_it = moved(seen[step], seen[step + 1], way, behind)
                np.testing.assert_allclose(changes[2], behind_it, rtol=2e-3, atol=1e-7)
    apart = [moved(seen[0], seen[2], "update", "norm2"), moved(seen[2], seen[4], "update", "norm2")]
    np.testing.assert_allclose(found["checkpoint_change"][:2, 0, 0], apart, rtol=2e-3, atol=1e-7)
    variance = seen[2]["update", "norm9"].var(1, correction=0).median().item()
    assert found["median_variance"][1, 1, 0] == pytest.approx(variance, rel=1e-3)


@pytest.mark.parametrize("norm", ["batch", "noisy"])
def test_the_three_places_of_a_normalized_layer(norm):
    torch.manual_seed(1)
    model, inputs = vgg(width=1 / 32, norm=norm).eval(), torch.randn(12, 3, 32, 32)
    with torch.no_grad():
        model.norm2.weight.fill_(3.0)
        model.norm2.bias.fill_(0.5)
    state = torch.get_rng_state()
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    (found,) = places.measure(model, inputs, (2,))
    assert torch.equal(state, torch.get_rng_state()) and not model.norm2.training
    assert all(torch.equal(before[name], tensor) for name, tensor in model.state_dict().items())
    model.train()
    x = inputs
    for name, module in model.named_children():
        if name == "norm2":
            assert torch.allclose(found[0][0], by_unit(x).mean(1), atol=1e-6)
            assert torch.allclose(found[0][1], by_unit(x).var(1, correction=0), rtol=1e-4)
        if name == "relu2":
            assert torch.allclose(found[1][0], by_unit(x).mean(1), atol=1e-5)
        if name == "conv3":
            assert torch.allclose(found[2][1], by_unit(x).var(1, correction=0), rtol=1e-4)
        x = module(x)
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
    inputs, targets = 100 * torch.randn(6, 3, 32, 32).double(), torch.arange(6)
    state = torch.get_rng_state()
    found = removed_gradient.measure(model, F.cross_entropy, (inputs, targets))
    assert torch.equal(state, torch.get_rng_state())
    assert all(parameter.grad is None for parameter in model.parameters())
    x, tensors = inputs, {}
    for name, module in model.named_children():
        if name == f"norm{layer}":
            tensors["in"] = x
            if norm == "noisy":  # batch norm first, then its noise
                tensors["out"] = F.batch_norm(
                    x, None, None, module.weight, module.bias, True, 0.0, module.eps
                )
                x = module.noise(tensors["out"])
            else:
                x = tensors["out"] = module(x)
        else:
            x = module(x)
    g, into = torch.autograd.grad(F.cross_entropy(x, targets), [tensors["out"], tensors["in"]])
    g, into, y = by_unit(g), by_unit(into), by_unit(tensors["in"])
    m = y.shape[1]
    deviation = (y.var(1, correction=0) + 1e-5).sqrt()[:, None]
    x_hat = (y - y.mean(1, keepdim=True)) / deviation
    one = torch.stack([(g[j] @ torch.ones(m).double()) ** 2 / m for j in range(len(g))])
    along = torch.stack([(g[j] @ x_hat[j]) ** 2 / (x_hat[j] @ x_hat[j]) for j in range(len(g))])
    size = torch.stack([g[j] @ g[j] for j in range(len(g))])
    assert found.along_one[layer - 1] == pytest.approx((one.sum() / size.sum()).item(), rel=1e-9)
    assert found.along_values[layer - 1] == pytest.approx((along.sum() / size.sum()).item(), rel=1e-9)
    alive = size > 0  # units without gradient are left out
    assert found.unit_one[layer - 1] == pytest.approx((one / size)[alive].mean().item(), rel=1e-9)
    assert found.unit_values[layer - 1] == pytest.approx((along / size)[alive].mean().item(), rel=1e-9)
    assert found.norm[layer - 1] == pytest.approx(size.sum().sqrt().item(), rel=1e-9)
    if norm != "none":  # what is not removed is all that comes out of batch norm backwards
        gamma = model.get_submodule(f"norm{layer}").weight.detach()[:, None]
        left = (into * deviation / gamma).square().sum()
        assert left.item() == pytest.approx((size.sum() - one.sum() - along.sum()).item(), rel=1e-4)
        assert (size.sum() - one.sum() - along.sum()) < 0.999 * size.sum()


def test_a_diverged_training_has_nan_from_there_on(dataset):
    arm = PlacedArm(norm="none", learning_rate=1e6, **SETTINGS | dict(evaluate_every=1), **PROBES, **PLACED)
    with np.errstate(all="ignore"):
        found = train_placed(arm, 0, dataset, threads=1)
    later = np.asarray(arm.probe_steps) >= found["diverged_step"]
    assert found["diverged"] == 1 and later.any() and np.isfinite(found["removed_norm"][0]).all()
    assert np.isnan(found["removed_norm"][later]).all() and np.isnan(found["update_change"][later]).all()


def test_the_parts_of_a_batch_are_its_four_quarters(dataset):
    arm = PlacedArm(norm="batch", **SETTINGS, probe_steps=(0,), removed_gradient=True)
    found = train_placed(arm, 3, dataset, threads=1)
    torch.manual_seed(3)
    model = build_model(arm, dataset).train()
    batch = next(Batches(dataset, 16, torch.Generator().manual_seed(1_000_003 + 3)))
    quarters = [tuple(part[k : k + 4] for part in batch) for k in (0, 4, 8, 12)]
    shares = [removed_gradient.measure(model, F.cross_entropy, quarter).along_one for quarter in quarters]
    np.testing.assert_allclose(found["removed_along_one_part"][0], torch.stack(shares).mean(0), rtol=1e-3)


BARE = dict(data="textures-standin", width=0.0625, batch_size=16, steps=5, evaluate_every=0)
LOOKED = dict(
    probe_steps=(0, 2, 3),
    landscape=(0.5, 4.0),
    random_directions=(1.0,),
    covariate_shift=True,
    moment_layers=(2, 9),
    activation_examples=20,
)


def twin(arm, seed, dataset):
    """The training once more, as a plain loop: loss, gradient norm and normalizers' outputs at each step."""
    torch.manual_seed(seed)
    model = build_model(arm, dataset).train()
    seen = {}
    for layer in arm.moment_layers:
        point = model.get_submodule(activation_points(model)[layer - 1])
        point.register_forward_hook(lambda _m, _a, y, layer=layer: seen.update({layer: y.detach().double()}))
    batches = Batches(dataset, arm.batch_size, torch.Generator().manual_seed(1_000_003 + seed))
    optimizer = torch.optim.SGD(model.parameters(), lr=arm.learning_rate)
    images, _ = fixed_sample(dataset, arm.activation_examples, "train")
    fixed = normalise(images, dataset).to(memory_format=torch.channels_last)
    steps = []
    for _ in range(arm.steps):
        state = torch.get_rng_state(), {k: v.clone() for k, v in model.state_dict().items()}
        model(fixed)
        on_fixed = dict(seen)
        torch.set_rng_state(state[0])
        model.load_state_dict(state[1])
        inputs, targets = next(batches)
        loss = F.cross_entropy(model(inputs.to(memory_format=torch.channels_last)), targets)
        norm = torch.cat(
            [g.flatten() for g in torch.autograd.grad(loss, list(model.parameters()), retain_graph=True)]
        )
        steps.append((loss.item(), norm.double().norm().item(), on_fixed, dict(seen)))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return steps


def moments(y):
    axes = (0, 2, 3) if y.dim() == 4 else (0,)
    return y.mean(axes).numpy(), y.var(axes, correction=0).numpy()


@pytest.mark.parametrize("norm", ["none", "batch", "noisy", "l1"])
def test_the_probes_see_each_step_as_it_is_made_and_change_nothing(norm, dataset):
    arm = ProbedArm(norm=norm, **BARE, **LOOKED)
    found = train_probed(arm, 3, dataset, threads=1)
    plain = train(Arm(norm=norm, **BARE), 3, dataset, threads=1)
    assert found["loss"].tobytes() == plain["loss"].tobytes()
    assert found["accuracy"].tobytes() == plain["accuracy"].tobytes()
    with numerics(
        torch.device("cpu"), threads=1
    ):  # with another number of threads it would be another training
        steps = twin(arm, 3, dataset)
    for row, step in enumerate(arm.probe_steps):
        # the batch, the statistics, the noise and the weights are those of the step itself, before its update
        assert found["start_loss"][row] == found["loss"][step]
        assert found["start_norm"][row] == pytest.approx(steps[step][1], rel=1e-5)
        for after in (0, 1):
            for name, kept in (("moment", 2), ("batch", 3)):
                for layer in arm.moment_layers:
                    if name == "moment" and norm == "noisy" and after:
                        continue  # the twin's forward passes draw other noise here; see the test below
                    mean, variance = moments(steps[step + after][kept][layer])
                    assert found[f"{name}_mean_{layer}"][row, after] == pytest.approx(
                        mean, rel=1e-4, abs=1e-6
                    )
                    assert found[f"{name}_variance_{layer}"][row, after] == pytest.approx(
                        variance, rel=1e-4, abs=1e-9
                    )


def test_noise_is_drawn_anew_for_the_moments_after_the_update(dataset):
    arm = ProbedArm(norm="noisy", learning_rate=1e-12, **BARE, **LOOKED)
    found = train_probed(arm, 0, dataset, threads=1)
    before, after = found["moment_mean_2"][:, 0], found["moment_mean_2"][:, 1]
    assert (np.abs(before - after).mean() > 0.2) and found["moment_mean_2"].shape == (3, 2, 8)


def test_the_schedule_has_the_early_steps_and_every_kth():
    assert probe_schedule(10, 4, (1, 9)) == (0, 1, 4, 8)
    assert probe_schedule(2000, 100, (0, 5, 10, 20, 50))[:7] == (0, 5, 10, 20, 50, 100, 200)


def test_what_was_probed_at_the_step_that_diverged_does_not_count(dataset):
    from bnbook.training.probed import Instruments

    seen = Instruments(ProbedArm(norm="batch", **BARE, probe_steps=(0, 2, 3)), 0, dataset)
    seen.rows = {step: {"start_loss": torch.tensor(1.0)} for step in (0, 2, 3)}
    for diverged, expected in (
        (2.0, [False, True, True]), (3.0, [False, False, True]), (np.nan, [False] * 3),
    ):  # fmt: skip
        assert np.isnan(seen.result(diverged)["start_loss"]).tolist() == expected
