"""Does it reduce covariate shift? That of the VGG and of the deep linear network, summed up."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np

from bnbook.chapters.deep_linear import tag
from bnbook.chapters.shared import arithmetic, geometric
from bnbook.chapters.vgg import at_equal_progress, first_steps, middles, of_ladder
from bnbook.deep_linear import spread_probes
from bnbook.figures import parameters_of, points_of
from bnbook.plots import printed
from bnbook.plots.axes import power
from bnbook.plots.panels import panels
from bnbook.probes import summaries
from bnbook.probes.over_steps import holds_from, over_training, share_of_training
from bnbook.training.curves import guessing
from bnbook.training.placed import PlacedArm
from bookpress.results import Results

Arrays = dict[str, np.ndarray]
MEASURES = ("shift", "relative_shift", "cosine")


def of_arm(run: Arrays, arm: PlacedArm, classes: int) -> Arrays:
    """Middles over the training of shift, relative_shift and cosine (means over layers 2 to 11);
    shift_decline: early over late; shift_follows_loss: rank correlation of the shift and the batch's loss
    over the probed steps after the first twentieth; training_accuracy: of the batches, over all steps."""
    curves, steps = summaries.covariate_shift(run), run["probe_step"][0]
    found = middles(curves, run, arm, classes)
    found["shift_decline"] = found["shift_early"] / found["shift_late"]
    settled = steps >= 0.05 * steps[-1]
    pair = curves["shift"][:, settled], run["start_loss"][:, settled]
    found["shift_follows_loss"] = rank_correlation(*pair)
    found["training_accuracy"] = guessing(run["accuracy"], classes).mean(1)
    return found


def of_pair(plain: Arrays, normed: Arrays, classes: int) -> Arrays:
    """worse_share.X: the share of the steps at which batch norm has the larger shift (the lower cosine);
    worse_from.X: from which probed step on it has to the end (∞: not at the last); equal_loss_shift.NORM,
    equal_loss_cosine.NORM: medians over the losses that both pass."""
    one, other = (summaries.covariate_shift(run) for run in (plain, normed))
    alive, steps = np.isfinite(plain["start_loss"]), plain["probe_step"][0]
    found = {}
    for name in MEASURES:
        worse = other[name] < one[name] if name == "cosine" else other[name] > one[name]
        found[f"worse_share.{name}"] = share_of_training(worse, alive, steps)
        found[f"worse_from.{name}"] = holds_from(worse | ~alive, steps)
    for name in ("shift", "cosine"):
        middle = at_equal_progress((one[name], other[name]), (plain, normed), classes)
        for norm, values in zip(("none", "batch"), middle):
            found[f"equal_loss_{name}.{norm}"] = values
    return found


def rank_correlation(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Spearman's rank correlation of two curves, (S, P), (S, P) -> (S,); NaN below three steps."""
    if one.shape[1] < 3:
        return np.full(len(one), np.nan)
    ranks = [np.argsort(np.argsort(values, axis=1), axis=1) for values in (one, other)]
    return np.array([np.corrcoef(a, b)[0, 1] for a, b in zip(*ranks)])


def drawn(run: Arrays) -> Arrays:
    """Lines with their bands over the probed steps, (1, 3, P)."""
    curves = summaries.covariate_shift(run)
    return {name: (arithmetic if name == "cosine" else geometric)(curves[name]) for name in MEASURES}


def by_layer(run: Arrays) -> Arrays:
    """The same over the layers from the second on: relative_shift and cosine over the training."""
    steps, layers = run["probe_step"][0], range(1, run["shift_cosine"].shape[2])
    cosine = [over_training(run["shift_cosine"][..., k], steps, mean=True) for k in layers]
    relative = [
        over_training(run["shift_distance"][..., k] / run["shift_norm"][..., k], steps) for k in layers
    ]
    return {
        "relative_shift": geometric(np.stack(relative, axis=1)),
        "cosine": arithmetic(np.stack(cosine, axis=1)),
    }


def at_rates(runs: list[Arrays], steps: int) -> Arrays:
    """relative_shift and cosine over the first steps of trainings at several rates, (S, rates)."""
    found = {}
    for name in ("relative_shift", "cosine"):
        curves = [summaries.covariate_shift(run)[name] for run in runs]
        middle = [first_steps(curve, run, steps, name == "cosine") for curve, run in zip(curves, runs)]
        found[name] = np.stack(middle, axis=1)
    return found


# ---- Each figure of the page, from the results of its run -----------------------------------------------

NORMS, PAIR = ("none", "batch", "noisy"), ("none", "batch")
TITLES = {"shift": "ℓ2 difference", "relative_shift": "ℓ2 difference / ‖G‖", "cosine": "cosine of G and G′"}


def _draw_vgg(results: Results) -> plt.Figure:
    own = parameters_of(results)
    steps = np.array(of_ladder(("none",), own.width, results.header["parameters"])["none"].probe_steps)
    words = dict(xlabel="training step + 1", log="xy", linear=("cosine",), levels={"cosine": printed.IDEAL})
    return panels(points_of(results, "vgg"), steps + 1, TITLES, NORMS, **words)


def _draw_layers(results: Results) -> plt.Figure:
    points = points_of(results, "layers")
    layers, titles = range(2, 2 + points["cosine.none"].shape[2]), dict(list(TITLES.items())[1:])
    words = dict(xlabel="layer", log="y", linear=("cosine",), ticks=True, levels={"cosine": printed.IDEAL})
    return panels(points, layers, titles, NORMS, **words)


def _draw_linear(results: Results) -> plt.Figure:
    own = parameters_of(results)
    titles = {tag(rate): f"cosine at the rate {power(rate)}" for rate in own.linear_rates}
    words = dict(xlabel="training step + 1", log="x", columns=2, levels={tag(1e-6): printed.LINEAR_SHIFT})
    steps = np.array(spread_probes(own.linear_steps))
    return panels(points_of(results, "linear"), steps + 1, titles, PAIR, **words)


def _draw_rates(results: Results) -> plt.Figure:
    own = parameters_of(results)
    rates, titles = sorted([*own.sweep_rates, own.learning_rate]), dict(list(TITLES.items())[1:])
    words = dict(xlabel="learning rate", log="xy", linear=("cosine",), ticks=True, upright=printed.RATE)
    return panels(points_of(results, "rates"), rates, titles, PAIR, **words)


FIGURES = {"vgg": _draw_vgg, "layers": _draw_layers, "linear": _draw_linear, "rates": _draw_rates}
