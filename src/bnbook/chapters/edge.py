"""What sets the smoothness, the network or the learning rate? The page's figure."""

from __future__ import annotations

import matplotlib.pyplot as plt

from bnbook.figures import LABELS, parameters_of, points_of
from bnbook.plots.panels import Panel, compare
from bookpress.results import Results

DASHES = ((0, (1, 1.2)), (0, (5, 2)), "-")  # the slowest rate first
TITLES = {norm: LABELS[norm] for norm in ("none", "batch")}


def edge(results: Results) -> plt.Figure:
    """A column an arm: above η λ_max at each rate, top.RATE.NORM (1, 3, P); below λ_max at the largest rate,
    kept.NORM, and after it was halved, halved.NORM."""
    own, curves = parameters_of(results), points_of(results, "edge")
    rates, half = own.rates, own.steps // 2
    looks = range(0, 2 * half + 1, own.look_every)
    halved = [half + step for step in range(0, half + 1, own.look_every)]
    panels = ([], [])
    below = dict(marks_y={"2/η": 2 / rates[-1], "4/η": 4 / rates[-1]}, ylabel=r"$\lambda_{\max}$")
    for norm, title in TITLES.items():
        top = {
            f"{rate:g}": dict(y=f"top.{_tag(rate)}.{norm}", color=norm, linestyle=dash, label=f"η = {rate:g}")
            for rate, dash in zip(rates, DASHES)
        }
        kept = {"kept": dict(y=f"kept.{norm}", color=norm, label="rate kept")}
        kept["halved"] = dict(
            x=halved, y=f"halved.{norm}", color=norm, linestyle=DASHES[1], label="rate halved"
        )
        panels[0].append(Panel(arms=top, title=title, marks_y={"2": 2.0}, ylabel=r"$\eta\,\lambda_{\max}$"))
        panels[1].append(Panel(arms=kept, **below))
    words = dict(x=looks, log="y", xlabel="training step", legend="each")
    return compare(curves, panels, figsize=(7.6, 5.6), sharex=True, sharey="row", **words)


def _tag(rate: float) -> str:
    return f"lr{rate:g}".replace(".", "_")
