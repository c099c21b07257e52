"""What is found of a foreign network by trying: does it repeat, is its gradient the slope of its loss, do the examples of a
batch meet; and each of its layers, run alone: which normalize, which have weights, and along which axis their units lie."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import chain, combinations, count
from math import comb, inf
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.weak import WeakIdKeyDictionary

from bnbook.errors import BnbookError
from bnbook.normalizers.base import BatchNormalizer, Normalizer
from bnbook.probes.copies import random_states, set_random_states
from bnbook.probes.functional import total_norm
from bnbook.report.subject import Prepare, Subject, part

# ---- Of the whole network --------------------------------------------------------------------------------------------


FITS = 2e-3  # relative, of the slope of a loss in 64 bits
ASIDE = 1e-3  # of a parameter's size: far beyond the steps of these differences


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
    return near(value, again) and not bool(away > tolerance * total_norm(list(gradient.values())))


def near(value: Tensor, again: Tensor) -> bool:
    """Whether two losses are one, to rounding."""
    return bool((value - again).abs() <= 1e-6 * value.abs() + 1e-12)


def slope(subject: Subject, taken: tuple[Tensor, dict[str, Tensor]]) -> Slope:
    """The slope of the loss along its gradient, by differences; in 64 bits where the network runs in them.

    taken: loss and gradient as they are; where the slope does not fit these, they are taken in 64 bits, too. Where it is not
    that gradient either, all parameters are moved aside by little: if it is there, as behind a ReLU that stood at exactly
    zero, θ is a kink; a gradient that is none, as past detached parts, is none there either.
    """
    found, double = None, subject.but(double=True)
    for each, known in ((double, taken), (double, None), (subject, None)):
        at = dict(subject.parameters)
        try:
            here, exact = _slope_at(each, at, known)
        except (RuntimeError, TypeError, NotImplementedError, BnbookError):
            continue
        if here is None or known and not here.fits:
            continue
        if here.fits:
            return here
        draw = torch.Generator().manual_seed(0)
        for name, p in at.items():
            noise = torch.randn(p.shape, generator=draw, dtype=torch.float64).to(p.device)
            at[name] = p.double() + ASIDE * (float(p.double().square().mean().sqrt()) or 1.0) * noise
        aside, _ = _slope_at(each, at)
        if aside and aside.fits:
            return replace(here, kind="kink")
        found = here
        if exact:
            break
    if found is None:
        raise BnbookError("the slope of the loss cannot be tried")
    return found


def _slope_at(
    subject: Subject, at: dict[str, Tensor], known: tuple[Tensor, dict[str, Tensor]] | None = None
) -> tuple[Slope | None, bool]:
    """At parameters θ, and whether the loss is a number of 64 bits there; None where there is no gradient to go along."""
    start, gradient = known or subject.gradient(at)
    exact = start.dtype == torch.float64
    norms = {n: float(g.double().norm()) for n, g in gradient.items() if g is not None}
    size = sum(norms.values())
    if not 0 < size < inf:
        return None, exact
    way = {n: gradient[n].double() / norms[n] for n in norms if norms[n]}
    del gradient
    changes, within = ((1e-6, 1e-7), FITS) if exact else ((1e-2, 1e-3), 0.1)
    for change in changes:
        h = change * max(float(start.abs()), 1e-6) / size
        aside = (((n, at[n].double() + sign * h * u) for n, u in way.items()) for sign in (1, -1))
        ahead, behind = (subject.value(chain(at.items(), each)) for each in aside)
        if known and ahead.dtype != torch.float64:
            return None, False
        both = float(ahead - behind) / (2 * h)
        if abs(both / size - 1) < within:
            return Slope(size, both, both, "fits"), exact
        sides = float(ahead - start) / h, float(start - behind) / h
    return Slope(size, *sides, "other"), exact


def meeting(
    subject: Subject,
    prepare: Prepare | None = None,
    closed: Sequence[str] = (),
    grad: bool = True,
    every: bool = True,
) -> tuple[str, ...] | None:
    """Where the examples of a batch meet: the smallest modules that hand on other values for an example when
    another one is changed, though they received the same; ("",) is the network's own code; None where no
    example can be changed, or there is but one. closed: layers whose insides are not looked at. every: whether two
    that meet may be any; else one half is changed, which all layers show that mix a batch."""
    if len(subject.batch[0]) < 2:
        return None
    names = None if every else ("",)
    plain = _prints(subject, prepare, None, grad, names)
    sets = list(_tried_together(len(subject.batch[0])))[: None if every else 1]
    for k, which in enumerate(sets):
        names = ("",) if k and ("", "out") in plain else names  # the outputs alone tell whether any meet
        seen = _tried_with(subject, which, lambda other: _prints(subject, prepare, other, grad, names))
        if seen is None:
            return None
        if names and ("", "out") in plain and _others_apart(plain["", "out"], seen["", "out"], which):
            plain = _prints(subject, prepare, None, grad)
            seen = _tried_with(subject, which, lambda other: _prints(subject, prepare, other, grad))
        apart = {
            key: _others_apart(each, seen[key], which)
            for key, each in plain.items()
            if key in seen and not any(_within(key[0], outer) for outer in closed)
        }
        if any(apart.values()):
            return _smallest(apart) or ("",)
    return ()


def differing(subject: Subject, one: tuple[Prepare, bool], other: tuple[Prepare, bool]) -> tuple[str, ...]:
    """The smallest modules that hand on other values in one state of the network, (what prepares it, whether gradients are
    on), than in another one, though they received the same; "" is the network's own code."""
    here, there = (_prints(subject, prepare, None, grad) for prepare, grad in (one, other))
    return _smallest({key: key in there and _others_apart(v, there[key], ()) for key, v in here.items()})


def _smallest(apart: dict[tuple[str, str], bool]) -> tuple[str, ...]:
    """The smallest modules that hand on something apart from what they received alike."""
    here = [n for (n, side), far in apart.items() if side == "out" and far and not apart.get((n, "in"))]
    return tuple(n for n in here if not any(m != n and (_within(m, n) or not n) for m in here))


def _within(name: str, parent: str) -> bool:
    return name.startswith(f"{parent}.")


def _tried_together(examples: int) -> Iterator[tuple[int, ...]]:
    """Sets of examples that are changed together, k of them: an example is in the sets of its own half of k, so that whichever
    two meet, each is in one without the other (Sperner)."""
    k = next(k for k in count(2) if comb(k, k // 2) >= examples)
    own = list(zip(range(examples), combinations(range(k), k // 2)))
    for each in range(k):
        yield tuple(example for example, sets in own if each in sets)


def _tried_with(subject: Subject, which: Sequence[int], run: Callable[[Tensor], Any]) -> Any:
    """What a pass gives where some examples are bent; where they are numbers of classes, which a bent one is not, or the pass
    fails with these, where they are like others of the batch. None where all examples are alike."""
    inputs = subject.batch[0].detach()
    if inputs.is_floating_point():
        bent = inputs.clone()
        wave = torch.arange(inputs[0].numel(), device=inputs.device).cos().view(inputs[0].shape)
        bent[list(which)] += (wave * (inputs.double().std(correction=0) + 0.1)).to(inputs.dtype)
        with suppress(Exception):  # an index in a column of its own, a logarithm
            return run(bent)
    swapped = inputs.clone()
    for k in which:
        other = next((row for row in inputs if not torch.equal(row, inputs[k])), None)
        if other is None:
            return None
        swapped[k] = other
    return run(swapped)


def _prints(
    subject: Subject,
    prepare: Prepare | None,
    inputs: Tensor | None,
    grad: bool = True,
    names: Sequence[str] | None = None,
) -> dict[tuple[str, str], Tensor]:
    """(module, all or of these names, "in" or "out") -> two numbers an example, (runs, 2, B, 2), of what the module got or gave: with
    examples along its first axis, and along its second, where that is as long; else the first once more."""
    size, found = len(subject.batch[0]), {}
    known = WeakIdKeyDictionary()  # what one module gives is what the next one gets

    def taken(value: Tensor) -> Tensor:
        version, numbers = known.get(value, (None, None))
        if version != value._version:
            second = value.dim() > 1 and value.shape[1] == size  # time first, and as many times as examples
            rows = [value.detach().movedim(axis, 0).reshape(size, -1) for axis in range(1 + second)]
            rows = [x if x.is_floating_point() else x.double() for x in rows]
            wide = {"dim": 1, "dtype": torch.float64}
            both = [torch.stack([x.sum(**wide), torch.linalg.vector_norm(x, **wide)], 1) for x in rows]
            known[value] = version, numbers = value._version, torch.stack([both[0], both[-1]])
        return numbers

    def keep(key: tuple[str, str], values: Sequence[Any]) -> None:
        for value in values:
            if isinstance(value, Tensor) and value.dim() and len(value) == size and not value.is_complex():
                found.setdefault(key, []).append(taken(value))

    listed = lambda gave: gave if isinstance(gave, (tuple, list)) else [gave]
    before = lambda name, _module, got, more: keep((name, "in"), [*got, *more.values()])
    behind = lambda name, _module, _got, gave: keep((name, "out"), listed(gave))
    outputs = subject.run(prepare, before=before, behind=behind, inputs=inputs, grad=grad, names=names)
    keep(("", "out"), listed(outputs))
    return {key: torch.stack(values) for key, values in found.items()}


def _others_apart(one: Tensor, other: Tensor, which: tuple[int, ...]) -> bool:
    if one.shape != other.shape:
        return True
    kept = torch.ones(one.shape[2], dtype=torch.bool, device=one.device)
    kept[list(which)] = False
    one, other = one[:, :, kept], other[:, :, kept]
    apart = (one - other).abs() > 1e-5 * one.abs() + 1e-9
    return bool(apart.flatten(2).any(2).all(1).any())  # along whichever axis the examples lie


def second_axis(subject: Subject) -> set[str]:
    """Modules that receive the examples along axis 1, as (time, B, ...): what moves there when one example does."""
    size = len(subject.batch[0])

    def received(values: Tensor | None) -> dict[str, Tensor]:
        kept: dict[str, Tensor] = {}

        def keep(name: str, _module: nn.Module, got: tuple, more: dict) -> None:
            x = first_tensor(got, more)
            if x is not None and x.dim() > 2 and x.shape[1] == size:
                kept.setdefault(name, x.detach().double())

        subject.run(before=keep, inputs=values)
        return kept

    plain = received(None) if size > 1 else {}
    other = plain and _tried_with(subject, (0,), received) or {}
    away = lambda n: (plain[n] - other[n]).transpose(0, 1).flatten(1).abs().amax(1) > 0
    rows = {name: away(name) for name in plain if name in other}
    return {name for name, moved in rows.items() if moved[0] and not moved[1:].any()}


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
    pools: dict[str, float]  # share of the batch that a layer takes together
    ran: frozenset[str]  # modules that are seen to run
    elsewhere: tuple[str, ...]  # where else they meet, in a layer that alone does not mix them or in own code


@dataclass
class _Tried:
    over_batch: bool = False
    meets_now: bool = False
    scale_free: bool = False
    axis: int = 1
    pool: float = 1.0


def inspect(subject: Subject) -> Anatomy:
    """One pass over a copy, in which each layer is tried alone on what it receives."""
    tried: dict[str, _Tried] = {}
    runs: dict[str, int] = {}
    axes: dict[str, int | None] = {}
    scales: dict[str, set[int]] = {}
    along = second_axis(subject)

    def look(name: str, module: nn.Module, got: tuple, more: dict) -> None:
        runs[name] = runs.get(name, 0) + 1
        if runs[name] > 1 or not (got or more):
            return
        if name in weighted:
            axes[name] = _input_axis(module, got, more)
            scales[name] = _scales(module, *alone(module, got, more, _FEW))
        if _worth_trying(module):
            tried[name] = _try(module, got, more, int(name in along))

    inside = [n for n, _ in subject.network.named_modules() if n and "parametrizations" not in n.split(".")]
    with subject.twin(before=look, names=inside) as twin:
        every = dict(twin.network.named_modules())
        modules = {name: every[name] for name in ("", *inside)}
        weighted = {name: own for name, module in modules.items() if (own := weights(module))}
        twin.value()
        normal = tuple(
            Found(name, kind(module), each.over_batch, module.training, each.axis, each.meets_now)
            for name, module in modules.items()
            if (each := tried.get(name) or _unseen(module)) and (is_named_norm(module) or each.scale_free)
        )
        for name, own in weighted.items():
            small = scales[name] if name in scales else _scales(modules[name], None, None)
            weighted[name] = [p for p in own if id(p) not in small]
        # whatever the network says of its parameters itself
        named = list(nn.Module.named_parameters(twin.network, remove_duplicate=False))
        names = {id(p): n for n, p in reversed(named)}
        layers = [
            Layer(
                name, kind(modules[name]), tuple(dict.fromkeys(names[id(p)] for p in own)), runs.get(name, 0),
                axes.get(name),
            )
            for name, own in weighted.items()
            if own
        ]  # fmt: skip
    registered = [each.name for each in layers if each.runs]
    order = [name for name in runs if name in registered]
    layers.sort(key=lambda each: order.index(each.name) if each.runs else len(order))
    scripted = [n for n, m in modules.items() if isinstance(m, torch.jit.ScriptModule)]
    unseen = lambda name: any(not s or name == s or _within(name, s) for s in scripted)
    meet = [n for n, t in tried.items() if t.over_batch]
    meet += [f.name for f in normal if f.name not in tried and f.over_batch and unseen(f.name)]
    elsewhere = _elsewhere(subject, meet)
    meet += [name for name in elsewhere if name not in meet and blocks(part(subject.network, name))]
    pools = {n: t.pool for n, t in tried.items()}
    return Anatomy(normal, tuple(layers), tuple(meet), order == registered, pools, frozenset(runs), elsewhere)


def _elsewhere(subject: Subject, layers: list[str]) -> tuple[str, ...]:
    """Where else examples meet in training mode, as in the own code, with batch norm by torch's function, of a block or of the
    network itself (""): they do so while the layers known to mix them hand on what they get."""

    def pass_on(_module: nn.Module, got: tuple, more: dict, gave: Any) -> Any:
        x = first_tensor(got, more)
        return x if isinstance(gave, Tensor) and x is not None and x.shape == gave.shape else None

    def prepare(network: nn.Module) -> None:
        network.train()
        for name in layers:
            with suppress(RuntimeError):  # inside a scripted block
                part(network, name).register_forward_hook(pass_on, with_kwargs=True)

    with suppress(Exception):  # in a mode that it is not in somebody else's code may fail
        return meeting(subject, prepare, layers) or ()
    return ()


def kind(module: nn.Module) -> str:
    """The class of a module, as it was before it was scripted or its weights were parametrized."""
    name = getattr(module, "original_name", None)
    return name if isinstance(name, str) else type(module).__name__.removeprefix("Parametrized")


def weights(module: nn.Module) -> list[Tensor]:
    """The parameters with two or more axes that a module owns, those behind a parametrization too."""
    own = list(module.parameters(recurse=False))
    if nn.utils.parametrize.is_parametrized(module):
        own += list(module.parametrizations.parameters())
    return [p for p in own if p.dim() >= 2 and p.is_floating_point()] if not is_named_norm(module) else []


def is_named_norm(module: nn.Module) -> bool:
    named = kind(module).rstrip("123d").endswith("Norm")
    return isinstance(module, _KNOWN) or (named and not blocks(module))


def blocks(module: nn.Module) -> list[nn.Module]:
    """The modules inside of a block, without such as only keep parameters."""
    return [m for m in module.children() if not isinstance(m, (nn.ParameterDict, nn.ParameterList))]


def put(module: nn.Module, training: bool) -> None:
    """Into a mode; of a block its own code alone, not the layers inside."""
    if blocks(module):
        module.training = training
    else:
        module.train(training)


def units_along(axis: int, values: Tensor) -> Tensor:
    """(…) -> (units, values of the unit), float64."""
    return values.detach().double().movedim(axis, 0).flatten(1)


def by_unit(module: nn.Module, x: Tensor) -> Tensor:
    """What a normalizer receives, (units, values of the unit), the units where a trial of it alone finds them."""
    return units_along(_try(module, (x,), {}, 0).axis, x)


def first_tensor(got: tuple, more: dict) -> Tensor | None:
    return next((v for v in [*got, *more.values()] if isinstance(v, Tensor)), None)


def alone(
    module: nn.Module, got: tuple, more: dict, most: int | None = None
) -> tuple[Callable[..., Any] | None, Tensor | None]:
    """The layer by itself, as a function of the first tensor that it receives, from a fresh copy each time; of one example,
    a second one is made."""
    x = first_tensor(got, more)
    if x is None or x.dim() < 2 or not x.is_floating_point() or not len(x):
        return None, None
    key = next(k for k, v in [*enumerate(got), *more.items()] if v is x)

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
    return run, (x.clone() if len(x) > 1 else torch.cat([x, 1.5 * x.flip(-1) + 0.1]))[:most]


def _unseen(module: nn.Module) -> _Tried | None:
    """A normalizer that cannot be tried, for it does not run or runs inside a scripted block: by its name."""
    over_batch = isinstance(module, _BATCH) or "Batch" in kind(module)
    return _Tried(over_batch, over_batch and module.training) if is_named_norm(module) else None


def _of_torch(module: nn.Module) -> bool:
    return type(module).__module__.startswith("torch.nn.modules")


def _worth_trying(module: nn.Module) -> bool:
    """All but layers of torch that are known to treat each example alone, and containers."""
    return is_named_norm(module) or not (_of_torch(module) or blocks(module))


def _try(module: nn.Module, got: tuple, more: dict, along: int) -> _Tried:
    """along: the axis of the examples."""
    run, x = alone(module, got, more, _FEW)
    try:
        with torch.enable_grad():  # as in training: a layer may infer where no gradient is asked for
            y = run(x)
            if not isinstance(y, Tensor) or not y.is_floating_point() or len(y) != len(x):
                return _unseen(module) or _Tried()
            trained = lambda v: run(v, train=True)
            away = trained(_bent(x, along)) - trained(x)
            over_batch = _others_move(away, y, along)
            pool = _pool(away, along) if over_batch else 1.0
            if pool < 1:  # it cuts the batch: how, the whole batch tells
                whole = first_tensor(got, more).detach()
                pool = _pool(trained(_bent(whole, along)) - trained(whole), along)
            free = y.shape == x.shape and _scale_free(trained, x)
            asked = y.shape == x.shape and (free or is_named_norm(module))
            axis = _unit_axis(module, run, x, y, over_batch) if asked else 1
            return _Tried(over_batch, _others_move(run(_bent(x, along)) - y, y, along), free, axis, pool)
    except (Exception, SystemExit):  # somebody else's code, or there is nothing to run it on
        return _unseen(module) or _Tried()


def _bent(x: Tensor, along: int) -> Tensor:
    """With another first example."""
    other = x.clone()
    other.select(along, 0).copy_(3 * x.select(along, 0).flip(-1) + x.std() + 0.1)
    return other


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


def _scale_free(run: Callable[[Tensor], Tensor], x: Tensor) -> bool:
    """Whether the output stays when the input is made larger, though it moves when the input is bent."""
    y, larger = run(8 * x), run(64 * x)
    bent = run(8 * x * (1 + 0.05 * torch.arange(x.numel(), device=x.device).view(x.shape).cos()).to(x.dtype))
    return not _apart(larger - y, y, 1e-2) and _apart(bent - y, y, 1e-3)


def _slices(moved: Tensor) -> dict[int, Tensor]:
    """Axis behind the examples' -> which of its slices hold anything but zero."""
    return {a: (moved != 0).transpose(0, a).flatten(1).any(1) for a in range(1, moved.dim())}


def _last_entry(name: str) -> Callable[[nn.Module], None]:
    return lambda layer: getattr(layer, name).data.view(-1)[-1].add_(1.0) and None


def _scales(module: nn.Module, run: Callable[..., Any] | None, x: Tensor | None) -> set[int]:
    """Of the parameters with two or more axes of which at most one is longer than 1, of a class that is not torch's, those of
    which one entry acts on one unit only: a γ or β, (1, C, 1, 1), and no weights; where this cannot be tried, all but columns
    (n, 1)."""
    own = [] if type(module).__module__.startswith("torch.nn") else module.named_parameters(recurse=False)
    found = set()
    for name, p in own:
        if p.dim() < 2 or sum(size > 1 for size in p.shape) > 1:
            continue
        try:
            acts = _slices(run(x, change=_last_entry(name)) - run(x, change=lambda _: None))
            scales = any(len(each) == p.numel() and int(each.sum()) <= 1 for each in acts.values())
        except (Exception, SystemExit):  # somebody else's code, or it does not run
            scales = p.dim() > 2 or len(p) == 1
        if scales or p.numel() == 1:
            found.add(id(p))
    return found


def _unit_axis(module: nn.Module, run: Callable[..., Tensor], x: Tensor, y: Tensor, over_batch: bool) -> int:
    """Where one entry of the layer's own γ or β acts; without these, by the axes over which it pools."""
    axes = [axis for axis in range(1, y.dim()) if y.shape[axis] > 1]
    if y.dim() == 2 or isinstance(module, _INSTANCE):
        return 1
    for name, parameter in module.named_parameters(recurse=False):
        if parameter.numel() > 1:
            acts = _slices(run(x, change=_last_entry(name)) - y)
            one = [a for a in axes if int(acts[a].sum()) == 1]
            if len(one) == 1:
                return one[0]

    def pools(axis: int) -> bool:
        other = x.clone()
        other.select(axis, 0).mul_(3).add_(0.5)
        return _apart((run(other) - y).transpose(0, axis)[1:], y)

    likely = [axis for axis in axes if pools(axis) is not over_batch]
    return likely[0] if len(likely) == 1 else 1


def _input_axis(module: nn.Module, got: tuple, more: dict) -> int | None:
    """The axis of the input on which a slice loses its effect when a row or column of the weight is zero."""
    default = -1 if isinstance(module, nn.Linear) else 1
    default = default if isinstance(module, (nn.Linear, nn.modules.conv._ConvNd)) else None
    given = first_tensor(got, more)
    if default and given is not None and _of_torch(module):  # it is known
        return default % given.dim()
    run, x = alone(module, got, more, 2)
    own = [n for n, p in module.named_parameters(recurse=False) if p.dim() >= 2][:1]
    for name, side in [(name, side) for name in own if run for side in (1, 0)]:
        try:
            leaf = x.requires_grad_()
            gave = run(leaf, change=lambda m: getattr(m, name).data.select(side, 0).zero_() and None)
            gave = gave[0] if isinstance(gave, (tuple, list)) else gave
            weight = torch.arange(1, gave.numel() + 1, device=gave.device).sin().view(gave.shape)
            (slope,) = torch.autograd.grad((gave * weight.to(gave.dtype)).sum(), leaf)
        except (Exception, SystemExit):  # somebody else's code
            continue
        one = [a for a, s in _slices(slope).items() if not s[0] and int((~s).sum()) == 1 and len(s) > 1]
        if len(one) == 1:
            return one[0]
    return default


# ---- What layers keep ------------------------------------------------------------------------------------------------


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
    after = before = {name: kept_by(part(subject.network, name)) for name in names}
    with suppress(Exception), subject.twin() as twin:  # in training mode somebody else's code may fail
        for name in names:
            part(twin.network, name).train()
        twin.outputs()
        after = {name: kept_by(part(twin.network, name)) for name in names}
    moves = lambda name, key: key in after[name] and not torch.equal(before[name][key], after[name][key])
    is_one = lambda name, key: key.startswith("running_") or moves(name, key)
    return {name: {k: b for k, b in own.items() if is_one(name, k)} for name, own in before.items()}


def as_made(averages: dict[str, Tensor]) -> bool:
    """Whether running averages are still what layers start them with: a mean of 0, a variance of 1."""
    return bool(averages) and all(bool((b == 0).all() or (b == 1).all()) for b in averages.values())
