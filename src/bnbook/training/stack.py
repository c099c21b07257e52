"""Many networks of one shape trained side by side: one call of torch computes a step of all of them.

Each member has its own parameters, and may have its own batches and learning rate; none sees another.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.func import functional_call, stack_module_state, vmap

#: Outputs (S, B, K) and labels (S, B) -> the loss of each member, (S,).
Losses = Callable[[Tensor, Tensor], Tensor]


def cross_entropy(outputs: Tensor, labels: Tensor) -> Tensor:
    """-log softmax of the right class, mean over each member's batch: (S, B, K), (S, B) -> (S,)."""
    return F.cross_entropy(outputs.flatten(0, 1), labels.flatten(), reduction="none").view_as(labels).mean(1)


@dataclass
class Stack:
    """S networks of one shape, a leading axis of members in each parameter that is trained and in all else they hold."""

    shape: nn.Module  # how a member computes; its own values are not used
    parameters: dict[str, Tensor]  # name -> (S, ...)
    held: dict[str, Tensor]  # buffers and what asks for no gradient, name -> (S, ...)

    @classmethod
    def of(cls, models: Sequence[nn.Module]) -> Stack:
        """The models side by side, in training mode; they themselves stay as they are."""
        parameters, buffers = stack_module_state(list(models))
        trained = {name for name, p in models[0].named_parameters() if p.requires_grad}
        held = {name: p.detach() for name, p in parameters.items() if name not in trained}
        moving = {name: p.detach() for name, p in parameters.items() if name in trained}
        return cls(copy.deepcopy(models[0]).train(), moving, buffers | held)

    def outputs(self, parameters: Mapping[str, Tensor], inputs: Tensor) -> Tensor:
        """Of inputs (S, B, ...), each member's own, the outputs (S, B, K)."""

        def one(mine: dict[str, Tensor], held: dict[str, Tensor], x: Tensor) -> Tensor:
            return functional_call(self.shape, (mine, held), (x,))

        return vmap(one, randomness="different")(dict(parameters), self.held, inputs)

    def gradients(
        self, batch: tuple[Tensor, Tensor], losses: Losses = cross_entropy
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """Each member's loss (S,) on a batch (S, B, ...), (S, B) and its gradient, in the parameters' shapes."""
        leaves = {name: p.detach().requires_grad_() for name, p in self.parameters.items()}
        found = losses(self.outputs(leaves, batch[0]), batch[1])
        return found.detach(), dict(zip(leaves, torch.autograd.grad(found.sum(), list(leaves.values()))))

    @torch.no_grad()
    def step(self, gradients: Mapping[str, Tensor], rates: Callable[[str], Tensor]) -> None:
        """θ <- θ - η ∇L(θ) in place; rates: name of the parameter -> η of each member, (S,)."""
        for name, p in self.parameters.items():
            p.sub_(rates(name).view(-1, *[1] * (p.ndim - 1)) * gradients[name])

    def keep(self, places: Sequence[int]) -> None:
        """These members only, in this order."""
        self.parameters, self.held = (
            {name: values[list(places)] for name, values in part.items()}
            for part in (self.parameters, self.held)
        )

    def member(self, place: int) -> nn.Module:
        """One of them, as a network of its own with these values."""
        model = copy.deepcopy(self.shape)
        model.load_state_dict({name: v[place] for name, v in (self.parameters | self.held).items()})
        return model
