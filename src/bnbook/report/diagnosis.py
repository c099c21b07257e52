"""What experiments on copies say to somebody who has a network and a symptom: plain sentences in order of weight.

A sentence stands only where an intervention showed it, and says which: averages are made anew, the batch is halved, a
bias is moved, weights are made longer, a layer makes its step alone. What no intervention can tell is not said.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from bnbook.probes.layer_gradients import LayerGradients
from bnbook.report import finding
from bnbook.report.finding import Anatomy, first_tensor, kept_by, units_along
from bnbook.report.subject import Prepare, Subject, by_channel, part, scaling, some, worst

#: What each sentence is about -> the number from which it is said, the chapter that shows it, and the sentence, of the number
#: that an intervention gave, the layers, and further words of it.
RULES = {
    "modes": (
        0.1, "batch-norm/transform",  # ‖f_batch − f_averages‖ / ‖f_batch‖
        "with {own} statistics and with running averages the output differs by {value:.0%} on this batch; {why}",
    ),
    "fast path": (
        0.01, "batch-norm/transform",  # the same of inference with and without gradients
        "inference without gradients gives another output than with them, by {value:.0%}: {why}",
    ),
    "companions": (
        1e-4, "batch-norm/transform",  # how far an example's inference moves with the others
        "in inference, too, the answer for an example depends on the others of its batch ({places}): without half of them it "
        "moves by {share}",
    ),
    "not finite": (
        1, "batch-norm/transform",
        "the running averages of {places} {are}; training does not use them, inference does: reset_running_stats(), and let "
        "it see batches",
    ),
    "averages": (
        0.05, "batch-norm/transform",  # share of the averages that is what they were made with
        "{value:.0%} of the running averages of {most} is what they were made with, a mean of 0 and a variance of 1: {advice}",
    ),
    "momentum": (
        0.5, "batch-norm/transform",  # weight of the newest batch in the averages
        "one batch moves the running averages of {most} by {value:.0%} of the way to its own, so that they are those of the "
        "last {batches}{meant}",
    ),
    "values": (
        16, "batch-norm/transform",  # fewer values than this a unit and batch
        "{places} takes mean and variance of {value:g} values a unit and batch{measured}: use a larger batch, or a norm that "
        "does not look across examples",
    ),
    "frozen": (
        1, "batch-norm/transform",  # layers with frozen γ and β that normalize by the batch
        "γ and β of {places} are frozen as they were trained, and still in training mode the batch is what normalizes "
        "there{moves}: with .eval() on {these} alone the output differs by {gap:.0%}",
    ),
    "epsilon": (
        0.1, "batch-norm/transform",  # ε over the variance of a unit
        "ε is not small against the variance of {small} of {units} units ({places}): up to {value:.2g} times as large, so "
        "that these come out smaller than with variance 1; use a smaller ε or larger weights before it",
    ),
    "constant": (
        1, "batch-norm/transform",  # units whose values are all alike
        "{value:.0f} of {units} units that are normalized over the batch give the same value for all examples ({places}): "
        "their normalized value is 0, whatever they receive",
    ),
    "bias": (
        1, "batch-norm/transform",  # biases that change no output
        "{count} ({size} numbers; {places}) {do} nothing: moved, the loss stays to its last digits{mean}",
    ),
    "turn": (
        0.1, "decoupling/neural-networks",  # η ‖g‖ / ‖W‖ of a layer that is blind to ‖W‖
        "{count} blind to the length of the weights, so that a step only turns them: {most} by {degrees:.0f}° at this rate; "
        "a smaller rate, or longer weights, turn it less",
    ),
    "decay": (
        1, "decoupling/neural-networks",  # parameters γ and β that decay
        "weight decay {rate:g} also pulls {value:.0f} γ and β of normalizers to 0 ({places}): give them a group of parameters "
        "without decay",
    ),
    "last layer": (
        1.0, "mean-field/readout",  # loss after a step of the last layer over that before
        "a step of the last layer alone ({places}) at rate {rate:g} raises the loss of its own batch from {start:.3g} to "
        "{after:.3g}: this rate is beyond what the last layer bears, whatever is normalized before it",
    ),
    "growth": (
        1.2, "batch-norm/gradient-explosion",  # of the gradient a layer, towards the input
        "gradients grow by {value:.2f} times a layer towards the input, {whole:.3g} times over {count} layers, and a step of the "
        "first alone ({first}) does half of what its gradient says up to a rate of {one:.2g}, one of the last ({last}) up to "
        "{other:.2g}: layers at both ends want different rates",
    ),
}  # fmt: skip
BLIND, FEW_LAYERS = 1e-2, 4
PARTS = 8  # of a batch, whose moments tell the sampling error of the batch's
FROZEN = 0.01  # of the output, what .eval() on frozen layers moves at least
IDLE = 1e-10  # of the loss, in 64 bits: what a bias that does nothing moves by rounding
APART = 3.0  # sampling errors beyond which averages are not those of a batch


class Share(float):
    """A distance over the size of what it is a distance from: in per cent, and from ten on as so many times that size."""

    def __format__(self, form: str) -> str:
        return f"{float(self):,.0f} times its size" if self >= 10 else float.__format__(self, form)


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
        """How far beyond its threshold the number is, as a factor; of values few are many."""
        few = self.about == "values"
        return self.threshold / max(self.value, 1e-12) if few else self.value / self.threshold


Two = tuple[Tensor, Tensor]  # mean and variance of each unit, (units,) each; the variance with 1/n


@dataclass(frozen=True)
class Met:
    """What a layer receives of a batch; of several runs in one pass the means over these."""

    batch: Two
    halves: tuple[Two, ...]  # of it, or of its one example; () where a half has but one value
    parts: tuple[
        Two, ...
    ]  # up to PARTS of it, drawn apart; () where one has but one value, or of one example
    values: int  # n, of a unit, and of an example where each is normalized by itself
    whole: bool  # whether all examples come at once
    runs: tuple[Two, ...]  # of each run


@dataclass(frozen=True)
class Kept:
    """What a layer keeps beside what it meets."""

    met: Met
    kept: Two  # running mean and variance, as they are
    newest: float  # weight of the newest batch in the running mean; nan where the pass did not move it
    names: tuple[str, str]  # of the two among what the layer keeps
    power: float  # ½ where it keeps a standard deviation
    many: Two  # mean of the moments of all batches that were given

    @property
    def usable(self) -> bool:
        return all(bool(torch.isfinite(each).all()) for each in self.kept) and bool((self.kept[1] >= 0).all())

    @property
    def biased(self) -> Two:
        """As they are, the variance with 1/n for 1/(n - 1)."""
        return self.kept[0], self.kept[1] * (1 - 1 / max(2, self.met.values))

    def errors(self) -> float:
        """Root mean square distance of the averages from the batch's moments, in sampling errors of these.

        The error of a moment is the standard deviation of those of g parts of the batch over √g, whatever the values'
        correlations; of the variances by their logarithms. The larger one of mean and variance.
        """

        def away(k: int) -> float:
            every = self.kept, self.met.batch, *self.met.parts
            kept, batch, *parts = (x[k].clamp_min(1e-30).log() if k else x[k] for x in every)
            size = torch.stack(parts).var(0).mean() / len(parts)
            return float(((kept - batch).square().mean() / size.clamp_min(1e-30)).sqrt())

        return max(away(0), away(1))

    def without(self, share: float) -> Two:
        """The averages with this share of their start, mean 0 and variance 1, taken out; the batch's own of a share of 1."""
        if share > 0.99:
            return self.met.batch
        return self.kept[0] / (1 - share), ((self.kept[1] - share) / (1 - share)).clamp_min(0)

    def start(self) -> float:
        """Share s of the start (mean 0, variance 1) in the averages, s · start + (1 − s) · batch, by least squares."""
        mean, variance = self.met.batch
        scale = variance.clamp_min(1e-30)
        way = torch.cat([-mean / scale.sqrt(), (1 - variance) / scale])
        gone = torch.cat([(self.kept[0] - mean) / scale.sqrt(), (self.kept[1] - variance) / scale])
        size = float(way.square().sum())
        return float((gone * way).sum()) / size if size > 1e-3 * len(way) else math.nan


def _moments(units: Tensor) -> Two:
    return units.mean(1), units.var(1, correction=0)


def _mean(every: Iterable[Two]) -> Two:
    means, variances = zip(*every, strict=True)
    return torch.stack(means).mean(0), torch.stack(variances).mean(0)


@dataclass
class Seen:
    """A network, its one gradient, and what its layers meet in training and inference.

    Layers are asked as they are in training mode, into which its own `train()` puts a network that is not in it. "Batch":
    inference of all other layers (dropout at rest), with the statistics of the batch in these. Inference: `eval()`, with
    gradients off.
    """

    subject: Subject
    anatomy: Anatomy
    start: float = math.nan  # L(θ)
    gradient: Mapping[str, Tensor] = field(default_factory=dict)
    by_layer: LayerGradients | None = None
    learning_rate: float = math.nan
    optimizer: torch.optim.Optimizer | None = None
    others: Sequence[Tensor] = ()  # inputs of further batches
    rest: Prepare = nn.Module.eval  # the mode of all other layers
    layers: tuple[str, ...] = ()  # that take statistics of the batch in training mode, or of each example
    each: tuple[str, ...] = ()  # of these, those of each example, which keep averages that the pass moves
    moments: dict[str, Kept] = field(default_factory=dict)
    met: dict[str, Met] = field(default_factory=dict)
    batch: Tensor | None = None  # outputs
    shares: dict[str, float] = field(default_factory=dict)  # of the start in the averages, where some is left
    cut: tuple[str, ...] = ()  # layers that take the batch in parts, by themselves or by what calls them

    def __post_init__(self) -> None:
        self.axes = {each.name: each.axis for each in self.anatomy.normalizers}
        with suppress(Exception), self.subject.twin() as twin:
            twin.network.training or twin.network.train()
            at_work = {n: m for n, m in twin.network.named_modules() if m.training}
            self.layers = tuple(n for n in self.anatomy.meeting if n in at_work)
            others = (n for n in self.axes if n in at_work and n not in self.layers)
            self.each = tuple(n for n in others if kept_by(at_work[n]))
        if self.each:
            meeting, self.layers = self.layers, (*self.layers, *self.each)
            self.met, _ = self._meet()
            moved = {n for n, (_, _, newest) in self.averaging().items() if newest > 0}
            self.each = tuple(n for n in self.each if n in moved)
            self.layers = *meeting, *self.each
        if not self.layers:
            return
        self.met, self.batch = self._meet()
        self.cut = tuple(n for n, m in self.met.items() if self.anatomy.pools.get(n, 1.0) < 1 or not m.whole)
        further = (self._meet(inputs)[0] for inputs in self.others)
        batches = [self.met, *(each for each in further if each.keys() == self.met.keys())]
        for name, (names, power, newest) in self.averaging().items():
            own = kept_by(part(self.subject.network, name))
            mean, variance = (own[n].double().flatten() for n in names)
            many = _mean(each[name].batch for each in batches)
            kept = mean, variance ** (1 / power)
            self.moments[name] = Kept(self.met[name], kept, newest, names, power, many)

    def _meet(self, inputs: Tensor | None = None) -> tuple[dict[str, Met], Tensor | None]:
        """What each layer receives, and the outputs."""
        found: dict[str, list[Met]] = {}
        size = len(self.subject.batch[0] if inputs is None else inputs)

        def keep(name: str, _module: nn.Module, got: tuple, more: dict) -> None:
            x = first_tensor(got, more)
            if x is not None and x.is_floating_point() and x.dim() > 1:
                moments, values = self._taken(name, x)
                halves, parts = (self._of_parts(name, x, count) for count in (2, PARTS))
                whole = size in (len(x), x.shape[1])
                met = Met(moments, halves, parts if size > 1 else (), values, whole, (moments,))
                found.setdefault(name, []).append(met)

        names = [name for name in self.layers if name in self.axes]
        outputs = self.run(self.by_batch, inputs=inputs, before=keep, names=names)
        return {name: _together(every) for name, every in found.items()}, outputs

    def _of_parts(self, name: str, x: Tensor, count: int) -> tuple[Two, ...]:
        """Moments of parts of the examples, or of the values of one; as few parts as have two values each, at least two."""
        if len(x) < 2:
            halves = units_along(self.axes[name], x).chunk(2, 1)
            return tuple(map(_moments, halves)) if halves[-1].shape[1] > 1 else ()
        for k in range(min(count, len(x)), 1, -1):
            found = [self._taken(name, each) for each in x.tensor_split(k)]
            if min(values for _, values in found) > 1:
                return tuple(moments for moments, _ in found)
        return ()

    def _taken(self, name: str, x: Tensor) -> tuple[Two, int]:
        """Mean and variance of what a layer receives, and of how many values each is."""
        units = units_along(self.axes[name], x)
        if name not in self.each:
            return _moments(units), units.shape[1]
        own = units.unflatten(1, (len(x), -1))  # a variance of each example, of which the averages are means
        return (units.mean(1), own.var(2, correction=0).mean(1)), own.shape[2]

    @cached_property
    def exact(self) -> tuple[Subject, float]:
        """The network in 64 bits, and L(θ) there."""
        double = self.subject.but(double=True)
        return double, float(double.value())

    def by_batch(self, network: nn.Module) -> None:
        self.but(self.rest, self.layers, True)(network)

    @staticmethod
    def but(prepare: Prepare, names: Iterable[str], training: bool) -> Prepare:
        """A state but for the mode of these layers."""

        def state(network: nn.Module) -> None:
            prepare(network)
            for name in names:
                finding.put(part(network, name), training)

        return state

    def averaging(self, once_more: bool = False) -> dict[str, tuple[tuple[str, str], float, float]]:
        """Layer -> the names of its running mean and variance, the power at which it keeps the latter, and the weight w of
        the newest batch: all that it keeps is moved away to r, and goes in a pass to r + w (μ − r), μ of the batch; or in
        the pass after that."""
        start: dict[str, dict[str, Tensor]] = {}
        toward: dict[str, list[tuple[int, float, Tensor]]] = {}
        found: dict[str, dict[int, tuple[float, str, float, float]]] = {}

        def enter(name: str, module: nn.Module, got: tuple, more: dict) -> None:
            x = first_tensor(got, more)
            if x is None or name in start:
                return
            (mean, variance), values = self._taken(name, x)
            whole = variance * values / max(1, values - 1)
            toward[name] = [(0, 1.0, mean), (1, 1.0, whole), (1, 1.0, variance), (1, 0.5, variance.sqrt())]
            start[name] = {key: kept for key, kept in kept_by(module).items() if kept.numel() == len(mean)}
            for key, kept in start[name].items():
                kept.detach().copy_((1 + 2 * (mean.abs() + whole)).view_as(kept))
                start[name][key] = kept.detach().double().flatten().clone()

        def leave(name: str, module: nn.Module, _got: tuple, _gave: object) -> None:
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
            if once_more:
                network(copy.deepcopy(self.subject.batch[0]))

        self.run(prepare, before=enter, behind=leave, names=list(self.met))
        result = {}
        for name, met in self.met.items():
            fits, kept = found.get(name, {}), kept_by(part(self.subject.network, name))
            names = tuple(fits[k][1] if k in fits else f"running_{w}" for k, w in ((0, "mean"), (1, "var")))
            if all(n in kept and kept[n].numel() == len(met.batch[0]) for n in names):
                still = 0.0 if name in found and not found[name] else math.nan
                result[name] = names, fits[1][2] if 1 in fits else 1.0, fits[0][3] if 0 in fits else still
        return result

    def run(
        self, prepare: Prepare, rows: slice | Tensor = slice(None), inputs: Tensor | None = None, **more: Any
    ) -> Tensor | None:
        """Outputs for some rows of the batch, in a state; None where somebody else's code fails there."""
        with suppress(Exception):
            given = (self.subject.batch[0] if inputs is None else inputs).detach()[rows].clone()
            outputs = self.subject.run(prepare, inputs=given, **more)
            return outputs.detach().double() if isinstance(outputs, Tensor) else None
        return None

    def away(self, other: Tensor | None, one: Tensor | None = None) -> float:
        """‖one − other‖ / ‖one‖, one being the outputs with the batch's statistics."""
        one = self.batch if one is None else one
        if one is None or other is None or one.shape != other.shape:
            return math.nan
        return Share((one - other).norm() / one.norm().clamp_min(1e-300))

    def off(self, change: Callable[[str, Kept], Two] | None) -> float:
        """How far inference by other averages is from the outputs with the batch's statistics; None: each run of a layer by
        those of its own run."""
        runs = {name: iter(kept.met.runs) for name, kept in self.moments.items()}

        def give(name: str, module: nn.Module, *_: object) -> None:
            own, kept = kept_by(module), self.moments[name]
            mean, variance = change(name, kept) if change else next(runs[name])
            for key, value in zip(kept.names, (mean, variance**kept.power), strict=True):
                own[key].data.copy_(value.view_as(own[key]))

        def prepare(network: nn.Module) -> None:
            network.eval()
            for name in self.moments if change else ():
                give(name, part(network, name))

        calls = {} if change else {"before": give, "names": list(runs)}
        return self.away(self.run(prepare, grad=False, **calls))

    def by_order(self) -> float:
        """How far the outputs move where the batch comes in another order, and so with other companions."""
        rows = torch.randperm(len(self.subject.batch[0]), generator=torch.Generator().manual_seed(0))
        return self.away(self.run(self.by_batch, rows), self.batch[rows])

    def parameters(self, names: Iterable[str]) -> dict[str, list[tuple[str, nn.Parameter]]]:
        """Layer -> its own, by their names in it."""
        modules = dict(self.subject.network.named_modules())
        return {name: [*modules[name].named_parameters(recurse=False)] for name in names}


def diagnose(seen: Seen) -> tuple[Sentence, ...]:
    """All that is found, the heaviest first; what cannot be tried is not said."""
    found: list[Sentence] = []
    for trial in TRIALS:
        with suppress(Exception):  # a pass of somebody else's code that fails where it is changed
            for about, value, layers, words in trial(seen):
                threshold, chapter, says = RULES[about]
                told = says.format(value=value, places=some(layers), **words)
                about = "averages" if about == "not finite" else about
                found.append(Sentence(about, told, float(value), float(threshold), chapter, tuple(layers)))
    return tuple(sorted(found, key=lambda each: -each.weight))


#: Key of RULES, its number, the layers, further words of the sentence.
Told = Iterator[tuple[str, float, Sequence[str], dict[str, object]]]


def _averages(seen: Seen) -> Told:
    """What the averages hold: numbers that are none, their start, the newest batch alone."""
    lost = [name for name, kept in seen.moments.items() if not kept.usable]
    if lost:
        below = all(bool(torch.isfinite(each).all()) for name in lost for each in seen.moments[name].kept)
        overflown = "are not finite numbers: a batch has overflowed once, and averaging does not forget it"
        yield "not finite", len(lost), lost, {"are": "hold a variance below zero" if below else overflown}
    shares, weights, later = seen.shares, {}, {}
    for name, kept in seen.moments.items():
        if name in lost:
            continue
        made = bool((kept.kept[0] == 0).all() and (kept.kept[1] == 1).all())
        share = 1.0 if made else kept.start()
        if max(share / RULES["averages"][0], kept.newest / RULES["momentum"][0]) >= 1 and not later:
            later = seen.averaging(once_more=True)
        # the weight that a plain mean gives the newest batch becomes smaller
        steady = name in later and later[name][2] >= 0.99 * kept.newest
        counted = getattr(part(seen.subject.network, name), "num_batches_tracked", None)
        once = (1 - kept.newest) ** int(counted) if counted is not None and steady else math.nan
        # the start is said to be in them only where the count of batches and the averages themselves say so
        if made or (min(share, once) >= RULES["averages"][0] and abs(once - share) <= 0.1 + 0.3 * share):
            shares[name] = share if made else once
        if steady and kept.newest >= RULES["momentum"][0]:
            weights[name] = kept.newest
    rest = [name for name in seen.layers if name not in seen.moments]
    others = finding.averages(seen.subject, rest) if rest else {}
    shares |= {name: 1.0 for name in others if finding.as_made(others[name])}  # in buffers of other names
    if shares:
        most = max(shares, key=shares.__getitem__)
        still = most in seen.moments and not seen.moments[most].newest
        advice = "with momentum 0 they stay so" if still else "let it see more batches before it infers"
        yield "averages", shares[most], list(shares), {"most": worst(shares), "advice": advice}
    if weights:
        most = max(weights, key=weights.__getitem__)
        weight, count = weights[most], max(1, round(1 / weights[most]))
        meant = f"; where {weight:g} was meant as the weight of the old averages, expected {1 - weight:.2g}"
        batches = "batch" if count == 1 else f"{count} batches"
        words = {"most": worst(weights), "batches": batches, "meant": meant * (weight < 0.99)}
        yield "momentum", weight, list(weights), words


def _modes(seen: Seen) -> Told:
    plain, without = (seen.run(nn.Module.eval, grad=grad) for grad in (True, False))
    away, path = seen.away(without), seen.away(without, plain) if plain is not None else math.nan
    path = path if path >= RULES["fast path"][0] else 0.0
    if away >= RULES["modes"][0] and all(kept.usable for kept in seen.moments.values()):
        why = _why(seen, away)
        if not (path and why == UNKNOWN):
            own = ["the batch's"] * (len(seen.each) < len(seen.layers)) + ["each example's"] * bool(seen.each)
            yield "modes", away, seen.layers, {"why": why, "own": " or ".join(own)}
    if path:
        places = finding.differing(seen.subject, (nn.Module.eval, True), (nn.Module.eval, False))
        yield "fast path", path, places, {"why": _off(seen, path, plain, some(places))}


UNKNOWN = "averages made anew from this batch do not close the gap: why cannot be told here"


def _off(seen: Seen, path: float, plain: Tensor, where: str) -> str:
    """What gives another output where gradients are off: torch's fast path for attention, or layers that ask for them."""
    before = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        closed = seen.away(seen.run(nn.Module.eval, grad=False), plain) <= path / 10
    finally:
        torch.backends.mha.set_fastpath_enabled(before)
    if closed:
        return (
            "torch's fast path for attention computes something else; "
            "torch.backends.mha.set_fastpath_enabled(False) closes the gap"
        )
    return f"{where or 'a layer'} asks whether gradients are on, not for the mode, which eval() sets"


def _why(seen: Seen, away: float) -> str:
    """Which intervention closes the gap."""
    made, scatter = "averages made anew from", "as well: one batch's statistics scatter as much"
    several = "one batch cannot tell its own scatter from averages of other data: hand over several"
    anew = seen.off(lambda _, kept: kept.met.batch)
    this = f"{made} this batch differ by {anew:.0%}"
    moved = seen.by_order() if seen.cut else 0.0
    if moved >= away / 2:
        return (
            f"in another order of the batch the output differs by {moved:.0%} as well: the statistics of the parts into which "
            f"{some(sorted(seen.cut))} takes it scatter as much"
        )
    if not seen.moments:
        return f"why cannot be told here: no mean and variance are found that {some(seen.layers)} keeps"
    if not anew <= away / 4:
        return _beyond(seen, away, anew) or UNKNOWN
    without = seen.off(lambda n, kept: kept.without(seen.shares.get(n, 0.0))) if seen.shares else away
    if without <= away / 2:
        return f"with what they were made with taken out of the averages it differs by {without:.0%}"
    left = seen.off(lambda _, kept: kept.biased)
    if left <= away / 4:
        return (
            f"with the variances of the averages times (n - 1)/n, as a batch takes its own, it differs by {left:.0%}: it is "
            "this factor, layer upon layer"
        )
    if dropped := _dropped(seen, away):
        return dropped
    if seen.others:
        many, count = seen.off(lambda _, kept: kept.many), len(seen.others) + 1
        rest = f" {scatter}" if many >= away / 2 else f": {_advice(seen, away)}"
        return f"{made} {count} batches differ by {many:.0%}{rest}"
    far = {name: kept.errors() for name, kept in seen.moments.items() if kept.met.parts}
    if not far:
        return f"{this}; {several}"
    if any(each not in seen.axes for each in seen.anatomy.meeting):  # then its halves are not drawn apart
        return f"{this}; as its examples meet elsewhere, too, {several}"
    known = len(far) == len(seen.moments)
    half = sum(seen.off(lambda _, kept, k=k: kept.met.halves[k]) for k in (0, 1)) / 2 if known else math.nan
    most, apart = max(far.values()), {name: errors for name, errors in far.items() if errors >= APART}
    if away <= half or away <= 2 * half and not apart:
        own = "the averages are those of such a batch to its sampling error; " * (not apart)
        return f"{own}averages from half of it differ by {half:.0%} {scatter}"
    if not apart:
        return f"{this}{f', from half of it by {half:.0%}' * known}; {several}"
    return (
        f"the averages of {worst(apart)} lie {most:.0f} sampling errors from what this batch has, and {made} it "
        f"differ by {anew:.0%}: {_advice(seen, away)}"
    )


class _Enough(Exception):
    """Ends a pass at the layer that was asked about."""


def _advice(seen: Seen, away: float) -> str:
    """What is to be done about averages of other data: whether they fit inputs that are scaled otherwise, each channel by a
    factor and a summand with which the first layer receives what its averages say, is tried."""
    x, (first, kept) = seen.subject.batch[0].detach(), next(iter(seen.moments.items()))
    let = "let the averages see such data with these weights before inference"
    if not x.is_floating_point():
        return let
    channels = by_channel(x)
    shape = [1, len(channels), *[1] * (x.dim() - 2)]
    mean, spread = (v.view(shape) for v in (channels.mean(1), channels.std(1).clamp_min(1e-30)))
    size, place = (torch.zeros_like(mean).requires_grad_() for _ in range(2))
    scaled = lambda: (((x - mean) / spread + place) * size.exp()).to(x.dtype)

    search = torch.optim.LBFGS([size, place], max_iter=30, line_search_fn="strong_wolfe")
    got: list[Two] = []

    def stop(name: str, _module: nn.Module, given: tuple, more: dict) -> None:
        got[:] = [_moments(first_tensor(given, more).double().movedim(seen.axes[name], 0).flatten(1))]
        raise _Enough

    def unlike() -> Tensor:
        """How far the first layer is from its averages, with its slope."""
        search.zero_grad()
        with suppress(_Enough):
            seen.subject.run(seen.by_batch, inputs=scaled(), before=stop, names=[first])
        way = got[0][0] - kept.kept[0]
        wanted, variance = (v.clamp_min(1e-30) for v in (kept.kept[1], got[0][1]))
        found = (way.square() / (wanted * variance).sqrt() + (variance / wanted).log().square()).mean()
        found.backward()
        return found

    with suppress(Exception):  # somebody else's code may not take such inputs
        search.step(unlike)
        other = scaled().detach()
        there = Seen(seen.subject.but(batch=(other, seen.subject.batch[1])), seen.anatomy)
        left = there.away(there.run(nn.Module.eval, grad=False))
        if left <= away / 4 and max(kept.errors() for kept in there.moments.values()) < APART:
            return (
                f"the averages fit inputs on another scaling, with {scaling(by_channel(other))} where these have "
                f"{scaling(channels)}: so scaled they leave {left:.0%}; scale the inputs as in the training of the network, or, "
                f"if these are meant, {let}"
            )
    return f"{let}, if these inputs, with {scaling(channels)}, are scaled as in its training"


def _beyond(seen: Seen, away: float, anew: float) -> str:
    """What closes a gap that averages made anew leave: averages of each call, or no averages."""
    several = {n: len(kept.met.runs) for n, kept in seen.moments.items() if len(kept.met.runs) > 1}
    made = f"averages made anew from this batch differ by {anew:.0%}, and by"
    alone = seen.off(None) if several else math.nan
    if alone <= away / 4:
        return (
            f"{made} {alone:.0%} where each of the {max(several.values())} calls in one pass of {some([*several])} has averages "
            "of its own: give each call a layer of its own"
        )
    by_example = seen.but(nn.Module.eval, seen.each, True)
    left = seen.away(seen.run(by_example, grad=False)) if seen.each else math.nan
    if left <= away / 4:
        return (
            f"{made} {left:.0%} where {some(seen.each)} takes each example's own statistics in inference, too, as with "
            "track_running_stats=False"
        )
    return ""


def _together(runs: Sequence[Met]) -> Met:
    if len(runs) == 1:
        return runs[0]
    means = lambda every: tuple(map(_mean, zip(*every, strict=len({*map(len, every)}) == 1)))
    halves, parts = (means([getattr(each, key) for each in runs]) for key in ("halves", "parts"))
    every, values = tuple(each.batch for each in runs), min(each.values for each in runs)
    return Met(_mean(every), halves, parts, values, all(each.whole for each in runs), every)


def _dropped(seen: Seen, away: float) -> str:
    """Whether averages made anew from this batch with all in training mode leave the gap: something, such as dropout, is at
    rest in inference."""
    active = Seen(seen.subject, seen.anatomy, rest=nn.Module.train)
    if active.moments.keys() != seen.moments.keys():
        return ""
    left = seen.off(lambda name, _: active.met[name].batch)
    if not left >= away / 2:
        return ""
    variances = {n: [each.met[n].batch[1].clamp_min(1e-30) for each in (active, seen)] for n in seen.moments}
    ratios = {n: float((one / other).median()) for n, (one, other) in variances.items()}
    name = max(ratios, key=lambda n: abs(math.log(ratios[n])))
    places = finding.differing(seen.subject, (seen.by_batch, True), (active.by_batch, True))
    kinds = ", ".join(sorted({finding.kind(part(seen.subject.network, each)) for each in places}))
    return (
        f"averages made anew in training mode differ by {left:.0%} as well, for in training "
        f"{kinds or 'what else changes between the modes'} makes the variance before layer `{name}` {ratios[name]:.2g} times as "
        "large: put it behind the last normalizer"
    )


def _values(seen: Seen) -> Told:
    pools = {n: seen.anatomy.pools.get(n, 1.0) for n in seen.met if n not in seen.each}
    counts = {n: seen.met[n].values * pool for n, pool in pools.items()}
    few = min(counts, key=counts.__getitem__, default=None)
    if few is None or counts[few] >= RULES["values"][0] or seen.batch is None:
        return
    # a layer that cuts the batch itself takes other companions when the order is another; else half of them go
    tried = {}
    if len(seen.subject.batch[0]) > 1:
        half = torch.arange(len(seen.subject.batch[0]) // 2)
        tried["with half of the batch"] = seen.away(seen.run(seen.by_batch, half), seen.batch[half])
    elif few in seen.moments:  # half of the values of one example
        by_half = lambda n, kept: kept.met.halves[0] if n == few and kept.met.halves else kept.met.batch
        tried["with mean and variance of half of these"] = seen.off(by_half)
    if few in seen.cut:
        tried["in another order of the batch"] = seen.by_order()
    moved, how = max([(m, how) for how, m in tried.items() if not math.isnan(m)], default=(1.0, ""))
    if moved >= 0.05:  # halves of one value cannot be tried at all
        measured = f"; {how} the same examples' output moves by {moved:.0%}" if how else ""
        yield "values", counts[few], (few,), {"measured": measured}


def _frozen(seen: Seen) -> Told:
    every = seen.parameters(n for n in seen.moments if n not in seen.each)
    trained = lambda p: not bool((p == 0).all() or (p == 1).all())  # or freezing keeps no training
    frozen = lambda own: any(trained(p) for _, p in own) and not any(p.requires_grad for _, p in own)
    still = [name for name, own in every.items() if frozen(own)]
    gap = seen.away(seen.run(seen.but(seen.by_batch, still, False), grad=False)) if still else math.nan
    if gap >= FROZEN:
        moved = all(seen.moments[n].newest > 0 for n in still)
        words = {"moves": ", and moves the averages" * moved, "these": "it" if len(still) == 1 else "them"}
        yield "frozen", len(still), still, {**words, "gap": gap}


def _companions(seen: Seen) -> Told:
    """Where the examples of a batch meet in inference, too."""
    rows, whole = slice(max(1, len(seen.subject.batch[0]) // 2)), seen.run(nn.Module.eval, grad=False)
    moved = seen.away(seen.run(nn.Module.eval, rows, grad=False), None if whole is None else whole[rows])
    apart = whole is not None and moved >= RULES["companions"][0]
    if apart and (places := finding.meeting(seen.subject, nn.Module.eval, grad=False)):
        share = f"{moved:.0%}" if moved >= 0.01 else f"{100 * moved:.1g}%"
        yield "companions", moved, places, {"share": share}


def _units(seen: Seen) -> Told:
    still, small, units, largest = {}, {}, 0, 0.0
    for name, met in seen.met.items():
        if met.values > 1 and name not in seen.each:
            mean, variance = met.batch
            eps = getattr(part(seen.subject.network, name), "eps", 0.0) or 0.0
            constant = variance <= 1e-13 * mean.square()  # what 32 bits leave of values that are alike
            ratio = eps / variance[~constant].clamp_min(1e-300)
            units += len(variance)
            still[name], small[name] = int(constant.sum()), int((ratio >= RULES["epsilon"][0]).sum())
            largest = max(largest, float(ratio.max())) if small[name] else largest
    words = {"units": units, "small": sum(small.values())}
    for about, found, value in (("constant", still, sum(still.values())), ("epsilon", small, largest)):
        if any(found.values()):
            yield about, value, [n for n, k in found.items() if k], words


def _biases(seen: Seen) -> Told:
    """Biases that may be moved, each entry by another number, while the loss stays to rounding in 64 bits, of layers
    whose weights have a gradient; and the normalizer whose input moves with them and whose output does not."""
    norms, own = {*seen.axes}, seen.subject.parameters
    small = _small(seen.gradient, list(seen.gradient), 3e-2) if norms else []
    if not small:
        return
    double, exact = seen.exact
    idle: dict[str, list[str]] = {}
    for name in _small({n: g for n, g in double.gradient()[1].items() if g is not None}, small, 1e-9):
        p = own[name]
        changed = {name: p + torch.arange(1, p.numel() + 1, device=p.device).cos().to(p.dtype).view_as(p)}
        if abs(float(double.value(changed)) - exact) <= IDLE * max(abs(exact), 1e-6):
            idle.setdefault(_subtracts(double, norms, changed), []).append(name)
    if found := [name for names in idle.values() for name in names]:
        means = [name for norm, names in idle.items() if norm for name in names]
        # of normalizers none is made without β alone
        advice = ": make these layers with bias=False" * any(n.rpartition(".")[0] not in norms for n in means)
        mean = f"; the mean that is subtracted behind takes {some(means)} away{advice}" if means else ""
        count, do = ("1 bias", "does") if len(found) == 1 else (f"{len(found)} biases", "do")
        size = sum(own[name].numel() for name in found)
        yield "bias", len(found), found, {"count": count, "size": size, "do": do, "mean": mean}


def _small(gradient: Mapping[str, Tensor], names: Sequence[str], share: float) -> list[str]:
    """Biases of these whose gradient is at most this share of the largest one of their layers' other parameters."""
    sizes = {n: float(g.norm()) for n, g in gradient.items()}
    within = lambda n: f"{n[:-4].rpartition('.')[0]}."
    beside = lambda n: [s for m, s in sizes.items() if m.startswith(within(n)) and not m.endswith("bias")]
    biases = [n for n in names if n.endswith("bias") and n in sizes]
    return [n for n in biases if sizes[n] <= share * max(beside(n), default=0.0) > 0]


def _subtracts(subject: Subject, norms: set[str], changed: Mapping[str, Tensor]) -> str:
    """The normalizer whose input moves with the changed parameters and whose output does not; "" where there is none."""

    def seen(values: Mapping[str, Tensor]) -> dict[str, list[Tensor]]:
        found: dict[str, list[Tensor]] = {name: [] for name in norms}
        before = lambda name, _m, got, _more: found[name].append(got[0].detach())
        behind = lambda name, _m, _got, gave: found[name].append(gave.detach())
        subject.run(before=before, behind=behind, names=norms, changed=values)
        return found

    with suppress(Exception):  # a layer that takes or gives something else than one tensor
        plain, moved = seen({}), seen(changed)
        for name in plain:
            both = zip(plain[name], moved[name], strict=True)
            away = [float((a - b).norm() / a.norm().clamp_min(1e-300)) for a, b in both]
            if any(got > 1e-6 and gave < 1e-3 * got for got, gave in zip(away[::2], away[1::2], strict=True)):
                return name
    return ""


def _blind(seen: Seen) -> Told:
    each = seen.by_layer
    if each is None:
        return
    own = seen.subject.parameters
    turns, reach = {}, {}
    for name, weight, size, along in zip(each.names, each.weight, each.size, each.along, strict=True):
        if f"{name}.weight" in own and weight and size and abs(along) <= BLIND * size * weight:
            turns[name] = seen.learning_rate * weight / size
            reach[name] = float(weight * size)  # what as long a step along the gradient does

    def alike(names: Sequence[str]) -> bool:
        """Whether the loss stays when the weights of these layers are twice, ten and a hundred times as long: small
        weights across the gradient stand twice as long by chance."""
        bound = BLIND * min((reach[n] for n in names), default=0.0)
        rounded = bound >= 1e-3 * abs(seen.start)  # and far beyond what 32 bits round
        subject, start = (seen.subject, seen.start) if rounded else seen.exact
        longer = ({f"{n}.weight": k * own[f"{n}.weight"] for n in names} for k in (2, 10, 100))
        return all(abs(float(subject.value(changed)) - start) <= bound for changed in longer)

    blind = list(turns) if alike(list(turns)) else [name for name in turns if alike([name])]
    most = max(blind, key=turns.__getitem__, default="")
    if blind and turns[most] >= RULES["turn"][0]:
        count = f"{len(blind)} {'layer is' if len(blind) == 1 else 'layers are'}"
        turned = worst({name: turns[name] for name in blind})
        words = {"count": count, "most": turned, "degrees": math.degrees(math.atan(turns[most]))}
        yield "turn", turns[most], blind, words


def _last_layer(seen: Seen) -> Told:
    last = next((each.name for each in reversed(seen.anatomy.layers) if each.runs), None)
    rate, own = seen.learning_rate, {n: g for n, g in seen.gradient.items() if n.rpartition(".")[0] == last}
    if not any(g.any() for g in own.values()):
        return
    after = float(seen.subject.value({n: seen.subject.parameters[n] - rate * g for n, g in own.items()}))
    ratio = after / seen.start if seen.start > 0 else math.nan
    if ratio > RULES["last layer"][0]:
        yield "last layer", ratio, (last,), {"rate": rate, "start": seen.start, "after": after}


def _growth(seen: Seen) -> Told:
    """exp of the slope of log ‖∂ℓ/∂z‖ over the layers, towards the input, where the first bears a smaller rate than the last."""
    names = () if seen.by_layer is None else seen.by_layer.names
    norms = np.asarray(seen.by_layer.preactivation if names else [], dtype=float)
    norms = norms[(norms > 0) & np.isfinite(norms)]
    if len(norms) < FEW_LAYERS:
        return
    growth = math.exp(-np.polyfit(np.arange(len(norms)), np.log(norms), 1)[0])
    if growth >= RULES["growth"][0]:
        one, other = (_bears(seen, name) for name in (names[0], names[-1]))
        if one < other:
            words = {"first": some(names[:1]), "last": some(names[-1:]), "one": one, "other": other}
            yield "growth", growth, names, {"whole": norms.max() / norms.min(), "count": len(norms), **words}


def _bears(seen: Seen, layer: str) -> float:
    """The largest of a ladder of rates up to which a step of this layer alone does half of what its gradient says; nan where
    none does, as at a kink."""
    double, exact = seen.exact
    own = [n for each in seen.anatomy.layers if each.name == layer for n in each.parameters]
    slopes = {n: seen.gradient[n].double() for n in own if n in seen.gradient}
    falls, at = sum(float(g.square().sum()) for g in slopes.values()), seen.subject.parameters

    def falling(k: int) -> bool:
        rate = seen.learning_rate * 4.0**k
        after = float(double.value((n, at[n].double() - rate * g) for n, g in slopes.items()))
        return exact - after >= rate * falls / 2

    above = next((k for k in range(9) if not falling(k)), 9)
    borne = next((k for k in range(above - 1, -13, -1) if falling(k)), None)
    return math.nan if borne is None else seen.learning_rate * 4.0**borne


def _decay(seen: Seen) -> Told:
    own = {id(p): f"{name}.{n}" for name, every in seen.parameters(seen.axes).items() for n, p in every}
    groups = seen.optimizer.param_groups if seen.optimizer is not None else ()
    pulled = [(p, g["weight_decay"]) for g in groups for p in g["params"] if g.get("weight_decay")]
    decayed = {own[id(p)]: rate for p, rate in pulled if id(p) in own}
    if decayed:
        yield "decay", len(decayed), list(decayed), {"rate": max(decayed.values())}


#: What is tried, in this order: the shares that `_averages` finds tell `_modes` what to take out.
TRIALS = (
    _averages, _modes, _values, _frozen, _companions, _units, _biases, _blind, _last_layer, _growth, _decay
)  # fmt: skip
