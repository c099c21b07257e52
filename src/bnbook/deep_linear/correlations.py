"""How strongly what enters a layer goes with the gradient of what it puts out, weight by weight."""

from __future__ import annotations

import torch
from torch import Tensor

from bnbook.deep_linear.network import Network, Parameters
from bnbook.deep_linear.problem import Problem
from bnbook.errors import BnbookError


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
        deviation = ((layers[index].linear[:, 1:] ** 2).sum(1) / problem.examples).sqrt()  # (S, N), of y_j
        squares = (g**2).sum(1)[:, :, None] * (x**2).sum(1)[:, None]  # (S, N, N): output j, input i
        c = (torch.bmm(g.transpose(1, 2), x) ** 2 / squares).flatten(1)
        bounded = deviation.repeat_interleave(x.shape[2], 1) >= (1 + c**-0.5) / 2
        medians.append(c.median(1).values)
        shares.append(torch.where(torch.isfinite(c).all(1), bounded.double().mean(1), torch.nan))
        g = torch.bmm(g, parameters.weights[index])
    return {"correlation": torch.stack(medians[::-1], dim=1), "bounded": torch.stack(shares[::-1], dim=1)}
