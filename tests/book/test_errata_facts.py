"""Errata of the sources that no chapter measures: each literal reading against what holds, in small exact
numbers."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations, product
from math import pi

import numpy as np
import page_cells
import pytest
import torch
from torch import nn

from bnbook.chapters.theorems import exact, normalize
from bnbook.meanfield import Convolutional, FullyConnected, recursions, solve
from bnbook.models import deep_linear
from bnbook.normalizers.formulas import batch_norm_backward, batch_norm_forward, population_statistics
from bnbook.probes import covariate_shift
from bnbook.probes.fisher import largest_eigenvalue

PAPER = FullyConnected((784, 1000, 1000, 1000, 10))
GRID = np.linspace(-12, 12, 200_001)
NORMAL = np.exp(-(GRID**2) / 2) / np.sqrt(2 * pi)


def integral(values: np.ndarray, grid: np.ndarray = GRID) -> float:
    return float(np.sum((values[1:] + values[:-1]) / 2 * np.diff(grid)))


# The encyclopedia, section "Procedures"


def test_formula_4_is_the_derivative_by_the_variance_and_not_by_the_deviation():
    rng = np.random.default_rng(0)
    x, weight, gamma, eps = rng.normal(size=(9, 1)), rng.normal(size=(9, 1)), 1.7, 0.01
    variance, deviation = x.var(), x.std()
    y = lambda v: gamma * (x - x.mean()) / np.sqrt(v + eps)
    # By a complex step: no difference is taken, so no digits are lost.
    slope = lambda of, at: float((weight * np.tanh(of(at + 1e-30j))).sum().imag / 1e-30)
    dl_dy = weight * (1 - np.tanh(y(variance)) ** 2)
    printed = batch_norm_backward(dl_dy, x, gamma, eps)["variance"].item()
    assert printed == pytest.approx(slope(y, variance), rel=1e-12)
    assert 2 * deviation * printed == pytest.approx(slope(lambda s: y(s * s), deviation), rel=1e-12)
    assert abs(2 * deviation - 1) > 0.1


def test_the_last_term_of_formula_5_is_exactly_zero():
    for values in ([0, 1], [3, -7, 2], [1, 1, 1, 9], [Fraction(1, 3), Fraction(-2, 7), 5, 11, 0]):
        x = [Fraction(value) for value in values]
        mean = sum(x) / len(x)
        assert sum(-2 * (value - mean) for value in x) == 0
        assert sum(-2 * (value - 2 * mean) for value in x) != 0 or mean == 0
        rows = np.array([[float(value)] for value in x])
        dl_dy = np.arange(1.0, len(x) + 1)[:, None] ** 2
        found = batch_norm_backward(dl_dy, rows, 1.7, 0.0)["mean"]
        assert found == pytest.approx(-1.7 * dl_dy.sum(0) / rows.std(0), rel=1e-12), "its other term alone"


def test_batches_dealt_from_a_data_set_overshoot_its_variance():
    """0, 1, 2 in all batches of two: 2 E[σ²] = 1, and the variance is 2/3; the excess is N/(N-1) = 3/2."""
    variance = lambda batch: (
        sum(Fraction(v) ** 2 for v in batch) / len(batch) - Fraction(sum(batch), len(batch)) ** 2
    )
    for values, m in (([0, 1, 2], 2), ([0, 1, 2, 5], 2), ([0, 1, 2, 5], 3)):
        batches, n = list(combinations(values, m)), len(values)
        estimate = Fraction(m, m - 1) * sum(map(variance, batches)) / len(batches)
        assert estimate == Fraction(n, n - 1) * variance(values) != variance(values)
        mean, found = population_statistics([np.array(batch, dtype=float)[:, None] for batch in batches])
        assert found == pytest.approx([float(estimate)]) and mean == pytest.approx([sum(values) / n])


def test_a_shift_may_be_large_at_a_correlation_of_one():
    """f = w₂ w₁ x, ℓ = (f - 1)²/2 at w = (1/10, 1), η = 1/2: G₂ = -9/100 becomes -99/400, 1.75 |G₂| away,
    angle 0."""
    model = nn.Sequential(nn.Linear(1, 1, bias=False), nn.Linear(1, 1, bias=False)).double()
    with torch.no_grad():
        model[0].weight.fill_(0.1), model[1].weight.fill_(1.0)
    one = torch.ones(1, 1, dtype=torch.float64)
    seen = covariate_shift.measure(model, lambda f, y: ((f - y) ** 2).sum() / 2, (one, one), 0.5)
    assert seen.cosine[1].item() == pytest.approx(1.0, abs=1e-12)
    assert seen.norm[1].item() == pytest.approx(9 / 100, rel=1e-12)
    assert seen.distance[1].item() == pytest.approx(63 / 400, rel=1e-12)


# The encyclopedia, section "Smoothness": theorems of Santurkar and others in its own words and letters

SIGNS = np.array([1.0, 1, -1, -1])[:, None]  # normalized values of a batch of four: mean 0, variance 1


def squared_gradient(g: np.ndarray, y: np.ndarray, gamma: float = 1.0) -> float:
    """‖∂L̂/∂y‖² of a unit with outputs y, from the gradient g for what batch norm makes of them."""
    return float((batch_norm_backward(g, y, gamma, 0.0)["x"] ** 2).sum())


def test_the_deviation_of_the_normalized_outputs_is_one():
    """σ_j is "the standard deviation over a mini-batch ŷ_j": that one cannot differ from 1, and γ²/σ² would
    be γ²."""
    y = np.random.default_rng(5).normal(3.0, 7.0, (50, 4))
    assert batch_norm_forward(y, 1.0, 0.0, 0.0).x_hat.std(0) == pytest.approx(1.0)
    assert (y.std(0) > 4).all()
    g = SIGNS[::-1] + [[0.0], [1.0], [0.0], [1.0]]
    assert squared_gradient(g, 3 * SIGNS) == pytest.approx(squared_gradient(g, SIGNS) / 9), (
        "the σ that counts is that of y"
    )


def test_the_first_bound_compares_two_gradients_that_are_taken_at_two_places():
    """y = ŷ/2, L(u) = ½[(u₁ - ½)² + (u₃ + ½)²]: the plain gradient is 0, the one with batch norm has the
    square 1."""
    y, weight = SIGNS / 2, np.array([1.0, 0, 1, 0])[:, None]
    gradient = lambda u: weight * (u - y)
    assert (gradient(y) == 0).all(), "the printed right-hand side is 0"
    assert squared_gradient(gradient(SIGNS), y) == 1
    g = np.array([3.0, -1, 2, 5])[:, None]  # with the same gradient from above the two sides are equal
    bound = ((g**2).sum() - g.sum() ** 2 / 4 - (g * SIGNS).sum() ** 2 / 4) / 0.25
    assert squared_gradient(g, y) == pytest.approx(bound)


def test_the_inner_product_is_positive_where_the_gradient_points_away_from_a_minimum_at_zero():
    """L = ½‖z‖² has its minimum at 0 and the gradient ŷ, away from it: <g, ŷ> = m. Towards it: -m. At 2 ŷ all
    turns round."""
    for place, inner in ((0, 4), (2, -4)):  # L = ½‖z - place ŷ‖² at z = ŷ
        minimum = place * SIGNS
        g = SIGNS - minimum
        assert (g * SIGNS).sum() == inner
        assert (g * (minimum - SIGNS)).sum() < 0, "a gradient never points towards the minimum"
        flat, unit = np.zeros((4, 4)), normalize(SIGNS[:, 0])
        v = np.array([1.0, -1, 1, -1])  # the theorem takes <g, ŷ> ‖v‖² / 4 off
        theorem_42 = page_cells.functions("theory/smoothness")["theorem_42"]
        assert theorem_42(flat, g[:, 0], unit, 1.0, v, second=False) == -inner


def test_the_bound_for_the_weights_has_a_square_too_many():
    """g = (1, -1, 1, -1), ŷ = y = (1, 1, -1, -1), γ = 1, λ = 1/4: ĝ = 1/4, and the printed bound is 1/16."""
    g, gain = np.array([1.0, -1, 1, -1])[:, None], 1 / 4
    plain = gain**2 * (g**2).sum()
    assert gain**2 * squared_gradient(g, SIGNS) == 1 / 4
    assert plain**2 - 4 * g.mean() ** 2 - gain**2 * (g * SIGNS).sum() ** 2 == 1 / 16
    rng = np.random.default_rng(6)
    for _ in range(50):  # what holds: g_j for its square, λ² before m μ², 1/m in the last term
        (g, y), gamma, gain = rng.normal(size=(2, 7, 1)), rng.normal(), rng.uniform(0.1, 3)
        y_hat = (y - y.mean()) / y.std()
        corrected = gain**2 * ((g**2).sum() - 7 * g.mean() ** 2 - (g * y_hat).sum() ** 2 / 7)
        assert gain**2 * squared_gradient(g, y, gamma) == pytest.approx(gamma**2 / y.var() * corrected)


def test_the_inequality_of_the_initialization_needs_its_condition():
    """W* = (1, 0), W₀ = (-1, 1): the optima c W*, c > 0, of a network with batch norm all lie farther than
    √2; printed: 1."""
    page = page_cells.functions("theory/minima")
    lemma_45, distance = page["lemma_45"], page["distance_to_ray"]
    start, optimum = exact(-1, 1), exact(1, 0)
    assert (lemma_45(start, optimum), distance(start, optimum)) == (1, 2)
    for start, optimum in (((1, 1), (1, 0)), ((2, -5, 1), (3, 1, 4)), ((1, 7), (9, -1))):
        start, optimum = exact(*start), exact(*optimum)
        closest = start - (start @ optimum / (optimum @ optimum)) * optimum
        assert start @ optimum > 0
        assert lemma_45(start, optimum) == distance(start, optimum) == closest @ closest


# Santurkar and others


def test_the_moments_before_the_nonlinearity_do_not_fix_those_behind_it():
    """-1, 1 and 2, -½, -½, -½, -½ both have mean 0 and variance 1; behind ReLU the means are 1/2 and 2/5."""
    found = []
    for values in ([-1.0, 1.0], [2.0, -0.5, -0.5, -0.5, -0.5]):
        x_hat = batch_norm_forward(np.array(values)[:, None], 1.0, 0.0, 0.0).y
        assert x_hat.mean() == pytest.approx(0, abs=1e-15) and x_hat.var() == pytest.approx(1)
        found.append(np.maximum(x_hat, 0))
    assert [h.mean() for h in found] == pytest.approx([1 / 2, 2 / 5])
    assert [h.var() for h in found] == pytest.approx([1 / 4, 16 / 25])


def test_in_the_printed_product_the_first_layer_comes_last():
    """W₁ W₂ x lets W₂ act first; Definition 2.1 counts W₁ among the layers before W₂, so that x meets it
    first: W₂ W₁ x."""
    torch.manual_seed(1)
    model, x = deep_linear(depth=2, width=3).double(), torch.randn(20, 3, dtype=torch.float64)
    first, second = model.linear1.weight.detach(), model.linear2.weight.detach()
    torch.testing.assert_close(model(x).detach(), (second @ first @ x.T).T, rtol=0, atol=1e-12)
    assert (model(x) - (first @ second @ x.T).T).abs().max() > 0.1
    shift = covariate_shift.measure(model, lambda f, y: ((f - y) ** 2).sum(), (x, x.flip(1)), 1e-3)
    assert shift.names == ("linear1.weight", "linear2.weight")
    assert shift.distance[0] == 0 and shift.distance[1] > 0, "nothing comes before the layer that x meets"


def test_thirty_times_the_gradient_is_a_million_times_thirty_steps():
    """Figure 4: 0.4 times the gradient is 4 steps of 0.1. Figure 9: 30 times the gradient is 3·10⁷ steps of
    10⁻⁶, after which the loss is more than 10¹⁰⁰ times what it was (after thirty steps: a thousand times)."""
    torch.manual_seed(0)
    model, x = deep_linear(depth=25, width=10).double(), torch.randn(1000, 10, dtype=torch.float64)
    answers = x @ torch.randn(10, 10, dtype=torch.float64)
    loss, weights = lambda f, y: ((f - y) ** 2).sum(), list(model.parameters())
    start = loss(model(x), answers)
    slopes = torch.autograd.grad(start, weights)
    found = []
    for step in (30 * 1e-6, 30.0 - 30 * 1e-6):  # the second goes on from the first
        with torch.no_grad():
            torch._foreach_sub_(weights, slopes, alpha=step)
            found.append(float(loss(model(x), answers) / start))
    assert found[0] < 1e4 and found[1] > 1e100


def test_the_largest_value_of_a_quadratic_form_is_an_eigenvalue_of_a_symmetric_matrix_only():
    """M = (0 1; 0 0) has the eigenvalue 0, twice, and xᵀMx = 1/2 at x = (1, 1)/√2."""
    matrix, x = np.array([[0.0, 1.0], [0.0, 0.0]]), np.array([1.0, 1.0]) / 2**0.5
    assert (np.linalg.eigvals(matrix) == 0).all() and x @ matrix @ x == pytest.approx(1 / 2)
    symmetric = (matrix + matrix.T) / 2
    assert np.linalg.eigvalsh(symmetric).max() == pytest.approx(x @ matrix @ x)


M = 7  # data points


X = np.random.default_rng(11).normal(size=(M, 2))
X -= X.mean(0)  # inputs of mean zero
W = torch.from_numpy(np.random.default_rng(12).normal(size=(2, 2)))  # weights of two units j and l
COUPLING = torch.from_numpy(np.random.default_rng(13).normal(size=(M, M)))


def normalized(weights: torch.Tensor) -> torch.Tensor:
    y = torch.from_numpy(X) @ weights
    return (y - y.mean(0)) / y.std(0, correction=0)


Y_HAT, SIGMA = normalized(W).numpy(), (X @ W.numpy()).std(0)
ALPHA = X.T @ Y_HAT  # Σ x ŷ, inputs by units


def test_in_equations_41_and_42_of_version_1_an_output_has_the_index_of_the_other_sum():
    """∂²L/∂W_ij∂W_kl for j ≠ l: with (q), as X is defined, it is right; with the printed (b) it is not."""
    loss = lambda y_hat: torch.tanh(y_hat[:, 0]) @ COUPLING @ torch.sin(y_hat[:, 1])
    hessian = torch.autograd.functional.hessian
    through = hessian(loss, torch.from_numpy(Y_HAT))[:, 0, :, 1].numpy()
    whole = hessian(lambda w: loss(normalized(w)), W).numpy()[:, 0, :, 1] * SIGMA.prod()
    for i, k in product(range(2), range(2)):
        left = X[:, i] - ALPHA[i, 0] / M * Y_HAT[:, 0]
        right = X[:, k] - ALPHA[k, 1] / M * Y_HAT[:, 1]
        printed = X[None, :, k] - ALPHA[k, 1] / M * Y_HAT[:, None, 1]  # (b, q), the output at b
        assert left @ through @ right == pytest.approx(whole[i, k], rel=1e-9)
        wrong = (left[:, None] * through * printed).sum()
        assert abs(wrong - whole[i, k]) > 0.05 * abs(whole[i, k])


def test_the_derivative_of_alpha_in_equation_50_goes_through_the_output_of_its_own_unit():
    """α_ij = Σ x_i ŷ_j depends on unit j alone: by W_kj as equation 51 has it, by the other unit's not at
    all. And β_ik is a sum over the batch; a sum over k, as printed, would leave b free."""
    alpha = lambda w: torch.from_numpy(X).T @ normalized(w)
    slope = torch.autograd.functional.jacobian(alpha, W).numpy()
    for i, j, k in product(range(2), repeat=3):
        expected = (X[:, i] @ X[:, k] - ALPHA[i, j] * ALPHA[k, j] / M) / SIGMA[j]  # equation 51
        assert slope[i, j, k, j] == pytest.approx(expected, abs=1e-12)
        assert slope[i, j, k, 1 - j] == pytest.approx(0, abs=1e-12)
    over_k = (X[:, :1] * X).sum(1) / M  # one number for each b
    assert over_k.shape == (M,) and np.ptp(over_k) > 0.1


# The mean-field paper


def test_the_mean_square_of_a_rectified_unit_has_no_weight_variance_in_it():
    """Equations 52 and 53 print σ_w² E σ²(γ u); 51 and 54, on either side of them, are γ²/2."""
    gamma, sigma_w2 = 1.3, 2.0
    mean_square = integral(np.maximum(gamma * GRID, 0) ** 2 * NORMAL)
    assert mean_square == pytest.approx(gamma**2 / 2, rel=1e-9)
    assert mean_square == pytest.approx(float(recursions.batch_forward(np.array(gamma))), rel=1e-9)
    assert sigma_w2 * mean_square != pytest.approx(gamma**2 / 2, rel=0.5)


def test_the_gaussian_model_needs_its_minus_sign():
    """With it the Fisher information of f = θ x is x², equation 10; without it the density has no
    integral."""
    x, f = 1.7, 0.4
    y = f + GRID
    density = NORMAL / integral(NORMAL)  # of y around f
    score = (y - f) * x  # ∂/∂θ of log p
    assert integral(score**2 * density, y) == pytest.approx(x**2, rel=1e-9)
    measured = largest_eigenvalue(nn.Linear(1, 1, bias=False).double(), torch.tensor([[x]]).double())
    assert measured.value == pytest.approx(x**2)
    near, middle, far = (GRID[abs(GRID) <= r] for r in (3, 6, 9))
    reach = [integral(np.exp(+(part**2) / 2), part) for part in (near, middle, far)]
    assert reach[1] > 1e4 * reach[0] and reach[2] > 1e4 * reach[1]


def test_pairs_of_gradients_hand_on_pairs():
    """Claim 6.6 and equation 118 print q̃ for q̃_xy on the right: then no layer's common part would reach the
    next."""
    width, inputs, found = 300, 24, []
    for seed in range(24):
        rng = np.random.default_rng(seed)
        *weights, last = rng.normal(0, (2 / width) ** 0.5, (4, width, width))
        h, steps = rng.normal(size=(inputs, width)), []
        for weight in weights:
            z = h @ weight.T + rng.normal(0, 0.5**0.5, width)
            h, steps = np.maximum(z, 0), [*steps, z > 0]
        delta = last[0] * steps[2]
        for weight, step in zip(weights[:0:-1], steps[1::-1]):
            delta = (delta @ weight) * step
        pairs = (delta.sum(0) ** 2).sum() - (delta**2).sum()
        found.append(pairs / (inputs * (inputs - 1)))
    theory = solve(FullyConnected((width, width, width, width, 1)))
    literal = 2 * theory.q_tilde[2] * recursions.step_product(theory.q_xy[1] / theory.q[1])
    error = np.std(found, ddof=1) / len(found) ** 0.5
    assert abs(np.mean(found) - theory.q_tilde_xy[1]) < 4 * error + 0.02 * theory.q_tilde_xy[1]
    assert literal > 1.5 * theory.q_tilde_xy[1] and abs(np.mean(found) - literal) > 8 * error


def test_a_network_without_batch_norm_has_no_gamma():
    """Equations 133 and 135 keep batch norm's γ inside; their value 134 is the integral at γ = 1, else γ²
    times it."""
    q, c = 2.5, 0.2
    t = (np.arange(200_000) + 0.5) / 200_000 * 2 * pi  # a = r cos t, b = r cos(t - arccos c), E r² = 2
    a, b = (q**0.5 * np.cos(t - lag) for lag in (0, np.arccos(c)))
    printed = lambda gamma: 2 * np.mean(np.maximum(a * gamma, 0) * np.maximum(b * gamma, 0))
    value = float(recursions.relu_forward_pairs(np.array(q), np.array(c * q)))
    assert printed(1.0) == pytest.approx(value, rel=1e-8)
    assert printed(2.0) == pytest.approx(4 * value, rel=1e-8)


def test_a_strided_convolution_reads_at_stride_times_the_place():
    """Equations 26 and 75 read at α + β; with the paper's 32×32 image, kernel 3, stride 2 that is a corner of
    17×17."""
    places, stride, rng = range(15), 2, np.random.default_rng(2)
    assert Convolutional((3, 32, 32), (20,)).positions[1] == len(places) ** 2 == 225  # as section 6.2 says
    image, weight = rng.normal(size=(32, 32)), rng.normal(size=(3, 3))

    def read(step):
        window = lambda i, j: np.s_[step * i : step * i + 3, step * j : step * j + 3]
        seen = np.zeros((32, 32), dtype=bool)
        for i, j in product(places, places):
            seen[window(i, j)] = True
        return seen, np.array([[(image[window(i, j)] * weight).sum() for j in places] for i in places])

    tensors = (torch.from_numpy(a)[None, None] for a in (image, weight))
    (seen, out), (corner, other) = read(stride), read(1)
    library = torch.nn.functional.conv2d(*tensors, stride=stride)[0, 0]
    np.testing.assert_allclose(out, library, rtol=0, atol=1e-12)
    assert seen[:31, :31].all()
    assert corner.sum() == 17**2 and not corner[17:].any() and np.abs(other - out).max() > 0.1


def test_in_the_first_layer_the_biases_outweigh_the_weights():
    """q̂_xy⁰ = 0 makes the weights' share of layer 1 zero, so that its biases' is not "N times smaller"."""
    for norm in ("none", "batch"):
        theory = solve(PAPER, norm)
        biases = theory.q_tilde_xy[1]
        assert theory.f[0] == 0 and theory.further[0] >= biases > 0
        assert (theory.further[1:] < 0.05 * theory.f[1:]).all(), "from the second layer on the paper is right"


def test_the_readout_s_own_gradient_has_the_squared_norm_of_the_number_of_outputs():
    """δ^L = ∂f/∂z^L is the identity of N_L outputs: q̃^L = N_L by equation 19, and 1 for one of them
    (equation 64)."""
    outputs, hidden, rng = 10, 4000, np.random.default_rng(3)
    theory = solve(FullyConnected((8, hidden, outputs))).q_tilde
    assert (np.eye(outputs) ** 2).sum() == outputs != theory[2]
    weights = rng.normal(0, (2 / hidden) ** 0.5, (outputs, hidden))
    below = weights * (rng.normal(size=hidden) > 0)  # δ of all outputs
    assert (below[0] ** 2).sum() == pytest.approx(theory[1], rel=0.15)
    assert (below**2).sum() == pytest.approx(outputs * theory[1], rel=0.05)


def test_the_mean_product_of_two_places_is_divided_by_the_channels():
    """Equation 90 lacks the 1/C that 31 has: without it the value is C times what 93 says."""
    rng = np.random.default_rng(4)
    channels, fan_in, sigma_w2, sigma_b2 = 7, 12, 2.0, 0.5
    one, other = rng.normal(size=(2, fan_in))  # what two places see
    weight = rng.normal(0, (sigma_w2 / fan_in) ** 0.5, (40_000, channels, fan_in))
    bias = rng.normal(0, sigma_b2**0.5, (40_000, channels))
    summed = ((weight @ one + bias) * (weight @ other + bias)).sum(1).mean()
    right = recursions.preactivation((one @ other) / fan_in, sigma_w2, sigma_b2)  # equation 93
    assert abs(right) > 0.2
    assert summed / channels == pytest.approx(right, rel=0.05) and summed != pytest.approx(right, rel=2)


def test_a_gradient_on_both_sides_of_one_layer_would_be_fixed():
    """Equations 114 and 115 print δ^l where δ^{l+1} is meant; read so, σ_w² γ²/2q would have to be 1, and it
    is 2/3."""
    q, q_tilde = solve(PAPER, "batch").q, solve(PAPER, "batch").q_tilde
    assert 2.0 * 1.0 / (2 * q[2]) == pytest.approx(2 / 3)
    assert q_tilde[2] == pytest.approx(2 / 3 * q_tilde[3]) and q_tilde[2] != q_tilde[3]
