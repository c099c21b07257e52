"""How different the answers of a random network to different inputs stay, layer by layer."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

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
