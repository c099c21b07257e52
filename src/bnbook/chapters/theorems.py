"""What the chapters on theorems share: one unit in closed form, random instances, margins, trials.

Two sides meet in every test of Santurkar et al. 2018's theorems: closed formulas on NumPy arrays, which also take
exact fractions (one unit here, the theorems in the pages' cells), and automatic differentiation of the whole network
(instances and cases, here). They meet on random instances and in fractions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import torch
from torch import Tensor

from bnbook.errors import BnbookError
from bnbook.figures import COLORS
from bnbook.plots.layout import name_rows, subplots

# ---- One unit behind batch norm: the normalized values and what a gradient meets on the way back ----------
# Everything is written with + - * / and `@`, so that arrays of `fractions.Fraction` (dtype object) pass through
# exactly. Letters: m data points; y (m,) the unit's values; ŷ (m,) the normalized ones; g (m,) the gradient
# that comes from above.

Number = Any  # a float, or a Fraction where the check is exact


@dataclass(frozen=True)
class Unit:
    """One normalized unit: ŷ = (y - mean) / sigma."""

    y_hat: np.ndarray  # (m,)
    sigma: Number  # sqrt(variance + eps)
    count: int  # what the sum of squares was divided by: m (biased variance) or m - 1

    @property
    def m(self) -> int:
        return len(self.y_hat)


def exact(*values: Any) -> np.ndarray:
    """A vector of fractions, for counter-examples: exact(1, "1/2")."""
    return np.array([Fraction(value) for value in values], dtype=object)


def square_root(value: Number) -> Number:
    """√value; of a Fraction the exact root, BnbookError where it has none."""
    if not isinstance(value, Fraction):
        return math.sqrt(value)
    above, below = math.isqrt(value.numerator), math.isqrt(value.denominator)
    if above**2 != value.numerator or below**2 != value.denominator:
        raise BnbookError(f"{value} has no rational square root; choose other numbers, or floats")
    return Fraction(above, below)


def normalize(y: np.ndarray, eps: Number = 0, unbiased: bool = False) -> Unit:
    """ŷ = (y - μ) / σ with σ² = Σ (y - μ)² / m + eps; with `unbiased` the sum is divided by m - 1.

    Errors: BnbookError for fewer than two values or for a unit without spread where eps = 0.
    """
    if len(y) < 2:
        raise BnbookError(f"{len(y)} values of a unit; expected a batch of at least 2")
    centred = y - y.mean()
    count = len(y) - 1 if unbiased else len(y)
    variance = (centred @ centred) / count + eps
    if not variance > 0:
        raise BnbookError("a unit without spread and eps = 0; expected values that differ, or eps > 0")
    sigma = square_root(variance)
    return Unit(centred / sigma, sigma, count)


def project(v: np.ndarray, unit: Unit) -> np.ndarray:
    """P v = v - mean(v) - ŷ <ŷ, v> / m, for v (m,) or columns (m, K): what batch norm leaves of a vector.

    With eps = 0 it is the orthogonal projection off 1 and ŷ. With eps > 0 the part along ŷ is not removed but
    multiplied by eps / σ²; with the unbiased variance m - 1 stands for the last m, and P is a projection
    again.
    """
    return v - v.mean(0) - np.multiply.outer(unit.y_hat, unit.y_hat @ v) / unit.count


def gradient(g: np.ndarray, unit: Unit, gamma: Number) -> np.ndarray:
    """∂L̂/∂y = (γ / σ) P g from g = ∂L/∂z (NeurIPS Fact C.1)."""
    return gamma * project(g, unit) / unit.sigma


def jacobian(unit: Unit) -> np.ndarray:
    """∂ŷ^(b)/∂y^(k) = (I[b=k] - 1/m - ŷ^(b) ŷ^(k) / m) / σ, (m, m) (NeurIPS and v1 Fact C.2)."""
    one = unit.sigma / unit.sigma  # a fraction where the unit is exact
    return project(np.identity(unit.m, dtype=int) * one, unit) / unit.sigma


# ---- How far a bound is from failing, on a scale that does not depend on units ----------------------------

#: A bound is violated where the value exceeds it by more than this share of the terms added up.
TOLERANCE = 1e-9
#: Bins for counting margins; the one in the middle holds equality, and is parted where violation begins.
EDGES = np.insert(np.linspace(-1.0125, 1.0125, 82), 41, -TOLERANCE)


def margin(value: float, bound: float, scale: float = 0.0) -> float:
    """(bound - value) / (|bound| + |value| + scale), between -1 and 1; 0 is equality, below 0 a violation.

    `scale` is the size of the terms that both were computed from, where they may cancel.
    """
    total = abs(bound) + abs(value) + scale
    return (bound - value) / total if total > 0 else 0.0


def error(value: np.ndarray | float, formula: np.ndarray | float, scale: float = 0.0) -> float:
    """Largest |value - formula| over the largest term: the violation of an identity."""
    value, formula = np.asarray(value), np.asarray(formula)
    total = max(float(np.abs(value).max()), float(np.abs(formula).max()), scale)
    return float(np.abs(value - formula).max()) / total if total > 0 else 0.0


def square(v: np.ndarray) -> float:
    """‖v‖²"""
    return float((v * v).sum())


# ---- Random layers with batch norm and a loss above them, and their derivatives by automatic differentiation ----
# A fully connected layer y = X W with two units, z = γ ŷ + β, and any loss L of all outputs of the batch. Two
# networks share it: the plain one has the loss L(X W), the other one L(z). Letters: m data points, I inputs, J
# units. Source: Santurkar et al. 2018, section 4.1 (NeurIPS), appendix C (v1).

KINDS = "convex indefinite cross-entropy network linear aligned constant mirrored tiny-batch outlier".split()
#: Those whose loss is linear in the layer's outputs.
LINEAR = ("linear", "aligned", "constant", "mirrored")


@dataclass(frozen=True)
class Instance:
    """A layer, its batch, and the loss above it."""

    x: np.ndarray  # (m, I)
    w: np.ndarray  # (I, J)
    gamma: np.ndarray  # (J,)
    beta: np.ndarray  # (J,)
    loss: Callable[[Tensor], Tensor]  # (m, J) -> ()
    kind: str

    @property
    def y(self) -> np.ndarray:
        """The layer's outputs, (m, J)."""
        return self.x @ self.w


def draw(rng: np.random.Generator, number: int, *, centred: bool = False) -> Instance:
    """Instance `number`: its kind and batch size go round, all else is random.

    γ/σ spans about five decades, γ has either sign, inputs have offsets unless `centred`. Adversarial kinds
    send down a gradient along ŷ ("aligned"), along 1 ("constant") or the mirror image of an input
    ("mirrored").
    """
    kind = KINDS[number % len(KINDS)]
    m = (2, 3)[number // len(KINDS) % 2] if kind == "tiny-batch" else (3, 4, 8, 16)[number // len(KINDS) % 4]
    x = rng.standard_normal((m, 3))
    if kind == "outlier":
        x[0] *= 30
    x = x - x.mean(0) if centred else x + rng.standard_normal(3)
    w = rng.standard_normal((3, 2)) * 10 ** rng.uniform(-1.5, 1.5)
    gamma = rng.choice((-1.0, 1.0), 2) * 10 ** rng.uniform(-1, 1, 2)
    return Instance(x, w, gamma, rng.standard_normal(2), _loss(rng, kind, x, w), kind)


def standardized(instance: Instance) -> Instance:
    """The same with γ = 1 and β = 0, the layer of version 1."""
    return replace(instance, gamma=np.ones(2), beta=np.zeros(2))


def restoring(instance: Instance) -> Instance:
    """The same with γ = σ and β = mean: z = y, so that both networks agree (Observation 4.3)."""
    return replace(instance, gamma=instance.y.std(0), beta=instance.y.mean(0))


def batch_norm(
    y: Tensor, gamma: np.ndarray, beta: np.ndarray, eps: float = 0.0, unbiased: bool = False
) -> Tensor:
    """z = γ (y - μ) / sqrt(σ² + eps) + β over the first axis."""
    variance = y.var(0, correction=int(unbiased))
    return torch.as_tensor(gamma) * (y - y.mean(0)) / (variance + eps).sqrt() + torch.as_tensor(beta)


def hessian(function: Callable[[Tensor], Tensor], at: np.ndarray) -> np.ndarray:
    """Dense Hessian of a scalar function of an (m, J) array: (m, J, m, J)."""
    return torch.func.hessian(function)(torch.tensor(at)).detach().numpy()


def linear_loss(slope: np.ndarray) -> Callable[[Tensor], Tensor]:
    """The loss whose gradient is `slope` (m, J) everywhere."""
    fixed = torch.tensor(slope)
    return lambda z: (fixed * z).sum()


def _loss(rng: np.random.Generator, kind: str, x: np.ndarray, w: np.ndarray) -> Callable[[Tensor], Tensor]:
    m, units = len(x), w.shape[1]
    size = m * units
    y = x @ w
    y_hat = (y - y.mean(0)) / y.std(0)
    noise = rng.standard_normal((m, units))
    if kind in LINEAR:
        toward = {
            "linear": noise,
            "aligned": rng.choice((-1.0, 1.0), units) * y_hat + 0.1 * noise,
            "constant": 1 + 0.1 * noise,
            "mirrored": _mirror_of(x[:, 0], y_hat),
        }[kind]
        return linear_loss(toward * 10 ** rng.uniform(-1, 1))
    if kind == "cross-entropy":
        head = torch.tensor(rng.standard_normal((units, 3)))
        labels = torch.tensor(rng.integers(3, size=m))
        return lambda z: torch.nn.functional.cross_entropy(z @ head, labels)
    if kind in ("network", "tiny-batch"):
        first, second = torch.tensor(rng.standard_normal((units, 4))), torch.tensor(rng.standard_normal(4))
        target = torch.tensor(rng.standard_normal(m))
        return lambda z: ((torch.tanh(z @ first) @ second - target) ** 2).mean()
    root = rng.standard_normal((size, size))
    matrix = root @ root.T if kind in ("convex", "outlier") else root + root.T
    curvature, target = torch.tensor(matrix / size), torch.tensor(noise).flatten()

    def quadratic(z: Tensor) -> Tensor:
        """½ (z - t)ᵀ Q (z - t): couples the units and the examples of the batch."""
        away = z.flatten() - target
        return away @ curvature @ away / 2

    return quadratic


def _mirror_of(input_: np.ndarray, y_hat: np.ndarray) -> np.ndarray:
    """(2 P - I) x of each unit, (m, J)."""
    m = len(input_)
    kept = input_[:, None] - input_.mean() - y_hat * (y_hat * input_[:, None]).sum(0) / m
    return 2 * kept - input_[:, None]


# ---- One unit of an instance with every derivative that a theorem names, all by automatic differentiation ----


@dataclass(frozen=True)
class Case:
    """Unit j of an instance under one definition of the layer: ŷ, σ and γ, and the derivatives."""

    instance: Instance
    j: int
    unit: Unit
    gamma: float
    g: np.ndarray  # (m,) ∂L/∂z at z, from the layers above in the network with batch norm
    own: np.ndarray  # (m,) ∂L/∂y at y, from the layers above in the plain network
    v: np.ndarray  # (m,) ∂L̂/∂y
    weights: np.ndarray  # (I,) ∂L̂/∂w
    eps: float
    unbiased: bool

    @property
    def y(self) -> np.ndarray:
        return self.instance.y[:, self.j]

    @property
    def reach(self) -> float:
        """(γ²/σ²) ‖g‖²: the size of the terms that ‖v‖² is made of (for m = 2 they cancel)."""
        return (self.gamma / self.unit.sigma) ** 2 * (self.g @ self.g)

    @property
    def moved(self) -> torch.Tensor:
        """The gradient v in the place of its unit, (m, J)."""
        direction = torch.zeros(self.instance.y.shape, dtype=torch.float64)
        direction[:, self.j] = torch.tensor(self.v)
        return direction

    def layer(self, y: torch.Tensor) -> torch.Tensor:
        """z of the layer's outputs y, (m, J)."""
        return batch_norm(y, self.instance.gamma, self.instance.beta, self.eps, self.unbiased)

    @cached_property
    def above(self) -> np.ndarray:
        """H = ∂²L/∂z∂z at the network's own z, (m, m)."""
        z = self.layer(torch.tensor(self.instance.y))
        return hessian(self.instance.loss, z.numpy())[:, self.j, :, self.j]

    @cached_property
    def through(self) -> np.ndarray:
        """∂²L̂/∂y∂y, (m, m)."""
        loss = lambda y: self.instance.loss(self.layer(y))
        return hessian(loss, self.instance.y)[:, self.j, :, self.j]


def look(instance: Instance, j: int, eps: float = 0.0, unbiased: bool = False) -> Case:
    """Unit j of an instance, with batch norm's ε and variance as given; nothing is simplified by hand."""
    w = torch.tensor(instance.w, requires_grad=True)
    y = torch.tensor(instance.x) @ w
    z = batch_norm(y, instance.gamma, instance.beta, eps, unbiased)
    through, weights, shared = torch.autograd.grad(instance.loss(z), (y, w, z))
    plain = y.detach().requires_grad_()
    (own,) = torch.autograd.grad(instance.loss(plain), plain)
    columns = (part.numpy()[:, j] for part in (shared, own, through, weights))
    unit = normalize(instance.y[:, j], eps, unbiased)
    return Case(instance, j, unit, instance.gamma[j], *columns, eps, unbiased)


# ---- Counter-examples in small exact numbers: no rounding, so nothing to argue about ----------------------
# Each gives what batch norm does (`value`) and what the printed line allows or says (`bound`), both as fractions,
# computed by the same formulas as the random trials but on exact numbers; tests recompute them by hand.


@dataclass(frozen=True)
class Counterexample:
    """One printed line and the numbers that contradict it."""

    name: str
    line: str  # which printed line
    numbers: str  # the instance, in LaTeX
    value: Fraction
    bound: Fraction
    relation: str = r"\le"  # what the line says of value and bound

    @property
    def refutes(self) -> bool:
        """Whether the numbers contradict the line."""
        return {
            r"\le": self.value > self.bound,
            "<": self.value >= self.bound,
            ">": self.value <= self.bound,
            "=": self.value != self.bound,
        }[self.relation]


def as_table(examples: list[Counterexample]) -> str:
    """A Markdown table: the line, the numbers, what it claims."""
    rows = ["| printed line | instance | it would say |", "|---|---|---|"]
    for e in examples:
        rows.append(f"| {e.line} | {e.numbers} | ${_tex(e.value)} {e.relation} {_tex(e.bound)}$ |")
    return "\n".join(rows)


def _tex(value: Fraction) -> str:
    sign, size = ("-" if value < 0 else ""), abs(Fraction(value))
    n, d = size.numerator, size.denominator
    return sign + (str(n) if d == 1 else rf"\frac{{{n}}}{{{d}}}")


# ---- Many instances: errors and margins by seed -----------------------------------------------------------

#: What is drawn for one instance, S rows of them.
Drawn = list[list[Any]]


def draw_all(
    draw_one: Callable[[np.random.Generator, int], Any], seeds: int, instances: int, first: int, stream: int
) -> Drawn:
    """`draw_one(rng, number)` for seeds from `first` on; each instance has random numbers of its own."""
    return [
        [draw_one(np.random.default_rng([stream, seed, number]), number) for number in range(instances)]
        for seed in range(first, first + seeds)
    ]


@dataclass(frozen=True)
class Trials:
    """Every number that the trials gave, by name and seed: "error.NAME" of an identity, 0 where the formula is right;
    "margin.NAME" of a bound, negative where it is violated, left out where its condition is not met; "plot.NAME"."""

    values: dict[str, list[list[float]]]  # name -> S lists; one with a condition has fewer than all instances

    def __or__(self, other: Trials) -> Trials:
        return Trials(self.values | other.values)

    def errors(self, names: str) -> dict[str, list[float]]:
        """error.NAME for each word of `names`: the largest error of each seed."""
        return {f"error.{name}": self.worst(f"error.{name}") for name in names.split()}

    def bounds(self, names: str) -> dict[str, list[int]]:
        """trials.NAME and violations.NAME for each word: a seed's instances on which it was tried, failed."""
        tried = {
            f"trials.{name}": [len(row) for row in self._rows(f"margin.{name}")] for name in names.split()
        }
        return tried | {f"violations.{name}": self.violated(f"margin.{name}") for name in names.split()}

    def shares(self, names: str) -> dict[str, list[float]]:
        """share.NAME for each word: the share of each seed's instances on which a bound failed, 0 of none."""
        return {f"share.{name}": self.share(f"margin.{name}") for name in names.split()}

    def tallies(self, names: Iterable[str]) -> dict[str, np.ndarray]:
        """curve.margins.NAME: how many margins of each seed lie where, (S, bins of EDGES), for the figure."""
        return {
            f"curve.margins.{name}": np.stack(
                [np.histogram(np.nan_to_num(row, nan=-1.0), EDGES)[0] for row in self._rows(f"margin.{name}")]
            )
            for name in names
        }

    def worst(self, name: str) -> list[float]:
        """Largest error of each seed; not a number counts as infinite. BnbookError for a seed without any."""
        if not all(self._rows(name)):
            raise BnbookError(f"a seed has no instance that gives {name!r}; expected more instances a seed")
        return [float(np.nan_to_num(np.array(row), nan=np.inf).max()) for row in self._rows(name)]

    def median(self, name: str) -> list[float]:
        """Median of each seed."""
        return [float(np.median(row)) for row in self._rows(name)]

    def violated(self, name: str) -> list[int]:
        """Number of violated bounds of each seed; not a number counts as violated."""
        return [int((np.nan_to_num(np.array(row), nan=-1.0) < -TOLERANCE).sum()) for row in self._rows(name)]

    def share(self, name: str) -> list[float]:
        """Share of violated bounds of each seed."""
        counts = zip(self.violated(name), self._rows(name), strict=True)
        return [failed / max(len(row), 1) for failed, row in counts]

    def all(self, name: str) -> np.ndarray:
        """All values of all seeds, for a figure."""
        return np.concatenate([np.asarray(row, dtype=float) for row in self._rows(name)])

    def _rows(self, name: str) -> list[list[float]]:
        if name not in self.values:
            raise BnbookError(f"no trial gave {name!r}; expected one of {', '.join(sorted(self.values))}")
        return self.values[name]


def on_all(both_sides: Callable[[Any], Mapping[str, float]], drawn: Drawn) -> Trials:
    """What `both_sides` gives for each drawn instance."""
    values: dict[str, list[list[float]]] = {}
    for seed, row in enumerate(drawn):
        for one in row:
            for name, value in both_sides(one).items():
                values.setdefault(name, [[] for _ in drawn])[seed].append(float(value))
    return Trials(values)


# ---- Figures ----------------------------------------------------------------------------------------------

FIRST = int(np.flatnonzero(EDGES == -TOLERANCE)[0])  # first bin without violations


def draw_margins(results: Mapping[str, np.ndarray], rows: Mapping[str, tuple[str, str]]) -> plt.Figure:
    """One histogram of `Trials.tallies` per row: violated bounds in red, the others grey (printed) or green
    (corrected).

    rows: name -> label and "printed" or "corrected". Heights are square roots of counts, so that a handful of
    violations among thousands can be seen.
    """
    fig, ax = subplots(figsize=(7.2, 0.62 * len(rows) + 0.9))
    edges = np.delete(EDGES, FIRST)
    style = {"fill": True, "linewidth": 0, "zorder": 3}
    for place, (name, (_, form)) in enumerate(reversed(rows.items())):
        counts = results[f"curve.margins.{name}"].sum(axis=0)
        none = np.zeros(FIRST - 1)
        bad, good = np.concatenate([counts[:FIRST], none]), np.concatenate([none, counts[FIRST:]])
        total = np.sqrt(bad + good)
        total *= 0.8 / total.max()
        red = total * np.divide(bad, bad + good, out=np.zeros(len(bad)), where=bad + good > 0)
        for below, above, color in ((0 * red, red, COLORS["wrong"]), (red, total, COLORS[form])):
            above = np.where(above > below, place + above, np.nan)  # no outline of nothing
            ax.stairs(above, edges, baseline=place + below, color=color, **style)
        ax.axhline(place, color="#cccccc", linewidth=0.7, zorder=1)
        share = bad.sum() / counts.sum()
        words = f"{100 * share:.{0 if share >= 0.1 else 1}f} % violated" if share else "none violated"
        ink = "#222222" if share else COLORS[form]
        ax.text(1.05, place + 0.2, words, va="center", color=ink, fontsize=10)
    ax.axvline(0, color="#222222", linewidth=1, zorder=2)
    name_rows(ax, [label for label, _ in reversed(rows.values())], np.arange(len(rows)) + 0.2)
    ax.set(xlim=(-1.03, 1.03), ylim=(-0.1, len(rows)), xticks=(-1, -0.5, 0, 0.5, 1))
    ax.set_xlabel("margin: (bound − value) / (|bound| + |value|)")
    ax.tick_params(axis="y", length=0)
    ax.grid(axis="y", visible=False)
    ax.spines["left"].set_visible(False)
    return fig
