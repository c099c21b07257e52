"""One call that puts all the book's instruments on a network."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

import torch
from torch import Tensor, nn

from bnbook.errors import BnbookError
from bnbook.probes.copies import one_line, random_states, reach, set_random_states
from bnbook.probes.functional import Batch, Loss, total_norm
from bnbook.probes.landscape import _walk as along
from bnbook.report import finding, instruments
from bnbook.report.diagnosis import Seen, diagnose
from bnbook.report.finding import Anatomy
from bnbook.report.foreign import tried
from bnbook.report.instruments import LeftOut
from bnbook.report.report import Findings, Report
from bnbook.report.subject import (
    Subject,
    by_channel,
    dense,
    described,
    in_half,
    moved,
    scaling,
    some,
    unwrapped,
    watched,
)

#: Step lengths along the gradient, in learning rates (Santurkar et al. 2018, A.2.2: 1/2 to 4).
LENGTHS = (0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0)
MOST = 16  # batches of a loader that are asked for


@torch.inference_mode(False)  # in which no pass has a gradient, whatever it asks for
def measure(
    model: nn.Module,
    loss: Loss,
    batch: Batch | Iterable[Batch],
    *,
    learning_rate: float = 0.1,
    lengths: Sequence[float] = LENGTHS,
    eigenvalues: bool = True,
    output: int | str | None = None,
    optimizer: torch.optim.Optimizer | None = None,
    beside: nn.Module | None = None,
    names: Sequence[str] = ("network", "beside"),
    progress: bool | None = None,
) -> Report:
    """Landscape, effective β, covariate shift, gradients and moments by layer, and λ_max of any network.

    loss(outputs, targets) -> (), a mean over the batch; batch: inputs (B, ...) and targets, or several such pairs (a
    loader), of which the first is measured, and the first MOST tell of the averages, of the spread of the loss and of
    the noise of the gradient; output: which of several outputs, by place or name; optimizer: whose weight decay the
    `diagnosis` looks at. The model runs in the mode it is in; `eigenvalues` are measured with the batch's statistics,
    with these held constant, and with running averages, on all outputs and all parameters, and cost most. What an
    instrument does not apply to is None or left out by name, and `warnings` and `findings` say why.
    `beside`: a second model on the same batch. `progress`: None shows a bar where somebody watches.
    Nothing runs on the model itself: every pass takes a copy, with the random states of torch, CUDA,
    NumPy and Python set back. Errors: BnbookError for anything but a module, a pair of tensors, a
    positive learning rate; for a network or loss that does not take the batch, or whose loss is not one
    finite number; where something has moved all the same, with its name.
    """
    from tqdm.auto import tqdm

    models = [model] if beside is None else [model, beside]
    batches = first_batches(batch)
    for each in models:
        if not isinstance(each, nn.Module):
            raise BnbookError(f"a model of type {type(each).__name__}; expected a torch.nn.Module")
    for each in batches:
        _check(each)
    batch, *others = batches
    if others and len(others[-1][0]) < len(batch[0]):  # the rest of a loader, of one example perhaps
        others.pop()
    learning_rate, lengths, names = _settings(learning_rate, lengths, names, len(models))
    if optimizer is not None and not hasattr(optimizer, "param_groups"):
        raise BnbookError(f"an optimizer of type {type(optimizer).__name__}; expected one of torch.optim")
    models = [unwrapped(each) for each in models]
    for each in models:
        _refuse_unready(each)
    bar = {"total": len(models) * (5 + 3 * eigenvalues + bool(others)), "leave": False, "desc": "measuring"}
    with tqdm(disable=None if progress is None else not progress, **bar) as shown:
        how = learning_rate, lengths, eigenvalues, optimizer, others, shown.update
        subjects = [Subject(each, loss, batch, output) for each in models]
        found = [_One(each, *how).report(name) for each, name in zip(subjects, names, strict=False)]
    return found[0] if beside is None else replace(found[0], beside=found[1])


@dataclass
class _One:
    """The measurement of one network: first what can be tried, then each instrument by itself."""

    subject: Subject
    learning_rate: float
    lengths: Sequence[float]
    eigenvalues: bool
    optimizer: torch.optim.Optimizer | None
    others: Sequence[Batch]
    step: Callable[[], Any]
    warnings: list[str] = field(default_factory=list)
    left_out: list[LeftOut] = field(default_factory=list)

    def report(self, name: str) -> Report:
        subject, say, rate = self.subject, self.warnings.append, self.learning_rate
        if not subject.parameters:
            raise BnbookError("a model without trained parameters; expected at least one with requires_grad")
        before = subject.marks()
        self.start, raw = start, _ = _first_pass(subject, before)
        self.gradient = g = {n: subject.filled(n, each) for n, each in raw.items()}
        try:
            anatomy = finding.inspect(subject)
            findings = self._tried(anatomy, raw)
        except BnbookError:
            raise
        except Exception as error:  # somebody else's code
            raise BnbookError(
                f"one pass of this network runs, another one fails: {one_line(error)}"
            ) from error
        scape = shift = layers = places = values = several = said = None
        if hindrance := self._hindrance(findings):
            say(f"only the loss is measured: {hindrance}")
        else:
            scape = self._attempt("landscape", self._landscape)
            shift = self._attempt("covariate shift", self._shift, anatomy, findings)
            layers = self._attempt("gradients by layer", instruments.by_layer, subject, anatomy, start)
            places = self._attempt("moments", instruments.moments, subject, anatomy, g, rate)
            if self.eigenvalues:
                values = instruments.eigenvalues(subject, anatomy, findings.meeting, self._attempt, say)
            if self.others:
                every = [subject.batch, *self.others]
                several = self._attempt("several batches", instruments.over_batches, subject, every)
            how = float(start), g, layers, rate, self.optimizer, [inputs for inputs, _ in self.others]
            said = self._attempt("diagnosis", lambda: diagnose(Seen(subject, anatomy, *how)))
        if places and (lost := places.not_finite):
            say(f"moments are not finite numbers, before or after one step, in {some(lost)}")
        held = [each for each in said or () if each.about == "averages"]
        if held and values and values.population is not None:
            share = f"{held[0].value:.0%} is what they were made with"
            say(f"λ_max, statistics: population is that of averages of which {share}")
        self.warnings += _left_out(self.left_out)
        if changed := moved(before, subject.marks()):
            raise BnbookError(
                f"measuring moved what lies outside of the network's copy: {', '.join(changed[:5])}; expected a network "
                "that keeps what it counts or draws in itself"
            )
        return Report(
            name, rate, len(subject.batch[0]), float(start), anatomy.normalizers, scape, shift, layers, places, values,
            tuple(self.warnings), replace(findings, left_out=tuple(self.left_out)), said or (), batches=several,
            data=_data(subject.batch[0]),
        )  # fmt: skip

    def _again(self, raw: dict[str, Tensor | None]) -> tuple[Tensor, dict[str, Tensor | None]]:
        """A second pass; by .backward() as the first one where torch gives the gradient in no other way."""
        try:
            value, again = self.subject.gradient()
            if all((again[n] is None) == (g is None) for n, g in raw.items()):
                return value, again
        except RuntimeError as error:
            if "checkpoint" not in str(error).lower():
                raise
        self.subject.by_backward = True  # a reentrant checkpoint
        return self.subject.gradient()

    def _tried(self, anatomy: Anatomy, raw: dict[str, Tensor | None]) -> Findings:
        """What the experiments say of the network; warnings of what a reader has to know before the numbers."""
        subject, gradient = self.subject, self.gradient
        value, again = self._again(raw)
        for _ in range(8):  # half of the passes of a network that tosses a coin agree with the first
            if not finding.near(value, self.start):
                break
            value = subject.value().double()
        same = {n: subject.filled(n, g) for n, g in again.items()}
        repeats = finding.repeats((self.start, gradient), (value, same))
        del again, same  # each as large as the network
        broken = tuple(n for n, g in raw.items() if g is not None and not torch.isfinite(g).all())
        size = float(total_norm(list(gradient.values())))
        slope = finding.slope(subject, (self.start, gradient)) if repeats and not broken and size else None
        mean, spread = _of_the_loss(subject)
        self.warnings += _to_know(subject, anatomy, mean, spread)
        losses, unused = (float(self.start), float(value)), tuple(n for n, g in raw.items() if g is None)
        met = finding.meeting(subject)
        meet = bool(anatomy.meeting)
        return Findings(repeats, losses, slope, met, mean, anatomy.in_order, unused, broken, meet=meet)

    def _hindrance(self, findings: Findings) -> str:
        """Why nothing that rests on the gradient can be measured, if so."""
        (one, other), slope = findings.losses, findings.slope
        if not findings.repeats:
            return (
                f"a second pass over the same batch from the same random state gives {other:.7g} "
                f"for {one:.7g}, or another gradient; something outside of the network counts or draws"
            )
        if findings.not_finite:
            return f"it is finite, but its gradient is not, in {some(findings.not_finite)}"
        if slope and not slope.fits:
            return (
                f"its gradient is not its slope ({slope.gradient:.4g} says the gradient, "
                f"{slope.ahead:.4g} ahead and {slope.behind:.4g} behind says the loss along it), as with straight-through "
                "estimators, detached parts or a dropout that is drawn anew"
            )
        return ""

    def _attempt(self, what: str, instrument: Callable[..., Any], *given: Any) -> Any:
        """What an instrument gives, without the layers that it leaves out, which are put down."""
        try:
            found = instrument(*given)
            if isinstance(found, tuple) and found and isinstance(found[-1], list):
                found, out = found
                self.left_out += out
            return found
        except BnbookError as error:
            why = str(error)
        except Exception as error:
            why = f"a pass of this network fails there ({one_line(error)})"
        finally:
            self.step()
        self.warnings.append(f"{what} not measured: {why}")
        return None

    def _landscape(self) -> Any:
        slopes = [self.gradient[name] for name in self.subject.parameters]
        if not any(g.any() for g in slopes):
            raise BnbookError("the gradient is zero in every parameter, so that there is no way along it")
        steps = [length * self.learning_rate for length in self.lengths]
        found = along(self.subject, self.start, slopes, slopes, steps)
        finite = torch.isfinite(found.gradient_distance) & torch.isfinite(found.loss)
        lost = [k for k, fits in zip(self.lengths, finite, strict=True) if not fits]
        if lost:
            far = f"from {min(lost):g} learning rates along the gradient on, loss or gradient is no finite number"
            self.warnings.append(f"{far}: effective β is infinite")
        return found

    def _shift(self, anatomy: Anatomy, findings: Findings) -> Any:
        how = self.gradient, findings.unused, self.learning_rate
        shift, out = instruments.shift(self.subject, anatomy, *how)
        none = [n for n, c in zip(shift.names, shift.cosine, strict=True) if torch.isnan(c)]
        if none:
            of = f"{len(none)} of {len(shift.names)} layers have no gradient here or after the step ({some(none)})"
            self.warnings.append(f"{of}: the mean cosine is that of the others")
        if not findings.in_order:
            self.warnings.append(
                'layers run in another order than they are registered: "the layers before" of the covariate '
                "shift are those registered before"
            )
        return shift, out


# ---- What is asked of a model, a batch and settings before anything runs ---------------------------------------------


def first_batches(batch: Any, most: int = MOST) -> list[Any]:
    """One pair of tensors, or the first pairs of what gives them; the random states are as they were before."""
    pair = isinstance(batch, (tuple, list)) and any(isinstance(each, Tensor) for each in batch)
    if pair or isinstance(batch, (Tensor, Mapping, str)) or not isinstance(batch, Iterable):
        return [batch]
    own = [getattr(each, "generator", None) for each in (batch, getattr(batch, "sampler", None))]
    own = [each for each in own if isinstance(each, torch.Generator)]
    states = random_states(own)
    try:
        found = list(islice(batch, most))
    except Exception as error:  # somebody else's code
        raise BnbookError(f"the batches cannot be read: {one_line(error)}") from error
    finally:
        set_random_states(states, own)
    if not found:
        raise BnbookError("no batch; expected at least one pair of tensors (inputs, targets)")
    return found


def _check(batch: Any) -> None:
    pair = isinstance(batch, (tuple, list)) and len(batch) == 2 and all(isinstance(b, Tensor) for b in batch)
    if not pair:
        parts = f"{len(batch)} parts" if isinstance(batch, (tuple, list)) and len(batch) != 2 else ""
        raise BnbookError(
            f"a batch of {parts or f'type {type(batch).__name__}'}; expected a pair of tensors (inputs, targets); "
            "wrap a model that takes anything else in a module that takes one tensor"
        )
    if any(each.layout != torch.strided or each.is_nested for each in batch):
        raise BnbookError("a batch that is sparse or nested; expected tensors that hold every entry")
    if not batch[0].dim() or len(batch[0]) < 1:
        shape = tuple(batch[0].shape)
        raise BnbookError(f"inputs of shape {shape}; expected (B, ...) with at least one example")


def _settings(rate: Any, lengths: Any, names: Any, count: int) -> tuple[float, list[float], list[str]]:
    """The learning rate, the lengths and the names of so many networks, as plain numbers and words."""
    known, steps = [] if isinstance(rate, (str, bool)) else _numbers([rate]), _numbers(lengths)
    if not known:
        raise BnbookError(f"learning rate {str(rate)[:40]}; expected a finite number above 0")
    if not steps:
        raise BnbookError(f"lengths {str(lengths)[:40]}; expected at least one, each a finite number above 0")
    if isinstance(names, str) or len(names) < count:
        raise BnbookError(f"names {names!r}; expected {count}, one for each network")
    return known[0], steps, [str(each) for each in names]


def _numbers(values: Any) -> list[float]:
    """Finite numbers above 0; none where any is something else."""
    with suppress(TypeError, ValueError, OverflowError):
        found = [float(each) for each in values]
        return found if all(0 < each < math.inf for each in found) else []
    return []


def _refuse_unready(network: nn.Module) -> None:
    named = list(network.named_parameters())
    for name, p in [*named, *network.named_buffers()]:
        if isinstance(p, nn.parameter.UninitializedTensorMixin):
            raise BnbookError(
                f"{name} of a lazy layer has no values yet; call the network once on a batch before"
            )
    for name, p in named:
        if p.is_complex():
            raise BnbookError(f"{name} is complex; expected parameters that are real numbers")
    last, end = "", 0
    for name, p in sorted(named, key=lambda each: each[1].data_ptr()):
        if p.numel() and 0 < p.data_ptr() < end:
            both = f"{last} and {name} are two parameters in one memory"
            raise BnbookError(f"{both}; expected one, given to both places")
        last, end = name, max(end, p.data_ptr() + p.numel() * p.element_size())


# ---- What is tried first ---------------------------------------------------------------------------------------------


def _first_pass(subject: Subject, before: dict[str, Any]) -> tuple[Tensor, dict[str, Tensor | None]]:
    """Loss and gradient of one pass; whatever fails becomes one line that says where."""
    touched: list[str] = []
    with watched(subject, before, touched):
        found = _one_pass(subject)
    if touched:
        raise BnbookError(
            f"a pass over a copy moves what is no part of it ({', '.join(touched[:5])}): its code or its loss reaches that from "
            "outside; expected networks that are reached through self or as an argument, attribute or global name"
        )
    return found


def _one_pass(subject: Subject) -> tuple[Tensor, dict[str, Tensor | None]]:
    kinds = (f"{tuple(each.shape)} of {str(each.dtype).removeprefix('torch.')}" for each in subject.batch)
    (inputs, targets), names = kinds, {n for n, _ in subject.network.named_parameters()}
    with subject.twin() as twin:
        outputs = tried(f"the network does not take inputs {inputs}", twin.outputs)
        for name in [n for n, _ in twin.network.named_parameters() if n not in names]:
            raise BnbookError(f"{name} is made in the first pass; call the network once on a batch before")
        words = (
            f"the loss does not take what the network gives, {described(outputs)}, with targets {targets}; expected a "
            "loss that does, or output= (in a shell --output) for one of several"
        )
        value = tried(words, lambda: twin.reduced(outputs))
        if not torch.isfinite(value):
            said = f"the loss of the batch is {float(value.detach())}; expected a finite number"
            raise BnbookError(said + _not_finite(subject))
        if not value.requires_grad:
            raise BnbookError("the loss has no gradient; expected one that depends on trained parameters")
        tried("the gradient of the loss cannot be taken", value.backward)
        return value.detach().double(), {n: dense(twin.parameters[n].grad) for n in subject.parameters}


def _not_finite(subject: Subject) -> str:
    """What may have made a loss that is no number."""
    if not subject.batch[0].isfinite().all():
        return "; the batch's inputs hold numbers that are not"
    held = dict(subject.network.named_buffers())
    lost = [n for n, b in held.items() if not b.isfinite().all()]
    below = [n for n, b in held.items() if n.endswith("running_var") and bool((b < 0).any())]
    why = "no finite number: a batch has overflowed once" if lost else "below zero"
    return f"; {some(lost or below)} of the network is {why}" if lost or below else ""


def _data(inputs: Tensor) -> str:
    known = f", {scaling(by_channel(inputs))}" * inputs.is_floating_point()
    return f"{len(inputs)} of shape {tuple(inputs.shape[1:])}{known}"


def _of_the_loss(subject: Subject) -> tuple[float | None, bool]:
    """The loss of the batch twice over that of the batch; and whether outputs (B, 1) meet targets (B,) in it as (B, B): it is
    that of the outputs spread by hand."""
    outputs, size = None, len(subject.batch[0])
    with suppress(Exception):  # somebody else's code
        outputs = subject.run(grad=False)

    def of(change: Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]) -> float | None:
        """The loss of outputs and targets that are changed before it sees them; None where it does not take them."""
        with (
            suppress(Exception),
            subject.twin() as twin,
            warnings.catch_warnings(action="ignore"),
            torch.no_grad(),
        ):
            if len(outputs) == len(twin.targets):
                return float(twin.loss(*change(outputs, twin.targets)))
        return None

    once, twice = of(lambda y, t: (y.clone(), t)), of(lambda y, t: (torch.cat([y] * 2), torch.cat([t] * 2)))
    mean = twice / once if twice is not None and once else None
    if once is None or subject.batch[1].shape != (size,) or outputs.shape != (size, 1):
        return mean, False
    apart, fits = of(lambda y, t: (y.expand(-1, size), t.expand(size, -1))), of(lambda y, t: (y[:, 0], t))
    same = lambda other: other is not None and math.isclose(once, other, rel_tol=1e-5, abs_tol=1e-8)
    return mean, same(apart) and fits is not None and not same(fits)


def _unregistered(subject: Subject) -> list[str]:
    """Modules that the network reaches, in a list of its own perhaps, and does not register, whose parameters get a gradient."""
    with subject.twin() as twin:
        inside = {id(each) for each in (*twin.network.modules(), *twin.network.parameters())}
        others = [(n, m) for n, m in reach(twin.network) if isinstance(m, nn.Module) and id(m) not in inside]
        every = [(n, p) for n, m in others for p in m.parameters()]
        leaves = [(n, p) for n, p in every if p.requires_grad and id(p) not in inside]
        found = subject.differentiate(twin.value(), [p for _, p in leaves]) if leaves else []
    names = dict.fromkeys(name for (name, _), g in zip(leaves, found, strict=True) if g is not None)
    return [name for name in names if not any(name.startswith(f"{other}.") for other in names)]


def _to_know(subject: Subject, anatomy: Anatomy, mean: float | None, spread: bool) -> Iterator[str]:
    network, half = subject.network, in_half(subject.network)
    if mean is not None and not abs(mean - 1) <= 1e-3 * (10 if half else 1):
        scale, other = "gradients and β scale with the batch", "of another batch size it is another loss"
        rest = scale if abs(mean - 2) < 0.1 else other
        yield f"the loss is no mean over the examples (the batch twice gives {mean:.3g} times the loss): {rest}"
    over = [each for each in anatomy.normalizers if each.over_batch]
    still = {each.name: each.name or each.kind for each in over if not each.meets_now}
    if still:
        how, ran = "its own code keeps these layers there, also after model.train()", {}
        with suppress(Exception):
            subject.run(lambda m: m.train(), before=lambda n, m, *_: ran.update({n: m.training}), names=still)
        if any(ran.values()):
            how = "call model.train() for those of training"
        yield (
            f"{len(still)} of {len(over)} batch normalizers are in inference mode ({some([*still.values()])}): landscape, shift, "
            f"gradients and moments are those of running averages; {how}"
        )
    modules, named = network.named_modules(), network.named_parameters()
    if keras := [n for n, m in modules if hasattr(m, "moving_mean") and n not in anatomy.meeting]:
        yield f"{some(keras)} is in inference mode: models of Keras infer unless they are called with training=True"
    if hooked := [n for n, p in named if p._backward_hooks]:
        yield f"a hook changes the gradient of {some(hooked)} on its way to the parameter: all numbers are those without it"
    if hidden := _unregistered(subject):
        yield f"{some(hidden)} is no part of what the network registers: its parameters are not measured"
    if spread:
        yield (
            f"the loss spreads outputs {(len(subject.batch[0]), 1)} against targets {tuple(subject.batch[1].shape)}: each example "
            "is compared with all targets; give both one shape"
        )
    if half:
        yield "the weights are in half precision: changes below a part in 256 (bfloat16) or 2048 (float16) of a weight are lost"


def _left_out(every: Sequence[LeftOut]) -> Iterator[str]:
    said: dict[str, dict[str, list[str]]] = {}
    for each in every:
        said.setdefault(each.instrument, {}).setdefault(each.why, []).append(each.layer)
    for instrument, reasons in said.items():
        parts = [f"{some(layers)} ({why})" for why, layers in reasons.items()]
        yield f"{instrument} without {'; '.join(parts)}"
