"""Random networks of the explosion chapter against theory, and their stacked training against one network at
a time."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from bnbook.chapters.gradient_explosion import (
    Trained,
    at_chosen,
    chain,
    draw_networks,
    first_over_last,
    fitted_growth,
    gradients,
    growth,
    largest_usable,
    last_fifth,
    residual,
    residual_profile,
    train,
    turn_spread,
)
from bnbook.chapters.shared import furthest_from_one
from bnbook.errors import BnbookError
from bnbook.models import mlp


def drawn(make, *arguments, seed=3, **options):
    torch.manual_seed(seed)
    return make(*arguments, **options)


def test_a_chain_is_the_mlp_of_the_book():
    widths, x = (6, 5, 5, 5, 3), torch.randn(7, 6)
    own, other = drawn(chain, widths), drawn(mlp, widths, "batch", "meanfield", 2.0, 0.0)
    assert torch.equal(own(x), other(x))
    assert torch.equal(
        drawn(chain, widths, normalized=[])(x), drawn(mlp, widths, "none", "meanfield", 2.0, 0.0)(x)
    )
    normal = [
        name for name, m in drawn(chain, widths, "tanh", [2]).named_modules() if hasattr(m, "running_mean")
    ]
    assert normal == ["norm2"]


def test_a_residual_network_by_hand():
    model, x = drawn(residual, (6, 5, 5, 3)).double(), torch.randn(7, 6).double()

    def norm(z):
        return (z - z.mean(0)) / (z.var(0, correction=0) + 1e-5).sqrt()

    w = [p for name, p in model.named_parameters() if "weight" in name and p.ndim == 2]
    one = x @ w[0].T
    two = one + torch.relu(norm(one)) @ w[1].T
    assert torch.allclose(model(x), torch.relu(norm(two)) @ w[2].T)


@pytest.mark.parametrize("phi", ["relu", "tanh", "linear"])
def test_measured_growth_is_the_theory(phi):
    found = []
    for seed in range(6):
        net = drawn(chain, [256] * 11 + [10], phi, seed=seed)
        found.append(fitted_growth(gradients(net, 32, seed).preactivation[:10] ** 2))
    assert np.mean(found) == pytest.approx(growth(phi, 32).through, rel=0.03)


def test_skip_connections_turn_the_exponential_into_a_power():
    found = []
    for seed in range(4):
        norms = gradients(drawn(residual, [256] * 21 + [10], seed=seed), 32, seed).weight
        found.append(norms[:20])
    squares = np.exp(2 * np.log(found).mean(0))
    # By the weights of a branch: T^(l) times what the branch puts out, the same in every layer from the
    # second on.
    theory = residual_profile(growth("relu", 32), 20)
    assert squares[1] / squares[-1] == pytest.approx(theory[1] / theory[-1], rel=0.15)


@pytest.mark.parametrize("make", [chain, residual, lambda widths: chain(widths, normalized=[2])])
def test_a_stack_trains_as_single_networks_do(make):
    """Slow twin: each network alone, PyTorch's own layers and optimizer."""
    widths, steps, rates = (6, 5, 5, 5, 10), 4, [0.05, 0.2]
    models = [drawn(make, widths, seed=seed).double() for seed in (0, 1)]
    images, labels = torch.randn(40, 6).double(), torch.arange(40) % 10
    batches = torch.stack([torch.stack([torch.randperm(40)[:12] for _ in range(steps)]) for _ in models])
    before = [copy.deepcopy(model.state_dict()) for model in models]
    done = train(models, rates, images, labels, batches, [0, 2])
    assert all(
        torch.equal(a, b)
        for model, old in zip(models, before)
        for a, b in zip(old.values(), model.state_dict().values())
    )
    assert done.loss.shape == (2, 2, steps) and done.gradient.shape == (2, 2, 2, 4)
    for s, model in enumerate(models):
        for a, rate in enumerate(rates):
            alone = copy.deepcopy(model).train()
            optimizer = torch.optim.SGD(alone.parameters(), lr=rate)
            for t in range(steps):
                chosen = batches[s, t]
                outputs = alone(images[chosen])
                loss = F.cross_entropy(outputs, labels[chosen])
                optimizer.zero_grad()
                loss.backward()
                assert done.loss[s, a, t] == pytest.approx(loss.item(), rel=1e-9)
                assert done.accuracy[s, a, t] == pytest.approx(
                    (outputs.argmax(1) == labels[chosen]).double().mean().item()
                )
                if t in (0, 2):
                    linears = [m.weight for m in alone.modules() if isinstance(m, torch.nn.Linear)]
                    assert done.gradient[s, a, t // 2] == pytest.approx(
                        [w.grad.norm().item() for w in linears], rel=1e-8
                    )
                    assert done.size[s, a, t // 2] == pytest.approx(
                        [w.norm().item() for w in linears], rel=1e-10
                    )
                optimizer.step()


def test_a_member_that_explodes_harms_nobody():
    models = [drawn(chain, (6, 8, 8, 10), normalized=[], seed=seed) for seed in (0, 1)]
    images, labels = torch.randn(40, 6), torch.arange(40) % 10
    batches = torch.randint(40, (2, 12, 8))
    both = train(models, [0.05, 1e30], images, labels, batches)
    alone = train(models, [0.05], images, labels, batches)
    assert np.isnan(both.loss[:, 1, -1]).all() and np.isnan(both.accuracy[:, 1, -1]).all()
    assert both.loss[:, 0] == pytest.approx(alone.loss[:, 0], rel=1e-5)


@pytest.mark.parametrize(
    "kind, normalized", [("batch", 4), ("none", 0), ("one_first", 1), ("one_middle", 2), ("one_last", 4)]
)
def test_networks_of_a_kind_are_the_chains_of_their_seeds(kind, normalized):
    widths, before = (6, 5, 5, 5, 5, 3), torch.get_rng_state()
    found = list(draw_networks(kind, widths, 3, "tanh", sigma_w2=1.5))
    assert torch.equal(before, torch.get_rng_state()) and len(found) == 3
    where = {"batch": None, "none": []}.get(kind, [normalized])
    own = drawn(chain, widths, "tanh", where, sigma_w2=1.5, seed=2)
    assert str(own) == str(found[2])
    with pytest.raises(BnbookError, match="unknown kind of network 'every'"):
        next(draw_networks("every", (6, 5, 3), 1))
    (later,) = draw_networks(kind, widths, 1, "tanh", 2, sigma_w2=1.5)
    assert all(torch.equal(a, b) for a, b in zip(later.parameters(), found[2].parameters()))
    assert all(torch.equal(a, b) for a, b in zip(own.parameters(), found[2].parameters()))


def test_what_trainings_came_to():
    accuracy = np.array([[[0, 0, 0, 0, 0, 0, 0, 0, 1, 0.5], [1, 1, 1, 1, 1, 1, 1, 1, 0.3, np.nan]]])
    assert last_fifth(accuracy) == pytest.approx(np.array([[0.75, 0.2]]))  # what is no number guesses: 0.1
    assert last_fifth(accuracy[:, :, :3]).tolist() == [[0, 1]]
    turned = np.array([[[0.6, 0.3, 0.15]]])
    assert turn_spread(turned) == pytest.approx(np.array([[2.0]]))  # the last layer is left out


def test_one_network_at_its_largest_usable_rate():
    shares = np.array([[0.9, 0.8, 0.5], [0.2, 0.1, 0.6], [0.1, 0.1, 0.1]])  # (S, rates)
    chosen = largest_usable(shares, [0.1, 1.0, 4.0])
    assert chosen.tolist() == [1.0, 4.0, 0.0]  # exactly half is not more than half
    gradient = np.arange(1.0, 1 + 3 * 3 * 2 * 4).reshape(3, 3, 2, 4)  # (S, A, K, L), readout last
    done = Trained(shares, shares, gradient, gradient)
    ratio = at_chosen(first_over_last(done), [0.1, 1.0, 4.0], chosen)
    assert ratio[0].tolist() == [9 / 11, 13 / 15] and ratio[1].tolist() == [41 / 43, 45 / 47]
    assert np.isnan(ratio[2]).all()  # no rate
    assert at_chosen(shares, [0.1, 1.0, 4.0], chosen)[:2].tolist() == [0.8, 0.6]


def test_the_furthest_ratio_is_that_of_the_interval():
    """A wide interval reaches further from 1 than a mean that is off by more."""
    ratios = np.array([[1.1, 0.8, 1.0], [1.1, 1.2, 1.0]])
    assert furthest_from_one(ratios).tolist() == [0.8, 1.2]
    assert furthest_from_one(np.array([[1.1, 1.0], [1.1, 1.01]])).tolist() == [1.1, 1.1]
