"""Loss and gradient of a model at other parameters than its own, the model itself left as it is."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.func import functional_call

from bnbook.errors import BnbookError
from bnbook.normalizers import frozen_noise

Loss = Callable[[Tensor, Tensor], Tensor]  # (outputs, targets) -> ()
Batch = tuple[Tensor, Tensor]  # inputs, targets


@dataclass(frozen=True)
class LossAt:
    """The loss of one batch as a function of the trained parameters; every call sees the same noise."""

    model: nn.Module
    loss: Loss
    batch: Batch
    parameters: dict[str, Tensor]  # the model's own, detached: θ
    random_state: tuple[Tensor, Tensor | None]

    def __call__(self, changed: Mapping[str, Tensor], wanted: Sequence[str]) -> tuple[Tensor, list[Tensor]]:
        """The loss () with some parameters changed, and its gradients for the wanted ones, in their shapes.

        The model runs in the mode it is in, on copies of its buffers: batch statistics in training mode.
        """
        self._rewind()
        values = {name: p.detach() for name, p in (self.parameters | dict(changed)).items()}
        leaves = [values[name].requires_grad_() for name in wanted]
        buffers = {name: buffer.clone() for name, buffer in self.model.named_buffers()}
        inputs, targets = self.batch
        loss = self.loss(functional_call(self.model, values | buffers, (inputs,)), targets)
        if loss.dim():
            raise BnbookError(
                f"a loss of shape {tuple(loss.shape)}; expected one number; reduce it by mean or sum"
            )
        gradients = torch.autograd.grad(loss, leaves, allow_unused=True)
        return loss.detach().double(), [
            torch.zeros_like(leaf) if g is None else g for leaf, g in zip(leaves, gradients, strict=True)
        ]

    def _rewind(self) -> None:
        """Random layers that `frozen_noise` does not know, such as dropout, draw the same again."""
        torch.set_rng_state(self.random_state[0])
        if self.random_state[1] is not None:
            torch.cuda.set_rng_state(self.random_state[1], self.batch[0].device)


@contextmanager
def loss_at(model: nn.Module, loss: Loss, batch: Batch) -> Iterator[LossAt]:
    """A `LossAt` whose noise is that of the next training forward; afterwards nothing of the model has
    changed.

    Parameters, their .grad, buffers, mode and random state stay bit-identical, also when the loss raises.
    Errors: BnbookError for a model without trained parameters.
    """
    parameters = {name: p.detach() for name, p in model.named_parameters() if p.requires_grad}
    if not parameters:
        raise BnbookError("a model without trained parameters; expected at least one with requires_grad")
    where = batch[0].device
    state = torch.get_rng_state(), torch.cuda.get_rng_state(where) if where.type == "cuda" else None
    with frozen_noise(model), torch.random.fork_rng(devices=[where] if where.type == "cuda" else []):
        yield LossAt(model, loss, batch, parameters, state)


def total_norm(tensors: Sequence[Tensor]) -> Tensor:
    """ℓ2 norm of all the tensors' elements together, (), summed in float64."""
    return torch.stack([torch.linalg.vector_norm(t, dtype=torch.float64) for t in tensors]).norm()
