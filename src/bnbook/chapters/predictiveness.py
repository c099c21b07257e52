"""How far can a gradient be trusted? What is drawn of the VGG's errors and of the deep linear network's."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np

from bnbook.chapters.deep_linear import tag
from bnbook.chapters.vgg import PAIR
from bnbook.deep_linear import LENGTHS, spread_probes
from bnbook.figures import LABELS, parameters_of, points_of
from bnbook.plots import printed
from bnbook.plots.axes import power
from bnbook.plots.panels import Panel, compare
from bookpress.results import Results

AS_LONG = {"error = ‖∇L‖": 1.0}
SHOWN = (0.02, 0.25, 1.0)  # parts of a training at which errors are drawn


def shown(steps: np.ndarray) -> list[int]:
    """Places of the probed steps at which errors are drawn: early, at a quarter, the last."""
    return [int(np.searchsorted(steps, part * steps[-1])) for part in SHOWN]


def vgg_errors(results: Results) -> plt.Figure:
    """A column a step of training: above error.STEP.NORM (1, 3, A) against the length in learning rates,
    below relative_error.STEP.NORM against the distance in parameters, distance.STEP.NORM (1, A)."""
    points, steps = points_of(results, "vgg"), results["probe_step"][0].astype(int)
    above = dict(
        x=parameters_of(results).lengths, xlabel="multiple of the learning rate", ylabel="gradient error"
    )
    below = dict(xlabel="distance moved, ‖θ − θₐ‖", ylabel="error / ‖∇L‖", marks_y=AS_LONG)
    panels = [[], []]
    for step in steps[shown(steps)]:
        far = {norm: dict(label=LABELS[norm], x=f"distance.{step}.{norm}") for norm in PAIR}
        panels[0].append(
            Panel(curve=f"error.{step}.{{}}", title=f"step {step:,}", marks_x=printed.FARTHEST, **above)
        )
        panels[1].append(Panel(curve=f"relative_error.{step}.{{}}", arms=far, **below))
    return compare(points, panels, PAIR, figsize=(8.2, 5.4), log="xy", look="o-", sharex="row", sharey="row")


def linear(results: Results) -> plt.Figure:
    """A row a rate, a column a step: the relative error RATE.STEP.NORM (1, 3, A) of the linear network."""
    steps = np.array(spread_probes(parameters_of(results).linear_steps))
    panels = [
        [
            Panel(curve=f"{tag(rate)}.{s}.{{}}", title=f"rate {power(rate)}, step {s:,}")
            for s in steps[shown(steps)]
        ]
        for rate in (1e-7, 1e-6)
    ]
    marks = dict(marks_x=printed.LINEAR_FARTHEST, marks_y=AS_LONG)
    words = dict(
        x=LENGTHS, log="xy", ylim=(1e-3, 1e3), xlabel="multiple of the learning rate", ylabel="error / ‖∇L‖"
    )
    return compare(
        points_of(results, "linear"), panels, PAIR, figsize=(8.2, 5.5), sharex=True, **words, **marks
    )


def rates(results: Results) -> plt.Figure:
    own = parameters_of(results)
    titles = {
        "error.{}": "gradient error, one step ahead",
        "relative_error.{}": "error / ‖∇L‖, one step ahead",
    }
    places = sorted([*own.sweep_rates, own.learning_rate])
    words = dict(x=places, ticks=places, xlabel="learning rate", log="xy", look="o-", marks_x=printed.RATE)
    return compare(
        points_of(results, "rates"), titles, PAIR, figsize=(5.8, 3.3), columns=2, sharex=True, **words
    )
