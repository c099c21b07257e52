"""One random problem against Lemma 3.3, its loss read as a norm and as a squared norm."""

from __future__ import annotations

import math

import numpy as np
import torch

from bnbook.studies.theorems import minima
from bnbook.studies.theorems.instances import batch_norm
from bnbook.studies.theorems.margins import error, margin


def lemma_33_trial(rng: np.random.Generator, number: int) -> dict[str, float]:
    """Root-mean-square norms, so that ‖BN(y)‖ = 1; ε is the least that meets the lemma's conditions."""
    m = (4, 8, 16)[number % 3]
    basis = np.linalg.qr(np.column_stack([np.ones(m), rng.standard_normal((m, 2))]))[0][:, 1:] * math.sqrt(m)
    size = 10 ** (
        rng.uniform(-0.2, 0.3) if number % 4 == 1 else rng.uniform(-2, 0.3)
    )  # every fourth one above 1/2
    if number % 4 == 0 and size < 0.5:
        target, output = (basis @ v for v in minima.worst_for_33(size))
    else:
        target = basis @ _turned(rng, 1 + size * rng.uniform(-1, 1))
        output = target + basis @ _turned(rng, size * rng.uniform())
    norm = lambda v: math.sqrt(float((v * v).mean()))
    epsilon = max(norm(output - target), abs(1 - norm(target))) * (1 + 1e-12)
    zero, one = np.zeros(1), np.ones(1)
    layer = lambda eps: batch_norm(torch.tensor(output)[:, None], one, zero, eps)[:, 0].numpy()
    value = norm(layer(0.0) - target)
    # As it stands, "ℓ2 norm" is √m times larger: then ε is too.
    euclidean = epsilon * math.sqrt(m)
    result = {
        "margin.lemma_33": margin(value, minima.lemma_33(epsilon)),
        "margin.lemma_33_euclidean": margin(value * math.sqrt(m), minima.lemma_33(euclidean)),
        "margin.lemma_33_three": margin(value, 3 * epsilon),
        "margin.lemma_33_three_euclidean": margin(value * math.sqrt(m), 3 * euclidean),
        "margin.lemma_33.eps": margin(norm(layer(0.1) - target), 3 * epsilon),
    }
    if euclidean < 0.5:
        result["margin.lemma_33_half_euclidean"] = result["margin.lemma_33_euclidean"]
    if epsilon < 0.5:
        result["margin.lemma_33_half"] = result["margin.lemma_33"]
        result["margin.lemma_33_sharp"] = margin(value, minima.sharp_33(epsilon))
        result["plot.epsilon"], result["plot.loss"] = epsilon, value
    if number % 4 == 0 and size < 0.5:
        result["error.lemma_33_reached"] = error(value, minima.sharp_33(epsilon))
    return result


def lemma_33_squared_trial(rng: np.random.Generator, number: int) -> dict[str, float]:
    """Lemma 3.3 with the squared norm for a loss, outputs as bad as they may be; ε < ½, half of them near ¼.

    In the plane of targets ℓ and outputs y: below ε = ¼ as for the norm, from there on ‖ℓ‖ just below √ε and
    y a hair's breadth on the other side of 0.
    """
    epsilon = rng.uniform(0.2, 0.3) if number % 2 else rng.uniform(0.001, 0.49)
    root = math.sqrt(epsilon)
    if epsilon < 1 / 4:
        target, output = minima.worst_for_33(root)
    else:
        target, output = np.array([root * (1 - 1e-6), 0.0]), np.array([-1e-9, 0.0])
    square = lambda v: float(v @ v)
    least = max(square(output - target), (1 - math.sqrt(square(target))) ** 2) * (1 + 1e-12)
    value = square(output / math.sqrt(square(output)) - target)
    result = {"margin.lemma_33_squared": margin(value, minima.lemma_33(least))}
    if epsilon < 1 / 4:
        result["margin.lemma_33_squared_quarter"] = result["margin.lemma_33_squared"]
        result["error.lemma_33_squared_reached"] = error(value, minima.sharp_33_squared(epsilon))
    return result


def _turned(rng: np.random.Generator, length: float) -> np.ndarray:
    angle = rng.uniform(0, 2 * math.pi)
    return length * np.array([math.cos(angle), math.sin(angle)])
