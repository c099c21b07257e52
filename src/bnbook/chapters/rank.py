"""Do inputs stay apart when it is deep? How different a random network's answers stay, layer by layer."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import matplotlib.pyplot as plt
import numpy as np

from bnbook.figures import COLORS, log_band, parameters_of, points_of
from bnbook.plots.layout import subplots
from bnbook.plots.panels import legend_below
from bookpress.results import Results

Normalize = Callable[[np.ndarray], np.ndarray]


def soft_rank(values: np.ndarray) -> np.ndarray:
    """(tr G)² / tr G² of the Gram matrix G = H Hᵀ of m examples (..., m, N): (...,), from 1 to min(m, N).

    Its value is k where k directions have equal parts and the others none. Daneshmand et al. 2020 bound the rank
    from below by it.
    """
    gram = values @ np.swapaxes(values, -1, -2)
    trace = np.trace(gram, axis1=-2, axis2=-1)
    return trace**2 / np.square(gram).sum(axis=(-2, -1))


def orthogonality_gap(values: np.ndarray) -> np.ndarray:
    """‖G / tr G - I / m‖_F of the Gram matrix of m examples (..., m, N): (...,), 0 where they are orthogonal and of
    one length (Daneshmand et al. 2021, section 3)."""
    gram = values @ np.swapaxes(values, -1, -2)
    share = gram / np.trace(gram, axis1=-2, axis2=-1)[..., None, None]
    return np.linalg.norm(share - np.eye(gram.shape[-1]) / gram.shape[-1], axis=(-2, -1))


def batch_norm(values: np.ndarray) -> np.ndarray:
    """Each unit over the batch: mean 0, variance 1; (..., m, N)."""
    centred = values - values.mean(axis=-2, keepdims=True)
    return centred / np.sqrt(np.square(centred).mean(axis=-2, keepdims=True))


def division(values: np.ndarray) -> np.ndarray:
    """Each unit over the batch: divided by its root mean square, its mean left in; (..., m, N)."""
    return values / np.sqrt(np.square(values).mean(axis=-2, keepdims=True))


def layer_norm(values: np.ndarray) -> np.ndarray:
    """Each example over its units: mean 0, variance 1; (..., m, N)."""
    centred = values - values.mean(axis=-1, keepdims=True)
    return centred / np.sqrt(np.square(centred).mean(axis=-1, keepdims=True))


def no_norm(values: np.ndarray) -> np.ndarray:
    """Only the size of all values together is held, which changes neither of the two measures: no overflow."""
    return values / np.sqrt(np.square(values).mean(axis=(-2, -1), keepdims=True))


NORMS: dict[str, Normalize] = {
    "none": no_norm,
    "batch": batch_norm,
    "division": division,
    "layer": layer_norm,
}


def relu(values: np.ndarray) -> np.ndarray:
    return np.maximum(values, 0)


def linear(values: np.ndarray) -> np.ndarray:
    return values


ACTIVATIONS: dict[str, Normalize] = {"linear": linear, "relu": relu}


def inputs(examples: int, width: int, correlation: float, rng: np.random.Generator) -> np.ndarray:
    """Gaussian inputs (m, N), any two of which have this correlation: √ρ u + √(1 - ρ) v."""
    shared, own = rng.standard_normal((1, width)), rng.standard_normal((examples, width))
    return np.sqrt(correlation) * shared + np.sqrt(1 - correlation) * own


def through(
    start: np.ndarray, norm: str, activation: str, layers: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Soft rank and orthogonality gap of the normalized pre-activations of each layer, (L,) each.

    H¹ = norm(X W¹), H^{l+1} = norm(φ(H^l) W^{l+1}), entries of W independent standard normal; for m inputs X (m, N).
    """
    normalize, bend = NORMS[norm], ACTIVATIONS[activation]
    width = start.shape[-1]
    h, found = start, []
    for layer in range(layers):
        h = normalize((bend(h) if layer else h) @ rng.standard_normal((width, width)))
        found.append((soft_rank(h), orthogonality_gap(h)))
    ranks, gaps = np.array(found).T
    return ranks, gaps


def by_seed(
    seeds: range, norm: str, activation: str, examples: int, width: int, layers: int, correlation: float
) -> tuple[np.ndarray, np.ndarray]:
    """Soft ranks and gaps (S, L); a seed has the same inputs and weights whatever the norm and the activation."""
    found = []
    for seed in seeds:
        rng = np.random.default_rng([seed, width])
        found.append(through(inputs(examples, width, correlation, rng), norm, activation, layers, rng))
    ranks, gaps = zip(*found)
    return np.array(ranks), np.array(gaps)


def plateau(values: np.ndarray) -> np.ndarray:
    """Mean over the second half of the layers (..., L): (...,)."""
    return values[..., values.shape[-1] // 2 :].mean(axis=-1)


def slope(widths: list[int], values: np.ndarray) -> np.ndarray:
    """Slope of the logarithm of positive values (S, widths) against that of the width, least squares: (S,)."""
    x = np.log(widths)
    return ((x - x.mean()) * np.log(values)).sum(axis=-1) / np.square(x - x.mean()).sum()


# ---- Figures ----------------------------------------------------------------------------------------------

#: Norm -> words and ink.
LINES = {
    "batch": ("batch norm", COLORS["batch"]),
    "division": ("division alone", COLORS["apart"]),
    "layer": ("layer norm", COLORS["layer"]),
    "none": ("none", COLORS["none"]),
}


def by_depth(examples: int, curves: Mapping[str, np.ndarray]) -> plt.Figure:
    """Soft rank against the layer, a panel for each activation, "ACTIVATION.NORM" (S, L): means and bands."""
    fig, axes = subplots(1, 2, figsize=(9, 3.7), sharey=True)
    for ax, (activation, title) in zip(axes, (("linear", "linear units"), ("relu", "rectifiers"))):
        for norm, (words, ink) in LINES.items():
            values = curves[f"{activation}.{norm}"]
            style = dict(color=ink, label=words, linestyle="--" if norm == "layer" else "-")
            log_band(ax, np.arange(1, values.shape[1] + 1), values, **style)
        ax.axhline(examples, color=COLORS["grid"], linewidth=1)
        ax.set(xscale="log", yscale="log", xlabel="layer", title=title)
    axes[0].set_ylabel(f"soft rank, of {examples} examples")
    legend_below(fig, axes[1], 4)
    return fig


def gaps(curves: Mapping[str, np.ndarray]) -> plt.Figure:
    """Orthogonality gap against the layer, "w64" … (S, L), wider networks in fuller ink: means and bands."""
    fig, ax = subplots(figsize=(6.8, 3.7))
    for place, (name, values) in enumerate(curves.items()):
        full = (place + 1) / len(curves)
        x = np.arange(1, values.shape[1] + 1)
        log_band(ax, x, values, color=COLORS["apart"], alpha=full, label=f"{name[1:]} units")
    ax.set(
        xscale="log",
        yscale="log",
        xlabel="layer",
        ylabel="orthogonality gap",
        title="Division alone, linear units",
    )
    ax.legend(fontsize=9.5)
    return fig


# ---- Each figure of the page, from the results of its run -----------------------------------------------


def _draw_depth(results: Results) -> plt.Figure:
    return by_depth(parameters_of(results).examples, points_of(results, "depth"))


def _draw_widths(results: Results) -> plt.Figure:
    return gaps(points_of(results, "widths"))


FIGURES = {"depth": _draw_depth, "widths": _draw_widths}
