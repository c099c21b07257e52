"""Which layer breaks? The figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np

from bnbook.chapters.critical_rate import NETS, SETS, Panels
from bnbook.figures import COLORS
from bnbook.plots.axes import name_ticks

#: What is trained -> words, ink, dash (a dashed line lies on top). As in `boundaries`, what was measured in
#: networks with batch norm has their ink, and the readout that of text.
PARTS = {
    "all": ("everything", COLORS["batch"], "--"),
    "readout": ("the readout alone", COLORS["theory"], "-"),
    "hidden": ("everything but the readout", COLORS["batch"], "-"),
}


def _axes(panels: Panels, height: float) -> dict[str, plt.Axes]:
    """One panel for each network and set, titled; what names end in -> its axes."""
    _, axes = plt.subplots(2, 2, figsize=(7.6, height), sharex=True, squeeze=False)
    found = dict(zip(panels.values(), axes.ravel()))
    for (name, net), suffix in panels.items():
        found[suffix].set_title(f"{NETS[net]}, {SETS.get(name, name)}", fontsize=10.5)
    return found


def boundaries(panels: Panels, gammas: Sequence[float], curves: Mapping[str, np.ndarray]) -> plt.Figure:
    """Critical rates against γ: "measured.P" and "readout.P" (S, γ), "from0.P" and "from1.P" (1, γ)."""
    axes = _axes(panels, 6.2)
    for suffix, ax in axes.items():
        for row in curves[f"measured.{suffix}"]:
            ax.plot(gammas, 10**row, "o", color=COLORS["batch"], markersize=4, alpha=0.7)
        lines = [("readout", "-", COLORS["theory"], "readout"), ("from0", "--", COLORS["printed"], "printed")]
        if "conv" in suffix:
            lines.append(("from1", ":", COLORS["printed"], "printed, from 1"))
        for key, dash, color, words in lines:
            line = 10 ** curves[f"{key}.{suffix}"].mean(axis=0)
            ax.plot(gammas, line, dash, color=color, linewidth=1.3)
            style = {"textcoords": "offset points", "color": color, "fontsize": 9, "va": "center"}
            ax.annotate(words, (gammas[-1], line[-1]), (7, 0), **style)
        room = (gammas[-1] / gammas[0]) ** 0.45  # for the words behind the lines
        ax.set(xscale="log", yscale="log", xlim=(gammas[0] / 1.12, gammas[-1] * room))
        name_ticks(ax.set_xticks, gammas)
    for suffix in list(axes)[2:]:
        axes[suffix].set_xlabel(r"$\gamma$")
    for suffix in list(axes)[::2]:
        axes[suffix].set_ylabel(r"critical $\eta$")
    return next(iter(axes.values())).figure


def parts(panels: Panels, names: Sequence[str], losses: Mapping[str, np.ndarray]) -> plt.Figure:
    """Loss by step (S, T) of "PART.P", a line for each restart."""
    axes = _axes(panels, 5.6)
    for suffix, ax in axes.items():
        for name in names:
            words, color, dash = PARTS[name]
            for place, row in enumerate(losses[f"{name}.{suffix}"]):
                label = words if place == 0 else None
                ax.plot(row, dash, color=color, linewidth=1.1, label=label, zorder=2 + (dash == "--"))
        highest = max(row[0] for name in names for row in losses[f"{name}.{suffix}"])
        ax.set(yscale="log", ylim=(None, 1e6 * highest))
        ax.set_xscale("symlog", linthresh=1)  # what tells them apart is over after three steps
        ax.set_xlim(0, None)
    for suffix in list(axes)[2:]:
        axes[suffix].set_xlabel("step")
    for suffix in list(axes)[::2]:
        axes[suffix].set_ylabel("loss")
    fig = next(iter(axes.values())).figure
    handles, labels = next(iter(axes.values())).get_legend_handles_labels()
    fig.legend(handles, labels, loc="outside lower center", ncols=3, fontsize=9.5)
    return fig
