"""Does it make gradients explode? Quadrature on the sphere, growth in closed form, and the page's figures."""

from __future__ import annotations

import math
from collections.abc import Mapping

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import to_hex

from bnbook.figures import COLORS
from bnbook.meanfield.recursions import relu_product, step_product
from bnbook.plots.names import mark
from bnbook.plots.panels import Panel, compare, legend_below

# ---- The growth of a ReLU network in closed form, and with skip connections -----------------------------------


def relu_growth(m: np.ndarray | int) -> np.ndarray:
    """ReLU: m/(m-3) · {1/2 - 1/m + (k₀(c) + k₁(c))/m} / (1/2 - k₁(c)), → π/(π-1).

    k₀, k₁: the means of the product of two steps and of two ReLUs (`step_product`, `relu_product`). They are
    Gaussian integrals that hold on the sphere, for a product of ReLUs is homogeneous of degree 2 and one of
    steps of degree 0.
    """
    m = np.asarray(m, dtype=float)
    c = -1 / (m - 1)
    return m / (m - 3) * (0.5 - 1 / m + (step_product(c) + relu_product(c)) / m) / (0.5 - relu_product(c))


def residual_profile(through: float, spread: float, depth: int, start: float = 1.0) -> np.ndarray:
    """‖δ^l‖²/‖δ^L‖² for x^(l+1) = x^l + W φ(BN(x^l)), l = 1 … L: a power of the depth in place of an
    exponential.

    v_l = start + (l-1) V is the centred variance of x^l in units of σ_w², and each layer multiplies by 1 + λ
    V / v_l, so that the product grows like L^λ. start: the centred mean square of the input.
    """
    below = start + np.arange(depth - 1) * spread
    steps = np.log1p(through * spread / below)
    return np.exp(np.append(np.cumsum(steps[::-1])[::-1], 0.0))


# ---- Gauss-Legendre points: spectral where φ is smooth, about 1e-5 where it has kinks ------------------------


def _panels(edge: float, panels: int, kinks: np.ndarray, order: int = 8) -> tuple[np.ndarray, np.ndarray]:
    """Points and weights of Gauss and Legendre on panels of (-edge, edge), equal ones but that none has a
    kink inside."""
    x, w = np.polynomial.legendre.leggauss(order)
    edges = np.unique(np.concatenate([np.linspace(-edge, edge, panels + 1), kinks[np.abs(kinks) < edge]]))
    half = np.diff(edges)[:, None] / 2
    return ((edges[:-1, None] + half) + half * x).ravel(), (half * w).ravel()


def normal_nodes(kinks: tuple[float, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Points and weights of a standard normal variable."""
    x, w = _panels(12.0, 1920, np.array(kinks))
    w = w * np.exp(-x * x / 2)
    return x, w / w.sum()


def _coordinate(power: int, panels: int, kinks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """One coordinate sin θ of a point on a sphere, density cos^power θ: power = dimension of the space -
    2."""
    angles = np.arcsin(kinks[np.abs(kinks) < 1])
    theta, w = _panels(min(math.pi / 2, 12 / math.sqrt(power + 1)), panels, angles)
    w = w * np.cos(theta) ** power
    return np.sin(theta), w / w.sum()


def sphere_nodes(
    m: int, panels: int, kinks: tuple[float, ...]
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """u_1 (P,), u_2 given it (P, Q), and their weights (P,), (Q,): two values of one unit over a batch of
    m."""
    radius, c = math.sqrt(m - 1), -1 / (m - 1)
    t, weight = _coordinate(m - 3, panels, np.array(kinks) / radius)
    r, inner = _coordinate(m - 4, panels, np.array(()))
    second = c * t[:, None] + math.sqrt(1 - c * c) * np.sqrt(1 - t * t)[:, None] * r
    return radius * t, radius * second, weight, inner


# ---- Figures, of recorded results alone -------------------------------------------------------------------

Results = Mapping[str, np.ndarray]
#: Words and mark: all four have batch norm, and so its ink.
NONLINEARITIES = {
    "relu": ("ReLU", "o"),
    "tanh": ("tanh", "s"),
    "linear": ("linear", "D"),
    "zigzag": ("zigzag", "^"),
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


def _numbered(results: Results, start: str) -> list[int]:
    """The numbers with which names that begin so end, in their order."""
    return sorted(int(name.removeprefix(start)) for name in results if name.startswith(start))


def rates(results: Results) -> plt.Figure:
    """Growth of the squared gradient against the batch size: measured (S,) at each, theory (1, places)."""
    sizes, limit, arms = _numbered(results, "growth2.relu.m"), math.pi / (math.pi - 1), {}
    for name, (words, look) in NONLINEARITIES.items():
        theory = dict(x="curve.rates.batch_sizes", y=results[f"curve.rates.{name}"][0], linewidth=1.2)
        measured = np.stack([results[f"growth2.{name}.m{m}"] for m in sizes], axis=1)
        arms[f"theory of {name}"] = theory | dict(color="batch")
        arms[name] = dict(x=sizes, y=measured, by="points", color="batch", look=look, label=words)
    words = dict(xlabel="batch size $m$", ylabel=r"growth per layer, $\lambda_m$ (squared gradient)")
    words |= dict(ticks=sizes, yticks=[1, 1.2, 1.5, 2, 3, 4, 6], xlim=(6.3, 2048), ylim=(0.95, 8), log="xy")
    fig = compare(results, [Panel(marks_y={r"$\pi/(\pi-1)$": limit}, **words)], arms, figsize=(7.2, 4.4))
    mark(fig.axes[0], "its root", y=limit**0.5, linestyle=":")
    return fig


def layers(results: Results) -> plt.Figure:
    """Norms (S, hidden layers) by kind; theory for batches of 64: a layer's factor, the profile of skip
    connections."""
    norms = {kind: results[f"curve.layers.{kind}"] for kind in ("batch", "residual", "none")}
    arms = {kind: dict(y=norms[kind], color=KINDS[kind][1], label=KINDS[kind][0]) for kind in norms}
    index = np.arange(1, norms["batch"].shape[1] + 1)
    through, spread = float(relu_growth(64)), 0.5 - float(relu_product(-1 / 63))
    skipped = np.sqrt(residual_profile(through, spread, len(index)))
    start = 25 if len(index) >= 40 else (len(index) + 1) // 2  # where theory is set to agree
    height = {kind: np.exp(np.log(values).mean(0))[start - 1] for kind, values in norms.items()}
    line = height["batch"] * through ** ((start - index) / 2)
    arms["theory"] = dict(y=line, look=":", label=r"theory, $\lambda_{64}^{1/2}$ a layer")
    line = height["residual"] * skipped / skipped[start - 1]
    arms["skipped"] = dict(x=index[1:], y=line[1:], look="--", label="theory, skip connections")
    words = dict(log="y", xlabel="layer", ylabel=r"$\|\partial\ell/\partial W^l\|$")
    return compare(results, [Panel(by="geometric", **words)], arms, figsize=(7.2, 4.2), legend="below")


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
    return compare(results, titles, arms, figsize=(7.8, 3.6), sharey=True, marks_y={"": 0.1}, **words)
