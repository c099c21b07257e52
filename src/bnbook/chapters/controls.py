"""What passes without it? The tests of other pages on networks that lack what the tests are about."""

from __future__ import annotations

from dataclasses import dataclass

import matplotlib.pyplot as plt
import numpy as np
import torch
import torch.nn.functional as F

from bnbook.chapters.mean_field import ARMS, by_set, largest
from bnbook.chapters.stand_ins import Plan, linear
from bnbook.data import Dataset
from bnbook.figures import LABELS
from bnbook.plots.panels import Panel
from bnbook.results import Results
from bnbook.small_networks import PhaseArm, full_batch

# ---- Everything but the readout, on one batch, at ten times the critical rate of the linear regime ----------


@dataclass(frozen=True)
class Alone:
    """One training of everything but the readout."""

    loss: np.ndarray  # (T,), of each step before its update
    right: float  # share of the batch's images that it answers rightly at the end
    longer: float  # length of the hidden weights, last over first


def without_readout(arm: PhaseArm, seed: int, dataset: Dataset, times: float = 10.0) -> Alone:
    """The network's hidden weights, biases, γ and β trained on one batch, the readout as drawn, at `times`
    2 (1 + μ) / λ_max, λ_max of this network over all outputs and parameters."""
    rate = times * 2 * (1 + arm.momentum) / largest(arm, seed, dataset).value
    model = arm.drawn(seed, dataset).train()
    images, labels = full_batch(arm, seed, dataset)
    targets = F.one_hot(labels, len(dataset.classes)).float()
    moved = list(model.parameters())[:-2]
    weights = [p for p in moved if p.ndim > 1]
    start = torch.cat([w.detach().flatten() for w in weights]).norm()
    descent, losses = torch.optim.SGD(moved, rate, arm.momentum), []
    for _ in range(arm.steps):
        loss = 0.5 * (model(images) - targets).square().sum() / len(images)
        descent.zero_grad()
        loss.backward(inputs=moved)
        descent.step()
        losses.append(float(loss.detach()))
    with torch.no_grad():
        right = (model(images).argmax(1) == labels).double().mean()
        longer = torch.cat([w.flatten() for w in weights]).norm() / start
    return Alone(np.array(losses), float(right), float(longer))


def readout_curvature(arm: PhaseArm, seed: int, dataset: Dataset) -> tuple[float, float]:
    """Largest curvature of the readout's weights and biases, and the share of it that the mean feature has.

    λ_max of (H Hᵀ + 1 1ᵀ) / B, H (B, N) what the readout receives; along the ones it is ‖mean of H‖² + 1.
    """
    images, _ = full_batch(arm, seed, dataset)
    with torch.no_grad():
        h = arm.drawn(seed, dataset).train()[:-1](images).flatten(1).double().numpy()
    top = np.linalg.eigvalsh(h @ h.T + 1)[-1] / len(h)
    return float(top), float((np.square(h.mean(0)).sum() + 1) / top)


# ---- A network without a hidden layer, for as many steps and batches as another page's ----------------------


def floor(setting: tuple[str, int, int, int], rates: tuple[float, ...], seed: int) -> float:
    """Test accuracy of softmax regression at the rate whose training ends lowest: `linear` of the stand-ins.

    setting: data set, pixels a side that are averaged, batch size and steps.
    """
    data, pool, batch_size, steps = setting
    plan = Plan(data, pool, 1, 0, batch_size, steps, 1, rates, rates[0])
    return linear(plan, seed)["accuracy"]


# ---- Figures ------------------------------------------------------------------------------------------------


def alone(results: Results) -> plt.Figure:
    """Loss by step of everything but the readout, a line for each seed, with and without batch norm."""

    def panel(suffix: str) -> Panel:
        rows = [results[f"curve.alone.{suffix}.{norm}"] for norm in ARMS]
        limits = (None, 1e6 * max(np.nanmax(each[:, 0]) for each in rows))
        return Panel(
            curve=f"curve.alone.{suffix}.{{}}", x=range(len(rows[0][0])), by="seeds", log="y", ylim=limits
        )

    arms = {norm: dict(label=LABELS[norm], linewidth=1.1) for norm in ARMS}
    return by_set(results, panel, results, 5.6, arms=arms, xlabel="step", ylabel="loss")
