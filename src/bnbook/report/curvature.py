"""λ_max of the Fisher matrix, with the statistics of the batch, with these held constant, and with running averages."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor, nn

from bnbook.errors import BnbookError
from bnbook.probes.functional import total_norm
from bnbook.report.experiments import Prepare, as_made, averages, meeting, watch
from bnbook.report.finding import Anatomy
from bnbook.report.subject import Subject, dense, described, part

NAMES = ("batch", "constant", "population")
TOLERANCE, STEPS = 1e-4, 300  # of λ_max itself, by `lanczos`


@dataclass(frozen=True)
class Eigenvalues:
    """λ_max of the Fisher matrix (1/m) Σ_x Σ_o ∇f_o(x) ∇f_o(x)^T, all outputs and parameters.

    It is the curvature of the squared error ½‖f‖² on average over the examples, whatever the loss is.
    """

    batch: float | None  # gradients flow through the batch's statistics
    constant: float | None  # the same statistics, held constant
    population: float | None  # running averages, as in inference


class Statistics:
    """The states of a copy in which λ_max is taken: only layers in which examples meet change their mode."""

    def __init__(self, subject: Subject, anatomy: Anatomy) -> None:
        self.subject, self.names = subject, anatomy.meeting
        self.held: dict[str, list[tuple[Tensor, Tensor]]] = {}

    def batch(self, network: nn.Module) -> None:
        for name in self.names:
            _put(part(network, name), True)

    def population(self, network: nn.Module) -> None:
        for name in self.names:
            _put(part(network, name), False)

    def constant(self, network: nn.Module) -> None:
        """Each layer infers with the statistics of this batch in the place of its running averages."""
        for name in self.names:
            module, kept = part(network, name), self.held[name]
            if not kept:  # not seen to run: it stays as it is, so that examples that meet in it are seen to
                _put(module, True)
                continue
            module.training, held = False, iter(kept)

            def give(module: nn.Module, _got: tuple, _more: dict, kept=kept, held=held) -> None:
                mean, variance = kept[0] if len(kept) == 1 else next(held)  # recomputed, it runs once more
                module.running_mean, module.running_var = mean.clone(), variance.clone()

            watch(module, give, None)

    def modes(self, prepare: Prepare) -> dict[str, tuple[bool, bool]]:
        """Layers that are seen to run -> whether in training mode, and whether they were put into it."""
        kept: dict[str, bool] = {}
        with self.subject.twin() as twin:
            prepare(twin.network)
            wanted = {name: part(twin.network, name).training for name in self.names}
            for name in self.names:
                watch(part(twin.network, name), lambda m, *_, n=name: kept.update({n: m.training}), None)
            twin.outputs()
        return {name: (mode, wanted[name]) for name, mode in kept.items()}

    def check_mode(self, prepare: Prepare) -> None:
        """BnbookError where a layer runs in another mode than it was put into."""
        for name, (training, wanted) in self.modes(prepare).items():
            if training != wanted:
                mode = "training" if training else "inference"
                raise BnbookError(
                    f"the network's own code puts {_said(self.subject, [name])} into {mode} mode"
                )

    def meets_nowhere(self) -> bool:
        """Whether no layer is seen to run in which examples could meet, and none do in training mode."""
        try:
            return not self.names or (not self.modes(self.batch) and meeting(self.subject, self.batch) == ())
        except Exception:  # in a mode that the network is not in somebody else's code may fail
            return False

    def check_population(self) -> list[str]:
        """BnbookError where there are no running averages to infer with; warnings of what they hold."""
        self.check_mode(self.population)
        said = []
        for name, kept in averages(self.subject, self.names).items():
            module = part(self.subject.network, name)
            if not kept:
                continue  # whether it infers without the batch is tried
            bad = [k for k, b in kept.items() if not torch.isfinite(b).all()]
            named = {k: b for k, b in kept.items() if k.startswith("running_") and "mean" not in k}
            bad += [k for k, b in named.items() if bool((b < 0).any())]
            if bad:
                raise BnbookError(f"{bad[0]} of {name} is below zero or not finite")
            if as_made(kept):
                raise BnbookError(
                    f"no population statistics yet: the running averages of {name} are those that it was made "
                    "with; run some batches in training mode first"
                )
            momentum, seen = getattr(module, "momentum", None), getattr(module, "num_batches_tracked", None)
            if momentum and seen is not None and int(seen) and (1 - momentum) ** int(seen) > 0.05:
                share = (1 - momentum) ** int(seen)
                said.append(
                    f"{name}: {share:.0%} of the running averages is still what they were made with "
                    f"({int(seen)} batches at momentum {momentum:g}): λ_max with running averages is not yet that of inference"
                )
        still = meeting(self.subject, self.population)
        if still:
            raise BnbookError(
                f"{_said(self.subject, still)} keeps no running averages that it infers with: the examples of a "
                "batch meet in it in inference, too"
            )
        return said[:1] + ([f"so do {len(said) - 1} further layers"] if len(said) > 1 else [])

    def hold(self) -> None:
        """Take the batch's statistics down; BnbookError where a layer with them held constant gives anything
        but its own output, or examples still meet."""
        self.check_mode(self.batch)
        own, again = {}, {}
        with self.subject.twin() as twin:
            self.batch(twin.network)
            for name in self.names:
                module = part(twin.network, name)
                if isinstance(module, torch.jit.ScriptModule):
                    raise BnbookError(
                        f"{_said(self.subject, [name])} is inside a scripted block, in which nothing can be held"
                    )
                if not {"running_mean", "running_var"} <= {*module._buffers, *vars(module)}:
                    raise BnbookError(
                        f"{_said(self.subject, [name])} has no mean and variance that can be held constant"
                    )
                self.held[name] = []
                watch(module, partial(self._take, name), partial(_print, own, name))
            twin.outputs()
        with self.subject.twin() as twin:
            self.constant(twin.network)
            for name in self.names:
                watch(part(twin.network, name), None, partial(_print, again, name))
            try:
                twin.outputs()
            except Exception as error:  # somebody else's code
                raise BnbookError("its layers do not infer with held statistics") from error
        for name in self.names:
            pairs = zip(own.get(name, []), again.get(name, []), strict=True)
            gamma = getattr(part(self.subject.network, name), "weight", None)
            scale = (
                float(gamma.detach().abs().max()) if isinstance(gamma, Tensor) else 1.0
            )  # of normalized values
            near = 1e-3 * max([scale, *(float(a.abs().max()) for a in own.get(name, []))])
            if not all(torch.allclose(a, b, rtol=1e-3, atol=near) for a, b in pairs):
                raise BnbookError(
                    f"{_said(self.subject, [name])} does more than normalize by the mean and variance of the batch: with "
                    "these held constant it gives another output"
                )
        still = meeting(self.subject, self.constant)
        if still:
            raise BnbookError(
                f"the examples of a batch also meet in {_said(self.subject, still)}, whose statistics cannot be held"
            )

    def _take(self, name: str, _module: nn.Module, got: tuple, more: dict) -> None:
        x = next(v for v in [*got, *more.values()] if isinstance(v, Tensor)).detach()
        x = x.float() if x.dtype in (torch.float16, torch.bfloat16) else x  # under autocast
        axes = [axis for axis in range(x.dim()) if axis != 1]
        self.held[name].append((x.mean(axes), x.var(axes, correction=0)))


def _put(module: nn.Module, training: bool) -> None:
    """Into a mode; of a block its own code alone, not the layers inside."""
    if list(module.children()):
        module.training = training
    else:
        module.train(training)


def _print(found: dict[str, list[Tensor]], name: str, _module: nn.Module, _got: tuple, gave: Tensor) -> None:
    flat = gave.detach().double().transpose(0, 1).flatten(1)
    found.setdefault(name, []).append(torch.stack([flat.mean(1), flat.square().mean(1).sqrt(), flat.amax(1)]))


def _said(subject: Subject, names: list[str] | tuple[str, ...]) -> str:
    from bnbook.report.finding import kind

    name = names[0]
    return f"{name} ({kind(part(subject.network, name))})" if name else "the network's own forward"


def measure(
    subject: Subject,
    anatomy: Anatomy,
    met: tuple[str, ...] | None,
    attempt: Callable[[str, Callable[[], float]], float | None],
    say: Callable[[str], None],
) -> Eigenvalues:
    """The three; where no examples meet they are one quantity, taken once. met: where they do as the network is."""
    if any(p.dtype in (torch.float16, torch.bfloat16) for p in subject.network.parameters()):
        subject = subject.in_double()
        try:
            with subject.twin() as twin:
                twin.outputs()
        except Exception:  # somebody else's code
            say("λ_max not measured: it needs derivatives in 64 bits, in which this network does not run")
            return Eigenvalues(None, None, None)
        say(
            "λ_max is that of the same weights in 64 bits: derivatives of derivatives are lost in half precision"
        )
    state = Statistics(subject, anatomy)

    def taken(name: str, prepare: Prepare, check: Callable[[], list[str] | None]) -> float | None:
        def one() -> float:
            for line in check() or []:
                say(line)
            return largest(subject, prepare)

        return attempt(f"λ_max, statistics: {name}", one)

    if met == () and state.meets_nowhere():
        say("no layer in which the examples of a batch meet: the three λ_max are the same quantity")
        return Eigenvalues(*[taken(" and ".join(NAMES), lambda _: None, lambda: None)] * 3)
    return Eigenvalues(
        taken("batch", state.batch, lambda: state.check_mode(state.batch)),
        taken("constant", state.constant, state.hold),
        taken("population", state.population, state.check_population),
    )


def largest(subject: Subject, prepare: Prepare) -> float:
    """λ_max by Lanczos iteration on A = (1/m) J J^T, as `bnbook.probes.fisher.largest_eigenvalue`.

    J u is the derivative by w of ⟨J^T w, u⟩; where torch has no second derivative, or one that is not J's
    (⟨q, J u⟩ = ⟨J^T q, u⟩ is tried), it is a central difference of the outputs in 64 bits.
    """
    for way in (_by_differences,) if subject.by_backward else (_on_a_graph, _by_differences):
        try:
            with way(subject, prepare) as (product, start):
                value = lanczos(product, start)
        except _NotTheJacobian:
            continue
        except (RuntimeError, NotImplementedError) as error:
            if way is _by_differences:
                raise BnbookError(
                    f"this network has no derivatives that can be taken ({_first_line(error)})"
                ) from error
            continue
        if not value < float("inf"):
            raise BnbookError("λ_max is not a finite number: the derivatives of the outputs are not")
        return value
    raise BnbookError("the derivatives of the outputs contradict each other")


class _NotTheJacobian(Exception):
    pass


def lanczos(product: Callable[[Tensor], Tensor], start: Tensor) -> float:
    """Largest eigenvalue θ of a symmetric operator, to TOLERANCE · θ.

    θ of the k-th step is wrong by at most ρ² / (θ - θ₂ - ρ₂), ρ = ‖A v - θ v‖, where no other eigenvalue lies
    above the second θ₂ ± ρ₂ (Parlett, The Symmetric Eigenvalue Problem, section 11.7: ρ² over the gap). As a θ
    may stand still on its way, ρ ≤ 10 TOLERANCE · θ is asked for, too. The start is mixed with a fixed random
    vector; the basis is kept orthogonal in full, as in `bnbook.probes.fisher.lanczos`, which stops by ρ alone.
    """
    noise = torch.randn(len(start), generator=torch.Generator().manual_seed(0), dtype=torch.float64).to(start)
    q = start / start.norm() + 0.3 * noise / noise.norm()
    basis, alphas, betas = (q / q.norm())[None], [], []
    for step in range(1, min(STEPS, len(start)) + 1):
        r = product(basis[-1])
        alphas.append(float(basis[-1] @ r))
        for _ in range(2):  # twice is enough
            r = r - basis.T @ (basis @ r)
        betas.append(float(r.norm()))
        side = torch.tensor(betas[:-1], dtype=torch.float64)
        small = (
            torch.diag(torch.tensor(alphas, dtype=torch.float64)) + torch.diag(side, 1) + torch.diag(side, -1)
        )
        if not small.isfinite().all():
            return float("nan")
        values, vectors = torch.linalg.eigh(small)
        value, away = float(values[-1]), betas[-1] * vectors[-1].abs()
        apart = value - float(values[-2] + away[-2]) if step > 1 else 0.0
        rest = float(away[-1])
        wrong = min(rest, rest**2 / apart) if apart > 0 else rest
        if (
            betas[-1] == 0
            or step == len(start)
            or (wrong <= TOLERANCE * value and rest <= 10 * TOLERANCE * value)
        ):
            return value
        basis = torch.cat([basis, (r / betas[-1])[None]])
    raise BnbookError(f"λ_max is not found to {TOLERANCE:g} within {STEPS} steps")


@contextmanager
def _on_a_graph(subject: Subject, prepare: Prepare):
    with _prepared(subject, prepare) as (twin, leaves):
        outputs = _rows(twin.outputs(), len(twin.inputs))
        weight = torch.zeros_like(outputs, requires_grad=True)

        def grad(by: Tensor, **more: bool) -> list[Tensor]:  # given as `by`, it would load SymPy, for seconds
            value = (outputs * by).sum()
            found = torch.autograd.grad(value, leaves, allow_unused=True, retain_graph=True, **more)
            found = [dense(g) for g in found]
            return [torch.zeros_like(p) if g is None else g for p, g in zip(leaves, found, strict=True)]

        gradients = grad(weight, create_graph=True)
        live = [k for k, g in enumerate(gradients) if g.requires_grad]
        tried = []

        def product(q: Tensor) -> Tensor:
            u = grad(q.view_as(outputs))
            along = sum((gradients[k] * u[k]).sum() for k in live)
            (moved,) = torch.autograd.grad(along, weight, retain_graph=True)
            if not tried:  # ⟨q, J J^T q⟩ = ‖J^T q‖²
                one, other = float((q.double() * moved.flatten()).sum()), float(total_norm(u)) ** 2
                if abs(one - other) > 1e-2 * other or not other < float("inf"):
                    raise _NotTheJacobian
                tried.append(True)
            return moved.flatten() / len(outputs)

        yield product, torch.ones(outputs.numel(), dtype=outputs.dtype, device=outputs.device)


@contextmanager
def _by_differences(subject: Subject, prepare: Prepare):
    double = subject.in_double()
    at = {n: p.detach().double() for n, p in subject.network.named_parameters() if p.is_floating_point()}

    def outputs(changed: dict[str, Tensor]) -> Tensor:
        with _prepared(double, prepare, changed) as (twin, _):
            return _rows(twin.outputs(), len(twin.inputs)).detach()

    start = outputs(at)
    size = float(total_norm(list(at.values())))

    def product(q: Tensor) -> Tensor:
        with _prepared(double, prepare, at) as (twin, leaves):
            value = (_rows(twin.outputs(), len(start)) * q.view_as(start)).sum()
            found = double.differentiate(value, leaves)
        u = {n: torch.zeros_like(p) if g is None else g for (n, p), g in zip(at.items(), found, strict=True)}
        length = float(total_norm(list(u.values())))
        if not 0 < length < float("inf"):
            return torch.zeros_like(q) if length == 0 else torch.full_like(q, torch.nan)
        h = 1e-6 * max(size, 1e-3) / length
        ahead, behind = (outputs({n: p + sign * h * u[n] for n, p in at.items()}) for sign in (1, -1))
        return ((ahead - behind) / (2 * h)).flatten() / len(start)

    yield product, torch.ones(start.numel(), dtype=torch.float64, device=start.device)


@contextmanager
def _prepared(subject: Subject, prepare: Prepare, changed: dict[str, Tensor] | None = None):
    """A copy whose parameters all take part, in the state that is asked for; attention in the form that torch
    can differentiate twice."""
    from torch.nn.attention import SDPBackend, sdpa_kernel

    with (
        subject.twin(changed) as twin,
        sdpa_kernel(SDPBackend.MATH),
        torch.backends.cudnn.flags(enabled=False),
    ):
        leaves = [p.requires_grad_() for p in twin.network.parameters() if p.is_floating_point()]
        prepare(twin.network)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield twin, leaves


def _rows(outputs: object, examples: int) -> Tensor:
    """(B, ...) -> (B, outputs); of several views or positions of an example as rows, all are its outputs."""
    if not isinstance(outputs, Tensor) or not outputs.dim() or not outputs.is_floating_point():
        raise BnbookError(
            f"the network gives {described(outputs)}; expected one tensor (B, ...) of real numbers; choose it with output="
        )
    if len(outputs) % examples or not len(outputs):
        raise BnbookError(
            f"the network gives {described(outputs)} for {examples} examples; expected (B, ...)"
        )
    return outputs.reshape(examples, -1)


def _first_line(error: BaseException) -> str:
    text = str(error).strip().splitlines()
    return f"{type(error).__name__}: {text[0][:120]}" if text else type(error).__name__
