"""Does it reduce covariate shift? What is drawn of the VGG's and of the deep linear network's."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import matplotlib.pyplot as plt
import numpy as np

from bnbook.chapters.deep_linear import tag
from bnbook.chapters.vgg import PAIR, plain_arm
from bnbook.deep_linear import spread_probes
from bnbook.figures import parameters_of, points_of
from bnbook.plots import printed
from bnbook.plots.axes import power
from bnbook.plots.panels import Panel, compare
from bookpress.results import Results

TITLES = {"shift": "ℓ2 difference", "relative_shift": "ℓ2 difference / ‖G‖", "cosine": "cosine of G and G′"}


def _measures(
    results: Results, name: str, measures: Iterable[str], norms: Sequence[str], ideal, log: str, **words
):
    """A panel a measure; the cosine's axis is linear, and marked at what would be ideal."""
    own = {"cosine": dict(log=log.replace("y", ""), marks_y=ideal)}
    panels = [
        Panel(curve=f"{each}.{{}}", title=TITLES[each], **own.get(each, dict(log=log))) for each in measures
    ]
    size = (2.6 * len(panels) + 0.6, 3.3)
    return compare(points_of(results, name), panels, norms, figsize=size, columns=3, sharex=True, **words)


def over_steps(results: Results) -> plt.Figure:
    x = np.array(plain_arm(results).instruments.probe_steps) + 1
    norms = (*PAIR, "noisy")
    return _measures(results, "vgg", TITLES, norms, printed.IDEAL, x=x, xlabel="training step + 1", log="xy")


def by_layer(results: Results) -> plt.Figure:
    layers = range(2, 2 + results["curve.layers.cosine.none"].shape[2])
    words = dict(x=layers, ticks=layers, xlabel="layer", look="o-", log="y")
    return _measures(results, "layers", list(TITLES)[1:], (*PAIR, "noisy"), printed.IDEAL, **words)


def linear(results: Results) -> plt.Figure:
    own, steps = parameters_of(results), np.array(spread_probes(parameters_of(results).linear_steps)) + 1
    said = {tag(1e-6): printed.LINEAR_SHIFT}
    panels = [
        Panel(
            curve=f"{tag(rate)}.{{}}", title=f"cosine at the rate {power(rate)}", marks_y=said.get(tag(rate))
        )
        for rate in own.linear_rates
    ]
    size, words = (5.8, 2.7 * -(-len(panels) // 2) + 0.6), dict(xlabel="training step + 1", log="x")
    return compare(
        points_of(results, "linear"), panels, PAIR, figsize=size, columns=2, x=steps, sharex=True, **words
    )


def rates(results: Results) -> plt.Figure:
    own = parameters_of(results)
    places = sorted([*own.sweep_rates, own.learning_rate])
    words = dict(x=places, ticks=places, xlabel="learning rate", look="o-", log="xy", marks_x=printed.RATE)
    return _measures(results, "rates", list(TITLES)[1:], PAIR, None, **words)
