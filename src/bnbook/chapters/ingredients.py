"""Which ingredient, and where? Small networks whose hidden layers have parts of batch norm, here or there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import matplotlib.pyplot as plt
import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bnbook.chapters.shared import CLASSES, Rows, pooled
from bnbook.data import Dataset
from bnbook.figures import COLORS, parameters_of
from bnbook.plots.axes import in_factors
from bnbook.plots.layout import subplots
from bnbook.plots.panels import Panel, compare
from bnbook.probes.activations import moment_change
from bnbook.training.resumable import Arrays, Training
from bnbook.training.settings import Settings
from bnbook.training.stack import Stack
from bookpress.results import Results

# ---- Ingredients: mean and divisor of pre-activations z, (B, N) or (B, C, H, W) -----------------------------

EPS = 1e-5


def mean(z: Tensor, over: str) -> Tensor:
    """Of each unit over the batch and its positions, or of each example over its units and positions."""
    return z.mean((0, *range(2, z.ndim)) if over == "batch" else tuple(range(1, z.ndim)), keepdim=True)


def deviation(z: Tensor, over: str) -> Tensor:
    """sqrt(mean of (z - its mean)² + ε)."""
    return (mean((z - mean(z, over)).square(), over) + EPS).sqrt()


def groups(z: Tensor) -> tuple[Tensor, Tensor]:
    """Group norm: mean and deviation of each example over each of eight groups of units; Wu and He 2018."""
    parts = z.unflatten(1, (8, -1))
    middle = parts.mean(2, keepdim=True)
    spread = ((parts - middle).square().mean(2, keepdim=True) + EPS).sqrt()
    return middle.expand_as(parts).flatten(1, 2), spread.expand_as(parts).flatten(1, 2)


#: Name -> z -> what is subtracted (None: nothing) and by what is divided (None: by nothing).
STATISTICS: dict[str, Callable[[Tensor], tuple[Tensor | None, Tensor | None]]] = {
    "centre": lambda z: (mean(z, "batch"), None),
    "divide": lambda z: (None, deviation(z, "batch")),  # the mean stays
    "batch": lambda z: (mean(z, "batch"), deviation(z, "batch")),
    "second": lambda z: (None, (mean(z.square(), "batch") + EPS).sqrt()),
    "rms": lambda z: (None, (mean(z.square(), "example") + EPS).sqrt()),
    "units": lambda z: (mean(z, "example"), None),
    "layer": lambda z: (mean(z, "example"), deviation(z, "example")),
    "groups": groups,
}
#: Of these the ones in which the examples of a batch meet.
MEET = ("centre", "divide", "batch", "second")


def standardized(v: Tensor) -> Tensor:
    """sqrt(2 / I) (v - mean v) / deviation of v over a unit's I weights; Qiao et al. 2019, with He's scale."""
    inputs = v[0].numel()
    middle = v.flatten(1).mean(1).view(-1, *[1] * (v.ndim - 1))
    spread = (v - middle).square().flatten(1).mean(1).view_as(middle)
    return (v - middle) * (2 / inputs) ** 0.5 / (spread + EPS / inputs).sqrt()


# ---- Arms: which ingredients, in which hidden layers --------------------------------------------------------

#: Hidden layer l of L, from 0 -> whether a place means it.
PLACES: dict[str, Callable[[int, int], bool]] = {
    "all": lambda layer, depth: True,
    "first": lambda layer, depth: layer == 0,
    "last": lambda layer, depth: layer == depth - 1,
    "early": lambda layer, depth: layer < depth // 2,
    "late": lambda layer, depth: layer >= depth // 2,
    "butlast": lambda layer, depth: layer < depth - 1,
    "behind": lambda layer, depth: layer == depth - 1,  # behind the rectifier of the last, not in front of it
}


def terms(arm: str) -> list[tuple[str, str]]:
    """Ingredients and their places, in the order in which they act: "rms_centre_last" is RMS norm in all, then
    centring in the last."""
    found: list[tuple[str, str]] = []
    for word in arm.split("_"):
        if word in PLACES:
            found[-1] = found[-1][0], word
        else:
            found.append((word, "all"))
    return found


def meets(arm: str) -> bool:
    """Whether the examples of a batch meet in it."""
    return any(name in MEET for name, _ in terms(arm))


BASES = ("rms", "layer", "weights", "tanh")
#: Blind to the length of its weights, or bounded, without a look at the batch; and each with a little of batch norm.
ARMS = (
    *("none", "plain", *BASES, "units", "groups", "rms_last", "layer_last"),
    *("centre", *(f"centre_{place}" for place in ("first", "early", "late", "last", "behind"))),
    *("divide", "divide_first", "divide_last", "second", "divide_centre_last"),
    *("batch", *(f"batch_{place}" for place in ("first", "early", "late", "butlast", "last", "behind"))),
    *(f"{base}_centre" for base in BASES),
    *(f"{base}_centre_{place}" for base in BASES for place in ("first", "last", "behind")),
    *(f"{base}_batch_last" for base in BASES),
)


def split(arms: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The list that may suggest and the list that tests: by turns in the order of the alphabet, so that each family is in
    both; those in which examples meet and those in which they do not for themselves."""
    suggests = [arm for kind in (True, False) for arm in sorted(a for a in arms if meets(a) == kind)[::2]]
    return tuple(a for a in arms if a in suggests), tuple(a for a in arms if a not in suggests)


REGRESSION = "regression"  # softmax regression, the floor


# ---- The networks ---------------------------------------------------------------------------------------------


class Hidden(nn.Module):
    """relu(γ z + β), z = h W through the ingredients; γ and β are there in every arm, so that these differ in nothing
    else. W, from N(0, 2 / inputs), fully connected or a 3×3 convolution of that stride."""

    def __init__(
        self,
        inputs: int,
        units: int,
        before: Sequence[str],
        behind: Sequence[str],
        generator: torch.Generator,
        stride=0,
    ) -> None:
        super().__init__()
        self.before, self.behind, self.stride = tuple(before), tuple(behind), stride
        kernel = (3, 3) if stride else ()
        drawn = torch.randn(units, inputs, *kernel, generator=generator, dtype=torch.float64)
        self.v = nn.Parameter((drawn * (2 / drawn[0].numel()) ** 0.5).float())
        self.gamma = nn.Parameter(torch.ones(units, *[1] * len(kernel)), requires_grad="plain" not in before)
        self.beta = nn.Parameter(torch.zeros(units, *[1] * len(kernel)))
        self.alpha = nn.Parameter(torch.tensor(0.5), requires_grad="tanh" in before)  # Zhu et al. 2025
        self.relu = nn.ReLU()
        self.fixed: dict[int, tuple[Tensor | None, Tensor | None]] = {}  # statistics for inference
        self.settles = False

    def forward(self, h: Tensor) -> Tensor:
        v = standardized(self.v) if "weights" in self.before else self.v
        z = F.conv2d(h, v, stride=self.stride, padding=1) if self.stride else F.linear(h, v)
        for place, name in enumerate(self.before):
            z = torch.tanh(self.alpha * z) if name == "tanh" else self.normalised(z, name, place)
        h = self.relu(torch.addcmul(self.beta, z, self.gamma))
        for place, name in enumerate(self.behind, start=len(self.before)):
            h = self.normalised(h, name, place)
        return h

    def normalised(self, z: Tensor, name: str, place: int) -> Tensor:
        if name not in STATISTICS:
            return z
        middle, divisor = self.fixed[place] if place in self.fixed else STATISTICS[name](z)
        if self.settles and name in MEET:
            self.fixed[place] = middle, divisor
        z = z if middle is None else z - middle
        return z if divisor is None else z / divisor


@dataclass(frozen=True)
class IngredientArm(Settings):
    """One arm in one network, trained from a seed at all rates side by side."""

    arm: str  # of `ARMS`, or `REGRESSION`
    data: str
    pool: int  # pixels a side that are averaged
    units: Sequence[int]  # of each hidden layer
    strides: Sequence[int]  # of its convolutions; none: fully connected
    batch_size: int
    steps: int
    rates: Sequence[float]  # η, a grid, the smallest first: at that one instruments are read
    probes: int = 0  # looks at the instruments
    held: bool = False  # the readout keeps half of its own critical rate, 1/λ at the start, whatever η is

    label, on_cpu = "ingredient_arm", True

    @property
    def full(self) -> int:
        """Steps at the full rate; over the last fifth of the training it falls to 0 in a straight line."""
        return self.steps - self.steps // 5

    def share(self, step: int) -> float:
        """Of its rate, at a step."""
        return min(1.0, (self.steps - step) / (self.steps - self.full + 1))

    def images(self, dataset: Dataset, split: str) -> tuple[Tensor, Tensor]:
        """Rows (m, values), or images (m, 3, H, W) for convolutions, and labels; made once a process."""
        key = dataset.identity.sha256, split, self.pool
        if key not in _pooled:
            _pooled[key] = pooled(dataset, split, self.pool)
        rows, labels = _pooled[key]
        side = int((rows.shape[1] // 3) ** 0.5)
        return (rows.view(-1, 3, side, side) if self.strides else rows), labels

    def network(self, seed: int, inputs: Tensor) -> nn.Sequential:
        """Hidden layers and a linear readout without bias, first weights from the seed, whatever the arm; or softmax
        regression on the same images, from zero."""
        if self.arm == REGRESSION:
            linear = nn.Linear(inputs[0].numel(), CLASSES)
            linear.weight.data.zero_(), linear.bias.data.zero_()
            return nn.Sequential(nn.Flatten(), linear)
        generator, depth = torch.Generator().manual_seed(seed), len(self.units)
        wide, layers = inputs.shape[1], []
        for k, units in enumerate(self.units):
            own = [(name, place) for name, place in terms(self.arm) if PLACES[place](k, depth)]
            before, behind = (
                [n for n, place in own if (place == "behind") == last] for last in (False, True)
            )
            stride = self.strides[k] if self.strides else 0
            layers.append(Hidden(wide, units, before, behind, generator, stride))
            wide = units
        with torch.no_grad():
            wide = nn.Sequential(*layers, nn.Flatten())(inputs[:2]).shape[1]
        readout = nn.Linear(wide, CLASSES, bias=False)
        drawn = torch.randn(CLASSES, wide, generator=generator, dtype=torch.float64)
        readout.weight.data = (drawn * (2 / wide) ** 0.5).float()
        return nn.Sequential(*layers, nn.Flatten(), readout)


_pooled: dict[tuple, tuple[Tensor, Tensor]] = {}


@torch.no_grad()
def readout_curvature(model: nn.Sequential, x: Tensor) -> tuple[float, float]:
    """λ, the largest eigenvalue of the readout's block of the Hessian, and |mean h|², on a batch.

    The block is (1/B) Σ h hᵀ ⊗ (diag p - p pᵀ), h what the readout receives of an example, p its softmax.
    """
    h = model[:-1](x).double()
    p = model[-1](h.float()).double().softmax(1)
    spread = torch.diag_embed(p) - p[:, :, None] * p[:, None, :]
    block = torch.einsum("bi,bj,bkl->ikjl", h, h, spread) / len(x)
    size = h.shape[1] * p.shape[1]
    return float(torch.linalg.eigvalsh(block.reshape(size, size))[-1]), float(h.mean(0).square().sum())


# ---- A training: one arm and seed at all rates side by side ------------------------------------------------------

#: Steps from one look for members whose loss is no number any more to the next: those are given up.
GIVEN_UP = 20


class SideBySide(Training):
    """A network at A rates, between two steps: the parameters of those that are left, and all losses so far."""

    kept = ("step", "over", "parameters", "places", "curve", "read")

    def __init__(self, arm: IngredientArm, seed: int, dataset: Dataset, threads: int | None = None) -> None:
        super().__init__(arm.steps, torch.device("cpu"), threads)
        self.arm, self.seen, self.test = arm, arm.images(dataset, "train"), arm.images(dataset, "test")
        rows = Rows(torch.arange(len(self.seen[1])), self.seen[1], arm.batch_size, seed)
        self.chosen = [next(rows)[0] for _ in range(arm.steps)]
        model = arm.network(seed, self.seen[0])
        self.start: dict[str, float] = {}
        if arm.arm != REGRESSION:
            self.start |= zip(("curvature", "common"), readout_curvature(model, self.batch(0)[0]))
        self.stack = Stack.of([model] * len(arm.rates))
        self.parameters, self.places = self.stack.parameters, torch.arange(len(arm.rates))
        self.rates, self.readout = torch.tensor(arm.rates), f"{len(model) - 1}."
        self.curve = torch.full((arm.steps, len(arm.rates)), torch.inf, dtype=torch.float64)
        self.looks = set(np.linspace(0, arm.full, arm.probes, endpoint=False).astype(int))
        self.read: list[dict] = []

    def batch(self, step: int) -> tuple[Tensor, Tensor]:
        return self.seen[0][self.chosen[step]], self.seen[1][self.chosen[step]]

    def make_step(self) -> None:
        members, (x, y) = len(self.places), self.batch(self.step)
        held = {name: values[:members] for name, values in self.stack.held.items()}  # the same in all
        stack = Stack(self.stack.shape, self.parameters, held)
        if self.step in self.looks:  # at the smallest rate
            self.read.append(look(stack.member(0), self.batch(0), (x, y), self.arm.rates[0]))
        losses, gradients = stack.gradients((x.expand(members, *x.shape), y.expand(members, -1)))
        self.curve[self.step, self.places] = losses.double()
        rates = self.rates[self.places]
        own = torch.full_like(rates, 1 / self.start["curvature"]) if self.arm.held else rates
        share = self.arm.share(self.step)
        stack.step(gradients, lambda name: share * (own if name.startswith(self.readout) else rates))
        if self.step % GIVEN_UP == 0 and not losses.isfinite().all():
            stack.keep(losses.isfinite().nonzero()[:, 0].tolist())
            self.places = self.places[losses.isfinite()]
        self.parameters = stack.parameters
        self.step += 1
        self.over = self.step == self.steps or not len(self.places)

    def result(self) -> Arrays:
        """late: mean loss over the fifth of the steps before the rate falls, (1, A), infinite where a loss was not finite;
        end: that over the last fifth; accuracy: on the test images, at the rate whose `end` is smallest, (1,);
        curvature, common: of the readout at the start, (1,); where there were looks drift, far and near, (1,)."""
        arm, curve = self.arm, torch.where(self.curve.isfinite(), self.curve, torch.inf).numpy()
        lost = np.isinf(curve.sum(0))
        late, end = curve[arm.full - arm.steps // 5 : arm.full].mean(0), curve[arm.full :].mean(0)
        found = {name: np.where(lost, np.inf, each) for name, each in (("late", late), ("end", end))}
        best = (self.places == int(found["end"].argmin())).nonzero()
        found["accuracy"] = np.nan
        if len(best):
            model = Stack(self.stack.shape, self.parameters, self.stack.held).member(int(best[0]))
            found["accuracy"] = accuracy(model, self.seen[0], self.test)
        found |= self.start | (over_looks(self.read) if self.read else {})
        return {name: np.asarray(each)[None] for name, each in found.items()}


def start(
    members: Sequence[tuple[IngredientArm, int]], dataset: Dataset, threads: int | None = None
) -> SideBySide:
    """The training of one member, before its first step."""
    ((arm, seed),) = members
    return SideBySide(arm, seed, dataset, threads)


@torch.no_grad()
def accuracy(model: nn.Module, seen: Tensor, test: tuple[Tensor, Tensor], settled: int = 4096) -> float:
    """Share of right answers, with the statistics of so many training images at once where examples meet."""
    for layer in model:
        layer.settles = True
    model(seen[:settled])
    for layer in model:
        layer.settles = False
    found = torch.cat([model(part).argmax(1) for part in test[0].split(2000)])
    return float((found == test[1]).double().mean())


#: Steps along the gradient, in units of the learning rate.
NEAR, FAR = 1 / 20, 16.0


def look(model: nn.Module, first: tuple, batch: tuple, rate: float) -> dict[str, Tensor | float]:
    """One network at one step: means and variances over the batch `first` of what each unit's rectifier receives, and
    how far its gradient turns a near and a far step along itself, ‖∇L(θ - a g) - g‖ over ‖g‖, near also over a."""
    values: list[Tensor] = []
    hidden = [layer for layer in model if isinstance(layer, Hidden)]
    hooks = [
        layer.relu.register_forward_pre_hook(
            lambda _, z: values.append(z[0].transpose(0, 1).flatten(1).double())
        )
        for layer in hidden
    ]
    with torch.no_grad():
        model(first[0])
    for hook in hooks:
        hook.remove()
    stack = Stack.of([model])
    _, g = stack.gradients((batch[0][None], batch[1][None]))
    there = []
    for a in (rate * NEAR, rate * FAR):
        moved = Stack(stack.shape, {n: p - a * g[n] for n, p in stack.parameters.items()}, stack.held)
        _, other = moved.gradients((batch[0][None], batch[1][None]))
        there.append(float(sum((other[n] - g[n]).double().square().sum() for n in g)))
    size = float(sum(part.double().square().sum() for part in g.values())) or np.nan
    near, far = ((each / size) ** 0.5 for each in there)
    moments = {"mean": torch.cat([v.mean(1) for v in values])}
    moments["variance"] = torch.cat([v.var(1, correction=0) for v in values])
    return moments | {"near": near / (rate * NEAR), "far": far}


def over_looks(read: Sequence[dict]) -> dict[str, float]:
    """drift: the change of a unit's mean from look to look (`moment_change`); near and far: geometric means."""
    moments = (np.array([each[name].numpy() for each in read]) for name in ("mean", "variance"))
    logs = {name: np.log([each[name] for each in read]).mean() for name in ("near", "far")}
    return {"drift": float(moment_change(*moments)[0].mean())} | {
        n: float(np.exp(v)) for n, v in logs.items()
    }


#: Instrument -> the sign with which more of it promises more. The first needs no measurement.
INSTRUMENTS = {"count": 1, "drift": -1, "readout": -1, "common": -1, "far": -1, "near": -1}
OUTCOMES = ("rate", "accuracy")


# ---- Figures ----------------------------------------------------------------------------------------------------------

#: Arms with all seeds, in the order of the tables, and their words.
MAIN = {
    "none": "nothing",
    "centre": "centred",
    "divide": "divided",
    "batch": "batch norm",
    "rms": "RMS norm",
    "layer": "layer norm",
    "weights": "weight standardization",
    "tanh": "tanh",
    "centre_last": "last layer centred",
    "centre_behind": "last layer centred behind the rectifier",
    "batch_last": "batch norm in the last layer",
    "rms_centre_first": "RMS norm, first layer centred",
    "rms_centre_last": "RMS norm, last layer centred",
}
INK = {"none": COLORS["none"], "batch": COLORS["batch"]}
#: Arms beside those two in the figure of losses -> their line: of one ink, for it has one for two arms only.
DASHES = {"rms": ":", "centre_last": "--", "rms_centre_last": "-."}


def arms(results: Results) -> plt.Figure:
    """Accuracy above softmax regression and largest usable rate, a row an arm."""
    looks = {
        arm: dict(x=[place], color=INK.get(arm, "theory"), fillstyle="full" if meets(arm) else "none")
        for place, arm in enumerate(MAIN)
    }

    def panel(name: str, words: str, times: float, also: Callable[[plt.Axes], object]) -> Panel:
        own = {arm: look | dict(y=results[f"{name}.{arm}"][:, None]) for arm, look in looks.items()}
        return Panel(arms=own, rows=[*MAIN.values()], xlabel=words, times=times, also=also)

    def from_zero(ax: plt.Axes) -> None:
        ax.axvline(0, color=COLORS["theory"], linewidth=1)
        ax.set_xlim(left=-0.5)

    panels = [
        panel("above", "points above softmax regression", 100, from_zero),
        panel("rate", "largest usable rate", 1, lambda ax: in_factors(ax.xaxis, 2.0 ** np.arange(-8, 9))),
    ]
    return compare(results, panels, figsize=(8.6, 4.8), by="across", look="o", sharey=True, legend="none")


def losses(results: Results) -> plt.Figure:
    """Training loss at the full rate by the rate, for a few arms, and softmax regression's as the floor."""
    rates, arms = np.array(parameters_of(results).rates), {}
    for arm in (*INK, *DASHES):
        late, look = results[f"late.{arm}"], DASHES.get(arm, "-")
        alive = np.isfinite(late).all(axis=0)
        ink = INK.get(arm, COLORS["theory"])
        arms[arm] = dict(x=rates[alive], y=late[:, alive], color=ink, look=look, label=MAIN[arm])
    floor = results["late.regression"].min(axis=1).mean()
    words = dict(xlabel="learning rate", ylabel="training loss", log="x")
    marks = {"softmax regression": floor, "guessing": np.log(CLASSES)}
    return compare(results, [Panel(marks_y=marks, **words)], arms, figsize=(6.8, 3.9))


def lists(results: Results) -> plt.Figure:
    """Largest usable rate against the readout's curvature, test accuracy against the drift; filled: the list that tests."""
    fig, axes = subplots(1, 2, figsize=(8.6, 4.0))
    drawn = {
        name: results[f"list.{name}"] for name in ("readout", "rate", "drift", "accuracy", "tests", "count")
    }
    drawn["rate"] = 10 ** drawn["rate"]
    for ax, x, y in ((axes[0], "readout", "rate"), (axes[1], "drift", "accuracy")):
        for tests, fill in ((0, "none"), (1, "full")):
            for centred, shape in ((False, "s"), (True, "o")):
                here = (drawn["tests"] == tests) & ((drawn["count"] > 0) == centred)
                words = ("some layer centres" if centred else "none centres") if tests else None
                style = dict(color=COLORS["theory"], fillstyle=fill, markersize=5)
                ax.plot(drawn[x][here], drawn[y][here], shape, label=words, **style)
        for arm, ink in INK.items():
            at = ARMS.index(arm)
            ax.plot(drawn[x][at], drawn[y][at], "D", color=ink, markersize=7, label=MAIN[arm])
    axes[0].set(
        xscale="log", yscale="log", xlabel="readout's curvature at the start", ylabel="largest usable rate"
    )
    axes[1].set(xlabel="drift of a unit's mean", ylabel="test accuracy")
    axes[1].legend(fontsize=9)
    return fig
