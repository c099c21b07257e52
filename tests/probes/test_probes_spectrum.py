"""Spectra and largest eigenvalues by products: against dense matrices, Gauss' exactness, SciPy, and the Hessians,
Gauss-Newton and Fisher matrices that torch gives in full."""

from __future__ import annotations

import copy
import itertools
import math

import numpy as np
import page_cells
import pytest
import torch
import torch.nn.functional as F
from scipy.sparse.linalg import eigsh
from test_probes_landscape import assert_untouched, snapshot
from torch import nn

from bnbook.errors import BnbookError
from bnbook.normalizers import make_normalizer
from bnbook.probes.fisher import largest_eigenvalue
from bnbook.probes.hessian import curvature, curvature_along_gradient, largest_curvature
from bnbook.probes.krylov import krylov, lanczos

DOUBLE = torch.float64


PAGE = page_cells.functions("theory/spectrum")  # what it reads off the iterations
quadrature, trace, density = (PAGE[name] for name in ("quadrature", "trace_of", "density"))


def symmetric(n=12, seed=0):
    a = torch.randn(n, n, generator=torch.Generator().manual_seed(seed), dtype=DOUBLE)
    return (a + a.T) / 2


def start(n=12, seed=1):
    return torch.randn(n, generator=torch.Generator().manual_seed(seed), dtype=DOUBLE)


def test_as_many_steps_as_dimensions_give_every_eigenvalue_and_the_weights_of_the_start():
    a, q = symmetric(), start()
    values, vectors = np.linalg.eigh(a.numpy())
    nodes, weights = quadrature(krylov(lambda u: a @ u, q, 12))
    assert nodes == pytest.approx(values, abs=1e-10)
    assert weights == pytest.approx((vectors.T @ (q / q.norm()).numpy()) ** 2, abs=1e-10)


@pytest.mark.parametrize("k", [1, 2, 4])
def test_quadrature_is_exact_below_degree_2k_and_not_at_it(k):
    a, q = symmetric(), start()
    nodes, weights = quadrature(krylov(lambda u: a @ u, q, k))
    unit = (q / q.norm()).numpy()
    for degree in range(2 * k + 1):
        wanted = float(unit @ np.linalg.matrix_power(a.numpy(), degree) @ unit)
        close = float((weights * nodes**degree).sum()) == pytest.approx(wanted, rel=1e-9, abs=1e-9)
        assert close == (degree < 2 * k), degree


def test_the_basis_stays_orthonormal_where_plain_recursion_loses_it():
    values = torch.cat([torch.tensor([1e4, 1e3, 1e2], dtype=DOUBLE), torch.linspace(0, 1, 57, dtype=DOUBLE)])
    basis = krylov(lambda u: values * u, torch.ones(60, dtype=DOUBLE), 40).basis
    assert float((basis @ basis.T - torch.eye(40, dtype=DOUBLE)).abs().max()) < 1e-12


def test_an_invariant_space_ends_the_iteration():
    values = torch.tensor([3.0, 1.0, 1.0, 1.0], dtype=DOUBLE)
    nodes, weights = quadrature(krylov(lambda u: values * u, torch.ones(4, dtype=DOUBLE), 4))
    assert nodes == pytest.approx([1, 3]) and weights == pytest.approx([0.75, 0.25])


def test_the_top_of_a_matrix_that_the_start_is_orthogonal_to():
    values = torch.tensor([5.0, 4.9, 1.0, 0.0, -7.0], dtype=DOUBLE)
    start = torch.eye(5, dtype=DOUBLE)[2]
    value, vector, _, iterations = lanczos(lambda v: values * v, start, 1e-12, 50)
    assert (value, abs(float(vector[0]))) == pytest.approx((5, 1), abs=1e-8) and iterations <= 5
    assert lanczos(lambda v: 0 * v, start, 1e-12, 50)[0] == 0.0


def test_the_largest_are_scipys_and_know_their_error():
    a = symmetric(40)
    a = a @ a + 30 * torch.outer(start(40), start(40)) / 40
    values, vectors, residuals = PAGE["largest_of"](krylov(lambda u: a @ u, start(40, 5), 22), 4)
    wanted = np.sort(eigsh(a.numpy(), 4, which="LA", return_eigenvectors=False))[::-1]
    assert values[:2] == pytest.approx(wanted[:2], rel=1e-6)
    assert (values <= wanted * (1 + 1e-12)).all()  # from below
    known = (a @ vectors.T - vectors.T * torch.from_numpy(values)).norm(dim=0)
    assert known.numpy() == pytest.approx(residuals, rel=1e-6, abs=1e-10)
    assert float((vectors @ vectors.T - torch.eye(4, dtype=DOUBLE)).abs().max()) < 1e-10


def test_density_is_a_sum_of_bells_whose_area_is_one():
    nodes, weights = (
        np.array([[-2.0, 0.0, 0.5], [0.1, 1.0, 9.0]]),
        np.array([[0.2, 0.7, 0.1], [0.5, 0.3, 0.2]]),
    )
    places = np.linspace(-12, 12, 241)
    found = density(nodes, weights, places, 0.05)
    step = places[1] - places[0]
    assert found.sum() * step == pytest.approx(1, rel=1e-6)
    wanted = 0.0
    for row, shares in zip(nodes, weights):
        for node, weight in zip(row, shares):
            away = places[130] - math.asinh(node / 0.05)
            wanted += weight * math.exp(-(away**2) / (2 * step**2)) / (step * math.sqrt(2 * math.pi)) / 2
    assert found[130] == pytest.approx(wanted)


def test_the_trace_has_no_bias_whatever_the_basis():
    """The mean over all 2ⁿ probes of signs is the trace exactly; with the whole space one probe will do."""
    a, n = symmetric(6), 6
    every = torch.tensor(list(itertools.product([-1.0, 1.0], repeat=n)), dtype=DOUBLE)
    run = krylov(lambda u: a @ u, start(n), 2)
    for basis in (run.basis, torch.linalg.qr(start(18, 3).view(n, 3))[0].T):
        assert trace(lambda u: a @ u, basis, every) == pytest.approx(float(a.trace()))
    known = trace(lambda u: a @ u, run.basis, every, float(run.alphas.sum()))
    assert known == pytest.approx(float(a.trace()))
    whole = krylov(lambda u: a @ u, start(n), n).basis
    assert trace(lambda u: a @ u, whole, every[:1]) == pytest.approx(float(a.trace()))


# ---- Networks ----


def smooth(norm="batch"):
    torch.manual_seed(3)
    model = nn.Sequential(
        nn.Linear(3, 4, bias=norm == "none"), make_normalizer(norm, 4), nn.Softplus(), nn.Linear(4, 3)
    ).double()
    if norm == "batch":
        with torch.no_grad():
            model[1].weight.copy_(torch.tensor([0.5, 1.5, -1.0, 2.0]))
            model[1].bias.copy_(torch.tensor([0.3, -0.2, 0.1, 0.0]))
            model[1].running_mean.copy_(torch.tensor([0.2, -0.4, 0.1, 0.3]))
            model[1].running_var.copy_(torch.tensor([0.5, 2.0, 1.0, 0.7]))
            model[1].num_batches_tracked.fill_(7)
    return model


def batch(size=8):
    generator = torch.Generator().manual_seed(11)
    return torch.randn(size, 3, generator=generator, dtype=DOUBLE), torch.arange(size) % 3


def dense_by_torch(model, statistics, pair):
    """Hessian, Gauss-Newton matrix, gradient of the loss and Jacobian of the answers (B, K, N), all by torch itself."""
    (x, y), twin = pair, copy.deepcopy(model).train(statistics == "batch")
    if statistics == "detached":  # as at inference, with the mean and variance of this batch
        first = twin[0](x).detach()
        twin[1].running_mean.copy_(first.mean(0)), twin[1].running_var.copy_(first.var(0, correction=0))
    named = {name: p.detach() for name, p in twin.named_parameters()}
    theta = torch.cat([p.flatten() for p in named.values()])

    def answers(at):
        pieces = at.split([p.numel() for p in named.values()])
        parts = {name: piece.view_as(p) for (name, p), piece in zip(named.items(), pieces, strict=True)}
        return torch.func.functional_call(twin, parts, (x,))

    loss = lambda at: F.cross_entropy(answers(at), y)
    jacobian = torch.autograd.functional.jacobian(answers, theta)
    p = torch.softmax(answers(theta), 1)
    gauss = sum(j.T @ (torch.diag(q) - torch.outer(q, q)) @ j for j, q in zip(jacobian, p)) / len(y)
    hessian = torch.autograd.functional.hessian(loss, theta)
    gradient = torch.autograd.functional.jacobian(loss, theta)
    return {"hessian": hessian, "gauss_newton": gauss, "gradient": gradient, "jacobian": jacobian}


def dense(found):
    eye = torch.eye(len(found.gradient), dtype=DOUBLE)
    return torch.stack([found.product(u) for u in eye])


KINDS = [("none", "batch"), ("batch", "batch"), ("batch", "detached"), ("batch", "population")]


@pytest.mark.parametrize("matrix", ["hessian", "gauss_newton"])
@pytest.mark.parametrize("norm, statistics", KINDS)
def test_products_are_those_of_the_dense_matrix(norm, statistics, matrix):
    model, pair = smooth(norm), batch()
    wanted = dense_by_torch(model, statistics, pair)
    before = snapshot(model)
    with curvature(model, F.cross_entropy, pair, matrix, statistics) as found:
        torch.testing.assert_close(dense(found), wanted[matrix], rtol=1e-9, atol=1e-11)
        torch.testing.assert_close(found.gradient, wanted["gradient"], rtol=1e-9, atol=1e-11)
    assert_untouched(before, model)


@pytest.mark.parametrize("norm", ["none", "batch"])
def test_the_largest_curvature_is_that_of_the_dense_hessian(norm):
    model, pair = smooth(norm), batch()
    wanted = dense_by_torch(model, "batch", pair)
    matrix, g = wanted["hessian"], wanted["gradient"]
    found = largest_curvature(model, F.cross_entropy, pair, tolerance=1e-9)
    assert float(found) == pytest.approx(torch.linalg.eigvalsh(matrix)[-1].item(), rel=1e-9)
    vector = torch.cat([v.flatten() for v in found.vector])
    assert (matrix @ vector - found.value * vector).norm() < 1e-8 * found.value
    form, square = curvature_along_gradient(model, F.cross_entropy, pair)
    assert (form, square) == pytest.approx((float(g @ matrix @ g), float(g @ g)), rel=1e-10)
    assert found.along_gradient == pytest.approx(form / square, rel=1e-10)


def test_signed_largest_is_not_the_largest_in_size():
    model, ones = nn.Linear(2, 1, bias=False).double(), torch.eye(2, dtype=DOUBLE)
    saddle = lambda w, _: 0.5 * (2 * w[0, 0] ** 2 - 7 * w[1, 0] ** 2)  # of inputs 1, 0 and 0, 1: the weights
    assert float(largest_curvature(model, saddle, (ones, ones))) == pytest.approx(2.0, rel=1e-6)


@pytest.mark.parametrize("parameters", ["weights", "all"])
@pytest.mark.parametrize("outputs", [0, -1, "all"])
@pytest.mark.parametrize("norm, statistics", KINDS)
def test_the_largest_fisher_eigenvalue_is_that_of_the_dense_gram_matrix(
    norm, statistics, outputs, parameters
):
    model, (x, y) = smooth(norm), batch()
    jacobian = dense_by_torch(model, statistics, (x, y))["jacobian"]
    chosen = [p.ndim >= 2 or parameters == "all" for p in model.parameters() for _ in range(p.numel())]
    rows = jacobian[:, :, chosen] if outputs == "all" else jacobian[:, outputs, None, chosen]
    gram = rows.flatten(0, 1) @ rows.flatten(0, 1).T / len(x)
    found = largest_eigenvalue(model, x, outputs, parameters, statistics, tolerance=1e-10)
    assert float(found) == pytest.approx(torch.linalg.eigvalsh(gram)[-1].item(), rel=1e-8)
    v = found.vector.flatten()
    assert (gram @ v - found.value * v).norm() < 1e-8 * found.value and v.norm() == pytest.approx(1)
    means = rows.mean(0).square().sum(1)  # of each output, ‖∇f̄‖²
    assert found.bound == pytest.approx(float(means.mean())) and found.bound <= found.value * (1 + 1e-12)
    if norm == "none" or statistics == "population":  # where no example meets another
        parts = largest_eigenvalue(model, x, outputs, parameters, statistics, chunk=3)
        assert (parts.value, parts.bound) == pytest.approx((found.value, found.bound), rel=1e-8)


@pytest.mark.parametrize("matrix", ["hessian", "gauss_newton"])
@pytest.mark.parametrize("norm", ["none", "batch"])
def test_parts_are_the_mean_of_their_matrices(norm, matrix):
    model, (x, y) = smooth(norm), batch()
    halves = [dense_by_torch(model, "batch", (x[k : k + 4], y[k : k + 4])) for k in (0, 4)]
    with curvature(model, F.cross_entropy, (x, y), matrix, parts=2) as found:
        together = dense(found)
        mean = lambda name: sum(half[name] for half in halves) / 2
        torch.testing.assert_close(found.gradient, mean("gradient"), rtol=1e-9, atol=1e-11)
    torch.testing.assert_close(together, mean(matrix), rtol=1e-9, atol=1e-11)
    gap = float((dense_by_torch(model, "batch", (x, y))[matrix] - together).abs().max())
    assert gap < 1e-12 if norm == "none" else gap > 1e-2


def test_refusals():
    model, pair = smooth(), batch()
    enter = lambda batch, **how: curvature(model, F.cross_entropy, batch, **how).__enter__()
    for call, words in (
        (lambda: enter(pair, matrix="fisher"), "matrix 'fisher' is unknown"),
        (lambda: enter(pair, parts=3), "3 parts of 8"),
        (lambda: enter((pair[0] * math.nan, pair[1])), "loss of nan"),
        (lambda: krylov(lambda u: u, torch.zeros(3), 2), "length 0"),
        (lambda: krylov(lambda u: u * math.inf, torch.ones(3), 2), "not finite"),
    ):
        with pytest.raises(BnbookError, match=words):
            call()
