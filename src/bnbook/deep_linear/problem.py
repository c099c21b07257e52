"""The regression problem of a deep linear network, and the few numbers through which the network sees its
data.

Whatever a layer of a linear network hands on is an affine function of the example x. Collected over the m
examples, as a matrix (m, N), it therefore lies in the span of N + 1 fixed columns: the constant and the N
inputs. In an orthonormal basis of that span, N + 1 columns, whose first column is the constant 1/√m, every
such matrix is given by N + 1 *rows*:

    row 0 = √m · mean of each unit,      sum over the rows 1 ... N of squares = m · variance of each unit.

Sums of products over the examples are sums over the rows. So 11 rows stand for 1,000 examples without any
loss: the rows of the input are its first two moments, and training on them is training on the data.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from bnbook.errors import BnbookError

INITIALISATIONS = ("glorot", "glorot-normal")


@dataclass(frozen=True)
class Problem:
    """Data, target and first weights of S members, all float64; R = N + 1 rows."""

    inputs: Tensor  # (S, R, N), rows of x
    targets: Tensor  # (S, R, N), rows of A x
    basis: Tensor  # (S, R, m): its transpose times the rows gives the examples back
    weights: Tensor  # (L, S, N, N), the layers' first weights W_1 ... W_L in the order in which they act

    @property
    def examples(self) -> int:
        return self.basis.shape[2]

    def target_energies(self) -> Tensor:
        """The squared singular values of the targets as a matrix (m, N), largest first, (S, N).

        Their sum is the loss (summed over examples) of answering zero; the sum without the k largest is the
        least loss that a map of rank k can have, "the energy in the smallest singular directions of A" as the
        data see them.
        """
        return torch.linalg.svdvals(self.targets) ** 2


def draw_problem(
    seeds: list[int],
    depth: int = 25,
    width: int = 10,
    examples: int = 1_000,
    init: str = "glorot",
    data_std: float = 1.0,
    device: str = "cpu",
) -> Problem:
    """Draw the problem of each seed; the same seed gives the same data, A and weights in every arm.

    x ~ N(0, data_std²) per coordinate, A_ij ~ N(0, 1); weights "glorot": U(-a, a), a² = 6 / 2N,
    "glorot-normal": N(0, 2 / 2N), as `bnbook.models.building.initialise` has them. Data, A and weights come
    from generators of their own, so another depth or initialisation leaves the data as they are.
    Source: Santurkar et al. 2018, appendix A.1.
    Errors: BnbookError for an unknown initialisation, or fewer than N + 2 examples.
    """
    if init not in INITIALISATIONS:
        raise BnbookError(f"unknown initialisation {init!r}; expected one of {', '.join(INITIALISATIONS)}")
    if examples < width + 2:
        raise BnbookError(f"{examples} examples of width {width}; expected at least {width + 2}")
    drawn = [_draw_member(seed, depth, width, examples, init, data_std) for seed in seeds]
    inputs, targets, basis, weights = (torch.stack(column) for column in zip(*drawn))
    contiguous = weights.transpose(0, 1).contiguous()
    return Problem(inputs.to(device), targets.to(device), basis.to(device), contiguous.to(device))


def draw_examples(seed: int, width: int, examples: int, data_std: float = 1.0) -> tuple[Tensor, Tensor]:
    """The examples x (m, N) and the matrix A (N, N) of a seed."""
    x = data_std * torch.randn(examples, width, generator=_generator(seed, 0), dtype=torch.float64)
    return x, torch.randn(width, width, generator=_generator(seed, 1), dtype=torch.float64)


def rows_of(x: Tensor) -> tuple[Tensor, Tensor]:
    """The rows (N + 1, N) of examples x (m, N), and the transposed orthonormal basis (N + 1, m) that they
    refer to."""
    m = x.shape[0]
    mean = x.mean(0)
    directions, triangle = torch.linalg.qr(x - mean)
    constant = torch.full((m, 1), 1 / math.sqrt(m), dtype=x.dtype)
    return torch.cat([math.sqrt(m) * mean[None], triangle]), torch.cat(
        [constant, directions], dim=1
    ).T.contiguous()


def _draw_member(
    seed: int, depth: int, width: int, examples: int, init: str, data_std: float
) -> tuple[Tensor, ...]:
    x, a = draw_examples(seed, width, examples, data_std)
    inputs, basis = rows_of(x)
    shape, generator = (depth, width, width), _generator(seed, 2)
    if init == "glorot":
        bound = math.sqrt(6 / (2 * width))
        weights = bound * (2 * torch.rand(shape, generator=generator, dtype=torch.float64) - 1)
    else:
        weights = math.sqrt(2 / (2 * width)) * torch.randn(shape, generator=generator, dtype=torch.float64)
    return inputs, inputs @ a.T, basis, weights


def _generator(seed: int, stream: int) -> torch.Generator:
    return torch.Generator().manual_seed(1_000_003 * seed + stream)
