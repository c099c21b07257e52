"""What experiments on copies say to somebody who has a network and a symptom: plain sentences in order of weight.

A sentence stands only where an intervention showed it, and says which: averages are made anew, the batch is halved, a
bias is moved, weights are made longer, a layer makes its step alone. What no intervention can tell is not said.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor, nn

from bnbook.errors import BnbookError
from bnbook.probes.layer_gradients import LayerGradients
from bnbook.report.finding import (
    Anatomy,
    as_made,
    averages,
    differing,
    first_tensor,
    kept_by,
    kind,
    meeting,
    put,
    some,
    units_along,
    watch,
)
from bnbook.report.subject import Subject, part

#: What each sentence is about -> the number from which it is said, and the chapter that shows it.
RULES = {
    "modes": (0.1, "batch-norm/transform"),  # ‖f_batch − f_averages‖ / ‖f_batch‖
    "fast path": (0.01, "batch-norm/transform"),  # the same of inference with and without gradients
    "companions": (1e-4, "batch-norm/transform"),  # how far an example's inference moves with the others
    "averages": (0.05, "batch-norm/transform"),  # share of the averages that is what they were made with
    "momentum": (0.5, "batch-norm/transform"),  # weight of the newest batch in the averages
    "values": (16, "batch-norm/transform"),  # fewer values than this a unit and batch
    "frozen": (1, "batch-norm/transform"),  # layers with frozen γ and β that normalize by the batch
    "epsilon": (0.1, "batch-norm/transform"),  # ε over the variance of a unit
    "constant": (1, "batch-norm/transform"),  # units whose values are all alike
    "bias": (1, "batch-norm/transform"),  # biases that change no output
    "turn": (0.1, "decoupling/neural-networks"),  # η ‖g‖ / ‖W‖ of a layer that is blind to ‖W‖
    "decay": (1, "decoupling/neural-networks"),  # parameters γ and β that decay
    "last layer": (1.0, "mean-field/readout"),  # loss after a step of the last layer over that before
    "growth": (1.2, "batch-norm/gradient-explosion"),  # of the gradient a layer, towards the input
}
BLIND, FEW_LAYERS = 1e-2, 4
IDLE = 1e-10  # of the loss, in 64 bits: what a bias that does nothing moves by rounding
APART = 3.0  # sampling errors beyond which averages are not those of a batch


@dataclass(frozen=True)
class Sentence:
    """One thing to know, its number, the threshold from which it is said, and the chapter that shows it."""

    about: str  # a key of RULES
    says: str
    value: float
    threshold: float
    chapter: str
    layers: tuple[str, ...] = ()

    @property
    def weight(self) -> float:
        """How far beyond its threshold the number is, as a factor."""
        if self.about == "values":  # here few are many
            return self.threshold / max(self.value, 1e-12)
        return self.value / self.threshold


def diagnose(
    subject: Subject,
    anatomy: Anatomy,
    start: float,
    gradient: Mapping[str, Tensor],
    by_layer: LayerGradients | None,
    learning_rate: float,
    optimizer: torch.optim.Optimizer | None = None,
    others: Sequence[Tensor] = (),
) -> tuple[Sentence, ...]:
    """All that is found, the heaviest first; what cannot be tried is not said. others: inputs of further batches."""
    seen = Modes(subject, anatomy, others)
    found: list[Sentence] = []
    rules: list[Callable[[], Iterator[Sentence]]] = [
        lambda: _averages(seen),
        lambda: _modes(seen),
        lambda: _values(seen),
        lambda: _frozen(seen),
        lambda: _companions(seen),
        lambda: _units(seen),
        lambda: _biases(subject, anatomy, start, gradient),
        lambda: _blind(subject, start, by_layer, learning_rate),
        lambda: _last_layer(subject, anatomy, start, gradient, learning_rate),
        lambda: _growth(by_layer),
        lambda: _decay(subject.network, anatomy, optimizer),
    ]
    for rule in rules:
        try:
            found += rule()
        except Exception:  # a pass of somebody else's code that fails where it is changed
            continue
    return tuple(sorted(found, key=lambda each: -each.weight))


def _say(about: str, value: float, says: str, layers: tuple[str, ...] = ()) -> Sentence:
    threshold, chapter = RULES[about]
    return Sentence(about, says, float(value), float(threshold), chapter, layers)


@dataclass(frozen=True)
class Kept:
    """What a layer keeps beside what it meets: of each unit, over the values of one batch."""

    kept: tuple[Tensor, Tensor]  # running mean and variance, (units,) each, as they are
    batch: tuple[Tensor, Tensor]  # of the batch, variance with 1/n
    halves: tuple[tuple[Tensor, Tensor], ...]  # of its two halves; () where a half has but one value
    values: int  # n, of a unit
    newest: float  # weight of the newest batch in the running mean; nan where the pass did not move it
    names: tuple[str, str]  # of the two among what the layer keeps
    power: float  # ½ where it keeps a standard deviation
    many: tuple[Tensor, Tensor]  # mean of the moments of all batches that were given

    def errors(self) -> float:
        """Root mean square distance of the averages from the batch's moments, in sampling errors of these.

        The error of a moment of n values is half its difference between the two halves of the batch, whatever the
        values' correlations; of the variances by their logarithms. The larger one of mean and variance.
        """
        found = [] if self.halves else [math.nan]
        for k in (0, 1) if self.halves else ():
            kept, batch, one, other = (
                x[k].clamp_min(1e-30).log() if k else x[k] for x in (self.kept, self.batch, *self.halves)
            )
            size = (one - other).square().mean() / 4
            found.append(float(((kept - batch).square().mean() / size.clamp_min(1e-30)).sqrt()))
        return max(found)

    def without(self, share: float) -> tuple[Tensor, Tensor]:
        """The averages with this share of their start, mean 0 and variance 1, taken out; the batch's own of a share of 1."""
        if share > 0.99:
            return self.batch
        return self.kept[0] / (1 - share), ((self.kept[1] - share) / (1 - share)).clamp_min(0)

    def start(self) -> float:
        """Share s of the start (mean 0, variance 1) in the averages, s · start + (1 − s) · batch, by least squares."""
        mean, variance = self.batch
        scale = variance.clamp_min(1e-30)
        way = torch.cat([-mean / scale.sqrt(), (1 - variance) / scale])
        gone = torch.cat([(self.kept[0] - mean) / scale.sqrt(), (self.kept[1] - variance) / scale])
        size = float(way.square().sum())
        return float((gone * way).sum()) / size if size > 1e-3 * len(way) else math.nan


@dataclass
class Modes:
    """Outputs in training and inference, and what the layers meet in which the examples of a batch meet.

    Layers are asked as the network's own `train()` leaves them. "Batch": inference of all other layers (dropout at
    rest), with the statistics of the batch in these. Inference: `eval()`, with gradients off.
    """

    subject: Subject
    anatomy: Anatomy
    others: Sequence[Tensor] = ()  # inputs of further batches
    rest: Callable[[nn.Module], object] = nn.Module.eval  # the mode of all other layers
    layers: tuple[str, ...] = ()  # that meet after network.train()
    moments: dict[str, Kept] = field(default_factory=dict)
    inputs: dict[str, Tensor] = field(default_factory=dict)  # (units, values)
    batch: Tensor | None = None  # outputs
    shares: dict[str, float] = field(default_factory=dict)  # of the start in the averages, where some is left
    cut: frozenset[str] = (
        frozenset()
    )  # layers that take the batch in parts, by themselves or by what calls them

    def __post_init__(self) -> None:
        self.axes = {each.name: each.axis for each in self.anatomy.normalizers}
        with suppress(Exception), self.subject.twin() as twin:
            twin.network.train()
            self.layers = tuple(n for n in self.anatomy.meeting if part(twin.network, n).training)
        if not self.layers:
            return
        first: dict[str, Tensor] = {}
        self.batch = self.run(lambda network: self._looked_at(network, first))
        self.inputs = {n: units_along(self.axes[n], x) for n, x in first.items()}
        size = len(self.subject.batch[0])
        self.cut = frozenset(
            n
            for n, x in first.items()
            if self.anatomy.pools.get(n, 1.0) < 1 or size not in (len(x), x.shape[1])
        )
        many = [{n: _moments(x) for n, x in self.inputs.items()}]
        for inputs in self.others:
            found: dict[str, Tensor] = {}
            self.run(lambda network, found=found: self._looked_at(network, found), inputs=inputs)
            if found.keys() == first.keys():
                many.append({n: _moments(units_along(self.axes[n], x)) for n, x in found.items()})
        for name, (names, power, newest) in self._averaging().items():
            values, half = self.inputs[name], len(first[name]) // 2
            parts = [units_along(self.axes[name], x) for x in (first[name][:half], first[name][half:])]
            kept = [kept_by(part(self.subject.network, name))[n].double().flatten() for n in names]
            self.moments[name] = Kept(
                (kept[0], kept[1] ** (1 / power)),
                _moments(values),
                tuple(map(_moments, parts)) if half and parts[0].shape[1] > 1 else (),
                values.shape[1],
                newest,
                names,
                power,
                tuple(torch.stack([each[name][k] for each in many]).mean(0) for k in (0, 1)),
            )

    def by_batch(self, network: nn.Module) -> None:
        self.rest(network)
        for name in self.layers:
            put(part(network, name), True)

    def _looked_at(self, network: nn.Module, found: dict[str, Tensor]) -> None:
        def keep(name: str, x: Tensor | None) -> None:
            if x is not None and x.is_floating_point() and x.dim() > 1:
                found.setdefault(name, x.detach().double())

        self.by_batch(network)
        for name in self.layers:
            if name in self.axes:
                watch(
                    part(network, name), lambda _m, got, more, n=name: keep(n, first_tensor(got, more)), None
                )

    def _averaging(self) -> dict[str, tuple[tuple[str, str], float, float]]:
        """Layer -> the names of its running mean and variance, the power at which it keeps the latter, and the weight w of
        the newest batch: all that it keeps is moved away to r, and goes in a pass to r + w (μ − r), μ of the batch."""
        start: dict[str, dict[str, Tensor]] = {}
        toward: dict[str, list[tuple[int, float, Tensor]]] = {}
        found: dict[str, dict[int, tuple[float, str, float, float]]] = {}

        def enter(name: str, module: nn.Module, x: Tensor | None) -> None:
            if x is None or name in start:
                return
            values = units_along(self.axes[name], x)
            mean, variance = _moments(values)
            whole = variance * values.shape[1] / max(1, values.shape[1] - 1)
            toward[name] = [(0, 1.0, mean), (1, 1.0, whole), (1, 1.0, variance), (1, 0.5, variance.sqrt())]
            start[name] = {}
            for key, kept in kept_by(module).items():
                if kept.numel() == len(values):
                    away = torch.where(kept.isfinite(), kept, 0.0)
                    kept.copy_(away + 1 + away.abs())
                    start[name][key] = kept.detach().double().flatten().clone()

        def leave(name: str, module: nn.Module) -> None:
            if name in found or name not in start:
                return
            found[name], after = {}, kept_by(module)
            for key, r in start[name].items():
                gone = after[key].double().flatten() - r
                for which, power, goal in toward[name] if gone.any() else ():
                    way = goal - r
                    w = float((gone * way).sum() / way.square().sum())
                    rest = float((gone - w * way).norm() / gone.norm())
                    if rest < 0.02 and w > 0 and rest < found[name].get(which, (1.0,))[0]:
                        found[name][which] = rest, key, power, round(w, 6)

        def prepare(network: nn.Module) -> None:
            self.by_batch(network)
            for name in self.inputs:
                watch(
                    part(network, name),
                    lambda m, got, more, n=name: enter(n, m, first_tensor(got, more)),
                    lambda m, _g, _o, n=name: leave(n, m),
                )

        with torch.no_grad():
            self.run(prepare)
        result = {}
        for name in self.inputs:
            seen, kept, units = (
                found.get(name, {}),
                kept_by(part(self.subject.network, name)),
                len(self.inputs[name]),
            )
            names = tuple(seen[k][1] if k in seen else f"running_{w}" for k, w in ((0, "mean"), (1, "var")))
            if all(n in kept and kept[n].numel() == units for n in names):
                still = 0.0 if name in found and not found[name] else math.nan
                result[name] = names, seen[1][2] if 1 in seen else 1.0, seen[0][3] if 0 in seen else still
        return result

    def run(
        self,
        prepare: Callable[[nn.Module], object],
        rows: slice | Tensor = slice(None),
        grad: bool = True,
        inputs: Tensor | None = None,
    ) -> Tensor | None:
        """Outputs for some rows of the batch, in a state; None where somebody else's code fails there."""
        try:
            with self.subject.twin() as twin, torch.set_grad_enabled(grad):
                prepare(twin.network)
                given = twin.outputs((twin.inputs if inputs is None else inputs.to(twin.inputs.dtype))[rows])
                return given.detach().double() if isinstance(given, Tensor) else None
        except Exception:
            return None

    def shuffled(self) -> Tensor:
        return torch.randperm(len(self.subject.batch[0]), generator=torch.Generator().manual_seed(0))

    def away(self, other: Tensor | None, one: Tensor | None = None) -> float:
        """‖one − other‖ / ‖one‖, one being the outputs with the batch's statistics."""
        one = self.batch if one is None else one
        if one is None or other is None or one.shape != other.shape:
            return math.nan
        return float((one - other).norm() / one.norm().clamp_min(1e-300))

    def averaged(
        self, change: Callable[[str, Kept], tuple[Tensor, Tensor]] | None = None, grad: bool = False
    ) -> Tensor | None:
        """Outputs in inference, by the averages as they are or by others."""

        def prepare(network: nn.Module) -> None:
            network.eval()
            for name, kept in self.moments.items() if change else ():
                own, (mean, variance) = kept_by(part(network, name)), change(name, kept)
                for key, value in zip(kept.names, (mean, variance**kept.power), strict=True):
                    with torch.no_grad():
                        own[key].copy_(value.to(own[key]).view_as(own[key]))

        return self.run(prepare, grad=grad)


def _moments(units: Tensor) -> tuple[Tensor, Tensor]:
    return units.mean(1), units.var(1, correction=0)


def _finite(kept: Kept) -> bool:
    return all(bool(torch.isfinite(each).all()) for each in kept.kept)


def _averages(seen: Modes) -> Iterator[Sentence]:
    """What the averages hold: numbers that are none, their start, the newest batch alone."""
    lost = [name for name, kept in seen.moments.items() if not _finite(kept)]
    if lost:
        yield _say(
            "averages",
            len(lost),
            f"the running averages of {some(lost)} are not finite numbers: a batch has overflowed once, and averaging does not "
            "forget it; training does not use them, inference does: reset_running_stats(), and let it see batches",
            tuple(lost),
        )
    shares, weights = seen.shares, {}
    for name, kept in seen.moments.items():
        if name in lost:
            continue
        made = bool((kept.kept[0] == 0).all() and (kept.kept[1] == 1).all())
        share = 1.0 if made else kept.start()
        counted = getattr(part(seen.subject.network, name), "num_batches_tracked", None)
        once = (
            (1 - kept.newest) ** int(counted)
            if counted is not None and not math.isnan(kept.newest)
            else math.nan
        )
        # the start is said to be in them only where the count of batches and the averages themselves say so
        if made or (min(share, once) >= RULES["averages"][0] and abs(once - share) <= 0.1 + 0.3 * share):
            shares[name] = share if made else once
        if kept.newest >= RULES["momentum"][0]:
            weights[name] = kept.newest
    others = averages(seen.subject, [name for name in seen.layers if name not in seen.moments])
    shares |= {name: 1.0 for name, kept in others.items() if as_made(kept)}  # in buffers of other names
    if shares:
        name = max(shares, key=shares.__getitem__)
        yield _say(
            "averages",
            shares[name],
            f"{shares[name]:.0%} of the running averages of {name} is what they were made with, a mean of 0 and a variance of 1: "
            + (
                "with momentum 0 they stay so"
                if name in seen.moments and not seen.moments[name].newest
                else "let it see more batches before it infers"
            ),
            tuple(shares),
        )
    if weights:
        name = max(weights, key=weights.__getitem__)
        old = 1 - weights[name]
        yield _say(
            "momentum",
            weights[name],
            f"one batch moves the running averages of {name} by {weights[name]:.0%} of the way to its own, so that they are those "
            f"of the last {_count(max(1, round(1 / weights[name])), 'batch', 'batches').removeprefix('1 ')}"
            + (
                f"; where {weights[name]:g} was meant as the weight of the old averages, expected {old:.2g}"
                if old > 0.01
                else ""
            ),
            tuple(weights),
        )


def _modes(seen: Modes) -> Iterator[Sentence]:
    plain, without = (seen.run(nn.Module.eval, grad=grad) for grad in (True, False))
    path = seen.away(without, plain) if plain is not None else math.nan
    away = seen.away(without)
    if not path >= RULES["fast path"][0]:
        path = 0.0
    if seen.batch is not None and all(_finite(kept) for kept in seen.moments.values()):
        why = _why(seen, away) if away >= RULES["modes"][0] else ""
        if why and not (path and why == UNKNOWN):
            yield _say(
                "modes",
                away,
                f"with the batch's statistics and with running averages the output differs by {away:.0%} on this batch; {why}",
                seen.layers,
            )
    if path:
        yield _say("fast path", path, *_off(seen, path, plain))


UNKNOWN = "averages made anew from this batch do not close the gap: why cannot be told here"


def _off(seen: Modes, path: float, plain: Tensor) -> tuple[str, tuple[str, ...]]:
    """What gives another output where gradients are off: torch's fast path for attention, or layers that ask for them."""
    says = f"inference without gradients gives another output than with them, by {path:.0%}"
    before = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        closed = seen.away(seen.run(nn.Module.eval, grad=False), plain) <= path / 10
    finally:
        torch.backends.mha.set_fastpath_enabled(before)
    places = differing(seen.subject, (nn.Module.eval, True), (nn.Module.eval, False))
    where = some(places)
    if closed:
        layers = f"torch's fast path of {where} computes something else"
        return f"{says}: {layers}; torch.backends.mha.set_fastpath_enabled(False) closes the gap", places
    return (
        f"{says}: {where or 'a layer'} asks whether gradients are on, not for the mode, which eval() sets",
        places,
    )


def _why(seen: Modes, away: float) -> str:
    """Which intervention closes the gap."""
    anew = seen.away(seen.averaged(lambda _, kept: kept.batch))
    if seen.cut:
        rows = seen.shuffled()
        moved = seen.away(seen.run(seen.by_batch, rows), seen.batch[rows])
        if moved >= away / 2:
            return (
                f"in another order of the batch the output differs by {moved:.0%} as well: the statistics of the parts into which "
                f"{some(sorted(seen.cut))} takes it scatter as much"
            )
    if not seen.moments:
        return f"why cannot be told here: no mean and variance are found that {some(seen.layers)} keeps"
    if not anew <= away / 4:
        return UNKNOWN
    corrected = seen.away(
        seen.averaged(lambda _, k: (k.batch[0], k.batch[1] * k.values / max(1, k.values - 1)))
    )
    tried = all(kept.halves for kept in seen.moments.values())
    halves = [seen.away(seen.averaged(lambda _, kept, k=k: kept.halves[k])) for k in (0, 1) if tried]
    scatter = sum(halves) / 2 if tried else math.nan
    if seen.shares:
        without = seen.away(seen.averaged(lambda name, kept: kept.without(seen.shares.get(name, 0.0))))
        if without <= away / 2:
            return f"with what they were made with taken out of the averages it differs by {without:.0%}"
    if corrected >= away / 2:
        return (
            f"averages made anew from this batch, their variances with 1/(n - 1) as they are kept, differ by {corrected:.0%}, with "
            "1/n by nothing: it is the factor n/(n - 1), layer upon layer"
        )
    far = {name: kept.errors() for name, kept in seen.moments.items() if kept.halves}
    if dropped := _dropped(seen, away):
        return dropped
    if seen.others:
        many = seen.away(seen.averaged(lambda _, kept: kept.many))
        count = len(seen.others) + 1
        if many >= away / 2:
            return f"averages made anew from {count} batches differ by {many:.0%} as well: one batch's statistics scatter as much"
        return (
            f"averages made anew from {count} batches differ by {many:.0%}: let the averages see such data with these weights before "
            "inference"
        )
    if not far:
        return f"averages made anew from this batch differ by {anew:.0%}"
    if any(each not in seen.axes for each in seen.anatomy.meeting):  # then its halves are not drawn apart
        return (
            f"averages made anew from this batch differ by {anew:.0%}; as its examples meet elsewhere, too, one batch cannot "
            "tell its own scatter from averages of other data: hand over several"
        )
    name = max(far, key=far.__getitem__)
    if far[name] < APART and not scatter >= 0:
        return "the averages are those of such a batch to its sampling error"
    if far[name] < APART or away <= 2 * scatter:
        return (
            f"the averages are those of such a batch to its sampling error; averages from half of it differ by {scatter:.0%} "
            "as well: one batch's statistics scatter as much"
        )
    return (
        f"the averages of {name} lie {far[name]:.0f} sampling errors from what this batch has, and averages made anew from it "
        f"differ by {anew:.0%}: let them see such data with these weights before inference"
    )


def _dropped(seen: Modes, away: float) -> str:
    """Whether averages made anew from this batch with all in training mode leave the gap: something, such as dropout, is at
    rest in inference."""
    active = Modes(seen.subject, seen.anatomy, rest=nn.Module.train)
    if active.moments.keys() != seen.moments.keys():
        return ""
    left = seen.away(seen.averaged(lambda name, _: active.moments[name].batch))
    if not left >= away / 2:
        return ""
    variances = ([each.moments[n].batch[1].clamp_min(1e-30) for n in seen.moments] for each in (active, seen))
    ratios = {n: float((a / b).median()) for n, a, b in zip(seen.moments, *variances, strict=True)}
    name = max(ratios, key=lambda n: abs(math.log(ratios[n])))
    places = differing(seen.subject, (seen.by_batch, True), (active.by_batch, True))
    kinds = sorted({kind(part(seen.subject.network, each)) for each in places})
    return (
        f"averages made anew in training mode differ by {left:.0%} as well, for in training "
        f"{', '.join(kinds) or 'what else changes between the modes'} makes the variance before {name} {ratios[name]:.2g} times as "
        "large: put it behind the last normalizer"
    )


def _values(seen: Modes) -> Iterator[Sentence]:
    counts = {n: x.shape[1] * seen.anatomy.pools.get(n, 1.0) for n, x in seen.inputs.items()}
    few = min(counts.items(), key=lambda item: item[1], default=None)
    if few is None or few[1] >= RULES["values"][0] or seen.batch is None:
        return
    cut = few[0] in seen.cut
    # a layer that cuts the batch itself takes other companions when the order is another; else half of them go
    rows = seen.shuffled() if cut else torch.arange(max(1, len(seen.subject.batch[0]) // 2))
    moved = seen.away(seen.run(seen.by_batch, rows), seen.batch[rows])
    if not moved < 0.05:  # halves of one value cannot be tried at all
        how = "in another order of the batch" if cut else "with half of the batch"
        measured = "" if math.isnan(moved) else f"; {how} the same examples' output moves by {moved:.0%}"
        yield _say(
            "values",
            few[1],
            f"{few[0]} takes mean and variance of {few[1]:g} values a unit and batch{measured}: use a larger batch, or a norm that "
            "does not look across examples",
            (few[0],),
        )


def _frozen(seen: Modes) -> Iterator[Sentence]:
    named = {name: list(part(seen.subject.network, name).parameters(recurse=False)) for name in seen.layers}
    still = tuple(n for n, own in named.items() if own and not any(p.requires_grad for p in own))
    if still and seen.batch is not None:
        yield _say(
            "frozen",
            len(still),
            f"γ and β of {some(still)} are frozen, and still after model.train() the batch is what normalizes there, and moves the "
            "averages: call .eval() on such layers after each train()",
            still,
        )


def _companions(seen: Modes) -> Iterator[Sentence]:
    """Where the examples of a batch meet in inference, too."""
    places = meeting(seen.subject, nn.Module.eval, grad=False)
    rows = slice(max(1, len(seen.subject.batch[0]) // 2))
    whole = seen.run(nn.Module.eval, grad=False)
    if not places or whole is None:
        return
    moved = seen.away(seen.run(nn.Module.eval, rows, grad=False), whole[rows])
    if moved >= RULES["companions"][0]:
        where = some(places)
        yield _say(
            "companions",
            moved,
            f"in inference, too, the answer for an example depends on the others of its batch ({where}): "
            f"without half of them it moves by {_share(moved)}",
            places,
        )


def _loss(subject: Subject, changed: Mapping[str, Tensor]) -> float:
    with subject.twin(changed) as twin:
        return float(twin.value().detach())


def _share(value: float) -> str:
    return f"{value:.0%}" if value >= 0.01 else f"{100 * value:.1g}%"


def _count(number: int, one: str, more: str) -> str:
    return f"{number} {one if number == 1 else more}"


def _units(seen: Modes) -> Iterator[Sentence]:
    still, small, units, worst, where, places = 0, 0, 0, 0.0, [], []
    for name, values in seen.inputs.items():
        if values.shape[1] < 2:
            continue
        variance = values.var(1, correction=0)
        eps = getattr(part(seen.subject.network, name), "eps", 0.0) or 0.0
        constant = variance <= 1e-12 * variance.max().clamp_min(1e-30)
        ratio = eps / variance[~constant].clamp_min(1e-300)
        units += len(variance)
        if constant.any():
            still += int(constant.sum())
            places.append(name)
        if bool((ratio >= RULES["epsilon"][0]).any()):
            small += int((ratio >= RULES["epsilon"][0]).sum())
            worst = max(worst, float(ratio.max()))
            where.append(name)
    if still:
        yield _say(
            "constant",
            still,
            f"{still} of {units} units that are normalized over the batch give the same value for all examples ({some(places)}): "
            "their normalized value is 0, whatever they receive",
            tuple(places),
        )
    if small:
        yield _say(
            "epsilon",
            worst,
            f"ε is not small against the variance of {small} of {units} units ({some(where)}): up to {worst:.2g} times as large, so "
            "that these come out smaller than with variance 1; use a smaller ε or larger weights before it",
            tuple(where),
        )


def _biases(
    subject: Subject, anatomy: Anatomy, start: float, gradient: Mapping[str, Tensor]
) -> Iterator[Sentence]:
    """Biases that may be moved, each entry by another number, while the loss stays to rounding in 64 bits, of layers
    whose weights have a gradient; and the normalizer whose input moves with them and whose output does not."""
    double = subject.in_double()
    exact, slopes = double.gradient()
    with_gradient = {
        n for n, g in slopes.items() if g is not None and bool(g.any()) and not n.endswith("bias")
    }
    idle: dict[str, list[str]] = {}
    for name in [n for n in gradient if n.endswith("bias")] if anatomy.normalizers else ():
        slope, owner = slopes[name], name.rpartition(".")[0]
        if slope is None or not any(n.startswith(f"{owner}.") for n in with_gradient):
            continue
        size = max((float(slopes[n].norm()) for n in with_gradient if n.startswith(f"{owner}.")), default=0.0)
        if float(slope.norm()) > 1e-9 * size:
            continue
        own = subject.parameters[name]
        wave = torch.arange(1, own.numel() + 1, device=own.device).cos().to(own.dtype).view_as(own)
        changed = {name: own + wave}
        if abs(_loss(double, changed) - float(exact)) <= IDLE * max(abs(float(exact)), 1e-6):
            idle.setdefault(_subtracts(double, anatomy, changed), []).append(name)
    found = [name for names in idle.values() for name in names]
    if found:
        size = sum(subject.parameters[name].numel() for name in found)
        means = [name for names in (idle[k] for k in idle if k) for name in names]
        norms = {each.name for each in anatomy.normalizers}  # of which none is made without β alone
        advice = ": make these layers with bias=False" * any(n.rpartition(".")[0] not in norms for n in means)
        yield _say(
            "bias",
            len(found),
            f"{_count(len(found), 'bias', 'biases')} ({size} numbers; {some(found)}) {'does' if len(found) == 1 else 'do'} nothing: "
            "moved, the loss stays to its last digits"
            + (f"; the mean that is subtracted behind takes {some(means)} away{advice}" if means else ""),
            tuple(found),
        )


def _subtracts(subject: Subject, anatomy: Anatomy, changed: Mapping[str, Tensor]) -> str:
    """The normalizer whose input moves with the changed parameters and whose output does not; "" where there is none."""

    def seen(values: Mapping[str, Tensor]) -> dict[str, list[Tensor]]:
        found: dict[str, list[Tensor]] = {each.name: [] for each in anatomy.normalizers}
        with subject.twin(values) as twin:
            for name, kept in found.items():
                watch(
                    part(twin.network, name),
                    lambda _m, got, _k, kept=kept: kept.append(got[0].detach()),
                    lambda _m, _g, gave, kept=kept: kept.append(gave.detach()),
                )
            twin.outputs()
        return found

    with suppress(Exception):  # a layer that takes or gives something else than one tensor
        plain, moved = seen({}), seen(changed)
        for name, (got, gave, *_) in ((n, v) for n, v in plain.items() if len(v) > 1):
            away = [
                float((a - b).norm() / a.norm().clamp_min(1e-300)) for a, b in zip((got, gave), moved[name])
            ]
            if away[0] > 1e-6 and away[1] < 1e-3 * away[0]:
                return name
    return ""


def _blind(
    subject: Subject, start: float, by_layer: LayerGradients | None, learning_rate: float
) -> Iterator[Sentence]:
    if by_layer is None:
        return
    named, maybe, reach = dict(subject.network.named_parameters()), {}, {}
    double = subject.in_double()
    exact = _loss(double, {})
    for k, name in enumerate(by_layer.names):
        own = f"{name}.weight"
        if (
            own not in named
            or own not in subject.parameters
            or not by_layer.weight[k]
            or not by_layer.size[k]
        ):
            continue
        if abs(by_layer.along[k]) > BLIND * by_layer.size[k] * by_layer.weight[k]:
            continue
        maybe[name] = learning_rate * by_layer.weight[k] / by_layer.size[k]
        reach[name] = float(
            by_layer.weight[k] * by_layer.size[k]
        )  # what as long a step along the gradient does

    def alike(names: Iterable[str]) -> bool:
        """Whether the loss stays when the weights of these layers are twice, ten and a hundred times as long: small
        weights across the gradient stand twice as long by chance."""
        bound = BLIND * min((reach[n] for n in names), default=0.0)
        longer = ({f"{n}.weight": k * subject.parameters[f"{n}.weight"] for n in names} for k in (2, 10, 100))
        return all(abs(_loss(double, each) - exact) <= bound for each in longer)

    blind = maybe if alike(maybe) else {name: turn for name, turn in maybe.items() if alike([name])}
    if not blind:
        return
    name = max(blind, key=lambda each: blind[each])
    if blind[name] >= RULES["turn"][0]:
        yield _say(
            "turn",
            blind[name],
            f"{_count(len(blind), 'layer is', 'layers are')} blind to the length of the weights, so that "
            f"a step only turns them: {name} by {math.degrees(math.atan(blind[name])):.0f}° at this rate; "
            "a smaller rate, or longer weights, turn it less",
            tuple(blind),
        )


def _last_layer(
    subject: Subject, anatomy: Anatomy, start: float, gradient: Mapping[str, Tensor], learning_rate: float
) -> Iterator[Sentence]:
    run = [each for each in anatomy.layers if each.runs]
    if not run:
        return
    last = run[-1].name
    own = [n for n in gradient if n.rpartition(".")[0] == last]
    moved = {n: subject.parameters[n] - learning_rate * gradient[n] for n in own}
    if not own or not any(gradient[n].any() for n in own):
        return
    after = _loss(subject, moved)
    ratio = after / start if start > 0 else math.nan
    if ratio > RULES["last layer"][0]:
        yield _say(
            "last layer",
            ratio,
            f"a step of the last layer alone ({last}) at rate {learning_rate:g} raises the loss of its own batch from {start:.3g} to "
            f"{after:.3g}: this rate is beyond what the last layer bears, whatever is normalized before it",
            (last,),
        )


def _growth(by_layer: LayerGradients | None) -> Iterator[Sentence]:
    """exp of the slope of log ‖∂ℓ/∂z‖ over the layers, towards the input."""
    if by_layer is None:
        return
    norms = np.asarray(by_layer.preactivation, dtype=float)
    norms = norms[(norms > 0) & np.isfinite(norms)]
    if len(norms) < FEW_LAYERS:
        return
    growth = math.exp(-np.polyfit(np.arange(len(norms)), np.log(norms), 1)[0])
    if growth >= RULES["growth"][0]:
        yield _say(
            "growth",
            growth,
            f"gradients grow by {growth:.2f} times a layer towards the input, {norms.max() / norms.min():.3g} times over "
            f"{len(norms)} layers: layers at both ends want different rates",
            by_layer.names,
        )


def _decay(
    network: nn.Module, anatomy: Anatomy, optimizer: torch.optim.Optimizer | None
) -> Iterator[Sentence]:
    if optimizer is None:
        return
    own = {
        id(p): f"{each.name}.{n}"
        for each in anatomy.normalizers
        for n, p in network.get_submodule(each.name).named_parameters(recurse=False)
    }
    decayed = [
        (own[id(p)], group["weight_decay"])
        for group in optimizer.param_groups
        for p in group["params"]
        if group.get("weight_decay") and id(p) in own
    ]
    if decayed:
        names = tuple(name for name, _ in decayed)
        yield _say(
            "decay",
            len(decayed),
            f"weight decay {max(rate for _, rate in decayed):g} also pulls {len(decayed)} γ and β of normalizers to 0 "
            f"({some(names)}): give them a group of parameters without decay",
            names,
        )


def require_optimizer(optimizer: object) -> None:
    if optimizer is not None and not hasattr(optimizer, "param_groups"):
        raise BnbookError(f"an optimizer of type {type(optimizer).__name__}; expected one of torch.optim")
