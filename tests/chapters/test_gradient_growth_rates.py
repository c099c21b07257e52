"""Gradient explosion: what its chapter computes, worked out on paper; random networks against theory and one at a time."""

from __future__ import annotations

import copy
import math
from itertools import product

import mpmath
import numpy as np
import page_cells
import pytest
import torch
import torch.nn.functional as F
from scipy import integrate

from bnbook.chapters.gradient_explosion import relu_growth, residual_profile
from bnbook.meanfield import FullyConnected, solve
from bnbook.probes.landscape import along_gradient

PAGE = page_cells.functions("batch-norm/gradient-explosion")
growth, linear_growth, zigzag, chain, residual, draw_networks, train = (
    PAGE[name] for name in "growth linear_growth zigzag chain residual draw_networks train".split()
)
gaussian_batch, gradients, roughness = (PAGE[name] for name in "gaussian_batch gradients roughness".split())
KINK, STEEPNESS = 2.7, 20.0


def test_all_three_numbers_of_the_linear_network():
    """V = 1 - c = m/(m-1); held constant m/(m-3) · 1/V = (m-1)/(m-3); through the batch (m-2)/(m-3)."""
    for m in (4, 5, 12):
        one = growth("linear", m)
        assert one.spread == pytest.approx(m / (m - 1))
        assert one.constant == pytest.approx((m - 1) / (m - 3))
        assert one.through == pytest.approx((m - 2) / (m - 3)) == pytest.approx(float(linear_growth(m)))
        assert growth(lambda x: x**2, m).through == pytest.approx(2 * (m - 1) / (m - 3))  # of degree 2
    assert growth(lambda x: 1e-3 * x, 8).through == pytest.approx(6 / 5)
    with pytest.raises(ValueError, match="at least 4"):
        growth("tanh", 3)


def test_a_residual_profile_by_hand():
    """V = 3, λ = 2, start ½: factors 1 + 6/3.5 above the second layer and 1 + 6/0.5 above the first."""
    profile = residual_profile(2.0, 3.0, 3, start=0.5)
    assert profile == pytest.approx([13 * (1 + 6 / 3.5), 1 + 6 / 3.5, 1])


def test_the_zigzag_by_hand():
    x = [0.0, 2.0, 2.69, 2.71, 2.725, 2.74, 2.75, 2.76]
    expected = [0.0, 2.0, 2.69, 2.5, 2.2, 2.5, 2.7, 2.5]  # 20 down to 2.2, 20 up to 2.7, and again
    at = torch.tensor(x, dtype=torch.float64)
    assert zigzag(at).tolist() == pytest.approx(expected) and torch.equal(zigzag(-at), -zigzag(at))
    assert PAGE["activation"]("zigzag") is zigzag and PAGE["activation"](torch.sin) is torch.sin


def test_growth_fits_leave_out_both_ends():
    squares = 2.0 * 1.5 ** -np.arange(9.0)
    squares[[0, 1, -2, -1]] = 1e6, 1e-6, 1e6, 1e-6
    assert PAGE["fitted_growth"](squares) == pytest.approx(1.5)
    squares = 2.0 * 3.0 ** -np.arange(4.0)
    squares[[0, -1]] = 7.0
    assert PAGE["fitted_growth"](squares, skip=1) == pytest.approx(3.0)
    # Three depths, not on a line: the slope of least squares (1 · ln 4 + 1 · 0) / 2 per layer
    found = PAGE["depth_growth"](np.array([[1.0, 9.0, 4.0]]), [1, 2, 3])
    assert found == pytest.approx([2.0])


def test_an_exponential_is_steady_and_a_power_is_not():
    depths = [4, 8, 16, 32]
    first = np.array([1.5 ** np.array(depths), np.array(depths) ** 3.0, [1.0, np.e, 1.0, 1.0 / np.e]])
    # Third row: +1 over 4 layers, then -1 over 16
    assert PAGE["steadiness"](first, depths) == pytest.approx([1.0, 0.25, -0.25])


def net():
    torch.manual_seed(1)
    return chain((5, 6, 6, 10), "tanh")


def test_gradients_of_the_batch():
    inputs, labels = gaussian_batch(8, 5, 3)
    model = net()
    expected = torch.autograd.grad(F.cross_entropy(model(inputs), labels), model.linear1.weight)[0].norm()
    assert gradients(net(), 8, 3).weight[0] == pytest.approx(expected.item(), rel=1e-5)


def test_roughness_is_the_worst_of_equal_distances():
    """Distances 1e-4, 1e-3 and 1e-2 of ‖θ‖ whatever the gradient's size; θ is all that is trained."""
    model = net()
    model.linear2.bias.requires_grad_(False)
    batch = gaussian_batch(12, 5, 4)
    theta = torch.cat([p.detach().flatten() for p in model.parameters() if p.requires_grad])
    theta = theta.double().norm()
    slope = along_gradient(model, F.cross_entropy, batch, [1.0]).start_norm
    seen = along_gradient(model, F.cross_entropy, batch, [s * theta / slope for s in (1e-4, 1e-3, 1e-2)])
    assert roughness(model, 12, 4) == pytest.approx(seen.smoothness.max().item(), rel=1e-4)
    single = along_gradient(model, F.cross_entropy, batch, [0.3 * theta / slope]).smoothness.item()
    assert roughness(model, 12, 4, (0.3,)) == pytest.approx(single, rel=1e-4)


def drawn(make, *arguments, seed=3, **options):
    torch.manual_seed(seed)
    return make(*arguments, **options)


def test_residual_networks_and_chains_by_hand():
    model, x = drawn(residual, (6, 5, 5, 3)).double(), torch.randn(7, 6).double()
    norm = lambda z: (z - z.mean(0)) / (z.var(0, correction=0) + 1e-5).sqrt()
    weights = lambda model: [p for name, p in model.named_parameters() if p.ndim == 2]
    first, inner, last = weights(model)
    one = x @ first.T
    two = one + torch.relu(norm(one)) @ inner.T
    assert torch.allclose(model(x), torch.relu(norm(two)) @ last.T)
    model = drawn(chain, (6, 2000, 40, 3), normalized={2}, sigma_b2=0.25).double()
    assert model.linear1.bias.var().item() == pytest.approx(0.25, rel=0.1)
    first, inner, last = weights(model)
    two = norm(torch.relu(x @ first.T + model.linear1.bias) @ inner.T)  # which takes the biases away
    assert torch.allclose(model(x), torch.relu(two) @ last.T + model.linear3.bias)


@pytest.mark.parametrize("make", [residual, lambda widths: chain(widths, normalized=[2])])
def test_a_stack_trains_as_single_networks_do(make):
    """Slow twin: each network alone, PyTorch's own layers and optimizer."""
    widths, steps, rates = (6, 5, 5, 5, 10), 3, [0.05, 0.2]
    models = [drawn(make, widths, seed=seed).double() for seed in (0, 1)]
    images, labels = torch.randn(40, 6).double(), torch.arange(40) % 10
    batches = torch.stack([torch.stack([torch.randperm(40)[:12] for _ in range(steps)]) for _ in models])
    before = copy.deepcopy(models)
    done = train(models, rates, images, labels, batches, [0, 2])
    assert done["loss"].shape == (2, 2, steps) and done["gradient"].shape == (2, 2, 2, 4)
    for s, a in product(range(2), range(2)):
        assert all(torch.equal(p, q) for p, q in zip(before[s].parameters(), models[s].parameters()))
        alone = before[s].train() if a else copy.deepcopy(before[s]).train()
        linears = [m.weight for m in alone.modules() if isinstance(m, torch.nn.Linear)]
        optimizer = torch.optim.SGD(alone.parameters(), lr=rates[a])
        for t, chosen in enumerate(batches[s]):
            outputs = alone(images[chosen])
            loss = F.cross_entropy(outputs, labels[chosen])
            optimizer.zero_grad()
            loss.backward()
            right = (outputs.argmax(1) == labels[chosen]).double().mean()
            seen = done["loss"][s, a, t], done["accuracy"][s, a, t]
            assert seen == pytest.approx((loss.item(), right.item()), rel=1e-9)
            if t in (0, 2):
                sizes = [[w.grad.norm().item() for w in linears], [w.norm().item() for w in linears]]
                seen = np.array([done["gradient"][s, a, t // 2], done["size"][s, a, t // 2]])
                assert seen == pytest.approx(np.array(sizes), rel=1e-8)
            optimizer.step()


def test_a_member_that_explodes_harms_nobody():
    models = [drawn(chain, (6, 8, 8, 10), normalized=[], seed=seed) for seed in (0, 1)]
    images, labels = torch.randn(40, 6), torch.arange(40) % 10
    batches = torch.randint(40, (2, 12, 8))
    both = train(models, [0.05, 1e30], images, labels, batches)
    alone = train(models, [0.05], images, labels, batches)
    assert np.isnan(both["loss"][:, 1, -1]).all() and np.isnan(both["accuracy"][:, 1, -1]).all()
    assert both["loss"][:, 0] == pytest.approx(alone["loss"][:, 0], rel=1e-5)


@pytest.mark.parametrize(
    "kind, normalized",
    [("batch", None), ("none", []), ("one_first", [1]), ("one_middle", [2]), ("one_last", [4])],
)
def test_networks_of_a_kind_are_the_chains_of_their_seeds(kind, normalized):
    widths, before = (6, 5, 5, 5, 5, 3), torch.get_rng_state()
    *_, found = draw_networks(kind, widths, 2, "tanh", 1, sigma_w2=1.5)
    assert torch.equal(before, torch.get_rng_state())
    own = drawn(chain, widths, "tanh", normalized, sigma_w2=1.5, seed=2)
    assert str(own) == str(found)
    assert all(torch.equal(a, b) for a, b in zip(own.parameters(), found.parameters()))


def test_what_trainings_came_to():
    accuracy = np.array([[[0, 0, 0, 0, 0, 0, 0, 0, 1, 0.5], [1, 1, 1, 1, 1, 1, 1, 1, 0.3, np.nan]]])
    assert PAGE["last_fifth"](accuracy) == pytest.approx(
        np.array([[0.75, 0.2]])
    )  # what is no number guesses: 0.1
    assert PAGE["last_fifth"](accuracy[:, :, :3]).tolist() == [[0, 1]]
    turned = np.array([[[0.6, 0.3, 0.15]]])
    assert PAGE["turn_spread"](turned) == pytest.approx(np.array([[2.0]]))  # the last layer is left out


def test_one_network_at_its_largest_usable_rate():
    shares = np.array([[0.9, 0.8, 0.5], [0.2, 0.1, 0.6], [0.1, 0.1, 0.1]])  # (S, rates)
    chosen = PAGE["largest_usable"](shares, [0.1, 1.0, 4.0])
    assert chosen.tolist() == [1.0, 4.0, 0.0]  # exactly half is not more than half
    gradient = np.arange(1.0, 1 + 3 * 3 * 2 * 4).reshape(3, 3, 2, 4)  # (S, A, K, L), readout last
    at_chosen = PAGE["at_chosen"]
    ratio = at_chosen(gradient[..., 0] / gradient[..., -2], [0.1, 1.0, 4.0], chosen)
    assert ratio[0].tolist() == [9 / 11, 13 / 15] and ratio[1].tolist() == [41 / 43, 45 / 47]
    assert np.isnan(ratio[2]).all()  # no rate
    assert at_chosen(shares, [0.1, 1.0, 4.0], chosen)[:2].tolist() == [0.8, 0.6]


@pytest.mark.parametrize("m", [4, 5, 8, 64, 1024])
def test_relu_by_quadrature_and_by_the_mean_field_package(m):
    """Derived there from equations for pairs of inputs, here from the sphere."""
    found, network = growth("relu", m), FullyConnected((500,) * 14 + (10,))
    assert found.through == pytest.approx(float(relu_growth(m)), rel=5e-5)
    for equations, wanted in (("through_batch", float(relu_growth(m))), ("corrected", found.constant)):
        q = solve(network, "batch", 1.3, 0.7, 0.2, equations, m).q_tilde
        assert float(q[5] / q[6]) == pytest.approx(wanted, rel=1e-4)


def test_infinite_batches():
    assert growth("relu").through == pytest.approx(math.pi / (math.pi - 1), rel=1e-12)
    assert growth("linear").through == pytest.approx(1, rel=1e-12)
    hermite = {
        1: lambda x: x,
        2: lambda x: x**2,
        3: lambda x: x**3 - 3 * x,
        4: lambda x: x**4 - 6 * x**2,
        5: lambda x: x**5 - 10 * x**3 + 15 * x,
    }
    for degree, phi in hermite.items():
        assert growth(phi).through == pytest.approx(degree, rel=1e-10)
    assert growth(lambda x: x**3).through == pytest.approx(1.8, rel=1e-10)  # the exercise
    density = lambda x: math.exp(-x * x / 2) / math.sqrt(2 * math.pi)
    top = integrate.quad(lambda x: (1 - math.tanh(x) ** 2) ** 2 * density(x), -12, 12, epsabs=1e-13)[0]
    bottom = integrate.quad(lambda x: math.tanh(x) ** 2 * density(x), -12, 12, epsabs=1e-13)[0]
    assert growth("tanh").through == pytest.approx(top / bottom, rel=1e-10)


def test_dense_jacobians_of_random_units():
    """λ = σ_w² E‖G J‖² / (m-1) for J = ∂φ(BN(z))/∂z, z ~ N(0, σ_w² V): nothing derived by hand but V."""
    m, draws, one = 12, 20_000, growth("tanh", 12)
    z = torch.randn(draws, m, generator=torch.Generator().manual_seed(1), dtype=torch.float64)

    def layer(z):
        centred = z - z.mean()
        h = torch.tanh(centred / centred.square().mean().sqrt())
        return h - h.mean()

    z = z * one.spread**0.5
    squares = torch.func.vmap(torch.func.jacrev(layer))(z).square().sum((1, 2)) / (m - 1)
    spread = torch.func.vmap(layer)(z).square().sum(1) / (m - 1)
    for values, expected in ((squares, one.through), (spread, one.spread)):
        assert abs(values.mean() - expected) < 4 * values.std() / draws**0.5


def test_the_zigzag_explodes_more_in_larger_batches():
    """λ_8 = 6/5 exactly; λ_∞ ≥ (P(|g| ≤ k) + s² P(|g| > k)) / E g², for φ is odd and |φ(x)| ≤ |x|."""
    x = torch.linspace(-9, 9, 100_001, dtype=torch.float64)
    assert (zigzag(x).abs() <= x.abs() + 1e-12).all()
    assert math.sqrt(7) < KINK < math.sqrt(8)
    assert growth("zigzag", 8).through == pytest.approx(1.2, rel=1e-12)
    with mpmath.workdps(40):
        outside = mpmath.erfc(mpmath.mpf(KINK) / mpmath.sqrt(2))
        assert 1 + (STEEPNESS**2 - 1) * outside > mpmath.mpf("3.7")
    assert growth("zigzag").through > 3.7
    coarse, fine = (growth("zigzag", 64, panels=p, kinks=(-KINK, KINK)).through for p in (60, 150))
    assert fine == pytest.approx(coarse, rel=5e-3)


def test_the_page_draws_a_layer_at_random_and_finds_its_rate():
    simulated = page_cells.functions("batch-norm/gradient-explosion")["simulated"]
    found = simulated(lambda u: np.maximum(u, 0), lambda u: u > 0, 12, units=40_000)
    assert found == pytest.approx(float(relu_growth(12)), rel=0.03)
    assert simulated(lambda u: u, np.ones_like, 12, units=40_000) == pytest.approx(10 / 9, rel=0.02)
