"""What the chapters on mean-field theory compute beside package and probes, against plain linear algebra and by hand."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import page_cells
import pytest
import torch
import torch.nn.functional as F

from bnbook.chapters import mean_field, readout
from bnbook.chapters.mean_field import ratios, root_mean_square, sample_inputs, solve_for
from bnbook.data import load
from bnbook.errors import BnbookError
from bnbook.meanfield import Convolutional, FullyConnected, recursions, solve
from bnbook.models import cnn, mlp
from bnbook.probes.order_parameters import measure
from bnbook.small_networks import PhaseArm, full_batch, train_part

WIDTHS = (6, 9, 8, 7, 3)
CONV = Convolutional((3, 32, 32), (30, 60, 90))
ARM = PhaseArm(hidden=(12, 9), batch_size=16, steps=7, learning_rate=0.05, data="textures-standin")
READOUT, REACH, FISHER = (
    page_cells.functions(f"mean-field/{page}") for page in ("readout", "reach", "fisher")
)


# ---- Measured networks beside the equations for their inputs ---------------------------------------------------------


def test_inputs_are_rows_of_the_table_or_noise():
    table = torch.arange(40.0).reshape(20, 2)
    rows = sample_inputs(table, (2,), 3, 8)
    assert len({tuple(row) for row in rows.tolist()}) == 8
    assert all((row == table).all(1).any() for row in rows)
    assert not torch.equal(rows, sample_inputs(table, (2,), 4, 8))
    assert sample_inputs(None, (3, 5), 3, 4000).std() == pytest.approx(1, abs=0.02)


def test_the_equations_start_from_what_the_networks_saw_and_are_compared_letter_by_letter():
    networks = [measure(mlp(WIDTHS, "batch", "meanfield"), torch.randn(12, 6)) for _ in range(3)]
    found = solve_for(networks, FullyConnected(WIDTHS), "batch", "corrected", 1.5, 0.2)
    by_hand = []
    for k, one in enumerate(networks):
        start = (12, one.q_hat[0], one.q_hat_xy[0])
        each = solve(FullyConnected(WIDTHS), "batch", 1.0, 1.5, 0.2, "corrected", *start)
        assert found.lambda_max[k] == pytest.approx(each.lambda_max, rel=1e-12)
        by_hand.append([*(one.q / each.q)[1:4], *(one.q_tilde_xy / each.q_tilde_xy)[1:4]])
    assert ratios(networks, found, ("q", "q_tilde_xy")) == pytest.approx(np.array(by_hand), rel=1e-12)
    printed = solve_for(networks, FullyConnected(WIDTHS), "batch", "printed", 1.5, 0.2)
    assert printed.q.shape == (5, 1) and printed.batch is None
    shape = Convolutional((2, 7, 7), (4,))
    one = [measure(cnn(shape.image, shape.channels, norm="batch"), torch.randn(6, 2, 7, 7))]
    found = solve_for(one, shape, "batch", "corrected")
    assert found.q_hat_ab_xy[0, 0] == pytest.approx(one[0].q_hat_ab_xy[0])
    # The readout has one place: no column for the letter of two
    assert ratios(one, found, ["q_ab_xy"], slice(1, None)).shape == (1, 1)


@pytest.mark.parametrize("norm", ["none", "batch"])
def test_the_recursion_of_the_cell_is_the_packages(norm):
    integrals = {name: getattr(recursions, name) for name in ("relu_product", "step_product")}
    names = dict(sigma_w2=1.7, sigma_b2=0.3, paper=FullyConnected(WIDTHS), np=np, **integrals)
    names |= {"SimpleNamespace": SimpleNamespace}
    recursion = page_cells.cell("mean-field/order-parameters", "def recursion", **names)["recursion"]
    start = np.array([1.2, 0.9]), np.array([0.1, 0.3])
    for equations, m in (("printed", None), ("corrected", 12), ("corrected", None)):
        options = {} if equations == "printed" else dict(zip(("q_hat_0", "q_hat_xy_0"), start))
        theory = solve(FullyConnected(WIDTHS), norm, [1.0], 1.7, 0.3, equations, m, **options)
        given = start if options else ([1.0], [0.0])
        found = recursion(norm, *given, m or np.inf, printed=equations == "printed")
        for letter, values in vars(found).items():
            expected = np.broadcast_to(getattr(theory, letter), values.shape)
            np.testing.assert_allclose(values[1:4], expected[1:4], rtol=1e-12, err_msg=letter)


def test_root_mean_square_and_directions():
    assert root_mean_square(np.array([[3.0, 4.0], [0.0, -2.0]])) == pytest.approx([12.5**0.5, 2**0.5])
    page = page_cells.cell("mean-field/order-parameters", "def independent_directions", torch=torch)
    one, other = torch.tensor([[1.0, -1.0, 1.0, -1.0], [1.0, 1.0, -1.0, -1.0]])
    # A unit normal and its own double, of variance 5, beside one of its own of variance 5: two
    rows = torch.stack([one, 2 * one, 7 + 5**0.5 * other], 1)
    assert page["independent_directions"](rows) == pytest.approx(2)


# ---- The largest eigenvalue ------------------------------------------------------------------------------------------


def gram(network, x, parameters):
    """(1/m) J Jᵀ of the first output, by one gradient an input."""
    rows = [
        torch.cat([g.flatten() for g in torch.autograd.grad(f, parameters, retain_graph=True)])
        for f in network(x)[:, 0]
    ]
    jacobian = torch.stack(rows).double().numpy()
    return jacobian @ jacobian.T / len(x)


@pytest.mark.parametrize("shape", [FullyConnected((12, 8, 7, 3)), Convolutional((2, 9, 9), (4,))])
def test_eigenvalue_is_that_of_a_dense_jacobian(shape):
    dense = isinstance(shape, FullyConnected)
    x = torch.randn(6, *((12,) if dense else shape.image), generator=torch.Generator().manual_seed(1))
    network = mean_field.random_network(shape, "batch", 4, gamma=1.5).train()
    weights = [p for p in network.parameters() if p.ndim >= 2]
    expected = np.linalg.eigvalsh(gram(network, x, weights))[-1]
    assert REACH["eigenvalue"](shape, "batch", x, 4, gamma=1.5) == pytest.approx(expected, rel=1e-3)


def test_population_statistics_are_the_plain_average_of_four_batches_of_further_inputs():
    torch.manual_seed(0)
    network, inputs = mlp((3, 4, 2), "batch"), torch.randn(32, 3)
    FISHER["see_population"](network, inputs)
    z = network.linear1(inputs).detach()
    torch.testing.assert_close(network.norm1.running_mean, z.mean(0))
    torch.testing.assert_close(network.norm1.running_var, z.view(4, 8, 4).var(1).mean(0))

    names = dict(CASES={"one": ("batch", "population", "")}, population=400)

    def top(scale):
        draw = lambda kind, seed, m: scale ** (m == 400) * sample_inputs(None, (3,), seed, m)
        own = page_cells.functions("mean-field/fisher", **names | {"draw_inputs": draw})
        own |= names | {"draw_inputs": draw}
        return own["top"](FullyConnected((3, 4, 2)), "", "one", 1, 5, 1.0, 0).value

    assert top(3.0) < top(1.0)  # by which batch norm divides


def test_gradients_of_two_places_are_proportional_to_their_start():
    from_one = solve(CONV, "batch", [1.0, 2.0])
    half, nothing = (solve(CONV, "batch", [1.0, 2.0], two_places=start) for start in (0.5, 0.0))
    assert np.allclose(half.q_tilde_ab_xy[1:3], from_one.q_tilde_ab_xy[1:3] / 2)
    assert not nothing.q_tilde_ab_xy[1:3].any() and (nothing.lambda_max < from_one.lambda_max).all()
    # What biases, γ and β add, which is no part of λ_max
    full = [theory.lambda_max_full - theory.lambda_max for theory in (from_one, half, nothing)]
    assert np.allclose(full[1], (full[0] + full[2]) / 2) and (full[0] > full[2]).all()
    dense = [
        solve(FullyConnected((7, 9, 3)), "batch", two_places=start).lambda_max_full for start in (1.0, 0.0)
    ]
    assert dense[0] == dense[1]
    with pytest.raises(BnbookError, match="printed"):
        solve(CONV, "batch", equations="corrected", two_places=0.0)


def test_equations_4_and_6_hold_and_the_second_at_the_optimum_only():
    """Two ways to the same matrix differ by rounding; a matrix and itself would not."""
    found = REACH["outcome_model"](0)
    assert 0 < found["equation_4"] < 1e-12 and 0 < found["equation_6"] < 1e-12 < 0.01 < found["elsewhere"]


def test_an_eigenvalue_a_hundredth_too_small_or_too_large_breaks_a_bound(monkeypatch):
    """An eighth of the sets are one gradient, and bounds its square; of a quarter one bound is reached or both."""
    outside_the_bounds, eigvalsh = REACH["outside_the_bounds"], np.linalg.eigvalsh
    assert not outside_the_bounds(2, 200).any() and outside_the_bounds(2, 200, rounding=-0.5).all()
    for factor, least in ((0.99, 15), (1.01, 36)):
        monkeypatch.setattr(np.linalg, "eigvalsh", lambda a, f=factor: f * eigvalsh(a))
        assert outside_the_bounds(3, 200).sum() > least


# ---- Where a network breaks, and which part of it --------------------------------------------------------------------


@pytest.fixture(scope="module")
def dataset():
    return load("textures-standin")


@pytest.mark.parametrize(
    "page, name", [("readout", "rates_of_the_readout"), ("learning-rate", "readout_rates")]
)
def test_the_readouts_rate_is_that_of_its_block_of_the_fisher_matrix(dataset, page, name):
    network, (images, _) = replace(ARM, gamma=2.0).drawn(3, dataset).train(), full_batch(ARM, 3, dataset)
    top = np.linalg.eigvalsh(gram(network, images, list(network.parameters())[-2:]))[-1]
    own = page_cells.functions(f"mean-field/{page}", sets={ARM.data: dataset}, gammas=[1.0, 2.0])
    assert own[name](ARM, 3)[1] == pytest.approx(np.log10(3.8 / top), abs=1e-4)


@pytest.mark.parametrize("page, width", [("readout", 0.8), ("learning-rate", 1.6)])
def test_a_boundary_is_between_what_works_and_what_does_not(monkeypatch, page, width):
    """Of trainings that work below 10^edge, another for each restart and γ, rates to four digits; where it lies above
    all rates that are tried, the page that bounds them has none."""
    edge, asked = lambda gamma, seed: 0.3 * gamma - 1.7 * seed if gamma < 3 else 9.0, []

    def train(members, workers):
        asked.extend(arm for arm, _ in members)
        works = lambda arm, seed: np.log10(arm.learning_rate) < edge(arm.gamma, seed)
        ends = {member: 0.5 if works(*member) else np.inf for member in members}
        return {each: {"loss": np.array([1.0, end]), "exploded_step": end} for each, end in ends.items()}

    monkeypatch.setattr(mean_field, "train_members", train)
    bounded = page == "learning-rate"
    trainings = mean_field.Trainings(0, 1, **({"largest": 2.0} if bounded else {}))
    cells = page_cells.functions(f"mean-field/{page}", trainings=trainings, rounds=5, seeds=2, WIDTH=1.6)
    settings = [replace(ARM, gamma=gamma) for gamma in (1.0, 2.0, 3.0)[: 2 + bounded]]
    found = cells["boundary"](settings, np.zeros(3) if bounded else np.zeros((2, 2)))
    expected = [[edge(gamma, seed) for gamma in (1.0, 2.0)] for seed in (0, 1)]
    assert found[:, :2] == pytest.approx(np.array(expected), abs=width / 2**6 + 1e-3)
    assert all(float(f"{arm.learning_rate:.4g}") == arm.learning_rate for arm in asked)
    if bounded:
        assert np.isinf(found[:, 2]).all() and max(arm.learning_rate for arm in asked) <= 100
        ends = trainings.at(settings[:2], np.array([[-9.0, 9.0]]), "exploded_step")
        assert ends.tolist() == [[0.5, np.inf]]
    broke = trainings.broken(data=ARM.data, network="fc")
    assert 0 < len(broke) < len(trainings.runs) and not any(np.isfinite(run["loss"][1]) for run in broke)
    assert trainings.broken(network="conv") == []


def test_where_a_training_ended_and_how_far_a_prediction_is_off():
    explosion_step = READOUT["explosion_step"]
    assert explosion_step(np.array([2.0, 2e6, 2.1e6, 1.0])) == 2
    assert explosion_step(np.array([2.0, 5.0, np.nan])) == 2
    assert explosion_step(np.array([2.0, 1.9e6, 1.0])) == np.inf
    losses = np.array([[2.0] * 18 + [10.0, 30.0], [2.0] * 19 + [np.inf], [2.0] * 20])
    assert readout.end(losses) == pytest.approx([1.0, np.inf, 0.0])
    found = READOUT["beside"](np.array([[1.0, 3.0], [0.0, 1.0]]), np.array([0.0, 1.0]))
    wanted = {"offset": [1.5, 0.0], "distance": [1.5, 0.0], "slope": pytest.approx([2.0, 1.0])}
    assert {name: list(values) for name, values in found.items()} == wanted


def test_brightness_is_the_correlation_with_the_mean_pixel(dataset):
    brightness = page_cells.functions("mean-field/readout", sets={ARM.data: dataset})["brightness"]
    bright = full_batch(ARM, 3, dataset)[0].flatten(1).mean(1)
    vector = torch.outer(2 - 3 * bright, torch.randn(10))
    assert brightness(ARM, 3, SimpleNamespace(vector=vector)) == pytest.approx(1, abs=1e-5)
    other = torch.outer((bright - bright.mean()).roll(1), torch.randn(10))
    assert brightness(ARM, 3, SimpleNamespace(vector=other)) < 0.9


@pytest.mark.parametrize(
    "part, layers", [("all", slice(None)), ("hidden", slice(-1)), ("readout", slice(-1, None))]
)
def test_a_part_is_trained_and_the_rest_stays(dataset, part, layers):
    network, (images, labels) = ARM.drawn(3, dataset).double().train(), full_batch(ARM, 3, dataset)
    optimizer = torch.optim.SGD(network[layers].parameters(), ARM.learning_rate, ARM.momentum)
    expected = []
    for _ in range(ARM.steps):
        loss = 0.5 * (network(images.double()) - F.one_hot(labels, 10)).square().sum() / 16
        expected.append(loss.item())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert np.allclose(train_part(ARM, 3, dataset, part, dtype=torch.float64), expected)
