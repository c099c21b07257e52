"""The largest eigenvalue of a network's Fisher matrix, exactly, without ever holding the matrix."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from bnbook.errors import BnbookError
from bnbook.probes.functional import slopes
from bnbook.probes.krylov import lanczos
from bnbook.probes.statistics import batch_normalizers, copied

PARAMETERS = ("weights", "all")


@dataclass(frozen=True)
class LargestEigenvalue:
    """λ_max of (1/m) J J^T and how well it is known; `float(...)` is the value."""

    value: float
    # (m, outputs)  the eigenvector over examples and outputs, unit length; J^T of it is the Fisher matrix's
    vector: Tensor
    bound: float  # the Rayleigh quotient of equation 152: of the vector of ones, mean over the outputs
    residual: float  # ‖A v - λ v‖ / λ
    iterations: int

    def __float__(self) -> float:
        return self.value


def largest_eigenvalue(
    model: nn.Module,
    inputs: Tensor,
    outputs: int | str = 0,
    parameters: str = "weights",
    statistics: str = "batch",
    *,
    tolerance: float = 1e-5,
    max_iterations: int = 300,
    chunk: int | None = None,
) -> LargestEigenvalue:
    """λ_max of I = (1/m) Σ_x Σ_o ∇f_o(x) ∇f_o(x)^T, by Lanczos iteration on A = (1/m) J J^T.

    J (m·outputs, parameters) is the Jacobian of the outputs for all m inputs together; A has the same
    eigenvalues as I other than 0 (equations 148 to 151 of the mean-field paper) and at most m·outputs of
    them, so that the iteration works on short vectors. A v takes one vector-Jacobian and one Jacobian-vector
    product of the *whole* batch, on one forward graph: J^T v by autograd, J u as the derivative by w of ⟨J^T
    w, u⟩. outputs: which one, or "all". parameters: "weights" (two axes or more, as in the theory) or "all"
    (biases, γ and β too). statistics: as in `bnbook.probes.statistics.copied`. The iteration ends
    when ‖A v - λ v‖ ≤ tolerance · λ; the error of λ is of the order of tolerance² · λ² / gap. chunk: examples
    to a graph, for memory; only where examples do not meet. BnbookError for unknown choices, for a chunk
    under batch statistics, where the iteration does not converge.
    """
    if parameters not in PARAMETERS:
        raise BnbookError(f"parameters {parameters!r} are unknown; expected one of {', '.join(PARAMETERS)}")
    meet = bool(batch_normalizers(model)) and statistics != "population"
    if chunk is not None and meet:
        raise BnbookError(
            "batch norm ties the examples of a batch together: another batch is another matrix; "
            "expected chunk=None, or statistics='population'"
        )
    with copied(model, statistics) as twin:
        leaves = [p.requires_grad_() for p in twin.parameters() if parameters == "all" or p.ndim >= 2]
        if not leaves:
            raise BnbookError(f"the model has no {parameters}; expected at least one")
        parts = [_Jacobian(twin, leaves, part, outputs) for part in inputs.split(chunk or len(inputs))]
        m, width = len(inputs), parts[0].width

        def product(v: Tensor) -> Tensor:
            """A v, (m·outputs,)."""
            pieces = [
                part.transposed(piece) for part, piece in zip(parts, v.view(m, width).split(chunk or m))
            ]
            total = [sum(gradients) for gradients in zip(*pieces)]
            return torch.cat([part.forward(total).flatten() for part in parts]) / m

        ones = torch.ones(m * width, dtype=inputs.dtype, device=inputs.device)
        value, vector, residual, iterations = lanczos(product, ones, tolerance, max_iterations)
        bound = _mean_output(parts, width, m)
    return LargestEigenvalue(value, vector.view(m, width), bound, residual, iterations)


class _Jacobian:
    """J of one batch, as two linear maps on a graph that is built once."""

    def __init__(self, model: nn.Module, leaves: list[Tensor], inputs: Tensor, outputs: int | str) -> None:
        self.leaves, every = leaves, model(inputs)
        if outputs != "all" and not (
            isinstance(outputs, int) and -every.shape[1] <= outputs < every.shape[1]
        ):
            raise BnbookError(
                f"outputs {outputs!r} of a model with {every.shape[1]}; expected a number below that, or "
                "'all'"
            )
        self.outputs = every if outputs == "all" else every[:, outputs : outputs + 1 or None]
        self.width = self.outputs.shape[1]
        self.weight = torch.zeros_like(self.outputs, requires_grad=True)
        self.gradients = slopes(self.outputs, leaves, self.weight, create_graph=True)

    def transposed(self, v: Tensor) -> list[Tensor]:
        """J^T v, v (B, outputs) -> one tensor a parameter."""
        return slopes(self.outputs, self.leaves, v, retain_graph=True)

    def forward(self, u: list[Tensor]) -> Tensor:
        """J u -> (B, outputs)."""
        return torch.autograd.grad(self.gradients, self.weight, u, retain_graph=True)[0]


def _mean_output(parts: list[_Jacobian], width: int, m: int) -> float:
    """Σ_θ (∂f̄_o/∂θ)², f̄ the mean over the inputs, averaged over the outputs o."""
    found = 0.0
    for output in range(width):
        rows = []
        for part in parts:
            v = torch.zeros_like(part.outputs)
            v[:, output] = 1 / m
            rows.append(part.transposed(v))
        found += sum(sum(gradients).double().square().sum().item() for gradients in zip(*rows))
    return found / width
