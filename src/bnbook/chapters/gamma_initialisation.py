"""Should γ start small? The figures."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import to_hex

from bnbook.figures import points_of
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
    points, arms = points_of(results, "eigenvalue"), {}
    for network, mark in zip(NAMES, "os"):
        means = {gamma: np.exp(np.log(top).mean()) for gamma, top in _by_gamma(points, network).items()}
        line = dict(color="batch", look=f"{mark}-", label=NAMES[network])
        arms[network] = dict(x=[*means], y=[*means.values()]) | line
    gammas = np.array([*means])
    middle = np.exp(np.mean([np.log(arm["y"][arm["x"].index(1.0)]) for arm in arms.values()]))
    arms["square"] = dict(x=gammas, y=middle * gammas**2, look=":", label="like γ²")
    critical = {f"paper: its rate\n{RATE:g} is critical": 2 * (1 + MOMENTUM) / RATE}
    words = dict(log="xy", xlabel="first γ", ylabel=r"$\lambda_{\max}$ at the start", marks_y=critical)
    panel = Panel(title="Does the curvature fall with γ?", **words)
    return compare(points, [panel], arms, figsize=(6.2, 3.4))
