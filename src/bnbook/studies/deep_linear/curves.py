"""Points of the figures on the deep linear network: a line with its band is (1, 3, X), low, middle, high."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from bnbook.deep_linear import summaries as of
from bnbook.probes.over_steps import over_training
from bnbook.studies.bands import geometric, quartiles
from bnbook.studies.deep_linear.plan import NORMS, PAIR, PAPER, Trained, tag
from bookpress.intervals import student

Curves = dict[str, np.ndarray]
DRAWN = 110  # points of a curve of the loss, even on the logarithmic axis
SEEN = ("cosine", "relative_shift", "loss_range", "gradient_change", "smoothness", "local")
EFFECTS = ("final_loss", "loss_range", "gradient_change", "smoothness")


def losses(runs: Mapping[str, Trained], best: Mapping[str, float]) -> Curves:
    """The loss over the training, for each norm at the paper's rate (paper.NORM) and at its best (best.NORM);
    step: the numbers of updates, (1, X)."""
    found: Curves = {}
    for norm in NORMS:
        for name, rate in (("paper", PAPER), ("best", best[norm])):
            each = runs[f"{tag(rate)}.{norm}"]
            x = np.maximum(each.run["loss_step"][0], 0.7)
            kept = np.unique(np.searchsorted(x, np.geomspace(0.7, x[-1], DRAWN)))
            found[f"{name}.{norm}"] = geometric(of.loss_share(each.arm, each.run)[:, kept])
            found["step"] = x[None, kept]
    return found


def by_rate(found: Mapping[str, np.ndarray], rates: Mapping[str, Sequence[float]]) -> Curves:
    """Final loss and share of diverged trainings at each norm's own rates, loss.NORM and diverged.NORM."""
    curves: Curves = {}
    for norm, own in rates.items():
        final = [geometric(found[f"final_loss.{tag(rate)}.{norm}"][:, None]) for rate in own]
        curves[f"loss.{norm}"] = np.concatenate(final, axis=2)
        lost = [found[f"diverged.{tag(rate)}.{norm}"].mean() for rate in own]
        curves[f"diverged.{norm}"] = np.array([lost])
    return curves


def plateaus(runs: Mapping[str, Trained], rates: Sequence[float], seeds: int) -> Curves:
    """rank.NORM, near.NORM (S, rates): the nearest plateau and whether the loss lies on it; left.NORM (S, N):
    what is left along each direction of the targets at the paper's rate."""
    found: Curves = {}
    for norm in PAIR:
        each = [runs[f"{tag(rate)}.{norm}"].first(seeds) for rate in rates]
        rank, ratio = zip(*(of.plateau(one.arm, one.run) for one in each))
        found[f"rank.{norm}"] = np.stack(rank, axis=1)
        found[f"near.{norm}"] = (np.abs(np.stack(ratio, axis=1) - 1) < 0.05).astype(float)
        run = runs[f"{tag(PAPER)}.{norm}"].run
        found[f"left.{norm}"] = (run["residual_energy"] / run["target_energy"])[:seeds]
    return found


def seen(runs: Mapping[str, Trained], rates: Sequence[float], names: Sequence[str] = SEEN) -> Curves:
    """What the probes saw over the training, NAME.lrRATE.NORM."""
    found: Curves = {}
    for rate in rates:
        for norm in PAIR:
            each = runs[f"{tag(rate)}.{norm}"]
            curves = of.landscape(each.arm, each.run)
            found |= {f"{name}.{tag(rate)}.{norm}": quartiles(curves[name]) for name in names}
    return found


def by_layer(runs: Mapping[str, Trained], rates: Sequence[float]) -> Curves:
    """The cosine of the covariate shift of each layer, median over the training, layer.lrRATE.NORM."""
    found: Curves = {}
    for rate in rates:
        for norm in PAIR:
            run = runs[f"{tag(rate)}.{norm}"].run
            layers = run["shift_cosine"].shape[2]
            middle = [over_training(run["shift_cosine"][:, :, k], run["probe_step"]) for k in range(layers)]
            found[f"layer.{tag(rate)}.{norm}"] = quartiles(np.stack(middle, axis=1))
    return found


def effects(found: Mapping[str, np.ndarray], rates: Sequence[float]) -> Curves:
    """Without over with batch norm by rate, NAME (1, 3, rates), NaN where most networks with it diverged or a
    value is none; hollow (1, rates): 1 where most of the plain ones did."""
    lost = {norm: [found[f"diverged.{tag(rate)}.{norm}"].mean() > 0.5 for rate in rates] for norm in PAIR}
    curves: Curves = {"hollow": np.array([lost["none"]], dtype=float)}
    for name in EFFECTS:
        curves[name] = np.full((1, 3, len(rates)), np.nan)
        for place, rate in enumerate(rates):
            pair = np.array([found[f"{name}.{tag(rate)}.{norm}"] for norm in PAIR])
            if not lost["batch"][place] and np.isfinite(pair).all() and (pair > 0).all():
                middle, low, high = np.exp(np.minimum(student(np.log(pair[0]) - np.log(pair[1])), 690))
                curves[name][0, :, place] = low, middle, high
    return curves


def by_depth(
    found: Mapping[str, np.ndarray], rates: Sequence[float], depths: Sequence[int], depth: int
) -> Curves:
    """Geometric mean of the final loss and medians of cosine and edge, NAME.lrRATE.NORM (1, depths)."""
    curves: Curves = {}
    for rate in rates:
        for norm in PAIR:
            arm = f"{tag(rate)}.{norm}"
            names = [arm if each == depth else f"{arm}.depth{each}" for each in depths]
            final = [np.exp(np.log(found[f"final_loss.{each}"]).mean()) for each in names]
            curves[f"final_loss.{arm}"] = np.array([final])
            for what in ("cosine", "edge"):
                curves[f"{what}.{arm}"] = np.array([[np.median(found[f"{what}.{each}"]) for each in names]])
    return curves
