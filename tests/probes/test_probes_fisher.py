"""The largest Fisher eigenvalue against the dense Gram matrix, example by example, and against the theory's
bound."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.func import functional_call

from bnbook.errors import BnbookError
from bnbook.models import cnn, mlp
from bnbook.probes.fisher import largest_eigenvalue
from bnbook.probes.krylov import lanczos


def small(kind: str, norm: str) -> tuple[nn.Module, Tensor]:
    torch.manual_seed(5)
    if kind == "mlp":
        model, x = (
            mlp((6, 9, 7, 3), norm=norm, init="meanfield", gamma=1.4).double(),
            torch.randn(8, 6).double(),
        )
    else:
        model, x = (
            cnn((2, 7, 9), (4, 5), norm=norm, outputs=3, gamma=0.8).double(),
            torch.randn(6, 2, 7, 9).double(),
        )
    for _ in range(3):  # population statistics that are not those of the batch
        model.train()(torch.randn_like(x))
    return model, x


def dense(model: nn.Module, x: Tensor, outputs: int | str, parameters: str, statistics: str) -> np.ndarray:
    """(1/m) J J^T by one backward pass an example and output; constants frozen by hand."""
    chosen = [p for p in model.parameters() if parameters == "all" or p.ndim >= 2]
    buffers = {name: b.clone() for name, b in model.named_buffers()}
    model.train(statistics != "population")
    frozen = {}
    if statistics == "detached":

        def remember(module, arguments, output):
            z = arguments[0].detach()
            axes = [a for a in range(z.ndim) if a != 1]
            frozen[module] = (z.mean(axes), z.var(axes, correction=0))

        hooks = [
            m.register_forward_hook(remember) for m in model.modules() if type(m).__name__ == "BatchNorm"
        ]
        functional_call(model, buffers, (x,))
        for hook in hooks:
            hook.remove()
    for module, (mean, variance) in frozen.items():  # inference with the batch's own statistics is "detached"
        module.running_mean, module.running_var = mean, variance
    model.train(statistics == "batch")
    y = functional_call(model, {name: b.clone() for name, b in model.named_buffers()}, (x,))
    rows = []
    for example in range(len(x)):
        for output in range(y.shape[1]) if outputs == "all" else [outputs]:
            found = torch.autograd.grad(y[example, output], chosen, retain_graph=True, allow_unused=True)
            rows.append(
                torch.cat(
                    [(torch.zeros_like(p) if g is None else g).flatten() for p, g in zip(chosen, found)]
                )
            )
    for name, buffer in buffers.items():
        model.get_buffer(name).copy_(buffer)
    return (torch.stack(rows) @ torch.stack(rows).T / len(x)).numpy()


@pytest.mark.parametrize("statistics", ["batch", "detached", "population"])
@pytest.mark.parametrize("parameters", ["weights", "all"])
@pytest.mark.parametrize("outputs", [0, 2, "all"])
@pytest.mark.parametrize("kind, norm", [("mlp", "none"), ("mlp", "batch"), ("cnn", "batch")])
def test_it_equals_the_dense_gram_matrix(kind, norm, outputs, parameters, statistics) -> None:
    model, x = small(kind, norm)
    gram = dense(*small(kind, norm), outputs, parameters, statistics)
    found = largest_eigenvalue(model, x, outputs, parameters, statistics, tolerance=1e-10)
    assert found.value == pytest.approx(np.linalg.eigvalsh(gram)[-1], rel=1e-8)
    v = found.vector.flatten().numpy()
    assert np.linalg.norm(gram @ v - found.value * v) < 1e-8 * found.value and np.linalg.norm(
        v
    ) == pytest.approx(1)
    if outputs != "all":
        assert found.bound == pytest.approx(gram.sum() / len(gram)) and found.bound <= found.value * (
            1 + 1e-12
        )


def test_chunks_are_the_whole_where_examples_do_not_meet() -> None:
    for norm, statistics in (("none", "batch"), ("batch", "population")):
        model, x = small("mlp", norm)
        whole, parts = (largest_eigenvalue(model, x, "all", "all", statistics, chunk=c) for c in (None, 3))
        assert whole.value == pytest.approx(parts.value, rel=1e-9) and whole.bound == pytest.approx(
            parts.bound
        )


def test_lanczos_finds_the_top_of_a_matrix_that_its_start_is_orthogonal_to() -> None:
    values = torch.tensor([5.0, 4.9, 1.0, 0.0, -7.0], dtype=torch.float64)
    start = torch.tensor([0.0, 0, 1, 0, 0], dtype=torch.float64)
    value, vector, residual, iterations = lanczos(lambda v: values * v, start, 1e-12, 50)
    assert (
        value == pytest.approx(5.0, abs=1e-10)
        and abs(vector[0]) == pytest.approx(1, abs=1e-8)
        and iterations <= 5
    )
    assert lanczos(lambda v: 0 * v, start, 1e-12, 50)[0] == 0.0


def test_all_outputs_bound_is_the_mean_of_theirs():
    torch.manual_seed(0)
    model, x = mlp((4, 6, 3), norm="batch", init="meanfield").double(), torch.randn(7, 4).double()
    whole = largest_eigenvalue(model, x, "all")
    each = [largest_eigenvalue(model, x, output).bound for output in (0, 1, 2)]
    assert whole.bound == pytest.approx(np.mean(each)) and max(each) > 1.1 * min(each)
    assert float(whole) == whole.value >= max(each)
    last = largest_eigenvalue(model, x, -1)
    assert last.bound == pytest.approx(each[2]) and last.vector.shape == (7, 1)


def test_lanczos_says_how_well_it_knows():
    rng = np.random.default_rng(0)
    root = rng.standard_normal((60, 60))
    matrix = torch.tensor(root + root.T)
    for tolerance in (0.1, 1e-3):
        start = torch.ones(60, dtype=torch.float64)
        value, v, residual, iterations = lanczos(lambda u: matrix @ u, start, tolerance, 60)
        assert residual == pytest.approx((matrix @ v - value * v).norm().item() / value, rel=1e-6)
        assert 1e-6 < residual <= tolerance and v.norm().item() == pytest.approx(1) and iterations < 60
        fewer = iterations - 1
        with pytest.raises(BnbookError, match=f"after {fewer} iterations"):
            lanczos(lambda u: matrix @ u, start, tolerance, fewer)
    assert lanczos(lambda u: matrix @ u, start, 0.0, 60)[0] == pytest.approx(np.linalg.eigvalsh(matrix)[-1])
