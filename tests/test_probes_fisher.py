"""The largest Fisher eigenvalue against the dense Gram matrix, example by example, and against the theory's
bound."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.func import functional_call

from bnbook.errors import BnbookError
from bnbook.meanfield import FullyConnected, solve
from bnbook.models import cnn, mlp
from bnbook.probes.fisher import lanczos, largest_eigenvalue


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


def test_the_model_is_left_as_it_was() -> None:
    model, x = small("cnn", "batch")
    model.eval()
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    state = torch.get_rng_state()
    largest_eigenvalue(model, x)
    assert not model.training and torch.equal(state, torch.get_rng_state())
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())
    assert all(parameter.grad is None for parameter in model.parameters())


def test_chunks_are_the_whole_where_examples_do_not_meet_and_refused_where_they_do() -> None:
    for norm, statistics in (("none", "batch"), ("batch", "population")):
        model, x = small("mlp", norm)
        whole, parts = (largest_eigenvalue(model, x, "all", "all", statistics, chunk=c) for c in (None, 3))
        assert whole.value == pytest.approx(parts.value, rel=1e-9) and whole.bound == pytest.approx(
            parts.bound
        )
    model, x = small("mlp", "batch")
    for statistics in ("batch", "detached"):
        with pytest.raises(BnbookError, match="ties the examples"):
            largest_eigenvalue(model, x, statistics=statistics, chunk=3)


@pytest.mark.parametrize(
    "change, message",
    [
        ({"parameters": "biases"}, "weights, all"),
        ({"statistics": "exact"}, "batch, detached, population"),
        ({"outputs": 3}, "below that"),
        ({"outputs": "some"}, "or 'all'"),
        ({"max_iterations": 2, "tolerance": 1e-12}, "after 2 iterations"),
    ],
)
def test_bad_input_is_one_line(change: dict, message: str) -> None:
    model, x = small("mlp", "batch")
    with pytest.raises(BnbookError, match=message) as caught:
        largest_eigenvalue(model, x, **change)
    assert "\n" not in str(caught.value)


def test_population_statistics_have_to_exist() -> None:
    with pytest.raises(BnbookError, match="no population statistics yet"):
        largest_eigenvalue(mlp((6, 9, 3), norm="batch"), torch.randn(8, 6), statistics="population")


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


def test_the_theory_s_bound_is_the_bound_of_the_matrix() -> None:
    """Like with like: one output, weights, statistics constant or through the batch."""
    widths, inputs, bounds = (200, 200, 200, 1), 60, {"detached": [], "batch": []}
    for seed in range(4):
        torch.manual_seed(seed)
        model, x = mlp(widths, norm="batch", init="meanfield", gamma=1.2), torch.randn(inputs, 200)
        for statistics, found in bounds.items():
            one = largest_eigenvalue(model, x, statistics=statistics)
            assert one.bound <= one.value
            found.append(one.bound)
    for statistics, equations in (("detached", "corrected"), ("batch", "through_batch")):
        theory = solve(FullyConnected(widths), "batch", 1.2, equations=equations, batch=inputs).lambda_max
        assert np.mean(bounds[statistics]) == pytest.approx(theory, rel=0.08)
