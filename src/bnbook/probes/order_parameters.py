"""The order parameters of a real network on real inputs, exactly over all pairs of different inputs and
places."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bnbook.errors import BnbookError
from bnbook.probes.statistics import copied, seen_in

CHUNK = 64  # inputs whose gradients by a filter are held at once


@dataclass(frozen=True)
class OrderParameters:
    """Order parameters by layer for m inputs: index the paper's l, NaN where none is defined, float64.

    Means over the places α of a map (one in a fully connected layer); the plain letters over the m inputs,
    the letters xy over the m(m-1) pairs of different inputs, ab over pairs of different places too (equations
    17 to 19 and 29 to 33 of the mean-field paper, for one network instead of its ensemble).
    """

    q: np.ndarray  # (L+1,)  mean ‖z_α^l(x)‖² / C_l; NaN at 0
    q_hat: np.ndarray  # (L+1,)  mean ‖h_α^l(x)‖² / C_l; NaN at L
    q_xy: np.ndarray  # (L+1,)  mean ⟨z_α^l(x), z_α^l(y)⟩ / C_l; NaN at 0
    q_hat_xy: np.ndarray  # (L+1,)  mean ⟨h_α^l(x), h_α^l(y)⟩ / C_l; NaN at L
    q_tilde: np.ndarray  # (L+1,)  mean ‖δ_α^l(x)‖²; NaN at 0
    q_tilde_xy: np.ndarray  # (L+1,)  mean ⟨δ_α^l(x), δ_α^l(y)⟩; NaN at 0
    q_ab_xy: np.ndarray  # (L+1,)  mean ⟨z_α^l(x), z_β^l(y)⟩ / C_l; NaN where a layer has one place
    q_hat_ab_xy: np.ndarray  # (L+1,)  mean ⟨h_α^l(x), h_β^l(y)⟩ / C_l; likewise
    q_tilde_ab_xy: np.ndarray  # (L+1,)  mean ⟨δ_α^l(x), δ_β^l(y)⟩; likewise
    f: np.ndarray  # (L,)  f[l-1] = ‖∂f̄/∂W^l‖², f̄ the mean output: equations 159 and 165 for these inputs
    f_pairs: np.ndarray  # (L,)  the same over the pairs of different inputs
    inputs: int  # m
    statistics: str

    @property
    def lambda_bound(self) -> float:
        """Σ_l f_l = ‖∇_W mean_x f(x)‖² ≤ λ_max of the Fisher matrix of these inputs (equation 152)."""
        return float(self.f.sum())


def measure(model: nn.Module, inputs: Tensor, statistics: str = "detached") -> OrderParameters:
    """Measure the order parameters of `model` on `inputs` (m, ...), with the statistics of these inputs.

    z^l is the output of the l-th linear or convolutional layer in forward order, h^l the input of the next
    one (h^0: of the first) and δ^l(x) = ∂ Σ_y f(y) / ∂z^l(x), y over the m inputs, f the first output. With
    statistics "detached" (mean and variance are constants, the theory's assumption) f(y) depends on z^l(y)
    alone and δ^l(x) = ∂f(x)/∂z^l(x), equation 19; with "batch" the gradient also flows through the
    statistics; "population" takes the running averages (`bnbook.probes.statistics`). No loop
    over pairs: Σ_{x≠y} ⟨a(x), a(y)⟩ = ‖Σ_x a(x)‖² - Σ_x ‖a(x)‖².

    The model runs in training mode on copies of its buffers and is left as it was.
    BnbookError for fewer than two inputs, an unknown `statistics`, a model without linear layers, and, with
    "detached", for normalizers over the batch other than batch norm.
    """
    if inputs.ndim < 2 or len(inputs) < 2:
        raise BnbookError(f"inputs have shape {tuple(inputs.shape)}; expected two or more, shape (m, ...)")
    layers, activations, preactivations, gradients = _forward_backward(model, inputs, statistics)

    depth = len(preactivations)
    q, q_hat, q_tilde = np.full(
        (3, 3, depth + 1), np.nan
    )  # each over x = y; over pairs; over pairs of places, too
    f, f_pairs = np.zeros((2, depth))
    for l in range(1, depth + 1):
        h, z, delta = activations[l - 1], preactivations[l - 1], gradients[l - 1]
        before = preactivations[l - 2].shape[1] if l > 1 else h.shape[1]  # undoes the readout's flattening
        q_hat[:, l - 1] = _means(h, before) / before
        q[:, l] = _means(z, z.shape[1]) / z.shape[1]
        q_tilde[:, l] = _means(delta, z.shape[1])
        f[l - 1], f_pairs[l - 1] = _products(layers[l - 1], h, delta)
    one, pairs, apart = zip(q, q_hat, q_tilde)
    q, q_hat, q_tilde = one
    return OrderParameters(
        q, q_hat, pairs[0], pairs[1], q_tilde, pairs[2], *apart, f, f_pairs, len(inputs), statistics
    )


def _means(a: Tensor, units: int) -> np.ndarray:
    """Means of ⟨a_α(x), a_β(y)⟩, a (m, C, H, W) or, flattened, (m, C H W): over x = y, α = β; x ≠ y, α = β; x ≠ y,
    α ≠ β (NaN for one place), (3,)."""
    a = a.reshape(len(a), units, -1).double()
    m, _, places = a.shape
    same = a.square().sum().item()
    one_place = a.sum(dim=0).square().sum().item() - same
    apart = a.sum(dim=(0, 2)).square().sum().item() - a.sum(dim=2).square().sum().item() - one_place
    pairs = m * (m - 1) * places
    apart = apart / (pairs * (places - 1)) if places > 1 else float("nan")
    return np.array([same / (m * places), one_place / pairs, apart])


def _products(layer: nn.Module, h: Tensor, delta: Tensor) -> tuple[float, float]:
    """‖(1/m) Σ_x ∂f(x)/∂W‖², the mean over all m² pairs, and the mean over x ≠ y."""
    m, total, same = len(h), 0.0, 0.0
    for start in range(0, m, CHUNK):
        part, seen = h[start : start + CHUNK], delta[start : start + CHUNK]
        if isinstance(layer, nn.Linear):
            total = total + (seen.T @ part).double()
            same += (part.double().square().sum(dim=1) * seen.double().square().sum(dim=1)).sum().item()
        else:
            patches = F.unfold(
                part, layer.kernel_size, layer.dilation, layer.padding, layer.stride
            )  # (B, C F, places)
            each = torch.einsum("bop,bip->boi", seen.flatten(2), patches)
            total = total + each.double().sum(dim=0)
            same += each.double().square().sum().item()
    everything = total.square().sum().item()
    return everything / m**2, (everything - same) / (m * (m - 1))


def _forward_backward(model: nn.Module, inputs: Tensor, statistics: str) -> tuple[Sequence, ...]:
    """Every linear and convolutional layer in forward order, and its h^{l-1}, z^l and δ^l, each (m, N) or (m,
    C, H, W)."""
    with copied(model, statistics) as twin:
        layers = {name: m for name, m in twin.named_modules() if isinstance(m, (nn.Linear, nn.Conv2d))}
        seen = seen_in(layers)
        outputs = twin(inputs.detach().requires_grad_())  # a frozen model has a gradient too
        if not seen or any(z.ndim not in (2, 4) for _, z in seen.values()):
            raise BnbookError(
                "the model has no linear layers on (m, N) or (m, C, H, W); expected an MLP or a CNN"
            )
        if any(getattr(layers[name], "groups", 1) != 1 for name in seen):
            raise BnbookError("grouped convolutions have no order parameters here; expected groups=1")
        activations, preactivations = zip(*seen.values())
        gradients = torch.autograd.grad(outputs[:, 0].sum(), preactivations)
    detached = [[each.detach() for each in tensors] for tensors in (activations, preactivations)]
    return [layers[name] for name in seen], *detached, gradients
