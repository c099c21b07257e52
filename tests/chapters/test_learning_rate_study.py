"""What stands beside a critical learning rate, and the page of controls, against slow twins and by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import page_cells
import pytest
import torch
import torch.nn.functional as F
from descent import SHARES, descend

from bnbook.chapters.mean_field import input_moments, largest, solve_as
from bnbook.chapters.shared import Rows, pooled
from bnbook.data import load
from bnbook.meanfield import Convolutional, FullyConnected, solve
from bnbook.probes.fisher import largest_eigenvalue
from bnbook.small_networks import PhaseArm, full_batch, train_model, train_part

CONTROLS = page_cells.functions("practice/controls", rates=[0.01, 0.1])
ARM = PhaseArm(data="digits-standin", hidden=(8, 6), batch_size=16, steps=3, learning_rate=0.02)


@pytest.fixture(scope="module")
def dataset():
    return load("digits-standin")


@pytest.fixture
def cells(dataset):
    return page_cells.functions("mean-field/learning-rate", sets={ARM.data: dataset})


def test_moments_of_inputs_are_means_over_pairs():
    x = torch.randn(4, 3, 2, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    a = x.flatten(2).numpy()  # (m, C, places)
    pairs = [(i, j) for i in range(4) for j in range(4) if i != j]
    one = np.mean([(a[i] * a[j]).sum(0).mean() / 3 for i, j in pairs])
    products = [a[i].T @ a[j] / 3 for i, j in pairs]
    apart = np.mean([product[~np.eye(4, dtype=bool)].mean() for product in products])
    found = input_moments(x)
    assert found["q_hat_0"] == pytest.approx(np.square(a).mean())
    assert found["q_hat_xy_0"] == pytest.approx(one) and found["q_hat_ab_xy_0"] == pytest.approx(apart)
    assert np.isnan(input_moments(x.flatten(1)[..., None, None])["q_hat_ab_xy_0"])


def test_each_name_solves_its_own_equations():
    moments = {"q_hat_0": 0.9, "q_hat_xy_0": 0.2, "q_hat_ab_xy_0": 0.1}
    for shape in (FullyConnected((12, 9, 8, 3)), Convolutional((2, 17, 17), (4, 5))):
        known = dict(list(moments.items())[: 3 if isinstance(shape, Convolutional) else 2])
        right = solve(shape, "batch", 2.0, equations="corrected", batch=7, **known).lambda_max
        assert solve_as("corrected", shape, 7, moments, norm="batch", gamma=2.0).lambda_max == right
        printed = solve(shape, "batch", 2.0).lambda_max
        assert solve_as("from1", shape, 7, moments, norm="batch", gamma=2.0).lambda_max == printed
        kinder = solve_as("from0", shape, 7, moments, norm="batch", gamma=2.0).lambda_max
        assert kinder < printed if isinstance(shape, Convolutional) else kinder == printed


def test_shares_of_layers_are_those_of_the_dense_eigenvector(dataset, cells):
    network, (images, _) = ARM.drawn(3, dataset).train(), full_batch(ARM, 3, dataset)
    weights = [p for p in network.parameters() if p.ndim >= 2]
    rows = [
        torch.cat([g.flatten() for g in torch.autograd.grad(f, weights, retain_graph=True)])
        for f in network(images).flatten()
    ]
    jacobian = torch.stack(rows).double().numpy()
    values, vectors = np.linalg.eigh(jacobian.T @ jacobian / 16)
    parts = np.split(np.square(vectors[:, -1]), np.cumsum([p.numel() for p in weights])[:-1])
    found = largest(ARM, 3, dataset, "weights")
    assert found.value == pytest.approx(values[-1], rel=1e-4)
    assert np.allclose(cells["layer_shares"](ARM, 3, found), [part.sum() for part in parts], atol=2e-3)


def test_what_a_training_changed_is_read_off_its_network(dataset, cells):
    found = cells["after_training"](ARM, 3)
    before, (after, loss) = ARM.drawn(3, dataset), train_model(ARM, 3, dataset)
    first, last = (float(one[-1].weight.detach().std()) for one in (before, after))
    assert found["readout"] == pytest.approx(last / first) and found["hidden"] != found["readout"]
    top = float(largest_eigenvalue(after.train(), full_batch(ARM, 3, dataset)[0], "all", "weights"))
    before_it = largest(ARM, 3, dataset, "weights").value
    assert found["curvature"] == pytest.approx(np.log10(top / before_it), abs=1e-3)
    gammas = [m.weight for m in after if hasattr(m, "running_mean")]
    assert found["gamma"] == pytest.approx(float(gammas[-1].detach().square().mean().sqrt()))
    assert found["loss"] == pytest.approx(np.log10(loss[-1] / loss[0]))


def test_the_best_rate_is_of_those_that_did_not_explode(cells):
    losses = np.array([[[3.0, 1.0, np.nan], [np.nan] * 3], [[0.5, 1.0, 0.2], [4.0, np.inf, 5.0]]])
    rates = np.array([[-3.0, -2.0, -1.0], [-4.0, -3.0, -2.0]])
    best, at = cells["best_rates"](losses, rates)
    assert best.tolist() == [[1, np.inf], [0.2, 4]]
    assert (at[0, 0], *at[1]) == (-2, -1, -4)


@pytest.mark.parametrize("norm", ["none", "batch"])
def test_everything_but_the_readout_is_trained_as_the_page_on_the_last_layer_trains_it(norm, dataset):
    arm = replace(ARM, norm=norm)
    losses, right, longer = CONTROLS["without_readout"](arm, 3, dataset, times=0.5)
    rate = 0.5 * 2 * (1 + arm.momentum) / largest(arm, 3, dataset).value
    twin = train_part(replace(arm, learning_rate=rate), 3, dataset, "hidden")
    np.testing.assert_allclose(losses, twin, rtol=1e-5)
    assert 0 <= right <= 1 and longer > (norm == "batch")  # then their gradient is at right angles to them


def test_the_readout_s_curvature_is_that_of_its_hessian_and_the_mean_feature_s_share_a_quotient_of_it(
    dataset,
):
    model, (images, labels) = ARM.drawn(5, dataset).train(), full_batch(ARM, 5, dataset)
    h = model[:-1](images).detach().flatten(1).double()
    targets = F.one_hot(labels, len(dataset.classes)).double()

    def loss(flat):
        return 0.5 * (F.linear(h, flat[:-10].view(10, -1), flat[-10:]) - targets).square().sum() / len(h)

    hessian = torch.autograd.functional.hessian(loss, torch.zeros(10 * h.shape[1] + 10, dtype=h.dtype))
    top, share = CONTROLS["readout_curvature"](ARM, 5, dataset)
    assert top == pytest.approx(float(torch.linalg.eigvalsh(hessian)[-1]), rel=1e-9)
    mean = h.mean(0)  # 1ᵀ (H Hᵀ + 1) 1 / m² is the squared length of the mean feature, with the bias's one
    assert share == pytest.approx(float(mean @ mean + 1) / top, rel=1e-9)


def test_softmax_regression_is_plain_descent():
    data, start = "textures-standin", torch.Generator().manual_seed(2)
    train, test = (pooled(load(data), split, 4) for split in ("train", "test"))
    (x, y), (shown, answers) = ((F.pad(rows, (0, 1), value=1.0), labels) for rows, labels in (train, test))
    first = torch.randn(x.shape[1], 10, generator=start, dtype=torch.float64) * (2 / x.shape[1]) ** 0.5
    late, right = [], []
    for rate in CONTROLS["rates"]:
        weight = first.float().requires_grad_()
        loss = lambda images, labels, weight=weight: F.cross_entropy(images @ weight, labels)
        losses = descend(loss, [weight], Rows(x, y, 16, 2), [rate * share for share in SHARES])
        late.append(np.mean(losses[7:]))
        right.append(float(((shown @ weight).argmax(1) == answers).double().mean()))
    assert CONTROLS["softmax_regression"]((data, 4, 16, 10), 2) == right[int(np.argmin(late))]
