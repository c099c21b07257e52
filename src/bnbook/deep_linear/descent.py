"""Full-batch gradient descent of a stack of deep linear networks, looked at on the way."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from bnbook.deep_linear import instruments
from bnbook.deep_linear.arm import LinearArm
from bnbook.deep_linear.network import Network, Parameters
from bnbook.deep_linear.problem import Problem, draw_problem
from bnbook.errors import BnbookError
from bnbook.training.resumable import Arrays, Training

Member = tuple[LinearArm, int]  # an arm and a seed


class Descent(Training):
    """A stack of members between two updates: parameters, velocities, what was measured so far, and who is
    lost."""

    kept = ("step", "over", "parameters", "velocity", "loss", "gradient", "diverged_at", "losses", "probes")

    def __init__(
        self, members: Sequence[Member], device: str | torch.device = "cpu", threads: int | None = None
    ) -> None:
        arm = members[0][0]
        if len({each.stack_key() for each, _ in members}) != 1:
            raise BnbookError(
                "arms of different settings in one stack; expected them to differ in learning rate, momentum"
            )
        super().__init__(arm.steps, torch.device(device), threads)
        self.arm, self.network, self.seeds = arm, arm.network(), [seed for _, seed in members]
        shape = arm.depth, arm.width, arm.examples, arm.init, arm.data_std
        drawn = draw_problem(self.seeds, *shape, device)
        self.problem = replace(drawn, targets=arm.target_std * drawn.targets)
        self.parameters = self.network.start(self.problem)
        self.rates, self.momenta = (
            torch.tensor([getattr(each, name) for each, _ in members], dtype=torch.float64, device=device)
            for name in ("learning_rate", "momentum")
        )
        self.gradient = self.parameters.zero()
        self.velocity = self.parameters.zero() if self.momenta.any() else None
        self.loss = torch.zeros_like(self.rates)
        self.diverged_at = torch.full_like(self.rates, math.inf)
        self.loss_steps = set(arm.loss_steps())
        self.losses: list[Tensor] = []
        self.probes: list[dict[str, Tensor]] = []

    def make_step(self) -> None:
        """Loss and gradient after `step` updates, what is looked at there, and the next update if there is
        one."""
        if torch.isinf(self.diverged_at).any():  # else none is left, and all stays NaN
            self.loss, self.gradient = self.network.loss_and_gradients(self.parameters, self.problem)
        lost = ~torch.isfinite(self.loss) & torch.isinf(self.diverged_at)
        if lost.any():
            self.diverged_at[lost] = float(self.step)
            for tensor in (*self.parameters.tensors(), *self.gradient.tensors()):
                tensor[:, lost] = torch.nan
        if self.step in self.loss_steps:
            self.losses.append(torch.where(torch.isinf(self.diverged_at), self.loss, torch.nan))
        if self.step in self.arm.probe_steps:
            self.probes.append(self._probe())
        self.over = self.step == self.steps
        if not self.over:
            _update(self.parameters, self.gradient, self.velocity, self.rates, self.momenta)
            self.step += 1

    def _probe(self) -> dict[str, Tensor]:
        arm, network, rates = self.arm, self.network, self.rates
        parameters, problem, gradient = self.parameters, self.problem, self.gradient
        norm = gradient.dot(gradient).sqrt()
        found = {"start_loss": self.loss, "start_norm": norm}
        seeds = [1_000_003 * seed + 7 * self.step + 500_000 for seed in self.seeds]
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
        if arm.norm == "none":
            looked |= instruments.correlations(network, parameters, problem)
        return found | {key: value.float() for key, value in looked.items()}

    def result(self) -> Arrays:
        """The arrays of `train_stack`."""
        steps = {"loss_step": self.arm.loss_steps(), "probe_step": self.arm.probe_steps}
        found = {
            "loss": torch.stack(self.losses, dim=1),
            "diverged_at": self.diverged_at,
            **{n: torch.tensor([at] * len(self.seeds), dtype=torch.float64) for n, at in steps.items()},
            **_fitted(self.network, self.parameters, self.problem),
        }
        if self.probes:
            names = self.probes[0]
            found |= {name: torch.stack([probe[name] for probe in self.probes], dim=1) for name in names}
        return {name: value.cpu().numpy() for name, value in found.items()}


def start(members: Sequence[Member], dataset: None = None, threads: int | None = None) -> Descent:
    """The training of a stack, before its first step; on the CPU, for its matrices are small."""
    return Descent(members, threads=threads)


def train_stack(members: Sequence[Member], device: str = "cpu") -> Arrays:
    """Train members, whose arms differ in learning rate and momentum only, together; arrays (S, ...).

    loss (S, T) after loss_step (S, T) updates; diverged_at (S,): the first number of updates after which the
    loss is not finite, infinity if there is none; target_energy (S, N): squared singular values of the
    targets, largest first, whose sum is the loss of answering zero (1/m of it for "mean"); final_energy (S,
    N): those of the outputs at the end; residual_energy (S, N): of the final error, along the targets' own
    directions, in the order of target_energy. At the probed steps, probe_step (S, P), before the update:
    start_loss, start_norm (S, P); landscape_loss, landscape_distance, landscape_norm (S, P, A); random_loss,
    random_distance, random_norm (S, P, A'); shift_distance, shift_cosine, shift_norm (S, P, L); mean,
    deviation (S, P, L, N), quantiles (S, P, L, LEVELS) and the same with handed_on_ before it: see
    `instruments`; without a normalizer correlation, bounded (S, P, L): see `correlations`. A member whose
    loss is no longer finite is NaN from there and leaves the others as they
    are. Errors: BnbookError for arms of different shapes.
    """
    return Descent(members, device).to_the_end()


def _update(
    parameters: Parameters, gradient: Parameters, velocity: Parameters | None, rates: Tensor, momenta: Tensor
) -> None:
    """v ← momentum v + g, θ ← θ - rate v, each member with its own."""
    for index, (here, by) in enumerate(zip(parameters.tensors(), gradient.tensors())):
        shape = (1, -1, *(1,) * (here.dim() - 2))
        if velocity is not None:
            by = velocity.tensors()[index].mul_(momenta.view(shape)).add_(by)
        here.addcmul_(by, rates.view(shape), value=-1.0)


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
