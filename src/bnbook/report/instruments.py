"""Landscape, covariate shift, gradients and moments by layer, and λ_max, each pass on a fresh copy of the network.

The numbers are those of `bnbook.probes`, whose functions swap parameters while the network runs; here the copy
owns its parameters, so that recomputation (activation checkpoints) and parametrizations see what they should.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from torch import Tensor, nn
from torch.autograd import forward_ad

from bnbook.errors import BnbookError
from bnbook.probes.activations import moment_change
from bnbook.probes.copies import one_line
from bnbook.probes.covariate_shift import CovariateShift, changes, layers_of
from bnbook.probes.functional import Batch, total_norm
from bnbook.probes.krylov import ritz
from bnbook.probes.layer_gradients import LayerGradients
from bnbook.report.finding import (
    Anatomy,
    alone,
    as_made,
    averages,
    blocks,
    first_tensor,
    kind,
    meeting,
    near,
    put,
    units_along,
)
from bnbook.report.subject import Changed, Prepare, Subject, dense, described, in_half, part, some, watch

# ---- Landscape, covariate shift, gradients and moments ---------------------------------------------------------------


@dataclass(frozen=True)
class LeftOut:
    """A layer that an instrument leaves out, and why."""

    instrument: str
    layer: str
    why: str


Gradient = Mapping[str, Tensor]
_UNSEEN = "is not seen to run by itself"


def _stepped(subject: Subject, gradient: Gradient, a: float) -> dict[str, Tensor]:
    return {n: torch.add(subject.parameters[n], g, alpha=-a) for n, g in gradient.items()}


def shift(
    subject: Subject, anatomy: Anatomy, gradient: Gradient, unused: Sequence[str], learning_rate: float
) -> tuple[CovariateShift, list[LeftOut]]:
    """As `bnbook.probes.covariate_shift.measure`, over the layers whose weights have a gradient.

    The cosine of a layer whose gradient is zero here or there is not defined: nan.
    """
    weights = {name for each in anatomy.layers for name in each.parameters}
    layers = layers_of({n: p for n, p in subject.parameters.items() if n in weights})
    if not layers:
        raise BnbookError("the network has no layer with trained weights")
    kept = {layer: own for layer, own in layers.items() if not set(own) <= {*unused}}
    if not kept:
        raise BnbookError("no layer's weights reach the loss")
    out = [LeftOut("covariate shift", each, "does not reach the loss") for each in layers if each not in kept]
    return changes(subject, kept, gradient, learning_rate), out


def by_layer(subject: Subject, anatomy: Anatomy, start_loss: Tensor) -> tuple[LayerGradients, list[LeftOut]]:
    """As `bnbook.probes.layer_gradients.measure`, in the mode that the network is in, for every layer with
    weights that runs once and hands on one tensor; a parametrized weight is taken as the layer uses it."""
    gave: dict[str, list[Tensor]] = {}
    used: dict[str, tuple[Tensor, list[Tensor]]] = {}
    runs: dict[str, int] = {}

    def before(name: str, module: nn.Module, *_: object) -> None:
        runs[name] = runs.get(name, 0) + 1
        weight = getattr(module, "weight", None)
        if runs[name] == 1 and isinstance(weight, Tensor) and weight.requires_grad and not weight.is_leaf:
            used[name] = weight.detach(), []
            weight.register_hook(used[name][1].append)

    def behind(name: str, _module: nn.Module, _got: object, output: object) -> None:
        if isinstance(output, Tensor) and output.requires_grad and runs[name] == 1:
            gave[name] = []  # a tensor's hook sees its gradient also where it is changed in place later
            output.register_hook(gave[name].append)

    watched = {"before": before, "behind": behind, "names": [each.name for each in anatomy.layers]}
    with subject.twin(**watched) as twin, nn.utils.parametrize.cached():
        value = twin.value()
        forward = dict(runs)  # without those in which checkpoints compute them once more
        value.backward()
        named = dict(nn.Module.named_parameters(twin.network))  # all, whatever the network says of itself
    same = near(start_loss, value.detach().double())
    rows, out, taken = [], [], {}
    for layer in anatomy.layers:
        name, own, ran = layer.name, [named[each] for each in layer.parameters], forward.get(layer.name, 0)
        pairs = [(p.detach(), dense(p.grad)) for p in own if p.grad is not None]
        if name in used:
            weight, caught = used[name]
            pairs = [(weight, caught[0])] if caught and same else []
        first = taken.setdefault(layer.parameters[0], name)
        reasons = {
            "is frozen": not any(p.requires_grad for p in own),
            f"shares its weights with {first}": first != name,
            _UNSEEN: not ran,
            f"runs {ran} times in one pass": ran > 1,
            "hands on no single tensor": name not in gave,
            "does not reach the loss": not gave.get(name),
            "computes its weights anew in the middle of a pass": not pairs,
        }
        if why := next((why for why, stands in reasons.items() if stands), ""):
            out.append(LeftOut("gradients by layer", name or layer.kind, why))
            continue
        weights, slopes = ([each.double() for each in side] for side in zip(*pairs, strict=True))
        inner = sum((w * g).sum() for w, g in zip(weights, slopes, strict=True))
        rows.append((name, total_norm(slopes), total_norm([gave[name][0]]), total_norm(weights), inner))
    if not rows:
        reasons = ", ".join(f"{each.layer} {each.why}" for each in out[:3])
        raise BnbookError(f"no layer with weights can be watched{f': {reasons}' if reasons else ''}")
    names, *numbers = zip(*rows, strict=True)
    return LayerGradients(names, *(np.array([float(x.detach()) for x in each]) for each in numbers)), out


@dataclass(frozen=True)
class Batches:
    """Loss and gradient at θ over K batches: how far one batch's are those of all."""

    losses: np.ndarray  # (K,)
    gradient: float  # ‖G‖, estimated: ‖ḡ‖² - s²/K, ḡ the batches' mean gradient; nan where s²/K is larger
    noise: float  # s, s² = Σ_k ‖g_k - ḡ‖² / (K - 1): the trace of the covariance of a batch's gradient
    examples: float  # B s²/‖G‖², the simple noise scale, for examples that are drawn apart

    @property
    def spread(self) -> float:
        """Standard deviation of the losses."""
        return float(self.losses.std(ddof=1))


def over_batches(subject: Subject, batches: Sequence[Batch]) -> Batches:
    """Each batch's loss and gradient at the same θ, in the mode that the network is in. Source: McCandlish et al.
    2018 (arXiv 1812.06162), B_simple = tr(Σ)/‖G‖², whose Σ is that of one example: B times that of a batch of B."""
    losses, mean, squares = [], [], torch.zeros((), dtype=torch.float64)
    for k, batch in enumerate(batches, 1):
        loss, g = subject.but(batch=batch)({}, list(subject.parameters))
        g = [each.double() for each in g]
        mean = mean or [torch.zeros_like(each) for each in g]
        away = [one - m for one, m in zip(g, mean, strict=True)]
        mean = [m + a / k for m, a in zip(mean, away, strict=True)]
        squares = squares + sum((a * (one - m)).sum() for a, one, m in zip(away, g, mean, strict=True)).cpu()
        losses.append(float(loss))
    noise = float(squares) / (len(losses) - 1)
    size = float(total_norm(mean)) ** 2 - noise / len(losses)
    known = size if size > 0 else math.nan
    scale = np.mean([len(inputs) for inputs, _ in batches]) * noise / known
    return Batches(np.array(losses), math.sqrt(known), math.sqrt(noise), float(scale))


#: Before a normalizer; behind it; what a layer with weights receives.
PLACES = ("before normalization", "behind normalization", "input of a weight layer")


@dataclass(frozen=True)
class Moments:
    """One entry a place: K places, in forward order; averages over the place's units, float64."""

    places: tuple[str, ...]  # (K,), one of PLACES
    names: tuple[str, ...]  # (K,), the layer's name
    mean: np.ndarray  # (K,)  mean over units of |mean_j|
    variance: np.ndarray  # (K,)  mean over units of variance_j
    mean_change: np.ndarray  # (K,)  |m' - m| / sqrt((v + v')/2 + (m' - m)²/4), in [0, 2]
    variance_change: np.ndarray  # (K,)  2 |v' - v| / (v + v'), in [0, 2]

    @property
    def not_finite(self) -> list[str]:
        finite = np.isfinite(self.mean_change + self.variance_change)
        return [name for name, known in zip(self.names, finite, strict=True) if not known]


def moments(
    subject: Subject, anatomy: Anatomy, gradient: Gradient, learning_rate: float
) -> tuple[Moments, list[LeftOut]]:
    """Moments over the batch (and positions) of every unit before and after one step θ - η ∇L(θ) on it.

    A layer that runs several times in one pass is taken at its first. Source: the quantities of Santurkar et
    al. 2018, section 2, v1 Figure 8.
    """
    before, after = (_look(subject, anatomy, at) for at in ({}, _stepped(subject, gradient, learning_rate)))
    rows = []
    for place, own in before.items():
        if place in after and after[place].shape == own.shape:
            both = np.stack([own, after[place]], 1)  # (2, 2, units): moment, before and after
            (mean, spread), (size, variance) = moment_change(*both), np.abs(own).mean(1)
            rows.append((*place, size, variance, mean[0], spread[0]))
    places, layers, *numbers = zip(*rows) if rows else ((),) * 6
    why = {True: "receives no features that can be told apart", False: _UNSEEN}
    seen = {layer for _, layer in before}
    unseen = [each.name for each in (*anatomy.layers, *anatomy.normalizers) if each.name not in seen]
    out = [LeftOut("moments", name, why[name in anatomy.ran]) for name in unseen]
    return Moments(places, layers, *(np.array(each, dtype=float) for each in numbers)), out


def _look(subject: Subject, anatomy: Anatomy, changed: Changed) -> dict[tuple[str, str], np.ndarray]:
    """(place, layer) -> mean and variance of each unit, (2, units), at other parameters than the network's."""
    found: dict[tuple[str, str], np.ndarray] = {}
    normal = {each.name: each.axis for each in anatomy.normalizers}
    fed = {each.name: each.axis for each in anatomy.layers if each.axis is not None}

    def keep(place: str, name: str, axes: Mapping[str, int], values: object) -> None:
        right = isinstance(values, Tensor) and values.dim() >= 2 and values.is_floating_point()
        if right and name in axes:
            units = units_along(axes[name], values)
            own = torch.stack([units.mean(1), units.var(1, correction=0)])
            found.setdefault((place, name), own.cpu().numpy())

    def before(name: str, _module: nn.Module, got: tuple, more: dict) -> None:
        keep(PLACES[0], name, normal, first_tensor(got, more))
        keep(PLACES[2], name, fed, first_tensor(got, more))

    behind = lambda name, _module, _got, gave: keep(PLACES[1], name, normal, gave)
    subject.run(before=before, behind=behind, names={**normal, **fed}, changed=changed)
    return found


# ---- λ_max of the Fisher matrix, with the statistics of the batch, with these held constant, and with running averages ---


NAMES = ("batch", "constant", "population")
DIGITS, TOLERANCE, FLOOR, FEWEST, STEPS = 3, 1e-3, 1e-6, 12, 300  # of λ_max itself, by `lanczos`


@dataclass(frozen=True)
class Eigenvalues:
    """λ_max of the Fisher matrix (1/m) Σ_x Σ_o ∇f_o(x) ∇f_o(x)^T, all outputs and parameters.

    It is the curvature of the squared error ½‖f‖² on average over the examples, whatever the loss is.
    """

    batch: float | None  # gradients flow through the batch's statistics
    constant: float | None  # the same statistics, held constant
    population: float | None  # running averages, as in inference


def eigenvalues(
    subject: Subject,
    anatomy: Anatomy,
    met: tuple[str, ...] | None,
    attempt: Callable[[str, Callable[[], float]], float | None],
    say: Callable[[str], None],
) -> Eigenvalues:
    """The three; where no examples meet they are one quantity, taken once. met: where they do as the network is."""
    if in_half(subject.network):
        subject = subject.but(double=True)
        try:
            subject.run()
        except Exception:  # somebody else's code
            say("λ_max not measured: it needs derivatives in 64 bits, in which this network does not run")
            return Eigenvalues(None, None, None)
        say(
            "λ_max is that of the same weights in 64 bits: derivatives of derivatives are lost in half precision"
        )
    state = Statistics(subject, anatomy)

    def taken(name: str, prepare: Prepare | None, check: Callable[[], None]) -> float | None:
        return attempt(f"λ_max, statistics: {name}", lambda: (check(), largest(subject, prepare))[1])

    if met == () and state.meets_nowhere():
        say("no layer in which the examples of a batch meet: the three λ_max are the same quantity")
        return Eigenvalues(*[taken(" and ".join(NAMES), None, lambda: None)] * 3)
    return Eigenvalues(
        taken("batch", state.batch, lambda: state.check_mode(state.batch)),
        taken("constant", state.constant, state.hold),
        taken("population", state.population, state.check_population),
    )


class Statistics:
    """The states of a copy in which λ_max is taken: only layers in which examples meet change their mode."""

    def __init__(self, subject: Subject, anatomy: Anatomy) -> None:
        self.subject, self.anatomy, self.names = subject, anatomy, anatomy.meeting
        torchs = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d, nn.SyncBatchNorm)
        #: whether all else than torch's batch norms is known to mix no two examples
        plain = not anatomy.elsewhere and all(type(part(subject.network, n)) in torchs for n in self.names)
        self.every = not plain
        self.held: dict[str, list[tuple[Tensor, Tensor]]] = {}  # mean and variance of each run
        self.linear: dict[str, list[tuple[Tensor, Tensor]]] = {}  # x₀ and D of each run
        self.modes: dict[Prepare, list[str]] = {}  # layers that do not run in the mode of a state

    def batch(self, network: nn.Module, training: bool = True) -> None:
        for name in self.names:
            put(part(network, name), training)

    def population(self, network: nn.Module) -> None:
        self.batch(network, False)

    def constant(self, network: nn.Module) -> None:
        """Each layer infers with the statistics of this batch in the place of its running averages; one that cannot hands on
        f(x₀) + D (x − x₀), x₀ what it received and D as `_slope` took it; one not seen to run stays as it is, so that examples
        that meet in it are seen to."""
        for name in self.names:
            module = part(network, name)
            if self.held.get(name):
                _inferring(module, self.held[name])
                continue
            put(module, True)
            if name in self.linear:
                _linear(module, self.linear[name])

    def check_mode(self, prepare: Prepare) -> None:
        """BnbookError where a layer runs in another mode than it was put into; it is tried once."""
        if prepare not in self.modes:
            wanted: dict[str, bool] = {}
            runs: dict[str, bool] = {}

            def told(network: nn.Module) -> None:
                prepare(network)
                wanted.update({name: part(network, name).training for name in self.names})

            look = lambda name, m, *_: runs.update({name: m.training})
            self.subject.run(told, before=look, names=self.names)
            self.modes[prepare] = [n for n, training in runs.items() if training != wanted[n]]
        for name in self.modes[prepare]:
            mode = "inference" if prepare == self.batch else "training"
            raise BnbookError(f"the network's own code puts {self.said(name)} into {mode} mode")

    def meets_nowhere(self) -> bool:
        """Whether no layer is seen to run in which examples could meet, and none do in training mode."""
        with suppress(Exception):  # in a mode that the network is not in somebody else's code may fail
            ran = self.anatomy.ran & {*self.names}
            return not self.names or (not ran and meeting(self.subject, self.batch) == ())
        return False

    def check_population(self) -> None:
        """BnbookError where there are no running averages to infer with."""
        self.check_mode(self.population)
        for name, kept in averages(self.subject, self.names).items():  # without any it is tried
            bad = [k for k, b in kept.items() if not torch.isfinite(b).all()]
            bad += [k for k, b in kept.items() if k in ("running_var", "moving_var") and bool((b < 0).any())]
            if bad:
                raise BnbookError(f"{bad[0]} of {some([name])} is below zero or not finite")
            if as_made(kept):
                raise BnbookError(
                    f"no population statistics yet: the running averages of {some([name])} are those that it was made "
                    "with; run some batches in training mode first"
                )
        if still := meeting(self.subject, self.population, every=self.every):
            only = "infers with its averages only where gradients are off, and λ_max needs them"
            none = "keeps no running averages that it infers with: the examples of a batch meet in it in inference, too"
            why = only if meeting(self.subject, self.population, grad=False) == () else none
            raise BnbookError(f"{self.said(still[0])} {why}")

    def hold(self) -> None:
        """Take the batch's statistics down; BnbookError where a layer with them held constant gives anything
        but its own output, or examples still meet."""
        self.check_mode(self.batch)
        modules = {name: part(self.subject.network, name) for name in self.names}
        for name in [n for n, module in modules.items() if isinstance(module, torch.jit.ScriptModule)]:
            raise BnbookError(f"{self.said(name)} is inside a scripted block, in which nothing can be held")
        wanted = {"running_mean", "running_var"}  # under torch's names
        self.held = {n: [] for n, m in modules.items() if wanted <= {*m._buffers, *vars(m)}}
        self.linear = {}

        def take(name: str, _module: nn.Module, got: tuple, more: dict) -> None:
            x = first_tensor(got, more).detach()
            x = x.float() if x.dtype in (torch.float16, torch.bfloat16) else x  # under autocast
            axes = [axis for axis in range(x.dim()) if axis != 1]
            self.held[name].append((x.mean(axes), x.var(axes, correction=0)))

        def outputs(prepare: Prepare, before: Callable | None) -> dict[str, list[Tensor]]:
            """Of each run of these layers: mean, length and largest value of each unit."""
            found: dict[str, list[Tensor]] = {}

            def behind(name: str, _module: nn.Module, _got: tuple, gave: Tensor) -> None:
                flat = units_along(1, gave)
                both = flat.mean(1), flat.square().mean(1).sqrt(), flat.amax(1)
                found.setdefault(name, []).append(torch.stack(both))

            with suppress(Exception):  # somebody else's code does not infer with held statistics
                self.subject.run(prepare, before=before, behind=behind, names=list(self.held))
                return found
            return {}

        own, again = outputs(self.batch, take), outputs(self.constant, None)
        for name in list(self.held):
            one, other = own.get(name, []), again.get(name, [])
            gamma = getattr(modules[name], "weight", None)  # the scale of normalized values
            scale = float(gamma.detach().abs().max()) if isinstance(gamma, Tensor) else 1.0
            near = {"rtol": 1e-3, "atol": 1e-3 * max([scale, *(float(a.abs().max()) for a in one)])}
            if len(one) != len(other) or not all(torch.allclose(a, b, **near) for a, b in zip(one, other)):
                del self.held[name]
        self._take_slopes([name for name in self.names if name not in self.held])
        if still := meeting(self.subject, self.constant, every=self.every):
            meet = f"the examples of a batch also meet in {self.said(still[0])}"
            raise BnbookError(f"{meet}, whose statistics cannot be held")

    def _take_slopes(self, names: Sequence[str]) -> None:
        """x₀ and D of each run of these layers, in 64 bits where the network runs in them."""
        axes = {each.name: each.axis for each in self.anatomy.normalizers}

        def take(name: str, module: nn.Module, got: tuple, more: dict) -> None:
            run, x = (None, None) if blocks(module) else alone(module, got, more)
            slope = None if run is None else _slope(run, x, axes.get(name, 1))
            if slope is None:
                raise BnbookError(
                    f"{self.said(name)} does more than normalize by the mean and variance of the batch: what it "
                    "does to an entry with these held constant cannot be told"
                )
            self.linear.setdefault(name, []).append((x, slope))

        for subject in (self.subject.but(double=True), self.subject) if names else ():
            self.linear = {}
            try:
                subject.run(self.batch, before=take, names=names)
                return
            except RuntimeError:
                if subject is self.subject:
                    raise

    def said(self, name: str) -> str:
        return f"{name} ({kind(part(self.subject.network, name))})" if name else "the network's own forward"


def _in_turn(kept: Sequence[tuple[Tensor, Tensor]]) -> Callable[[], tuple[Tensor, Tensor]]:
    """What was kept of each run, one after the other; of a single run for each: recomputed, it runs once more."""
    order = iter(kept)
    return lambda: kept[0] if len(kept) == 1 else next(order)


def _inferring(module: nn.Module, kept: Sequence[tuple[Tensor, Tensor]]) -> None:
    """It infers with this mean and variance as its running averages."""
    take = _in_turn(kept)

    def give(module: nn.Module, got: tuple, more: dict) -> None:
        wide = first_tensor(got, more).dtype == torch.float64
        as_run = torch.Tensor.double if wide else torch.clone  # differences are taken in 64 bits
        module.running_mean, module.running_var = map(as_run, take())

    module.training = False
    list(watch(module, give, None))


def _slope(run: Callable[[Tensor], Tensor], x: Tensor, axis: int) -> Tensor | None:
    """D (as x), of y = f(x; mean and variance of each unit): by central differences along a direction that moves neither to
    first order; None where a second direction gives another one, or there are too few values to choose one."""
    h, share = (1e-5, 1e-3) if x.dtype == torch.float64 else (1e-2, 3e-2)
    units = x.movedim(axis, 0).flatten(1)
    if units.shape[1] < 4:
        return None
    scale = units.std(1, correction=0).clamp_min(1e-12)[:, None]
    ones = torch.ones_like(units) / units.shape[1] ** 0.5
    own = nn.functional.normalize(units - units.mean(1, keepdim=True), dim=1)
    draw, found = torch.Generator().manual_seed(0), []
    for _ in range(2):
        way = torch.randn(units.shape, generator=draw, dtype=torch.float64).to(units)
        for other in (ones, own) * 2:  # twice is enough
            way = way - (way * other).sum(1, keepdim=True) * other
        way = (way * scale).view(x.movedim(axis, 0).shape).movedim(0, axis)
        ahead, behind = run(x + h * way), run(x - h * way)
        if not isinstance(ahead, Tensor) or ahead.shape != x.shape:
            return None
        found.append((way, (ahead - behind).detach() / (2 * h)))
    (way, moved), (second, again) = found
    size = (second.abs() > 0.1 * second.abs().amax()) & (way.abs() < 0.1 * way.abs().amax())
    slope = torch.where(size, again / second, moved / torch.where(way == 0, 1.0, way))
    fits = (again - slope * second).abs() <= share * again.abs().amax().clamp_min(1e-12)
    return slope if bool(fits.double().mean() > 0.999) else None


def _linear(module: nn.Module, kept: Sequence[tuple[Tensor, Tensor]]) -> None:
    take, inside = _in_turn(kept), []

    def enter(_module: nn.Module, got: tuple, more: dict) -> tuple[tuple, dict]:
        x = first_tensor(got, more)
        at, slope = (each.to(x) for each in take())
        inside.append((x, at, slope))
        return tuple(at if v is x else v for v in got), {k: at if v is x else v for k, v in more.items()}

    def leave(_module: nn.Module, _got: tuple, gave: Tensor) -> Tensor:
        x, at, slope = inside.pop()
        return gave + slope * (x - at)

    module.register_forward_pre_hook(enter, with_kwargs=True)
    module.register_forward_hook(leave)


def largest(subject: Subject, prepare: Prepare | None) -> float:
    """λ_max by Lanczos iteration on A = (1/m) J J^T, as `bnbook.probes.fisher.largest_eigenvalue`.

    J^T q is taken on one graph, J u in one of three ways: where torch has no such derivatives, or such that are not J's
    (⟨q, J u⟩ = ‖u‖² for u = J^T q is tried), the last is a central difference of the outputs in 64 bits.
    """
    ways = _on_a_graph, partial(_on_a_graph, dual=False), _by_differences
    for way in ways[2:] if subject.by_backward else ways:
        try:
            return lanczos(*way(subject, prepare))
        except _NotTheJacobian:
            continue
        except (RuntimeError, NotImplementedError) as error:
            if way is _by_differences:
                none = "this network has no derivatives that can be taken"
                raise BnbookError(f"{none} ({one_line(error)})") from error
    raise BnbookError("the derivatives of the outputs contradict each other")


def lanczos(product: Callable[[Tensor], Tensor], start: Tensor) -> float:
    """Largest eigenvalue θ of a symmetric operator, until its first DIGITS digits stand.

    θ of the k-th step is too small by at most e = ρ² / (θ - θ₂ - ρ₂), ρ = ‖A v - θ v‖, where no other eigenvalue lies
    above the second θ₂ ± ρ₂ (Parlett, The Symmetric Eigenvalue Problem, section 11.7: ρ² over the gap). It ends where
    θ and θ + e are written alike and e ≤ TOLERANCE · θ; as a θ may stand still on its way, ρ ≤ 2 TOLERANCE · θ and
    FEWEST steps are asked for, too. `bnbook.probes.krylov.lanczos` stops by ρ alone.
    """
    for step, found in enumerate(ritz(product, start, STEPS), 1):
        value = float(found.values[-1])
        if not math.isfinite(value):
            raise BnbookError("λ_max is not a finite number: the derivatives of the outputs are not")
        if found.left == 0 or step == len(start):
            return value
        if step < FEWEST:
            continue
        second, (near, rest) = float(found.values[-2]), found.away[-2:]
        apart = value - second - near
        wrong = min(rest, rest**2 / apart) if apart > 0 else rest
        stands = written(value) == written(value + wrong) or wrong <= FLOOR * value
        if stands and max(wrong, rest / 2) <= TOLERANCE * value:
            return value
    raise BnbookError(f"λ_max is not found to {DIGITS} digits within {STEPS} steps")


def written(value: float) -> str:
    """λ_max in the digits that stand."""
    return f"{value:.{DIGITS}g}"


class _NotTheJacobian(Exception):
    pass


def _on_a_graph(subject: Subject, prepare: Prepare | None, dual: bool = True) -> tuple[Callable, Tensor]:
    """J u with dual numbers, at the cost of three passes forward, or as the derivative by w of ⟨J^T w, u⟩, at twice that."""
    with _prepared(subject, prepare) as (twin, leaves):
        outputs = _rows(twin.outputs(), len(twin.inputs))
        weight = torch.zeros_like(outputs, requires_grad=True)

        def grad(by: Tensor, **more: bool) -> list[Tensor]:  # given as `by`, it would load SymPy, for seconds
            value = (outputs * by).sum()
            found = torch.autograd.grad(value, leaves, allow_unused=True, retain_graph=True, **more)
            return [
                torch.zeros_like(p) if g is None else dense(g) for p, g in zip(leaves, found, strict=True)
            ]

        gradients = [] if dual else grad(weight, create_graph=True)
    live, sizes = [k for k, g in enumerate(gradients) if g.requires_grad], []

    def moved(u: list[Tensor]) -> Tensor | None:
        if not dual:
            along = sum((gradients[k] * u[k]).sum() for k in live)
            return torch.autograd.grad(along, weight, retain_graph=True)[0]
        with _prepared(subject, prepare) as (twin, own), forward_ad.dual_level(), torch.no_grad():
            for p, each in zip(own, u, strict=True):
                p.copy_(forward_ad.make_dual(p.detach(), each))
            return forward_ad.unpack_dual(_rows(twin.outputs(), len(twin.inputs))).tangent

    def product(q: Tensor) -> Tensor:
        u = grad(q.view_as(outputs))
        along = moved(u)
        along = torch.zeros_like(q) if along is None else along.flatten()
        if dual or not sizes:  # ⟨q, J J^T q⟩ = ‖J^T q‖², not so where a layer infers while gradients are off
            one, other = float(q.double() @ along.double()), sum(float(g.norm()) ** 2 for g in u)
            sizes.append(other)
            if abs(one - other) > (1e-3 if dual else 1e-2) * max(sizes) or not other < math.inf:
                raise _NotTheJacobian
        return along.to(q) / len(outputs)

    return product, torch.ones(outputs.numel(), dtype=outputs.dtype, device=outputs.device)


def _by_differences(subject: Subject, prepare: Prepare | None) -> tuple[Callable, Tensor]:
    double = subject.but(double=True)
    at = {n: p.detach().double() for n, p in subject.network.named_parameters() if p.is_floating_point()}

    def outputs(changed: Changed) -> Tensor:
        with _prepared(double, prepare, changed) as (twin, _):
            return _rows(twin.outputs(), len(twin.inputs)).detach()

    start, size = outputs(at), float(total_norm(list(at.values())))

    def product(q: Tensor) -> Tensor:
        with _prepared(double, prepare, at) as (twin, leaves):
            value = (_rows(twin.outputs(), len(start)) * q.view_as(start)).sum()
            found = double.differentiate(value, leaves)
        u = {n: torch.zeros_like(p) if g is None else g for (n, p), g in zip(at.items(), found, strict=True)}
        length = float(total_norm(list(u.values())))
        if not 0 < length < math.inf:
            return torch.zeros_like(q) if length == 0 else torch.full_like(q, torch.nan)
        h = 1e-6 * max(size, 1e-3) / length
        ahead, behind = (outputs((n, p + sign * h * u[n]) for n, p in at.items()) for sign in (1, -1))
        return ((ahead - behind) / (2 * h)).flatten() / len(start)

    return product, torch.ones(start.numel(), dtype=torch.float64, device=start.device)


@contextmanager
def _prepared(subject: Subject, prepare: Prepare | None, changed: Changed = ()) -> Iterator[tuple]:
    """A copy whose parameters all take part, in the state that is asked for; attention in the form that torch
    can differentiate twice."""
    from torch.nn.attention import SDPBackend, sdpa_kernel

    with (
        subject.twin(prepare, changed=changed) as twin,
        sdpa_kernel(SDPBackend.MATH),
        torch.backends.cudnn.flags(enabled=False),
        warnings.catch_warnings(action="ignore"),
    ):
        yield twin, [p.requires_grad_() for p in twin.network.parameters() if p.is_floating_point()]


def _rows(outputs: object, examples: int) -> Tensor:
    """(B, ...) -> (B, outputs); of several views or positions of an example as rows, all are its outputs."""
    said = f"the network gives {described(outputs)}"
    if not isinstance(outputs, Tensor) or not outputs.dim() or not outputs.is_floating_point():
        raise BnbookError(f"{said}; expected one tensor (B, ...) of real numbers; choose it with output=")
    if len(outputs) % examples or not len(outputs):
        raise BnbookError(f"{said} for {examples} examples; expected (B, ...)")
    return outputs.reshape(examples, -1)
