"""Many small dense residual networks at once: batch norm or nothing on the branches, and how branches are added."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import torch
import torch.nn.functional as F
from torch import Tensor

from bnbook.data import load
from bnbook.studies.decay.network import pooled

#: Parts of a network with the members first in each block, (L, M, ...), or first of all, (M, ...).
Network = dict[str, Tensor]
EPS = 1e-5  # torch's own


@dataclass(frozen=True)
class Arm:
    """How the blocks of a member are put together: x ← (k x + α f(x)) / s."""

    norm: str = "none"  # of both layers of a branch and in front of the readout; or "batch"
    alpha: float = 1.0  # α at the start
    learned: bool = False  # whether α is trained
    gamma: float = 1.0  # γ of each branch's last batch norm at the start
    divisor: float = 1.0  # s
    skip: bool = True  # k = 1; else 0, a plain network


def draw(
    arms: Sequence[Arm],
    inputs: int,
    width: int,
    blocks: int,
    seed: int,
    classes: int = 10,
    dtype: torch.dtype = torch.float32,
) -> Network:
    """One network, a member for each arm: He's weights, the same for all, zero biases.

    stem (M, N, inputs) from N(0, 1 / inputs); inner (L, M, N, N) from N(0, 1 / N), outer (L, M, N, N) from
    N(0, 2 / N), behind a rectifier; readout (M, classes, N) from N(0, 1 / N). γ and β of both layers
    (L, M, N), of the norm in front of the readout (M, N); β is the bias where there is no norm. alpha (L, M).
    """
    generator = torch.Generator().manual_seed(seed)

    def normal(*shape: int, variance: float) -> Tensor:
        return torch.randn(*shape, generator=generator, dtype=torch.float64) * variance**0.5

    members = len(arms)
    one = {
        "stem": normal(width, inputs, variance=1 / inputs),
        "inner": normal(blocks, width, width, variance=1 / width),
        "outer": normal(blocks, width, width, variance=2 / width),
        "readout": normal(classes, width, variance=1 / width),
    }
    network = {
        name: part.unsqueeze(-3).repeat(*[1] * (part.ndim - 2), members, 1, 1) for name, part in one.items()
    }
    ones = torch.ones(blocks, members, width, dtype=torch.float64)
    last = torch.tensor([arm.gamma for arm in arms], dtype=torch.float64).view(1, -1, 1)
    network |= {"inner_gamma": ones, "outer_gamma": ones * last, "final_gamma": ones[0]}
    network |= {"inner_beta": 0 * ones, "outer_beta": 0 * ones, "final_beta": 0 * ones[0]}
    network["alpha"] = torch.tensor([arm.alpha for arm in arms], dtype=torch.float64).repeat(blocks, 1)
    return {name: part.to(dtype).contiguous().clone() for name, part in network.items()}


def trained(arms: Sequence[Arm]) -> list[str]:
    """Names of the parts that are trained; all arms have the same norm."""
    parts = ["stem", "inner", "outer", "readout", "inner_beta", "outer_beta"]
    if arms[0].norm != "none":
        parts += ["inner_gamma", "outer_gamma", "final_gamma", "final_beta"]
    return parts + ["alpha"] * any(arm.learned for arm in arms)


class Statistics(list):
    """Means and variances (divisor B - 1, as for inference) by norm, in the order in which a pass meets them."""


def normalized(
    z: Tensor, gamma: Tensor, beta: Tensor, keep: Statistics | None, given: Statistics | None, place: int
) -> Tensor:
    """γ (z - μ) / sqrt(σ² + ε) + β of z (M, N, B), each unit of each member over its batch; `keep` takes the
    batch's statistics, `given` stands in for them."""
    flat = z.reshape(1, -1, z.shape[2])
    if given is not None:
        found = F.batch_norm(flat, *given[place], gamma.flatten(), beta.flatten(), eps=EPS)
    else:
        running = [torch.zeros_like(flat[0, :, 0]) for _ in range(2)] if keep is not None else [None, None]
        found = F.batch_norm(flat, *running, gamma.flatten(), beta.flatten(), True, 1.0, EPS)
        if keep is not None:
            keep.append(tuple(running))
    return found.view_as(z)


def answers(
    network: Network,
    arms: Sequence[Arm],
    inputs: Tensor,
    keep: Statistics | None = None,
    given: Statistics | None = None,
    watch: list[Tensor] | None = None,
) -> Tensor:
    """(B, values) -> (M, classes, B): x₀ = A u, x_ℓ = (k x_{ℓ-1} + α f_ℓ(x_{ℓ-1})) / s, readout of x_L.

    f(x) = norm(W₂ relu(norm(W₁ x))); without norm f(x) = W₂ relu(W₁ x + b₁) + b₂. With batch norm a norm
    stands in front of the readout, too. `watch` takes of each block the mean squares over units and examples
    of x_ℓ and of its branch α f_ℓ / s, (2, M). Source: the blocks of He et al., "Deep residual learning", without the rectifier
    behind the sum, so that the last γ can silence a branch.
    """
    batch = arms[0].norm == "batch"
    keeps = inputs.new_tensor([float(arm.skip) for arm in arms]).view(-1, 1, 1)
    shares = inputs.new_tensor([1 / arm.divisor for arm in arms]).view(-1, 1, 1)
    x = (network["stem"].flatten(0, 1) @ inputs.T).view(len(arms), -1, len(inputs))
    names = ("inner", "outer", "inner_gamma", "inner_beta", "outer_gamma", "outer_beta", "alpha")
    if watch is not None:
        watch.append(torch.stack([x.square().mean((1, 2)), x.square().mean((1, 2))]))
    for place, parts in enumerate(zip(*(network[name].unbind(0) for name in names))):
        inner, outer, gamma1, beta1, gamma2, beta2, alpha = parts
        if batch:
            z = normalized(torch.bmm(inner, x), gamma1, beta1, keep, given, 2 * place)
            f = normalized(torch.bmm(outer, F.relu(z)), gamma2, beta2, keep, given, 2 * place + 1)
        else:
            z = torch.baddbmm(beta1.unsqueeze(2), inner, x)
            f = torch.baddbmm(beta2.unsqueeze(2), outer, F.relu(z))
        f = f * (alpha.view(-1, 1, 1) * shares)
        x = torch.addcmul(f, x, keeps * shares)
        if watch is not None:
            watch.append(torch.stack([x.square().mean((1, 2)), f.square().mean((1, 2))]))
    if batch:
        last = 2 * len(network["inner"])
        x = normalized(x, network["final_gamma"], network["final_beta"], keep, given, last)
    return torch.bmm(network["readout"], x)


def first_order(network: Network, inputs: Tensor, watch: list[Tensor]) -> None:
    """The start of the other order of a branch, f(x) = W₂ relu(norm(W₁ relu(norm(x)))), watched as by `answers`.

    The inner weights stand behind a rectifier here, too, and are drawn with variance 2 / N. Source: He et
    al. 2016; De and Smith 2020.
    """
    x = (network["stem"].flatten(0, 1) @ inputs.T).view(len(network["stem"]), -1, len(inputs))
    one = torch.ones_like(network["final_gamma"])
    watch.append(torch.stack([x.square().mean((1, 2)), x.square().mean((1, 2))]))
    for inner, outer in zip(network["inner"] * 2**0.5, network["outer"]):
        z = torch.bmm(inner, F.relu(normalized(x, one, 0 * one, None, None, 0)))
        f = torch.bmm(outer, F.relu(normalized(z, one, 0 * one, None, None, 0)))
        x = x + f
        watch.append(torch.stack([x.square().mean((1, 2)), f.square().mean((1, 2))]))


def losses(found: Tensor, labels: Tensor) -> Tensor:
    """Mean cross-entropy of each member, (M,), of its answers (M, classes, B)."""
    return F.cross_entropy(found, labels.expand(len(found), -1), reduction="none").mean(1)


@dataclass(frozen=True)
class Images:
    """Rows of inputs (m, values), standardised, and labels (m,)."""

    inputs: Tensor
    labels: Tensor
    test_inputs: Tensor
    test_labels: Tensor


@lru_cache(maxsize=1)  # a seed asks for the same again for each of its trainings
def standardised(data: str, pool: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """All training images as rows (m, values) with their labels, and the test images: means over pool × pool
    pixels, each value less its mean, over its standard deviation, of the training images."""
    dataset = load(data)
    (rows, labels), (tests, test_labels) = (pooled(dataset, split, pool) for split in ("train", "test"))
    mean, std = rows.mean(0), rows.std(0)
    return (rows - mean) / std, labels, (tests - mean) / std, test_labels


def images(data: str, pool: int, examples: int, seed: int, dtype: torch.dtype = torch.float32) -> Images:
    """So many training images, those of a seed, and all test images."""
    rows, labels, tests, test_labels = standardised(data, pool)
    generator = torch.Generator().manual_seed(2_000_003 + seed)
    chosen = torch.randperm(len(rows), generator=generator)[:examples]
    return Images(rows[chosen].to(dtype), labels[chosen], tests.to(dtype), test_labels)
