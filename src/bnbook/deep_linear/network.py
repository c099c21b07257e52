"""Loss and gradients of many deep linear networks at once, by hand, on the rows of
`bnbook.deep_linear.problem`.

S members of one shape form a stack; a product of 10×10 matrices is one batched call for all of them. No
member's numbers enter another's: one that has diverged is NaN and harms nobody.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from bnbook.deep_linear.problem import Problem

NORMS = ("none", "batch", "l1", "l2", "linf")


@dataclass(frozen=True)
class Parameters:
    """Weights and, where a normalizer has them, γ and β of K normalized layers; also their gradients."""

    weights: Tensor  # (L, S, N, N)
    gamma: Tensor  # (K, S, N), K = 0 where nothing normalizes
    beta: Tensor  # (K, S, N)

    def tensors(self) -> tuple[Tensor, Tensor, Tensor]:
        return self.weights, self.gamma, self.beta

    def moved(self, direction: Parameters, factor: Tensor, layers: int | None = None) -> Parameters:
        """θ - factor · direction, factor (S,); with `layers` only the first so many layers move, γ and β
        included."""
        moved = []
        for here, there in zip(self.tensors(), direction.tensors()):
            factors = factor.view(1, -1, *(1,) * (here.dim() - 2))
            if layers is None:
                moved.append(here - factors * there)
            else:
                moved.append(torch.cat([here[:layers] - factors * there[:layers], here[layers:]]))
        return Parameters(*moved)

    def dot(self, other: Parameters) -> Tensor:
        """The scalar product over all parameters, (S,), summed in one order whatever the stack."""
        products = [
            (a * b).flatten(2).sum(2).T.contiguous().sum(1) for a, b in zip(self.tensors(), other.tensors())
        ]
        return products[0] + products[1] + products[2]

    def minus(self, other: Parameters) -> Parameters:
        return Parameters(*(a - b for a, b in zip(self.tensors(), other.tensors())))

    def zero(self) -> Parameters:
        return Parameters(*(torch.zeros_like(tensor) for tensor in self.tensors()))


@dataclass(frozen=True)
class Network:
    """What the members of a stack have in common, besides their sizes."""

    norm: str = "none"
    eps: float = 1e-5  # the normalizers' own
    normalize_last: bool = False
    affine: bool = True  # whether γ and β are trained; if not they stay at 1 and 0
    scale: float = 1.0  # the loss is scale · Σ ‖f(x) - A x‖²

    def start(self, problem: Problem) -> Parameters:
        """First parameters: the drawn weights, γ = 1, β = 0."""
        depth, members, width = problem.weights.shape[:3]
        count = 0 if self.norm == "none" else depth - (not self.normalize_last)
        gamma = problem.weights.new_ones(count, members, width)
        return Parameters(problem.weights.clone(), gamma, torch.zeros_like(gamma))

    def loss_and_gradients(self, parameters: Parameters, problem: Problem) -> tuple[Tensor, Parameters]:
        """The loss (S,) and its gradients, those for γ and β zero where they are not trained.

        With G the gradient of a layer's output, Z = H W^T what its normalizer got and n the norm that it
        divides by: G_β = Σ G, G_γ = Σ G (Z - mean) / n, G_Z = γ/n (G - mean - G_γ ∂n/∂Z), G_W = G_Z^T H, and
        G_Z W for the layer before.
        """
        layers = self.forward(parameters, problem)
        error = layers[-1].handed_on - problem.targets
        loss = self.scale * (error * error).sum((1, 2))
        gradients = parameters.zero()
        g = (2 * self.scale) * error
        for index in range(len(layers) - 1, -1, -1):
            layer = layers[index]
            if layer.norm is not None:
                if self.affine:
                    gradients.beta[index] = math.sqrt(problem.examples) * g[:, 0]
                g[:, 0] = 0.0  # centring: the mean over the examples has no influence
                gradient_gamma = (g * layer.linear).sum(1) / layer.norm
                if self.affine:
                    gradients.gamma[index] = gradient_gamma
                g.addcmul_(layer.direction, (gradient_gamma * layer.slope)[:, None], value=-1.0)
                if self.norm == "batch":
                    g[:, 0] = 0.0  # nor has it on the variance; the other norms are of the uncentred values
                g.mul_((parameters.gamma[index] / layer.norm)[:, None])
            before = layers[index - 1].handed_on if index else problem.inputs
            torch.bmm(g.transpose(1, 2), before, out=gradients.weights[index])
            if index:
                g = torch.bmm(g, parameters.weights[index])
        return loss, gradients

    def forward(self, parameters: Parameters, problem: Problem) -> list[Layer]:
        """Every layer's part of the forward pass, in rows."""
        layers, rows = [], problem.inputs
        for index, weight in enumerate(parameters.weights):
            layer = Layer(torch.bmm(rows, weight.transpose(1, 2)))
            if index < len(parameters.gamma):
                self._normalize(layer, parameters.gamma[index], parameters.beta[index], problem)
            layers.append(layer)
            rows = layer.handed_on
        return layers

    def _normalize(self, layer: Layer, gamma: Tensor, beta: Tensor, problem: Problem) -> None:
        """Centre, divide by the norm n, scale by γ, shift by β; as `bnbook.normalizers`, eps included.

        "batch": n = sqrt(variance + eps), "l2": sqrt(mean z² + eps), "l1": mean |z| + eps, "linf": max |z| +
        eps.
        """
        z, m = layer.linear, problem.examples
        if self.norm in ("batch", "l2"):
            squares = z * z
            layer.norm = ((squares[:, 1:] if self.norm == "batch" else squares).sum(1) / m + self.eps).sqrt()
            layer.direction, layer.slope = z, 1 / (m * layer.norm)
        else:
            power, layer.direction = _mean_absolute(z, problem) if self.norm == "l1" else _maximum(z, problem)
            layer.norm = power + self.eps
            layer.slope = torch.ones_like(power)
        layer.handed_on = z * (gamma / layer.norm)[:, None]
        layer.handed_on[:, 0] = math.sqrt(m) * beta


class Layer:
    """What one layer computes on the way forward; the last three stay None where nothing normalizes."""

    def __init__(self, linear: Tensor) -> None:
        self.linear = linear  # (S, R, N), Z = H W^T
        self.handed_on = linear  # (S, R, N), what the next layer gets
        self.norm: Tensor | None = None  # (S, N), n
        self.direction: Tensor | None = None  # (S, R, N), and with it
        self.slope: Tensor | None = None  # (S, N): ∂n/∂Z = slope · direction


def _mean_absolute(z: Tensor, problem: Problem) -> tuple[Tensor, Tensor]:
    """Mean |z| over the examples, (S, N), and its derivative by the rows: sign(z) / m, in the basis."""
    signs = torch.bmm(problem.basis.transpose(1, 2), z).sign_()  # (S, m, N)
    direction = torch.bmm(problem.basis, signs) / problem.examples
    return (direction * z).sum(1), direction  # Σ |z| = Σ sign(z) z


def _maximum(z: Tensor, problem: Problem) -> tuple[Tensor, Tensor]:
    """max |z| over the examples, (S, N), and its derivative: the sign of z at the place of the maximum, in
    the basis.

    Two examples that share a maximum to the last bit would share the derivative in `bnbook.normalizers.lp`;
    in a product of random matrices that does not happen, and the first is taken.
    """
    sizes = torch.bmm(z.transpose(1, 2), problem.basis).abs_()  # (S, N, m)
    place = sizes.argmax(2)[:, None].expand(-1, z.shape[1], -1)  # (S, R, N)
    direction = problem.basis.gather(2, place)
    value = (direction * z).sum(1)
    return value.abs(), direction * value.sign()[:, None]
