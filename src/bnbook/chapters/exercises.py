"""A textbook's exercises on batch norm: its LeNet at half the pixels, with one thing changed in each arm."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np

from bnbook.figures import COLORS, parameters_of, points_of
from bnbook.plots.panels import Panel, compare
from bookpress.results import Results

#: Rows of the overview, from above: arm -> exercise and words.
ROWS = {
    "none": "2: no batch norm",
    "batch": "2: in all four layers",
    "first": "3: first convolution",
    "second": "3: second convolution",
    "third": "3: first dense layer",
    "fourth": "3: last hidden layer",
    "mean": "4: mean alone",
    "variance": "4: variance alone",
    "fixed": "5: γ and β fixed",
    "integral": "8 a: integral transform",
    "whitened_maps": "8 b: covariance, convolutions",
    "whitened": "8 b: covariance, all layers",
    "after": "9: behind tanh",
}


def answers(results: Results) -> plt.Figure:
    """Test accuracy of each arm in per cent, means and intervals; a band of a point to either side of batch norm's."""
    middle = 100 * results["accuracy.batch"].mean()
    arms = {name: dict(x=[place], y=results[f"accuracy.{name}"][:, None]) for place, name in enumerate(ROWS)}
    panel = Panel(
        rows=[*ROWS.values()],
        xlabel="test accuracy, %",
        also=lambda ax: ax.axvspan(middle - 1, middle + 1, color=COLORS["grid"], linewidth=0),
    )
    words = dict(by="across", look="o", times=100, legend="none")
    return compare(results, [panel], arms, figsize=(7.4, 6.4), **words)


def rates(results: Results) -> plt.Figure:
    """Late loss against the rate, and accuracy in per cent on the way at the best one."""
    own, arms = parameters_of(results), {"batch": "batch norm", "none": "no batch norm"}
    steps = np.linspace(0, own.steps, own.looks, endpoint=False).astype(int)
    large = dict(log="x", xlabel="learning rate", ylabel="loss, late", title="How large may the rate be?")
    best = dict(times=100, xlabel="step", ylabel="test accuracy, %", title="Each at its best rate")
    panels = [Panel(curve="late.{}", x=own.rates, **large), Panel(curve="curve.{}", x=steps, **best)]
    return compare(points_of(results, "rates"), panels, arms, figsize=(9, 3.7))
