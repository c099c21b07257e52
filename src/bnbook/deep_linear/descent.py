"""Full-batch gradient descent of a stack of deep linear networks, looked at on the way."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor

from bnbook.deep_linear import instruments
from bnbook.deep_linear.arm import LinearArm
from bnbook.deep_linear.network import Network, Parameters
from bnbook.deep_linear.problem import Problem, draw_problem
from bnbook.errors import BnbookError

Member = tuple[LinearArm, int]  # an arm and a seed


def train_stack(
    members: Sequence[Member], device: str = "cpu", on_steps: Callable[[int], None] | None = None
) -> dict[str, np.ndarray]:
    """Train members, whose arms differ in learning rate and momentum only, together; arrays (S, ...).

    loss (S, T) after loss_step (S, T) updates; diverged_at (S,): the first number of updates after which the
    loss is not finite, infinity if there is none; target_energy (S, N): squared singular values of the
    targets, largest first, whose sum is the loss of answering zero (1/m of it for "mean"); final_energy (S,
    N): those of the outputs at the end; residual_energy (S, N): of the final error, along the targets' own
    directions, in the order of target_energy. At the probed steps, probe_step (S, P), before the update:
    start_loss, start_norm (S, P); landscape_loss, landscape_distance, landscape_norm (S, P, A); random_loss,
    random_distance, random_norm (S, P, A'); shift_distance, shift_cosine, shift_norm (S, P, L); mean,
    deviation (S, P, L, N), quantiles (S, P, L, LEVELS) and the same with handed_on_ before it: see
    `instruments`. A member whose loss is no longer finite is NaN from there and leaves the others as they
    are. Errors: BnbookError for arms of different shapes.
    """
    arm = members[0][0]
    if len({each.stack_key() for each, _ in members}) != 1:
        raise BnbookError(
            "arms of different settings in one stack; expected them to differ in learning rate, momentum"
        )
    seeds = [seed for _, seed in members]
    problem = draw_problem(seeds, arm.depth, arm.width, arm.examples, arm.init, arm.data_std, device)
    network = arm.network()
    parameters = network.start(problem)
    rates, momenta = (
        torch.tensor([getattr(each, name) for each, _ in members], dtype=torch.float64, device=device)
        for name in ("learning_rate", "momentum")
    )
    velocity = Parameters(*(torch.zeros_like(t) for t in parameters.tensors())) if momenta.any() else None
    diverged_at = torch.full_like(rates, math.inf)
    kept, losses, probes = set(arm.loss_steps()), [], []
    for step in range(arm.steps + 1):
        if step == 0 or torch.isinf(diverged_at).any():  # else none is left, and all stays NaN
            loss, gradient = network.loss_and_gradients(parameters, problem)
        lost = ~torch.isfinite(loss) & torch.isinf(diverged_at)
        if lost.any():
            diverged_at[lost] = float(step)
            for tensor in (*parameters.tensors(), *gradient.tensors()):
                tensor[:, lost] = torch.nan
        if step in kept:
            losses.append(torch.where(torch.isinf(diverged_at), loss, torch.nan))
        if step in arm.probe_steps:
            probes.append(
                _probe(arm, network, parameters, problem, loss, gradient, rates, _salted(seeds, step))
            )
        if step < arm.steps:
            _update(parameters, gradient, velocity, rates, momenta)
        if on_steps is not None and step % 100 == 99:
            on_steps(100)
    found = {
        "loss": torch.stack(losses, dim=1),
        "diverged_at": diverged_at,
        "loss_step": torch.tensor([arm.loss_steps()] * len(seeds), dtype=torch.float64),
        "probe_step": torch.tensor([arm.probe_steps] * len(seeds), dtype=torch.float64),
        **_fitted(network, parameters, problem),
    }
    if probes:
        found |= {name: torch.stack([probe[name] for probe in probes], dim=1) for name in probes[0]}
    return {name: value.cpu().numpy() for name, value in found.items()}


def _update(
    parameters: Parameters, gradient: Parameters, velocity: Parameters | None, rates: Tensor, momenta: Tensor
) -> None:
    """v ← momentum v + g, θ ← θ - rate v, each member with its own."""
    for index, (here, by) in enumerate(zip(parameters.tensors(), gradient.tensors())):
        shape = (1, -1, *(1,) * (here.dim() - 2))
        if velocity is not None:
            by = velocity.tensors()[index].mul_(momenta.view(shape)).add_(by)
        here.addcmul_(by, rates.view(shape), value=-1.0)


def _probe(
    arm: LinearArm,
    network: Network,
    parameters: Parameters,
    problem: Problem,
    loss: Tensor,
    gradient: Parameters,
    rates: Tensor,
    seeds: Sequence[int],
) -> dict[str, Tensor]:
    norm = gradient.dot(gradient).sqrt()
    found = {"start_loss": loss, "start_norm": norm}
    aside = instruments.random_direction(parameters, norm, seeds, arm.affine)
    for name, direction, lengths in (
        ("landscape", gradient, arm.lengths),
        ("random", aside, arm.random_lengths),
    ):
        looked = instruments.along(network, parameters, problem, gradient, direction, lengths, rates)
        found |= {f"{name}_{key}": value for key, value in looked.items()}
    if arm.covariate_shift:
        shift = instruments.covariate_shift(network, parameters, problem, gradient, rates)
        found |= {f"shift_{key}": value for key, value in shift.items()}
    looked = instruments.activations(network, parameters, problem)
    return found | {key: value.float() for key, value in looked.items()}


def _fitted(network: Network, parameters: Parameters, problem: Problem) -> dict[str, Tensor]:
    """How far the end-to-end map has come, direction by direction of the targets."""
    outputs = network.forward(parameters, problem)[-1].handed_on
    whole = torch.where(torch.isfinite(outputs).all(2).all(1)[:, None, None], outputs, 0.0)
    lost = torch.where(torch.isfinite(outputs).all(2).all(1), 0.0, torch.nan)[:, None]
    directions = torch.linalg.svd(problem.targets, full_matrices=False)[2]  # (S, N, N), one a row
    error = torch.bmm(whole - problem.targets, directions.transpose(1, 2))
    return {
        "target_energy": problem.target_energies(),
        "final_energy": torch.linalg.svdvals(whole) ** 2 + lost,
        "residual_energy": (error**2).sum(1) + lost,
    }


def _salted(seeds: Sequence[int], step: int) -> list[int]:
    return [1_000_003 * seed + 7 * step + 500_000 for seed in seeds]
