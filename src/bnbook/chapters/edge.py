"""What sets the smoothness, the network or the learning rate? Small networks at the edge of stability."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import matplotlib.pyplot as plt
import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bnbook import models
from bnbook.data import Dataset, normalise
from bnbook.errors import BnbookError
from bnbook.figures import LABELS, parameters_of, points_of
from bnbook.plots.panels import Panel, compare
from bnbook.probes.functional import Batch, Loss
from bnbook.probes.hessian import curvature_along_gradient, largest_curvature
from bnbook.probes.landscape import along_gradient
from bnbook.small_networks.descent import member_loss
from bnbook.small_networks.stack import Stack, stack_models
from bookpress.results import Results

# ---- Gradient descent on a few hundred images, full batch or mini-batch, on a stack of seeds and learning rates ----

POOL = 4  # pixels to a side that are averaged into one: 32 × 32 images become 8 × 8
SIGMA_W2 = (
    0.5  # without batch norm the two smaller rates begin below the edge, the largest at it; no network dies
)
BATCHES = 2_000_003  # of the seeds of the mini-batches


@dataclass
class Members:
    """Networks side by side: a stack, the images (S, m, C, H, W) and labels (S, m) of each, its rate (S,)."""

    stack: Stack
    images: Tensor
    labels: Tensor
    rates: Tensor
    twin: nn.Sequential  # of the same shape, to put one member's parameters in

    def model(self, member: int) -> nn.Sequential:
        """One member as a network of torch's own layers, in training mode; the next call overwrites it."""
        layers = [m for m in self.twin if isinstance(m, nn.Linear)]
        norms = [m for m in self.twin if hasattr(m, "running_mean")]
        with torch.no_grad():
            for layer, weight, bias in zip(layers, self.stack.weights, self.stack.biases, strict=True):
                layer.weight.copy_(weight[member].T)
                layer.bias.copy_(bias[member])
            for layer, gamma, beta in zip(norms, self.stack.gammas, self.stack.betas):
                layer.weight.copy_(gamma[member])
                layer.bias.copy_(beta[member])
        return self.twin.train()

    def batch(self, member: int, chosen: Tensor | slice = slice(None)) -> tuple[Tensor, Tensor]:
        """Images and one-hot targets of one member."""
        return self.images[member, chosen], F.one_hot(self.labels[member, chosen], 10).to(self.images)

    def length(self) -> Tensor:
        """‖W‖ of the hidden layers' weights together, (S,)."""
        return sum(w.square().sum((1, 2)) for w in self.stack.weights[:-1]).sqrt()

    def fastest(self, factor: float) -> Members:
        """A copy of those at the largest rate, at `factor` times that rate; it goes its own way."""
        where, own = self.rates == self.rates.max(), self.stack
        groups = ([p.detach()[where] for p in g] for g in (own.weights, own.biases, own.gammas, own.betas))
        stack = Stack(*groups, own.kernel, own.stride)
        return Members(stack, self.images[where], self.labels[where], factor * self.rates[where], self.twin)


def squared(outputs: Tensor, targets: Tensor) -> Tensor:
    """Half the squared error to the one-hot targets, mean over the examples."""
    return 0.5 * (outputs - targets).square().sum() / len(outputs)


def drawn(
    norm: str,
    rates: Sequence[float],
    seeds: Sequence[int],
    dataset: Dataset,
    examples: int,
    hidden: Sequence[int],
) -> Members:
    """Members for every rate and seed, rates first; a seed has one set of images and one set of first
    weights, N(0, SIGMA_W2 / fan-in), whatever its norm and rate."""
    networks, images, labels = [], [], []
    for seed in seeds:
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            order = torch.randperm(len(dataset.train_labels))[:examples]
            own = F.avg_pool2d(normalise(dataset.train_images[order], dataset), POOL)
            networks.append(models.mlp((own[0].numel(), *hidden, 10), norm, "meanfield", SIGMA_W2, 0.0))
        images.append(own)
        labels.append(dataset.train_labels[order])
    return Members(
        stack_models(networks * len(rates)),
        torch.stack(images * len(rates)),
        torch.stack(labels * len(rates)),
        torch.tensor([rate for rate in rates for _ in seeds]),
        networks[0],
    )


def descend(
    members: Members,
    steps: int,
    looks: Sequence[int],
    momentum: float = 0.0,
    batch_size: int = 0,
    seeds: Sequence[int] = (),
) -> Iterator[int]:
    """θ ← θ - η v, v ← μ v + ∇L(θ), in place; gives each step of `looks` before its update, the last being
    `steps`.

    batch_size 0: all images at each step; else as many, drawn anew at each step by the member's own
    generator, from `seeds` (S,).
    """
    draw = [torch.Generator().manual_seed(BATCHES + seed) for seed in seeds]
    velocity = [torch.zeros_like(p) for p in members.stack.parameters]
    count = members.labels.shape[1]
    images, labels = members.images, members.labels
    rows = torch.arange(len(members.rates))[:, None]
    for step in range(steps + 1):
        if step in looks:
            yield step
        if step == steps:
            return
        if batch_size:
            chosen = torch.stack([torch.randperm(count, generator=one)[:batch_size] for one in draw])
            images, labels = members.images[rows, chosen], members.labels[rows, chosen]
        leaves = [p.requires_grad_() for p in members.stack.parameters]
        loss = member_loss(members.stack(images)[0], labels, "squared").sum()
        gradients = torch.autograd.grad(loss, leaves)
        for p, v, g in zip(leaves, velocity, gradients):
            p.requires_grad_(False)
            torch.add(g, v, alpha=momentum, out=v)
            p.addcmul_(v, members.rates.view(-1, *[1] * (p.ndim - 1)), value=-1)


# ---- What is measured of each member on the way: the largest curvature, that along the gradient, and ------
# how far the gradient holds

LENGTHS = (0.05, 0.5, 1.0, 2.0, 4.0, 16.0)  # in learning rates
TOLERANCE = 1e-3  # of the largest eigenvalue
FRESH = 3_000_017  # of the seeds of the batches that are looked at
Looks = dict[str, np.ndarray]  # name -> (S, P) or (S, P, LENGTHS)


def full_batch(members: Members, steps: int, looks: Sequence[int], momentum: float = 0.0) -> Looks:
    """Train on all images and look at every member: "loss", "curvature" λ_max, "along" g^T H g/‖g‖², (S, P);
    "change" ‖∇L(θ) - ∇L(θ_a)‖/‖∇L(θ)‖ (S, P, LENGTHS). NaN from where a member's loss is not finite."""
    rows = []
    for _ in descend(members, steps, looks, momentum):
        rows.append([_look(members, member) for member in range(len(members.rates))])
    return _stacked(rows)


def mini_batch(
    members: Members,
    seeds: Sequence[int],
    steps: int,
    looks: Sequence[int],
    batch_size: int,
    batches: int,
    momentum: float = 0.0,
) -> Looks:
    """The same with mini-batches; each look is at `batches` fresh ones: "along" is the mean of g^T H g over
    that of ‖g‖² (S, P), "change" the median of them (S, P, LENGTHS), "loss" that of all images."""
    rows = []
    for step in descend(members, steps, looks, momentum, batch_size, seeds):
        row = []
        for member, seed in enumerate(seeds):
            draw = torch.Generator().manual_seed(FRESH + 1009 * seed + step)
            count = members.labels.shape[1]
            some = [torch.randperm(count, generator=draw)[:batch_size] for _ in range(batches)]
            row.append(_look_at_batches(members, member, some))
        rows.append(row)
    return _stacked(rows)


def _look(members: Members, member: int) -> dict[str, np.ndarray]:
    model, batch, rate = members.model(member), members.batch(member), float(members.rates[member])
    steps = [rate * length for length in LENGTHS]
    try:
        top = largest_curvature(model, squared, batch, tolerance=TOLERANCE)
    except BnbookError:
        return _nothing() | {"curvature": np.array(np.nan)}
    seen = along_gradient(model, squared, batch, steps)
    return {
        "loss": seen.start_loss.numpy(),
        "curvature": np.array(top.value),
        "along": np.array(top.along_gradient),
        "change": (seen.gradient_distance / seen.start_norm).numpy(),
    }


def _look_at_batches(members: Members, member: int, some: Sequence[torch.Tensor]) -> dict[str, np.ndarray]:
    model, rate = members.model(member), float(members.rates[member])
    steps = [rate * length for length in LENGTHS]
    forms, changes = [], []
    try:
        for chosen in some:
            batch = members.batch(member, chosen)
            forms.append(curvature_along_gradient(model, squared, batch))
            seen = along_gradient(model, squared, batch, steps)
            changes.append((seen.gradient_distance / seen.start_norm).numpy())
    except BnbookError:
        return _nothing()
    form, square = np.array(forms).T
    images, targets = members.batch(member)
    with torch.no_grad():
        loss = squared(model(images), targets).numpy()
    return {"loss": loss, "along": form.mean() / square.mean(), "change": np.median(changes, axis=0)}


def _nothing() -> dict[str, np.ndarray]:
    gone = np.array(np.nan)
    return {"loss": gone, "along": gone, "change": np.full(len(LENGTHS), np.nan)}


def _stacked(rows: Sequence[Sequence[dict[str, np.ndarray]]]) -> Looks:
    return {name: np.stack([[one[name] for one in row] for row in rows], axis=1) for name in rows[0][0]}


# ---- What becomes of the looks at a training: its last third, the effective β of each look, and a case ----
# that is spent

REACH = (0.5, 4.0)  # learning rates, as in appendix A.2.2 of Santurkar et al. 2018
STEEPEST = 100.0  # times 2/η, the largest curvature of a case that is spent


def last_third(values: np.ndarray, looks: Sequence[int]) -> np.ndarray:
    """Median over the looks in the last third of a training, (S, P, ...) -> (S, ...)."""
    steps = np.asarray(looks)
    return np.median(values[:, 3 * steps >= 2 * steps[-1]], axis=1)


def effective_smoothness(change: np.ndarray, rates: np.ndarray) -> np.ndarray:
    """max_a ‖∇L(θ) - ∇L(θ_a)‖ / (a ‖∇L(θ)‖) over a in REACH, from changes (S, P, LENGTHS) and rates (S,)."""
    lengths = np.array(LENGTHS)
    within = (lengths >= REACH[0]) & (lengths <= REACH[1])
    return (change / lengths)[..., within].max(-1) / rates[:, None]


def joined(first: Looks, second: Looks) -> Looks:
    """Two stretches of one training; the look at the seam comes once."""
    return {name: np.concatenate([first[name], second[name][:, 1:]], axis=1) for name in first}


def spent_case(seed: int, rate: float) -> tuple[nn.Module, Loss, Batch]:
    """A linear unit with the squared hinge loss ½ max(0, 1 - w^T x)² on one example, at w^T x = 0, float64.

    The only curvature is ‖x‖² ≥ 2/η, log-uniform up to STEEPEST times that: a step of η/2 along the gradient
    reaches w^T x ≥ 1, where the loss is flat and the gradient 0.
    """
    draw = np.random.default_rng(seed)
    x = draw.normal(size=5)
    x *= np.sqrt(np.exp(draw.uniform(0, np.log(STEEPEST))) * 2 / rate * (1 + 1e-9)) / np.linalg.norm(x)
    unit = nn.Linear(5, 1, bias=False).double()
    with torch.no_grad():
        unit.weight.zero_()
    return unit, squared_hinge, (torch.from_numpy(x)[None], torch.ones(1, 1, dtype=torch.float64))


def squared_hinge(outputs: Tensor, targets: Tensor) -> Tensor:
    """½ max(0, 1 - y f)², mean over the examples."""
    return 0.5 * (1 - targets * outputs).clamp(min=0).square().mean()


# ---- Figures ----------------------------------------------------------------------------------------------

DASHES = ((0, (1, 1.2)), (0, (5, 2)), "-")  # the slowest rate first
TITLES = {norm: LABELS[norm] for norm in ("none", "batch")}


def edge(
    curves: Mapping[str, np.ndarray], looks: Sequence[int], rates: Sequence[float], halved: Sequence[int]
) -> plt.Figure:
    """A column an arm: above η λ_max at each rate, top.RATE.NORM (1, 3, P); below λ_max at the largest rate,
    kept.NORM, and after it was halved, halved.NORM."""
    panels = ([], [])
    below = dict(marks_y={"2/η": 2 / rates[-1], "4/η": 4 / rates[-1]}, ylabel=r"$\lambda_{\max}$")
    for norm, title in TITLES.items():
        top = {
            f"{rate:g}": dict(y=f"top.{_tag(rate)}.{norm}", color=norm, linestyle=dash, label=f"η = {rate:g}")
            for rate, dash in zip(rates, DASHES)
        }
        kept = {"kept": dict(y=f"kept.{norm}", color=norm, label="rate kept")}
        kept["halved"] = dict(
            x=halved, y=f"halved.{norm}", color=norm, linestyle=DASHES[1], label="rate halved"
        )
        panels[0].append(Panel(arms=top, title=title, marks_y={"2": 2.0}, ylabel=r"$\eta\,\lambda_{\max}$"))
        panels[1].append(Panel(arms=kept, **below))
    words = dict(x=looks, log="y", xlabel="training step", legend="each")
    return compare(curves, panels, figsize=(7.6, 5.6), sharex=True, sharey="row", **words)


def _tag(rate: float) -> str:
    return f"lr{rate:g}".replace(".", "_")


# ---- Each figure of the page, from the results of its run -----------------------------------------------


def _draw_edge(results: Results) -> plt.Figure:
    own = parameters_of(results)
    half = own.steps // 2
    every, looks = range(0, 2 * half + 1, own.look_every), range(0, half + 1, own.look_every)
    return edge(points_of(results, "edge"), every, own.rates, [half + step for step in looks])


FIGURES = {"edge": _draw_edge}
