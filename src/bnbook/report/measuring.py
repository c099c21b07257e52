"""One call that puts all the book's instruments on a network."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from bnbook.errors import BnbookError
from bnbook.probes import covariate_shift, fisher, landscape, layer_gradients
from bnbook.probes.functional import Batch, Loss, loss_at
from bnbook.probes.statistics import STATISTICS, batch_normalizers
from bnbook.report import finding, moments
from bnbook.report.report import Eigenvalues, Report

#: Step lengths along the gradient, in learning rates (Santurkar et al. 2018, A.2.2: 1/2 to 4).
LENGTHS = (0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0)


def measure(
    model: nn.Module,
    loss: Loss,
    batch: Batch,
    *,
    learning_rate: float = 0.1,
    lengths: Sequence[float] = LENGTHS,
    eigenvalues: bool = True,
    beside: nn.Module | None = None,
    names: Sequence[str] = ("network", "beside"),
    progress: bool | None = None,
) -> Report:
    """Landscape, effective β, covariate shift, gradients and moments by layer, and λ_max of any network.

    loss(outputs, targets) -> (), a mean over the batch; batch: inputs (B, ...) and targets. The model runs
    in the mode it is in, as training sees it in training mode; `eigenvalues` are measured with the batch's
    statistics, with these held constant, and with running averages, on all outputs (B, outputs) and all
    parameters, and cost most. What cannot be measured is None in the report, with a warning. `beside`: a
    second model on the same batch. `progress`: None shows a bar where somebody watches. Parameters, buffers,
    .grad, mode, hooks and random state stay bit-identical. Errors: BnbookError for anything but a module, a
    pair of tensors, a positive learning rate, and for a first loss that is not one finite number.
    """
    _check(model, batch, learning_rate)
    models = [model] if beside is None else [model, beside]
    with _bar(len(models) * (4 + 3 * eigenvalues), progress) as step:
        found = [
            _one(each, loss, batch, learning_rate, lengths, eigenvalues, name, step)
            for each, name in zip(models, names, strict=False)
        ]
    return found[0] if beside is None else replace(found[0], beside=found[1])


def _one(
    model: nn.Module,
    loss: Loss,
    batch: Batch,
    learning_rate: float,
    lengths: Sequence[float],
    eigenvalues: bool,
    name: str,
    step: Callable[[], Any],
) -> Report:
    warnings = list(_cannot(model, batch))
    state = torch.get_rng_state()

    def attempt(what: str, instrument: Callable[[], Any]) -> Any:
        try:
            return instrument()
        except (BnbookError, RuntimeError, NotImplementedError, IndexError) as error:
            reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
            warnings.append(f"{what} not measured: {reason}")
            return None
        finally:
            torch.set_rng_state(state)
            step()

    with torch.enable_grad():
        start, outputs = _start(model, loss, batch, warnings)
        steps = [length * learning_rate for length in lengths]
        seen = attempt("landscape", lambda: landscape.along_gradient(model, loss, batch, steps))
        shift = attempt("covariate shift", lambda: covariate_shift.measure(model, loss, batch, learning_rate))
        by_layer = attempt("gradients by layer", lambda: layer_gradients.measure(model, loss, batch))
        places = attempt("moments", lambda: moments.measure(model, loss, batch, learning_rate))
        values = None
        if eigenvalues:
            values = Eigenvalues(
                *(attempt(f"λ_max ({s})", lambda s=s: _lambda(model, batch, outputs, s)) for s in STATISTICS)
            )
    return Report(
        name, learning_rate, len(batch[0]), start, finding.normalizers(model), seen, shift, by_layer, places,
        values, tuple(warnings),
    )  # fmt: skip


def _lambda(model: nn.Module, batch: Batch, outputs: Any, statistics: str) -> float:
    if not isinstance(outputs, Tensor) or outputs.dim() != 2:
        shape = tuple(outputs.shape) if isinstance(outputs, Tensor) else type(outputs).__name__
        raise BnbookError(f"outputs of shape {shape}; expected (B, outputs)")
    if not batch[0].is_floating_point():
        raise BnbookError(f"inputs of type {batch[0].dtype}; expected floating point")
    untracked = [m for m in batch_normalizers(model) if m.num_batches_tracked is None]
    if statistics == "population" and untracked:
        raise BnbookError(
            f"{type(untracked[0]).__name__} keeps no running averages; expected track_running_stats=True"
        )
    found = fisher.largest_eigenvalue(
        model, batch[0], outputs="all", parameters="all", statistics=statistics, tolerance=1e-3
    )
    return float(found)


def _check(model: nn.Module, batch: Batch, learning_rate: float) -> None:
    if not isinstance(model, nn.Module):
        raise BnbookError(f"a model of type {type(model).__name__}; expected a torch.nn.Module")
    pair = isinstance(batch, (tuple, list)) and len(batch) == 2 and all(isinstance(b, Tensor) for b in batch)
    if not pair:
        raise BnbookError(
            f"a batch of type {type(batch).__name__}; expected a pair of tensors (inputs, targets); "
            "wrap a model that takes anything else in a module that takes one tensor"
        )
    if not 0 < learning_rate < math.inf:
        raise BnbookError(f"learning rate {learning_rate!r}; expected a finite number above 0")


def _start(model: nn.Module, loss: Loss, batch: Batch, warnings: list[str]) -> tuple[float, Any]:
    """L(θ) and the outputs; warns of a loss that is no mean over the examples."""
    inputs, targets = batch
    with loss_at(model, loss, batch) as at:
        value, _ = at({}, list(at.parameters)[:1])
        if not torch.isfinite(value):
            raise BnbookError(f"the loss of the batch is {float(value)}; expected a finite number")
        buffers = {name: buffer.clone() for name, buffer in model.named_buffers()}
        with torch.no_grad():
            outputs = torch.func.functional_call(model, at.parameters | buffers, (inputs,))
            if isinstance(outputs, Tensor) and len(outputs) == len(targets):
                once, twice = loss(outputs, targets), loss(torch.cat([outputs] * 2), torch.cat([targets] * 2))
                if not torch.allclose(once.double(), twice.double(), rtol=1e-3, atol=1e-8):
                    warnings.append(
                        "the loss is no mean over the examples (the batch twice gives "
                        f"{float(twice / once):.3g} times the loss): gradients and β scale with the batch"
                    )
    return float(value), outputs


def _cannot(model: nn.Module, batch: Batch) -> Iterator[str]:
    """What a reader has to know before the numbers."""
    found = finding.normalizers(model)
    still = [each.name or each.kind for each in found if each.over_batch and not each.training]
    if still:
        some = ", ".join(still[:3]) + (", …" if len(still) > 3 else "")
        yield (
            f"{len(still)} of {sum(each.over_batch for each in found)} batch normalizers are in inference "
            f"mode ({some}): landscape, shift and moments are those of running averages; call "
            "model.train() for those of training"
        )
    if not any(each.over_batch for each in found):
        yield "no layer in which the examples of a batch meet: the three λ_max are the same quantity"
    registered, run = finding.orders(model, batch[0])
    if registered != run:
        yield (
            'layers run in another order than they are registered: "the layers before" of the covariate '
            "shift are those registered before"
        )
    if len(batch[0]) < 8:
        yield f"a batch of {len(batch[0])}: batch statistics of few examples are mostly noise"


@contextmanager
def _bar(total: int, wanted: bool | None) -> Iterator[Callable[[], Any]]:
    """A bar on a terminal or in a notebook; gives the function that counts a part as done."""
    from tqdm.auto import tqdm

    with tqdm(
        total=total, disable=None if wanted is None else not wanted, leave=False, desc="measuring"
    ) as bar:
        yield lambda: bar.update(1)
