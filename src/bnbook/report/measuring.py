"""One call that puts all the book's instruments on a network."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import islice
from typing import Any

import torch
from torch import Tensor, nn

from bnbook.errors import BnbookError
from bnbook.probes.copies import one_line, random_states, reach, set_random_states
from bnbook.probes.functional import Batch, Loss, total_norm
from bnbook.report import finding, instruments
from bnbook.report.diagnosis import Sentence, diagnose, require_optimizer
from bnbook.report.finding import Anatomy, inspect
from bnbook.report.finding import some as _some
from bnbook.report.instruments import LeftOut
from bnbook.report.report import Findings, Report
from bnbook.report.subject import Subject, dense, described, moved, unwrapped, watched

#: Step lengths along the gradient, in learning rates (Santurkar et al. 2018, A.2.2: 1/2 to 4).
LENGTHS = (0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0)


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
    models = [model] if beside is None else [model, beside]
    batch, *others = _batches(batch)
    for each in models:
        _check(each, batch)
    learning_rate, lengths, names = _settings(learning_rate, lengths, names, len(models))
    require_optimizer(optimizer)
    models = [unwrapped(each) for each in models]
    for each in models:
        _refuse_unready(each)
    with _bar(len(models) * (5 + 3 * eigenvalues + bool(others)), progress) as step:
        found = [
            _One(
                Subject(each, loss, batch, output),
                learning_rate,
                lengths,
                eigenvalues,
                step,
                optimizer,
                others,
            ).report(name)
            for each, name in zip(models, names, strict=False)
        ]
    return found[0] if beside is None else replace(found[0], beside=found[1])


class _One:
    """The measurement of one network: first what can be tried, then each instrument by itself."""

    def __init__(
        self,
        subject: Subject,
        learning_rate: float,
        lengths: Sequence[float],
        eigenvalues: bool,
        step: Callable[[], Any],
        optimizer: torch.optim.Optimizer | None = None,
        others: Sequence[Batch] = (),
    ) -> None:
        self.subject, self.learning_rate, self.lengths, self.others = subject, learning_rate, lengths, others
        self.eigenvalues, self.step, self.optimizer = eigenvalues, step, optimizer
        self.warnings: list[str] = []
        self.left_out: list[LeftOut] = []

    def report(self, name: str) -> Report:
        subject = self.subject
        if not subject.parameters:
            raise BnbookError("a model without trained parameters; expected at least one with requires_grad")
        before = subject.marks()
        start, raw = _first_pass(subject, before)
        self.unused = tuple(n for n, g in raw.items() if g is None)
        self.gradient = {
            n: torch.zeros_like(subject.parameters[n]) if g is None else g for n, g in raw.items()
        }
        self.start = start
        try:
            anatomy = inspect(subject)
            findings = self._tried(anatomy, raw)
        except BnbookError:
            raise
        except Exception as error:  # somebody else's code
            raise BnbookError(
                f"one pass of this network runs, another one fails: {one_line(error)}"
            ) from error
        seen = shift = by_layer = places = values = several = None
        said: tuple[Sentence, ...] = ()
        hindrance = self._hindrance(findings)
        if hindrance:
            self.warnings.append(hindrance)
        else:
            seen = self._attempt("landscape", self._landscape)
            shift = self._attempt("covariate shift", lambda: self._shift(anatomy, findings))
            by_layer = self._attempt("gradients by layer", lambda: self._by_layer(anatomy))
            places = self._attempt("moments", lambda: self._moments(anatomy))
            if self.eigenvalues:
                values = instruments.eigenvalues(
                    subject, anatomy, findings.meeting, self._attempt, self.warnings.append
                )
            if self.others:
                every = [subject.batch, *self.others]
                several = self._attempt("several batches", lambda: instruments.over_batches(subject, every))
            said = self._attempt(
                "diagnosis",
                lambda: diagnose(
                    subject,
                    anatomy,
                    float(start),
                    self.gradient,
                    by_layer,
                    self.learning_rate,
                    self.optimizer,
                    [inputs for inputs, _ in self.others],
                ),
            )
        held = [each for each in said or () if each.about == "averages"]
        if held and values and values.population is not None:
            self.warnings.append(
                f"λ_max, statistics: population is that of averages of which {held[0].value:.0%} is what they were made with"
            )
        self.warnings += _left_out(self.left_out)
        if changed := moved(before, subject.marks()):
            raise BnbookError(
                f"measuring moved what lies outside of the network's copy: {', '.join(changed[:5])}; expected a network "
                "that keeps what it counts or draws in itself"
            )
        return Report(
            name, self.learning_rate, len(subject.batch[0]), float(start), anatomy.normalizers, seen, shift, by_layer,
            places, values, tuple(self.warnings), replace(findings, left_out=tuple(self.left_out)), said or (),
            batches=several,
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
            with subject.twin() as twin:
                value = twin.value().detach().double()
        same = {n: torch.zeros_like(gradient[n]) if g is None else g for n, g in again.items()}
        repeats = finding.repeats((self.start, gradient), (value, same))
        broken = tuple(n for n, g in raw.items() if g is not None and not torch.isfinite(g).all())
        zero = tuple(n for n, g in raw.items() if g is not None and not g.any())
        size = float(total_norm(list(gradient.values())))
        slope = finding.slope(subject) if repeats and not broken and size else None
        mean = _twice(subject)
        self.warnings += _to_know(subject, anatomy, mean)
        frozen = tuple(n for n, p in subject.network.named_parameters() if not p.requires_grad)
        return Findings(
            repeats, (float(self.start), float(value)), slope, finding.meeting(subject), mean, anatomy.in_order,
            self.unused, zero, broken, frozen,
        )  # fmt: skip

    def _hindrance(self, findings: Findings) -> str | None:
        """Why nothing that rests on the gradient can be measured, if so."""
        if not findings.repeats:
            one, other = findings.losses
            return (
                f"only the loss is measured: a second pass over the same batch from the same random state gives {other:.7g} "
                f"for {one:.7g}, or another gradient; something outside of the network counts or draws"
            )
        if findings.not_finite:
            return f"only the loss is measured: it is finite, but its gradient is not, in {_some(findings.not_finite)}"
        if findings.slope and not findings.slope.fits:
            slope = findings.slope
            return (
                f"only the loss is measured: its gradient is not its slope ({slope.gradient:.4g} says the gradient, "
                f"{slope.ahead:.4g} ahead and {slope.behind:.4g} behind says the loss along it), as with straight-through "
                "estimators, detached parts or a dropout that is drawn anew"
            )
        return None

    def _attempt(self, what: str, instrument: Callable[[], Any]) -> Any:
        try:
            return instrument()
        except BnbookError as error:
            self.warnings.append(f"{what} not measured: {error}")
        except Exception as error:
            self.warnings.append(
                f"{what} not measured: a pass of this network fails there ({one_line(error)})"
            )
        finally:
            self.step()
        return None

    def _landscape(self) -> Any:
        if not any(g.any() for g in self.gradient.values()):
            raise BnbookError("the gradient is zero in every parameter, so that there is no way along it")
        seen = instruments.landscape(
            self.subject, self.start, self.gradient, [length * self.learning_rate for length in self.lengths]
        )
        lost = [k for k, g in zip(self.lengths, seen.gradient_distance, strict=True) if not torch.isfinite(g)]
        lost += [k for k, v in zip(self.lengths, seen.loss, strict=True) if not torch.isfinite(v)]
        if lost:
            self.warnings.append(
                f"from {min(lost):g} learning rates along the gradient on, loss or gradient is no finite number: effective β is "
                "infinite"
            )
        return seen

    def _shift(self, anatomy: Anatomy, findings: Findings) -> Any:
        shift, out = instruments.shift(self.subject, anatomy, self.gradient, self.unused, self.learning_rate)
        self.left_out += out
        none = [n for n, c in zip(shift.names, shift.cosine, strict=True) if torch.isnan(c)]
        if none:
            self.warnings.append(
                f"{len(none)} of {len(shift.names)} layers have no gradient here or after the step ({_some(none)}): the mean cosine "
                "is that of the others"
            )
        if not findings.in_order:
            self.warnings.append(
                'layers run in another order than they are registered: "the layers before" of the covariate '
                "shift are those registered before"
            )
        return shift

    def _by_layer(self, anatomy: Anatomy) -> Any:
        found, out = instruments.by_layer(self.subject, anatomy, self.start)
        self.left_out += out
        return found

    def _moments(self, anatomy: Anatomy) -> Any:
        found, out = instruments.moments(self.subject, anatomy, self.gradient, self.learning_rate)
        self.left_out += out
        lost = [
            n
            for n, x in zip(found.names, found.mean_change + found.variance_change, strict=True)
            if not math.isfinite(x)
        ]
        if lost:
            self.warnings.append(
                f"moments are not finite numbers, before or after one step, in {_some(lost)}"
            )
        return found


MOST = 16  # batches of a loader that are asked for


def _batches(batch: Any) -> list[Any]:
    """One pair of tensors, or the first pairs of what gives them; the random states are as they were before."""
    if isinstance(batch, (Tensor, Mapping, str)) or not isinstance(batch, Iterable):
        return [batch]
    if isinstance(batch, (tuple, list)) and any(isinstance(each, Tensor) for each in batch):
        return [batch]
    own = [getattr(each, "generator", None) for each in (batch, getattr(batch, "sampler", None))]
    own = [each for each in own if isinstance(each, torch.Generator)]
    states = random_states(own)
    try:
        found = list(islice(batch, MOST))
    except Exception as error:  # somebody else's code
        raise BnbookError(f"the batches cannot be read: {one_line(error)}") from error
    finally:
        set_random_states(states, own)
    if not found:
        raise BnbookError("no batch; expected at least one pair of tensors (inputs, targets)")
    for each in found[1:]:
        _check(nn.Identity(), each)
    return found


def _check(model: nn.Module, batch: Batch) -> None:
    if not isinstance(model, nn.Module):
        raise BnbookError(f"a model of type {type(model).__name__}; expected a torch.nn.Module")
    pair = isinstance(batch, (tuple, list)) and len(batch) == 2 and all(isinstance(b, Tensor) for b in batch)
    if not pair:
        raise BnbookError(
            f"a batch of type {type(batch).__name__}; expected a pair of tensors (inputs, targets); "
            "wrap a model that takes anything else in a module that takes one tensor"
        )
    if any(each.layout != torch.strided or each.is_nested for each in batch):
        raise BnbookError("a batch that is sparse or nested; expected tensors that hold every entry")
    if not batch[0].dim() or len(batch[0]) < 1:
        raise BnbookError(
            f"inputs of shape {tuple(batch[0].shape)}; expected (B, ...) with at least one example"
        )


def _settings(rate: Any, lengths: Any, names: Any, count: int) -> tuple[float, list[float], list[str]]:
    """The learning rate, the lengths and the names of so many networks, as plain numbers and words."""
    try:
        found = float(rate)
    except (TypeError, ValueError, OverflowError):
        found = math.nan
    if not 0 < found < math.inf or isinstance(rate, (str, bool)):
        raise BnbookError(f"learning rate {str(rate)[:40]}; expected a finite number above 0")
    try:
        steps = [float(each) for each in lengths]
    except (TypeError, ValueError, OverflowError):
        steps = []
    if not steps or not all(0 < each < math.inf for each in steps):
        raise BnbookError(f"lengths {str(lengths)[:40]}; expected at least one, each a finite number above 0")
    if isinstance(names, str) or len(names) < count:
        raise BnbookError(f"names {names!r}; expected {count}, one for each network")
    return found, steps, [str(each) for each in names]


def _refuse_unready(network: nn.Module) -> None:
    complex_ = [n for n, p in network.named_parameters() if p.is_complex()]
    if complex_:
        raise BnbookError(f"{complex_[0]} is complex; expected parameters that are real numbers")
    lazy = [n for n, p in network.named_parameters() if isinstance(p, nn.parameter.UninitializedTensorMixin)]
    if lazy:
        raise BnbookError(
            f"{lazy[0]} of a lazy layer has no values yet; call the network once on a batch before"
        )
    last, end = "", 0
    for name, p in sorted(network.named_parameters(), key=lambda named: named[1].data_ptr()):
        if p.numel() and 0 < p.data_ptr() < end:
            raise BnbookError(
                f"{last} and {name} are two parameters in one memory; expected one, given to both places"
            )
        last, end = name, max(end, p.data_ptr() + p.numel() * p.element_size())


def _first_pass(subject: Subject, before: dict[str, Any]) -> tuple[Tensor, dict[str, Tensor | None]]:
    """Loss and gradient of one pass; whatever fails becomes one line that says where."""
    touched: list[str] = []
    with watched(subject, before, touched):
        found = _one_pass(subject)
    if touched:
        raise BnbookError(
            f"a pass over a copy moves the network itself ({_some(touched)}): its code or its loss reaches it from outside; "
            "expected code that reaches all through self, and a loss of outputs and targets"
        )
    return found


def _one_pass(subject: Subject) -> tuple[Tensor, dict[str, Tensor | None]]:
    inputs, targets = (
        f"{tuple(each.shape)} of {str(each.dtype).removeprefix('torch.')}" for each in subject.batch
    )
    with subject.twin() as twin:
        try:
            outputs = twin.outputs()
        except BnbookError:
            raise
        except Exception as error:
            raise BnbookError(f"the network does not take inputs {inputs}: {one_line(error)}") from error
        new = [
            n for n, _ in twin.network.named_parameters() if n not in dict(subject.network.named_parameters())
        ]
        if new:
            raise BnbookError(f"{new[0]} is made in the first pass; call the network once on a batch before")
        try:
            value = twin.reduced(outputs)
        except BnbookError:
            raise
        except Exception as error:
            raise BnbookError(
                f"the loss does not take what the network gives, {described(outputs)}, with targets {targets}; expected a "
                f"loss that does, or output= (in a shell --output) for one of several: {one_line(error)}"
            ) from error
        if not torch.isfinite(value):
            lost = [n for n, b in subject.network.named_buffers() if not torch.isfinite(b).all()]
            where = (
                f"; {_some(lost)} of the network is no finite number: a batch has overflowed once"
                if lost
                else ""
            )
            raise BnbookError(
                f"the loss of the batch is {float(value.detach())}; expected a finite number{where}"
            )
        if not value.requires_grad:
            raise BnbookError("the loss has no gradient; expected one that depends on trained parameters")
        named = twin.parameters
        try:
            value.backward()
        except Exception as error:
            raise BnbookError(f"the gradient of the loss cannot be taken: {one_line(error)}") from error
        return value.detach().double(), {name: dense(named[name].grad) for name in subject.parameters}


def _twice(subject: Subject) -> float | None:
    """The loss of the outputs twice over the loss of the outputs: 1 for a mean over the examples."""
    with subject.twin() as twin:
        outputs = twin.outputs()
        if not isinstance(outputs, Tensor) or not outputs.dim() or len(outputs) != len(twin.targets):
            return None
        try:
            with torch.no_grad():
                once = twin.loss(outputs.clone(), twin.targets)
                twice = twin.loss(torch.cat([outputs] * 2), torch.cat([twin.targets] * 2))
        except Exception:
            return None
    return float(twice / once) if once else None


def _unregistered(subject: Subject) -> list[str]:
    """Modules with trained parameters that the network reaches, in a list of its own perhaps, and does not register."""
    inside = {id(each) for each in subject.network.modules()}
    own = {id(p) for p in subject.network.parameters()}
    return [
        name
        for name, each in reach(subject.network)
        if isinstance(each, nn.Module)
        and id(each) not in inside
        and any(p.requires_grad and id(p) not in own for p in each.parameters())
    ]


def _spread(subject: Subject) -> bool:
    """Whether outputs (B, 1) meet targets (B,) in the loss as (B, B): it is that of the outputs spread by hand."""
    with subject.twin() as twin:
        outputs, targets = twin.outputs(), twin.targets
        if not isinstance(outputs, Tensor) or outputs.shape != (len(targets), 1) or targets.dim() != 1:
            return False
        try:
            with torch.no_grad(), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                once = twin.loss(outputs.clone(), targets)
                apart = twin.loss(outputs.expand(-1, len(targets)), targets.expand(len(targets), -1))
                fits = twin.loss(outputs[:, 0], targets)
        except Exception:  # somebody else's code
            return False
    return bool(torch.isclose(once, apart)) and not bool(torch.isclose(once, fits))


def _to_know(subject: Subject, anatomy: Anatomy, mean: float | None) -> Iterator[str]:
    if mean is not None and not abs(mean - 1) <= 1e-3 * (10 if _half(subject) else 1):
        rest = (
            "gradients and β scale with the batch"
            if abs(mean - 2) < 0.1
            else "of another batch size it is another loss"
        )
        yield f"the loss is no mean over the examples (the batch twice gives {mean:.3g} times the loss): {rest}"
    over = [each for each in anatomy.normalizers if each.over_batch]
    still = [each.name or each.kind for each in over if not each.meets_now]
    if still:
        yield (
            f"{len(still)} of {len(over)} batch normalizers are in inference mode ({_some(still)}): landscape, shift, "
            "gradients and moments are those of running averages; "
            + (
                "the network is in training mode, but its own code keeps these layers from it"
                if subject.network.training
                else "call model.train() for those of training"
            )
        )
    keras = [
        n
        for n, m in subject.network.named_modules()
        if hasattr(m, "moving_mean") and n not in anatomy.meeting
    ]
    if keras:
        yield f"{_some(keras)} is in inference mode: models of Keras infer unless they are called with training=True"
    hooked = [n for n, p in subject.network.named_parameters() if p._backward_hooks]
    if hooked:
        yield f"a hook changes the gradient of {_some(hooked)} on its way to the parameter: all numbers are those without it"
    hidden = _unregistered(subject)
    if hidden:
        yield f"{_some(hidden)} is no part of what the network registers: its parameters are not measured"
    if _spread(subject):
        yield (
            f"the loss spreads outputs {(len(subject.batch[0]), 1)} against targets {tuple(subject.batch[1].shape)}: each example "
            "is compared with all targets; give both one shape"
        )
    if _half(subject):
        yield "the weights are in half precision: changes below a part in 256 (bfloat16) or 2048 (float16) of a weight are lost"


def _half(subject: Subject) -> bool:
    return any(p.dtype in (torch.float16, torch.bfloat16) for p in subject.network.parameters())


def _left_out(every: Sequence[LeftOut]) -> Iterator[str]:
    for instrument in dict.fromkeys(each.instrument for each in every):
        own = [each for each in every if each.instrument == instrument]
        said = {
            why: [each.layer for each in own if each.why == why]
            for why in dict.fromkeys(each.why for each in own)
        }
        parts = [f"{_some(layers)} ({why})" for why, layers in said.items()]
        yield f"{instrument} without {'; '.join(parts)}"


@contextmanager
def _bar(total: int, wanted: bool | None) -> Iterator[Callable[[], Any]]:
    """A bar on a terminal or in a notebook; gives the function that counts a part as done."""
    from tqdm.auto import tqdm

    with tqdm(
        total=total, disable=None if wanted is None else not wanted, leave=False, desc="measuring"
    ) as bar:
        yield lambda: bar.update(1)
