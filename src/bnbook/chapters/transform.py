"""What does it compute? Batch norm's formulas on trial: random and nasty units in double precision, slow
twins of what they say."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations, product

import matplotlib.pyplot as plt
import numpy as np
import torch
import torch.nn.functional as F
from torch import Generator, Tensor, nn

from bnbook.figures import COLORS
from bnbook.normalizers import make_normalizer
from bnbook.normalizers.formulas import batch_norm_backward, batch_norm_forward
from bnbook.plots.layout import subplots
from bnbook.plots.panels import Panel, compare

# ---- Random units of every size, with difficult ones among them, and the errors that a formula makes on them ----

D = torch.float64


def generators(seeds: Iterable[int], section: int) -> list[Generator]:
    """Random numbers for each seed in one section of the chapter."""
    return [Generator().manual_seed(1000 * section + seed) for seed in seeds]


def power_of_ten(low: float, high: float, count: int, g: Generator) -> Tensor:
    """10 to a uniform power, (count,)."""
    return 10 ** (low + (high - low) * torch.rand(count, generator=g, dtype=D))


def sign(count: int, g: Generator) -> Tensor:
    """1 or -1, (count,)."""
    return 1 - 2 * torch.randint(2, (count,), generator=g)


def draw_units(m: int, count: int, g: Generator) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Units of every size, a quarter of them difficult: x (m, count), γ, β, ε (count,).

    Of eight units in a row one has almost no variance, one an outlier, one half its batch equal, one heavy
    tails.
    """
    spread = power_of_ten(-3, 3, count, g)
    gamma, beta = sign(count, g) * power_of_ten(-2, 2, count, g), torch.randn(count, generator=g, dtype=D)
    eps = power_of_ten(-12, -1, count, g)
    z = torch.randn(m, count, generator=g, dtype=D)
    kind = torch.arange(count) % 8
    spread[kind == 0], eps[kind == 0] = 1e-8, 1e-5
    z[0, kind == 1] += 1e3
    z[: m // 2, kind == 2] = z[0, kind == 2]
    z = torch.where(kind == 3, z**3, z)
    z = (z - z.mean(0)) / z.std(0, correction=0)  # so that the spread is the standard deviation of the batch
    offset = sign(count, g) * power_of_ten(-1, 3, count, g)
    return spread * (z + offset), gamma, beta, eps


def five_units(g: Generator, examples: int = 16384) -> Tensor:
    """(examples, 5): strokes (0 or 1), intensities (skewed) and noise, mixed in five ways."""
    strokes = torch.randint(2, (examples, 1), generator=g).to(D)
    intensities = torch.empty(examples, 2, dtype=D).exponential_(generator=g)
    inputs = torch.cat([strokes, intensities, torch.randn(examples, 1, generator=g, dtype=D)], 1)
    weight = [
        [0.0, 0.55, 0.1, 0.1],
        [4.0, 0.0, 0.0, 0.9],
        [0.1, 0.0, -0.9, 0.3],
        [0.3, 0.2, 0.0, 0.35],
        [0.0, -0.6, 0.9, 1.6],
    ]
    return inputs @ torch.tensor(weight, dtype=D).T + torch.tensor([-5.5, 1.0, -0.5, 5.0, -3.5], dtype=D)


def by_seed(trials: Iterable[Iterable[dict[str, Tensor]]]) -> dict[str, np.ndarray]:
    """The size of every unit's error, {name: (S, units of all trials)}, from each seed's trials.

    A trial gives an error for each unit, (C, ...), or for each example too, (m, C): of these the largest
    counts.
    """
    rows = [list(of_seed) for of_seed in trials]

    def sizes(error: Tensor) -> np.ndarray:
        return (error.abs().amax(0) if error.ndim > 1 else error.abs()).flatten().numpy()

    return {
        name: np.array([np.concatenate([sizes(trial[name]) for trial in row]) for row in rows])
        for name in rows[0][0]
    }


def largest(errors: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The largest error of each seed, {name: (S,)}."""
    return {name: sizes.max(axis=1) for name, sizes in errors.items()}


def operations(seeds: int, units: int, values: int, batches: int, batch_sizes: Sequence[int]) -> int:
    """About twenty additions and multiplications on each random number that the chapter draws."""
    gap = (
        8 * batches * (32 + sum(2**k for k in range(2, 10)))
    )  # eight channels, batches of 4 to 512 and of 32
    return 20 * seeds * (4 * units * sum(batch_sizes) + 10 * values + gap)


# ---- What the page's cells draw and what they measure at -----------------------------------------------------

EDGES = {"before": np.linspace(-9, 9, 145), "after": np.linspace(-4, 4, 81)}
#: Batch sizes for the bias of the variance, and for the gap between training and inference.
SIZES, GAP_SIZES = [2, 3, 4, 6, 8, 16, 32, 64, 128, 512], [4, 8, 16, 32, 64, 128, 256, 512]
#: σ²/ε of the units on which the constant is tried.
RATIO = torch.logspace(-4, 8, 97, dtype=D)
#: What the six formulas differentiate by, in their order.
FORMULAS = ("x_hat", "gamma", "beta", "variance", "mean", "x")


def strips(name: str, values: np.ndarray) -> dict[str, np.ndarray]:
    """What `distribution` draws of the layer `before` or `after`, (examples, units): histograms
    (1, units, bins), means and standard deviations (1, units)."""
    columns = [np.histogram(column, EDGES[name], density=True)[0] for column in values.T]
    parts = {"height": np.stack(columns), "mean": values.mean(0), "deviation": values.std(0, ddof=1)}
    return {f"curve.distribution.{name}.{part}": of_units[None] for part, of_units in parts.items()}


def skewness(x: Tensor) -> Tensor:
    """Third moment of each unit in its own standard deviations: (m, C) -> (C,)."""
    return (((x - x.mean(0)) / x.std(0, correction=0)) ** 3).mean(0)


# ---- The six printed gradients against automatic differentiation, and that against finite differences -----


def loss_of(y: Tensor, w: Tensor) -> Tensor:
    """Σ w log cosh y of each unit (and a constant), written so that no y overflows; (m, C) -> (C,)."""
    return (w * (F.softplus(2 * y) - y)).sum(0)


def by_autograd(
    x: Tensor, gamma: Tensor, beta: Tensor, eps: Tensor, w: Tensor
) -> tuple[Tensor, dict[str, Tensor]]:
    """∂ℓ/∂y and the six gradients of `loss_of` by automatic differentiation of the transform's definition."""
    x, gamma, beta = (value.clone().requires_grad_() for value in (x, gamma, beta))
    mean = x.mean(0)
    variance = ((x - mean) ** 2).mean(0)
    x_hat = (x - mean) / (variance + eps).sqrt()
    y = gamma * x_hat + beta
    steps = (x_hat, gamma, beta, variance, mean, x)
    dl_dy, *grads = torch.autograd.grad(loss_of(y, w).sum(), [y, *steps])
    return dl_dy, dict(zip(FORMULAS, grads))


def sizes_of_terms(dl_dy: Tensor, x: Tensor, gamma: Tensor, eps: Tensor) -> dict[str, Tensor]:
    """For each formula the sum of the absolute values of its terms: what its rounding error is proportional
    to."""
    m, centred = len(x), (x - x.mean(0)).abs()
    deviation = ((centred**2).mean(0) + eps) ** 0.5
    dl_dx_hat = (dl_dy * gamma).abs()
    variance = (dl_dx_hat * centred).sum(0) / 2 / deviation**3
    mean = dl_dx_hat.sum(0) / deviation + variance * 2 * centred.sum(0) / m
    dl_dx = dl_dx_hat / deviation + variance * 2 * centred / m + mean / m
    dl_dgamma, dl_dbeta = (dl_dy.abs() * centred).sum(0) / deviation, dl_dy.abs().sum(0)
    return dict(zip(FORMULAS, (dl_dx_hat, dl_dgamma, dl_dbeta, variance, mean, dl_dx)))


def slope_errors(
    x: Tensor, gamma: Tensor, beta: Tensor, eps: Tensor, w: Tensor, dl_dx: Tensor, size: Tensor, g: Generator
) -> Tensor:
    """Error of each unit's slope along a random direction against a central difference, relative to the
    terms, (C,)."""
    x = x - x.mean(0)  # same slope; a large offset would round the small step away
    step = torch.randn(x.shape, generator=g, dtype=x.dtype) * (x.var(0, correction=0) + eps) ** 0.5
    ahead, behind = (loss_of(batch_norm_forward(x + h * step, gamma, beta, eps).y, w) for h in (1e-5, -1e-5))
    return ((ahead - behind) / 2e-5 - (dl_dx * step).sum(0)) / (size * step.abs()).sum(0)


def single_precision_errors(x: Tensor, gamma: Tensor, beta: Tensor, eps: Tensor, w: Tensor) -> Tensor:
    """Error of the formula for ∂ℓ/∂x with all arithmetic in float32, relative to its terms, (m, C)."""
    x, gamma, beta, eps, w = (value.float() for value in (x, gamma, beta, eps, w))
    dl_dy, auto = by_autograd(x, gamma, beta, eps, w)
    return (batch_norm_backward(dl_dy, x, gamma, eps)["x"] - auto["x"]) / sizes_of_terms(
        dl_dy, x, gamma, eps
    )["x"]


def other_checks(
    x: Tensor, gamma: Tensor, beta: Tensor, eps: Tensor, w: Tensor, dl_dx: Tensor, size: Tensor, g: Generator
) -> dict[str, Tensor]:
    """`slope_errors` and `single_precision_errors` of the same units."""
    slope = slope_errors(x, gamma, beta, eps, w, dl_dx, size, g)
    return {"slope": slope, "float32": single_precision_errors(x, gamma, beta, eps, w)}


# ---- From a batch to the population: all batches counted, and layers whose statistics stand still ---------


def counted_biases(population: np.ndarray, sizes: list[int]) -> dict[str, list[float]]:
    """Relative biases over every batch that N numbers allow, counted, for each size m.

    mean: of E[μ_B], batches dealt without replacement and drawn independently in turn (2 per size); dealt,
    independent: of m/(m-1) E[σ_B²] against Var x (1 per size).
    """
    found: dict[str, list[float]] = {"mean": [], "dealt": [], "independent": []}
    for m in sizes:
        everyone = range(len(population))
        for kind, batches in (
            ("dealt", combinations(everyone, m)),
            ("independent", product(everyone, repeat=m)),
        ):
            x = population[np.array(list(batches))]
            found["mean"].append(x.mean(1).mean() / population.mean() - 1)
            found[kind].append(m / (m - 1) * x.var(1).mean() / population.var() - 1)
    return found


def frozen_layers(count: int, g: Generator) -> tuple[nn.Module, nn.Module, tuple[Tensor, ...]]:
    """The same random batch norm at inference, for rows and for maps; and its γ, β, mean and variance,
    (count,)."""
    gamma, beta = sign(count, g) * power_of_ten(-2, 2, count, g), torch.randn(count, generator=g, dtype=D)
    mean, variance = torch.randn(count, generator=g, dtype=D), power_of_ten(-4, 4, count, g)
    layers = [make_normalizer("batch", count, dim=dim).to(D).eval().requires_grad_(False) for dim in (0, 2)]
    for layer in layers:
        layer.weight.copy_(gamma), layer.bias.copy_(beta)
        layer.running_mean.copy_(mean), layer.running_var.copy_(variance)
    return *layers, (gamma, beta, mean, variance)


# ---- Figures, of recorded results alone -------------------------------------------------------------------

INK = COLORS["theory"]  # every quantity here is batch norm's: marks and dashes tell them apart
Recorded = Mapping[str, np.ndarray]


def distribution(results: Recorded) -> plt.Figure:
    """The histograms of `strips`, scaled to one height; below each a dot and a bar, mean and deviation."""
    fig, axes = subplots(1, 2, figsize=(7.2, 3.7), sharey=True)
    for ax, (name, edges) in zip(axes, EDGES.items()):
        of_units = (
            results[f"curve.distribution.{name}.{part}"][0] for part in ("height", "mean", "deviation")
        )
        shades = plt.cm.cividis(np.linspace(0.0, 0.75, 5))
        for k, (height, mean, spread) in enumerate(zip(*of_units)):
            top = k + 0.8 * height / height.max()
            middle = (edges[1:] + edges[:-1]) / 2
            ax.fill_between(middle, k, top, color=shades[k], alpha=0.8, linewidth=0, zorder=3)
            bar = {"color": shades[k], "linewidth": 2.5, "solid_capstyle": "butt"}
            ax.plot([mean - spread, mean + spread], [k - 0.08] * 2, **bar)
            ax.plot(mean, k - 0.08, "o", color=shades[k], markersize=5)
        ax.grid(axis="y", visible=False)
        ax.spines["left"].set_visible(False)
        ax.tick_params(axis="y", length=0)
    axes[0].set(title="before", xlabel="value of a unit, $x$", xticks=(-8, -4, 0, 4, 8))
    axes[0].set_yticks(range(5), labels=[f"unit {k + 1}" for k in range(5)])
    axes[1].set(title=r"after, with $\gamma=1$, $\beta=0$", xlabel=r"value of a unit, $\hat x$")
    return fig


def epsilon(results: Recorded) -> plt.Figure:
    """Variance of x̂ and the gradient's share along it, (S, R), against σ²/ε of every fourth unit."""
    fig, ax = subplots(figsize=(7.2, 3.2))
    ratio, fine = RATIO[::4].numpy(), RATIO.numpy()
    for name, law, mark, dash, face, label in (
        ("variance", fine / (1 + fine), "o", "-", INK, r"variance of $\hat x$"),
        ("share", 1 / (1 + fine), "s", "--", "white", r"share of the gradient along $\hat x$ that passes"),
    ):
        ax.plot(fine, law, dash, color=INK, linewidth=1.2, zorder=2)
        style = {"color": INK, "markerfacecolor": face, "markersize": 5, "zorder": 3}
        style |= {"clip_on": False, "label": label}
        ax.plot(ratio, results[f"curve.epsilon.{name}"].mean(axis=0), mark, **style)
    ax.axvline(1, color="#777777", linewidth=1, linestyle=":")
    words = {"ha": "center", "va": "center", "color": "#444444", "fontsize": 9.5}
    ax.text(10**-2.3, 0.5, "stretched,\nnot\nnormalized", **words)
    ax.text(10**5.5, 0.72, "normalized", **words)
    ax.set(xscale="log", ylim=(-0.04, 1.06), xlim=(ratio[0], ratio[-1]))
    ax.set(xlabel=r"variance of the unit over the constant, $\sigma^2/\epsilon$", ylabel="fraction")
    ax.legend(loc="center right", bbox_to_anchor=(1.0, 0.42))
    return fig


def gradients(results: Recorded) -> plt.Figure:
    """The errors of each formula, (1, quantiles), a dot for each quantile."""
    fig, ax = subplots(figsize=(7.2, 3.7))
    symbols = (r"\hat x", r"\gamma", r"\beta", r"\sigma^2", r"\mu", "x")
    scatter = np.random.default_rng(0)
    for place, name in enumerate(reversed(FORMULAS)):
        some = results[f"curve.gradients.{name}"][0]
        height = place + 0.27 * scatter.uniform(-1, 1, len(some))
        ax.plot(some, height, ".", color=COLORS["printed"], markersize=3.2, alpha=0.6, rasterized=True)
        exact = f"{np.mean(some == 0):.0%}".replace("%", " %")
        ax.text(2e-20, place, exact, ha="center", va="center", color="#333333")
    ax.axvspan(1e-21, 10**-18.6, color="#f0f0f0", linewidth=0)
    ax.axvline(1e-10, color=INK, linewidth=1.6)
    ax.axvline(2**-52, color="#555555", linewidth=1.1, linestyle="--")
    for place, side, color, words in (
        (2e-20, "center", "#333333", "no error"),
        (3e-16, "left", "#444444", "machine precision"),
        (7e-11, "right", INK, "tolerance"),
    ):
        ax.text(place, 5.72, words, ha=side, va="center", color=color, fontsize=9.5)
    ax.set(xscale="log", xlim=(1e-21, 1e-9), ylim=(-0.5, 6.05))
    ax.set_xlabel("error relative to the size of the formula's terms")
    ax.set_xticks([1e-18, 1e-16, 1e-14, 1e-12, 1e-10])
    labels = [rf"$\partial\ell/\partial {symbol}$" for symbol in reversed(symbols)]
    ax.set_yticks(range(6), labels=labels, fontsize=12)
    ax.tick_params(axis="y", length=0)
    ax.grid(axis="y", visible=False)
    return fig


def population_variance(results: Recorded) -> plt.Figure:
    """Three estimates over the population's value, (S, sizes), with what theory says of Gaussian units."""
    fine, arms = np.geomspace(2, 512, 200), {}
    c4 = [math.sqrt(2 / (m - 1)) * math.exp(math.lgamma(m / 2) - math.lgamma((m - 1) / 2)) for m in fine]
    corrected, root = (
        r"$\frac{m}{m-1}\,\sigma_{\mathcal{B}}^2$",
        r"$\sqrt{\frac{m}{m-1}}\;\sigma_{\mathcal{B}}$",
    )
    batch = r"$\sigma_{\mathcal{B}}^2$"
    for name, theory, mark, face, label in (
        ("variance_ratio.corrected", 1 + 0 * fine, "o", INK, f"{corrected}, corrected variance"),
        ("deviation_ratio.corrected", c4, "^", INK, f"{root}, its square root"),
        ("variance_ratio.uncorrected", (fine - 1) / fine, "s", "white", f"{batch}, variance of the batch"),
    ):
        arms[f"theory of {name}"] = dict(x=fine, y=np.array(theory), color=INK, linewidth=1.1)
        arms[name] = dict(y=name, color=INK, look=mark, markerfacecolor=face, label=label)
    words = dict(
        xlabel="batch size $m$", ylabel="mean estimate / population value", ylim=(0.45, 1.06), log="x"
    )
    ticks = [2, 4, 8, 16, 32, 64, 128, 512]
    return compare(results, [Panel(x=SIZES, by="points", ticks=ticks, **words)], arms, figsize=(7.2, 3.6))


def inference_gap(results: Recorded) -> plt.Figure:
    """Root mean square differences of two outputs, (S, sizes), against the batch size."""
    leading = np.sqrt(1.5 / np.array(GAP_SIZES))
    theory = dict(color="#555555", linewidth=1.1, look="--")
    arms = {"theory": dict(y=leading, label="theory for large $m$", **theory)}
    arms["running"] = dict(y=leading * math.sqrt(0.1 / 1.9), **theory)
    for name, mark, face, label in (
        ("inference_gap", "o", INK, "training against inference"),
        ("running_gap", "s", "white", "running average against population"),
    ):
        arms[name] = dict(y=name, color=INK, look=mark, markerfacecolor=face, label=label)
    words = dict(
        xlabel="batch size $m$", ylabel="difference of the outputs\n(root mean square, std. deviations)"
    )
    panel = Panel(
        x=GAP_SIZES, ticks=GAP_SIZES, yticks=(0.01, 0.03, 0.1, 0.3, 1), by="points", log="xy", **words
    )
    return compare(results, [panel], arms, figsize=(7.2, 3.6))
