"""Each layer of the table in one small network: trained at all rates, with the instruments at the common one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from scipy.stats import rankdata

from bnbook.data import load
from bnbook.errors import BnbookError
from bnbook.probes.activations import moment_change
from bnbook.studies.decay.training import Rows
from bnbook.studies.decay.trials import in_processes
from bnbook.studies.standins import instruments as of
from bnbook.studies.standins.layers import TABLE, StandIn
from bnbook.studies.standins.network import APART, Network, accuracy, draw, members, noise, pooled, trained
from bnbook.training.numerics import numerics

__all__ = [
    "INSTRUMENTS",
    "OUTCOMES",
    "Plan",
    "agreement",
    "correlations",
    "in_processes",
    "kept",
    "rank_correlation",
    "tables",
    "trials",
]

CLASSES = 10
#: A rate is usable where the mean loss of the last steps at the full rate, a fifth of the training, lies below
#: this share of that of guessing.
USABLE = 0.9
#: Instrument -> sign with which a larger score promises more, and words.
INSTRUMENTS = {
    "far": (-1, "far smoothness, 16η"),
    "near": (-1, "near smoothness, η/20"),
    "beta": (-1, "effective β"),
    "range": (-1, "range of the loss"),
    "shift_distance": (-1, "covariate shift, distance"),
    "shift_cosine": (1, "covariate shift, cosine"),
    "drift_mean": (-1, "drift of means"),
    "drift_spread": (-1, "drift of variances"),
    "growth": (-1, "gradient growth, start"),
    "curvature": (-1, "largest curvature, start"),
    "length": (1, "growth of the weights"),
    "readout": (1, "readout's critical rate"),
}
#: Larger is better in each.
OUTCOMES = {"rate": "largest usable rate", "speed": "training speed", "accuracy": "test accuracy"}
#: Instruments of which the mean over the probes is one of logarithms.
IN_LOGS = ("far", "near", "beta", "range", "shift_distance", "readout")


@dataclass(frozen=True)
class Plan:
    """The settings that all seeds share."""

    data: str
    pool: int  # pixels a side that are averaged
    width: int
    layers: int
    batch_size: int
    steps: int
    probes: int  # looks at the instruments, evenly over the steps at the full rate, the first at the start
    rates: Sequence[float]  # η, a grid, the smallest first
    common: float  # the one of them at which instruments are read

    @property
    def full(self) -> int:
        """Steps at the full rate; over the last fifth of the training it falls to 0 in a straight line."""
        return self.steps - self.steps // 5

    def share(self, step: int) -> float:
        """Of its rate, at a step."""
        return min(1.0, (self.steps - step) / (self.steps - self.full + 1))

    def widths(self, inputs: int) -> tuple[int, ...]:
        return (inputs, *[self.width] * self.layers, CLASSES)


def trials(plan: Plan, seed: int) -> dict[str, dict[str, float]]:
    """All layers of the table from one seed: the same first draws and batches. Name -> what `trial` gives."""
    if plan.common not in plan.rates:
        raise BnbookError(f"common rate {plan.common:g}; expected one of the grid {list(plan.rates)}")
    with numerics(torch.device("cpu"), 1):
        dataset = load(plan.data)
        seen, test = pooled(dataset, "train", plan.pool), pooled(dataset, "test", plan.pool)
        return {name: trial(one, plan, seed, seen, test) for name, one in TABLE.items()}


def trial(one: StandIn, plan: Plan, seed: int, seen: tuple, test: tuple) -> dict[str, float]:
    """Instruments at the common rate, by the names of `INSTRUMENTS`, and outcomes, by those of `OUTCOMES`.

    rate: log2 of the largest usable one (`largest_usable`); speed: minus the mean loss
    over the steps at the full rate, at the rate where that is smallest; accuracy: on the test images, at the
    rate whose loss over the last fifth of the steps is smallest. What diverges is NaN.
    """
    widths, common = plan.widths(seen[0].shape[1]), list(plan.rates).index(plan.common)
    network = draw(one, widths, seed, len(plan.rates))
    rows = Rows(*seen, plan.batch_size, seed)
    first, start = next(Rows(*seen, plan.batch_size, seed)), of.weight_length(network)
    looks = set(np.linspace(0, plan.full, plan.probes, endpoint=False).astype(int))
    found: dict[str, list[float]] = {}
    moving, losses = [], []
    with np.errstate(all="ignore"):
        for step in range(plan.steps):
            batch = next(rows)
            shaken = noise(one, plan.batch_size, widths, seed * APART + step)
            if step in looks:
                own = members(network, [common])
                moving.append(of.moments(one, own, first[0], shaken))
                read = look(one, own, batch, plan.common, shaken, step == 0)
                for name, value in read.items():
                    found.setdefault(name, []).append(value)
            losses.append(descend(one, network, batch, plan.share(step) * np.array(plan.rates), shaken))
        measured = {
            name: float(np.log2(values).mean() if name in IN_LOGS else np.mean(values))
            for name, values in found.items()
        }
        change = moment_change(*(np.array([pair[k].numpy() for pair in moving]) for k in (0, 1)))
        measured |= {"drift_mean": change[0].mean(), "drift_spread": change[1].mean()}
        measured["length"] = float(np.log2(of.weight_length(network) / start)[common])
        return measured | outcomes(one, plan, network, np.array(losses), seen, test)


def look(one, own, batch, rate, shaken, start) -> dict[str, float]:
    """The instruments of one network (M = 1) at one step; of one that has diverged no curvature."""
    read = of.walk(one, own, batch, rate, shaken)
    standing = np.isfinite(read["near"])
    read["readout"] = of.readout_rate(one, own, batch[0], shaken) if standing else np.nan
    if start:
        read["growth"] = of.growth(one, own, batch, shaken)
        read["curvature"] = of.curvature(one, own, batch, shaken)
    return read


def descend(one: StandIn, network: Network, batch, rates: Sequence[float], shaken) -> np.ndarray:
    """One step of gradient descent of each member at its own rate, in place; the losses before it, (M,)."""
    losses, found = of.gradients(one, network, batch, shaken)
    eta = torch.as_tensor(rates, dtype=losses.dtype)
    with torch.no_grad():
        for (_, _, part), gradient in zip(trained(network, one), found):
            part.sub_(eta.view(-1, *[1] * (part.ndim - 1)) * gradient)
    return losses.numpy()


def outcomes(one, plan: Plan, network: Network, losses: np.ndarray, seen, test) -> dict[str, float]:
    """Rate, speed and accuracy from the losses (T, M) and the trained members."""
    losses = np.where(np.isfinite(losses), losses, np.inf)
    whole, falling = losses[: plan.full].mean(0), losses[plan.full - 1 :].mean(0)
    late = losses[plan.full - max(plan.steps // 5, 1) : plan.full].mean(0)  # the last at the full rate
    best = members(network, [int(falling.argmin())])
    right = accuracy(one, best, seen[0], *test, plan.batch_size)
    late = np.where(np.isfinite(whole), late, np.inf)
    return {"rate": largest_usable(plan.rates, late), "speed": -float(whole.min()), "accuracy": float(right)}


def largest_usable(rates: Sequence[float], late: np.ndarray) -> float:
    """log2 of the rate above the largest usable one of the grid (A,) where the late loss (A,) reaches the limit.

    Between it and the next by a straight line of the loss, of which more than guessing's counts as guessing's, over
    the logarithm of the rate. An octave below the grid where none is usable; the last of the grid where that is.
    """
    guess = np.log(CLASSES)
    usable = np.flatnonzero(late < USABLE * guess)
    if not usable.size:
        return float(np.log2(rates[0])) - 1
    low, last = usable[-1], len(rates) - 1
    if low == last:
        return float(np.log2(rates[low]))
    share = (USABLE * guess - late[low]) / (min(late[low + 1], guess) - late[low])
    return float((1 - share) * np.log2(rates[low]) + share * np.log2(rates[low + 1]))


def tables(found: Sequence[Mapping[str, Mapping[str, float]]]) -> dict[str, np.ndarray]:
    """Instrument or outcome -> (S, configurations), from what `trials` gives of each seed."""
    return {
        name: np.array([[one[each][name] for each in TABLE] for one in found])
        for name in (*INSTRUMENTS, *OUTCOMES)
    }


def rank_correlation(score: np.ndarray, outcome: np.ndarray) -> float:
    """Spearman's: the correlation of the ranks of two rows; what is no number ranks last, ties share a rank."""
    one, other = (rankdata(np.where(np.isfinite(row), row, -np.inf)) for row in (score, outcome))
    return float(np.corrcoef(one, other)[0, 1])


def correlations(
    table: Mapping[str, np.ndarray], chosen: Sequence[str] = tuple(TABLE)
) -> dict[str, np.ndarray]:
    """ "INSTRUMENT.OUTCOME" -> (S,), rank correlation over the chosen configurations, seed by seed."""
    columns = [list(TABLE).index(name) for name in chosen]
    return {
        f"{name}.{outcome}": np.array(
            [
                rank_correlation(sign * score, reached)
                for score, reached in zip(table[name][:, columns], table[outcome][:, columns])
            ]
        )
        for name, (sign, _) in INSTRUMENTS.items()
        for outcome in OUTCOMES
    }


def kept(rate: np.ndarray, name: str) -> np.ndarray:
    """Octaves of usable rate above half of batch norm's gain over nothing, (S,), from log2 rates (S, K)."""
    plain, full, own = (rate[:, list(TABLE).index(each)] for each in ("none", "batch", name))
    return own - (plain + full) / 2


def agreement(table: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Outcome -> (S,): rank correlation of each seed's outcome with the mean of the other seeds'."""
    found = {}
    for outcome in OUTCOMES:
        values = table[outcome]
        others = [np.delete(values, seed, axis=0).mean(axis=0) for seed in range(len(values))]
        found[outcome] = np.array([rank_correlation(*pair) for pair in zip(values, others)])
    return found
