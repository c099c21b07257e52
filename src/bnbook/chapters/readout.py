"""Which layer breaks? Many small trainings at once, and the figures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import matplotlib.pyplot as plt
import numpy as np
import torch

from bnbook.chapters.mean_field import by_set
from bnbook.data import Dataset
from bnbook.figures import COLORS, points_of
from bnbook.plots.panels import Panel
from bnbook.probes.fisher import LargestEigenvalue
from bnbook.results import Results
from bnbook.runs import train_members
from bnbook.small_networks import PhaseArm, bisect, full_batch, works

#: A loss so many times the first has exploded, as in `bnbook.small_networks.descent`.
EXPLOSION = 1e6


class Trainings:
    """Trainings of all seeds side by side; `runs` keeps each that was made: (settings, seed) -> its arrays."""

    def __init__(self, seeds: Sequence[int], workers: int) -> None:
        self.seeds, self.workers, self.runs = seeds, workers, {}

    def work(self, settings: Sequence[PhaseArm], rates: np.ndarray) -> np.ndarray:
        """Whether each works at its log10 η (S, X), which counts to four digits: (S, X)."""
        members = [
            (replace(one, learning_rate=float(f"{10**rate:.4g}")), seed)
            for seed, row in zip(self.seeds, rates, strict=True)
            for one, rate in zip(settings, row, strict=True)
        ]
        found = train_members(list(dict.fromkeys(members)), self.workers)
        self.runs.update(found)
        losses = [found[member]["loss"] for member in members]
        return np.array([works(loss[None])[0] for loss in losses]).reshape(np.shape(rates))

    def bracket(
        self, settings: Sequence[PhaseArm], middle: np.ndarray, width: float
    ) -> tuple[np.ndarray, np.ndarray]:
        """log10 η, each (S, X): one that works and one that does not, from a bracket around `middle` (S, X) that is
        moved by its own width until it is right."""

        def flat(rates: np.ndarray) -> np.ndarray:
            return self.work(settings, rates.reshape(middle.shape)).ravel()

        low, high = bisect(flat, np.ravel(middle) - width / 2, np.ravel(middle) + width / 2, 0)
        return low.reshape(middle.shape), high.reshape(middle.shape)

    def that_broke(self, name: str, net: str) -> list[dict[str, np.ndarray]]:
        """The trainings with batch norm of a data set and a kind of network that did not work."""
        own = [
            run
            for (one, _), run in self.runs.items()
            if (one.data, one.network, one.norm) == (name, net, "batch")
        ]
        return [run for run in own if not works(run["loss"][None])[0]]


def beside(name: str, found: np.ndarray, predicted: np.ndarray) -> dict[str, list[float] | np.ndarray]:
    """Where log10 rates (S, X) lie from predicted ones (X,) or (S, X), a number a seed: offset and distance in
    decades, mean and mean size over X; slope of measured on predicted."""
    predicted = np.broadcast_to(predicted, found.shape)
    return {
        f"offset.{name}": (found - predicted).mean(axis=1),
        f"distance.{name}": np.abs(found - predicted).mean(axis=1),
        f"slope.{name}": [np.polyfit(x, y, 1)[0] for x, y in zip(predicted, found)],
    }


def explosion_step(loss: np.ndarray) -> float:
    """First step whose loss (T,) is no number or `EXPLOSION` times the first; inf if there is none."""
    with np.errstate(invalid="ignore"):
        broken = ~(loss <= EXPLOSION * loss[0])
    return float(broken.argmax()) if broken.any() else np.inf


def end(loss: np.ndarray) -> np.ndarray:
    """log10 of the mean loss (S, T) of the last tenth over the first; inf where that is no number."""
    share = loss[:, -max(1, loss.shape[1] // 10) :].mean(axis=1) / loss[:, 0]
    with np.errstate(divide="ignore"):
        return np.where(share < np.inf, np.log10(share), np.inf)


def brightness(arm: PhaseArm, seed: int, dataset: Dataset, found: LargestEigenvalue) -> float:
    """|correlation| over the batch of an eigenvector, summed over outputs by its first singular vector, with
    the mean of the images' pixels."""
    images, _ = full_batch(arm, seed, dataset)
    left, _, _ = torch.linalg.svd(found.vector.double(), full_matrices=False)
    return float(np.abs(np.corrcoef(left[:, 0].numpy(), images.flatten(1).mean(1).numpy())[0, 1]))


# ---- Figures ----------------------------------------------------------------------------------------------

#: What is trained -> words, ink, dash (a dashed line lies on top). As in `boundaries`, what was measured in
#: networks with batch norm has their ink, and the readout that of text.
PARTS = {
    "all": ("everything", COLORS["batch"], "--"),
    "readout": ("the readout alone", COLORS["theory"], "-"),
    "hidden": ("everything but the readout", COLORS["batch"], "-"),
}


def boundaries(results: Results) -> plt.Figure:
    """Critical rates against γ: a point a restart, the readout's and the printed lines."""
    points = points_of(results, "boundary")
    gammas = points["gamma"][0]
    lines = {"readout": ("-", COLORS["theory"], "readout"), "from0": ("--", COLORS["printed"], "printed")}
    lines["from1"] = (":", COLORS["printed"], "printed, from 1")

    def panel(suffix: str) -> Panel:
        measured = 10 ** results[f"boundary.{suffix}"]
        arms = {"measured": dict(y=measured, by="dots", look="o", color="batch", alpha=0.7, label="measured")}
        for key, (dash, color, words) in lines.items():
            if key != "from1" or "conv" in suffix:
                line = 10 ** points[f"{key}.{suffix}"].mean(axis=0)
                arms[key] = dict(y=line, look=dash, color=color, label=words, linewidth=1.3)
        return Panel(arms=arms, x=gammas, ticks=gammas, log="xy")

    return by_set(results, panel, points, 6.2, xlabel=r"$\gamma$", ylabel=r"critical $\eta$")


def parts(results: Results) -> plt.Figure:
    """Loss by step, a line for each restart and each part that is trained."""

    def panel(suffix: str) -> Panel:
        arms = {
            name: dict(
                y=losses,
                x=range(losses.shape[1]),
                color=color,
                look=dash,
                label=words,
                zorder=2 + (dash == "--"),
            )
            for name, (words, color, dash) in PARTS.items()
            for losses in [results[f"curve.parts.{name}.{suffix}"]]
        }
        highest = max(arm["y"][:, 0].max() for arm in arms.values())
        # what tells them apart is over after three steps
        early = dict(also=lambda ax: (ax.set_xscale("symlog", linthresh=1), ax.set_xlim(0, None)))
        return Panel(arms=arms, by="seeds", log="y", ylim=(None, 1e6 * highest), **early)

    return by_set(results, panel, results, 5.6, xlabel="step", ylabel="loss")
