"""A probed training is the unprobed one, bit for bit, and its instruments saw the very steps that it made."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from bnbook.data import fixed_sample, load, normalise
from bnbook.data.batches import Batches
from bnbook.models import activation_points
from bnbook.training.arm import Arm, build_model
from bnbook.training.engine import train
from bnbook.training.numerics import numerics
from bnbook.training.probed import ProbedArm, probe_schedule, train_probed

SETTINGS = dict(data="textures-standin", width=0.0625, batch_size=16, steps=5, evaluate_every=0)
PROBES = dict(
    probe_steps=(0, 2, 3),
    landscape=(0.5, 4.0),
    random_directions=(1.0,),
    covariate_shift=True,
    moment_layers=(2, 9),
    activation_examples=20,
)


@pytest.fixture(scope="module")
def dataset():
    return load("textures-standin")


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
    arm = ProbedArm(norm=norm, **SETTINGS, **PROBES)
    found = train_probed(arm, 3, dataset, threads=1)
    plain = train(Arm(norm=norm, **SETTINGS), 3, dataset, threads=1)
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
    arm = ProbedArm(norm="noisy", learning_rate=1e-12, **SETTINGS, **PROBES)
    found = train_probed(arm, 0, dataset, threads=1)
    before, after = found["moment_mean_2"][:, 0], found["moment_mean_2"][:, 1]
    assert (np.abs(before - after).mean() > 0.2) and found["moment_mean_2"].shape == (3, 2, 8)


def test_the_schedule_has_the_early_steps_and_every_kth():
    assert probe_schedule(10, 4, (1, 9)) == (0, 1, 4, 8)
    assert probe_schedule(2000, 100, (0, 5, 10, 20, 50))[:7] == (0, 5, 10, 20, 50, 100, 200)


def test_what_was_probed_at_the_step_that_diverged_does_not_count(dataset):
    from bnbook.training.probed import Instruments

    seen = Instruments(ProbedArm(norm="batch", **SETTINGS, probe_steps=(0, 2, 3)), 0, dataset)
    seen.rows = {step: {"start_loss": torch.tensor(1.0)} for step in (0, 2, 3)}
    for diverged, expected in (
        (2.0, [False, True, True]), (3.0, [False, False, True]), (np.nan, [False] * 3),
    ):  # fmt: skip
        assert np.isnan(seen.result(diverged)["start_loss"]).tolist() == expected
