"""Should γ start small? The figures."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import to_hex

from bnbook.figures import COLORS, points_of
from bnbook.plots.layout import subplots
from bnbook.plots.panels import Panel, compare
from bookpress.results import Results


def tag(network: str, gamma: float) -> str:
    """What names of results end in: ("vgg16", 0.1) -> "vgg16.g0_1"."""
    return f"{network}.g" + f"{gamma:g}".replace(".", "_")


RATE, MOMENTUM = 0.1, 0.9  # of the paper's trainings, section 6.5
NAMES = {"vgg16": "VGG-16", "resnet": "PreAct-ResNet18"}


def _by_gamma(points: dict[str, np.ndarray], network: str) -> dict[float, np.ndarray]:
    """The points of a network, "NETWORK.gGAMMA", by the first γ, from the smallest."""
    start = f"{network}.g"
    found = {name.removeprefix(start): values for name, values in points.items() if name.startswith(start)}
    return dict(sorted((float(gamma.replace("_", ".")), values) for gamma, values in found.items()))


def learning_curves(results: Results) -> plt.Figure:
    """Batch accuracy (S, T) against the step, a panel a network, a line with its band for each first γ."""
    curves, panels = points_of(results, "curves"), []
    for network, title in NAMES.items():
        found = _by_gamma(curves, network)
        shades = plt.cm.viridis(np.linspace(0.0, 0.75, len(found)))
        arms = {
            f"{gamma:g}": dict(y=accuracy, color=to_hex(shade), label=f"γ = {gamma:g}")
            for (gamma, accuracy), shade in zip(found.items(), shades)
        }
        panels.append(Panel(title=title, arms=arms))
    words = dict(x="steps", xlabel="step", ylabel="batch accuracy")
    return compare(curves, panels, figsize=(8, 3.4), sharey=True, **words)


def eigenvalues(results: Results) -> plt.Figure:
    """Geometric mean of λ_max at the start against γ, a line a network, and a line like γ²."""
    fig, ax = subplots(figsize=(6.2, 3.4))
    points, at_one = points_of(results, "eigenvalue"), []
    for network, mark, up in zip(NAMES, "os", (7, -16)):
        found = {gamma: np.exp(np.log(top).mean()) for gamma, top in _by_gamma(points, network).items()}
        at_one.append(found[1.0])
        gammas, means = np.array(list(found)), list(found.values())
        ax.plot(gammas, means, mark + "-", color=COLORS["batch"])
        style = {"textcoords": "offset points", "color": COLORS["batch"], "fontsize": 9.5, "ha": "right"}
        ax.annotate(NAMES[network], (gammas[-1], means[-1]), (6, up), **style)
    middle = np.exp(np.mean(np.log(at_one)))
    ax.plot(gammas, middle * gammas**2, ":", color=COLORS["theory"])
    style = {"textcoords": "offset points", "fontsize": 9.5}
    ax.annotate("like γ²", (gammas[0], middle * gammas[0] ** 2), (10, -4), **style)
    critical = 2 * (1 + MOMENTUM) / RATE
    ax.axhline(critical, color=COLORS["printed"], linewidth=1, linestyle=(0, (4, 3)), zorder=0.9)
    place = {"xycoords": ax.get_yaxis_transform(), "va": "center", "color": COLORS["printed"]}
    ax.annotate(f"paper: its rate\n{RATE:g} is critical", (1.0, critical), (4, 0), **style, **place)
    ax.set(xscale="log", yscale="log", xlabel="first γ", ylabel=r"$\lambda_{\max}$ at the start")
    ax.set_title("Does the curvature fall with γ?")
    ax.minorticks_off()
    ax.margins(y=0.15)
    return fig
