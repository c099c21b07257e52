"""Is weight decay a learning rate? Trainings, the angle of a step, and recipes that are one training."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import matplotlib.pyplot as plt
import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from bnbook.chapters.shared import Rows, pooled
from bnbook.data import load
from bnbook.figures import COLORS, log_band, parameters_of, points_of
from bnbook.plots.axes import power
from bnbook.plots.layout import is_narrow, subplots
from bnbook.plots.panels import Panel, compare
from bnbook.training.numerics import numerics
from bookpress.results import Results

# ---- Many small fully connected networks at once, batch norm or nothing in each hidden layer, and their images ----

#: "weights", "gammas" and "betas", a tensor for each hidden layer, and "readout", one.
Network = dict[str, list[Tensor]]
#: In place of ε = 0, which torch refuses: below the rounding error of any variance, so that a layer is blind
#: to the length of its weights to the last digit.
NO_EPS = 1e-30


def draw(widths: Sequence[int], seed: int, members: int, dtype: torch.dtype = torch.float32) -> Network:
    """One network, M times: weights (M, inputs, units) from N(0, 2 / inputs), γ = 1 and β = 0 (M, units).

    There are no biases: batch norm takes them out, and without it β is one.
    """
    generator = torch.Generator().manual_seed(seed)
    weights = []
    for inputs, units in zip(widths, widths[1:]):
        drawn = torch.randn(inputs, units, generator=generator, dtype=torch.float64) * (2 / inputs) ** 0.5
        weights.append(drawn.to(dtype).repeat(members, 1, 1))
    ones = [torch.ones(members, units, dtype=dtype) for units in widths[1:-1]]
    betas = [torch.zeros_like(one) for one in ones]
    return {"weights": weights[:-1], "gammas": ones, "betas": betas, "readout": weights[-1:]}


def trained(network: Network, norm: str) -> list[tuple[str, Tensor]]:
    """All parameters that the answers depend on, each with the name of its group: γ is batch norm's."""
    return [
        (name, part)
        for name, parts in network.items()
        if name != "gammas" or norm != "none"
        for part in parts
    ]


def copied(network: Network, members: Sequence[int]) -> Network:
    """Copies of these members, side by side."""
    return {name: [part.detach()[list(members)] for part in parts] for name, parts in network.items()}


def answers(
    network: Network,
    inputs: Tensor,
    norm: str = "batch",
    eps: float = NO_EPS,
    statistics: Sequence[tuple[Tensor, Tensor]] | None = None,
    used: list[tuple[Tensor, Tensor]] | None = None,
) -> Tensor:
    """(B, values) -> (M, B, classes): h^l = relu(γ (z - μ) / sqrt(σ² + eps) + β), z = h^{l-1} W^l.

    Without batch norm (norm "none") h^l = relu(z + β); the readout is linear. μ and σ² are those of the batch,
    which `used` then takes (with divisor B - 1, as for inference), or the given `statistics`.
    """
    members, h = len(network["readout"][0]), inputs
    for place, (weight, gamma, beta) in enumerate(
        zip(network["weights"], network["gammas"], network["betas"])
    ):
        if place == 0:  # the same images for all: one product
            z = h @ weight.transpose(0, 1).flatten(1)
        else:
            z = torch.bmm(h, weight).transpose(0, 1).flatten(1)  # (B, M units)
        if norm == "none":
            z = z + beta.flatten()
        elif statistics:
            mean, variance = statistics[place]
            z = F.batch_norm(z, mean, variance, gamma.flatten(), beta.flatten(), eps=eps)
        else:
            running = [torch.zeros_like(z[0]), torch.zeros_like(z[0])] if used is not None else [None, None]
            z = F.batch_norm(z, *running, gamma.flatten(), beta.flatten(), True, 1.0, eps)
            if used is not None:
                used.append(tuple(running))
        h = F.relu(z).view(len(inputs), members, -1).transpose(0, 1)
    return torch.bmm(h, network["readout"][0])


def mean_loss(found: Tensor, labels: Tensor) -> Tensor:
    """Cross-entropy of each member, (M,), of its answers (M, B, classes)."""
    flat = F.cross_entropy(found.flatten(0, 1), labels.repeat(len(found)), reduction="none")
    return flat.view(len(found), -1).mean(1)


def accuracies(network: Network, norm: str, seen: Tensor, inputs: Tensor, labels: Tensor) -> Tensor:
    """Share of right answers of each member, (M,), by the statistics of the training images `seen`."""
    with torch.no_grad():
        used: list[tuple[Tensor, Tensor]] = []
        answers(network, seen, norm, used=used)
        right = [
            answers(network, part, norm, statistics=used).argmax(-1) == target
            for part, target in zip(inputs.split(2000), labels.split(2000))
        ]
    return torch.cat(right, 1).double().mean(1)


# ---- Stochastic gradient descent with weight decay on many members at once, with what is read on the way ----

#: What a recipe may decay: the hidden layers' weights; those of all layers; γ and β, too.
DECAYED = {
    "hidden": ("weights",),
    "weights": ("weights", "readout"),
    "all": ("weights", "readout", "gammas", "betas"),
}
#: AdamW's β₁, β₂ and ε, as in torch.
FIRST, SECOND, SMALL = 0.9, 0.999, 1e-8
#: The training images whose statistics a test uses; the test is the mean over this many looks, a tenth of the
#: training apart, the last at its end.
SEEN, LOOKS = 5_000, 3


@dataclass(frozen=True)
class Recipe:
    """How one member is trained."""

    rate: float  # η, of all parameters
    decay: float  # λ
    momentum: float = 0.0  # α
    decayed: str = "hidden"  # a name of `DECAYED`
    norm: str = "batch"
    optimizer: str = "sgd"

    @property
    def angle(self) -> float:
        """The angle a step that is expected at equilibrium: √(2ηλ / (1 + α)), √(2ηλ (1 - β₁) / (1 + β₁))."""
        slower = 1 + self.momentum if self.optimizer == "sgd" else (1 + FIRST) / (1 - FIRST)
        return (2 * self.rate * self.decay / slower) ** 0.5


def angle_between(before: Tensor, after: Tensor) -> Tensor:
    """The angle between two sets of weights (M, inputs, units) of a layer, taken as one vector a member, (M,).

    2 atan2(‖a - b‖, ‖a + b‖) of the unit vectors a and b (Kahan): an arc cosine loses half the digits of a
    small angle.
    """
    a, b = (w.flatten(1) / w.flatten(1).norm(dim=1, keepdim=True) for w in (before, after))
    return 2 * torch.atan2((a - b).norm(dim=1), (a + b).norm(dim=1))


def train(
    network: Network,
    recipes: Sequence[Recipe],
    rows: Rows,
    steps: int,
    every: int,
    test: tuple[Tensor, Tensor] | None = None,
) -> dict[str, np.ndarray]:
    """Train the members in place, one recipe each, of one norm and optimizer; all see the same batches.

    SGD: v ← α v + ∇L + λ w, w ← w - η v, which without momentum is w ← (1 - ηλ) w - η ∇L, decay coupled or
    not. AdamW: w ← (1 - ηλ) w - η m̂ / (√v̂ + ε).

    - angle (M, L, T / every): of each hidden layer's weights, before against after every `every`-th step
    - norm (M, L, T / every): ‖W^l‖ before that step
    - accuracy (M,): on the test images, mean of `LOOKS` looks; only with `test`
    """
    norm, kind = recipes[0].norm, recipes[0].optimizer
    rate, decay, momentum = (
        torch.tensor([getattr(one, name) for one in recipes], dtype=network["readout"][0].dtype)
        for name in ("rate", "decay", "momentum")
    )
    parameters = trained(network, norm)
    decays = {
        name: decay * torch.tensor([name in DECAYED[one.decayed] for one in recipes]) for name in network
    }
    memory = [(torch.zeros_like(part), torch.zeros_like(part)) for _, part in parameters]
    looks = {steps - look * (steps // 10) for look in range(LOOKS)}
    turned, lengths, seen = [], [], []
    for step in range(steps):
        inputs, labels = next(rows)
        leaves = [part.requires_grad_() for _, part in parameters]
        gradients = torch.autograd.grad(mean_loss(answers(network, inputs, norm), labels).sum(), leaves)
        looking = (step + 1) % every == 0
        with torch.no_grad():
            before = [w.clone() for w in network["weights"]] if looking else []
            for (name, part), gradient, (first, second) in zip(parameters, gradients, memory):
                shape = (-1, *[1] * (part.ndim - 1))
                eta, lam, alpha = rate.view(shape), decays[name].view(shape), momentum.view(shape)
                part.requires_grad_(False)
                if kind == "sgd":
                    first.mul_(alpha).add_(gradient).addcmul_(part, lam)
                    part.addcmul_(first, eta, value=-1)
                else:
                    first.lerp_(gradient, 1 - FIRST)
                    second.mul_(SECOND).addcmul_(gradient, gradient, value=1 - SECOND)
                    size = (second / (1 - SECOND ** (step + 1))).sqrt_().add_(SMALL)
                    part.mul_(1 - eta * lam)
                    part.sub_(eta * first / (1 - FIRST ** (step + 1)) / size)
            if looking:
                turned.append([angle_between(*pair) for pair in zip(before, network["weights"])])
                lengths.append([w.flatten(1).norm(dim=1) for w in before])
            if test and step + 1 in looks:
                seen.append(accuracies(network, norm, rows.inputs[:SEEN], *test))
    found = {"angle": turned, "norm": lengths}
    found = {
        name: torch.stack([torch.stack(row) for row in rows]).permute(2, 1, 0) for name, rows in found.items()
    }
    if test:
        found["accuracy"] = torch.stack(seen).mean(0)
    return {name: values.double().numpy() for name, values in found.items()}


# ---- Two recipes side by side in float64: are they one training? ------------------------------------------


def answers_by_step(
    network: Network,
    rows: Rows,
    rates: np.ndarray,
    decays: np.ndarray,
    other_rate: float,
    norm: str = "batch",
    eps: float = NO_EPS,
) -> Tensor:
    """The answers to each batch before its step, (T, M, B, classes); trains the members in place.

    Hidden weights: w ← (1 - η_t λ) w - η_t ∇L with `rates` η_t (T, M) and `decays` λ (M,); readout, γ and β:
    θ ← θ - η ∇L with `other_rate`, no decay.
    """
    parameters = trained(network, norm)
    found = []
    for eta in torch.as_tensor(rates):
        inputs, labels = next(rows)
        leaves = [part.requires_grad_() for _, part in parameters]
        given = answers(network, inputs, norm, eps)
        gradients = torch.autograd.grad(mean_loss(given, labels).sum(), leaves)
        found.append(given.detach())
        with torch.no_grad():
            for (name, part), gradient in zip(parameters, gradients):
                part.requires_grad_(False)
                if name == "weights":
                    own, keep = eta.view(-1, 1, 1), (1 - eta * torch.as_tensor(decays)).view(-1, 1, 1)
                    part.mul_(keep).sub_(own * gradient)
                else:
                    part.sub_(other_rate * gradient)
    return torch.stack(found)


def scaled(network: Network, factors: np.ndarray) -> Network:
    """The network with the weights of hidden layer l of member m multiplied by factors[m, l], (M, L)."""
    by_layer = torch.as_tensor(factors).T
    weights = [w * c.view(-1, 1, 1).to(w) for w, c in zip(network["weights"], by_layer)]
    return network | {"weights": weights}


def apart(found: Tensor) -> np.ndarray:
    """‖answers of member 1 - answers of member 0‖ / ‖answers of member 0‖ by step, (T,)."""
    one, other = found[:, 0].flatten(1), found[:, 1].flatten(1)
    return ((other - one).norm(dim=1) / one.norm(dim=1)).numpy()


# ---- What the chapter on weight decay measures of each seed: angles, relaxation, accuracies, pairs of recipes ----

#: Of the strengths that one takes with SGD and momentum: the usual decay and ten times that.
RATE, MOMENTUM, DECAYS = 0.05, 0.9, (5e-4, 5e-3)
#: Of AdamW: rate and decay.
ADAMW = (2e-3, 0.5)
#: What a settled angle is asked of, beside the grid: name, kind and member, momentum with the strong decay.
ARMS = (("momentum", "usual", 2), ("adamw", "adamw", 0))
#: Of two recipes side by side: rate and decay, and the largest factor on the weights.
PAIR, FACTOR = (0.1, 0.1), 10.0
#: |W|⁴ is doubled, and waited for over this many expected times of relaxation.
DOUBLED, WAITED = 2.0, 2.5
#: Points of a drawn curve.
DRAWN = 36


@dataclass(frozen=True)
class Plan:
    """The settings that all seeds share."""

    data: str
    pool: int  # pixels a side that are averaged
    width: int  # units of each of the hidden layers
    layers: int
    batch_size: int
    steps: int
    every: int  # steps between two looks at the angle
    pair_steps: int  # of two recipes side by side
    rates: Sequence[float]
    products: Sequence[float]  # ηλ

    @property
    def grid(self) -> list[Recipe]:
        """All rates for the first product, then for the next."""
        return [Recipe(rate, product / rate) for product in self.products for rate in self.rates]

    @property
    def recipes(self) -> dict[str, list[Recipe]]:
        """By kind: "grid", hidden weights decayed; "usual", SGD with momentum and decay on all weights, by
        `DECAYS`, first without and then with γ and β; "plain", the middle product without batch norm; "around",
        the others without it; "adamw".
        """
        row = len(self.products) // 2 * len(self.rates)
        without = [Recipe(one.rate, one.decay, norm="none") for one in self.grid]
        return {
            "grid": self.grid,
            "usual": [Recipe(RATE, lam, MOMENTUM, what) for lam in DECAYS for what in ("weights", "all")],
            "plain": without[row : row + len(self.rates)],
            "around": without[:row] + without[row + len(self.rates) :],
            "adamw": [Recipe(*ADAMW, optimizer="adamw")],
        }

    def network(self, inputs: int, seed: int, members: int, dtype: torch.dtype = torch.float32) -> Network:
        return draw((inputs, *[self.width] * self.layers, 10), seed, members, dtype)


def trainings(plan: Plan, seed: int) -> dict[str, np.ndarray]:
    """All trainings of a seed, by the kinds of `Plan.recipes`: "KIND.angle" (M, L, T / every) in radians,
    "KIND.norm", "KIND.accuracy" (M,); and "surplus" (products, L, steps), see `surplus`."""
    with numerics(torch.device("cpu"), 1):
        dataset = load(plan.data)
        seen, test = pooled(dataset, "train", plan.pool), pooled(dataset, "test", plan.pool)
        found = {}
        for kind, recipes in plan.recipes.items():
            network = plan.network(seen[0].shape[1], seed, len(recipes))
            rows = Rows(*seen, plan.batch_size, seed)
            read = train(network, recipes, rows, plan.steps, plan.every, test)
            found |= {f"{kind}.{name}": values for name, values in read.items()}
            if kind == "grid":
                found["surplus"] = surplus(plan, network, rows)
    return found


def surplus(plan: Plan, network: Network, rows: Rows) -> np.ndarray:
    """(products, L, steps): the trained members at the middle rate go on, beside copies whose |W|⁴ is
    `DOUBLED` in each hidden layer; the difference of |W|⁴ over what it was at first."""
    middle = [row * len(plan.rates) + len(plan.rates) // 2 for row in range(len(plan.products))]
    pair = copied(network, middle * 2)
    for weight in pair["weights"]:
        weight[len(middle) :] *= DOUBLED**0.25
    steps = int(np.ceil(WAITED / (4 * min(plan.products))))
    recipes = [plan.grid[member] for member in middle]
    fourth = train(pair, recipes * 2, rows, steps, 1)["norm"] ** 4  # (2 products, L, steps)
    excess = fourth[len(middle) :] - fourth[: len(middle)]
    return excess / excess[..., :1]


def degrees(plan: Plan, trained: Sequence[dict]) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """What the figure draws: at about `DRAWN` steps (X,), evenly in the logarithm, the root mean square over
    layers and looks of the angle in degrees, "with.pROW.eCOLUMN" and "without.p1.eCOLUMN" (S, X)."""
    looks = plan.steps // plan.every
    edges = np.unique(np.geomspace(1, looks + 1, DRAWN).astype(int)) - 1
    curves = {}
    for kind, name in (("grid", "with"), ("plain", "without")):
        square = np.array([one[f"{kind}.angle"] ** 2 for one in trained]).mean(axis=2)  # (S, M, looks)
        binned = np.add.reduceat(square[..., :looks], edges[:-1], axis=-1) / np.diff(edges)
        for place in range(binned.shape[1]):
            row, column = divmod(place, len(plan.rates))
            row += len(plan.products) // 2 if kind == "plain" else 0
            curves[f"{name}.p{row}.e{column}"] = np.degrees(np.sqrt(binned[:, place]))
    return plan.every * (edges[:-1] + edges[1:] + 1) / 2, curves


def e_folding(falling: np.ndarray) -> np.ndarray:
    """(..., T) -> (...): the first step, between two by a straight line in the logarithm, at which it is 1/e."""
    flat = falling.reshape(-1, falling.shape[-1])
    found = np.full(len(flat), np.nan)
    for place, row in enumerate(flat):
        below = np.flatnonzero(row <= np.exp(-1))
        if below.size and below[0] and row[below[0]] > 0:
            one, other = np.log(row[below[0] - 1 : below[0] + 1])
            found[place] = below[0] - 1 + (one + 1) / (one - other)
    return found.reshape(falling.shape[:-1])


def pair_distances(plan: Plan, seed: int) -> dict[str, np.ndarray]:
    """How far the answers of two recipes are apart at each step, (T,), in float64.

    "schedule": decay λ against none with η_t = η (1 - ηλ)^-(2t+1); "scaled": (W, η, λ) against
    (c W, c² η, λ / c²), c another for every seed; each with batch norm, with ε = 1e-5 ("eps") and without.
    """
    with numerics(torch.device("cpu"), 1):
        images, labels = pooled(load(plan.data), "train", plan.pool)
        images, (rate, decay), steps = images.double(), PAIR, plan.pair_steps
        factor = FACTOR ** np.random.default_rng(seed).uniform(-1, 1)
        growing = rate * (1 - rate * decay) ** -(2 * np.arange(steps) + 1.0)
        found = {}
        for name, norm, eps in (("batch", "batch", NO_EPS), ("eps", "batch", 1e-5), ("none", "none", NO_EPS)):
            start = plan.network(images.shape[1], seed, 2, torch.float64)
            longer = scaled(copied(start, (0, 1)), np.array([[1.0] * plan.layers, [factor] * plan.layers]))
            for kind, network, rates, decays in (
                ("schedule", start, [np.full(steps, rate), growing], [decay, 0.0]),
                (
                    "scaled",
                    longer,
                    np.full((2, steps), rate) * [[1], [factor**2]],
                    [decay, decay / factor**2],
                ),
            ):
                rows = Rows(images, labels, plan.batch_size, seed)
                each = np.stack(rates, axis=1), np.array(decays)
                found[f"{kind}.{name}"] = apart(answers_by_step(network, rows, *each, rate, norm, eps))
    return found


# ---- Figures ----------------------------------------------------------------------------------------------

DASHES = ("-", "--", ":")  # of the learning rates, the smallest first
#: What a pair of recipes is trained with -> ink, dash and words: batch norm has one ink, whatever its ε.
PAIRS = {
    "batch": ("batch", "-", r"batch norm, $\varepsilon=0$"),
    "eps": ("batch", "--", r"$\varepsilon=10^{-5}$"),
    "none": ("none", "-", "without batch norm"),
}


def pairs(found: Mapping[str, np.ndarray]) -> plt.Figure:
    """How far answers are apart by step: "schedule.NORM" and "scaled.NORM" (S, T), a line for each seed."""
    points = {name: np.maximum(values, 1e-17) for name, values in found.items()}
    arms = {
        name: dict(color=ink, look=dash, label=words, alpha=0.8) for name, (ink, dash, words) in PAIRS.items()
    }
    titles = {"schedule.{}": "decay, or a growing rate"}
    titles["scaled.{}"] = r"$(w,\eta,\lambda)$, or $(cw,c^2\eta,\lambda/c^2)$"
    words = dict(xlabel="step", ylabel="difference of the answers", ylim=(1e-17, 1e3), marks_y={"": 1e-9})
    words |= dict(x=range(len(points["scaled.batch"][0])), log="y", by="seeds")
    return compare(points, titles, arms, figsize=(8.0, 3.6), sharey=True, **words)


def angles(
    steps: np.ndarray, rates: Sequence[float], products: Sequence[float], curves: Mapping[str, np.ndarray]
) -> plt.Figure:
    """Degrees a step, "with.pROW.eCOLUMN" and "without.pROW.eCOLUMN" (S, X), a dash for each rate."""
    fig, axes = subplots(1, 2, figsize=(8.0, 4.2), sharey=True)
    middle = len(products) // 2
    for ax, (name, arm) in zip(axes, (("with", "batch"), ("without", "none"))):
        for row, product in enumerate(products):
            if name == "without" and row != middle:
                continue
            expected = np.degrees((2 * product) ** 0.5)
            for column, (rate, dash) in enumerate(zip(rates, DASHES)):
                label = rf"$\eta={rate:g}$" if row == middle else None
                values = curves[f"{name}.p{row}.e{column}"]
                log_band(ax, steps, values, color=COLORS[arm], linestyle=dash, label=label)
            ax.axhline(expected, color=COLORS["theory"], linewidth=1)
            if is_narrow() and name == "with" and row == middle:
                continue  # no room between the others; the other panel names it
            below = is_narrow() and row < middle
            words = {"textcoords": "offset points", "fontsize": 8.5, "va": "top" if below else "bottom"}
            place, off = (steps[0], expected), (0, -2 if below else 2)
            ax.annotate(rf"$\eta\lambda=$ {power(product)}", place, off, color=COLORS["theory"], **words)
        ax.set(xscale="log", yscale="log", ylim=(0.03, 30), title=f"{name} batch norm", xlabel="step")
        ax.legend(loc="lower center", fontsize=8.5)
    axes[0].set_ylabel("degrees a step")
    return fig


def accuracy_by_product(products: Sequence[float], rates: Sequence[float], found: np.ndarray) -> plt.Figure:
    """Test accuracy (S, products, rates) in percent against ηλ, a line for each rate."""
    arms = {
        f"{rate:g}": dict(y=found[:, :, place], color="batch", look=f"o{dash}", label=rf"$\eta={rate:g}$")
        for place, (rate, dash) in enumerate(zip(rates, DASHES))
    }
    words = dict(xlabel=r"$\eta\lambda$", ylabel="test accuracy (%)", log="x", by="points", times=100)
    return compare({}, [Panel(x=products, ticks=products, **words)], arms, figsize=(6.0, 3.6))


# ---- Each figure of the page, from the results of its run -----------------------------------------------


def _draw_angles(results: Results) -> plt.Figure:
    own, curves = parameters_of(results), points_of(results, "angles")
    return angles(curves["steps"][0], own.rates, own.products, curves)


def _draw_accuracy(results: Results) -> plt.Figure:
    own = parameters_of(results)
    return accuracy_by_product(own.products, own.rates, points_of(results, "accuracy")["grid"])


FIGURES = {
    "pairs": lambda results: pairs(points_of(results, "pairs")),
    "angles": _draw_angles,
    "accuracy": _draw_accuracy,
}
