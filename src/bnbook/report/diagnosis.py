"""What the numbers say to somebody who has a network and a symptom: plain sentences in order of weight."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from bnbook.errors import BnbookError
from bnbook.probes.layer_gradients import LayerGradients
from bnbook.report.finding import Anatomy, as_made, averages, units_along, watch
from bnbook.report.subject import Subject, part

#: What each sentence is about -> the number from which it is said, and the chapter that shows it.
RULES = {
    "modes": (0.1, "batch-norm/transform"),  # ‖f_training − f_inference‖ / ‖f_training‖
    "averages": (0.05, "batch-norm/transform"),  # share of the averages that is what they were made with
    "momentum": (0.5, "batch-norm/transform"),  # weight of the newest batch in the averages
    "values": (16, "batch-norm/transform"),  # fewer values than this a unit and batch
    "epsilon": (0.1, "batch-norm/transform"),  # ε over the variance of a unit
    "constant": (1, "batch-norm/transform"),  # units whose values are all alike
    "bias": (1, "batch-norm/transform"),  # biases that change no output
    "turn": (0.1, "decoupling/neural-networks"),  # η ‖g‖ / ‖W‖ of a layer that is blind to ‖W‖
    "decay": (1, "decoupling/neural-networks"),  # parameters γ and β that decay
    "last layer": (1.0, "mean-field/readout"),  # loss after a step of the last layer over that before
    "growth": (1.2, "batch-norm/gradient-explosion"),  # of the gradient a layer, towards the input
}
BLIND, FEW_LAYERS = 1e-3, 4


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
) -> tuple[Sentence, ...]:
    """All that is found, the heaviest first; what cannot be tried is not said."""
    seen = _Inputs(subject, anatomy)
    found: list[Sentence] = []
    rules: list[Callable[[], Iterator[Sentence]]] = [
        lambda: _modes(subject, anatomy, seen),
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


class _Inputs:
    """What the layers receive in which the examples meet, and what the network gives, in both modes."""

    def __init__(self, subject: Subject, anatomy: Anatomy) -> None:
        self.variance: dict[str, Tensor] = {}  # (units,)
        self.values: dict[str, int] = {}  # per unit
        self.layers = {name: part(subject.network, name) for name in anatomy.meeting}
        self.outputs = {mode: self._pass(subject, anatomy, mode) for mode in (True, False)}

    def _pass(self, subject: Subject, anatomy: Anatomy, training: bool) -> object:
        axes = {each.name: each.axis for each in anatomy.normalizers}
        try:
            with subject.twin() as twin:  # with gradients on: some layers infer where these are off
                for name in self.layers:
                    module = part(twin.network, name)
                    module.train(training)
                    if training and name in axes:
                        watch(module, lambda m, got, _k, n=name: self._keep(m, n, axes[n], got), None)
                given = twin.outputs()
                return given.detach() if isinstance(given, Tensor) else given
        except Exception:  # in a mode that the network is not in it may fail
            return None

    def _keep(self, module: nn.Module, name: str, axis: int, got: tuple) -> None:
        if module.training and got and isinstance(got[0], Tensor) and name not in self.variance:
            units = units_along(axis, got[0])
            if units.shape[1] < 2:
                return
            self.variance[name], self.values[name] = units.var(1, correction=0), units.shape[1]


def _modes(subject: Subject, anatomy: Anatomy, seen: _Inputs) -> Iterator[Sentence]:
    one, other = seen.outputs[True], seen.outputs[False]
    if not anatomy.meeting or not isinstance(one, Tensor) or not isinstance(other, Tensor):
        return
    away = float((one - other).double().norm() / one.double().norm().clamp_min(1e-300))
    why, kept = [], averages(subject, anatomy.meeting)
    for name, module in seen.layers.items():
        momentum, counted = getattr(module, "momentum", None), getattr(module, "num_batches_tracked", None)
        count = 0 if counted is None else int(counted)
        share = 1.0 if as_made(kept[name]) else (1 - (momentum or 1)) ** count if count else 0.0
        after = (
            f", after {_count(count, 'batch', 'batches')} at momentum {momentum:g}"
            if count and momentum
            else ""
        )
        if share >= RULES["averages"][0]:
            why.append(
                _say(
                    "averages",
                    share,
                    f"{share:.0%} of the running averages of {name} is what they were made with{after}: "
                    + (
                        "with momentum 0 they stay so"
                        if momentum == 0
                        else "let it see more batches in training mode before it infers"
                    ),
                    (name,),
                )
            )
        if (momentum or 0) >= RULES["momentum"][0]:
            why.append(
                _say(
                    "momentum",
                    momentum,
                    f"momentum {momentum:g} of {name} is the weight of the newest batch, so that the averages are those of "
                    f"the last {_count(max(1, round(1 / momentum)), 'batch', 'batches').removeprefix('1 ')}; "
                    + (
                        "other libraries give the weight of the old averages by this word: "
                        f"expected {1 - momentum:g}?"
                        if momentum < 1
                        else "expected a smaller one, such as 0.1"
                    ),
                    (name,),
                )
            )
    few = min(seen.values.items(), key=lambda item: item[1], default=None)
    if few and few[1] < RULES["values"][0]:
        why.append(
            _say(
                "values",
                few[1],
                f"{few[0]} takes mean and variance of {few[1]} values a unit and batch: its statistics are mostly noise; use a "
                "larger batch, or a norm that does not look across examples",
                (few[0],),
            )
        )
    heaviest: dict[str, Sentence] = {}
    for each in why:  # one layer stands for all that have the same
        if each.about not in heaviest or each.weight > heaviest[each.about].weight:
            heaviest[each.about] = each
    if away >= RULES["modes"][0] or not math.isfinite(away):
        reasons = {
            "averages": "averages that few batches filled",
            "momentum": "averages of the last batch only",
        }
        reasons["values"] = "few values a unit"
        cause = [reasons[about] for about in heaviest] or [
            "averages that belong to other weights or other data"
        ]
        yield _say(
            "modes",
            away,
            f"training and inference differ by {away:.0%} of the output on this batch; because of {' and '.join(cause)}",
            anatomy.meeting,
        )
    yield from heaviest.values()


def _loss(subject: Subject, changed: Mapping[str, Tensor]) -> float:
    with subject.twin(changed) as twin:
        return float(twin.value().detach())


def _count(number: int, one: str, more: str) -> str:
    return f"{number} {one if number == 1 else more}"


def _units(seen: _Inputs) -> Iterator[Sentence]:
    still, small, units, worst, where, places = 0, 0, 0, 0.0, [], []
    for name, variance in seen.variance.items():
        eps = getattr(seen.layers[name], "eps", 0.0) or 0.0
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
            f"{still} of {units} units that are normalized over the batch give the same value for all examples ({_some(places)}): "
            "their normalized value is 0, whatever they receive",
            tuple(places),
        )
    if small:
        yield _say(
            "epsilon",
            worst,
            f"ε is not small against the variance of {small} of {units} units ({_some(where)}): up to {worst:.2g} times as large, so "
            "that these come out smaller than with variance 1; use a smaller ε or larger weights before it",
            tuple(where),
        )


def _biases(
    subject: Subject, anatomy: Anatomy, start: float, gradient: Mapping[str, Tensor]
) -> Iterator[Sentence]:
    """Biases that may be changed, each entry by another number, while the loss stays, of layers whose weights
    have a gradient: where these have none either, it is not a mean that hides the bias."""
    weights = {each.name: [gradient[n] for n in each.parameters if n in gradient] for each in anatomy.layers}
    idle = []
    for name in [n for n in gradient if n.endswith("bias")] if anatomy.meeting else ():
        if not any(each.any() for each in weights.get(name.rpartition(".")[0], ())):
            continue
        own = subject.parameters[name]
        wave = torch.arange(1, own.numel() + 1, device=own.device).cos().to(own.dtype).view_as(own)
        moved = {name: own + wave}
        again = _loss(subject, moved)
        if abs(again - start) <= 1e-5 * max(abs(start), 1e-6):
            idle.append(name)
    if idle:
        size = sum(subject.parameters[name].numel() for name in idle)
        yield _say(
            "bias",
            len(idle),
            f"{_count(len(idle), 'bias', 'biases')} ({size} numbers; {_some(idle)}) "
            f"{'does' if len(idle) == 1 else 'do'} nothing: what follows subtracts the mean; make the layer with bias=False",
            tuple(idle),
        )


def _blind(
    subject: Subject, start: float, by_layer: LayerGradients | None, learning_rate: float
) -> Iterator[Sentence]:
    if by_layer is None:
        return
    named, maybe = dict(subject.network.named_parameters()), {}
    for k, name in enumerate(by_layer.names):
        own = f"{name}.weight"
        if own not in named or own not in subject.parameters or by_layer.weight[k] == 0:
            continue
        if abs(by_layer.along[k]) > 10 * BLIND * by_layer.size[k] * by_layer.weight[k]:
            continue
        maybe[name] = learning_rate * by_layer.weight[k] / by_layer.size[k]

    def alike(names: Iterable[str]) -> bool:
        """Whether the loss stays when the weights of these layers are twice as long."""
        longer = {f"{n}.weight": 2 * subject.parameters[f"{n}.weight"] for n in names}
        return abs(_loss(subject, longer) - start) <= BLIND * max(abs(start), 1e-6)

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
            f"({_some(names)}): give them a group of parameters without decay",
            names,
        )


def _some(names: tuple[str, ...] | list[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def require_optimizer(optimizer: object) -> None:
    if optimizer is not None and not hasattr(optimizer, "param_groups"):
        raise BnbookError(f"an optimizer of type {type(optimizer).__name__}; expected one of torch.optim")
