"""Does it help by keeping inputs steady? Algorithm 1's noise before any training: its moments in closed form
and as drawn, and what it moves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
import torch

from bnbook.chapters import vgg
from bnbook.figures import COLORS, LABELS, parameters_of, points_of
from bnbook.normalizers import make_normalizer
from bnbook.plots import printed
from bnbook.plots.axes import points
from bnbook.plots.layout import subplots
from bnbook.plots.names import letters, marks
from bnbook.plots.panels import fans, line_with_band, panels, shares
from bnbook.probes.activations import moment_change
from bookpress.results import Results

N_MU, N_SIGMA, R = 0.5, 1.25, 0.1  # the paper's widths: of μ, of σ, of the blur r_μ = r_σ
CLOSED = {
    "m_mean": 0.0,
    "m_variance": (N_MU**2 + R**2) / 3,
    "s_mean": (1 + N_SIGMA) / 2,
    "s_variance": (N_SIGMA - 1) ** 2 / 12 + R**2,
    "m_size_of_unit": N_MU / 2,
}
GROUPS = 10  # of draws, for an interval
STRONG, WEAK = (2.0, 4.0), (0.1, 0.3)  # further strengths: behind batch norm and alone
READINGS = {
    "layer": {"per": "layer"},
    "variance": {"spread": "variance"},
    "layer_variance": {"per": "layer", "spread": "variance"},
}


def drawn(draws: int, seed: int = 0, examples: int = 32, units: int = 16) -> dict[str, np.ndarray]:
    """Moments of the shift m and the factor s that the layer draws, (GROUPS,) each, named as in CLOSED."""
    found = {name: np.empty(GROUPS) for name in CLOSED}
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        layer, x = make_normalizer("noise", units, 0), torch.zeros(examples, units)
        for group in range(GROUPS):
            several = [layer.draw(x) for _ in range(draws // GROUPS)]
            s, m = (torch.stack(part).double() for part in zip(*several))  # (draws, B, units)
            found["m_mean"][group], found["m_variance"][group] = m.mean(), m.var()
            found["s_mean"][group], found["s_variance"][group] = s.mean(), s.var()
            found["m_size_of_unit"][group] = m.mean(1).abs().mean()
    return found


def moves(count: int = 200_000) -> dict[str, float]:
    """Expected change of mean and variance between two steps of a unit that has mean 0 and variance 1 before
    the noise."""
    generator = np.random.default_rng(0)
    mu = generator.uniform(-N_MU, N_MU, (2, count))
    sigma = generator.uniform(1, N_SIGMA, (2, count))
    found = moment_change(mu, sigma**2 + R**2 + R**2 / 3)
    return dict(zip(("mean", "variance"), (float(part[0]) for part in found)))


def stronger(times: float) -> dict[str, float]:
    """Algorithm 1 with every random part so many times as wide."""
    widths = {"n_mu": N_MU, "r_mu": R, "r_sigma": R}
    return {name: times * width for name, width in widths.items()} | {"n_sigma": 1 + (N_SIGMA - 1) * times}


def tag(strength: float) -> str:
    """0.3 -> "x0_3", as result names have it."""
    return f"x{strength:g}".replace(".", "_")


# ---- Figures ----------------------------------------------------------------------------------------------

NAMES = {"none": "without", "batch": "batch", "noisy": "noisy", "noise": "noise\nalone"}
LINES = ("-", "--", ":")  # of the convolutions, which are all of the plain network


def control(
    failed: Mapping[str, np.ndarray],
    ratios: Mapping[str, np.ndarray],
    steps: Sequence[int],
    behind: float,
    start_steps: int,
) -> plt.Figure:
    """Left, trainings that did not start, NORM (S,) of 0 and 1; right, the noise's variance over that of the
    signal, LAYER (1, 3, E), and what it is behind batch norm."""
    fig, (left, right) = subplots(1, 2, figsize=(7.8, 3.6), width_ratios=(1, 1.3))
    events = {(NAMES[norm], norm): values for norm, values in failed.items()}
    shares(left, events, [NAMES[norm] for norm in failed], f"not started after {start_steps} steps (%)")
    left.set_ylim(-3, 124)  # room for the words above
    left.set_yticks(range(0, 101, 20))
    marks(left, y=printed.NO_START)
    for (layer, curve), dash in zip(ratios.items(), LINES):
        style = dict(color=COLORS["none"], linestyle=dash, label=f"convolution {layer}")
        line_with_band(right, steps, curve, **style)
    right.axhline(behind, color=COLORS["noisy"], linewidth=1.2, label="behind batch norm (γ = 1)")
    right.set(yscale="log", xlabel="training step", ylabel="noise over signal")
    left.set_title("Does a training start?", fontsize=10.5)
    right.set_title("variance of the noise / of the activations", fontsize=10.5)
    right.legend(fontsize=letters(right))
    right.minorticks_off()
    return fig


def strength(found: Mapping[str, Mapping[float, np.ndarray]], chance: float) -> plt.Figure:
    """Accuracy in per cent, (S,), by the strength of the noise (0: none), behind batch norm and alone."""
    fig, ax = subplots(figsize=(6.6, 3.3))
    least = 0.03  # where "none" stands on the logarithmic axis
    for norm, by_strength in found.items():
        at = [strength or least for strength in sorted(by_strength)]
        values = np.stack([by_strength[strength] for strength in sorted(by_strength)], axis=1)
        points(ax, at, values, "o-", color=COLORS[norm], label=LABELS[norm])
    marks(ax, x={"paper's noise": 1.0}, y={"guessing": chance})
    ticks = sorted({strength for by_strength in found.values() for strength in by_strength} - {0.0})
    ax.set(xscale="log", xlabel="strength of the noise", ylabel="mean batch accuracy (%)")
    ax.set_title("How much noise can a training stand?")
    ax.set_xticks([least, *ticks], ["none", *(f"{strength:g}" for strength in ticks)])
    ax.minorticks_off()
    ax.legend()
    return fig


# ---- Each figure of the page, from the results of its run -----------------------------------------------


def _arm(results: Results) -> vgg.PlacedArm:
    own = parameters_of(results)
    return vgg.of_ladder(("none",), own.width, results.header["parameters"])["none"]


def _draw_curves(results: Results) -> plt.Figure:
    x = {"batches": vgg.batch_steps(parameters_of(results).steps), "test": _arm(results).checkpoints()}
    titles = {"batches": "training batches (%)", "test": "test images (%)"}
    levels = {panel: {"guessing": 100 / CLASSES} for panel in titles}
    return panels(points_of(results, "curves"), x, titles, tuple(NAMES), columns=2, levels=levels)


def _draw_activations(results: Results) -> plt.Figure:
    rows = [f"convolution {layer}" for layer in vgg.PLACED]
    return fans(points_of(results, "activations"), _arm(results).checkpoints(), rows)


def _draw_moments(results: Results) -> plt.Figure:
    titles = {"batch_mean": "mean, successive batches", "batch_variance": "variance, successive batches"}
    titles |= {"update_mean": "mean, same images", "update_variance": "variance, same images"}
    alone = {moment: float(results[f"noise_alone.{moment}_change"][0]) for moment in ("mean", "variance")}
    levels = {name: {"the noise by itself": alone[name.split("_")[1]]} for name in titles}
    words = dict(xlabel="training step + 1", log="xy", columns=2, levels=levels)
    x = np.array(_arm(results).probe_steps) + 1
    return panels(points_of(results, "moments"), x, titles, tuple(NAMES), **words)


def _draw_control(results: Results) -> plt.Figure:
    failed = {norm: results[f"not_started.{norm}"] for norm in NAMES}
    steps, behind = parameters_of(results).start_steps, CLOSED["m_variance"]
    return control(failed, points_of(results, "control"), _arm(results).checkpoints(), behind, steps)


def _draw_strength(results: Results) -> plt.Figure:
    found = {
        norm: {k: 100 * results[f"first_steps.{norm}.{tag(k)}"] for k in strengths}
        | {0.0: 100 * results[f"first_steps.{plain}.x0"]}
        for norm, plain, strengths in (("noisy", "batch", (1.0, *STRONG)), ("noise", "none", (*WEAK, 1.0)))
    }
    return strength(found, 100 / CLASSES)


CLASSES = 10  # of every set that the page may be run on
FIGURES = {
    "curves": _draw_curves,
    "activations": _draw_activations,
    "moments": _draw_moments,
    "control": _draw_control,
    "strength": _draw_strength,
}
