"""What the chapters on mean-field theory share: random networks, measured, beside the theory, solved for the
inputs that they saw."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import torch
from torch import Tensor, nn

from bnbook.data import Dataset, load, normalise
from bnbook.figures import COLORS, LABELS
from bnbook.meanfield import Convolutional, FullyConnected, MeanFieldTheory, solve
from bnbook.models import cnn, mlp
from bnbook.plots.axes import points
from bnbook.plots.layout import subplots
from bnbook.plots.panels import Panel, compare
from bnbook.probes.fisher import LargestEigenvalue, largest_eigenvalue
from bnbook.probes.order_parameters import OrderParameters
from bnbook.results import Results
from bnbook.runs import train_members
from bnbook.small_networks import PhaseArm, bisect, full_batch, works

# ---- Random networks, measured, beside mean-field theory, solved for the inputs that these networks saw ----

Measured = Sequence[OrderParameters]  # a network a seed


def sample_inputs(table: Tensor | None, shape: Sequence[int], seed: int, count: int) -> Tensor:
    """The inputs of one seed, (count, *shape): rows of the table without replacement, or Gaussian noise."""
    generator = torch.Generator().manual_seed(10**6 + seed)
    if table is None:
        return torch.randn(count, *shape, generator=generator)
    return table[torch.randperm(len(table), generator=generator)[:count]]


def unit_images(name: str) -> Tensor:
    """The training images of a data set, (images, C, H, W), as all networks have them, divided so that q̂⁰ = 1 for the
    whole set."""
    dataset = load(name)
    images = normalise(dataset.train_images, dataset)
    return images / images.square().mean().sqrt()


def by_layer(networks: Measured, letter: str) -> np.ndarray:
    """One of their numbers, (S, ...): for an order parameter (S, L+1)."""
    return np.array([getattr(one, letter) for one in networks])


def solve_for(
    networks: Measured,
    architecture: FullyConnected | Convolutional,
    norm: str,
    equations: str,
    sigma_w2: float = 2.0,
    sigma_b2: float = 0.5,
) -> MeanFieldTheory:
    """The equations for the data of these networks, letters (L+1, S); as printed they know one kind of data,
    (L+1, 1)."""
    letters = ("q_hat", "q_hat_xy", "q_hat_ab_xy")
    start = {f"{letter}_0": by_layer(networks, letter)[:, 0] for letter in letters}
    setting = dict(norm=norm, gamma=[1.0], sigma_w2=sigma_w2, sigma_b2=sigma_b2)
    return solve_as(equations, architecture, networks[0].inputs, start, **setting)


def ratios(
    networks: Measured, theory: MeanFieldTheory, letters: Sequence[str], layers: slice = slice(1, -1)
) -> np.ndarray:
    """Measured / theory, (S, letters · layers), the hidden layers by default; no column where a letter is not
    defined."""
    columns = [
        by_layer(networks, letter)[:, layers] / getattr(theory, letter)[layers].T for letter in letters
    ]
    found = np.concatenate(columns, axis=1)
    return found[:, np.isfinite(found).all(axis=0)]


def letter_curves(
    networks: Measured, theories: Mapping[str, Any], letters: Sequence[str]
) -> dict[tuple[str, str], np.ndarray]:
    """What a figure of letters by layer draws, by (measured, LETTER) (S, L+1) and (EQUATIONS, LETTER) (1, L+1), the mean
    of a theory over its data."""
    lines = {
        (name, letter): getattr(theory, letter).mean(axis=1)[None]
        for name, theory in theories.items()
        for letter in letters
    }
    return {("measured", letter): by_layer(networks, letter) for letter in letters} | lines


def root_mean_square(off: np.ndarray) -> np.ndarray:
    """Over the second axis, (S, K) -> (S,)."""
    return np.sqrt(np.mean(np.square(off), axis=1))


# ---- What mean-field theory says about the curvature of a network for the inputs that it sees, in four ways ----

#: The printed equations, by the start of their gradients of two places; the paper gives none, 0 is kindest.
STARTS = {"from0": 0.0, "from1": 1.0, "printed": 1.0}


def input_moments(x: Tensor) -> dict[str, float]:
    """Base case of the corrected equations for inputs (m, C, H, W): E‖x_α‖²/C, E⟨x_α, y_α⟩/C, E⟨x_α, y_β⟩/C.

    Means over all inputs, over all pairs x ≠ y of them, and over places α ≠ β too; the last is nan where
    there is one place only.
    """
    a = x.double().flatten(2)
    m, units, places = a.shape
    same = a.square().sum().item()
    one = a.sum(0).square().sum().item() - same
    apart = a.sum((0, 2)).square().sum().item() - a.sum(2).square().sum().item() - one
    pairs, others = m * (m - 1) * units * places, places - 1
    return {
        "q_hat_0": same / (m * units * places),
        "q_hat_xy_0": one / pairs,
        "q_hat_ab_xy_0": apart / (pairs * others) if others else float("nan"),
    }


def solve_as(
    equations: str,
    shape: FullyConnected | Convolutional,
    batch: int,
    moments: Mapping[str, float],
    **setting: Any,
) -> MeanFieldTheory:
    """The theory that `equations` name, for batches of m inputs with these moments.

    "from0" and "from1" ("printed"): as printed, without batch and inputs, gradients of two places from there;
    "corrected": statistics held constant; "through_batch": gradients through them. setting: as in `solve`.
    """
    if equations in STARTS:
        return solve(shape, two_places=STARTS[equations], **setting)
    places = isinstance(shape, Convolutional)
    known = {name: value for name, value in moments.items() if places or name != "q_hat_ab_xy_0"}
    return solve(shape, equations=equations, batch=batch, **known, **setting)


# ---- One fresh network, and trainings at many rates -----------------------------------------------------------

#: Of λ_max by the Lanczos iteration, relative.
TOLERANCE = 1e-4


def random_network(
    architecture: FullyConnected | Convolutional, norm: str, seed: int, gamma: float = 1.0
) -> nn.Sequential:
    """The network that the paper draws (equations 12, 16 and 27) from this seed."""
    torch.manual_seed(seed)
    if isinstance(architecture, FullyConnected):
        return mlp(architecture.widths, norm, "meanfield", gamma=gamma)
    return cnn(architecture.image, architecture.channels, norm=norm, gamma=gamma)


def panels(
    sets: Mapping[str, Dataset], layers: Mapping[str, tuple[int, ...]], **settings: Any
) -> tuple[dict[PhaseArm, str], dict[tuple[str, str], FullyConnected | Convolutional]]:
    """Both networks on every set, a panel of the figures each: settings -> what results' names end in, and (set, network)
    -> the shape that theory takes. layers: the hidden ones of "fc" and "conv"."""
    names, shapes = {}, {}
    for place, (name, dataset) in enumerate(sets.items()):
        image = tuple(dataset.train_images.shape[1:])
        for net, hidden in layers.items():
            names[PhaseArm(data=name, network=net, hidden=hidden, **settings)] = f"{net}.set{place}"
        shapes[name, "fc"] = FullyConnected((int(np.prod(image)), *layers["fc"], 10))
        shapes[name, "conv"] = Convolutional(image, layers["conv"])
    return names, shapes


def largest(arm: PhaseArm, seed: int, dataset: Dataset, parameters: str = "all") -> LargestEigenvalue:
    """λ_max over all outputs, and all parameters or the weights, through the batch, of the network and the batch of a
    seed."""
    images, _ = full_batch(arm, seed, dataset)
    network = arm.drawn(seed, dataset).train()
    return largest_eigenvalue(network, images, "all", parameters, tolerance=TOLERANCE)


def before_readout(arm: PhaseArm, seed: int, dataset: Dataset) -> np.ndarray:
    """What the readout of a fresh network receives of the batch of a seed, H (B, N)."""
    images, _ = full_batch(arm, seed, dataset)
    with torch.no_grad():
        return arm.drawn(seed, dataset).train()[:-1](images).flatten(1).double().numpy()


class Trainings:
    """Trainings of seeds from `first_seed` on, side by side; `runs` keeps each that was made: (settings, seed) -> its
    arrays.

    largest: log10 of the largest rate that is tried; above it none works.
    """

    def __init__(self, first_seed: int, workers: int, largest: float = np.inf) -> None:
        self.first_seed, self.workers, self.largest, self.runs = first_seed, workers, largest, {}

    def at(self, settings: Sequence[PhaseArm], rates: np.ndarray, of: str = "loss") -> np.ndarray:
        """What became of each at its log10 η (S, X), which counts to four digits: (S, X, ...)."""
        found = [run[of] for run in self._made(settings, rates, np.full(rates.shape, True))]
        return np.reshape(found, (*rates.shape, *np.shape(found[0])))

    def work(
        self, settings: Sequence[PhaseArm], rates: np.ndarray, good: Callable[[np.ndarray], bool] = works
    ) -> np.ndarray:
        """Whether the loss of each is `good` at its log10 η (S, X), (S, X)."""
        fine, tried = np.zeros(rates.shape, dtype=bool), rates <= self.largest
        fine[tried] = [good(run["loss"]) for run in self._made(settings, rates, tried)]
        return fine

    def bracket(
        self,
        settings: Sequence[PhaseArm],
        middle: np.ndarray,
        width: float,
        good: Callable[[np.ndarray], bool] = works,
    ) -> tuple[np.ndarray, np.ndarray]:
        """log10 η, each (S, X): one that works and one that does not, from a bracket around `middle` (S, X) that is
        moved by its own width until it is right."""

        def flat(rates: np.ndarray) -> np.ndarray:
            return self.work(settings, rates.reshape(middle.shape), good).ravel()

        low, high = bisect(flat, np.ravel(middle) - width / 2, np.ravel(middle) + width / 2, 0)
        return low.reshape(middle.shape), high.reshape(middle.shape)

    def broken(self, **settings: Any) -> list[dict[str, np.ndarray]]:
        """The trainings with these settings that did not work."""
        return [
            run
            for (arm, _), run in self.runs.items()
            if all(getattr(arm, name) == value for name, value in settings.items()) and not works(run["loss"])
        ]

    def _made(
        self, settings: Sequence[PhaseArm], rates: np.ndarray, tried: np.ndarray
    ) -> list[dict[str, np.ndarray]]:
        members = [
            (
                replace(settings[column], learning_rate=float(f"{10 ** rates[row, column]:.4g}")),
                self.first_seed + row,
            )
            for row, column in np.argwhere(tried).tolist()
        ]
        self.runs.update(train_members(list(dict.fromkeys(members)), self.workers))
        return [self.runs[member] for member in members]


# ---- Figures ----------------------------------------------------------------------------------------------


SETS = {"mnist": "MNIST", "cifar10": "CIFAR-10", "cifar10-auto": "CIFAR-10", "cifar10-jpeg75": "CIFAR-10"}
NETS = {"fc": "fully connected", "conv": "convolutional"}


def sets_of(results: Results) -> list[str]:
    """The names of a chapter's data sets, in the order in which it loaded them."""
    return [SETS.get(data["name"], data["name"]) for data in results.header["data"]]


def titles(results: Results) -> dict[str, str]:
    """What the names of results end in -> kind of network and data set, in words."""
    return {
        f"{net}.set{k}": f"{NETS[net]}, {name}" for k, name in enumerate(sets_of(results)) for net in NETS
    }


def by_set(
    results: Results, panel: Callable[[str], Panel], points, height: float, arms=(), **words
) -> plt.Figure:
    """A panel for each data set and kind of network: `panel` of what their results' names end in."""
    each = [replace(panel(suffix), title=title) for suffix, title in titles(results).items()]
    rows = [each[first : first + 2] for first in range(0, len(each), 2)]
    return compare(points, rows, arms, figsize=(7.6, height), sharex=True, **words)


ARMS = ("none", "batch")
LETTERS = {
    "q": "$q$",
    "q_xy": "$q_{xy}$",
    "q_ab_xy": r"$q_{\alpha\beta}$",
    "q_hat": r"$\hat q$",
    "q_hat_xy": r"$\hat q_{xy}$",
    "q_hat_ab_xy": r"$\hat q_{\alpha\beta}$",
    "q_tilde": r"$\tilde q$",
    "q_tilde_xy": r"$\tilde q_{xy}$",
    "q_tilde_ab_xy": r"$\tilde q_{\alpha\beta}$",
}
DASHES = {"printed": "--", "corrected": "-"}
THEORY = {"color": COLORS["theory"]}


def letters(
    results: Results, figure: str, columns: Mapping[str, tuple[Sequence[str], slice]], log: str = ""
) -> plt.Figure:
    """Order parameters by layer, a row for each norm, a column for each title: its letters in these layers.

    results: "curve.FIGURE.NORM.measured.LETTER" (S, L+1), and "printed" and "corrected" likewise (1, L+1).
    log: title of the column with a logarithmic axis. Filled: one input; open: pairs; grey: two places too.
    """
    size = (3.7 * len(columns), 6.4) if len(columns) == 2 else (8.2, 5.6)
    fig, axes = subplots(2, len(columns), figsize=size, sharex="col")
    signs: dict[str, plt.Line2D] = {}
    for row, norm in zip(axes, ARMS):
        for ax, (title, (names, shown)) in zip(row, columns.items()):
            curves = {
                (kind, letter): results[f"curve.{figure}.{norm}.{kind}.{letter}"]
                for kind in ("measured", *DASHES)
                for letter in names
            }
            index = np.arange(curves["measured", names[0]].shape[1])[shown]
            for equations, dash in DASHES.items():
                for letter in names:
                    line = curves[equations, letter].mean(axis=0)[shown]
                    line = np.where(line > 0, line, np.nan) if title == log else line
                    (drawn,) = ax.plot(index, line, dash, color=COLORS[equations], zorder=1)
                    signs[equations] = drawn
            for letter in names:
                mark = "D" if "tilde" in letter else "s" if "hat" in letter else "o"
                face = "#dddddd" if "_ab" in letter else "white" if "_xy" in letter else None
                style = {"color": COLORS[norm], "zorder": 2, "markerfacecolor": face}
                grey = {"color": COLORS["printed"], "markerfacecolor": face, "linestyle": "none"}
                signs[LETTERS[letter]] = plt.Line2D([], [], marker=mark, **grey)  # in either row
                points(ax, index, curves["measured", letter][:, shown], mark, **style)
            ax.set_xticks(index)
            if title == log:
                ax.set(yscale="log", ylim=(1e-4, 3), yticks=[1e-4, 1e-3, 1e-2, 1e-1, 1])
            if norm == ARMS[0]:
                ax.set_title(title)
        row[0].set_ylabel(LABELS[norm])
    for ax in axes[1]:
        ax.set_xlabel("layer $l$")
    fig.legend(signs.values(), signs, loc="outside lower center", ncols=6, fontsize=9.5)
    return fig
