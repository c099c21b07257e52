"""Does it reduce covariate shift? What is drawn of the VGG's and of the deep linear network's."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import matplotlib.pyplot as plt
import numpy as np

from bnbook.chapters.deep_linear import tag
from bnbook.chapters.vgg import of_ladder
from bnbook.deep_linear import spread_probes
from bnbook.figures import parameters_of, points_of
from bnbook.plots import printed
from bnbook.plots.axes import power
from bnbook.plots.panels import Panel, compare
from bookpress.results import Results


def rank_correlation(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Spearman's rank correlation of two curves, (S, P), (S, P) -> (S,); NaN below three steps."""
    if one.shape[1] < 3:
        return np.full(len(one), np.nan)
    ranks = [np.argsort(np.argsort(values, axis=1), axis=1) for values in (one, other)]
    return np.array([np.corrcoef(a, b)[0, 1] for a, b in zip(*ranks)])


NORMS, PAIR = ("none", "batch", "noisy"), ("none", "batch")
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
    own = parameters_of(results)
    steps = np.array(of_ladder(("none",), own.width, results.header["parameters"])["none"].probe_steps)
    return _measures(
        results, "vgg", TITLES, NORMS, printed.IDEAL, x=steps + 1, xlabel="training step + 1", log="xy"
    )


def by_layer(results: Results) -> plt.Figure:
    layers = range(2, 2 + results["curve.layers.cosine.none"].shape[2])
    words = dict(x=layers, ticks=layers, xlabel="layer", look="o-", log="y")
    return _measures(results, "layers", list(TITLES)[1:], NORMS, printed.IDEAL, **words)


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
