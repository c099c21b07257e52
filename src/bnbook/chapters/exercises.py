"""A textbook's exercises on batch norm: its LeNet at half the pixels, with one thing changed in each arm."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import matplotlib.pyplot as plt
import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bnbook.chapters.shared import Rows, largest_usable, pooled
from bnbook.data import load
from bnbook.figures import COLORS, parameters_of, points_of
from bnbook.plots.layout import subplots
from bnbook.plots.panels import Panel, compare
from bnbook.training.numerics import numerics
from bookpress.intervals import mean_and_interval
from bookpress.results import Results

CLASSES = 10
#: Channels of the two convolutions, units of the two hidden layers, pixels a side of a kernel (LeCun et al. 1998).
CHANNELS, UNITS, KERNEL = (6, 16), (120, 84), 5
#: Added to a variance, and to each variance of a full covariance before its Cholesky factor is taken.
EPS, RIDGE = 1e-5, 1e-3
#: The distribution function of a batch is a line between this many + 1 of its quantiles.
BINS = 16
#: Of a standard normal value the median of the size: below it lies half.
HALF = 0.6744897501960817
#: Share of hidden units that are left out at a time.
DROPPED = 0.5
#: Batches of training images over which the statistics of inference are averaged.
SEEN = 32
#: Weights of the newest batch in a running average: torch's usual one and that of the textbook's own layer.
NEWEST = {"usual": 0.1, "textbook": 0.9}
#: The seeds of what dropout leaves out begin here.
MASKS = 2_000_003
#: Test images of a point of a curve.
LOOKED = 2000


# ---- The transforms: values (B, units) or (B, units, height, width) and their statistics -> values ------------------


def per_unit(x: Tensor) -> list[int]:
    """The dimensions over which a unit's values lie: all but the second."""
    return [0, *range(2, x.ndim)]


def moments(x: Tensor) -> tuple[Tensor, ...]:
    """Mean and variance of each unit, (1, units) or (1, units, 1, 1) twice."""
    variance, mean = torch.var_mean(x, per_unit(x), correction=0, keepdim=True)
    return mean, variance


def batch(x: Tensor, mean: Tensor, variance: Tensor) -> Tensor:
    """(x - μ) / √(σ² + ε) (Ioffe & Szegedy 2015)."""
    return (x - mean) * (variance + EPS).rsqrt()


def mean_alone(x: Tensor, mean: Tensor, variance: Tensor) -> Tensor:
    """x - μ."""
    return x - mean


def variance_alone(x: Tensor, mean: Tensor, variance: Tensor) -> Tensor:
    """x / √(σ² + ε)."""
    return x * (variance + EPS).rsqrt()


def sparse(x: Tensor, mean: Tensor, variance: Tensor) -> Tensor:
    """The normalized value where it is larger in size than half of a normal's values are, else 0."""
    normalized = batch(x, mean, variance)
    return normalized * (normalized.abs() > HALF)


def by_unit(x: Tensor) -> Tensor:
    """(B, units, ...) as (units, values)."""
    return x.transpose(0, 1).flatten(1)


def back(rows: Tensor, x: Tensor) -> Tensor:
    """(units, values) in the shape of x, (B, units, ...)."""
    return rows.view(x.transpose(0, 1).shape).transpose(0, 1)


def covariance(x: Tensor) -> tuple[Tensor, ...]:
    """Mean (units, 1) and covariance (units, units)."""
    z = by_unit(x)
    mean = z.mean(1, keepdim=True)
    return mean, (z - mean) @ (z - mean).T / z.shape[1]


def whitened(x: Tensor, mean: Tensor, covariance: Tensor) -> Tensor:
    """L⁻¹ (x - μ) with L Lᵀ = Σ + `RIDGE` I, L lower triangular: all units uncorrelated. NaN where there is no L."""
    ridge = RIDGE * torch.eye(len(covariance), dtype=x.dtype)
    factor, info = torch.linalg.cholesky_ex(covariance + ridge)
    found = back(torch.linalg.solve_triangular(factor, by_unit(x) - mean, upper=False), x)
    return found if info == 0 else found * torch.nan


def quantiles(x: Tensor) -> tuple[Tensor, ...]:
    """`BINS` + 1 quantiles of each unit, least and largest included: one tensor (units, BINS + 1)."""
    ordered = by_unit(x).sort(dim=1).values
    last = ordered.shape[1] - 1
    places = torch.linspace(0, last, BINS + 1, dtype=torch.float64)
    low = places.floor().long()
    share = (places - low).to(x.dtype)
    return (torch.lerp(ordered[:, low], ordered[:, (low + 1).clamp(max=last)], share),)


def integral(x: Tensor, edges: Tensor) -> Tensor:
    """√12 (F(x) - ½), F the distribution function that is a line between the quantiles: nearly mean 0, variance 1.

    The probability integral transform: F(x) is uniform on (0, 1) for what has the distribution F.
    """
    values = by_unit(x)
    place = torch.searchsorted(edges.detach().contiguous(), values.detach().contiguous()).clamp(1, BINS)
    low, high = edges.gather(1, place - 1), edges.gather(1, place)
    share = ((values - low) / (high - low + EPS)).clamp(0, 1)
    return back(12**0.5 * ((place - 1 + share) / BINS - 0.5), x)


TRANSFORMS = {
    "batch": (moments, batch),
    "mean": (moments, mean_alone),
    "variance": (moments, variance_alone),
    "sparse": (moments, sparse),
    "whitened": (covariance, whitened),
    "integral": (quantiles, integral),
}


# ---- The network ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Arm:
    """One network: the transform and its places among the four hidden layers, and what else is changed."""

    norm: str = "batch"  # of `TRANSFORMS`
    places: Sequence[int] = (0, 1, 2, 3)  # two convolutions, then two fully connected layers
    affine: bool = True  # γ and β are trained
    after: bool = False  # behind the nonlinearity
    dropout: bool = False  # behind each fully connected hidden layer
    biases: bool = True  # of the hidden layers' own
    sigmoid: bool = False  # in place of tanh


PLAIN = Arm(places=())
ARMS = {
    "none": PLAIN,
    "batch": Arm(),
    "first": Arm(places=(0,)),
    "second": Arm(places=(1,)),
    "third": Arm(places=(2,)),
    "fourth": Arm(places=(3,)),
    "mean": Arm("mean"),
    "variance": Arm("variance"),
    "fixed": Arm(affine=False),
    "integral": Arm("integral"),
    "whitened": Arm("whitened"),
    "whitened_maps": Arm("whitened", places=(0, 1)),
    "maps": Arm(places=(0, 1)),
    "after": Arm(after=True),
    "sigmoid_none": Arm(places=(), sigmoid=True),
    "sigmoid_batch": Arm(sigmoid=True),
}
#: Of few images: what may keep a network from learning them by heart.
FEW = {
    "none": PLAIN,
    "dropout": replace(PLAIN, dropout=True),
    "batch": Arm(),
    "both": Arm(dropout=True),
    "sparse": Arm("sparse"),
}
#: Those whose curves are drawn.
DRAWN = ("none", "batch")


class Norm(nn.Module):
    """A transform of each unit's values over batch and positions, then γ · + β.

    In training by the batch's statistics, which `running` averages (weight of the newest -> averages) where it is
    set; in evaluation by `fixed`, if there are any, else by the batch's.
    """

    def __init__(self, kind: str, units: int, affine: bool) -> None:
        super().__init__()
        self.statistics, self.transform = TRANSFORMS[kind]
        self.affine = affine
        if affine:
            self.gamma, self.beta = nn.Parameter(torch.ones(units)), nn.Parameter(torch.zeros(units))
        self.running: dict[str, list[Tensor]] | None = None
        self.fixed: Sequence[Tensor] = ()
        self.used: list[Sequence[Tensor]] | None = None
        self.batches = 0

    def forward(self, x: Tensor) -> Tensor:
        statistics = self.fixed if self.fixed and not self.training else self.statistics(x)
        if self.used is not None:
            self.used.append(statistics)
        if self.running is not None and self.training:
            self.average([each.detach() for each in statistics])
        x = self.transform(x, *statistics)
        if not self.affine:
            return x
        shape = (1, -1, *[1] * (x.ndim - 2))
        return torch.addcmul(self.beta.view(shape), self.gamma.view(shape), x)

    def average(self, statistics: Sequence[Tensor]) -> None:
        """a ← (1 - w) a + w s for each weight w of the newest; w = 1 / batches is the mean of all so far."""
        self.batches += 1
        for name, weight in {**NEWEST, "all": 1 / self.batches}.items():
            before = self.running.setdefault(name, list(statistics))
            self.running[name] = [torch.lerp(old, new, weight) for old, new in zip(before, statistics)]


class LeNet(nn.Module):
    """Two convolutions, two fully connected layers and a readout, sigmoids and average pooling (LeCun et al. 1998).

    images (B, C, side, side) -> (B, classes). Weights from Glorot's uniform distribution, biases from
    U(±1/√inputs), both by `seed` and the same in every arm.
    """

    def __init__(self, arm: Arm, shape: Sequence[int], seed: int) -> None:
        super().__init__()
        self.arm, inputs = arm, CHANNELS[1] * (shape[1] // 4) ** 2
        widths = (*CHANNELS, *UNITS)
        self.hidden = nn.ModuleList(
            [nn.Conv2d(i, o, KERNEL, padding=KERNEL // 2) for i, o in zip((shape[0], CHANNELS[0]), CHANNELS)]
            + [nn.Linear(i, o) for i, o in zip((inputs, UNITS[0]), UNITS)]
        )
        self.readout = nn.Linear(UNITS[-1], CLASSES)
        self.norms = nn.ModuleDict(
            {str(place): Norm(arm.norm, widths[place], arm.affine) for place in arm.places}
        )
        generator = torch.Generator().manual_seed(seed)
        with torch.no_grad():
            for layer in (*self.hidden, self.readout):
                fan = layer.weight[0].numel(), layer.weight.numel() // layer.weight.shape[1]
                layer.weight.uniform_(-1, 1, generator=generator).mul_((6 / sum(fan)) ** 0.5)
                layer.bias.uniform_(-1, 1, generator=generator).mul_(fan[0] ** -0.5)
        if not arm.biases:
            for layer in self.hidden:
                layer.bias = None

    def forward(self, x: Tensor, dropped: Sequence[Tensor] = ()) -> Tensor:
        for place, layer in enumerate(self.hidden):
            norm = self.norms[str(place)] if str(place) in self.norms else nn.Identity()
            if place == 2:
                x = x.flatten(1)
            bend = torch.sigmoid if self.arm.sigmoid else torch.tanh
            x = norm(bend(layer(x))) if self.arm.after else bend(norm(layer(x)))
            if place < 2:
                x = F.avg_pool2d(x, 2)
            elif dropped:
                x = x * dropped[place - 2]
        return self.readout(x)


# ---- Training and looking ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Plan:
    """The settings that all seeds share."""

    data: str
    pool: int  # pixels a side that are averaged
    batch_size: int
    steps: int
    looks: int  # points of a curve of accuracy
    rates: Sequence[float]  # η, a grid, the smallest first
    common: float  # the one of the trainings with and without biases
    exact_steps: int  # of these, in float64
    few: int  # training images of the trial with few
    few_steps: int
    few_rates: Sequence[float]


def images(plan: Plan, split: str) -> tuple[Tensor, Tensor]:
    """Images (m, C, side, side), each pixel a mean, and labels (m,)."""
    dataset = load(plan.data)
    rows, labels = pooled(dataset, split, plan.pool)
    channels, side = dataset.train_images.shape[1], dataset.train_images.shape[2] // plan.pool
    return rows.view(-1, channels, side, side), labels


def masks(arm: Arm, size: int, generator: torch.Generator) -> list[Tensor]:
    """Which units stay, over their share, (B, units) for each fully connected hidden layer; none without dropout."""
    if not arm.dropout:
        return []
    stay = 1 - DROPPED
    return [(torch.rand(size, units, generator=generator) < stay) / stay for units in UNITS]


def train(net: LeNet, rows: Rows, steps: int, rate: float, seed: int, look=None) -> np.ndarray:
    """Gradient descent on the cross-entropy, in place; over the last fifth of the steps the rate falls to 0.

    Gives the losses (steps,), NaN from where one is not finite. `look(step)` is called before each step.
    """
    losses, full = np.full(steps, np.nan), steps - steps // 5
    generator = torch.Generator().manual_seed(MASKS + seed)
    parameters = list(net.parameters())
    for step in range(steps):
        if look:
            look(step)
        net.train()
        inputs, labels = next(rows)
        loss = F.cross_entropy(net(inputs, masks(net.arm, len(inputs), generator)), labels)
        if not torch.isfinite(loss):
            break
        losses[step] = float(loss.detach())
        gradients = torch.autograd.grad(loss, parameters)
        with torch.no_grad():
            for part, gradient in zip(parameters, gradients):
                part -= rate * min(1.0, (steps - step) / (steps - full + 1)) * gradient
    return losses


def settle(net: LeNet, seen: Tensor, size: int) -> None:
    """Fix the statistics of inference: the mean over `SEEN` batches of training images, with these weights."""
    net.eval()
    with torch.no_grad():
        for norm in net.norms.values():
            norm.fixed, norm.used = (), []
        for part in seen[: SEEN * size].split(size):
            net(part)
        for norm in net.norms.values():
            norm.fixed = [torch.stack(parts).mean(0) for parts in zip(*norm.used)]
            norm.used = None


def accuracy(net: LeNet, inputs: Tensor, labels: Tensor, size: int = 1000) -> float:
    """Share of right answers in evaluation, in parts of `size` images."""
    net.eval()
    with torch.no_grad():
        right = [(net(a).argmax(1) == b).sum() for a, b in zip(inputs.split(size), labels.split(size))]
    return float(sum(right)) / len(labels)


# ---- What is measured of one seed ----------------------------------------------------------------------------------


def trials(plan: Plan, seed: int) -> dict[str, dict]:
    """ "main" and "few": arm -> what `trial` gives; "bias": what `without_biases` gives."""
    with numerics(torch.device("cpu"), 1):
        seen, test = images(plan, "train"), images(plan, "test")
        return {
            "main": {name: trial(name, ARMS[name], plan, seed, seen, test) for name in ARMS},
            "few": {name: trial_of_few(FEW[name], plan, seed, seen, test) for name in FEW},
            "bias": without_biases(plan, seed, seen),
        }


def best_of(losses: np.ndarray) -> int:
    """Row of (rates, steps) whose mean over the last fifth of the steps is smallest; what diverged has none."""
    late = losses[:, -max(losses.shape[1] // 5, 1) :].mean(1)
    return int(np.where(np.isfinite(late), late, np.inf).argmin())


def trial(name: str, arm: Arm, plan: Plan, seed: int, seen: tuple, test: tuple) -> dict:
    """One arm at all rates.

    late (rates,): mean loss of the last steps at the full rate, a fifth of all, ln 10 where it is larger or not
    finite; rate: log2 of the largest usable one (`largest_usable`); best: log2 of the one whose loss over the last
    fifth is smallest; accuracy: there, on all test images. Of the arms of `DRAWN` also what `again` gives.
    """
    full, fifth = plan.steps - plan.steps // 5, max(plan.steps // 5, 1)
    nets = [LeNet(arm, seen[0].shape[1:], seed) for _ in plan.rates]
    losses = np.array(
        [
            train(net, Rows(*seen, plan.batch_size, seed), plan.steps, rate, seed)
            for net, rate in zip(nets, plan.rates)
        ]
    )
    best, guess = best_of(losses), np.log(CLASSES)
    late = np.nan_to_num(losses[:, full - fifth : full].mean(1), nan=guess).clip(max=guess)
    settle(nets[best], seen[0], plan.batch_size)
    found = {
        "late": late,
        "rate": largest_usable(plan.rates, late),
        "best": float(np.log2(plan.rates[best])),
        "accuracy": accuracy(nets[best], *test),
    }
    return found | (again(arm, plan, plan.rates[best], seed, seen, test) if name in DRAWN else {})


def again(arm: Arm, plan: Plan, rate: float, seed: int, seen: tuple, test: tuple) -> dict:
    """The same training once more, watched. curve (looks,): accuracy on the way; what `by_averages` gives."""
    net, curve = LeNet(arm, seen[0].shape[1:], seed), []
    looks = np.linspace(0, plan.steps, plan.looks, endpoint=False).astype(int)
    for norm in net.norms.values():
        norm.running = {}

    def look(step: int) -> None:
        if step in looks:
            settle(net, seen[0], plan.batch_size)
            curve.append(accuracy(net, test[0][:LOOKED], test[1][:LOOKED]))

    train(net, Rows(*seen, plan.batch_size, seed), plan.steps, rate, seed, look)
    return {"curve": curve, **(by_averages(net, test, plan.batch_size) if arm.places else {})}


def by_averages(net: LeNet, test: tuple, size: int) -> dict:
    """Accuracy by each running average, and by the batches of the test images; gamma (places,): mean size of γ."""
    found = {"gamma": [float(norm.gamma.detach().abs().mean()) for norm in net.norms.values()]}
    for name in (*NEWEST, "all"):
        for norm in net.norms.values():
            norm.fixed = norm.running[name]
        found[f"by_{name}"] = accuracy(net, *test)
    for norm in net.norms.values():
        norm.fixed = ()
    whole = max(len(test[1]) // size, 1) * size  # a last, smaller batch would have statistics of its own
    found["by_batch"] = accuracy(net, test[0][:whole], test[1][:whole], size)
    return found


def trial_of_few(arm: Arm, plan: Plan, seed: int, seen: tuple, test: tuple) -> dict:
    """Accuracy on the few images and on all test images, at the rate whose loss over the last fifth is smallest."""
    few = torch.randperm(len(seen[1]), generator=torch.Generator().manual_seed(seed))[: plan.few]
    own = seen[0][few], seen[1][few]
    nets = [LeNet(arm, seen[0].shape[1:], seed) for _ in plan.few_rates]
    losses = [
        train(net, Rows(*own, plan.batch_size, seed), plan.few_steps, rate, seed)
        for net, rate in zip(nets, plan.few_rates)
    ]
    best = best_of(np.array(losses))
    settle(nets[best], own[0], plan.batch_size)
    return {
        "train": accuracy(nets[best], *own),
        "test": accuracy(nets[best], *test),
        "best": float(np.log2(plan.few_rates[best])),
    }


def without_biases(plan: Plan, seed: int, seen: tuple) -> dict[str, float]:
    """Largest relative difference of the losses of two trainings in float64, with and without hidden biases.

    In front of batch norm, without it, and with batch norm behind the nonlinearity. All at the common rate.
    """
    found, images = {}, plan.exact_steps * plan.batch_size
    double = seen[0][:images].double(), seen[1][:images]
    for name in ("batch", "none", "after"):
        losses = [
            train(
                LeNet(replace(ARMS[name], biases=biases), seen[0].shape[1:], seed).double(),
                Rows(*double, plan.batch_size, seed),
                plan.exact_steps,
                plan.common,
                seed,
            )
            for biases in (True, False)
        ]
        found[name] = float(np.abs(losses[1] / losses[0] - 1).max())
    return found


def gathered(found: Sequence[Mapping], part: str, what: str) -> dict[str, np.ndarray]:
    """Arm -> (S, ...) of one quantity, from what `trials` gives of each seed; the arms that have it."""
    arms = [name for name, each in found[0][part].items() if what in each]
    return {name: np.array([one[part][name][what] for one in found]) for name in arms}


# ---- Figures ----------------------------------------------------------------------------------------------

#: Rows of the overview, from above: exercise, arm, words.
ROWS = (
    ("2", "none", "no batch norm"),
    ("2", "batch", "in all four layers"),
    ("3", "first", "first convolution"),
    ("3", "second", "second convolution"),
    ("3", "third", "first dense layer"),
    ("3", "fourth", "last hidden layer"),
    ("4", "mean", "mean alone"),
    ("4", "variance", "variance alone"),
    ("5", "fixed", "γ and β fixed"),
    ("8 a", "integral", "integral transform"),
    ("8 b", "whitened_maps", "covariance, convolutions"),
    ("8 b", "whitened", "covariance, all layers"),
    ("9", "after", "behind tanh"),
)


def answers(accuracy: Mapping[str, np.ndarray], margin: float) -> plt.Figure:
    """Test accuracy (S,) of each arm in per cent, means and intervals; a band `margin` points about batch norm's."""
    fig, ax = subplots(figsize=(7.4, 6.4))
    middle = 100 * accuracy["batch"].mean()
    ax.axvspan(middle - margin, middle + margin, color=COLORS["grid"], linewidth=0)
    for place, (_, name, _) in enumerate(ROWS):
        mean, half = mean_and_interval(100 * accuracy[name][:, None])
        ink = COLORS[name] if name in ("none", "batch") else COLORS["theory"]
        ax.errorbar(mean, [place], xerr=half, fmt="o", color=ink, capsize=3, markersize=5)
    ax.set_yticks(range(len(ROWS)), [f"{exercise}: {words}" for exercise, _, words in ROWS], fontsize=10)
    ax.set(xlabel="test accuracy, %", ylim=(len(ROWS) - 0.4, -0.6))
    ax.grid(visible=False, axis="y")
    return fig


def rates(
    grid: Sequence[float],
    late: Mapping[str, np.ndarray],
    steps: Sequence[int],
    curves: Mapping[str, np.ndarray],
) -> plt.Figure:
    """Late loss (S, rates) against the rate, and accuracy in per cent (S, looks) on the way at the best one."""
    arms = {"batch": "batch norm", "none": "no batch norm"}
    left = {name: dict(y=late[name], label=words) for name, words in arms.items()}
    right = {name: dict(y=curves[name], label=words) for name, words in arms.items()}
    large = dict(log="x", xlabel="learning rate", ylabel="loss, late", title="How large may the rate be?")
    best = dict(times=100, xlabel="step", ylabel="test accuracy, %", title="Each at its best rate")
    return compare(
        {}, [Panel(x=grid, arms=left, **large), Panel(x=steps, arms=right, **best)], figsize=(9, 3.7)
    )


# ---- Each figure of the page, from the results of its run -----------------------------------------------


def _draw_answers(results: Results) -> plt.Figure:
    names = dict.fromkeys(("none", "batch", *(name for _, name, _ in ROWS)))
    return answers({name: results[f"accuracy.{name}"] for name in names}, 1.0)


def _draw_rates(results: Results) -> plt.Figure:
    own, found = parameters_of(results), points_of(results, "rates")
    late, curves = (
        {name: found[f"{part}.{name}"] for name in ("none", "batch")} for part in ("late", "curve")
    )
    places = np.linspace(0, own.steps, own.looks, endpoint=False).astype(int)
    return rates(own.rates, late, places, curves)


FIGURES = {"answers": _draw_answers, "rates": _draw_rates}
