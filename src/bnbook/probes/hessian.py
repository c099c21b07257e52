"""The curvature of a network's loss: its Hessian and its Gauss-Newton matrix as products, the Hessian's largest
eigenvalue as training feels it, and what it is along the gradient."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from bnbook.errors import BnbookError
from bnbook.probes.copies import Copies
from bnbook.probes.functional import Batch, Loss, flat, slopes
from bnbook.probes.krylov import Product, lanczos
from bnbook.probes.statistics import copied

MATRICES = ("hessian", "gauss_newton")
SPLITTING = (nn.DataParallel, nn.parallel.DistributedDataParallel)


@dataclass(frozen=True)
class LargestCurvature:
    """λ_max of ∇²L and how well it is known; `float(...)` is the value."""

    value: float  # the largest eigenvalue with its sign, not the largest in size; found from below
    vector: list[Tensor]  # its eigenvector, in the shapes of the trained parameters, of length 1 together
    along_gradient: float  # g^T H g / ‖g‖²; NaN where the gradient is 0
    gradient_norm: float  # ‖g‖
    residual: float  # ‖H v - λ v‖ / |λ|
    iterations: int

    def __float__(self) -> float:
        return self.value


def largest_curvature(
    model: nn.Module, loss: Loss, batch: Batch, *, tolerance: float = 1e-3, max_iterations: int = 300
) -> LargestCurvature:
    """λ_max of H = ∇²L(θ) over all trained parameters, by Lanczos iteration on Hessian-vector products.

    H u = ∇⟨∇L, u⟩ (Pearlmutter 1994), on one graph of the *whole* batch: in training mode mean and variance
    are functions of the weights, and H holds what flows through them. The iteration ends when
    ‖H v - λ v‖ ≤ tolerance · |λ|; a Rayleigh quotient, so λ is approached from below and its error is of the
    order of tolerance² · λ² / gap. The model runs in the mode it is in; noise normalizers hold the noise of
    their next forward; parameters, .grad, buffers, mode and random state stay bit-identical.
    Errors: BnbookError for a batch in parts or a model that splits it (another batch is another Hessian), for
    a loss that two passes give differently (dropout), for no trained parameter, no finite loss, where the
    iteration does not converge.
    """
    with _whole(model, loss, batch) as graph:
        g = graph.gradient.detach()
        start = g if g.norm() > 0 else torch.ones_like(g)
        if not torch.isfinite(g).all():
            raise BnbookError("the gradient is not finite; expected a training that has not diverged")
        value, vector, residual, iterations = lanczos(graph.product, start, tolerance, max_iterations)
        sizes = [p.numel() for p in graph.leaves]
        shaped = [v.view_as(p) for v, p in zip(vector.split(sizes), graph.leaves, strict=True)]
        form, square = graph.along()
        along = form / square if square else float("nan")
        return LargestCurvature(value, shaped, along, float(g.norm()), residual, iterations)


def curvature_along_gradient(model: nn.Module, loss: Loss, batch: Batch) -> tuple[float, float]:
    """g^T H g and ‖g‖² of a batch, whose ratio is the curvature along its own gradient: one product with H.

    Model and errors as in `largest_curvature`.
    """
    with _whole(model, loss, batch) as graph:
        return graph.along()


@dataclass(frozen=True)
class Curvature:
    """Second derivatives of a network's loss at its parameters θ (N,), as products."""

    gradient: Tensor  # (N,)  ∇L
    loss: float
    product: Product  # u -> A u


@contextmanager
def curvature(
    model: nn.Module,
    loss: Loss,
    batch: Batch,
    matrix: str = "hessian",
    statistics: str = "batch",
    parts: int = 1,
) -> Iterator[Curvature]:
    """The Hessian ∇²L or the Gauss-Newton matrix J^T (∇²ℓ) J of a batch's loss, over all trained parameters.

    H u = ∇⟨∇L, u⟩ (Pearlmutter 1994); G u = J^T (∇²ℓ(z) (J u)) (Schraudolph 2002), z (B, outputs) the network's
    answers, J their Jacobian over θ, ℓ the loss as a function of z. statistics: "batch", "detached" or "population" as in
    `bnbook.probes.statistics.copied`; with "batch" both matrices hold what flows through mean and
    variance. parts: the batch is cut into as many, and gradient, loss and products are means over them: without
    batch norm the same matrix, with it that of smaller batches. The model is left as it was.
    Errors: BnbookError for an unknown matrix, parts that the batch does not have, a loss that is not finite.
    """
    if matrix not in MATRICES:
        raise BnbookError(f"matrix {matrix!r} is unknown; expected one of {', '.join(MATRICES)}")
    inputs, targets = batch
    if len(inputs) % parts:
        raise BnbookError(f"{parts} parts of {len(inputs)} examples; expected a divisor")
    graph = _Graph if matrix == "hessian" else _GaussNewton
    with copied(model, statistics, loss) as [twin, own]:
        leaves = [p for p in twin.parameters() if p.requires_grad]
        size = len(inputs) // parts
        pairs = zip(inputs.split(size), targets.split(size))
        built = [graph(leaves, twin(x), own, y) for x, y in pairs]
        value = sum(float(one.value.detach()) for one in built) / parts
        if not np.isfinite(value):
            raise BnbookError(f"a loss of {value}; expected a finite number")
        gradient = sum(one.gradient.detach() for one in built) / parts
        yield Curvature(gradient, value, lambda u: sum(one.product(u) for one in built) / parts)


class _Graph:
    """Loss and gradient of one batch, on a graph that is built once, and products with its Hessian."""

    second = True  # whether the gradient has derivatives

    def __init__(self, leaves: Sequence[Tensor], outputs: Tensor, loss: Loss, targets: Tensor) -> None:
        self.leaves, self.value = leaves, loss(outputs, targets)
        first = slopes(self.value, leaves, create_graph=self.second, retain_graph=True)
        self.gradient = flat(first)

    def product(self, u: Tensor) -> Tensor:
        """H u, (N,)."""
        return flat(slopes(self.gradient, self.leaves, u, retain_graph=True))

    def along(self) -> tuple[float, float]:
        """g^T H g and ‖g‖²."""
        g = self.gradient.detach()
        return float(g.double() @ self.product(g).double()), float(g.double() @ g.double())


class _GaussNewton(_Graph):
    second = False

    def __init__(self, leaves: Sequence[Tensor], outputs: Tensor, loss: Loss, targets: Tensor) -> None:
        super().__init__(leaves, outputs, loss, targets)
        self.outputs, self.answers = outputs, outputs.detach().requires_grad_()
        (self.slope,) = torch.autograd.grad(loss(self.answers, targets), self.answers, create_graph=True)
        self.weight = torch.zeros_like(outputs, requires_grad=True)
        self.pulled = flat(slopes(outputs, leaves, self.weight, create_graph=True))  # J^T w

    def product(self, u: Tensor) -> Tensor:
        """G u, (N,)."""
        (pushed,) = torch.autograd.grad(self.pulled, self.weight, u, retain_graph=True)  # J u
        (weighed,) = torch.autograd.grad(self.slope, self.answers, pushed, retain_graph=True)
        return flat(slopes(self.outputs, self.leaves, weighed, retain_graph=True))


@contextmanager
def _whole(model: nn.Module, loss: Loss, batch: Batch) -> Iterator[_Graph]:
    """The graph of a batch that is seen whole, in the mode that the model is in, of a loss that is not random."""
    whole = isinstance(batch, (tuple, list)) and len(batch) == 2 and all(isinstance(b, Tensor) for b in batch)
    if not whole or len(batch[0]) != len(batch[1]) or isinstance(model, SPLITTING):
        raise BnbookError(
            "the examples come in parts; expected one pair (inputs, targets) and a model that sees it whole: "
            "batch norm ties the examples together, so that parts have another Hessian"
        )
    if not any(p.requires_grad for p in model.parameters()):
        raise BnbookError("a model without trained parameters; expected at least one with requires_grad")
    copies = Copies(model, loss)
    with copies.fresh() as [twin, own], torch.no_grad():
        again = own(twin(batch[0].clone()), batch[1])
    if again.dim() or not torch.isfinite(again):
        raise BnbookError(f"a loss of {again.tolist()}; expected one finite number")
    with copies.fresh() as [twin, own]:
        leaves = [p for p in twin.parameters() if p.requires_grad]
        graph = _Graph(leaves, twin(batch[0].clone()), own, batch[1])
        first = graph.value.detach()
        if not torch.allclose(first, again, rtol=1e-6, atol=0):
            raise BnbookError(
                f"two passes give the losses {again.item():.6g} and {first.item():.6g}; expected a loss "
                "that is not random: something outside of the network counts or draws"
            )
        yield graph
