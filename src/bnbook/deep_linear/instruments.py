"""Probes of a whole stack at once: along the gradient, along a random direction, covariate shift, layer
moments, correlations of inputs and gradients.

The quantities are those of `bnbook.probes.landscape` and `bnbook.probes.covariate_shift`, for S members
together. They read the parameters and change nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from bnbook.deep_linear.network import Network, Parameters
from bnbook.deep_linear.problem import Problem
from bnbook.errors import BnbookError

#: Levels of the quantiles kept of the distribution of a unit over the examples.
LEVELS = (0.02, 0.1, 0.25, 0.5, 0.75, 0.9, 0.98)


def along(
    network: Network,
    parameters: Parameters,
    problem: Problem,
    gradient: Parameters,
    direction: Parameters,
    lengths: Sequence[float],
    rates: Tensor,
) -> dict[str, Tensor]:
    """Loss and gradient at θ - a η d for the lengths a, rates η (S,) and direction d: three arrays (S, A).

    distance = ‖∇L(θ) - ∇L(θ - a η d)‖, norm = ‖∇L(θ - a η d)‖, over all trained parameters.
    Source: Santurkar et al. 2018, section 3.2 and appendix A.2.2, with d = ∇L(θ).
    """
    found = []
    for length in lengths:
        loss, there = network.loss_and_gradients(parameters.moved(direction, length * rates), problem)
        change = gradient.minus(there)
        found.append(dict(loss=loss, distance=change.dot(change).sqrt(), norm=there.dot(there).sqrt()))
    if not found:
        return dict.fromkeys(("loss", "distance", "norm"), rates.new_empty(len(rates), 0))
    return _columns(found)


def random_direction(
    like: Parameters, lengths: Tensor, seeds: Sequence[int], trained_affine: bool = True
) -> Parameters:
    """An isotropic direction over all trained parameters for each member, of length `lengths` (S,).

    The numbers hang on the member's seed alone, the weights' drawn first: all arms move their weights alike.
    """
    drawn = []
    for seed in seeds:
        generator = torch.Generator().manual_seed(seed)
        drawn.append(
            [
                torch.randn(t.shape[:1] + t.shape[2:], generator=generator, dtype=t.dtype)
                for t in like.tensors()
            ]
        )
    stacked = [torch.stack(column, dim=1).to(like.weights.device) for column in zip(*drawn)]
    if not trained_affine:
        stacked[1:] = [torch.zeros_like(tensor) for tensor in stacked[1:]]
    direction = Parameters(*stacked)
    return direction.zero().moved(direction, -lengths / direction.dot(direction).sqrt())


def covariate_shift(
    network: Network, parameters: Parameters, problem: Problem, gradient: Parameters, rates: Tensor
) -> dict[str, Tensor]:
    """Internal covariate shift of every layer: three arrays (S, L).

    G_i is the gradient of W_i, G'_i the same after weights, γ and β of all earlier layers have made their
    step of gradient descent; distance = ‖G_i - G'_i‖, cosine = G_i · G'_i / ‖G_i‖ ‖G'_i‖, norm = ‖G_i‖.
    Source: Santurkar et al. 2018, Definition 2.1 (NeurIPS; 2.2 in the captions of v1).
    """
    found = []
    for layer, g in enumerate(gradient.weights):
        shifted, norm = g, _length(g)
        if layer:
            moved = parameters.moved(gradient, rates, layers=layer)
            shifted = network.loss_and_gradients(moved, problem)[1].weights[layer]
        cosine = (g * shifted).sum((1, 2)) / (norm * _length(shifted))
        found.append(dict(distance=_length(g - shifted), cosine=cosine, norm=norm))
    return _columns(found)


def activations(network: Network, parameters: Parameters, problem: Problem) -> dict[str, Tensor]:
    """What the linear maps give, before a normalizer: mean and deviation (S, L, N); quantiles (S, L, LEVELS)
    of unit 0.

    handed_on_mean, handed_on_deviation, handed_on_quantiles: the same of what the next layer gets.
    """
    found, levels = [], problem.inputs.new_tensor(LEVELS)
    for layer in network.forward(parameters, problem):
        found.append({})
        for prefix, rows in (("", layer.linear), ("handed_on_", layer.handed_on)):
            values = torch.bmm(rows[:, :, :1].transpose(1, 2), problem.basis)[:, 0]  # (S, m)
            found[-1] |= {
                f"{prefix}mean": rows[:, 0] / problem.examples**0.5,
                f"{prefix}deviation": _deviation(rows, problem),
                f"{prefix}quantiles": torch.quantile(values, levels, dim=1).T,
            }
    return _columns(found)


def _columns(found: Sequence[dict[str, Tensor]]) -> dict[str, Tensor]:
    """Of layers or lengths, each with its values (S, ...): all of them, (S, K, ...)."""
    return {name: torch.stack([one[name] for one in found], dim=1) for name in found[0]}


def _length(matrices: Tensor) -> Tensor:
    return (matrices * matrices).sum((1, 2)).sqrt()


def _deviation(rows: Tensor, problem: Problem) -> Tensor:
    """Of each unit over the examples, (S, N)."""
    return ((rows[:, 1:] ** 2).sum(1) / problem.examples).sqrt()


def correlations(network: Network, parameters: Parameters, problem: Problem) -> dict[str, Tensor]:
    """c_ij of every weight of the plain network, and whether it makes Theorem 3.2 of version 1 say anything.

    c_ij = ⟨g_j, x_i⟩² / (‖g_j‖² ‖x_i‖²) over the m examples, with x_i the layer's i-th input and g_j the
    gradient of the loss for its j-th output y_j (equation 9 has it so; under the printed word, correlation,
    the theorem is wrong). correlation (S, L): its median over a layer's weights; bounded (S, L): the share of
    them with σ(y_j) ≥ (1 + |c_ij|^(-1/2)) / 2, where the theorem with its best constant bounds the derivative
    with batch norm by the plain one. NaN after a divergence. Errors: BnbookError for a network that
    normalizes.
    Source: Santurkar et al. 2018, version 1, Theorem 3.2 and the sentence after it.
    """
    if network.norm != "none":
        raise BnbookError(f"correlations of a network with norm {network.norm!r}; expected the plain one")
    layers = network.forward(parameters, problem)
    g = (2 * network.scale) * (layers[-1].handed_on - problem.targets)
    medians, shares = [], []
    for index in range(len(layers) - 1, -1, -1):
        x = layers[index - 1].handed_on if index else problem.inputs
        deviation = _deviation(layers[index].linear, problem)  # (S, N), of y_j
        squares = (g**2).sum(1)[:, :, None] * (x**2).sum(1)[:, None]  # (S, N, N): output j, input i
        c = (torch.bmm(g.transpose(1, 2), x) ** 2 / squares).flatten(1)
        bounded = deviation.repeat_interleave(x.shape[2], 1) >= (1 + c**-0.5) / 2
        medians.append(c.median(1).values)
        shares.append(torch.where(torch.isfinite(c).all(1), bounded.double().mean(1), torch.nan))
        g = torch.bmm(g, parameters.weights[index])
    return {"correlation": torch.stack(medians[::-1], dim=1), "bounded": torch.stack(shares[::-1], dim=1)}
