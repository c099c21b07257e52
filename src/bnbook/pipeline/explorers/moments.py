"""What the chapter on learning rates knew of its inputs, won back from the distances that it recorded.

The theory needs three means of the data, E‖x_α‖², E⟨x_α, y_α⟩ and E⟨x_α, y_β⟩ (a channel). Only their ratios
matter, for the first batch norm takes the scale out; and each recorded distance "measured less predicted" is
one equation for them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from bnbook.errors import BnbookError
from bnbook.meanfield import Convolutional, FullyConnected, solve
from bnbook.results import Results

MOMENTUM = 0.9
InputMoments = tuple[float, float, float]  # q̂, q̂_xy and q̂_αβ,xy of the inputs, q̂ = 1
Network = FullyConnected | Convolutional


def line(
    architecture: Network, equations: str, gammas: np.ndarray, batch: int, base: InputMoments
) -> np.ndarray:
    """log10 of the predicted critical rate by γ."""
    same, pairs, apart = base
    theory = solve(architecture, "batch", gammas, equations=equations, batch=batch, q_hat_0=same,
                   q_hat_xy_0=pairs, q_hat_ab_xy_0=apart)  # fmt: skip
    return np.log10(theory.critical_learning_rate(MOMENTUM))


def of_inputs(results: Results, networks: Mapping[str, Network], suffix: str) -> InputMoments:
    """The inputs of a data set, from the corrected lines of the fully connected and of the convolutional
    network.

    The fully connected one knows no two places and gives q̂_xy, the other then q̂_αβ,xy; both lines fall as
    inputs grow alike.
    """
    gammas, batch = (
        np.array(results.header["parameters"]["gammas"]),
        results.header["parameters"]["batch_size"],
    )

    def beyond(net: str, base: InputMoments) -> float:
        predicted = line(networks[net], "corrected", gammas, batch, base)
        return float(predicted.mean()) - _mean_line(results, f"corrected.{net}.{suffix}", f"{net}.{suffix}")

    pairs = _root(lambda value: beyond("fc", (1.0, value, value)), -0.9, 0.999)
    apart = _root(lambda value: -beyond("conv", (1.0, pairs, value)), -0.9, pairs + 0.5)
    return 1.0, pairs, apart


def readout(results: Results, gammas: np.ndarray, suffix: str) -> float:
    """a of the readout's own largest eigenvalue γ² a + 1, the 1 its bias, in the mean over the networks."""
    target = _mean_line(results, f"readout.{suffix}", suffix)

    def beyond(a: float) -> float:
        return float(np.log10(2 * (1 + MOMENTUM) / (gammas**2 * 10**a + 1)).mean()) - target

    return float(10 ** _root(beyond, -6.0, 9.0))


def _mean_line(results: Results, predicted: str, measured: str) -> float:
    """Mean over γ of log10 of a predicted rate: the measured less the recorded distance."""
    distance = results[f"boundary.{measured}"].mean(axis=1) - results[f"offset.{predicted}"]
    return float(distance.mean())


def _root(falling: Callable[[float], float], low: float, high: float) -> float:
    """Where a falling function is zero, by bisection."""
    if not falling(low) > 0 > falling(high):
        raise BnbookError("the recorded distances fit no inputs; expected those of the theory's lines")
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if falling(middle) > 0 else (low, middle)
    return (low + high) / 2
