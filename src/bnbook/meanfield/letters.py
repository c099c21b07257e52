"""The order parameters of a network by layer, and the two passes that compute them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bnbook.meanfield import recursions as eq
from bnbook.meanfield.architectures import Convolutional, FullyConnected

Array = np.ndarray


@dataclass(frozen=True)
class Setting:
    """One network's settings as broadcast arrays, and which equations are solved for it."""

    architecture: FullyConnected | Convolutional
    norm: str
    equations: str
    batch: int | None
    gamma: Array
    sigma_w2: Array
    sigma_b2: Array
    two_places: float = 1.0  # q̃_αβ,xy where the printed recursion begins

    def values(self, layer: int) -> int | None:
        """n, how many values of a unit batch norm pools in that layer: m |K_l|."""
        return None if self.batch is None else self.batch * self.architecture.positions[layer]

    def empty(self) -> Array:
        return np.full((self.architecture.depth + 1, *self.gamma.shape), np.nan)


@dataclass(frozen=True)
class Forward:
    """What goes forwards; index the paper's l, then the settings' shape."""

    q: Array
    q_xy: Array
    q_ab_xy: Array
    q_hat: Array
    q_hat_xy: Array
    q_hat_ab_xy: Array
    variance: Array  # what the backward equations divide by
    c_xy: Array  # correlation of what enters the rectifier, two inputs, the same place
    c_ab_xy: Array  # the same at two places


def forward(setting: Setting, q_hat_0: Array, q_hat_xy_0: Array, q_hat_ab_xy_0: Array) -> Forward:
    """Equations 20, 21, 23, 24 and 34 to 36, 39 to 41, from the inputs to the readout."""
    one = Forward(*(setting.empty() for _ in range(9)))
    one.q_hat[0], one.q_hat_xy[0], one.q_hat_ab_xy[0] = q_hat_0, q_hat_xy_0, q_hat_ab_xy_0
    places = setting.architecture.positions
    for l in range(1, setting.architecture.depth + 1):
        for z, h in ((one.q, one.q_hat), (one.q_xy, one.q_hat_xy), (one.q_ab_xy, one.q_hat_ab_xy)):
            z[l] = eq.preactivation(h[l - 1], setting.sigma_w2, setting.sigma_b2)
        if places[l] == 1:  # there are no two places
            one.q_ab_xy[l] = np.nan
        if l == setting.architecture.depth:
            break
        (_none if setting.norm == "none" else _batch)(setting, one, l, places[l])
    return one


def _none(setting: Setting, one: Forward, l: int, places: int) -> None:
    q = one.variance[l] = one.q[l]
    one.c_xy[l] = eq.correlation(q, one.q_xy[l])
    one.q_hat[l], one.q_hat_xy[l] = eq.relu_forward(q), eq.relu_forward_pairs(q, one.q_xy[l])
    if places > 1:
        one.c_ab_xy[l] = eq.correlation(q, one.q_ab_xy[l])
        one.q_hat_ab_xy[l] = eq.relu_forward_pairs(q, one.q_ab_xy[l])


def _batch(setting: Setting, one: Forward, l: int, places: int) -> None:
    if setting.equations == "printed":
        one.variance[l], one.c_xy[l], one.c_ab_xy[l] = one.q[l], 0.0, 0.0
    else:
        pooled = eq.pooled_product(one.q_xy[l], one.q_ab_xy[l], places)
        one.variance[l] = eq.data_variance(one.q[l], pooled, setting.values(l))
        one.c_xy[l] = eq.centred_correlation(one.q[l], one.q_xy[l], pooled, setting.values(l))
        one.c_ab_xy[l] = eq.centred_correlation(one.q[l], one.q_ab_xy[l], pooled, setting.values(l))
    one.q_hat[l] = eq.batch_forward(setting.gamma)
    one.q_hat_xy[l] = eq.batch_forward_pairs(setting.gamma, one.c_xy[l])
    if places > 1:
        one.q_hat_ab_xy[l] = eq.batch_forward_pairs(setting.gamma, one.c_ab_xy[l])
