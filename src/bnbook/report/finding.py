"""The layers of a foreign network, found by running each of them alone: which normalize, in which the examples
of a batch meet, which have weights, and along which axis their units lie."""

from __future__ import annotations

import copy
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from bnbook.normalizers.base import BatchNormalizer, Normalizer
from bnbook.report.experiments import meeting, second_axis, watch
from bnbook.report.reaching import random_states, set_random_states
from bnbook.report.subject import Subject, part

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


@dataclass
class _Tried:
    over_batch: bool = False
    meets_now: bool = False
    scale_free: bool = False
    axis: int | None = None


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
                    scales[name] = _scales(module, *_alone(module, got, more))
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
    meet = [n for n, t in tried.items() if t.over_batch] + [
        f.name for f in normal if f.name not in tried and f.over_batch
    ]
    meet += [name for name in _by_own_code(subject, meet) if name not in meet]
    return Anatomy(normal, tuple(layers), tuple(meet), order == [name for name in weighted if name in runs])


def _by_own_code(subject: Subject, layers: list[str]) -> list[str]:
    """Blocks, "" for the network itself, in whose own code examples meet in training mode, as with batch norm by
    torch's function between two layers: they do so while the layers known to mix them hand on what they get."""

    def pass_on(_module: nn.Module, got: tuple, more: dict, gave: Any) -> Any:
        x = next((v for v in [*got, *more.values()] if isinstance(v, Tensor)), None)
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
    return [name for name in places if list(modules[name].children())]


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
    return isinstance(module, _KNOWN) or (named and not list(module.children()))


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
    return is_named_norm(module) or not (of_torch or list(module.children()))


def _axis(tried: _Tried) -> int:
    return 1 if tried.axis is None else tried.axis


def _try(module: nn.Module, got: tuple, more: dict, along: int = 0) -> _Tried:
    """along: the axis of the examples."""
    run, x = _alone(module, got, more)
    if run is None:
        return _unseen(module) or _Tried()
    with torch.enable_grad():  # as in training: a layer may infer where no gradient is asked for
        try:
            y = run(x)
            if not isinstance(y, Tensor) or not y.is_floating_point() or len(y) != len(x):
                return _unseen(module) or _Tried()
            other = x.clone()
            other.select(along, 0).copy_(3 * x.select(along, 0).flip(-1) + x.std() + 0.1)
            over_batch = _others_move(run(other, train=True) - run(x, train=True), y, along)
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
    return _Tried(over_batch, now, free, axis)


def _alone(module: nn.Module, got: tuple, more: dict) -> tuple[Callable[..., Any] | None, Tensor | None]:
    """The layer by itself, as a function of the first tensor that it receives, from a fresh copy each time."""
    key = next((k for k, v in [*enumerate(got), *more.items()] if isinstance(v, Tensor)), None)
    x = None if key is None else (got[key] if isinstance(key, int) else more[key])
    if x is None or x.dim() < 2 or not x.is_floating_point() or len(x) < 2:
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

    return run, x.detach()[:_FEW].clone()


def _apart(difference: Tensor, size: Tensor, share: float = 1e-5) -> bool:
    return bool(difference.abs().max() > share * size.abs().max() + 1e-12) if difference.numel() else False


def _others_move(moved: Tensor, y: Tensor, along: int) -> bool:
    """Whether more than the first example moves, also where the layer turns the first two axes."""
    turned = moved.dim() > 1 and moved.shape[0] == moved.shape[1]
    return all(_apart(moved.transpose(0, axis)[1:], y) for axis in ((0, 1) if turned else (along,)))


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
    run, x = _alone(module, got, more)
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


def by_unit(module: nn.Module, values: Tensor) -> Tensor:
    """What a layer gets, (B, ...), unit by unit: (units, values of the unit), float64.

    The axis of the units is found by trying the layer on the values; where nothing tells it is axis 1.
    """
    axis = _try(module, (values,), {}).axis
    axis = _input_axis(module, (values,), {}) if axis is None else axis
    return units_along(1 if axis is None else axis, values)


def units_along(axis: int, values: Tensor) -> Tensor:
    """(…) -> (units, values of the unit), float64."""
    return values.detach().double().movedim(axis, 0).flatten(1)
