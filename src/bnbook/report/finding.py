"""What is found of a foreign network by trying: does it repeat, is its gradient the slope of its loss, do the examples of a
batch meet; and each of its layers, run alone: which normalize, which have weights, and along which axis their units lie."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_leaves

from bnbook.errors import BnbookError
from bnbook.normalizers.base import BatchNormalizer, Normalizer
from bnbook.probes.copies import random_states, set_random_states
from bnbook.probes.functional import total_norm
from bnbook.report.subject import Subject, part

# ---- Of the whole network --------------------------------------------------------------------------------------------


FITS = 2e-3  # relative, of the slope of a loss in 64 bits
ASIDE = 1e-3  # of a parameter's size: far beyond the steps of these differences
Prepare = Callable[[nn.Module], object]  # puts a copy into the state that is asked about


@dataclass(frozen=True)
class Slope:
    """The loss along its gradient g, at θ ± h u, u = g_i/‖g_i‖ in each parameter i, so that a small one counts as
    much as a large one; where both sides together fit it at once, they stand for each."""

    gradient: float  # Σ_i ‖g_i‖, which the slopes should be
    ahead: float  # (L(θ + h u) - L(θ)) / h
    behind: float  # (L(θ) - L(θ - h u)) / h
    kind: str  # "fits"; "kink", where it fits as soon as all parameters are moved aside; "other"

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


def slope(subject: Subject) -> Slope:
    """The slope of the loss along its gradient, by differences; in 64 bits where the network runs in them.

    Where it is not the gradient, all parameters are moved aside by little: if it is there, as behind a ReLU that stood at
    exactly zero, θ is a kink; a gradient that is none, as past detached parts, is none there either.
    """
    found = None
    for each in (subject.in_double(), subject):
        at = {n: p.double() for n, p in subject.parameters.items()}
        try:
            with each.twin() as twin:
                exact = twin.value().dtype == torch.float64
            here = _slope_at(each, at, exact)
        except (RuntimeError, TypeError, NotImplementedError, BnbookError):
            continue
        if here is None:
            continue
        if here.fits:
            return here
        draw = torch.Generator().manual_seed(0)
        for name, p in at.items():
            noise = torch.randn(p.shape, generator=draw, dtype=torch.float64).to(p.device)
            at[name] = p + ASIDE * (float(p.square().mean().sqrt()) or 1.0) * noise
        aside = _slope_at(each, at, exact)
        if aside and aside.fits:
            return replace(here, kind="kink")
        found = here
        if exact:
            break
    if found is None:
        raise BnbookError("the slope of the loss cannot be tried")
    return found


def _slope_at(subject: Subject, at: dict[str, Tensor], exact: bool) -> Slope | None:
    """At parameters θ; None where there is no gradient to go along."""
    start, gradient = subject.gradient(at)
    norms = {n: float(g.double().norm()) for n, g in gradient.items() if g is not None}
    way, size = {n: gradient[n].double() / norms[n] for n in norms if norms[n]}, sum(norms.values())
    if not 0 < size < float("inf"):
        return None
    changes, within = ((1e-6, 1e-7), FITS) if exact else ((1e-2, 1e-3), 0.1)
    for change in changes:
        h = change * max(float(start.abs()), 1e-6) / size
        sides = []
        for sign in (1, -1):
            with subject.twin(at | {n: at[n] + sign * h * u for n, u in way.items()}) as twin:
                sides.append(sign * float(twin.value().detach().double() - start) / h)
        if abs(sum(sides) / 2 / size - 1) < within:
            return Slope(size, *sides, "fits")
    return Slope(size, *sides, "other")


def meeting(
    subject: Subject, prepare: Prepare = lambda _: None, closed: Sequence[str] = (), grad: bool = True
) -> tuple[str, ...] | None:
    """Where the examples of a batch meet: the smallest modules that hand on other values for an example when
    another one is changed, though they received the same; ("",) is the network's own code; None where no
    example can be changed, or there is but one. closed: layers whose insides are not looked at."""
    if len(subject.batch[0]) < 2:
        return None
    plain = _prints(subject, prepare, None, grad)
    places: dict[str, None] = {}
    for which in _tried_together(len(subject.batch[0])):
        if places:
            break
        seen = _tried_with(subject, which, lambda other: _prints(subject, prepare, other, grad))
        if seen is None:
            return None
        apart = {
            key: _others_apart(plain[key], seen[key], which)
            for key in plain
            if key in seen and not any(key[0].startswith(f"{each}.") for each in closed)
        }
        here = _smallest(apart)
        places |= dict.fromkeys(here)
        if any(apart.values()) and not here:
            places[""] = None
    return tuple(places)


def _smallest(apart: dict[tuple[str, str], bool]) -> tuple[str, ...]:
    """The smallest modules that hand on something apart from what they received alike."""
    here = [n for (n, side), far in apart.items() if side == "out" and far and not apart.get((n, "in"))]
    return tuple(n for n in here if not any(m != n and _within(m, n) for m in here))


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


def _tried_with(subject: Subject, which: Sequence[int], run: Callable[[Tensor], Any]) -> Any:
    """What a pass gives where some examples are bent; where they are numbers of classes, which a bent one is not, or the pass
    fails with these, where they are like others of the batch. None where all examples are alike."""
    inputs = subject.batch[0].detach()
    bent = inputs.clone()
    for k in which if inputs.is_floating_point() else ():
        wave = torch.arange(inputs[k].numel(), device=inputs.device).cos().view(inputs[k].shape)
        bent[k] = inputs[k] + (wave * (inputs.double().std(correction=0) + 0.1)).to(inputs.dtype)
    if inputs.is_floating_point():
        with suppress(Exception):  # an index in a column of its own, a logarithm
            return run(bent)
    swapped = inputs.clone()
    for k in which:
        others = [row for row in inputs if not torch.equal(row, inputs[k])]
        if not others:
            return None
        swapped[k] = others[0]
    return run(swapped)


def _prints(
    subject: Subject, prepare: Prepare, inputs: Tensor | None, grad: bool = True
) -> dict[tuple[str, str], Tensor]:
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

    with subject.twin() as twin, torch.set_grad_enabled(grad):
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
    if len(inputs) < 2:
        return found

    def received(values: Tensor | None) -> dict[str, Tensor]:
        kept: dict[str, Tensor] = {}

        def keep(name: str, got: tuple, more: dict) -> None:
            x = first_tensor(got, more)
            if x is not None and x.dim() > 2 and x.shape[1] == len(inputs):
                kept.setdefault(name, x.detach().double())

        with subject.twin() as twin:
            for name, module in twin.network.named_modules():
                watch(module, lambda _m, got, more, name=name: keep(name, got, more), None)
            twin.outputs(None if values is None else values.to(twin.inputs.dtype))
        return kept

    plain, moved = received(None), _tried_with(subject, (0,), received) or {}
    for name in plain.keys() & moved.keys():
        away = (plain[name] - moved[name]).abs().transpose(0, 1).flatten(1).amax(1) > 0
        if away[0] and not away[1:].any():
            found[name] = 1
    return found


def differing(subject: Subject, one: tuple[Prepare, bool], other: tuple[Prepare, bool]) -> tuple[str, ...]:
    """The smallest modules that hand on other values in one state of the network, (what prepares it, whether gradients are
    on), than in another one, though they received the same; "" is the network's own code."""
    here, there = (_prints(subject, prepare, None, grad) for prepare, grad in (one, other))
    return _smallest({key: key in there and _others_apart(v, there[key], ()) for key, v in here.items()})


def kept_by(module: nn.Module) -> dict[str, Tensor]:
    """What a layer keeps and does not train: buffers, tensors that are plain attributes, parameters without a gradient."""
    found = dict(module.named_buffers(recurse=False))
    if not isinstance(module, torch.jit.ScriptModule):
        found |= {name: value for name, value in vars(module).items() if isinstance(value, Tensor)}
        found |= {name: p.detach() for name, p in module.named_parameters() if not p.requires_grad}
    return {name: value for name, value in found.items() if value.is_floating_point()}


def averages(subject: Subject, names: Sequence[str]) -> dict[str, dict[str, Tensor]]:
    """Layer -> its running averages as they are: what it keeps under torch's names, and all that a pass in
    training mode moves."""
    before = {name: kept_by(part(subject.network, name)) for name in names}
    after = before
    with suppress(Exception), subject.twin() as twin:  # in training mode somebody else's code may fail
        for name in names:
            part(twin.network, name).train()
        twin.outputs()
        after = {name: kept_by(part(twin.network, name)) for name in names}

    def is_one(name: str, key: str, value: Tensor) -> bool:
        moved = key in after[name] and not torch.equal(value, after[name][key])
        return moved or key.startswith("running_")

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


# ---- Of its layers, each run alone -----------------------------------------------------------------------------------


_BATCH = (BatchNormalizer, nn.modules.batchnorm._BatchNorm)
_INSTANCE = nn.modules.instancenorm._InstanceNorm
_KNOWN = (*_BATCH, _INSTANCE, Normalizer, nn.LayerNorm, nn.GroupNorm, nn.LocalResponseNorm, nn.RMSNorm)
_FEW = 16  # examples with which a layer is tried


@dataclass(frozen=True)
class Found:
    """A layer that normalizes."""

    name: str  # as in `named_modules`
    kind: str  # its class
    over_batch: bool  # whether the examples of a batch meet in it in training mode
    training: bool  # whether it is in training mode
    axis: int = 1  # of its units
    meets_now: bool = False  # whether they meet in the mode that it is in


@dataclass(frozen=True)
class Layer:
    """A layer with weights: a module that owns a parameter with two or more axes."""

    name: str
    kind: str
    parameters: tuple[str, ...]  # their names, in the network
    runs: int  # in one pass, as far as it can be seen
    axis: int | None  # of the units of what it receives; None where that is no tensor of features


@dataclass(frozen=True)
class Anatomy:
    normalizers: tuple[Found, ...]  # in the order of registration
    layers: tuple[Layer, ...]  # in the order in which they first run, then those that are not seen to run
    meeting: tuple[str, ...]  # layers in which the examples meet in training mode
    in_order: bool  # whether layers run in the order of registration
    pools: dict[str, float] = field(default_factory=dict)  # share of the batch that a layer takes together
    ran: frozenset[str] = frozenset()  # modules that are seen to run


@dataclass
class _Tried:
    over_batch: bool = False
    meets_now: bool = False
    scale_free: bool = False
    axis: int | None = None
    pool: float = 1.0


def inspect(subject: Subject) -> Anatomy:
    """One pass over a copy, in which each layer is tried alone on what it receives."""
    tried: dict[str, _Tried] = {}
    runs: dict[str, int] = {}
    axes: dict[str, int | None] = {}
    scales: dict[str, set[int]] = {}
    along = second_axis(subject)
    with subject.twin() as twin:
        modules = {n: m for n, m in twin.network.named_modules() if "parametrizations" not in n.split(".")}
        weighted = {name: own for name, module in modules.items() if (own := weights(name, module))}

        def look(name: str) -> Callable[..., None]:
            def before(module: nn.Module, got: tuple, more: dict) -> None:
                runs[name] = runs.get(name, 0) + 1
                if runs[name] > 1 or not (got or more):
                    return
                if name in weighted:
                    axes[name] = _input_axis(module, got, more)
                    scales[name] = _scales(module, *_few(module, got, more))
                if _worth_trying(module):
                    tried[name] = _try(module, got, more, along.get(name, 0))

            return before

        for name, module in modules.items():
            if name:
                watch(module, look(name), None)
        twin.value()
        normal = tuple(
            Found(name, kind(module), each.over_batch, module.training, _axis(each), each.meets_now)
            for name, module in modules.items()
            if (each := tried.get(name) or _unseen(module)) and _normalizes(module, each)
        )
        for name in weighted.keys() - scales.keys():
            scales[name] = _scales(modules[name], None, None)
        weighted = {
            name: kept
            for name, own in weighted.items()
            if (kept := [p for p in own if id(p) not in scales.get(name, ())])
        }
        named = nn.Module.named_parameters(
            twin.network, remove_duplicate=False
        )  # which a network may say otherwise
        names = {id(p): n for n, p in reversed(list(named))}
        layers = [
            Layer(
                name,
                kind(modules[name]),
                tuple(dict.fromkeys(names[id(each)] for each in own)),
                runs.get(name, 0),
                axes.get(name),
            )
            for name, own in weighted.items()
        ]
    order = [name for name in runs if name in weighted]
    layers.sort(key=lambda each: order.index(each.name) if each.name in order else len(order))
    scripted = [n for n, m in subject.network.named_modules() if isinstance(m, torch.jit.ScriptModule)]
    meet = [
        n for n, t in tried.items() if t.over_batch
    ] + [  # inside a scripted block no layer is seen to run
        f.name
        for f in normal
        if f.name not in tried and f.over_batch and any(_within(f.name, s) or f.name == s for s in scripted)
    ]
    meet += [name for name in _by_own_code(subject, meet) if name not in meet]
    pools = {n: t.pool for n, t in tried.items()}
    in_order = order == [name for name in weighted if name in runs]
    return Anatomy(normal, tuple(layers), tuple(meet), in_order, pools, frozenset(runs))


def _by_own_code(subject: Subject, layers: list[str]) -> list[str]:
    """Blocks, "" for the network itself, in whose own code examples meet in training mode, as with batch norm by
    torch's function between two layers: they do so while the layers known to mix them hand on what they get."""

    def pass_on(_module: nn.Module, got: tuple, more: dict, gave: Any) -> Any:
        x = first_tensor(got, more)
        return x if isinstance(gave, Tensor) and x is not None and x.shape == gave.shape else None

    def prepare(network: nn.Module) -> None:
        network.train()
        for name in layers:
            with suppress(RuntimeError):  # inside a scripted block
                part(network, name).register_forward_hook(pass_on, with_kwargs=True)

    try:
        places = meeting(subject, prepare, layers) or ()
    except Exception:  # in a mode that it is not in somebody else's code may fail
        return []
    modules = dict(subject.network.named_modules())
    return [name for name in places if blocks(modules[name])]


def kind(module: nn.Module) -> str:
    """The class of a module, as it was before it was scripted or its weights were parametrized."""
    name = getattr(module, "original_name", None)
    return name if isinstance(name, str) else type(module).__name__.removeprefix("Parametrized")


def weights(name: str, module: nn.Module) -> list[Tensor]:
    """The parameters with two or more axes that a module owns, those behind a parametrization too."""
    own = list(module.parameters(recurse=False))
    if nn.utils.parametrize.is_parametrized(module):
        own += list(module.parametrizations.parameters())
    return [p for p in own if p.dim() >= 2 and p.is_floating_point()] if not is_named_norm(module) else []


def _narrow(module: nn.Module) -> dict[str, Tensor]:
    """Parameters with two or more axes of which at most one is longer than 1, of a class that is not torch's."""
    own = (
        {} if type(module).__module__.startswith("torch.nn") else dict(module.named_parameters(recurse=False))
    )
    return {n: p for n, p in own.items() if p.dim() >= 2 and sum(size > 1 for size in p.shape) < 2}


def _scales(module: nn.Module, run: Callable[..., Any] | None, x: Tensor | None) -> set[int]:
    """Those of them of which one entry acts on one unit only: a γ or β, (1, C, 1, 1), and no weights; where this
    cannot be tried, all but columns (n, 1)."""
    found = set()
    for name, parameter in _narrow(module).items():

        def change(layer: nn.Module, name: str = name) -> None:
            getattr(layer, name).data.view(-1)[-1].add_(1.0)

        try:
            acts = (run(x, change=change) - run(x, change=lambda _: None)).abs() > 0
            units = [a for a in range(1, acts.dim()) if acts.shape[a] == parameter.numel()]
            scales = any(int(acts.transpose(0, a).flatten(1).any(1).sum()) <= 1 for a in units)
        except (Exception, SystemExit):  # somebody else's code, or it does not run
            scales = parameter.dim() > 2 or len(parameter) == 1
        if scales or parameter.numel() == 1:
            found.add(id(parameter))
    return found


def is_named_norm(module: nn.Module) -> bool:
    named = kind(module).rstrip("123d").endswith("Norm")
    return isinstance(module, _KNOWN) or (named and not blocks(module))


def blocks(module: nn.Module) -> list[nn.Module]:
    """The modules inside of a block, without such as only keep parameters."""
    return [m for m in module.children() if not isinstance(m, (nn.ParameterDict, nn.ParameterList))]


def _normalizes(module: nn.Module, tried: _Tried) -> bool:
    return is_named_norm(module) or tried.scale_free


def _unseen(module: nn.Module) -> _Tried | None:
    """A normalizer that cannot be tried, for it does not run or runs inside a scripted block: by its name."""
    if not is_named_norm(module):
        return None
    over_batch = isinstance(module, _BATCH) or "Batch" in kind(module)
    return _Tried(over_batch, over_batch and module.training)


def _worth_trying(module: nn.Module) -> bool:
    """All but layers of torch that are known to treat each example alone, and containers."""
    of_torch = type(module).__module__.startswith("torch.nn.modules")
    return is_named_norm(module) or not (of_torch or blocks(module))


def _axis(tried: _Tried) -> int:
    return 1 if tried.axis is None else tried.axis


def _try(module: nn.Module, got: tuple, more: dict, along: int = 0) -> _Tried:
    """along: the axis of the examples."""
    run, x = _few(module, got, more)
    if run is None:
        return _unseen(module) or _Tried()
    with torch.enable_grad():  # as in training: a layer may infer where no gradient is asked for
        try:
            y = run(x)
            if not isinstance(y, Tensor) or not y.is_floating_point() or len(y) != len(x):
                return _unseen(module) or _Tried()
            other = x.clone()
            other.select(along, 0).copy_(3 * x.select(along, 0).flip(-1) + x.std() + 0.1)
            moved = run(other, train=True) - run(x, train=True)
            over_batch = _others_move(moved, y, along)
            pool = _pool(moved, along) if over_batch else 1.0
            if pool < 1:  # it cuts the batch: how, the whole batch tells
                pool = _pool_of_all(run, first_tensor(got, more), along)
            now = _others_move(run(other) - y, y, along)
            alike = y.shape == x.shape
            free = alike and _scale_free(lambda v: run(v, train=True), x)
            axis = (
                _unit_axis(module, run, x, y, over_batch)
                if alike and (free or is_named_norm(module))
                else None
            )
        except (Exception, SystemExit):  # somebody else's code
            return _unseen(module) or _Tried()
    return _Tried(over_batch, now, free, axis, pool)


def first_tensor(got: tuple, more: dict) -> Tensor | None:
    return next((v for v in [*got, *more.values()] if isinstance(v, Tensor)), None)


def alone(module: nn.Module, got: tuple, more: dict) -> tuple[Callable[..., Any] | None, Tensor | None]:
    """The layer by itself, as a function of the first tensor that it receives, from a fresh copy each time; of one example,
    a second one is made."""
    key = next((k for k, v in [*enumerate(got), *more.items()] if isinstance(v, Tensor)), None)
    x = None if key is None else (got[key] if isinstance(key, int) else more[key])
    if x is None or x.dim() < 2 or not x.is_floating_point() or not len(x):
        return None, None

    def run(values: Tensor, train: bool = False, change: Callable[[nn.Module], None] | None = None) -> Any:
        states = random_states()
        try:
            layer = copy.deepcopy(module)
            if train:
                layer.train()
            for parameter in [] if change else layer.parameters(recurse=False):
                if not parameter.any():  # a γ of zero hides what the layer does
                    parameter.data.fill_(1.0)
            if change:
                change(layer)
            placed = [values if k == key else v for k, v in enumerate(got)]
            return layer.forward(*placed, **{k: values if k == key else v for k, v in more.items()})
        finally:
            set_random_states(states)

    x = x.detach()
    return run, x.clone() if len(x) > 1 else torch.cat([x, 1.5 * x.flip(-1) + 0.1])


def _few(module: nn.Module, got: tuple, more: dict) -> tuple[Callable[..., Any] | None, Tensor | None]:
    run, x = alone(module, got, more)
    return run, x if x is None else x[:_FEW]


def _apart(difference: Tensor, size: Tensor, share: float = 1e-5) -> bool:
    return bool(difference.abs().max() > share * size.abs().max() + 1e-12) if difference.numel() else False


def _others_move(moved: Tensor, y: Tensor, along: int) -> bool:
    """Whether more than the first example moves, also where the layer turns the first two axes."""
    turned = moved.dim() > 1 and moved.shape[0] == moved.shape[1]
    return all(_apart(moved.transpose(0, axis)[1:], y) for axis in ((0, 1) if turned else (along,)))


def _pool(moved: Tensor, along: int) -> float:
    """Share of the examples that move with the first one."""
    rows = moved.detach().transpose(0, along).flatten(1).abs().amax(1)
    return float((rows > 1e-5 * rows.max()).double().mean()) if float(rows.max()) else 1.0


def _pool_of_all(run: Callable[..., Tensor], x: Tensor, along: int) -> float:
    other = x.detach().clone()
    other.select(along, 0).copy_(3 * x.detach().select(along, 0).flip(-1) + x.detach().std() + 0.1)
    return _pool(run(other, train=True) - run(x.detach(), train=True), along)


def _scale_free(run: Callable[[Tensor], Tensor], x: Tensor) -> bool:
    """Whether the output stays when the input is made larger, though it moves when the input is bent."""
    y, larger = run(8 * x), run(64 * x)
    bent = run(8 * x * (1 + 0.05 * torch.arange(x.numel(), device=x.device).view(x.shape).cos()).to(x.dtype))
    return not _apart(larger - y, y, 1e-2) and _apart(bent - y, y, 1e-3)


def _unit_axis(
    module: nn.Module, run: Callable[..., Tensor], x: Tensor, y: Tensor, over_batch: bool
) -> int | None:
    """Where one entry of the layer's own γ or β acts; without these, by the axes over which it pools."""
    if y.dim() == 2 or isinstance(module, _INSTANCE):
        return 1
    axes = [axis for axis in range(1, y.dim()) if y.shape[axis] > 1]
    for name, parameter in module.named_parameters(recurse=False):
        if not parameter.numel() > 1:
            continue

        def change(layer: nn.Module, name: str = name) -> None:
            getattr(layer, name).data.view(-1)[-1].add_(1.0)

        acts = (run(x, change=change) - y).abs() > 0
        one = [a for a in axes if int(acts.transpose(0, a).flatten(1).any(1).sum()) == 1]
        if len(one) == 1:
            return one[0]
    pools = [axis for axis in axes if _pools(run, x, y, axis)]
    alone = [axis for axis in axes if axis not in pools]
    if over_batch:
        return alone[0] if len(alone) == 1 else 1
    return pools[0] if len(pools) == 1 else 1


def _pools(run: Callable[..., Tensor], x: Tensor, y: Tensor, axis: int) -> bool:
    other = x.clone()
    other.select(axis, 0).mul_(3).add_(0.5)
    rest = slice(1, None)
    return _apart((run(other) - y).transpose(0, axis)[rest], y)


def _input_axis(module: nn.Module, got: tuple, more: dict) -> int | None:
    """The axis of the input on which a slice loses its effect when a row or column of the weight is zero."""
    default = (
        -1 if isinstance(module, nn.Linear) else 1 if isinstance(module, nn.modules.conv._ConvNd) else None
    )
    run, x = _few(module, got, more)
    if run is None:
        return default
    own = [n for n, p in module.named_parameters(recurse=False) if p.dim() >= 2]
    for name in own[:1]:
        for side in (1, 0):

            def change(layer: nn.Module, name: str = name, side: int = side) -> None:
                getattr(layer, name).data.select(side, 0).zero_()

            try:
                leaf = x[:2].clone().requires_grad_()
                gave = run(leaf, change=change)
                gave = gave[0] if isinstance(gave, (tuple, list)) else gave
                weight = torch.arange(1, gave.numel() + 1, device=gave.device).sin().view(gave.shape)
                (slope,) = torch.autograd.grad((gave * weight.to(gave.dtype)).sum(), leaf)
            except (Exception, SystemExit):  # somebody else's code
                continue
            still = {a: slope.transpose(0, a).flatten(1).abs().sum(1) == 0 for a in range(1, slope.dim())}
            one = [a for a, zero in still.items() if zero[0] and int(zero.sum()) == 1 and len(zero) > 1]
            if len(one) == 1:
                return one[0]
    return default


def some(names: Sequence[str]) -> str:
    """Three of them, and how many more."""
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(name or "the network's own code" for name in names[:3]) + more


def units_along(axis: int, values: Tensor) -> Tensor:
    """(…) -> (units, values of the unit), float64."""
    return values.detach().double().movedim(axis, 0).flatten(1)


def put(module: nn.Module, training: bool) -> None:
    """Into a mode; of a block its own code alone, not the layers inside."""
    if blocks(module):
        module.training = training
    else:
        module.train(training)
