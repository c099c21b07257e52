"""Can six numbers a layer describe a network? The figures."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np

from bnbook.chapters.mean_field import ARMS, DASHES, LETTERS, letters
from bnbook.figures import COLORS, LABELS, points_of
from bnbook.plots.panels import Panel, compare
from bnbook.results import Results

FORWARD, BACKWARD = ("q", "q_xy", "q_hat", "q_hat_xy"), ("q_tilde", "q_tilde_xy")

#: Inputs -> words, mark, and what fills it (None: the ink of the arm).
INPUTS = {
    "gaussian": ("Gaussian inputs", "o", None),
    "images": ("images", "s", "white"),
    "centred": ("images, centred pixel by pixel", "^", None),
}


def layers(results: Results) -> plt.Figure:
    """The six letters by layer; the readout's activations average over few units."""
    columns = {"activations": (FORWARD, slice(0, -1)), "gradients": (BACKWARD, slice(1, None))}
    return letters(results, "layers", columns)


def images(results: Results) -> plt.Figure:
    """Measured over the corrected theory, letter by letter in the hidden layers, a panel for each norm."""
    hidden = results["curve.images.none.images"].shape[1] // len(FORWARD + BACKWARD)
    names = [f"{LETTERS[each][:-1]}^{l}$" for each in FORWARD + BACKWARD for l in range(1, hidden + 1)]
    panels = []
    for norm in ARMS:
        arms = {}
        for shift, (kind, (label, mark, face)) in zip((-0.22, 0, 0.22), INPUTS.items()):
            style = dict(
                color=norm, markerfacecolor=face or COLORS[norm], capsize=2, linewidth=1.2, look=mark
            )
            arms[kind] = dict(
                x=np.arange(len(names)) + shift, y=f"curve.images.{norm}.{kind}", label=label, **style
            )
        panels.append([Panel(title=LABELS[norm], arms=arms)])
    words = dict(by="points", ticks=dict(enumerate(names)), ylabel="measured / corrected", marks_y={"": 1})
    band = dict(also=lambda ax: ax.axhspan(0.9, 1.1, color="#000000", alpha=0.07, linewidth=0))
    return compare(results, panels, figsize=(7.4, 6.4), sharex=True, sharey=True, **words, **band)


def largest_eigenvalue(results: Results) -> plt.Figure:
    """The bound on λ_max and the learning rate 2 (1 + μ) / λ_max against γ: theory, and what was measured at γ = 1."""
    gammas, (momentum,) = results["curve.lambda_max.gamma"][0], results["curve.lambda_max.momentum"]
    at, panels = np.array([0.5, 1, 2, 3, 4, 5]), []
    theories = {"none": ("-", "none", "without batch norm"), "printed": ("--", "batch", "with, printed")}
    theories["corrected"] = ("-", "batch", "with, corrected")
    through = results["curve.lambda_max.through"][:, None] * gammas**2
    for of_lambda, title, words, limits in (
        (lambda bound: bound, "(a)", r"lower bound on $\lambda_{\max}$", (10, None)),
        (lambda bound: 2 * (1 + momentum) / bound, "(b)", r"critical learning rate $\eta_*$", (None, 1)),
    ):
        arms = {}
        for name, (dash, color, label) in theories.items():
            line = of_lambda(results[f"curve.lambda_max.{name}"][0] + 0 * gammas)
            arms[name] = dict(x=gammas, y=line, look=dash, color=color, label=f"theory, {label}")
        for kind, shift in (("gaussian", -0.03), ("images", 0.03)):
            label, mark, face = INPUTS[kind]
            for norm in ARMS:
                values = of_lambda(results[f"bound.{norm}.{kind}"][:, None] * at ** (2 * (norm == "batch")))
                style = dict(color=norm, look=mark, capsize=2, markerfacecolor=face or COLORS[norm])
                style["label"] = f"measured, {label}" if norm == "batch" else None
                arms[f"{kind} {norm}"] = dict(x=at + shift, y=values, by="points", **style)
        label = "measured, through statistics"
        arms["through"] = dict(
            x=gammas, y=of_lambda(through).mean(axis=0), look=":", color="theory", label=label
        )
        panels.append(Panel(title=title, ylabel=words, ylim=limits, arms=arms))
    return compare(results, panels, figsize=(7.4, 4.3), log="y", xlabel=r"$\gamma$")


def convergence(results: Results) -> plt.Figure:
    """Errors of single networks by width, and the bound's excess by inputs beside what theory says."""
    curves = {name: results[f"curve.convergence.{name}"] for name in (*ARMS, "excess", "predicted")}
    widths, batches = (results[f"curve.convergence.{name}"][0] for name in ("widths", "batches"))
    guide = dict(look=":", color="theory")
    root = dict(
        y=curves["none"].mean(axis=0)[0] * np.sqrt(widths[0] / widths), label=r"$\propto 1/\sqrt{N}$", **guide
    )
    inverse = dict(y=curves["excess"].mean(axis=0)[0] * batches[0] / batches, label=r"$\propto 1/m$", **guide)
    left = {norm: dict(y=curves[norm], label=LABELS[norm]) for norm in ARMS} | {"guide": root}
    right = {"measured": dict(y=curves["excess"], color="batch", label="measured")}
    theory = dict(y=curves["predicted"][0], look="-", color="corrected", label="corrected for finite $m$")
    panels = [
        Panel(
            arms=left,
            x=widths,
            ticks=widths,
            xlabel="units of a layer $N$",
            ylabel="relative error of one network",
        ),
        Panel(
            arms=right | {"theory": theory, "guide": inverse},
            x=batches,
            ticks=batches,
            xlabel="number of inputs $m$",
            ylabel="bound, relative excess",
        ),
    ]
    return compare(results, panels, figsize=(7.4, 3.6), log="xy", by="points", look="o", legend="each")


def depth(results: Results) -> plt.Figure:
    """Mean square gradients in layers 1 to L, measured and by theory."""
    points = points_of(results, "depth")
    arms = {norm: dict(look="o", label=f"measured, {LABELS[norm]}") for norm in ARMS}
    for equations, dash in DASHES.items():
        label = f"with batch norm, {equations}"
        arms[equations] = dict(y=f"theory.{equations}", look=dash, label=label)
    arms["theory"] = dict(y="theory.none", look=":", color="none", label="without, theory")
    words = dict(xlabel="layer $l$", ylabel=r"mean square gradient $\tilde q^{\,l}$", log="y")
    return compare(points, [Panel(curve="{}", **words)], arms, figsize=(7.2, 3.8), legend="below")
