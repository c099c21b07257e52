"""What the probes make of small arrays and small models, with numbers that were worked out on paper."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import nn

from bnbook.errors import BnbookError
from bnbook.models import mlp
from bnbook.probes import (
    activations,
    distributions,
    fisher,
    functional,
    landscape,
    layer_gradients,
    order_parameters,
    over_steps,
    statistics,
    summaries,
)

NAN, INF = math.nan, math.inf


def one(*values: float) -> np.ndarray:
    """One member at one probed step: (1, 1, A)."""
    return np.array(values, dtype=float)[None, None]


def place(found: dict[str, np.ndarray]) -> dict[str, float]:
    return {
        name: values[0, 0] if values[0, 0].ndim == 0 else values[0, 0].tolist()
        for name, values in found.items()
    }


# Curves out of arrays

LINE = {"start_loss": np.array([[2.0]]), "start_norm": np.array([[4.0]])}


def test_a_landscape_by_hand():
    """η = ½, so the distances are 2 a: 0.8, 1, 8, 8.2, 20; the paper's lengths are ½ to 4, both of them."""
    run = LINE | {"landscape_loss": one(9, 1, 4, 7, 2), "landscape_distance": one(80, 3, 16, 41, 40)}
    lengths = [0.4, 0.5, 4.0, 4.1, 10.0]
    assert place(summaries.landscape(run, lengths, 0.5)) == pytest.approx(
        {
            "loss_range": 3.0,
            "gradient_change": 16.0,
            "smoothness": 3.0,  # of 3/1 and 16/8
            "gradient_norm": 4.0,
            "relative_range": 1.5,
            "relative_change": 4.0,
            "beyond": 5.0,  # of 41/8.2 and 40/20
            "beyond_range": 5.0,
        }
    )
    wide = place(summaries.landscape(run, lengths, 0.5, reach=(0.4, 10.0)))
    assert wide["smoothness"] == pytest.approx(100) and wide["loss_range"] == 8 and "beyond" not in wide
    run["landscape_loss"][0, 0, 2] = INF
    assert place(summaries.landscape(run, lengths, 0.5))["loss_range"] == INF


def test_a_random_direction_by_hand():
    run = LINE | {"random_loss": one(2.5, -3.0), "random_distance": one(6, 12)}
    assert place(summaries.random_direction(run, [1.0, 3.0], 0.5)) == pytest.approx(
        {"random_loss_change": 5.0, "random_gradient_change": 12.0, "random_smoothness": 3.0}
    )


def test_covariate_shift_by_hand():
    run = {"shift_distance": one(99, 1, 3), "shift_norm": one(99, 2, 4), "shift_cosine": one(99, 0.5, -0.1)}
    expected = {"shift": 2.0, "relative_shift": 0.625, "cosine": 0.2}
    assert place(summaries.covariate_shift(run)) == pytest.approx(expected)


def test_predictiveness_by_hand():
    """‖g‖ = 4, ‖h‖ = 3, ‖g - h‖ = 5: a right angle. h = -g/2, h = g. Then an overflow; then no training."""
    run = LINE | {"landscape_norm": one(3, 2, 4, INF), "landscape_distance": one(5, 6, 0, INF)}
    seen = place(summaries.predictiveness(run, [1, 2, 3, 4]))
    assert seen["cosine"] == pytest.approx([0, -1, 1, 0]) and seen["error"] == [5, 6, 0, INF]
    assert seen["relative_error"] == [1.25, 1.5, 0, INF]
    lost = {name: np.full_like(values, NAN) for name, values in run.items()}
    assert np.isnan(summaries.predictiveness(lost, [1, 2, 3, 4])["cosine"]).all()
    inexact = LINE | {"landscape_norm": one(4.0), "landscape_distance": one(8.0 + 1e-7)}
    assert place(summaries.predictiveness(inexact, [1]))["cosine"] == [-1.0]  # cut off, not below
    with pytest.raises(BnbookError, match="expected the lengths"):
        summaries.predictiveness(inexact, [1, 2])


def test_errors_at_equal_distance_by_hand():
    """Distances 1 to 100 and 10 to 1000 of errors d² and 5 d: at √(10 · 100) 1000 over 5 √1000."""
    of = lambda norm, error: {"start_norm": np.array([[norm]]), "landscape_distance": one(*error)}
    slow, fast = of(2.0, [1.0, 100.0, 1e4]), of(20.0, [50.0, 500.0, 5000.0])
    ratio = summaries.error_ratio_at_equal_distance(slow, fast, [1, 10, 100], 0.5)
    assert ratio[0, 0] == pytest.approx(math.sqrt(1000) / 5)
    back = summaries.error_ratio_at_equal_distance(fast, slow, [1, 10, 100], 0.5)
    assert back[0, 0] == pytest.approx(5 / math.sqrt(1000))
    touching = summaries.error_ratio_at_equal_distance(of(2.0, [6.0]), of(2.0, [3.0]), [1], 0.5)
    assert touching[0, 0] == pytest.approx(2)
    for error in ([0.0, 0.0, 0.0], [NAN, INF, NAN]):
        assert np.isnan(summaries.error_ratio_at_equal_distance(slow, of(2.0, error), [1, 10, 100], 0.5))


def test_uneven_steps_weigh_by_what_they_stand_for():
    steps = np.array([0, 50, 90, 100])  # they stand for 25, 45, 25 and 5
    values = np.array([[9.0, 1.0, 2.0, 3.0]])
    assert over_steps.over_training(values, steps, "late").tolist() == [1.0]  # 45 of 75
    assert over_steps.over_training(values, steps, "late", mean=True) == pytest.approx([(45 + 50 + 15) / 75])
    assert over_steps.over_training(values, steps).tolist() == [2.0]  # 45, 70, 75, 100: half is within 2's
    assert over_steps.over_training(np.array([[4.0, 1.0, NAN, 3.0]]), steps, mean=True) == pytest.approx(
        [(100 + 45 + 15) / 75]
    )
    early = np.array([0, 10, 11, 100])  # a tenth of the steps, 10 among them
    assert over_steps.over_training(values, early, "early", mean=True).tolist() == [5.0]
    both = np.stack([steps, steps])
    assert over_steps.over_training(np.concatenate([values, -values]), both, "late").tolist() == [1.0, -1.0]
    halves = over_steps.over_training(np.array([[1.0, 2.0]]), np.array([0, 10]))
    assert halves.tolist() == [1.0]  # each stands for a half: the lower middle


def test_when_something_holds_with_steps_of_its_own():
    holds = np.array([[False, True, True], [False, True, False]])
    steps = np.array([[0, 5, 9], [0, 7, 8]])
    assert over_steps.holds_from(holds, steps).tolist() == [5, INF]
    assert over_steps.holds_until(~holds, steps).tolist() == [5, 7]


# Distributions


def test_the_shape_of_a_histogram_by_hand():
    """Values 0, 1 and 4 with ½, ¼ and ¼: mean 5/4, variance 43/16."""
    edges = np.array([-0.5, 0.5, 1.5, 6.5])
    share, values = np.array([0.5, 0.25, 0.25]), np.array([0.0, 1.0, 4.0])
    seen = distributions.shape(share, edges)
    mean, variance = 1.25, 43 / 16
    third, fourth = (float(share @ (values - mean) ** power) for power in (3, 4))
    assert (seen.mean, seen.variance) == (pytest.approx(mean), pytest.approx(variance))
    assert seen.skewness == pytest.approx(third / variance**1.5)
    assert seen.excess_kurtosis == pytest.approx(fourth / variance**2 - 3)
    normal = [(1 + math.erf((edge - mean) / math.sqrt(2 * variance))) / 2 for edge in (0.5, 1.5)]
    assert seen.normal_distance == pytest.approx(max(abs(0.5 - normal[0]), abs(0.75 - normal[1])))
    still = distributions.shape(np.array([0.0, 1.0, 0.0]), edges)
    assert still.variance == 0 and np.isnan(still.skewness) and np.isnan(still.normal_distance)
    with pytest.raises(BnbookError, match="one edge more"):
        distributions.shape(share, edges[1:])


def test_movement_and_spread_by_hand():
    edges = np.array([-0.5, 0.5, 1.5, 6.5])  # middles 0, 1, 4
    path = np.array([[1.0, 0, 0], [0, 0, 1], [0, 0.5, 0.5]])
    assert distributions.movement(path, edges) == pytest.approx([4, 1.5])
    logs = np.linspace(0, 1, 101)  # 16 % at 0.16, 84 % at 0.84
    assert distributions.spread(np.exp(logs)) == pytest.approx(0.34)
    assert np.isfinite(distributions.spread(np.zeros(5))) and distributions.spread(np.ones(5)) == 0


def test_quantiles_by_hand():
    edges, histogram = np.array([0.0, 1.0, 3.0]), np.array([[0.25, 0.75], [NAN, NAN]])
    found = activations.quantiles(histogram, [0.125, 0.25, 0.625], edges)
    assert found[0] == pytest.approx([0.5, 1.0, 2.0]) and np.isnan(found[1]).all()
    assert len(activations.EDGES) == 242 and activations.EDGES[[0, -1]] == pytest.approx([-30, 30])
    assert np.diff(np.arcsinh(100 * activations.EDGES)) == pytest.approx(2 * math.asinh(3000) / 241)


class Through(nn.Module):
    """A model whose only layer hands its input on."""

    def __init__(self) -> None:
        super().__init__()
        self.norm1 = nn.Identity()
        self.weight = nn.Parameter(torch.ones(2))

    def forward(self, x):
        return self.norm1(x * self.weight if x.dim() == 2 else x)


def test_moments_and_histograms_in_float64():
    """A unit far from zero: float32 would lose its variance."""
    x = 1e4 + 0.01 * torch.randn(500, 2, generator=torch.Generator().manual_seed(0))
    seen = activations.measure(Through(), x, [1], units=(0, 3))
    values = x.double()
    assert seen.mean[0].dtype == torch.float64
    assert seen.mean[0].numpy() == pytest.approx(values.mean(0).numpy(), rel=1e-13)
    assert seen.variance[0].numpy() == pytest.approx(values.var(0, correction=0).numpy(), rel=1e-9)
    maps = torch.tensor([[[[0.5, 2.0]], [[-9.0, 9.0]]], [[[1.0, 2.5]], [[0.0, 0.0]]]])  # (2, 2, 1, 2)
    seen = activations.measure(Through(), maps, [1], units=(0, 3), edges=np.array([0.0, 1.0, 2.0, 3.0]))
    assert seen.mean[0].tolist() == [1.5, 0] and seen.variance[0].tolist() == [0.625, 40.5]
    # unit 0: ½, 1 in the first bin (a value on an edge belongs below it), 2, then 2½; unit 3 is unit 1 again
    assert seen.histogram[0, 0].tolist() == [0.5, 0.25, 0.25]
    assert seen.histogram[0, 1].tolist() == [0.75, 0, 0.25]
    maps[0, 0] = NAN
    assert seen.histogram.isfinite().all()
    assert activations.measure(Through(), maps, [1]).histogram.isnan().all()
    for layer in (0, 2):
        with pytest.raises(BnbookError, match=f"no layer {layer}"):
            activations.measure(Through(), maps, [layer])


# Gradients


def test_norms_are_summed_in_float64():
    tiny = [torch.full((2,), 3e-30), torch.full((1, 2), 4e-30)]
    assert functional.total_norm(tiny).item() == pytest.approx(math.sqrt(50) * 1e-30)
    apart = functional.total_norm([torch.tensor([1.0, 2.0**-13])]).item()  # float32 says 1
    assert apart == pytest.approx(math.sqrt(1 + 2.0**-26), rel=1e-12, abs=0)
    with functional.loss_at(Through(), lambda f, y: f.sum(), (torch.ones(1, 2), torch.ones(1))) as at:
        loss, (gradient,) = at({}, ["weight"])
        assert loss.dtype == torch.float64 and gradient.tolist() == [1, 1]
        assert at({"weight": torch.tensor([3.0, 4.0])}, ["weight"])[0].item() == 7
        with pytest.raises(BnbookError, match="expected one number"):
            functional.LossAt(at.model, lambda f, y: f, at.batch, at.parameters, at.random_state)({}, [])


SQUARE = (torch.tensor([[1.0, 0.0], [0.0, 3.0]], dtype=torch.float64), torch.zeros(2, dtype=torch.float64))


def square(outputs, targets):
    """½ Σ f²: at w = (1, 1) ½ (w₁² + 9 w₂²), the gradient (1, 9)."""
    return (outputs**2).sum() / 2


def test_random_directions_are_the_generator_s():
    def drawn(seed):
        more = {} if seed is None else {"generator": torch.Generator().manual_seed(seed)}
        return landscape.along_direction(Through().double(), square, SQUARE, [0.5], **more).loss.item()

    assert drawn(0) == drawn(None) == drawn(0) != drawn(1)
    generator = torch.Generator().manual_seed(0)
    first, second = (
        landscape.along_direction(Through().double(), square, SQUARE, [0.5], generator=generator).loss.item()
        for _ in range(2)
    )
    assert first == drawn(0) != second


def test_layers_by_hand():
    """y = 2 · 3 x, x = 1: ∂/∂W = (2, 3), by the outputs (2, 1); a step of 0.1 turns by 0.2/3 and 0.3/2."""
    model = nn.Sequential(nn.Linear(1, 1, bias=False), nn.Linear(1, 1, bias=False)).double()
    with torch.no_grad():
        model[0].weight.fill_(3.0), model[1].weight.fill_(-2.0)
    x = torch.ones(1, 1).double()
    seen = layer_gradients.measure(model, lambda f, y: f.sum(), (x, x))
    assert seen.weight.tolist() == [2, 3] and seen.preactivation.tolist() == [2, 1]
    assert seen.size.tolist() == [3, 2] and seen.along.tolist() == [-6, -6]
    assert seen.scale_free.tolist() == [6, 6] and seen.turn(0.1) == pytest.approx([0.2 / 3, 0.15])


@pytest.mark.parametrize("norm", ["noisy", "batch"])
def test_looking_does_not_advance_the_random_state(norm):
    torch.manual_seed(3)
    model, x = mlp((4, 6, 3), norm=norm), torch.randn(8, 4)
    model.eval()
    state = torch.get_rng_state()
    with statistics.use_statistics(model, "batch") as buffers:
        torch.func.functional_call(model, buffers, (x,))
        torch.rand(3)
        assert model.training
    assert torch.equal(state, torch.get_rng_state()) and not model.training
    layer_gradients.measure(model, lambda f, y: f.sum(), (x, x))
    assert torch.equal(state, torch.get_rng_state())
    with torch.no_grad(), statistics.use_statistics(model, "batch"):
        assert torch.is_grad_enabled()


@pytest.mark.parametrize("affine", [True, False])
def test_statistics_held_constant_by_hand(affine):
    """y = γ (x - 3)/√(2 + ε) + β of x = (1, 3, 5)·: 8/3 the variance; the gradient by x is γ/√(8/3 + ε)."""
    layer = nn.BatchNorm1d(1, eps=1 / 3, affine=affine).double()
    if affine:
        with torch.no_grad():
            layer.weight.fill_(2.0), layer.bias.fill_(7.0)
    x = torch.tensor([[1.0], [3.0], [5.0]], dtype=torch.float64, requires_grad=True)
    with statistics.use_statistics(layer, "detached") as buffers:
        y = torch.func.functional_call(layer, buffers, (x,))
    scale, shift = (2 / math.sqrt(3), 7.0) if affine else (1 / math.sqrt(3), 0.0)
    assert y.flatten().tolist() == pytest.approx([shift - 2 * scale, shift, shift + 2 * scale])
    weights = torch.tensor([[1.0], [2.0], [5.0]]).double()
    assert torch.autograd.grad(y, x, weights)[0].flatten().tolist() == pytest.approx(
        [scale, 2 * scale, 5 * scale]
    )
    assert layer.num_batches_tracked == 0 and (layer.running_mean == 0).all()


def test_population_statistics_are_the_running_ones():
    layer = nn.BatchNorm1d(1, affine=False).double()
    layer(torch.tensor([[1.0], [3.0]], dtype=torch.float64))  # running mean 0.2, variance 0.9 + 0.2
    with statistics.use_statistics(layer, "population") as buffers:
        y = torch.func.functional_call(layer, buffers, (torch.tensor([[2.0], [0.7]]).double(),))
    assert layer.training and y.flatten().tolist() == pytest.approx(
        [1.8 / math.sqrt(1.1 + 1e-5), 0.5 / math.sqrt(1.1 + 1e-5)]
    )


# The Fisher matrix


def test_all_outputs_bound_is_the_mean_of_theirs():
    torch.manual_seed(0)
    model, x = mlp((4, 6, 3), norm="batch", init="meanfield").double(), torch.randn(7, 4).double()
    whole = fisher.largest_eigenvalue(model, x, "all")
    each = [fisher.largest_eigenvalue(model, x, output).bound for output in (0, 1, 2)]
    assert whole.bound == pytest.approx(np.mean(each)) and max(each) > 1.1 * min(each)
    assert float(whole) == whole.value >= max(each)
    last = fisher.largest_eigenvalue(model, x, -1)
    assert last.bound == pytest.approx(each[2]) and last.vector.shape == (7, 1)
    for wrong in (3, -4):
        with pytest.raises(BnbookError, match="below that"):
            fisher.largest_eigenvalue(model, x, wrong)


def test_a_linear_model_s_matrix_by_hand():
    """f = w·x has ∇f = x: A = X Xᵀ / m, here diag(1, 9)/2 over the weights, with the bias + ½ everywhere."""
    model = nn.Linear(2, 1).double()
    weights = fisher.largest_eigenvalue(model, SQUARE[0], tolerance=1e-12)
    assert weights.value == pytest.approx(4.5) and weights.bound == pytest.approx(10 / 4)
    assert weights.vector.abs().flatten().tolist() == pytest.approx([0, 1], abs=1e-6)
    full = fisher.largest_eigenvalue(model, SQUARE[0], parameters="all", tolerance=1e-12)
    assert full.value == pytest.approx(np.linalg.eigvalsh([[1, 0.5], [0.5, 5]])[-1])
    assert full.bound == pytest.approx(14 / 4)
    with pytest.raises(BnbookError, match="no weights"):
        fisher.largest_eigenvalue(nn.Sequential(nn.Flatten(), Through()), SQUARE[0].unsqueeze(-1)[..., 0])


def test_lanczos_says_how_well_it_knows():
    rng = np.random.default_rng(0)
    root = rng.standard_normal((60, 60))
    matrix = torch.tensor(root + root.T)
    for tolerance in (0.1, 1e-3):
        start = torch.ones(60, dtype=torch.float64)
        value, v, residual, iterations = fisher.lanczos(lambda u: matrix @ u, start, tolerance, 60)
        assert residual == pytest.approx((matrix @ v - value * v).norm().item() / value, rel=1e-6)
        assert 1e-6 < residual <= tolerance and v.norm().item() == pytest.approx(1) and iterations < 60
        fewer = iterations - 1
        with pytest.raises(BnbookError, match=f"after {fewer} iterations"):
            fisher.lanczos(lambda u: matrix @ u, start, tolerance, fewer)
    assert fisher.lanczos(lambda u: matrix @ u, start, 0.0, 60)[0] == pytest.approx(
        np.linalg.eigvalsh(matrix)[-1]
    )


# Order parameters


@pytest.mark.parametrize("make", ["fully connected", "convolutional"])
def test_weight_gradients_of_many_inputs(make):
    """More inputs than are held at once; f by autograd, over pairs of different inputs by one pass each."""
    torch.manual_seed(0)
    m = order_parameters.CHUNK + 3
    if make == "convolutional":
        model = nn.Sequential(
            nn.Conv2d(2, 3, 2, stride=2), nn.ReLU(), nn.Flatten(), nn.Linear(12, 2)
        ).double()
        x = torch.randn(m, 2, 4, 4).double()
    else:
        model, x = mlp((4, 6, 5, 2), init="meanfield").double(), torch.randn(m, 4).double()
    seen = order_parameters.measure(model, x)
    weights = [p for p in model.parameters() if p.ndim >= 2]
    each = [torch.autograd.grad(model(x[k : k + 1])[0, 0], weights) for k in range(m)]
    for layer in range(len(weights)):
        rows = torch.stack([gradients[layer].flatten() for gradients in each])
        gram = rows @ rows.T
        assert seen.f[layer] == pytest.approx(gram.mean().item())
        apart = (gram.sum() - gram.trace()).item() / (m * (m - 1))
        assert seen.f_pairs[layer] == pytest.approx(apart)
    assert seen.lambda_bound == pytest.approx(seen.f.sum()) and seen.inputs == m
