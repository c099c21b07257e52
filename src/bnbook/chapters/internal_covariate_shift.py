"""Does it reduce covariate shift? What is drawn of the VGG's and of the deep linear network's."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np

from bnbook.chapters.deep_linear import tag
from bnbook.chapters.vgg import of_ladder
from bnbook.deep_linear import spread_probes
from bnbook.figures import parameters_of, points_of
from bnbook.plots import printed
from bnbook.plots.axes import power
from bnbook.plots.panels import panels
from bookpress.results import Results


def rank_correlation(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Spearman's rank correlation of two curves, (S, P), (S, P) -> (S,); NaN below three steps."""
    if one.shape[1] < 3:
        return np.full(len(one), np.nan)
    ranks = [np.argsort(np.argsort(values, axis=1), axis=1) for values in (one, other)]
    return np.array([np.corrcoef(a, b)[0, 1] for a, b in zip(*ranks)])


# ---- Each figure of the page, from the results of its run -----------------------------------------------

NORMS, PAIR = ("none", "batch", "noisy"), ("none", "batch")
TITLES = {"shift": "ℓ2 difference", "relative_shift": "ℓ2 difference / ‖G‖", "cosine": "cosine of G and G′"}


def over_steps(results: Results) -> plt.Figure:
    own = parameters_of(results)
    steps = np.array(of_ladder(("none",), own.width, results.header["parameters"])["none"].probe_steps)
    words = dict(xlabel="training step + 1", log="xy", linear=("cosine",), levels={"cosine": printed.IDEAL})
    return panels(points_of(results, "vgg"), steps + 1, TITLES, NORMS, **words)


def by_layer(results: Results) -> plt.Figure:
    points = points_of(results, "layers")
    layers, titles = range(2, 2 + points["cosine.none"].shape[2]), dict(list(TITLES.items())[1:])
    words = dict(xlabel="layer", log="y", linear=("cosine",), ticks=True, levels={"cosine": printed.IDEAL})
    return panels(points, layers, titles, NORMS, **words)


def linear(results: Results) -> plt.Figure:
    own = parameters_of(results)
    titles = {tag(rate): f"cosine at the rate {power(rate)}" for rate in own.linear_rates}
    words = dict(xlabel="training step + 1", log="x", columns=2, levels={tag(1e-6): printed.LINEAR_SHIFT})
    steps = np.array(spread_probes(own.linear_steps))
    return panels(points_of(results, "linear"), steps + 1, titles, PAIR, **words)


def rates(results: Results) -> plt.Figure:
    own = parameters_of(results)
    places, titles = sorted([*own.sweep_rates, own.learning_rate]), dict(list(TITLES.items())[1:])
    words = dict(xlabel="learning rate", log="xy", linear=("cosine",), ticks=True, upright=printed.RATE)
    return panels(points_of(results, "rates"), places, titles, PAIR, **words)


FIGURES = {"vgg": over_steps, "layers": by_layer, "linear": linear, "rates": rates}
