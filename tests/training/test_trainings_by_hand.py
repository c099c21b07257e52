"""Small and deep linear networks, and what is read off a training, with numbers worked out on paper."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from bnbook.deep_linear import LinearArm, draw_examples, draw_problem, instruments, spread_probes, train_stack
from bnbook.deep_linear import summaries as of
from bnbook.deep_linear.network import Parameters
from bnbook.errors import BnbookError
from bnbook.probes import landscape
from bnbook.small_networks import PhaseArm, bisect, works
from bnbook.training.curves import guessing, moving_mean, started, steps_to_reach
from bnbook.training.probed import ProbedArm, train_probed

NAN, INF = math.nan, math.inf
TINY = dict(depth=3, width=3, examples=8, steps=6, learning_rate=1e-3)


# Curves


def test_training_works_by_the_mean_of_its_last_tenth():
    assert not works(np.array([[1.0] * 18 + [3.0, 0.5]])).any()  # 1.75, whatever the very last is
    assert works(np.array([[1.0] * 18 + [3.0, 0.5]]), threshold=2.0).all()
    assert works(np.array([[2.0] + [9.0] * 17 + [3.0, 0.5]])).all()
    assert not works(np.array([[1.0] * 20])).any()  # as large is not below
    assert (
        works(np.array([1.0, 0.9])) and not works(np.array([1.0, NAN])) and not works(np.array([1.0, -INF]))
    )
    assert works(np.array([1.0] * 28 + [0.5, 0.5])) and not works(np.array([1.0] * 27 + [3.0, 0.1, 0.1]))


def test_started_by_the_mean_of_the_last_sixth():
    late = np.array([2.4] * 299 + [0.0])  # 49/50 · 2.4 = 2.352, above 0.98 · 2.3026
    assert not started(late) and started(late, margin=-0.03) and started(np.array([2.4] * 297 + [0.0] * 3))
    assert not started(np.array([0.0] * 250 + [2.4] * 50))
    assert started(np.array([9.0] * 10 + [0.0] * 2)) and started(np.array([0.0]))  # two of twelve; one of one
    assert not started(np.full(6, 0.98 * math.log(10))) and not started(np.array([0.0] * 11 + [NAN]))
    assert started(np.full(6, 0.6), classes=2) and not started(np.full(6, 0.69), classes=2)


def test_other_numbers_of_a_curve():
    assert guessing(np.array([0.5, NAN, INF])).tolist() == [0.5, 0.1, 0.1]
    assert guessing(np.array([NAN]), classes=4).tolist() == [0.25]
    assert moving_mean(np.array([1.0, 3.0, 5.0, 7.0]), 2).tolist() == [1, 2, 4, 6]
    assert np.isnan(moving_mean(np.array([1.0, NAN, 5.0]), 1)).tolist() == [False, True, True]
    path = np.array([0.7, 0.0, 0.2, 0.6, 1.0])  # the first alone is no window of two
    assert steps_to_reach(path, 0.4, window=2) == 4 and steps_to_reach(path, 0.9, window=2) == INF
    assert steps_to_reach(path, 0.7, window=1) == 1
    assert steps_to_reach(np.array([0.0, 1.0]), 0.5, window=9) == 2


def test_a_boundary_by_hand():
    """Works below 0.3: 0 to 1 halves to ½, ¼, ⅜; a bracket of the wrong side moves by its own width first."""
    below, above = bisect(lambda rates: rates < 0.3, [0.0], [1.0], 3)
    assert (below, above) == ([0.25], [0.375])
    for low, high in ((2.0, 3.0), (-3.0, -2.0)):
        asked = []
        below, above = bisect(lambda rates: asked.append(rates[0]) or rates < 0.3, [low], [high], 1)
        assert below < 0.3 <= above and above - below == 0.5 and asked[0] == low
    below, above = bisect(lambda rates: rates < 0.3, [0.0, 2.0], [1.0, 3.0], 0)
    assert below.tolist() == [0, 0] and above.tolist() == [1, 1] or above.tolist() == [1, 2]


@pytest.mark.parametrize(
    "change",
    [{"learning_rate": 0.0}, {"momentum": -0.1}, {"batch_size": 1}, {"hidden": ()}, {"examples": 127}],
)
def test_members_that_cannot_be(change):
    with pytest.raises(BnbookError, match="expected"):
        PhaseArm(**change)
    PhaseArm(momentum=0.0, batch_size=2, steps=1, examples=2)


def test_arms_of_one_stack():
    one, other = PhaseArm(gamma=2.0, learning_rate=0.3), PhaseArm(gamma=0.5)
    assert one.stack_key() == other.stack_key() != PhaseArm(momentum=0.0).stack_key()
    assert PhaseArm.from_settings(one.settings()) == one
    linear = LinearArm("batch", 1e-3, momentum=0.5)
    assert linear.stack_key() == LinearArm("batch").stack_key() != LinearArm("l1").stack_key()


# Deep linear networks


def test_every_stream_of_random_numbers_is_its_own():
    x, a = draw_examples(3, 20, 400)
    problem = draw_problem([3], depth=1, width=20, examples=400, init="glorot-normal")
    weights = problem.weights[0, 0]
    for one, two in ((weights, a), (weights, x[:20]), (a, x[:20])):
        together = torch.stack([one.flatten(), two.flatten()])
        assert abs(torch.corrcoef(together)[0, 1]) < 0.2
    assert x.std() == pytest.approx(1, abs=0.05) and a.std() == pytest.approx(1, abs=0.1)
    assert draw_examples(3, 20, 400, 0.5)[0].std() == pytest.approx(0.5, abs=0.03)
    assert weights.var() == pytest.approx(1 / 20, rel=0.2)


def test_random_directions_change_from_step_to_step_and_from_seed_to_seed():
    """At a vanishing rate the weights stay: what differs along the random direction is the direction."""
    arm = LinearArm("none", **TINY | {"learning_rate": 1e-12}, probe_steps=(0, 3), random_lengths=(1e9,))
    found = train_stack([(arm, 0), (arm, 1)])["random_loss"][:, :, 0]
    again = train_stack([(arm, 0)])["random_loss"][:, :, 0]
    start = train_stack([(arm, 0)])["start_loss"]
    assert start[0, 0] == pytest.approx(start[0, 1], rel=1e-6)
    assert abs(found[0, 0] / found[0, 1] - 1) > 1e-3 and (again == found[:1]).all()


def test_random_directions_hang_on_seed_and_step(monkeypatch):
    drawn, asked = instruments.random_direction, []

    def seen(like, lengths, seeds, trained_affine=True):
        asked.append(tuple(seeds))
        return drawn(like, lengths, seeds, trained_affine)

    monkeypatch.setattr(instruments, "random_direction", seen)
    arm = LinearArm("none", **TINY, probe_steps=(0, 3))
    train_stack([(arm, 0), (arm, 1)])
    assert len({seed for seeds in asked for seed in seeds}) == 4


def test_a_random_direction_by_hand():
    like = Parameters(torch.zeros(2, 3, 4, 4), torch.zeros(2, 3, 4), torch.zeros(2, 3, 4))
    like = Parameters(*(t.double() for t in like.tensors()))
    lengths = torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64)
    free = instruments.random_direction(like, lengths, [5, 6, 5])
    assert free.dot(free).sqrt().tolist() == pytest.approx([1, 2, 3])
    assert torch.allclose(free.weights[:, 2], 3 * free.weights[:, 0])  # the same seed, longer
    assert not torch.allclose(free.weights[:, 1], 2 * free.weights[:, 0])
    held = instruments.random_direction(like, lengths, [5, 6, 5], trained_affine=False)
    assert held.gamma.abs().max() == held.beta.abs().max() == 0 < free.gamma.abs().max()
    assert held.dot(held).sqrt().tolist() == pytest.approx([1, 2, 3])


def test_steps_that_are_looked_at():
    assert instruments.LEVELS == (0.02, 0.1, 0.25, 0.5, 0.75, 0.9, 0.98)
    assert spread_probes(20) == (0, 1, 2, 5, 10, 15, 19) and spread_probes(1) == (0,)
    assert spread_probes(100, regular=2, early=(3, 100)) == (0, 3, 50, 99)
    steps = LinearArm(steps=400).loss_steps()
    assert steps[:7] == [0, 1, 2, 3, 4, 5, 6] and steps[-1] == 400 and steps[-2] == 398
    assert LinearArm(steps=1).loss_steps() == [0, 1] and LinearArm(steps=10_000).loss_steps()[-2] == 9950
    assert LinearArm(steps=5, probe_steps=(0, 4)).probe_steps == (0, 4)
    for wrong in ((5,), (-1,)):
        with pytest.raises(BnbookError, match="probe step"):
            LinearArm(steps=5, probe_steps=wrong)


def test_a_linear_arm_s_loss():
    assert (
        LinearArm(reduction="sum").network().scale == 1
        and LinearArm(reduction="mean").network().scale == 1e-3
    )
    for wrong in (dict(learning_rate=-1.0), dict(momentum=-0.1), dict(width=0), dict(steps=0)):
        with pytest.raises(BnbookError):
            LinearArm(**wrong)
    assert LinearArm.from_settings(LinearArm(probe_steps=(1, 2)).settings()).probe_steps == (1, 2)
    assert draw_problem([0], depth=1, width=10, examples=12).examples == 12


def test_the_loss_by_hand_in_data_space():
    """Σ ‖W₂ W₁ x - A x‖² over the examples, alone and beside its gradients; as a mean over eight of them."""
    problem = draw_problem([4], depth=2, width=3, examples=8)
    x, a = draw_examples(4, 3, 8)
    whole = ((x @ (problem.weights[1, 0] @ problem.weights[0, 0] - a).T) ** 2).sum().item()
    for reduction, share in (("sum", 1.0), ("mean", 1 / 8)):
        network = LinearArm(reduction=reduction, **TINY | {"depth": 2}).network()
        parameters = network.start(problem)
        assert network.loss(parameters, problem).item() == pytest.approx(share * whole)
        loss, gradients = network.loss_and_gradients(parameters, problem)
        assert loss.item() == pytest.approx(share * whole)
        moved = parameters.moved(gradients, torch.tensor([1e-6 / share], dtype=torch.float64))
        slope = (network.loss(moved, problem).item() - loss.item()) / (1e-6 / share)
        assert slope == pytest.approx(-gradients.dot(gradients).item(), rel=1e-2)


def test_a_landscape_is_a_share_whatever_the_unit_of_the_loss():
    """Means over eight examples at eight times the rate are the same training."""
    of_sum = LinearArm("batch", **TINY, probe_steps=(0, 5))
    of_mean = LinearArm("batch", **TINY | {"learning_rate": 8e-3}, probe_steps=(0, 5), reduction="mean")
    whole, mean = (of.landscape(arm, train_stack([(arm, 2)])) for arm in (of_sum, of_mean))
    for name, factor in (("loss_range", 1), ("random_change", 1), ("gradient_change", 8), ("smoothness", 8)):
        assert whole[name] == pytest.approx(factor * mean[name]), name
    assert whole["relative_change"] == pytest.approx(mean["relative_change"])


def test_a_stable_rate_by_hand():
    runs = {rate: {"diverged_at": np.array(ends)} for rate, ends in ((1.0, [INF, 5]), (2.0, [7, INF]))}
    assert of.largest_stable(runs)[0] == 1 and np.isnan(of.largest_stable(runs)[1])


def test_settled_means_a_flat_last_tenth():
    steps = np.array([[0.0, 50, 90, 95, 100]])
    run = {"loss_step": steps, "diverged_at": np.array([INF]), "target_energy": np.array([[1.0]])}
    for before, last, expected in ((0.5, 0.4951, 1), (0.5, 0.4949, 0), (0.5, 0.6, 1)):
        loss = {"loss": np.array([[9.0, 9.0, before, 7.0, last]])}
        assert of.settled(LinearArm(steps=100), run | loss) == expected
    assert (
        of.settled(LinearArm(steps=100), run | {"loss": np.full((1, 5), NAN), "diverged_at": np.ones(1)}) == 0
    )


# Probed trainings


def test_random_directions_of_a_probed_training_hang_on_the_seed(monkeypatch):
    states = []

    def seen(model, loss, batch, steps, direction=None, generator=None):
        states.append(generator.get_state().sum().item())
        return walked(model, loss, batch, steps, direction, generator)

    walked = landscape.along_direction
    monkeypatch.setattr(landscape, "along_direction", seen)
    arm = ProbedArm(
        norm="none",
        data="textures-standin",
        width=0.0625,
        batch_size=8,
        steps=3,
        evaluate_every=0,
        probe_steps=(0, 1),
        random_directions=(1.0,),
        landscape=(0.5,),
        covariate_shift=False,
    )
    for seed in (0, 1, 0):
        train_probed(arm, seed, threads=1)
    assert states[:2] == states[4:] and len(set(states)) == 4  # another at every step and for every seed


def test_the_tail_of_a_training_is_a_tenth_of_it():
    assert works(np.array([1.0] * 89 + [9.0] + [0.9] * 10))  # the step before the last ten does not count
    assert not works(np.array([1.0] * 90 + [2.0] + [0.9] * 9))  # the first of them does: 10.1 / 10
