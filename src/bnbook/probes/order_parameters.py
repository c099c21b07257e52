"""The six order parameters of a real network on real inputs, exactly over all pairs of different inputs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from bnbook.errors import BnbookError
from bnbook.normalizers.base import BatchNormalizer
from bnbook.normalizers.batch import BatchNorm

STATISTICS = ("detached", "batch")


@dataclass(frozen=True)
class OrderParameters:
    """Order parameters by layer for m inputs: index the paper's l, NaN where none is defined, float64.

    The plain letters are means over the m inputs, the letters xy over the m(m-1) pairs of different inputs
    (equations 17 to 19 of the mean-field paper, for one network instead of its ensemble).
    """

    q: np.ndarray  # (L+1,)  mean ‖z^l(x)‖² / N_l; NaN at 0
    q_hat: np.ndarray  # (L+1,)  mean ‖h^l(x)‖² / N_l; NaN at L
    q_xy: np.ndarray  # (L+1,)  mean ⟨z^l(x), z^l(y)⟩ / N_l; NaN at 0
    q_hat_xy: np.ndarray  # (L+1,)  mean ⟨h^l(x), h^l(y)⟩ / N_l; NaN at L
    q_tilde: np.ndarray  # (L+1,)  mean ‖δ^l(x)‖²; NaN at 0
    q_tilde_xy: np.ndarray  # (L+1,)  mean ⟨δ^l(x), δ^l(y)⟩; NaN at 0
    f: np.ndarray  # (L,)  f[l-1]: mean over m² pairs of ⟨h^{l-1}(x), h^{l-1}(y)⟩ ⟨δ^l(x), δ^l(y)⟩, eq. 159
    f_pairs: np.ndarray  # (L,)  the same over the pairs of different inputs
    inputs: int  # m
    statistics: str

    @property
    def lambda_bound(self) -> float:
        """Σ_l f_l = ‖∇_W mean_x f(x)‖² ≤ λ_max of the Fisher matrix of these inputs (equation 152)."""
        return float(self.f.sum())


def measure(model: nn.Module, inputs: Tensor, statistics: str = "detached") -> OrderParameters:
    """Measure the order parameters of `model` on `inputs` (m, ...), with the statistics of these inputs.

    z^l is the output of the l-th linear layer in forward order, h^l the input of the next one (h^0: of the
    first) and δ^l(x) = ∂ Σ_y f(y) / ∂z^l(x), y over the m inputs, f the first output. With statistics
    "detached" (mean and variance are constants, the theory's assumption) f(y) depends on z^l(y) alone and
    δ^l(x) = ∂f(x)/∂z^l(x), equation 19; with "batch" the gradient also flows through the statistics. No loop
    over pairs: Σ_{x≠y} ⟨a(x), a(y)⟩ = ‖Σ_x a(x)‖² - Σ_x ‖a(x)‖².

    The model runs in training mode on copies of its buffers and is left as it was.
    BnbookError for fewer than two inputs, an unknown `statistics`, a model without linear layers on (m, N)
    inputs, and, with "detached", for normalizers over the batch other than batch norm.
    """
    if statistics not in STATISTICS:
        raise BnbookError(f"statistics {statistics!r} is unknown; expected one of {', '.join(STATISTICS)}")
    if inputs.ndim < 2 or len(inputs) < 2:
        raise BnbookError(f"inputs have shape {tuple(inputs.shape)}; expected two or more, shape (m, ...)")
    activations, preactivations, gradients = _forward_backward(model, inputs, statistics == "detached")

    depth, m = len(preactivations), len(inputs)
    q, q_hat, q_xy, q_hat_xy, q_tilde, q_tilde_xy = np.full((6, depth + 1), np.nan)
    f, f_pairs = np.zeros((2, depth))
    for l in range(1, depth + 1):  # noqa: E741, the paper's letter
        h, z, delta = activations[l - 1], preactivations[l - 1], gradients[l - 1]
        q_hat[l - 1], q_hat_xy[l - 1] = _means(h) / h.shape[1]
        q[l], q_xy[l] = _means(z) / z.shape[1]
        q_tilde[l], q_tilde_xy[l] = _means(delta)
        f[l - 1], f_pairs[l - 1] = _products(h, delta)
    return OrderParameters(q, q_hat, q_xy, q_hat_xy, q_tilde, q_tilde_xy, f, f_pairs, m, statistics)


def _means(a: Tensor) -> np.ndarray:
    """Mean of ‖a(x)‖² over x and of ⟨a(x), a(y)⟩ over x ≠ y; a (m, N) -> (2,)."""
    m, a = len(a), a.double()
    same = a.square().sum()
    pairs = a.sum(dim=0).square().sum() - same
    return np.array([same.item() / m, pairs.item() / (m * (m - 1))])


def _products(h: Tensor, delta: Tensor) -> np.ndarray:
    """Mean of ⟨h(x), h(y)⟩ ⟨δ(x), δ(y)⟩ over all pairs, ‖(1/m) Σ_x δ(x) h(x)ᵀ‖², and over x ≠ y; -> (2,)."""
    m = len(h)
    everything = (delta.T @ h).double().square().sum().item()
    same = (h.double().square().sum(dim=1) * delta.double().square().sum(dim=1)).sum().item()
    return np.array([everything / m**2, (everything - same) / (m * (m - 1))])


def _forward_backward(model: nn.Module, inputs: Tensor, detached: bool) -> tuple[list[Tensor], ...]:
    """h^{l-1}, z^l and δ^l of every linear layer, each (m, N), in forward order."""
    activations: list[Tensor] = []
    preactivations: list[Tensor] = []

    def keep(module: nn.Module, arguments: tuple[Tensor, ...], output: Tensor) -> None:
        activations.append(arguments[0].detach())
        preactivations.append(output)

    normalizers = _batch_normalizers(model) if detached else []
    hooks = [m.register_forward_hook(keep) for m in model.modules() if isinstance(m, nn.Linear)]
    hooks += [m.register_forward_hook(_hold_statistics) for m in normalizers]
    modes = [(module, module.training) for module in model.modules()]
    # Buffers are updated in place: the pass works on copies, so even an error leaves the model as it was.
    buffers = {name: buffer.clone() for name, buffer in model.named_buffers()}
    try:
        model.train()
        with torch.enable_grad(), torch.random.fork_rng():
            leaf = inputs.detach().requires_grad_()  # a frozen model has a gradient too
            outputs = torch.func.functional_call(model, buffers, (leaf,))
            if not preactivations or any(z.ndim != 2 for z in preactivations):
                raise BnbookError("the model has no linear layers on (m, N) inputs; expected an MLP")
            gradients = torch.autograd.grad(outputs[:, 0].sum(), preactivations)
    finally:
        for hook in hooks:
            hook.remove()
        for module, training in modes:
            module.training = training
    return activations, [z.detach() for z in preactivations], list(gradients)


def _batch_normalizers(model: nn.Module) -> list[nn.Module]:
    """The layers whose statistics are held constant; a layer that mixes inputs in another way is refused."""
    found = [m for m in model.modules() if isinstance(m, (BatchNormalizer, nn.modules.batchnorm._NormBase))]
    for module in found:
        if not isinstance(module, (BatchNorm, nn.BatchNorm1d)):
            raise BnbookError(
                f"constant statistics are defined for batch norm, not for {type(module).__name__}; "
                "expected norm 'none' or 'batch', or statistics='batch'"
            )
    return found


def _hold_statistics(module: nn.Module, arguments: tuple[Tensor, ...], output: Tensor) -> Tensor:
    """Give a batch norm layer's output the gradient that it has with mean and variance held constant."""
    (z,) = arguments
    scale = (z.detach().var(dim=0, correction=0) + module.eps).rsqrt()
    if module.weight is not None:
        scale = scale * module.weight.detach()
    return output.detach() + scale * (z - z.detach())
