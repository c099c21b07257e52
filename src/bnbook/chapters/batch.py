"""What changes when the batch does? Small networks at many batch sizes, and which statistics they answer by."""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

import matplotlib.pyplot as plt
import numpy as np
import torch
import torch.nn.functional as F
from torch import Generator, Tensor, nn

from bnbook.data import Dataset, normalise
from bnbook.errors import BnbookError
from bnbook.figures import COLORS, points_of
from bnbook.normalizers import make_normalizer
from bnbook.normalizers.batch import BatchNorm
from bnbook.plots.panels import Panel, compare

# ---- The networks of all seeds side by side in one, and plain SGD on batches of any size and order --------

CHANNELS = (16, 32, 64)  # of the 3×3 convolutions, stride 2: maps of 8×8, 4×4 and 2×2 positions
HIDDEN = 64  # units of the fully connected layer behind them, which have one value an example
PER_GROUP = 8  # channels of one group of group norm


@dataclass(frozen=True)
class Recipe:
    """All that decides a training but its seed and its images."""

    norm: str  # "none", "batch" or "group"
    batch: int  # m
    rate: float  # η of plain SGD
    ghost: int = 0  # batch norm over so many examples at a time; 0: over the whole batch
    by_class: bool = False  # every batch holds one class
    dense: bool = True  # with the fully connected layer, whose units have one value an image


class GhostBatchNorm(nn.Module):
    """Batch norm in which only `size` examples meet: each part of a training batch by its own statistics.

    y = [BN(x_1), ..., BN(x_k)], x = [x_1, ..., x_k]; at inference the running averages over all parts.
    Source: Hoffer, Hubara and Soudry 2017, Algorithm 1 (the ghost batches; here the averages weight each part).
    """

    def __init__(self, norm: nn.Module, size: int) -> None:
        super().__init__()
        self.norm, self.size = norm, size

    def forward(self, x: Tensor) -> Tensor:
        return torch.cat([self.norm(part) for part in x.split(self.size)]) if self.training else self.norm(x)


def shrink(images: Tensor, dataset: Dataset) -> Tensor:
    """uint8 (m, C, H, W) to normalised float32 (m, C, H/2, W/2): means over 2×2 pixels."""
    parts = [F.avg_pool2d(normalise(part, dataset), 2) for part in images.split(4096)]
    return torch.cat(parts)


def network(recipe: Recipe, seeds: Sequence[int], image: Sequence[int], classes: int = 10) -> nn.Sequential:
    """S networks in one, (B, S·C, H, W) → (B, S·classes, 1, 1): every layer has S groups that never meet.

    Per seed: three 3×3 convolutions of stride 2 and a fully connected layer, each with the recipe's normalizer and
    ReLU, and a linear readout; weights N(0, 2 / fan_in), biases 0, the same whatever the normalizer.
    """
    members, (features, height, _), layers = len(seeds), image, []
    generators = [Generator().manual_seed(seed) for seed in seeds]
    for units in CHANNELS:
        layer = nn.Conv2d(members * features, members * units, 3, stride=2, padding=1, groups=members)
        layers += [drawn(layer, generators), normalizer(recipe, members * units), nn.ReLU()]
        features, height = units, -(-height // 2)
    if recipe.dense:  # its kernel is the whole map
        layer = nn.Conv2d(members * features, members * HIDDEN, height, groups=members)
        layers += [drawn(layer, generators), normalizer(recipe, members * HIDDEN), nn.ReLU()]
        features, height = HIDDEN, 1
    layers += [drawn(nn.Conv2d(members * features, members * classes, height, groups=members), generators)]
    return nn.Sequential(*layers).train()


@torch.no_grad()
def drawn(layer: nn.Conv2d, generators: Sequence[Generator]) -> nn.Conv2d:
    """Each member's weights from its own generator."""
    scale = math.sqrt(2 / layer.weight[0].numel())
    for weights, generator in zip(layer.weight.view(len(generators), -1), generators):
        weights.copy_(scale * torch.randn(weights.shape, generator=generator))
    layer.bias.zero_()
    return layer


def normalizer(recipe: Recipe, features: int) -> nn.Module:
    """The recipe's, for `features` channels of all members: in none of the three do channels of two members meet."""
    if recipe.norm == "group":
        return make_normalizer("group", features, 2, groups=features // PER_GROUP)
    layer = make_normalizer(recipe.norm, features, 2)
    return GhostBatchNorm(layer, recipe.ghost) if recipe.ghost else layer


def orders(recipe: Recipe, seeds: Sequence[int], labels: Tensor, count: int) -> Tensor:
    """Which images each step of each seed sees, (T, m, S): the first `count` of the seed's own permutation.

    In batches of one class they are sorted by class, cut, what is left of a class dropped, and the batches mixed.
    """
    found = []
    for seed in seeds:
        generator = Generator().manual_seed(1_000_003 + seed)  # another than the weights'
        order = torch.randperm(len(labels), generator=generator)[:count]
        if recipe.by_class:
            own = [order[labels[order] == label] for label in labels.unique()]
            whole = [each[: len(each) // recipe.batch * recipe.batch] for each in own]
            batches = torch.cat(whole).view(-1, recipe.batch)
            order = batches[torch.randperm(len(batches), generator=generator)].flatten()
        found.append(order)
    steps = min(map(len, found)) // recipe.batch
    if not steps:
        raise BnbookError(f"no batch of {recipe.batch} in {count} images; expected more images")
    return torch.stack([order[: steps * recipe.batch] for order in found], -1).view(steps, recipe.batch, -1)


def loss_of(outputs: Tensor, targets: Tensor) -> Tensor:
    """Σ_s mean_i of the cross-entropy, (B, S·classes, 1, 1), (B, S) → (): each member's gradient is its own."""
    members = targets.shape[1]
    logits = outputs.view(len(targets), members, -1)
    return members * F.cross_entropy(logits.flatten(0, 1), targets.flatten())


def train(
    recipe: Recipe, seeds: Sequence[int], images: Tensor, labels: Tensor, count: int, classes: int = 10
) -> nn.Sequential:
    """One pass over `count` images a seed by θ ← θ - η ∇L(θ), L of a batch of m; the trained networks."""
    model = network(recipe, seeds, images.shape[1:], classes)
    optimizer = torch.optim.SGD(model.parameters(), lr=recipe.rate, foreach=True)
    for chosen in orders(recipe, seeds, labels, count):  # (m, S): images (m, S, C, H, W) → (m, S·C, H, W)
        optimizer.zero_grad(set_to_none=True)
        loss_of(model(images[chosen].flatten(1, 2)), labels[chosen]).backward()
        optimizer.step()
    return model


# ---- Gradients of one batch and of its parts added up -----------------------------------------------------


def gradient(model: nn.Sequential, images: Tensor, labels: Tensor, members: int, part: int) -> Tensor:
    """∇ of the mean loss over one batch, added up over its parts of `part` examples: (S, P), all parameters.

    Every member sees images (B, C, H, W), labels (B,); B a multiple of `part`. The model keeps its state.
    """
    model = copy.deepcopy(model).train()
    for x, y in zip(images.split(part), labels.split(part), strict=True):
        loss = loss_of(model(x.repeat(1, members, 1, 1)), y[:, None].expand(-1, members))
        (loss * len(y) / len(labels)).backward()
    return torch.cat([p.grad.view(members, -1) for p in model.parameters()], 1)


def distance(found: Tensor, wanted: Tensor) -> np.ndarray:
    """‖found - wanted‖ / ‖wanted‖ of each member, (S, P) → (S,)."""
    return ((found - wanted).norm(dim=1) / wanted.norm(dim=1)).numpy()


def as_ghost(model: nn.Sequential, size: int) -> nn.Sequential:
    """A copy whose batch norms see `size` examples at a time."""
    layers = copy.deepcopy(model)
    return nn.Sequential(
        *[GhostBatchNorm(each, size) if isinstance(each, BatchNorm) else each for each in layers]
    )


# ---- One network, several answers: by which statistics of its batch norm it is asked ----------------------

CHUNK = 512  # examples of a forward pass where no statistics are taken


def layers_of(model: nn.Module) -> list[BatchNorm]:
    """Its batch norms, in order."""
    return [module for module in model.modules() if isinstance(module, BatchNorm)]


@torch.no_grad()
def precise(model: nn.Sequential, images: Tensor, members: int) -> nn.Sequential:
    """A copy whose batch norms answer by mean and variance over all of `images` (m, C, H, W).

    Layer by layer, E[x] and E[x²] - E[x]² of what reaches it while those before it stand at inference already: on
    these images the copy answers as the model does in training, with all of them in one batch.
    """
    model = copy.deepcopy(model).eval()
    for layer in layers_of(model):
        sums = torch.zeros(2, layer.features, dtype=torch.float64)
        count = [0]

        def add(
            module: nn.Module, inputs: tuple[Tensor], sums: Tensor = sums, count: list[int] = count
        ) -> None:
            values, exact = inputs[0], dict(dim=(0, 2, 3), dtype=torch.float64)
            sums[0] += values.sum(**exact)
            sums[1] += values.square().sum(**exact)
            count[0] += values[:, 0].numel()
            raise Stop

        hook = layer.register_forward_pre_hook(add)
        for part in images.split(CHUNK):
            with suppress(Stop):
                model(part.repeat(1, members, 1, 1))
        hook.remove()
        mean, square = sums / count[0]
        layer.running_mean.copy_(mean)
        layer.running_var.copy_(square - mean**2)
    return model


class Stop(Exception):
    """A layer has seen what it was asked about; those behind it need not run."""


@torch.no_grad()
def outputs(model: nn.Module, images: Tensor, members: int, batch: int = 0) -> Tensor:
    """Logits (S, m, classes): at inference, or in training mode in batches of `batch` examples, in their order.

    The model stays as it is; what does not fill the last batch is left out.
    """
    model = copy.deepcopy(model).train(bool(batch))
    whole = images[: len(images) // batch * batch] if batch else images
    parts = [model(part.repeat(1, members, 1, 1)) for part in whole.split(batch or CHUNK)]
    return torch.cat(parts).view(len(whole), members, -1).transpose(0, 1)


def error(logits: Tensor, labels: Tensor) -> np.ndarray:
    """Share of wrong answers of each member, (S, m, classes), (m,) → (S,)."""
    return (logits.argmax(-1) != labels[: logits.shape[1]]).double().mean(1).numpy()


# ---- One layer whose units are Gaussian and whose examples are independent: how far its two modes lie apart ----


def shrinkage(m: int) -> float:
    """c_m = E[σ_B] of m standard Gaussian values, divisor m: √(2/m) Γ(m/2) / Γ((m-1)/2), about 1 - 3/(4m)."""
    return math.sqrt(2 / m) * math.exp(math.lgamma(m / 2) - math.lgamma((m - 1) / 2))


def mode_gap(m: int) -> float:
    """Root mean square of x̂ - x, x̂ by the batch and x by the population: √(2 (1 - c_m)).

    E[x̂²] = E[x²] = 1 and E[x x̂] = E[Σ x (x - μ) / (m σ)] = E[σ] = c_m. Its leading term is √(3/(2m)).
    """
    return math.sqrt(2 * (1 - shrinkage(m)))


def memory(weight: float) -> float:
    """√(w/(2-w)): a running average's standard deviation over one batch's, from Σ_k w² (1-w)^{2k} = w/(2-w)."""
    return math.sqrt(weight / (2 - weight))


# ---- Figures ----------------------------------------------------------------------------------------------

#: What a result's name is made of -> words, ink, marks and line.
LINES = {
    "batch.{}.running": ("batch norm, running averages", COLORS["batch"], "o-"),
    "batch.{}.precise": ("batch norm, precise averages", COLORS["batch"], "s--"),
    "batch.{}.own": ("batch norm, by the batch", COLORS["batch"], "^:"),
    "group.{}.running": ("group norm", COLORS["part"], "D-"),
}


def errors(sizes: Sequence[int], curves: Mapping[str, np.ndarray]) -> plt.Figure:
    """Test error in per cent against the batch size m, "error.NORM.mM.BY" (S,): means with their intervals."""
    arms = {}
    for place, (name, (words, ink, look)) in enumerate(LINES.items()):
        values = np.stack([curves["error." + name.format(f"m{m}")] for m in sizes], axis=1)
        beside = np.array(sizes) * 1.03 ** (place - 1.5)  # so that intervals do not hide one another
        arms[name] = dict(x=beside, y=values, color=ink, look=look, label=words)
    words = dict(
        title="What does a small batch cost?", xlabel="batch size m", ylabel="test error in per cent"
    )
    return compare(
        curves, [Panel(by="points", times=100, log="x", ticks=sizes, **words)], arms, figsize=(6.8, 3.9)
    )


# ---- Each figure of the page, from the results of its run -----------------------------------------------


FIGURES = {"errors": lambda results: errors((2, 8, 32, 128), points_of(results, "errors"))}
