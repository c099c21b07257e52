"""Questions about a network that are answered by trying: does it repeat, is its gradient the slope of its loss,
do the examples of a batch meet?"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_leaves

from bnbook.errors import BnbookError
from bnbook.probes.functional import total_norm
from bnbook.report.subject import Subject, part

FITS = 2e-3  # relative, of the slope of a loss in 64 bits
Prepare = Callable[[nn.Module], object]  # puts a copy into the state that is asked about


@dataclass(frozen=True)
class Slope:
    """The loss along its gradient g, at θ ± h u, u = g_i/‖g_i‖ in each parameter i, so that a small one counts as
    much as a large one; where both sides together fit it at once, they stand for each."""

    gradient: float  # Σ_i ‖g_i‖, which the slopes should be
    ahead: float  # (L(θ + h u) - L(θ)) / h
    behind: float  # (L(θ) - L(θ - h u)) / h
    kind: str  # "fits"; "kink", where the two sides differ and g is neither; "other"

    @property
    def fits(self) -> bool:
        return self.kind != "other"


def repeats(one: tuple[Tensor, dict], other: tuple[Tensor, dict], tolerance: float = 1e-4) -> bool:
    """Whether two passes from one state gave one loss and one gradient; the order of sums on a GPU may differ."""
    (value, gradient), (again, same) = one, other
    if not torch.isfinite(value):
        return not torch.isfinite(again)
    away = total_norm([g - s for g, s in zip(gradient.values(), same.values(), strict=True)])
    size = total_norm(list(gradient.values()))
    return near(value, again) and not bool(away > tolerance * size)


def near(value: Tensor, again: Tensor) -> bool:
    """Whether two losses are one, to rounding."""
    return bool((value - again).abs() <= 1e-6 * value.abs() + 1e-12)


def slope(subject: Subject, loss: Tensor, gradient: dict[str, Tensor]) -> Slope:
    """The slope of the loss along its gradient, by differences; in 64 bits where the network runs in them."""
    found = _at_once(subject, loss, gradient)
    if found:
        return found
    for each in (subject.in_double(), subject):
        try:
            start, gradient = each.gradient()
            with each.twin() as twin:
                exact = twin.value().dtype == torch.float64
        except (RuntimeError, TypeError, NotImplementedError, BnbookError):
            continue
        way, size = _way({name: g for name, g in gradient.items() if g is not None})
        if not 0 < size < float("inf"):
            continue
        changes, within = ((1e-6, 1e-7), FITS) if exact else ((1e-2, 1e-3), 0.1)
        sides = []
        for change in changes:
            h = change * max(float(start.abs()), 1e-6) / size
            ahead, behind = (_moved(each, way, sign * h) for sign in (1, -1))
            sides.append((float(ahead - start) / h, float(start - behind) / h))
            if abs(sum(sides[-1]) / 2 / size - 1) < within:
                return Slope(size, *sides[-1], "fits")
        if _kink(sides, size, within):
            return Slope(size, *sides[-1], "kink")
        found = Slope(size, *sides[-1], "other")
        if exact:
            break
    if found is None:
        raise BnbookError("the slope of the loss cannot be tried")
    return found


def _at_once(subject: Subject, loss: Tensor, gradient: dict[str, Tensor]) -> Slope | None:
    """By one central difference of the loss in 64 bits, where that fits the gradient as the network takes it."""
    double, (way, size) = subject.in_double(), _way(gradient)
    h = 1e-6 * max(float(loss.abs()), 1e-6) / size
    try:
        ahead, behind = (float(_moved(double, way, sign * h)) for sign in (1, -1))
    except (RuntimeError, TypeError, NotImplementedError, BnbookError):
        return None
    both = (ahead - behind) / (2 * h)
    return Slope(size, both, both, "fits") if abs(both / size - 1) < FITS else None


def _way(gradient: dict[str, Tensor]) -> tuple[dict[str, Tensor], float]:
    """u, in 64 bits, and ⟨g, u⟩."""
    norms = {n: float(g.double().norm()) for n, g in gradient.items()}
    return {n: g.double() / norms[n] for n, g in gradient.items() if norms[n]}, sum(norms.values())


def _moved(subject: Subject, way: dict[str, Tensor], step: float) -> Tensor:
    changed = {n: subject.parameters[n].double() + step * u for n, u in way.items()}
    with subject.twin(changed) as twin:
        return twin.value().detach().double()


def _kink(sides: list[tuple[float, float]], size: float, within: float) -> bool:
    """Both sides are straight, differ, and have the gradient between them: a ReLU at exactly zero."""
    straight = all(abs(far - near) <= within * size for far, near in zip(*sides, strict=True))
    low, high = sorted(sides[-1])
    return straight and high - low > within * size and low - within * size <= size <= high + within * size


def meeting(
    subject: Subject, prepare: Prepare = lambda _: None, closed: Sequence[str] = ()
) -> tuple[str, ...] | None:
    """Where the examples of a batch meet: the smallest modules that hand on other values for an example when
    another one is changed, though they received the same; ("",) is the network's own code; None where no
    example can be changed, or there is but one. closed: layers whose insides are not looked at."""
    if len(subject.batch[0]) < 2:
        return None
    plain = _prints(subject, prepare, None)
    places: dict[str, None] = {}
    for which in _tried_together(len(subject.batch[0])):
        if places:
            break
        other = _changed(subject.batch[0], which)
        if other is None:
            return None
        seen = _prints(subject, prepare, other)
        apart = {
            key: _others_apart(plain[key], seen[key], which)
            for key in plain
            if key in seen and not any(key[0].startswith(f"{each}.") for each in closed)
        }
        here = [
            n for (n, side), far in apart.items() if side == "out" and far and not apart.get((n, "in"), False)
        ]
        places |= dict.fromkeys(n for n in here if not any(m != n and _within(m, n) for m in here))
        if any(apart.values()) and not here:
            places[""] = None
    return tuple(places)


def _tried_together(examples: int) -> Iterator[tuple[int, ...]]:
    """Examples that are changed, until a meeting is seen: three of many, then all whose place has a digit of 0, and
    of 1, at each place of two: whichever two meet, one of them is among these once without the other."""
    if examples >= 6:
        yield 0, 1, examples - 1
    for bit in range((examples - 1).bit_length()):
        for digit in (0, 1):
            yield tuple(k for k in range(examples) if k >> bit & 1 == digit)


def _within(name: str, parent: str) -> bool:
    return name.startswith(f"{parent}.") or not parent


def _changed(inputs: Tensor, which: tuple[int, ...]) -> Tensor | None:
    changed = inputs.detach().clone()
    for k in which:
        if inputs.is_floating_point():
            wave = torch.arange(inputs[k].numel(), device=inputs.device).cos().view(inputs[k].shape)
            changed[k] = inputs[k] + (wave * (inputs.double().std(correction=0) + 0.1)).to(inputs.dtype)
            continue
        others = [row for row in inputs if not torch.equal(row, inputs[k])]
        if not others:
            return None
        changed[k] = others[0]
    return changed


def _prints(subject: Subject, prepare: Prepare, inputs: Tensor | None) -> dict[tuple[str, str], Tensor]:
    """(module, "in" or "out") -> two numbers an example, (runs, 2, B, 2), of what the module got or gave: with
    examples along its first axis, and along its second, where that is as long; else the first once more."""
    size, found = len(subject.batch[0]), {}

    def keep(name: str, side: str, values: object) -> None:
        for value in values if isinstance(values, (tuple, list)) else [values]:
            if isinstance(value, Tensor) and value.dim() and len(value) == size and not value.is_complex():
                second = (
                    value.dim() > 1 and value.shape[1] == size
                )  # time first, and as many times as examples
                rows = [
                    x.detach().reshape(size, -1).double()
                    for x in (value, value.movedim(1, 0) if second else value)
                ]
                found.setdefault((name, side), []).append(
                    torch.stack([torch.stack([flat.sum(1), flat.square().sum(1)], 1) for flat in rows])
                )

    with subject.twin() as twin:
        prepare(twin.network)
        for name, module in twin.network.named_modules():
            if not isinstance(module, torch.jit.ScriptFunction):
                watch(
                    module,
                    lambda _m, got, more, name=name: keep(name, "in", [*got, *more.values()]),
                    lambda _m, _got, gave, name=name: keep(name, "out", gave),
                )
        keep("", "out", twin.outputs(None if inputs is None else inputs.to(twin.inputs.dtype)))
    return {key: torch.stack(values) for key, values in found.items()}


def second_axis(subject: Subject) -> dict[str, int]:
    """Modules that receive the examples along axis 1, as (time, B, ...): what moves there when one example does."""
    inputs, found = subject.batch[0], {}
    other = _changed(inputs, (0,)) if len(inputs) > 1 else None
    if other is None:
        return found

    def received(values: Tensor | None) -> dict[str, Tensor]:
        kept: dict[str, Tensor] = {}

        def keep(name: str, got: tuple, more: dict) -> None:
            x = next((v for v in [*got, *more.values()] if isinstance(v, Tensor)), None)
            if x is not None and x.dim() > 2 and x.shape[1] == len(inputs):
                kept.setdefault(name, x.detach().double())

        with subject.twin() as twin:
            for name, module in twin.network.named_modules():
                watch(module, lambda _m, got, more, name=name: keep(name, got, more), None)
            twin.outputs(None if values is None else values.to(twin.inputs.dtype))
        return kept

    plain, moved = received(None), received(other)
    for name in plain.keys() & moved.keys():
        away = (plain[name] - moved[name]).abs().transpose(0, 1).flatten(1).amax(1) > 0
        if away[0] and not away[1:].any():
            found[name] = 1
    return found


def averages(subject: Subject, names: Sequence[str]) -> dict[str, dict[str, Tensor]]:
    """Layer -> its running averages as they are: buffers with torch's names, and all others that a pass in
    training mode moves."""
    layers = {name: part(subject.network, name) for name in names}
    before = {name: dict(each.named_buffers(recurse=False)) for name, each in layers.items()}
    after = before
    with suppress(Exception), subject.twin() as twin:  # in training mode somebody else's code may fail
        for name in names:
            part(twin.network, name).train()
        twin.outputs()
        after = {name: dict(part(twin.network, name).named_buffers(recurse=False)) for name in names}

    def is_one(name: str, key: str, value: Tensor) -> bool:
        moved = key in after[name] and not torch.equal(value, after[name][key])
        return value.is_floating_point() and (moved or key.startswith("running_"))

    return {name: {k: b for k, b in own.items() if is_one(name, k, b)} for name, own in before.items()}


def as_made(averages: dict[str, Tensor]) -> bool:
    """Whether running averages are still what layers start them with: a mean of 0, a variance of 1."""
    start = [torch.equal(b, torch.full_like(b, value)) for b in averages.values() for value in (0.0, 1.0)]
    return bool(averages) and all(zero or one for zero, one in zip(start[::2], start[1::2], strict=True))


def watch(module: nn.Module, before: Callable | None, behind: Callable | None) -> None:
    """Hooks that only look; a module inside a scripted one runs unseen."""
    with suppress(RuntimeError):
        if before:
            module.register_forward_pre_hook(
                lambda m, got, more: None if _inside_vmap(got, more) else before(m, got, more) and None,
                with_kwargs=True,
            )
        if behind:
            module.register_forward_hook(
                lambda m, got, gave: None if _inside_vmap(got, gave) else behind(m, got, gave) and None
            )


def _inside_vmap(*given: Any) -> bool:
    """Tensors inside torch.func.vmap or grad hold no values that can be kept."""
    return any(
        torch._C._functorch.is_functorch_wrapped_tensor(v)
        for v in tree_leaves(given)
        if isinstance(v, Tensor)
    )


def _others_apart(one: Tensor, other: Tensor, which: tuple[int, ...]) -> bool:
    if one.shape != other.shape:
        return True
    kept = torch.ones(one.shape[2], dtype=torch.bool, device=one.device)
    kept[list(which)] = False
    one, other = one[:, :, kept], other[:, :, kept]
    apart = (one - other).abs() > 1e-5 * one.abs() + 1e-9
    return bool(apart.flatten(2).any(2).all(1).any())  # along whichever axis the examples lie
