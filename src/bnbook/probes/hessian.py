"""The curvature of a network's loss as training feels it: the Hessian's largest eigenvalue, and along the
gradient."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from bnbook.errors import BnbookError
from bnbook.probes.copies import Copies
from bnbook.probes.functional import Batch, Loss
from bnbook.probes.krylov import lanczos

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
    with _gradient(model, loss, batch) as graph:
        g = graph.flat.detach()
        start = g if g.norm() > 0 else torch.ones_like(g)
        if not torch.isfinite(g).all():
            raise BnbookError("the gradient is not finite; expected a training that has not diverged")
        value, vector, residual, iterations = lanczos(graph.product, start, tolerance, max_iterations)
        sizes = [p.numel() for p in graph.leaves]
        shaped = [v.view_as(p) for v, p in zip(vector.split(sizes), graph.leaves, strict=True)]
        return LargestCurvature(value, shaped, graph.along(), float(g.norm()), residual, iterations)


def curvature_along_gradient(model: nn.Module, loss: Loss, batch: Batch) -> tuple[float, float]:
    """g^T H g and ‖g‖² of a batch, whose ratio is the curvature along its own gradient: one product with H.

    Model and errors as in `largest_curvature`.
    """
    with _gradient(model, loss, batch) as graph:
        g = graph.flat.detach().double()
        return float(g @ graph.product(graph.flat.detach()).double()), float(g @ g)


@dataclass(frozen=True)
class _Gradient:
    """∇L as one vector, on a graph that is built once."""

    leaves: list[Tensor]
    flat: Tensor  # (parameters,)

    def product(self, u: Tensor) -> Tensor:
        """H u, (parameters,)."""
        found = torch.autograd.grad(self.flat, self.leaves, u, retain_graph=True, allow_unused=True)
        return torch.cat(
            [(torch.zeros_like(p) if h is None else h).flatten() for p, h in zip(self.leaves, found)]
        )

    def along(self) -> float:
        """g^T H g / ‖g‖²."""
        g = self.flat.detach()
        square = float(g.double() @ g.double())
        return float(g.double() @ self.product(g).double()) / square if square else float("nan")


@contextmanager
def _gradient(model: nn.Module, loss: Loss, batch: Batch) -> Iterator[_Gradient]:
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
    with copies.fresh() as [twin, own]:
        parameters = [p for p in twin.parameters() if p.requires_grad]
        first = own(twin(batch[0].clone()), batch[1])
        if first.dim() or not torch.isfinite(first):
            raise BnbookError(f"a loss of {first.tolist()}; expected one finite number")
        if not torch.allclose(first.detach(), again, rtol=1e-6, atol=0):
            raise BnbookError(
                f"two passes give the losses {again.item():.6g} and {first.item():.6g}; expected a loss "
                "that is not random: something outside of the network counts or draws"
            )
        gradients = torch.autograd.grad(first, parameters, create_graph=True, allow_unused=True)
        pieces = [torch.zeros_like(p) if g is None else g for p, g in zip(parameters, gradients)]
        yield _Gradient(parameters, torch.cat([piece.flatten() for piece in pieces]))
