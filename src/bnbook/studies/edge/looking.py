"""What is measured of each member on the way: the largest curvature, that along the gradient, and how far the
gradient holds."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from bnbook.errors import BnbookError
from bnbook.probes.hessian import curvature_along_gradient, largest_curvature
from bnbook.probes.landscape import along_gradient
from bnbook.studies.edge.descent import Members, descend, squared

LENGTHS = (0.05, 0.5, 1.0, 2.0, 4.0, 16.0)  # in learning rates
TOLERANCE = 1e-3  # of the largest eigenvalue
FRESH = 3_000_017  # of the seeds of the batches that are looked at

Looks = dict[str, np.ndarray]  # name -> (S, P) or (S, P, LENGTHS)


def full_batch(members: Members, steps: int, looks: Sequence[int], momentum: float = 0.0) -> Looks:
    """Train on all images and look at every member: "loss", "curvature" λ_max, "along" g^T H g/‖g‖², (S, P);
    "change" ‖∇L(θ) - ∇L(θ_a)‖/‖∇L(θ)‖ (S, P, LENGTHS). NaN from where a member's loss is not finite."""
    rows = []
    for _ in descend(members, steps, looks, momentum):
        rows.append([_look(members, member) for member in range(len(members.rates))])
    return _stacked(rows)


def mini_batch(
    members: Members,
    seeds: Sequence[int],
    steps: int,
    looks: Sequence[int],
    batch_size: int,
    batches: int,
    momentum: float = 0.0,
) -> Looks:
    """The same with mini-batches; each look is at `batches` fresh ones: "along" is the mean of g^T H g over
    that of ‖g‖² (S, P), "change" the median of them (S, P, LENGTHS), "loss" that of all images."""
    rows = []
    for step in descend(members, steps, looks, momentum, batch_size, seeds):
        row = []
        for member, seed in enumerate(seeds):
            draw = torch.Generator().manual_seed(FRESH + 1009 * seed + step)
            count = members.labels.shape[1]
            some = [torch.randperm(count, generator=draw)[:batch_size] for _ in range(batches)]
            row.append(_look_at_batches(members, member, some))
        rows.append(row)
    return _stacked(rows)


def _look(members: Members, member: int) -> dict[str, np.ndarray]:
    model, batch, rate = members.model(member), members.batch(member), float(members.rates[member])
    steps = [rate * length for length in LENGTHS]
    try:
        top = largest_curvature(model, squared, batch, tolerance=TOLERANCE)
    except BnbookError:
        return _nothing() | {"curvature": np.array(np.nan)}
    seen = along_gradient(model, squared, batch, steps)
    return {
        "loss": seen.start_loss.numpy(),
        "curvature": np.array(top.value),
        "along": np.array(top.along_gradient),
        "change": (seen.gradient_distance / seen.start_norm).numpy(),
    }


def _look_at_batches(members: Members, member: int, some: Sequence[torch.Tensor]) -> dict[str, np.ndarray]:
    model, rate = members.model(member), float(members.rates[member])
    steps = [rate * length for length in LENGTHS]
    forms, changes = [], []
    try:
        for chosen in some:
            batch = members.batch(member, chosen)
            forms.append(curvature_along_gradient(model, squared, batch))
            seen = along_gradient(model, squared, batch, steps)
            changes.append((seen.gradient_distance / seen.start_norm).numpy())
    except BnbookError:
        return _nothing()
    form, square = np.array(forms).T
    images, targets = members.batch(member)
    with torch.no_grad():
        loss = squared(model(images), targets).numpy()
    return {"loss": loss, "along": form.mean() / square.mean(), "change": np.median(changes, axis=0)}


def _nothing() -> dict[str, np.ndarray]:
    gone = np.array(np.nan)
    return {"loss": gone, "along": gone, "change": np.full(len(LENGTHS), np.nan)}


def _stacked(rows: Sequence[Sequence[dict[str, np.ndarray]]]) -> Looks:
    return {name: np.stack([[one[name] for one in row] for row in rows], axis=1) for name in rows[0][0]}
