"""What can stand in for it, and what predicts? Layers that each do a part of what batch norm does, with
instruments and outcomes beside one another."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import matplotlib.pyplot as plt
import numpy as np
import torch
import torch.nn.functional as F
from scipy.stats import rankdata
from torch import Tensor

from bnbook.chapters.shared import CLASSES, Rows, largest_usable, pooled
from bnbook.data import load
from bnbook.errors import BnbookError
from bnbook.figures import COLORS, points_of
from bnbook.plots.layout import is_narrow, subplots
from bnbook.probes.activations import moment_change
from bnbook.probes.krylov import lanczos
from bnbook.training.numerics import numerics
from bookpress.results import Results

# ---- The layers that may stand where batch norm stands, as a table of small functions ---------------------

EPS = 1e-5
#: Mean and divisor of pre-activations z (M, B, N), each broadcasting over z.
Statistics = Callable[[Tensor], tuple[Tensor, Tensor]]


def over_batch(z: Tensor) -> tuple[Tensor, Tensor]:
    """Batch norm: μ and sqrt(σ² + ε) of each unit over the batch, (M, 1, N); Ioffe and Szegedy 2015."""
    variance, mean = torch.var_mean(z, 1, correction=0, keepdim=True)
    return mean, (variance + EPS).sqrt()


def mean_only(z: Tensor) -> tuple[Tensor, Tensor]:
    """The half that centres: μ and 1."""
    mean = z.mean(1, keepdim=True)
    return mean, torch.ones_like(mean)


def variance_only(z: Tensor) -> tuple[Tensor, Tensor]:
    """The half that divides: 0 and sqrt(σ² + ε), σ² about the mean that stays."""
    _, divisor = over_batch(z)
    return torch.zeros_like(divisor), divisor


def size(z: Tensor) -> Tensor:
    """|z|; torch's own loads its compiler, seconds, when it is differentiated twice."""
    return z * z.detach().sign()


def l1(z: Tensor) -> tuple[Tensor, Tensor]:
    """μ and the mean of |z| before centring (Santurkar et al. 2018, in the book's reading: `LpNorm`)."""
    return z.mean(1, keepdim=True), size(z).mean(1, keepdim=True) + EPS


def l2(z: Tensor) -> tuple[Tensor, Tensor]:
    """μ and the root of the mean of z² before centring."""
    return z.mean(1, keepdim=True), (z.square().mean(1, keepdim=True) + EPS).sqrt()


def linf(z: Tensor) -> tuple[Tensor, Tensor]:
    """μ and the largest |z| of the batch."""
    return z.mean(1, keepdim=True), size(z).amax(1, keepdim=True) + EPS


def layer(z: Tensor) -> tuple[Tensor, Tensor]:
    """Layer norm: mean and deviation of each example over its units, (M, B, 1); Ba, Kiros and Hinton 2016."""
    variance, mean = torch.var_mean(z, 2, correction=0, keepdim=True)
    return mean, (variance + EPS).sqrt()


def groups(number: int) -> Statistics:
    """Group norm: the same over each of `number` groups of neighbouring units, (M, B, N); Wu and He 2018."""

    def statistics(z: Tensor) -> tuple[Tensor, Tensor]:
        size = z.shape[-1] // number
        variance, mean = torch.var_mean(z.unflatten(-1, (number, size)), -1, correction=0, keepdim=True)
        spread = (*z.shape[:-1], number, size)
        return mean.expand(spread).flatten(-2), (variance + EPS).sqrt().expand(spread).flatten(-2)

    return statistics


def rms(z: Tensor) -> tuple[Tensor, Tensor]:
    """RMS norm: 0 and the root of the mean of z² of each example; Zhang and Sennrich 2019."""
    divisor = (z.square().mean(2, keepdim=True) + EPS).sqrt()
    return torch.zeros_like(divisor), divisor


def weight_norm(v: Tensor, gamma: Tensor) -> Tensor:
    """W = γ v / ‖v‖, a unit's weights a column: v (M, I, N), γ (M, N); Salimans and Kingma 2016."""
    return v * (gamma / v.norm(dim=1)).unsqueeze(1)


def weight_standardization(v: Tensor, gamma: Tensor) -> Tensor:
    """W = γ sqrt(2 / I) (v - mean v) / deviation of v, over a unit's I weights.

    Qiao et al. 2019, with the scale of He's initialization, as Brock et al. 2021 have it.
    """
    variance, mean = torch.var_mean(v, 1, correction=0, keepdim=True)
    return (v - mean) * (2 / v.shape[1]) ** 0.5 / (variance + EPS / v.shape[1]).sqrt() * gamma.unsqueeze(1)


@dataclass(frozen=True)
class StandIn:
    """One way to fill the place of batch norm; without any setting, nothing stands there: relu(z + β)."""

    words: str  # in tables
    statistics: Statistics | None = None  # of the activations
    weights: Callable[[Tensor, Tensor], Tensor] | None = None  # of the weights
    alpha: float | None = None  # relu(γ tanh(α z) + β), α trained, from here; Zhu et al. 2025
    meet: bool = False  # whether the examples of a batch meet in it
    after: bool = False  # behind the rectifier instead of before it
    frozen: bool = False  # γ and β stay 1 and 0
    only: int | None = None  # in this hidden layer alone (-1: the last), nothing in the others
    gain: float = 1.0  # of the first weights, over He's
    shaken: float = 0.0  # noise behind it, in units of Santurkar et al. 2018, Algorithm 1

    @property
    def scaled(self) -> bool:
        """Whether γ is part of it."""
        return bool(self.statistics or self.weights or self.alpha)


TABLE = {
    "none": StandIn("nothing"),
    "small": StandIn("nothing, first weights × 0.7", gain=0.7),
    "large": StandIn("nothing, first weights × 1.4", gain=1.4),
    "batch": StandIn("batch norm", over_batch, meet=True),
    "frozen": StandIn("batch norm, γ and β fixed", over_batch, meet=True, frozen=True),
    "after": StandIn("batch norm behind the rectifier", over_batch, meet=True, after=True),
    "first": StandIn("batch norm in the first layer alone", over_batch, meet=True, only=0),
    "last": StandIn("batch norm in the last hidden layer alone", over_batch, meet=True, only=-1),
    "mean": StandIn("batch mean alone", mean_only, meet=True),
    "variance": StandIn("batch variance alone", variance_only, meet=True),
    "l1": StandIn("ℓ1 over the batch", l1, meet=True),
    "l2": StandIn("ℓ2 over the batch", l2, meet=True),
    "linf": StandIn("ℓ∞ over the batch", linf, meet=True),
    "shaken_half": StandIn("batch norm, shaken × ½", over_batch, meet=True, shaken=0.5),
    "shaken": StandIn("batch norm, shaken", over_batch, meet=True, shaken=1.0),
    "shaken_twice": StandIn("batch norm, shaken × 2", over_batch, meet=True, shaken=2.0),
    "layer": StandIn("layer norm", layer),
    "layer_after": StandIn("layer norm behind the rectifier", layer, after=True),
    "group2": StandIn("group norm, 2 groups", groups(2)),
    "group8": StandIn("group norm, 8 groups", groups(8)),
    "rms": StandIn("RMS norm", rms),
    "weight": StandIn("weight norm", weights=weight_norm),
    "standardized": StandIn("weight standardization", weights=weight_standardization),
    "tanh_half": StandIn("tanh(z/2)", alpha=0.5),
    "tanh_two": StandIn("tanh(2z)", alpha=2.0),
}
#: Those in which an example is answered by itself: no relative of batch norm's.
ALONE = tuple(name for name, one in TABLE.items() if not one.meet)
#: Of them those that are blind to the length of their weights: the activations or the weights are divided by it.
BLIND = tuple(name for name in ALONE if TABLE[name].statistics or TABLE[name].weights)


def centred_layers(one: StandIn, layers: int) -> int:
    """In how many of the hidden layers the batch's mean is subtracted: what a definition tells without a measurement."""
    centres = one.meet and one.statistics is not variance_only
    return 0 if not centres else layers if one.only is None else 1


#: In which it is subtracted in front of every rectifier, and no noise is added to it.
CENTRED = tuple(
    name for name, one in TABLE.items() if centred_layers(one, 2) == 2 and not one.after and not one.shaken
)


# ---- Many fully connected networks side by side, with one of the layers of the table in each hidden layer ----

#: "weights", "gammas", "betas" and "alphas", a tensor for each hidden layer, and "readout", one.
Network = dict[str, list[Tensor]]
#: Santurkar et al. 2018, Algorithm 1: n_μ, n_σ - 1, r_μ, r_σ.
SHAKE = (0.5, 0.25, 0.1, 0.1)
#: Batches over which the statistics for inference are averaged.
SEEN = 32
#: Between the random numbers of two seeds' noise: more than a training has steps.
APART = 1_000_003


def draw(
    one: StandIn, widths: Sequence[int], seed: int, copies: int = 1, dtype: torch.dtype = torch.float32
) -> Network:
    """One network, M times: weights (M, I, N) from N(0, 2 / I), times the gain; γ, β (M, N), α (M, 1)."""
    generator = torch.Generator().manual_seed(seed)
    weights = []
    for inputs, units in zip(widths, widths[1:]):
        drawn = torch.randn(inputs, units, generator=generator, dtype=torch.float64) * (2 / inputs) ** 0.5
        weights.append((one.gain * drawn).to(dtype).repeat(copies, 1, 1))
    hidden = weights[:-1]
    ones = [torch.ones(copies, w.shape[2], dtype=dtype) for w in hidden]
    gammas = ones if one.weights is None or one.weights.__name__ != "weight_norm" else lengths(hidden)
    alphas = [torch.full((copies, 1), one.alpha or 0.0, dtype=dtype) for _ in hidden]
    betas = [torch.zeros_like(part) for part in ones]
    return {"weights": hidden, "gammas": gammas, "betas": betas, "alphas": alphas, "readout": weights[-1:]}


def lengths(weights: Sequence[Tensor]) -> list[Tensor]:
    """‖v‖ of each unit: weight norm with this γ is at first the network without it."""
    return [w.norm(dim=1) for w in weights]


def trained(network: Network, one: StandIn) -> list[tuple[str, int, Tensor]]:
    """What training changes and the answers depend on: name, number of the layer from 0, tensor."""
    depth = len(network["weights"])
    found = []
    for name, parts in network.items():
        for place, part in enumerate(parts):
            here = stands_in(one, place, depth)
            used = {
                "gammas": one.scaled and here and not one.frozen,
                "betas": not (one.frozen and here),
                "alphas": one.alpha is not None,
            }
            if used.get(name, True):
                found.append((name, depth if name == "readout" else place, part))
    return found


def stands_in(one: StandIn, place: int, depth: int) -> bool:
    """Whether the hidden layer at this place has the layer of the table."""
    return one.only is None or place == one.only % depth


def members(network: Network, chosen: Sequence[int]) -> Network:
    """Copies of these members, side by side."""
    return {name: [part.detach()[list(chosen)] for part in parts] for name, parts in network.items()}


def noise(one: StandIn, examples: int, widths: Sequence[int], key: int) -> list[tuple[Tensor, Tensor]]:
    """Scales and shifts (B, N) of one step for each hidden layer, the same for one key; none unless shaken.

    With k the strength: μ ~ U(-k n_μ, k n_μ) and σ ~ U(1, 1 + k (n_σ - 1)) a unit, then for each example
    s ~ N(σ, k r_σ), m ~ U(μ - k r_μ, μ + k r_μ).
    """
    if not one.shaken:
        return []
    generator = torch.Generator().manual_seed(key)
    n_mu, n_sigma, r_mu, r_sigma = (one.shaken * part for part in SHAKE)

    def uniform(*shape: int) -> Tensor:
        return torch.rand(shape, generator=generator)

    found = []
    for units in widths[1:-1]:
        mu, sigma = n_mu * (2 * uniform(units) - 1), 1 + n_sigma * uniform(units)
        s = sigma + r_sigma * torch.randn(examples, units, generator=generator)
        found.append((s, mu + r_mu * (2 * uniform(examples, units) - 1)))
    return found


def answers(
    one: StandIn,
    network: Network,
    inputs: Tensor,
    shaken: Sequence[tuple[Tensor, Tensor]] = (),
    fixed: Sequence[tuple[Tensor, Tensor]] = (),
    used: list[tuple[Tensor, Tensor]] | None = None,
    seen: list[Tensor] | None = None,
) -> Tensor:
    """(B, values) -> (M, B, classes): h^l = relu(a), a = γ norm(h^{l-1} W^l) + β, and the linear readout.

    `fixed` statistics take the place of a batch's where examples meet. `used` takes those that were used,
    `seen` what each rectifier receives, (M, B, N), and then what the readout receives.
    """
    h, depth = inputs, len(network["weights"])
    for place in range(depth):
        weight, gamma, beta, alpha = (
            network[name][place] for name in ("weights", "gammas", "betas", "alphas")
        )
        here = stands_in(one, place, depth)
        scale, shift = gamma.unsqueeze(1), beta.unsqueeze(1)

        def norm(z: Tensor) -> Tensor:
            mean, divisor = fixed[place] if fixed and one.meet else one.statistics(z)
            if used is not None:
                used.append((mean, divisor))
            z = torch.addcmul(shift, z - mean, scale / divisor)
            return torch.addcmul(shaken[place][1], z, shaken[place][0]) if shaken else z

        z = h @ (one.weights(weight, gamma) if one.weights else weight)
        if here and one.alpha is not None:
            a = scale * torch.tanh(alpha.unsqueeze(1) * z) + shift
        elif here and one.statistics and not one.after:
            a = norm(z)
        elif here and one.after:
            a = z
        else:
            a = z + shift
            if used is not None:
                used.append((torch.zeros(()), torch.ones(())))
        if seen is not None:
            seen.append(a)
        h = F.relu(a)
        if here and one.after:
            h = norm(h)
    if seen is not None:
        seen.append(h)
    return h @ network["readout"][0]


def mean_loss(found: Tensor, labels: Tensor) -> Tensor:
    """Cross-entropy of each member, (M,), of its answers (M, B, classes)."""
    return (
        F.cross_entropy(found.flatten(0, 1), labels.repeat(len(found)), reduction="none")
        .view(len(found), -1)
        .mean(1)
    )


def accuracy(
    one: StandIn, network: Network, seen: Tensor, inputs: Tensor, labels: Tensor, size: int
) -> Tensor:
    """Share of right answers of each member, (M,), undisturbed.

    Where examples meet, by the statistics of training images `seen`, averaged over `SEEN` batches of the
    training's size (the largest value of a batch belongs to its size).
    """
    with torch.no_grad():
        fixed: list[tuple[Tensor, Tensor]] = []
        if one.meet:
            batches = []
            for batch in seen[: SEEN * size].split(size):
                batches.append([])
                answers(one, network, batch, used=batches[-1])
            fixed = [tuple(torch.stack(parts).mean(0) for parts in zip(*layer)) for layer in zip(*batches)]
        right = [
            answers(one, network, part, fixed=fixed).argmax(-1) == target
            for part, target in zip(inputs.split(1000), labels.split(1000))
        ]
        return torch.cat(right, 1).double().mean(1)


# ---- What is measured of one network on the way: along its gradient, in its layers, of its curvature ------

#: Steps along the gradient, in units of the learning rate: near, those of the paper, and far.
NEAR, WITHIN, FAR = 1 / 20, (1 / 2, 1.0, 2.0, 4.0), 16.0
#: Of the largest curvature: the residual asked for, and iterations.
TOLERANCE, ITERATIONS = 0.02, 200


def gradients(
    one: StandIn, network: Network, batch: tuple[Tensor, Tensor], shaken: Sequence = ()
) -> tuple[Tensor, list[Tensor]]:
    """Loss of each member, (M,), and the gradient of each part that is trained, in its shape (M, ...)."""
    leaves = [part.requires_grad_() for _, _, part in trained(network, one)]
    losses = mean_loss(answers(one, network, batch[0], shaken), batch[1])
    found = torch.autograd.grad(losses.sum(), leaves)
    for leaf in leaves:
        leaf.requires_grad_(False)
    return losses.detach(), list(found)


def walk(
    one: StandIn, network: Network, batch: tuple[Tensor, Tensor], rate: float, shaken: Sequence = ()
) -> dict[str, float]:
    """One network (M = 1) at one step: what lies along its gradient, and how its layers move one another.

    With Δg(a) = ‖∇L(θ - a g) - g‖ and η the rate:
    - far: Δg(16η) / ‖g‖; near: Δg(η/20) / (η/20 ‖g‖); beta: the largest Δg(a) / (a ‖g‖), a from η/2 to 4η
    - range: largest less smallest loss, a from η/2 to 4η
    - shift_distance, shift_cosine: ‖G_i - G'_i‖ and the cosine of the two, mean over layers i from the second
      to the readout; G_i the gradient of the weights of layer i, G'_i that after the step of all parameters of the
      layers before it; of a weight-normalized layer that of the directions v alone, where
      `bnbook.probes.covariate_shift` takes v and the lengths g together
    Everything is one stack: members that stand along the gradient, and one for each layer i.
    Source: Santurkar et al. 2018, section 3.2 and Definition 2.1.
    """
    parts = [(name, place) for name, place, _ in trained(network, one)]
    _, gradient = gradients(one, network, batch, shaken)
    lengths = [NEAR, *WITHIN, FAR]
    depth = len(network["weights"])
    stacked: Network = {
        name: [part.detach().repeat(len(lengths) + depth, *[1] * (part.ndim - 1)) for part in own]
        for name, own in network.items()
    }
    for (name, place), g in zip(parts, gradient, strict=True):
        steps = lengths + [1.0 if place < layer else 0.0 for layer in range(1, depth + 1)]
        moved = stacked[name][0 if name == "readout" else place]
        moved -= rate * torch.tensor(steps, dtype=g.dtype).view(-1, *[1] * (g.ndim - 1)) * g
    losses, there = gradients(one, stacked, batch, shaken)
    norm = flat(gradient).norm()
    apart = (flat(there)[: len(lengths)] - flat(gradient)).norm(dim=1) / norm
    slopes = apart / (rate * torch.tensor(lengths, dtype=apart.dtype))
    within = losses[1 : 1 + len(WITHIN)]
    distances, cosines = [], []
    for layer in range(1, depth + 1):
        row = parts.index(("readout", depth) if layer == depth else ("weights", layer))
        before, after = gradient[row][0].flatten(), there[row][len(lengths) + layer - 1].flatten()
        distances.append((after - before).norm())
        cosines.append(before @ after / (before.norm() * after.norm()))
    found = {
        "far": apart[-1],
        "near": slopes[0],
        "beta": slopes[1:-1].max(),
        "range": within.max() - within.min(),
        "shift_distance": torch.stack(distances).mean(),
        "shift_cosine": torch.stack(cosines).mean(),
    }
    return {name: float(value) for name, value in found.items()}


def flat(parts: Sequence[Tensor]) -> Tensor:
    """Tensors (M, ...) as rows (M, P), in float64."""
    return torch.cat([part.flatten(1) for part in parts], 1).double()


def moments(one: StandIn, network: Network, inputs: Tensor, shaken: Sequence = ()) -> tuple[Tensor, Tensor]:
    """Mean and variance over the batch of what each rectifier receives, one network: (L N,) twice."""
    seen: list[Tensor] = []
    with torch.no_grad():
        answers(one, network, inputs, shaken, seen=seen)
    values = torch.cat([a[0].double() for a in seen[:-1]], 1)
    return values.mean(0), values.var(0, correction=0)


def growth(one: StandIn, network: Network, batch: tuple[Tensor, Tensor], shaken: Sequence = ()) -> float:
    """Factor a layer by which the squared gradient of what rectifiers receive grows from the last to the first."""
    seen: list[Tensor] = []
    leaf = network["weights"][0].requires_grad_()  # so that there is a graph
    loss = mean_loss(answers(one, network, batch[0], shaken, seen=seen), batch[1]).sum()
    first, last = torch.autograd.grad(loss, [seen[0], seen[-2]])
    leaf.requires_grad_(False)
    ratio = float(first.double().square().sum() / last.double().square().sum())
    return ratio ** (1 / max(len(seen) - 2, 1))


def curvature(one: StandIn, network: Network, batch: tuple[Tensor, Tensor], shaken: Sequence = ()) -> float:
    """Largest eigenvalue of the Hessian of one network, through the statistics of the batch (Pearlmutter 1994)."""
    leaves = [part.requires_grad_() for _, _, part in trained(network, one)]
    losses = mean_loss(answers(one, network, batch[0], shaken), batch[1])
    gradient = torch.cat([g.flatten() for g in torch.autograd.grad(losses.sum(), leaves, create_graph=True)])

    def product(u: Tensor) -> Tensor:
        return torch.cat([g.flatten() for g in torch.autograd.grad(gradient @ u, leaves, retain_graph=True)])

    value = lanczos(product, gradient.detach(), TOLERANCE, ITERATIONS)[0]
    for leaf in leaves:
        leaf.requires_grad_(False)
    return value


def readout_rate(one: StandIn, network: Network, inputs: Tensor, shaken: Sequence = ()) -> float:
    """2 / λ_max of the readout's block of the Hessian, all other parameters held: its critical rate.

    With p the softmax of an example and h what the readout receives, the block is
    (1/B) Σ h hᵀ ⊗ (diag p - p pᵀ).
    """
    seen: list[Tensor] = []
    with torch.no_grad():
        p = answers(one, network, inputs, shaken, seen=seen)[0].double().softmax(1)
    h = seen[-1][0].double()

    def product(u: Tensor) -> Tensor:
        of_answers = h @ u.view(h.shape[1], -1)
        of_answers = p * (of_answers - (p * of_answers).sum(1, keepdim=True))
        return (h.T @ of_answers).flatten() / len(h)

    start = torch.ones(h.shape[1] * p.shape[1], dtype=h.dtype)
    start += torch.linspace(0, 1, len(start), dtype=h.dtype)  # equal entries a row are an eigenvector of 0
    return 2 / lanczos(product, start, TOLERANCE, ITERATIONS)[0]


def weight_length(network: Network) -> np.ndarray:
    """Length of all hidden weights of each member, (M,)."""
    return flat(network["weights"]).norm(dim=1).numpy()


# ---- Each layer of the table in one small network: trained at all rates, with the instruments at the common one ----

#: Instrument -> sign with which a larger score promises more, and words.
INSTRUMENTS = {
    "far": (-1, "far smoothness, 16η"),
    "near": (-1, "near smoothness, η/20"),
    "beta": (-1, "effective β"),
    "range": (-1, "range of the loss"),
    "shift_distance": (-1, "covariate shift, distance"),
    "shift_cosine": (1, "covariate shift, cosine"),
    "drift_mean": (-1, "drift of means"),
    "drift_spread": (-1, "drift of variances"),
    "growth": (-1, "gradient growth, start"),
    "curvature": (-1, "largest curvature, start"),
    "length": (1, "growth of the weights"),
    "readout": (1, "readout's critical rate"),
}
#: Larger is better in each.
OUTCOMES = {"rate": "largest usable rate", "speed": "training speed", "accuracy": "test accuracy"}
#: Instruments of which the mean over the probes is one of logarithms.
IN_LOGS = ("far", "near", "beta", "range", "shift_distance", "readout")


@dataclass(frozen=True)
class Plan:
    """The settings that all seeds share."""

    data: str
    pool: int  # pixels a side that are averaged
    width: int
    layers: int
    batch_size: int
    steps: int
    probes: int  # looks at the instruments, evenly over the steps at the full rate, the first at the start
    rates: Sequence[float]  # η, a grid, the smallest first
    common: float  # the one of them at which instruments are read

    @property
    def full(self) -> int:
        """Steps at the full rate; over the last fifth of the training it falls to 0 in a straight line."""
        return self.steps - self.steps // 5

    def share(self, step: int) -> float:
        """Of its rate, at a step."""
        return min(1.0, (self.steps - step) / (self.steps - self.full + 1))

    def widths(self, inputs: int) -> tuple[int, ...]:
        return (inputs, *[self.width] * self.layers, CLASSES)


def trials(plan: Plan, seed: int) -> dict[str, dict[str, float]]:
    """All layers of the table from one seed: the same first draws and batches. Name -> what `trial` gives."""
    if plan.common not in plan.rates:
        raise BnbookError(f"common rate {plan.common:g}; expected one of the grid {list(plan.rates)}")
    with numerics(torch.device("cpu"), 1):
        dataset = load(plan.data)
        seen, test = pooled(dataset, "train", plan.pool), pooled(dataset, "test", plan.pool)
        return {name: trial(one, plan, seed, seen, test) for name, one in TABLE.items()}


def linear(plan: Plan, seed: int) -> dict[str, float]:
    """The floor: softmax regression on the same batches, at all rates; what `outcomes` gives.

    A network without a hidden layer; a further input that is always 1 stands for the biases.
    """
    with numerics(torch.device("cpu"), 1):
        dataset = load(plan.data)
        splits = (pooled(dataset, split, plan.pool) for split in ("train", "test"))
        seen, test = ((F.pad(x, (0, 1), value=1.0), labels) for x, labels in splits)
        network = draw(TABLE["none"], (seen[0].shape[1], CLASSES), seed, len(plan.rates))
        rows, rates = Rows(*seen, plan.batch_size, seed), np.array(plan.rates)
        losses = [
            descend(TABLE["none"], network, next(rows), plan.share(step) * rates, ())
            for step in range(plan.steps)
        ]
        return outcomes(TABLE["none"], plan, network, np.array(losses), seen, test)


def trial(one: StandIn, plan: Plan, seed: int, seen: tuple, test: tuple) -> dict[str, float]:
    """Instruments at the common rate, by the names of `INSTRUMENTS`, and outcomes, by those of `OUTCOMES`.

    rate: log2 of the largest usable one (`largest_usable`); speed: minus the mean loss
    over the steps at the full rate, at the rate where that is smallest; accuracy: on the test images, at the
    rate whose loss over the last fifth of the steps is smallest. What diverges is NaN.
    """
    widths, common = plan.widths(seen[0].shape[1]), list(plan.rates).index(plan.common)
    network = draw(one, widths, seed, len(plan.rates))
    rows = Rows(*seen, plan.batch_size, seed)
    first, start = next(Rows(*seen, plan.batch_size, seed)), weight_length(network)
    looks = set(np.linspace(0, plan.full, plan.probes, endpoint=False).astype(int))
    found: dict[str, list[float]] = {}
    moving, losses = [], []
    with np.errstate(all="ignore"):
        for step in range(plan.steps):
            batch = next(rows)
            shaken = noise(one, plan.batch_size, widths, seed * APART + step)
            if step in looks:
                own = members(network, [common])
                moving.append(moments(one, own, first[0], shaken))
                read = look(one, own, batch, plan.common, shaken, step == 0)
                for name, value in read.items():
                    found.setdefault(name, []).append(value)
            losses.append(descend(one, network, batch, plan.share(step) * np.array(plan.rates), shaken))
        measured = {
            name: float(np.log2(values).mean() if name in IN_LOGS else np.mean(values))
            for name, values in found.items()
        }
        change = moment_change(*(np.array([pair[k].numpy() for pair in moving]) for k in (0, 1)))
        measured |= {"drift_mean": change[0].mean(), "drift_spread": change[1].mean()}
        measured["length"] = float(np.log2(weight_length(network) / start)[common])
        return measured | outcomes(one, plan, network, np.array(losses), seen, test)


def look(one, own, batch, rate, shaken, start) -> dict[str, float]:
    """The instruments of one network (M = 1) at one step; of one that has diverged no curvature."""
    read = walk(one, own, batch, rate, shaken)
    standing = np.isfinite(read["near"])
    read["readout"] = readout_rate(one, own, batch[0], shaken) if standing else np.nan
    if start:
        read["growth"] = growth(one, own, batch, shaken)
        read["curvature"] = curvature(one, own, batch, shaken)
    return read


def descend(one: StandIn, network: Network, batch, rates: Sequence[float], shaken) -> np.ndarray:
    """One step of gradient descent of each member at its own rate, in place; the losses before it, (M,)."""
    losses, found = gradients(one, network, batch, shaken)
    eta = torch.as_tensor(rates, dtype=losses.dtype)
    with torch.no_grad():
        for (_, _, part), gradient in zip(trained(network, one), found):
            part.sub_(eta.view(-1, *[1] * (part.ndim - 1)) * gradient)
    return losses.numpy()


def outcomes(one, plan: Plan, network: Network, losses: np.ndarray, seen, test) -> dict[str, float]:
    """Rate, speed and accuracy from the losses (T, M) and the trained members."""
    losses = np.where(np.isfinite(losses), losses, np.inf)
    whole, falling = losses[: plan.full].mean(0), losses[plan.full - 1 :].mean(0)
    late = losses[plan.full - max(plan.steps // 5, 1) : plan.full].mean(0)  # the last at the full rate
    best = members(network, [int(falling.argmin())])
    right = accuracy(one, best, seen[0], *test, plan.batch_size)
    late = np.where(np.isfinite(whole), late, np.inf)
    return {"rate": largest_usable(plan.rates, late), "speed": -float(whole.min()), "accuracy": float(right)}


def tables(found: Sequence[Mapping[str, Mapping[str, float]]]) -> dict[str, np.ndarray]:
    """Instrument or outcome -> (S, configurations), from what `trials` gives of each seed."""
    return {
        name: np.array([[one[each][name] for each in TABLE] for one in found])
        for name in (*INSTRUMENTS, *OUTCOMES)
    }


def rank_correlation(score: np.ndarray, outcome: np.ndarray) -> float:
    """Spearman's: the correlation of the ranks of two rows; what is no number ranks last, ties share a rank; NaN where
    one row is all ties, where `bnbook.curves.rank_correlation` has 0."""
    one, other = (rankdata(np.where(np.isfinite(row), row, -np.inf)) for row in (score, outcome))
    return float(np.corrcoef(one, other)[0, 1])


def correlations(
    table: Mapping[str, np.ndarray], chosen: Sequence[str] = tuple(TABLE)
) -> dict[str, np.ndarray]:
    """ "INSTRUMENT.OUTCOME" -> (S,), rank correlation over the chosen configurations, seed by seed."""
    columns = [list(TABLE).index(name) for name in chosen]
    return {
        f"{name}.{outcome}": np.array(
            [
                rank_correlation(sign * score, reached)
                for score, reached in zip(table[name][:, columns], table[outcome][:, columns])
            ]
        )
        for name, (sign, _) in INSTRUMENTS.items()
        for outcome in OUTCOMES
    }


def counted(table: Mapping[str, np.ndarray], layers: int) -> dict[str, np.ndarray]:
    """Outcome -> (S,): rank correlation of the number of layers that centre, a control for every instrument."""
    count = np.array([centred_layers(one, layers) for one in TABLE.values()])
    return {name: np.array([rank_correlation(count, row) for row in table[name]]) for name in OUTCOMES}


#: How often the layers are drawn again.
RESAMPLED = 2000


def resampled(table: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """ "INSTRUMENT.OUTCOME" -> (S, RESAMPLED): rank correlation over as many layers, drawn with replacement, the
    same ones for all seeds. A draw of a single layer has none and counts as 0."""
    size = len(TABLE)
    chosen = np.random.default_rng(0).integers(size, size=(RESAMPLED, size))

    def ranks_of(row: np.ndarray) -> np.ndarray:
        ranked = rankdata(np.where(np.isfinite(row), row, -np.inf)[chosen], axis=1)
        ranked -= ranked.mean(axis=1, keepdims=True)
        return ranked / np.maximum(np.linalg.norm(ranked, axis=1, keepdims=True), 1e-12)

    reached = {name: [ranks_of(row) for row in table[name]] for name in OUTCOMES}
    found = {}
    for name, (sign, _) in INSTRUMENTS.items():
        scores = [ranks_of(sign * row) for row in table[name]]
        for outcome, rows in reached.items():
            found[f"{name}.{outcome}"] = np.array([(a * b).sum(1) for a, b in zip(scores, rows)])
    return found


def kept(outcome: np.ndarray, name: str) -> np.ndarray:
    """An outcome (S, K) of a layer above half of batch norm's gain over nothing, (S,): of log2 rates, octaves."""
    plain, full, own = (outcome[:, list(TABLE).index(each)] for each in ("none", "batch", name))
    return own - (plain + full) / 2


def share_kept(outcome: np.ndarray, name: str) -> np.ndarray:
    """Which share of batch norm's gain over nothing a layer keeps, (S,), by the gain's mean over the seeds."""
    plain, full, own = (outcome[:, list(TABLE).index(each)] for each in ("none", "batch", name))
    return (own - plain) / (full - plain).mean()


def agreement(table: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Outcome -> (S,): rank correlation of each seed's outcome with the mean of the other seeds'."""
    found = {}
    for outcome in OUTCOMES:
        values = table[outcome]
        others = [np.delete(values, seed, axis=0).mean(axis=0) for seed in range(len(values))]
        found[outcome] = np.array([rank_correlation(*pair) for pair in zip(values, others)])
    return found


# ---- Figures ----------------------------------------------------------------------------------------------

#: Points of a scatter that have a name beside them -> its words: layers that the text speaks of.
NAMED = {
    "none": "nothing",
    "small": "nothing × 0.7",
    "large": "nothing × 1.4",
    "batch": "batch norm",
    "mean": "mean",
    "variance": "variance",
    "layer": "layer norm",
    "tanh_half": "tanh(z/2)",
    "tanh_two": "tanh(2z)",
}
RAISED = {"variance": 7, "mean": -4, "layer": -6}  # points, for names that would meet
#: Whose names meet one another on a phone; the tables have them.
CROWDED = ("small", "mean", "variance", "layer")
#: What else is too long there for its row.
SHORT = {
    "small": "nothing × 0.7",
    "large": "nothing × 1.4",
    "frozen": "γ, β fixed",
    "after": "behind ReLU",
    "first": "batch norm, first",
    "last": "batch norm, last",
    "mean": "mean alone",
    "variance": "variance alone",
    "l1": "ℓ1",
    "l2": "ℓ2",
    "linf": "ℓ∞",
    "shaken_half": "shaken × ½",
    "shaken": "shaken",
    "shaken_twice": "shaken × 2",
    "layer_after": "layer, behind",
    "group2": "2 groups",
    "group8": "8 groups",
    "standardized": "standardized",
}


def mean_ranks(values: np.ndarray) -> np.ndarray:
    """(S, K) -> (K,): ranks from 0 to 1 of each seed, what is no number last; mean over the seeds."""
    ranks = np.array([rankdata(np.where(np.isfinite(row), row, -np.inf)) for row in values])
    return (ranks.mean(axis=0) - 1) / (values.shape[1] - 1)


def ranks(scores: Mapping[str, np.ndarray]) -> plt.Figure:
    """Ranks by each instrument and outcome, (S, K) each, larger is better: a row a layer, a column each."""
    columns = [*INSTRUMENTS, *OUTCOMES]
    grid = np.array([mean_ranks(scores[name]) for name in columns]).T
    order = np.argsort(-grid[:, columns.index("rate")], kind="stable")
    fig, ax = subplots(figsize=(8.0, 8.4))
    ax.imshow(grid[order], cmap="Greys", vmin=0, vmax=1.25, aspect="auto")
    words = [words for _, words in INSTRUMENTS.values()] + list(OUTCOMES.values())
    ax.set_xticks(range(len(columns)), words, rotation=55, ha="left", fontsize=9, rotation_mode="anchor")
    names = {key: one.words for key, one in TABLE.items()} | (SHORT if is_narrow() else {})
    ax.set_yticks(range(len(TABLE)), [list(names.values())[k] for k in order], fontsize=9)
    ax.xaxis.tick_top()
    ax.axvline(len(INSTRUMENTS) - 0.5, color=COLORS["theory"], linewidth=1.5)
    ax.grid(visible=False)
    return fig


def scatter(drawn: Mapping[str, np.ndarray]) -> plt.Figure:
    """Largest usable rate against far smoothness and the readout's critical rate, (S, K) each, geometric means."""
    fig, axes = subplots(1, 2, figsize=(8.6, 4.4), sharey=True)
    middle = {name: np.exp(np.log(values).mean(axis=0)) for name, values in drawn.items()}
    for ax, name, words in zip(
        axes, ("far", "readout"), ("change of the gradient 16η away", "readout's critical rate")
    ):
        numbers = middle[name][np.isfinite(middle[name])]
        least, most = numbers.min(), numbers.max()
        for place, (key, one) in enumerate(TABLE.items()):
            ink = COLORS["batch"] if key == "batch" else COLORS["none"] if key == "none" else COLORS["theory"]
            x, y = middle[name][place], middle["rate"][place]
            if not np.isfinite(x):
                continue
            ax.plot(
                x,
                y,
                "o" if one.meet else "s",
                color=ink,
                markersize=5,
                fillstyle="full" if one.meet else "none",
            )
            if key in NAMED and not (is_narrow() and key in CROWDED):
                left = np.log(x) > (np.log(least) + np.log(most)) / 2  # of its point, in the right half
                where = {"ha": "right" if left else "left", "va": "center", "fontsize": 8, "color": ink}
                off = (-6 if left else 6, RAISED.get(key, 0))
                ax.annotate(NAMED[key], (x, y), off, textcoords="offset points", **where)
        ax.set(xscale="log", yscale="log", xlabel=words)
    axes[0].set_ylabel("largest usable rate")
    axes[0].plot([], [], "o", color=COLORS["theory"], label="examples meet")
    axes[0].plot([], [], "s", color=COLORS["theory"], fillstyle="none", label="they do not")
    axes[0].legend(loc="lower left", fontsize=8.5)
    return fig


# ---- Each figure of the page, from the results of its run -----------------------------------------------


def _draw_ranks(results: Results) -> plt.Figure:
    found = points_of(results, "ranks")
    return ranks({name.removeprefix("score_"): values for name, values in found.items()})


FIGURES = {"ranks": _draw_ranks, "scatter": lambda results: scatter(points_of(results, "scatter"))}
