"""Does it make gradients explode? The exact rate of a layer, and networks to measure it in."""

from __future__ import annotations

import copy
import math
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

import matplotlib.pyplot as plt
import numpy as np
import torch
import torch.nn.functional as F
from matplotlib.colors import to_hex
from torch import Tensor, nn
from torch.func import functional_call, stack_module_state, vmap

from bnbook.errors import BnbookError
from bnbook.figures import COLORS, log_band
from bnbook.meanfield.recursions import relu_product, step_product
from bnbook.models import mlp
from bnbook.models.building import initialise, linear, whole
from bnbook.normalizers import make_normalizer
from bnbook.plots.axes import name_ticks, points
from bnbook.plots.layout import subplots
from bnbook.plots.panels import Panel, compare, legend_below
from bnbook.probes.functional import total_norm
from bnbook.probes.landscape import along_gradient
from bnbook.probes.layer_gradients import LayerGradients, measure

# ---- Nonlinearities by name, as functions of a tensor; any other function of a tensor may take their place ----

Function = Callable[[Tensor], Tensor]
KINK, STEEPNESS, HEIGHT = 2.7, 20.0, 0.5  # of `zigzag`


def identity(x: Tensor) -> Tensor:
    """φ(x) = x: the linear network."""
    return x


def zigzag(x: Tensor) -> Tensor:
    """The identity up to |x| = 2.7, then a saw of slope ±20 and height 1/2, odd: |φ(x)| ≤ min(|x|, 2.7).

    Made against the sentence that larger batches always explode less: over a batch of m no normalized value
    exceeds √(m-1), so that up to m = 8 (√7 ≈ 2.65) a network cannot tell it from a linear one.
    """
    size = x.abs()
    phase = torch.remainder(STEEPNESS * (size - KINK).clamp(min=0.0), 2 * HEIGHT)
    saw = torch.where(phase < HEIGHT, phase, 2 * HEIGHT - phase)
    return torch.where(size < KINK, x, torch.sign(x) * (KINK - saw))


ACTIVATIONS: dict[str, Function] = {
    "relu": torch.relu,
    "tanh": torch.tanh,
    "linear": identity,
    "zigzag": zigzag,
}


def activation(name: str | Function) -> Function:
    """The function of that name, or the function itself; BnbookError for an unknown name."""
    if callable(name):
        return name
    if name not in ACTIVATIONS:
        raise BnbookError(
            f"unknown activation {name!r}; expected a function or one of {', '.join(ACTIVATIONS)}"
        )
    return ACTIVATIONS[name]


class Elementwise(nn.Module):
    """A nonlinearity as a module."""

    def __init__(self, function: Function) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Tensor) -> Tensor:
        return self.function(x)


@dataclass(frozen=True)
class Mixture:
    """φ(x) = p₀ x + w Σ_k a_k sin(f_k x + s_k) + c (p₁ x² + p₂ x³)."""

    size: np.ndarray  # (4,)  a
    frequency: np.ndarray  # (4,)  f
    phase: np.ndarray  # (4,)  s
    powers: np.ndarray  # (3,)  p
    waves: float  # w
    curved: float  # c

    def __call__(self, x: Tensor) -> Tensor:
        wave = sum(a * torch.sin(f * x + s) for a, f, s in zip(self.size, self.frequency, self.phase))
        curve = self.powers[1] * x**2 + self.powers[2] * x**3
        return self.powers[0] * x + self.waves * wave + self.curved * curve


def random_nonlinearities(count: int, seed: int = 0) -> Iterator[tuple[Function, int]]:
    """Smooth nonlinearities of many kinds, each with a batch size: waves, polynomials, and some that are
    almost linear."""
    generator = np.random.default_rng(seed)
    for index in range(count):
        size, frequency = generator.normal(size=4), generator.uniform(0.2, 3.0, size=4)
        phase, powers = generator.uniform(0, 2 * np.pi, size=4), generator.normal(size=3)
        waves = (1.0, 0.1, 1e-3, 0.0)[index % 4]  # the third kind is linear but for a thousandth
        curved = (0.0, 0.3, 0.0, 1.0)[index % 4]
        phi = Mixture(size, frequency, phase, powers, waves, curved)
        yield phi, int(generator.choice([4, 5, 6, 8, 16, 64, 256, 1024]))


# ---- The factor by which one layer of a wide random batch-norm network multiplies the squared gradient, ----
# for any batch size
#
# Letters: m examples; u one unit's normalized values, uniform on the sphere of radius √m in the n = m - 1
# directions that centring leaves; φ the nonlinearity; c = -1/(m-1) the correlation of two values of u; G = 1 -
# 11ᵀ/m centring.

PANELS, ORDER = 48, 8  # Gauss-Legendre points: spectral where φ is smooth, about 1e-5 where it has kinks


@dataclass(frozen=True)
class Growth:
    """What one layer does to the squared gradient on its way down, and to the spread of the batch on its way
    up."""

    through: float  # λ: ‖δ^l‖² / ‖δ^(l+1)‖², gradients flow through mean and variance
    constant: float  # the same with mean and variance held constant
    spread: float  # V = E φ(u_1)² - E φ(u_1) φ(u_2): what centring leaves of a unit's output

    @property
    def of_norm(self) -> float:
        """√λ: the factor for the norm itself."""
        return math.sqrt(self.through)


def growth(
    phi: str | Function,
    m: int | None = None,
    gamma: float = 1.0,
    beta: float = 0.0,
    panels: int = PANELS,
    kinks: tuple[float, ...] = (),
) -> Growth:
    """λ_m of the nonlinearity x ↦ φ(γ x + β) for batches of m, or for infinitely large ones (m None).

    λ_m = m/(m-3) · {E φ'₁² - E φ'₁²(1 + u₁²)/m + E φ'₁φ'₂(1 + u₁u₂)/m} / (E φ₁² - E φ₁φ₂), by quadrature;
    λ_∞ = E φ'(g)² / Var φ(g), g standard normal. σ_w², σ_b² and the width cancel. Derivation: chapter
    batch-norm/gradient-explosion. panels, kinks:
    more points, and where φ' jumps, for a φ that needs them. Errors: BnbookError for m below 4 (E 1/s² is
    infinite), a constant φ, an unknown name.
    """
    if m is not None and (not isinstance(m, int) or m < 4):
        raise BnbookError(
            f"batch size {m!r}; expected a whole number of at least 4 (below, E 1/s² is infinite), or None"
        )
    function = activation(phi)
    if m is None:
        x, weight = _normal_nodes(kinks)
        value, slope = _value_and_slope(function, x, gamma, beta)
        spread = float(weight @ value**2 - (weight @ value) ** 2)
        through = constant = float(weight @ slope**2)
        factor = 1.0
    else:
        first, second, weight, inner = _sphere_nodes(m, panels, kinks)
        value, slope = _value_and_slope(function, first, gamma, beta)
        other, other_slope = _value_and_slope(function, second, gamma, beta)
        spread = float(weight @ (value**2 - value * (other @ inner)))
        pairs = weight @ (slope * (other_slope @ inner + first * ((other_slope * second) @ inner)))
        constant = float(weight @ slope**2)
        through = constant + float(pairs - weight @ (slope**2 * (1 + first**2))) / m
        factor = m / (m - 3)
    if not spread > 1e-14 * max(1.0, float(weight @ value**2)):
        raise BnbookError(
            "the nonlinearity is constant on these inputs: no gradient to speak of; expected another"
        )
    return Growth(factor * through / spread, factor * constant / spread, spread)


def linear_growth(m: np.ndarray | int) -> np.ndarray:
    """(m-2)/(m-3): a network without nonlinearity, and the least that any nonlinearity can have (Poincaré's
    inequality)."""
    m = np.asarray(m, dtype=float)
    return (m - 2) / (m - 3)


def relu_growth(m: np.ndarray | int) -> np.ndarray:
    """ReLU: m/(m-3) · {1/2 - 1/m + (k₀(c) + k₁(c))/m} / (1/2 - k₁(c)), → π/(π-1).

    k₀, k₁: the means of the product of two steps and of two ReLUs (`step_product`, `relu_product`). They are
    Gaussian integrals that hold on the sphere, for a product of ReLUs is homogeneous of degree 2 and one of
    steps of degree 0.
    """
    m = np.asarray(m, dtype=float)
    c = -1 / (m - 1)
    return m / (m - 3) * (0.5 - 1 / m + (step_product(c) + relu_product(c)) / m) / (0.5 - relu_product(c))


def residual_profile(one: Growth, depth: int, start: float = 1.0) -> np.ndarray:
    """‖δ^l‖²/‖δ^L‖² for x^(l+1) = x^l + W φ(BN(x^l)), l = 1 … L: a power of the depth in place of an
    exponential.

    v_l = start + (l-1) V is the centred variance of x^l in units of σ_w², and each layer multiplies by 1 + λ
    V / v_l, so that the product grows like L^λ. start: the centred mean square of the input.
    """
    below = start + np.arange(depth - 1) * one.spread
    steps = np.log1p(one.through * one.spread / below)
    return np.exp(np.append(np.cumsum(steps[::-1])[::-1], 0.0))


def _value_and_slope(
    function: Function, x: np.ndarray, gamma: float, beta: float
) -> tuple[np.ndarray, np.ndarray]:
    """φ(γx + β) and its derivative by x, from autograd: no derivative is written down twice."""
    at = torch.tensor(x, dtype=torch.float64, requires_grad=True)
    value = function(gamma * at + beta)
    if not value.requires_grad:
        return value.numpy(), np.zeros_like(x)
    (slope,) = torch.autograd.grad(value.sum(), at)
    return value.detach().numpy(), slope.numpy()


def _panels(edge: float, panels: int, kinks: np.ndarray, order: int = ORDER) -> tuple[np.ndarray, np.ndarray]:
    """Points and weights of Gauss and Legendre on panels of (-edge, edge), equal ones but that none has a
    kink inside."""
    x, w = np.polynomial.legendre.leggauss(order)
    edges = np.unique(np.concatenate([np.linspace(-edge, edge, panels + 1), kinks[np.abs(kinks) < edge]]))
    half = np.diff(edges)[:, None] / 2
    return ((edges[:-1, None] + half) + half * x).ravel(), (half * w).ravel()


def _normal_nodes(kinks: tuple[float, ...]) -> tuple[np.ndarray, np.ndarray]:
    x, w = _panels(12.0, 40 * PANELS, np.array(kinks))
    w = w * np.exp(-x * x / 2)
    return x, w / w.sum()


def _coordinate(power: int, panels: int, kinks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """One coordinate sin θ of a point on a sphere, density cos^power θ: power = dimension of the space -
    2."""
    angles = np.arcsin(kinks[np.abs(kinks) < 1])
    theta, w = _panels(min(math.pi / 2, 12 / math.sqrt(power + 1)), panels, angles)
    w = w * np.cos(theta) ** power
    return np.sin(theta), w / w.sum()


def _sphere_nodes(
    m: int, panels: int, kinks: tuple[float, ...]
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """u_1 (P,), u_2 given it (P, Q), and their weights (P,), (Q,): two values of one unit over a batch of
    m."""
    radius, c = math.sqrt(m - 1), -1 / (m - 1)
    t, weight = _coordinate(m - 3, panels, np.array(kinks) / radius)
    r, inner = _coordinate(m - 4, panels, np.array(()))
    second = c * t[:, None] + math.sqrt(1 - c * c) * np.sqrt(1 - t * t)[:, None] * r
    return radius * t, radius * second, weight, inner


# ---- Random fully connected networks with batch norm in every layer, in some, in none, or around skip -----
# connections


def chain(
    widths: Sequence[int],
    phi: str | Function = "relu",
    normalized: Collection[int] | None = None,
    sigma_w2: float = 2.0,
    sigma_b2: float = 0.0,
    gamma: float = 1.0,
) -> nn.Sequential:
    """`bnbook.models.mlp` with another nonlinearity, and batch norm in the hidden layers `normalized` only
    (None: in all).

    Layers count from 1; the last of widths is the linear readout's. h^l = φ(BN(W^l h^(l-1) + b^l)).
    BnbookError for a hidden layer that is not there, and whatever `mlp` refuses.
    """
    hidden = len(widths) - 2
    where = set(range(1, hidden + 1) if normalized is None else normalized)
    if wrong := sorted(where - set(range(1, hidden + 1))):
        raise BnbookError(f"no hidden layer {wrong[0]} to normalize; expected numbers from 1 to {hidden}")
    count = iter(range(1, hidden + 1))

    def norm(features: int, dim: int) -> nn.Module:
        return make_normalizer("batch" if next(count) in where else "none", features, dim)

    model = mlp(widths, norm, "meanfield", sigma_w2, sigma_b2, gamma)
    function = activation(phi)
    for layer in range(1, hidden + 1):
        setattr(model, f"relu{layer}", Elementwise(function))
    return model


class Branch(nn.Module):
    """x + W φ(BN(x)): a layer around which a connection skips."""

    def __init__(self, width: int, function: Function, gamma: float) -> None:
        super().__init__()
        self.norm, self.act = make_normalizer("batch", width), Elementwise(function)
        self.linear = linear(width, width)
        with torch.no_grad():
            self.norm.weight.fill_(gamma)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.linear(self.act(self.norm(x)))


def residual(
    widths: Sequence[int], phi: str | Function = "relu", sigma_w2: float = 2.0, gamma: float = 1.0
) -> nn.Sequential:
    """The same layers with skip connections: x^1 = W^1 x, x^(l+1) = x^l + W^(l+1) φ(BN(x^l)), readout of
    φ(BN(x^L)).

    Modules: linear1, block2, ..., blockL, norm, act, readout; as many weights as `chain` of the same widths,
    whose hidden layers must be equally wide. BnbookError if they are not.
    """
    if len(widths) < 3 or len(set(widths[1:-1])) != 1:
        raise BnbookError(f"widths {tuple(widths)}; expected inputs, equally wide hidden layers, outputs")
    width, hidden, function = whole("width", widths[1]), len(widths) - 2, activation(phi)
    modules: OrderedDict[str, nn.Module] = OrderedDict(linear1=linear(widths[0], width))
    for layer in range(2, hidden + 1):
        modules[f"block{layer}"] = Branch(width, function, gamma)
    modules |= {"norm": make_normalizer("batch", width), "act": Elementwise(function)}
    modules["readout"] = linear(width, widths[-1])
    model = nn.Sequential(modules)
    initialise([m for m in model.modules() if isinstance(m, nn.Linear)], "meanfield", sigma_w2, 0.0)
    with torch.no_grad():
        model.norm.weight.fill_(gamma)
    return model


def draw_networks(
    kind: str,
    widths: Sequence[int],
    seeds: int,
    phi: str | Function = "relu",
    first: int = 0,
    **options: float,
) -> Iterator[nn.Sequential]:
    """Random networks, one for each of `seeds` seeds from `first` on; options: those of `chain` or
    `residual`.

    kind: where batch norm stands. "batch": in every hidden layer, "residual": the same with skip connections,
    "none", or in one hidden layer, "one_first", "one_middle", "one_last". BnbookError for any other.
    """
    last = len(widths) - 2
    places = {
        "batch": None,
        "none": [],
        "one_first": [1],
        "one_middle": [(last + 1) // 2],
        "one_last": [last],
    }
    if kind not in (*places, "residual"):
        raise BnbookError(
            f"unknown kind of network {kind!r}; expected residual or one of {', '.join(places)}"
        )
    for seed in range(first, first + seeds):
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            if kind == "residual":
                network = residual(widths, phi, **options)
            else:
                network = chain(widths, phi, places[kind], **options)
        yield network


# ---- Short trainings of many deep networks at once: members differ in their seed and their learning rate ----
# A loop of its own: one by one, fifty layers of small matrices are all overhead, so vmap trains all members
# as one, which no observer of single networks can watch; it takes seconds and need not resume.


@dataclass(frozen=True)
class Trained:
    """What S seeds at A learning rates did in T steps; watched at K of them, in L layers (linear, in forward
    order)."""

    loss: np.ndarray  # (S, A, T)  of each batch before its update; NaN once not finite
    accuracy: np.ndarray  # (S, A, T)  share of each batch answered rightly before its update; NaN likewise
    gradient: np.ndarray  # (S, A, K, L)  ‖∂ℓ/∂W^l‖
    size: np.ndarray  # (S, A, K, L)  ‖W^l‖ before the update


def train(
    models: Sequence[nn.Sequential],
    rates: Sequence[float],
    images: Tensor,
    labels: Tensor,
    batches: Tensor,
    watched: Sequence[int] = (),
) -> Trained:
    """Plain gradient descent on the cross-entropy of mini-batches: every network (S) at every learning rate
    (A).

    images (n, units), labels (n,), batches (S, T, B): which examples each seed sees at each step, the same at
    all its rates. No momentum, no decay. A member that is no longer finite stays so and harms no other.
    watched: steps, from 0.
    """
    copies, count = len(rates), len(models)
    one = _without_averages(models[0])
    forward = vmap(lambda parameters, x: functional_call(one, parameters, (x,)))
    parameters = {
        name: same.detach().repeat_interleave(copies, 0)
        for name, same in stack_module_state(list(models))[0].items()
    }
    weights = [f"{name}.weight" for name, m in one.named_modules() if isinstance(m, nn.Linear)]
    rate = torch.tensor(rates, dtype=images.dtype).repeat(count)
    found: dict[str, list[Tensor]] = {"loss": [], "accuracy": [], "gradient": [], "size": []}
    for step in range(batches.shape[1]):
        chosen = batches[:, step]  # (S, B)
        x, target = (of[chosen].repeat_interleave(copies, 0) for of in (images, labels))
        leaves = {name: p.requires_grad_() for name, p in parameters.items()}
        outputs = forward(leaves, x).transpose(1, 2)  # (members, classes, B)
        loss = F.cross_entropy(outputs, target, reduction="none").mean(1)
        gradients = dict(zip(leaves, torch.autograd.grad(loss.sum(), list(leaves.values()))))
        with torch.no_grad():
            finite = torch.isfinite(loss)
            right = (outputs.argmax(1) == target).to(loss.dtype).mean(1)
            found["loss"].append(torch.where(finite, loss, torch.nan))
            found["accuracy"].append(torch.where(finite, right, torch.nan))
            if step in watched:
                for name, tensors in (("gradient", gradients), ("size", leaves)):
                    norms = [tensors[weight].flatten(1).double().norm(dim=1) for weight in weights]
                    found[name].append(torch.stack(norms, 1))
            parameters = {
                name: (p - rate.view(-1, *[1] * (p.ndim - 1)) * gradients[name]).detach()
                for name, p in leaves.items()
            }
    layers = len(weights)

    def arranged(tensors: list[Tensor], *rest: int) -> np.ndarray:
        if not tensors:
            return np.zeros((count, copies, 0, *rest))
        return torch.stack(tensors, 1).detach().double().numpy().reshape(count, copies, len(tensors), *rest)

    return Trained(
        arranged(found["loss"]),
        arranged(found["accuracy"]),
        arranged(found["gradient"], layers),
        arranged(found["size"], layers),
    )


def _without_averages(model: nn.Sequential) -> nn.Sequential:
    """A copy in training mode that keeps no running averages, which nobody reads here."""
    model = copy.deepcopy(model).train()
    for module in model.modules():
        if hasattr(module, "running_mean"):
            module.running_mean = module.running_var = None
    return model


# ---- What the trainings of `train` came to: share of right answers, and how far each layer was turned -----

GUESS = 0.1  # share of right answers of ten that a network without a finite output has


def last_fifth(accuracy: np.ndarray) -> np.ndarray:
    """Share of right answers over the last fifth of the steps, (S, A, T) -> (S, A); not finite: a guess."""
    last = max(1, accuracy.shape[2] // 5)
    return np.nan_to_num(accuracy[:, :, -last:], nan=GUESS).mean(axis=2)


def largest_usable(shares: np.ndarray, rates: Sequence[float], enough: float = 0.5) -> np.ndarray:
    """The largest learning rate at which more than `enough` of the answers are right, 0 where none is.

    shares (S, rates) -> (S,).
    """
    return (np.array(rates) * (shares > enough)).max(axis=1)


def at_chosen(values: np.ndarray, rates: Sequence[float], chosen: np.ndarray) -> np.ndarray:
    """Of values (S, rates, ...) those at each seed's chosen rate (S,), (S, ...); not a number where that is
    none of the rates."""
    places = [rates.index(rate) if rate in rates else None for rate in chosen.tolist()]
    none = np.full(values.shape[2:], np.nan)
    return np.array([none if k is None else values[seed, k] for seed, k in enumerate(places)])


def first_over_last(done: Trained) -> np.ndarray:
    """‖∂ℓ/∂W‖ of the first hidden layer over that of the last, (S, A, K); the readout, which comes last, is
    left out."""
    return done.gradient[..., 0] / done.gradient[..., -2]


def turn_spread(turned: np.ndarray) -> np.ndarray:
    """The largest turn of a hidden layer over the smallest, (S, K, L) -> (S, K); the last layer is left
    out."""
    hidden = turned[:, :, :-1]
    return hidden.max(axis=2) / hidden.min(axis=2)


# ---- What the chapter on gradient explosion measures in a network: growth per layer, by depth, and roughness ----

CLASSES = 10


def gaussian_batch(m: int, units: int, seed: int) -> tuple[Tensor, Tensor]:
    """m independent standard normal inputs (m, units) and labels (m,) drawn at random: nothing to learn,
    nothing alike."""
    generator = torch.Generator().manual_seed(10**6 + seed)
    return torch.randn(m, units, generator=generator), torch.randint(CLASSES, (m,), generator=generator)


def gradients(model: nn.Module, m: int, seed: int, statistics: str = "batch") -> LayerGradients:
    """Gradients of the cross-entropy on a `gaussian_batch`, layer by layer."""
    return measure(model, F.cross_entropy, gaussian_batch(m, _inputs(model), seed), statistics)


def fitted_growth(squares: np.ndarray, skip: int = 2) -> float:
    """The factor per layer downwards: exp(-slope) of log squares over the layers, `skip` left out at both
    ends.

    squares: (L,), first layer first. Below, the data are not yet mixed; on top, the gradient still knows the
    loss.
    """
    inside = np.arange(skip, len(squares) - skip)
    return float(np.exp(-np.polyfit(inside, np.log(squares[inside]), 1)[0]))


def depth_growth(first: np.ndarray, depths: np.ndarray | list[int]) -> np.ndarray:
    """The factor per added layer: exp(slope) of log first against the depths; first (S, depths) -> (S,)."""
    return np.exp(np.polyfit(depths, np.log(first).T, 1)[0])


def steadiness(first: np.ndarray, depths: np.ndarray | list[int]) -> np.ndarray:
    """What a layer adds to log first between the last two depths over what it adds between the first two, (S,
    depths) -> (S,): 1 for an exponential; for a power of the depth the first of the depths over the last but
    one."""
    added = np.diff(np.log(first), axis=1) / np.diff(depths)
    return added[:, -1] / added[:, 0]


def roughness(model: nn.Module, m: int, seed: int, shares: tuple[float, ...] = (1e-4, 1e-3, 1e-2)) -> float:
    """The largest change of the gradient per distance, ‖∇ℓ(θ) - ∇ℓ(θ_a)‖ / ‖θ - θ_a‖, along the gradient at
    θ.

    The distances are shares of ‖θ‖, the same for every network.
    """
    batch = gaussian_batch(m, _inputs(model), seed)
    size = total_norm([p.detach() for p in model.parameters() if p.requires_grad])
    slope = along_gradient(model, F.cross_entropy, batch, [1e-9]).start_norm
    steps = [float(share * size / slope) for share in shares]
    return float(along_gradient(model, F.cross_entropy, batch, steps).effective_smoothness)


def _inputs(model: nn.Module) -> int:
    return next(layer.in_features for layer in model.modules() if isinstance(layer, nn.Linear))


# ---- Figures, of recorded results alone -------------------------------------------------------------------

Results = Mapping[str, np.ndarray]
#: Words, mark, and where the words stand beside a point: all four have batch norm, and so its ink.
NONLINEARITIES = {
    "relu": ("ReLU", "o", (0, 11)),
    "tanh": ("tanh", "s", (0, 12)),
    "linear": ("linear", "D", (0, 10)),
    "zigzag": ("zigzag", "^", (-28, 0)),
}
#: Where batch norm stands -> words, ink, mark with dash.
KINDS = {
    "batch": ("batch norm in every layer", COLORS["batch"], "o-"),
    "residual": ("the same with skip connections", COLORS["skip"], "s--"),
    "none": ("no batch norm", COLORS["none"], "D-"),
    "one": ("one batch norm, in the middle", COLORS["one"], "^-."),
}
PLACES = {
    "batch": ("every layer", COLORS["batch"], "o-"),
    "one_last": ("the last only", COLORS["one"], ">:"),
    "one_middle": ("the middle one only", COLORS["one"], "^-."),
    "one_first": ("the first only", COLORS["one"], "<--"),
    "none": ("none", COLORS["none"], "D-"),
}
THEORY = {"color": COLORS["theory"]}


def _numbered(results: Results, start: str) -> list[int]:
    """The numbers with which names that begin so end, in their order."""
    return sorted(int(name.removeprefix(start)) for name in results if name.startswith(start))


def rates(results: Results) -> plt.Figure:
    """Growth of the squared gradient against the batch size: measured (S,) at each, theory (1, places)."""
    fig, ax = subplots(figsize=(7.2, 4.4))
    ink, sizes = {"color": COLORS["batch"]}, _numbered(results, "growth2.relu.m")
    middle = len(sizes) // 2
    for name, (words, mark, beside) in NONLINEARITIES.items():
        measured = np.stack([results[f"growth2.{name}.m{m}"] for m in sizes], axis=1)
        at, theory = results["curve.rates.batch_sizes"][0], results[f"curve.rates.{name}"][0]
        ax.plot(at, theory, linewidth=1.2, zorder=1, **ink)
        points(ax, sizes, measured, mark, markersize=5, capsize=2.5, **ink)
        place = (sizes[middle], measured[:, middle].mean())
        style = {"textcoords": "offset points", "ha": "center", "va": "center", "fontsize": 10}
        ax.annotate(words, place, beside, annotation_clip=False, **style, **ink)
    limit = math.pi / (math.pi - 1)
    for value, text, dash, size in (
        (limit, r"$\frac{\pi}{\pi-1}$", "--", 13),
        (limit**0.5, "its root", ":", 9),
    ):
        ax.axhline(value, linewidth=0.9, linestyle=dash, zorder=0.9, **THEORY)
        beside = {"textcoords": "offset points", "va": "center", "annotation_clip": False}
        ax.annotate(text, (2048, value), (7, 0), fontsize=size, **beside)
    ax.set(xscale="log", yscale="log", xlim=(6.3, 2048), ylim=(0.95, 8), xlabel="batch size $m$")
    ax.set_ylabel(r"growth per layer, $\lambda_m$ (squared gradient)")
    name_ticks(ax.set_xticks, sizes)
    name_ticks(ax.set_yticks, [1, 1.2, 1.5, 2, 3, 4, 6])
    return fig


def layers(results: Results) -> plt.Figure:
    """Norms (S, hidden layers) by kind; theory for batches of 64: a layer's factor, the profile of skip
    connections."""
    fig, ax = subplots(figsize=(7.2, 4.2))
    norms = {kind: results[f"curve.layers.{kind}"] for kind in ("batch", "residual", "none")}
    index = np.arange(1, norms["batch"].shape[1] + 1)
    for kind, values in norms.items():
        label, color, _ = KINDS[kind]
        log_band(ax, index, values, color=color, label=label)
    one = growth("relu", 64)
    skipped = np.sqrt(residual_profile(one, len(index)))
    start = 25 if len(index) >= 40 else (len(index) + 1) // 2  # where theory is set to agree
    height = {kind: np.exp(np.log(values).mean(0))[start - 1] for kind, values in norms.items()}
    line = height["batch"] * one.of_norm ** (start - index)
    ax.plot(index, line, ":", label=r"theory, $\lambda_{64}^{1/2}$ a layer", **THEORY)
    line = height["residual"] * skipped / skipped[start - 1]
    ax.plot(index[1:], line[1:], "--", label="theory, skip connections", **THEORY)
    ax.set(yscale="log", xlabel="layer", ylabel=r"$\|\partial\ell/\partial W^l\|$")
    ax.legend(ncols=2, loc="lower center", bbox_to_anchor=(0.5, 1.0), fontsize=9)
    return fig


SIZES = ("shallow", "middle", "deep")


def one_or_many(results: Results) -> plt.Figure:
    """First layer's squared gradient and roughness of the loss, (S, depths) by place of batch norm."""
    depths = results["curve.one_or_many.depth"][0]
    first = {
        kind: dict(y=np.sqrt(results[f"curve.one_or_many.first.{kind}"]), color=color, look=look, label=label)
        for kind, (label, color, look) in PLACES.items()
    }
    rough = {kind: first[kind] | dict(y=f"curve.one_or_many.rough.{kind}") for kind in ("batch", "none")}
    panels = [
        Panel(arms=first, ylabel=r"first layer's $\|\partial\ell/\partial W^1\|$"),
        Panel(arms=rough, ylabel="change of the gradient per distance"),
    ]
    words = dict(x=depths, ticks=depths, by="geometric", log="y", xlabel="hidden layers", legend="none")
    fig = compare(results, panels, figsize=(7.6, 4.6), **words)
    legend_below(fig, "batch norm after")
    return fig


def turning(results: Results) -> plt.Figure:
    """How far a step turns each hidden layer, (S, layers) by step."""
    steps = _numbered(results, "curve.turning.step")
    shades = map(to_hex, plt.cm.viridis(np.linspace(0, 0.9, len(steps))))
    arms = {f"{step}": dict(color=shade, label=f"step {step}") for step, shade in zip(steps, shades)}
    words = dict(
        xlabel="layer", ylabel=r"$\eta\,\|\partial\ell/\partial W^l\|\,/\,\|W^l\|$", log="y", by="geometric"
    )
    return compare(results, [Panel(curve="curve.turning.step{}", **words)], arms, figsize=(7.2, 4.0))


def training(results: Results) -> plt.Figure:
    """Shares of right answers (S, rates) by kind of network, a panel for each size."""
    arms = {kind: dict(color=color, look=look, label=label) for kind, (label, color, look) in KINDS.items()}
    titles = {
        f"curve.training.{size}.{{}}": f"{results[f'trained_layers.{size}'][0]:.0f} layers" for size in SIZES
    }
    words = dict(
        x="curve.training.rate", log="x", ylim=(0, 1), xlabel="learning rate", ylabel="share of right answers"
    )
    return compare(results, titles, arms, figsize=(7.8, 3.6), sharey=True, marks_y={"": GUESS}, **words)
