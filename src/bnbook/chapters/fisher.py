"""How curved is a fresh network's loss? The figures."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np

from bnbook.chapters.mean_field import NETS
from bnbook.figures import COLORS
from bnbook.plots.panels import Panel, compare
from bnbook.results import Results

LINES = {
    "none.printed": ("without, printed", "--", COLORS["none"]),
    "none.corrected": ("without, corrected", "-", COLORS["none"]),
    "batch.printed": ("with, printed", "--", COLORS["batch"]),
    "batch.corrected": ("with, corrected", "-", COLORS["batch"]),
    "batch.through_batch": ("with, through the batch", ":", COLORS["theory"]),
}
MARKS = {
    "none": ("without batch norm", "o", COLORS["none"]),
    "detached": ("constant statistics", "s", COLORS["batch"]),
    "through": ("through the batch", "D", COLORS["theory"]),
}
AT = np.array([0.5, 1, 2, 3, 4, 5])  # γ of the points; measured at 1


def figure_one(results: Results) -> plt.Figure:
    """λ_max and 2 (1 + μ) / λ_max against γ, a row a network: lines of the equations, points measured at γ = 1."""
    gammas, (momentum,) = results["curve.figure_one.gamma"][0], results["curve.figure_one.momentum"]
    panels = []
    for net, title in NETS.items():
        lines = {name: results[f"curve.figure_one.{name}.{net}"][0] + 0 * gammas for name in LINES}
        marks = {
            case: results[f"value.{net}.gaussian.{case}"][:, None] * AT ** (2 * (case != "none"))
            for case in MARKS
        }
        panels.append([])
        for of_lambda, words in (
            (lambda top: top, r"$\lambda_{\max}$"),
            (lambda top: 2 * (1 + momentum) / top, r"$\eta_*$"),
        ):
            arms = {
                name: dict(x=gammas, y=of_lambda(lines[name]), color=color, look=dash, label=label)
                for name, (label, dash, color) in LINES.items()
            }
            for case, (_, mark, color) in MARKS.items():
                style = dict(color=color, look=mark, capsize=2, markerfacecolor="white")
                arms[f"measured {case}"] = dict(x=AT, y=of_lambda(marks[case]), by="points", **style)
            panels[-1].append(Panel(title=title, arms=arms, ylabel=words))
    return compare(results, panels, figsize=(7.8, 6.4), sharex=True, log="y", xlabel=r"$\gamma$")


def sweeps(results: Results) -> plt.Figure:
    """λ_max against width, inputs and outputs, and the lines of theory."""
    panels = []
    for name, label in {"width": "units N", "inputs": "inputs m", "outputs": "outputs"}.items():
        at, arms = results[f"curve.sweeps.{name}"][0], {}
        for case, (words, _, color) in MARKS.items():
            measured, theory = (f"curve.sweeps.{each}.{case}" for each in (name, f"{name}_theory"))
            arms[case] = dict(y=measured, by="points", color=color, look="o", capsize=2, label=words)
            arms[f"theory {case}"] = dict(y=theory, color=color)
        panels.append(Panel(arms=arms, x=at, ticks={place: f"{place:.0f}" for place in at}, xlabel=label))
    return compare(results, panels, figsize=(8.6, 3.3), log="xy", ylabel=r"$\lambda_{\max}$, γ = 1")
