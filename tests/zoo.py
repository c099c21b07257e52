"""Small networks as people have them, one for each construction, and the same measurements taken slowly.

A network is built anew for each pass, with changed parameters put into it: nothing here is shared with the
report. Sizes: B = 12 examples, K = 4 classes.
"""

from __future__ import annotations

import random
import threading
import types
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils import parametrizations, prune
from torch.utils.checkpoint import checkpoint

from bnbook.normalizers import make_normalizer

B, K, RATE = 12, 4, 0.3
LENGTHS = (0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0)


@dataclass
class Animal:
    """A network, its batch, and what is to be said of it."""

    make: Callable[[], nn.Module]
    shape: tuple[int, ...] = (6,)
    loss: Callable = F.cross_entropy
    output: int | str | None = None
    says: tuple[str, ...] = ()  # words of its warnings
    lacks: tuple[str, ...] = ()  # of "constant", "population": λ_max that is not defined there
    normalizers: int | None = None  # how many there are
    exact: float = 1e-6  # relative, to which numbers agree
    shifted: bool = True  # whether the covariate shift is taken again by hand
    curved: bool = True  # and λ_max
    held: bool = True  # also with constant statistics, as the twin does for torch's batch norm alone
    tokens: int = 0  # vocabulary, for inputs of whole numbers

    def batch(self) -> tuple[Tensor, Tensor]:
        draw = torch.Generator().manual_seed(1)
        if self.tokens:
            inputs = torch.randint(self.tokens, (B, *self.shape), generator=draw)
        else:
            inputs = torch.randn(B, *self.shape, generator=draw, dtype=torch.float64).to(self.dtype)
        return inputs, torch.arange(B) % K

    @property
    def dtype(self) -> torch.dtype:
        return next(iter(self.build().parameters())).dtype

    def build(self) -> nn.Module:
        seed(0)
        return self.make()


def seed(value: int) -> None:
    torch.manual_seed(value), np.random.seed(value), random.seed(value)


def states() -> tuple:
    return torch.get_rng_state().tolist(), repr(np.random.get_state(legacy=False)), random.getstate()


def everything(model: nn.Module) -> dict[str, Any]:
    """All of a network that may move: tensors with their gradients as bytes, attributes, modes, hooks."""
    found: dict[str, Any] = {}
    for name, module in model.named_modules():
        if isinstance(module, torch.jit.ScriptModule):
            continue
        for key, value in vars(module).items():
            if key in ("_parameters", "_buffers"):
                for inner, tensor in value.items():
                    if tensor is not None and not isinstance(tensor, nn.parameter.UninitializedTensorMixin):
                        found[f"{name}.{inner}"] = frozen(tensor), id(tensor)
                        found[f"{name}.{inner}.grad"] = frozen(tensor.grad) if tensor.is_leaf else None
            elif key == "_modules":
                found[f"{name}.children"] = [(k, id(v)) for k, v in value.items()]
            elif isinstance(value, dict) and key.endswith("_hooks") or "_hooks_" in key:
                found[f"{name}.{key}"] = [(k, id(v)) for k, v in value.items()]
            elif isinstance(value, Tensor):
                found[f"{name}.{key}"] = frozen(value)
            elif not isinstance(value, nn.Module):
                found[f"{name}.{key}"] = repr(value)
    for name, tensor in [*model.named_parameters(), *model.named_buffers()]:
        if not isinstance(tensor, nn.parameter.UninitializedTensorMixin):
            found[f"tensor {name}"] = frozen(tensor)
    return found


def frozen(tensor: Tensor | None) -> Any:
    if tensor is None:
        return None
    return tuple(tensor.shape), tensor.dtype, tensor.requires_grad, tensor.detach().double().tolist()


# --- the same measurements, slowly -------------------------------------------------------------------


def picked(animal: Animal, given: Any) -> Any:
    if animal.output is None:
        return given
    named = isinstance(animal.output, str) and not isinstance(given, dict)
    return getattr(given, animal.output) if named else given[animal.output]


def gradient(animal: Animal, changed: dict[str, Tensor] | None = None) -> tuple[float, dict[str, Tensor]]:
    """Loss and gradient of a network that is built anew, with some parameters changed."""
    model, (x, y) = animal.build(), animal.batch()
    for name, parameter in model.named_parameters():
        if changed and name in changed:
            parameter.data = changed[name].clone()
    model.zero_grad()
    seed(7)
    loss = animal.loss(picked(animal, model(x)), y)
    loss.backward()
    own = {n: p for n, p in model.named_parameters() if p.requires_grad}
    slopes = {n: torch.zeros_like(p) if p.grad is None else p.grad for n, p in own.items()}
    return loss.item(), {n: g.to_dense() if g.is_sparse else g for n, g in slopes.items()}


def length(*tensors: Tensor) -> float:
    return torch.cat([each.flatten().double() for each in tensors]).norm().item()


def smoothness(animal: Animal) -> float:
    """max over the lengths a of ‖∇L(θ) − ∇L(θ − a∇L)‖ / ‖a∇L‖."""
    start = {n: p.detach().clone() for n, p in animal.build().named_parameters()}
    _, g = gradient(animal)
    found = []
    for a in (RATE * each for each in LENGTHS):
        _, there = gradient(animal, {n: start[n] - a * g[n] for n in g})
        found.append(length(*(g[n] - there[n] for n in g)) / (a * length(*g.values())))
    return max(found)


def shift(animal: Animal) -> list[float]:
    """Cosine of the gradient of each weight before and after the parameters registered before it moved."""
    start = {n: p.detach().clone() for n, p in animal.build().named_parameters()}
    _, g = gradient(animal)
    cosines, names = [], list(g)
    for name in names:
        if g[name].dim() < 2:
            continue
        owner = name.rpartition(".")[0]
        before = [n for n in names[: names.index(name)] if n.rpartition(".")[0] != owner]
        _, there = gradient(animal, {n: start[n] - RATE * g[n] for n in before})
        one, other = g[name].double(), there[name].double()
        both = length(one) * length(other)
        cosines.append(float((one * other).sum()) / both if both else float("nan"))
    return cosines


def curvature(animal: Animal, state: str) -> float:
    """λ_max of (1/m) J J^T from all rows of J, one backward pass each."""
    model, (x, _) = animal.build(), animal.batch()
    if state == "constant":
        for module in model.modules():
            if isinstance(module, nn.modules.batchnorm._BatchNorm):
                module.forward = types.MethodType(held, module)
    if state == "population":
        for module in model.modules():
            if isinstance(module, nn.modules.batchnorm._BatchNorm):
                module.eval()
    leaves = list(model.parameters())
    for leaf in leaves:
        leaf.requires_grad_()
    seed(7)
    outputs = picked(animal, model(x)).reshape(len(x), -1)
    rows = []
    for each in outputs.flatten():
        slopes = torch.autograd.grad(each, leaves, retain_graph=True, allow_unused=True)
        filled = [torch.zeros_like(p) if g is None else g for p, g in zip(leaves, slopes, strict=True)]
        filled = [g.to_dense() if g.is_sparse else g for g in filled]
        rows.append(torch.cat([g.flatten() for g in filled]))
    jacobian = torch.stack(rows).double()
    return float(torch.linalg.eigvalsh(jacobian @ jacobian.T / len(x))[-1])


def held(module: nn.Module, input: Tensor) -> Tensor:
    """Batch norm with the mean and variance of the batch, no gradient through them."""
    x = input
    axes = [axis for axis in range(x.dim()) if axis != 1]
    shape = [1, -1] + [1] * (x.dim() - 2)
    m, v = x.detach().mean(axes).view(shape), x.detach().var(axes, correction=0).view(shape)
    y = (x - m) / (v + module.eps).sqrt()
    return y if module.weight is None else y * module.weight.view(shape) + module.bias.view(shape)


# --- the networks ------------------------------------------------------------------------------------


_l = nn.Linear


def stack(*layers: nn.Module) -> nn.Module:
    return nn.Sequential(*layers).double()


def seen(model: nn.Module, shape: tuple[int, ...] = (6,), times: int = 60) -> nn.Module:
    """After some batches, so that running averages hold something."""
    for _ in range(times):
        model(torch.randn(B, *shape, dtype=torch.float64))
    return model


class Net(nn.Module):
    """Parts by name, and a function of them."""

    def __init__(self, function: Callable, **parts: Any) -> None:
        super().__init__()
        self.function = function
        for name, part in parts.items():
            setattr(self, name, part)

    def forward(self, x):
        return self.function(self, x)


def net(function: Callable, **parts: Any) -> nn.Module:
    return Net(function, **parts).double()


def between(function: Callable, width: int = 8, **parts: Any) -> nn.Module:
    """Something, (itself, (B, width)), between two dense layers a and f."""
    return net(lambda s, x: s.f(function(s, s.a(x))), a=_l(6, width), **parts, f=_l(width, K))


def of(n: int) -> dict[str, nn.Parameter]:
    """γ and β by other names."""
    return {"scale": nn.Parameter(torch.ones(n)), "offset": nn.Parameter(torch.zeros(n))}


def by_hand(s, x):
    """Batch norm as in a course: averages are plain attributes, inference is told by the gradient mode."""
    if not torch.is_grad_enabled():
        return s.scale * (x - s.mean) / (s.var + 1e-5).sqrt() + s.offset
    m, v = x.mean(0), x.var(0, correction=0)
    s.mean, s.var = 0.9 * s.mean + 0.1 * m.detach(), 0.9 * s.var + 0.1 * v.detach()
    return s.scale * (x - m) / (v + 1e-5).sqrt() + s.offset


class Activated(nn.BatchNorm1d):
    def forward(self, x):
        return F.relu(super().forward(x))


class Ghost(nn.BatchNorm1d):
    """Each half of the batch by itself."""

    def forward(self, x):
        return torch.cat([super(Ghost, self).forward(part) for part in x.chunk(2)])


class Channels(nn.LayerNorm):
    """Over axis 1 of (B, C, H, W)."""

    def forward(self, x):
        return super().forward(x.movedim(1, -1)).movedim(-1, 1)


@dataclass
class Output:
    hidden: Tensor
    logits: Tensor
    extra: dict = field(default_factory=dict)


def counting(s, x):
    """Its factor changes from call to call, kept in itself."""
    s.calls += 1
    s.seen.append(float(x.mean()))
    return x * (1 + 0.1 * s.calls)


class Straight(torch.autograd.Function):
    @staticmethod
    def forward(_ctx, x):
        return x.round()

    @staticmethod
    def backward(_ctx, slope):
        return slope


def flip(draw):
    return Net(lambda s, x: x if s.draw() < 0.5 else torch.tanh(3 * x), draw=draw)


def drawn():
    """Noise from a generator of its own."""
    add = lambda s, x: x + 0.1 * torch.randn(x.shape, generator=s.generator, dtype=x.dtype)
    return Net(add, generator=torch.Generator().manual_seed(3))


def InBuffers(n):
    """Batch norm by hand, its averages in buffers of its own names, moved in place."""

    def forward(s, x):
        m, v = s.centre, s.spread
        if s.training:
            m, v = x.mean(0), x.var(0, correction=0)
            with torch.no_grad():
                s.centre.lerp_(m, 0.1), s.spread.lerp_(v, 0.1)
        return s.scale * (x - m) / (v + 1e-5).sqrt() + s.offset

    return Net(forward, **of(n), centre=nn.Buffer(torch.zeros(n)), spread=nn.Buffer(torch.ones(n)))


def energy(s, x):
    """Hands on the slope of a scalar by its input: every derivative of it is one of second order."""
    with torch.enable_grad():
        x = x.detach().requires_grad_()
        (slope,) = torch.autograd.grad(s.b(torch.tanh(s.a(x))).sum(), x, create_graph=True)
    return s.f(slope)


def mixed(s, x):
    """Its layers run in half precision, its weights are whole."""
    with torch.autocast("cpu", dtype=torch.bfloat16):
        return s.f(torch.relu(s.n(s.a(x)))).float()


def experts(s, x):
    """Each example goes through one of three layers."""
    weight = torch.softmax(s.gate(x), 1)
    best, out = weight.argmax(1), x.new_zeros(len(x), 8)
    for k, expert in enumerate(s.each):
        out[best == k] = weight[best == k, k : k + 1] * expert(x[best == k])
    return s.f(torch.relu(out))


def locked(s, x):
    """Holds what cannot be copied."""
    with s.lock:
        return s.f(torch.tanh(s.a(x)))


def by_function(s, x):
    """Batch norm by torch's function, of no class that torch has."""
    return F.batch_norm(x, s.running_mean, s.running_var, s.scale, s.offset, s.training, 0.1, s.eps)


def Functional(n, function=by_function, **parts):
    averages = dict(running_mean=nn.Buffer(torch.zeros(n)), running_var=nn.Buffer(torch.ones(n)))
    return Net(function, **of(n), eps=1e-5, **averages, **parts)


def Between(last=None):
    """The same in a network's own code, between two layers."""
    whole = lambda s, x: s.f(torch.relu(by_function(s, s.a(x))))
    return Functional(8, whole, a=_l(6, 8), f=last or _l(8, K))


def Kept(n, mode=False):
    """Its own code holds some of its norms in one mode, as papers do whose networks are tuned on small batches."""
    return Net(lambda s, x: s.norm.train(s.mode)(x), norm=nn.BatchNorm1d(n), mode=mode)


def course():
    """Batch norm of a course: γ and β have the axes of the maps that they act on."""

    def forward(s, x):
        m, v = x.mean((0, 2, 3), keepdim=True), x.var((0, 2, 3), correction=0, keepdim=True)
        return s.gamma * (x - m) / (v + 1e-5).sqrt() + s.beta

    gamma, beta = (nn.Parameter(torch.full((1, 4, 1, 1), value)) for value in (1.0, 0.0))
    return Net(forward, gamma=gamma, beta=beta)


def Renormed(n):
    """Batch renormalization: what corrects the batch's statistics is left out of the gradient."""

    def forward(s, x):
        mean, deviation = x.mean(0), x.std(0)
        r, d = (deviation / s.spread).detach(), ((mean - s.centre) / s.spread).detach()
        return (x - mean) / deviation * r + d

    return Net(forward, centre=nn.Buffer(torch.zeros(n)), spread=nn.Buffer(torch.ones(n)))


def Half():
    """Its first layer runs in half precision, whatever the rest does."""
    function = lambda s, x: s.f(torch.tanh(s.a(x.bfloat16()).float()))
    return Net(function, a=_l(6, 8).bfloat16(), f=_l(8, K))


def marked():
    """What its owner wrote on a parameter belongs to the function."""
    model = between(lambda s, h: torch.tanh(h * getattr(s.a.weight, "scale", 1.0)))
    model.a.weight.scale = 2.0
    return model


def time_first(s, x):
    """A recurrent layer by hand, (time, B, units)."""
    h, gave = x.new_zeros(x.shape[1], 5), []
    for each in x:
        h = torch.tanh(each @ s.w + h @ s.u)
        gave.append(h)
    return torch.stack(gave)


class Turned(nn.Module):
    def forward(self, x):
        return x.transpose(0, 1)


class Named(nn.Module):
    """Names a part of its parameters only."""

    def __init__(self):
        super().__init__()
        self.base, self.n, self.f = nn.Linear(6, 8), nn.BatchNorm1d(8), nn.Linear(8, K)

    def named_parameters(self, *args, **more):
        return ((n, p) for n, p in super().named_parameters(*args, **more) if not n.startswith("base"))

    def forward(self, x):
        return self.f(torch.tanh(self.n(self.base(x))))


def turned(time):
    """Time first inside: of as many steps as examples, or of fewer."""
    weight = lambda n: nn.Parameter(torch.randn(n, 5) * 0.4)
    cell = lambda: Net(time_first, w=weight(6), u=weight(5))
    model = lambda: net(lambda s, x: s.f(s.g(s.t(x))[-1]), t=Turned(), g=cell(), f=_l(5, K))
    return Animal(model, (time, 6), says=NONE_MEET)


def recomputed(reentrant=None, whole=False):
    """A block that is computed once more on the way back, with the layer before it; None: not so."""
    block = nn.Sequential(_l(8, 8), nn.BatchNorm1d(8), nn.Tanh(), _l(8, 8))
    again = lambda run, x: run(x) if reentrant is None else checkpoint(run, x, use_reentrant=reentrant)
    behind = lambda s, x: s.f(again(s.body, s.a(x)))
    both = lambda s, x: s.f(again(lambda z: s.body(s.a(z)), x.requires_grad_()))
    return net(both if whole else behind, a=_l(6, 8), body=block, f=_l(8, K))


def tied():
    model = between(lambda s, h: torch.tanh(s.b(torch.tanh(h))), 6, b=_l(6, 6))
    model.b.weight = model.a.weight
    return model


def zeroed():
    twice = lambda s, x: s.f(torch.tanh(s.a(x)) + s.n(s.b(torch.tanh(s.a(x)))))
    model = net(twice, a=_l(6, 8), b=_l(8, 8), n=nn.BatchNorm1d(8), f=_l(8, K))
    nn.init.zeros_(model.n.weight)
    return model


def frozen_part():
    model = stack(_l(6, 8), nn.BatchNorm1d(8), nn.ReLU(), _l(8, 8), nn.Tanh(), _l(8, K))
    model[0].requires_grad_(False)
    return model


def hooked():
    """A forward hook of the owner's, which keeps what it sees, and a gradient that is there already."""
    model = stack(_l(6, 8), nn.BatchNorm1d(8), nn.Tanh(), _l(8, K))
    model.kept = []
    model[0].register_forward_hook(lambda _m, _x, y: model.kept.append(float(y.detach().sum())))
    model[3].weight.grad = torch.ones_like(model[3].weight)
    return model


def scripted():
    block = nn.Sequential(_l(6, 8), nn.BatchNorm1d(8), nn.ReLU()).double()
    return nn.Sequential(torch.jit.script(block), _l(8, K).double())


def below_zero():
    model = seen(NORMED())
    model[1].running_var.fill_(-1.0)
    return model


def old_weight_norm():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return nn.Sequential(nn.utils.weight_norm(_l(6, 8)), nn.Tanh(), _l(8, K)).double()


def pruned():
    model = NORMED()
    prune.l1_unstructured(model[0], "weight", 0.4)
    return model


def normed_twice():
    norm = nn.BatchNorm1d(8)
    return stack(_l(6, 8), norm, nn.ReLU(), _l(8, 8), norm, nn.ReLU(), _l(8, K))


def longer(model):
    with torch.no_grad():  # the direction's length is free: the function is the same
        model[0].parametrizations.weight.original1.mul_(5)
    return model


NORMED = lambda norm=None, width=8: stack(
    _l(6, width), nn.BatchNorm1d(width) if norm is None else norm, nn.ReLU(), _l(width, K)
)


def images():
    first = nn.Conv2d(2, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU()
    return stack(*first, nn.Conv2d(4, 4, 3), nn.ReLU(), nn.Flatten(), _l(36, K))


NONE_MEET = ("no layer in which the examples of a batch meet",)
NO_AVERAGES, NEITHER = ("population",), ("constant", "population")  # λ_max that are not defined

ZOO: dict[str, Animal] = {
    "plain": Animal(lambda: stack(_l(6, 8), nn.Tanh(), _l(8, K)), says=NONE_MEET, normalizers=0),
    "batch norm": Animal(NORMED, lacks=NO_AVERAGES, normalizers=1, says=("no population statistics yet",)),
    "filled averages": Animal(lambda: seen(NORMED()), normalizers=1),
    "a variance below zero": Animal(below_zero, lacks=NO_AVERAGES, says=("below zero",)),
    "no averages": Animal(
        lambda: NORMED(nn.BatchNorm1d(8, track_running_stats=False)), lacks=NO_AVERAGES, says=("keeps no running averages",)
    ),
    "in inference": Animal(lambda: seen(NORMED()).eval(), says=("inference mode",), curved=False),
    "images": Animal(images, (2, 5, 5), lacks=NO_AVERAGES, normalizers=1),
    "tokens": Animal(
        lambda: net(lambda s, x: s.f(s.n(s.e(x)).mean(1)), e=nn.Embedding(9, 6), n=nn.LayerNorm(6), f=_l(6, K)),
        (3,), tokens=9, says=NONE_MEET, normalizers=1,
    ),
    "attention": Animal(
        lambda: net(
            lambda s, x: s.last(s.norm(x + s.attend(x, x, x, need_weights=False)[0]).mean(1)),
            attend=nn.MultiheadAttention(6, 2, batch_first=True), norm=nn.LayerNorm(6), last=_l(6, K),
        ),
        (3, 6), normalizers=1,
    ),
    "recurrent": Animal(
        lambda: net(
            lambda s, x: s.last(s.norm(s.run(x)[0][:, -1])),
            run=nn.LSTM(6, 5, batch_first=True), norm=nn.BatchNorm1d(5), last=_l(5, K),
        ),
        (3, 6), lacks=NO_AVERAGES, normalizers=1,
    ),
    "dropout": Animal(lambda: stack(_l(6, 20), nn.ReLU(), nn.Dropout(0.5), _l(20, K)), says=NONE_MEET),
    "added in place": Animal(
        lambda: between(lambda s, h: s.n(h).add_(1.0).mul_(0.5), n=nn.BatchNorm1d(8)), lacks=NO_AVERAGES, normalizers=1
    ),
    "tied weights": Animal(tied, says=("shares its weights",), shifted=False),
    "one layer run twice": Animal(
        lambda: between(lambda s, h: torch.tanh(s.a(torch.tanh(h))), 6), says=("runs 2 times",)
    ),
    "by keyword": Animal(
        lambda: between(lambda s, h: torch.relu(s.n(input=h)), n=nn.BatchNorm1d(8)), lacks=NO_AVERAGES, normalizers=1
    ),
    "an unused layer": Animal(
        lambda: net(lambda s, x: (s.spare(x), s.f(torch.tanh(s.a(x))))[1], a=_l(6, 8), f=_l(8, K), spare=_l(6, 8)),
        says=("spare", "does not reach the loss"), shifted=False,
    ),
    "a zero at the end": Animal(zeroed, lacks=NO_AVERAGES, says=("have no gradient",)),
    "a frozen part": Animal(frozen_part, lacks=NO_AVERAGES, says=("is frozen",), normalizers=1),
    "averages by hand": Animal(
        lambda: NORMED(Net(by_hand, **of(8), mean=torch.zeros(8), var=torch.ones(8))),
        lacks=NO_AVERAGES, normalizers=1, held=False,
    ),
    "norm and activation in one": Animal(
        lambda: stack(_l(6, 8), Activated(8), _l(8, K)), lacks=NO_AVERAGES, normalizers=1, curved=False
    ),
    "ghost batches": Animal(lambda: NORMED(Ghost(8)), lacks=NEITHER, normalizers=1, says=("does more than normalize",)),
    "layer norm of one's own": Animal(
        lambda: between(lambda s, h: s.n(h).mean(1), 5, n=Net(lambda _s, x: F.layer_norm(x, x.shape[-1:]))),
        (3, 6), normalizers=1,
    ),
    "layer norm of channels": Animal(
        lambda: stack(nn.Conv2d(2, 4, 3), Channels(4), nn.GELU(), nn.Flatten(), _l(36, K)), (2, 5, 5), normalizers=1
    ),
    "weight norm": Animal(
        lambda: longer(stack(parametrizations.weight_norm(_l(6, 8)), nn.Tanh(), _l(8, K))), normalizers=0, shifted=False
    ),
    "spectral norm": Animal(
        lambda: stack(parametrizations.spectral_norm(_l(6, 8)), nn.Tanh(), _l(8, K)), normalizers=0, shifted=False
    ),
    "weight norm by a hook": Animal(old_weight_norm, normalizers=0, shifted=False),
    "checkpoint": Animal(lambda: recomputed(False), lacks=NO_AVERAGES, normalizers=1),
    "reentrant checkpoint": Animal(lambda: recomputed(True), lacks=NO_AVERAGES, normalizers=1, curved=False),
    "several outputs": Animal(
        lambda: net(lambda s, x: (s.a(x), s.f(torch.tanh(s.a(x)))), a=_l(6, 8), f=_l(8, K)), output=1
    ),
    "a dictionary": Animal(
        lambda: net(lambda s, x: {"loss": None, "logits": s.f(torch.tanh(s.a(x)))}, a=_l(6, 8), f=_l(8, K)),
        output="logits",
    ),
    "a dataclass": Animal(
        lambda: net(lambda s, x: Output(s.a(x), s.f(torch.tanh(s.a(x)))), a=_l(6, 8), f=_l(8, K)), output="logits"
    ),
    "bfloat16": Animal(
        lambda: stack(_l(6, 8), nn.Tanh(), _l(8, K)).bfloat16(), says=("half precision",), exact=5e-2, shifted=False
    ),
    "single precision": Animal(lambda: NORMED().float(), lacks=NO_AVERAGES, exact=1e-3),
    "a scripted block": Animal(scripted, lacks=NEITHER, normalizers=1, says=("scripted block",)),
    "Python's random numbers": Animal(lambda: stack(_l(6, 8), flip(random.random), _l(8, K)), says=NONE_MEET),
    "NumPy's random numbers": Animal(lambda: stack(_l(6, 8), flip(np.random.rand), _l(8, K)), says=NONE_MEET),
    "a generator of its own": Animal(lambda: stack(_l(6, 8), drawn(), _l(8, K)), says=NONE_MEET),
    "by torch's function": Animal(lambda: NORMED(Functional(8)), lacks=NO_AVERAGES, normalizers=1, curved=False),
    "attention with a fast path": Animal(
        lambda: net(
            lambda s, x: s.f(s.n(s.e(x).mean(1))),
            e=nn.TransformerEncoderLayer(6, 2, 8, 0.0, batch_first=True), n=nn.BatchNorm1d(6), f=_l(6, K),
        ),
        (3, 6), lacks=NO_AVERAGES, normalizers=3,
    ),
    "counts in itself": Animal(lambda: stack(_l(6, 8), Net(counting, calls=0, seen=[]), nn.Tanh(), _l(8, K)), says=NONE_MEET),
    "hooks of the owner": Animal(hooked, lacks=NO_AVERAGES, normalizers=1),
    "averages in buffers": Animal(
        lambda: NORMED(InBuffers(8)), lacks=NO_AVERAGES, normalizers=1, held=False, says=("no population statistics yet",)
    ),
    "averages in buffers, filled": Animal(lambda: seen(NORMED(InBuffers(8))), normalizers=1, curved=False),
    "a slope inside": Animal(lambda: net(energy, a=_l(6, 8), b=_l(8, 1), f=_l(6, K)), says=NONE_MEET, normalizers=0),
    "mixed precision": Animal(
        lambda: Net(mixed, a=_l(6, 8), n=nn.BatchNorm1d(8), f=_l(8, K)), lacks=NO_AVERAGES, normalizers=1,
        exact=5e-2, shifted=False, curved=False,
    ),
    "experts": Animal(
        lambda: net(experts, gate=_l(6, 3), f=_l(8, K), each=nn.ModuleList([_l(6, 8) for _ in range(3)])),
        says=NONE_MEET, shifted=False,
    ),
    "a lock": Animal(lambda: net(locked, a=_l(6, 8), f=_l(8, K), lock=threading.Lock()), says=NONE_MEET),
    "pruned": Animal(pruned, lacks=NO_AVERAGES, normalizers=1, shifted=False),
    "one norm twice": Animal(normed_twice, lacks=NO_AVERAGES, normalizers=1),
    "attention over the batch": Animal(
        lambda: net(lambda s, x: s.f(torch.softmax(s.a(x) @ s.a(x).t(), 1) @ x), a=_l(6, 6), f=_l(6, K)),
        lacks=NEITHER, says=("runs 2 times",),
    ),
    "embeddings with sparse gradients": Animal(
        lambda: net(lambda s, x: s.f(s.e(x).mean(1)), e=nn.Embedding(9, 6, sparse=True), f=_l(6, K)),
        (3,), tokens=9, says=NONE_MEET,
    ),
    "the book's batch norm": Animal(
        lambda: NORMED(make_normalizer("batch", 8)), lacks=NO_AVERAGES, normalizers=1, curved=False
    ),
    "held at rest by its own code": Animal(
        lambda: seen(NORMED(Kept(8))), lacks=("batch", *NEITHER), normalizers=1,
        says=("own code keeps these", r"puts 1.norm \(BatchNorm1d\) into inference mode"),
    ),
    "held in training by its own code": Animal(
        lambda: NORMED(Kept(8, True)), lacks=NEITHER, normalizers=1,
        says=(r"puts 1.norm \(BatchNorm1d\) into training mode",),
    ),
    "γ and β of the maps' axes": Animal(
        lambda: stack(nn.Conv2d(2, 4, 3), course(), nn.Flatten(), _l(36, K)), (2, 5, 5), normalizers=1, shifted=False,
        held=False, lacks=NO_AVERAGES,
    ),
    "a compiled part": Animal(
        lambda: nn.Sequential(torch.compile(NORMED(), backend="eager"), nn.Identity()), lacks=NO_AVERAGES, normalizers=1
    ),
    "a loss that writes on what it gets": Animal(
        NORMED, loss=lambda y, t: F.cross_entropy(y.mul_(2), t), lacks=NO_AVERAGES
    ),
    "registered in another order than run": Animal(
        lambda: net(lambda s, x: s.f(torch.tanh(s.a(x))), f=_l(8, K), a=_l(6, 8)), says=("another order", *NONE_MEET)
    ),
    "a sum over the examples": Animal(
        NORMED, loss=lambda y, t: F.cross_entropy(y, t, reduction="sum"), lacks=NO_AVERAGES,
        says=("no mean over the examples",),
    ),
    "norm in its own code": Animal(lambda: Between().double(), lacks=NEITHER),
    "norm in its own code, filled": Animal(lambda: seen(Between().double()), lacks=("constant",), curved=False),
    "norm in its own code, at rest": Animal(lambda: seen(Between().double()).eval(), lacks=("constant",), curved=False),
    "norm in the code of a block, at rest": Animal(
        lambda: nn.Sequential(seen(Between(nn.Identity()).double()).eval(), _l(8, K).double()), lacks=("constant",),
        curved=False,
    ),
    "a norm that is run past its hooks": Animal(
        lambda: between(lambda s, h: torch.relu(s.n.forward(h)), n=nn.BatchNorm1d(8)), lacks=NEITHER, normalizers=1
    ),
    "words on a parameter": Animal(marked, says=NONE_MEET),
    "time first": turned(3),
    "time first, as many steps as examples": turned(B),
    "as many units as examples, turned": Animal(
        lambda: net(lambda s, x: s.f(s.t(torch.tanh(s.t(s.a(x))))), t=Turned(), a=_l(6, B), f=_l(B, K)), says=NONE_MEET
    ),
    "two neighbours": Animal(
        lambda: NORMED(Net(lambda _s, x: torch.cat([x[:3], x[3:4] - x[4:5], x[4:]]))), lacks=NEITHER
    ),
    "a part of its parameters named": Animal(lambda: Named().double(), lacks=NO_AVERAGES, normalizers=1),
    "time folded into the batch": Animal(
        lambda: between(lambda s, h: s.n(h.flatten(0, 1)).view(len(h), -1, 8).mean(1), n=nn.BatchNorm1d(8)),
        (3, 6), lacks=NO_AVERAGES, normalizers=1,
    ),
    "two views under vmap": Animal(
        lambda: net(
            lambda s, x: s.f(torch.func.vmap(lambda v: torch.relu(s.n(s.a(v))))(torch.stack([x, -x])).mean(0)),
            a=_l(6, 8), n=nn.BatchNorm1d(8, track_running_stats=False), f=_l(8, K),
        ),
        lacks=NEITHER,
    ),
}  # fmt: skip
