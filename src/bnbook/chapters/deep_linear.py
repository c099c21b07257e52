"""What is left in a linear network? The deep linear network along its learning rate."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import matplotlib.pyplot as plt
import numpy as np

from bnbook.chapters.shared import geometric, quartiles
from bnbook.chapters.vgg import over_window
from bnbook.deep_linear import LinearArm, probed_arm, spread_probes
from bnbook.deep_linear import summaries as of
from bnbook.deep_linear.target import TargetArm
from bnbook.figures import COLORS, LABELS, parameters_of, points_of
from bnbook.plots import printed
from bnbook.plots.axes import power
from bnbook.plots.layout import subplots
from bnbook.plots.names import letters, marks
from bnbook.plots.panels import FANS, legend_below, line_with_band, without_minor_ticks
from bnbook.probes.over_steps import holds_from, holds_until, over_training, share_of_training
from bookpress.intervals import student
from bookpress.results import Results

# ---- What the chapter on the deep linear network trains: arms by the name that their results bear ---------

Arms = dict[str, LinearArm]
PAPER = 1e-6  # the paper's learning rate
NORMS = ("none", "batch", "l2")  # cheap: they see no more of the data than its moments
PAIR = ("none", "batch")
TINY = (1e-10, 1e-9)  # what 1e-6 amounts to if the loss is a mean
READINGS = {
    "last": dict(normalize_last=True),
    "fixed": dict(affine=False),
    "normal": dict(init="glorot-normal"),
}


@dataclass(frozen=True)
class Trained:
    """An arm and the arrays of its trainings, (S, ...)."""

    arm: LinearArm
    run: dict[str, np.ndarray]

    def first(self, seeds: int) -> Trained:
        """The same of the first so many seeds."""
        return Trained(self.arm, {name: values[:seeds] for name, values in self.run.items()})


def tag(rate: float) -> str:
    """1e-06 -> "lr1e_06", as result names have it."""
    return f"lr{rate:.0e}".replace("-", "_")


def scan(rates: Iterable[float], **size: int) -> Arms:
    """Without, with batch norm and with ℓ2 at every rate, all instruments; at the rates of a mean in place of
    the sum, and from Glorot's normal weights, the losses alone."""
    rates = list(rates)
    arms = {f"{tag(rate)}.{norm}": probed_arm(norm, rate, **size) for norm in NORMS for rate in rates}
    arms |= {f"{tag(rate)}.{norm}": LinearArm(norm, rate, **size) for norm in PAIR for rate in TINY}
    normal = {rate: LinearArm("none", rate, init="glorot-normal", **size) for rate in rates}
    return arms | {f"{tag(rate)}.none.normal": arm for rate, arm in normal.items()}


def at_paper(**size: int) -> Arms:
    """The scan's arms at the paper's rate, which are trained from more seeds."""
    return {f"{tag(PAPER)}.{norm}": probed_arm(norm, PAPER, **size) for norm in NORMS}


def unit_target(rates: Iterable[float], **size: int) -> Arms:
    """Without and with batch norm where the entries of A have variance 1/10, so that A x has variance 1."""
    looks = spread_probes(size["steps"])
    return {
        f"{tag(rate)}.unit.{norm}": TargetArm(norm, rate, probe_steps=looks, **size)
        for norm in PAIR
        for rate in rates
    }


def coarse(rates: Iterable[float], **size: int) -> Arms:
    """ℓ1 and ℓ∞, which have to go back to the examples, at fewer rates."""
    return {
        f"{tag(rate)}.{norm}": probed_arm(norm, rate, **size) for norm in ("l1", "linf") for rate in rates
    }


def others(rates: Sequence[float], depths: Iterable[int], **size: int) -> Arms:
    """The other readings with batch norm, and other depths, without and with it."""
    arms = {
        f"{tag(rate)}.batch.{name}": probed_arm("batch", rate, **size | changes)
        for name, changes in READINGS.items()
        for rate in rates
    }
    return arms | {
        f"{tag(rate)}.{norm}.depth{depth}": probed_arm(norm, rate, **size | {"depth": depth})
        for norm in PAIR
        for rate in rates
        for depth in depths
    }


# ---- Single numbers of deep linear trainings: of one arm, of a pair, of the whole scan; (S,) each ---------

Arrays = dict[str, np.ndarray]
#: Of a probed step; summed up by the median over the steps as far as the network lived, or by the mean.
MEDIANS = ("loss_range", "gradient_change", "smoothness", "gradient_norm", "beyond", "random_change", "shift")
MEANS = ("cosine", "absolute_cosine")
LANDSCAPE = ("loss_range", "gradient_change", "smoothness")
#: What is shown at a tenth of the paper's rate, too; beginnings of names.
SLOW = (*LANDSCAPE, "smoother_from", "gradient_norm", "beyond", "random_change", "cosine", "absolute_cosine")
SLOW += ("edge", "correlation", "aligned_until", "plateau_rank")
#: What is shown where A x has variance 1, at both rates; and at the paper's alone.
UNIT = ("final_loss", "cosine", "absolute_cosine", *LANDSCAPE)
UNIT_TESTED = ("mean_loss", "aligned_share", "shift", "sigma")
ALIGNED = 0.9  # mean cosine above which a network has almost no covariate shift
NEAR = 0.05  # distance from a plateau at which a final loss lies on it


def of_arm(trained: Trained) -> Arrays:
    """Numbers of one arm.

    final_loss: share of the loss of answering zero that is left; a diverged network counts as answering zero;
    mean_loss: its geometric mean over all steps; settled: 1 where it fell by less than 1 % over the last
    tenth; diverged: 1 where it ceased to be finite; plateau_rank, plateau_near: k of the nearest plateau, 1
    within 5 % of it. Where probes looked also the middles over the training of `summaries.landscape`, edge:
    the curvature along the gradient times half the learning rate; aligned_share, aligned_until: share of the
    steps with a mean cosine above 0.9, first step without (∞: none); sigma, sigma_above_one: deviation of
    what a linear map puts out, mean over units, layers and steps, and share above 1; sigma_last: of the last
    layer at the last probe; without a normalizer correlation, bounded: `deep_linear.instruments.correlations`, mean over
    layers and steps.
    """
    arm, run = trained.arm, trained.run
    rank, ratio = of.plateau(arm, run)
    found = {
        "final_loss": of.loss_share(arm, run)[:, -1],
        "mean_loss": of.mean_log_loss(arm, run),
        "settled": of.settled(arm, run),
        "diverged": of.diverged(run),
        "plateau_rank": rank,
        "plateau_near": (np.abs(ratio - 1) < NEAR).astype(float),
    }
    return found | (_looked(trained) if arm.probe_steps else {})


def _looked(trained: Trained) -> Arrays:
    arm, run = trained.arm, trained.run
    seen, steps = of.landscape(arm, run), run["probe_step"]
    found = {name: over_training(seen[name], steps) for name in MEDIANS if name in seen}
    found |= {name: over_training(seen[name], steps, mean=True) for name in MEANS}
    found["edge"] = over_training(seen["local"] * arm.learning_rate / 2, steps)
    cosine = seen["cosine"]
    alive = np.isfinite(cosine)
    found["aligned_share"] = share_of_training(cosine > ALIGNED, alive, steps)
    found["aligned_until"] = holds_until((cosine > ALIGNED) | ~alive, steps)
    sigma = run["deviation"].astype(float)  # (S, P, L, N)
    lived = np.isfinite(sigma).all((2, 3))
    for name, values in (("sigma", sigma), ("sigma_above_one", (sigma > 1).astype(float))):
        found[name] = over_training(np.where(lived, values.mean((2, 3)), np.nan), steps, mean=True)
    last = np.maximum(lived.sum(1) - 1, 0)
    found["sigma_last"] = sigma[np.arange(len(sigma)), last, -1].mean(1)
    for name in ("correlation", "bounded") if "correlation" in run else ():
        found[name] = over_training(run[name].astype(float).mean(2), steps, mean=True)
    return found


def of_pair(plain: Trained, normed: Trained) -> Arrays:
    """Numbers of two arms at one rate, without and with batch norm.

    lower_from: step from which on the loss is lower with it (∞: never); smoother_share.X, smoother_from.X:
    share of the steps at which measure X is smaller with it, while both live, and the probed step from which
    on it is; X_ratio_all, _early, _late: without over with, medians over the training, over its first tenth
    and its second half, each step alike.
    """
    shares = [of.loss_share(each.arm, each.run) for each in (plain, normed)]
    found = {"lower_from": holds_from(shares[0] > shares[1], plain.run["loss_step"][0])}
    one, other = (of.landscape(each.arm, each.run) for each in (plain, normed))
    steps = plain.run["probe_step"][0]
    alive = np.isfinite(one["gradient_norm"]) & np.isfinite(other["gradient_norm"])
    end = plain.arm.steps
    windows = {"all": (0.0, end), "early": (0.0, 0.1 * end), "late": (0.5 * end, end)}
    for name in (*LANDSCAPE, "gradient_norm"):
        smaller = one[name] > other[name]
        found[f"smoother_share.{name}"] = share_of_training(smaller, alive, steps)
        found[f"smoother_from.{name}"] = holds_from(smaller | ~alive, steps)
        for part, window in windows.items():
            middles = [over_window(each[name], steps, *window) for each in (one, other)]
            with np.errstate(invalid="ignore", divide="ignore"):  # both may have overflowed
                found[f"{name}_ratio_{part}"] = middles[0] / middles[1]
    return found


def of_scan(runs: Mapping[str, Trained], rates: Sequence[float], seeds: int) -> Arrays:
    """Numbers of an arm over the rates of the scan, of the first `seeds` seeds, NAME.NORM.

    best_rate: by the geometric mean of the final loss, one number; final_loss.best: at it; final_loss.scan:
    at the paper's rate; best_other_loss: at the best of the other rates; largest_stable: the largest rate at
    which, as at all smaller ones, it does not diverge (also .none.normal); useful_rates: how many end below
    half the loss of answering zero. plateau_near_all: share of all trainings on a plateau, one number.
    """
    found, near = {}, []
    for norm in NORMS:
        own = {rate: runs[f"{tag(rate)}.{norm}"].first(seeds) for rate in rates}
        final = {rate: of.loss_share(each.arm, each.run)[:, -1] for rate, each in own.items()}
        order = sorted(rates, key=lambda rate: np.log(final[rate]).mean())
        found[f"best_rate.{norm}"] = np.array([order[0]])
        if norm not in PAIR:
            continue
        other = next(rate for rate in order if rate != PAPER)
        found |= {
            f"final_loss.best.{norm}": final[order[0]],
            f"final_loss.scan.{norm}": final[PAPER],
            f"best_other_loss.{norm}": final[other],
            f"largest_stable.{norm}": of.largest_stable({rate: each.run for rate, each in own.items()}),
            f"useful_rates.{norm}": sum((each < 0.5).astype(float) for each in final.values()),
        }
        near += [np.abs(of.plateau(each.arm, each.run)[1] - 1) < NEAR for each in own.values()]
    normal = {rate: runs[f"{tag(rate)}.none.normal"].run for rate in rates}
    found["largest_stable.none.normal"] = of.largest_stable(normal)
    return found | {"plateau_near_all": np.array([np.mean(near)])}


def all_numbers(runs: Mapping[str, Trained], rates: Sequence[float], seeds: int) -> Arrays:
    """All of them, by the name of the result: NUMBER.lrRATE.NORM and so on, pairs as NUMBER.lrRATE."""
    found = {f"{name}.{arm}": values for arm, each in runs.items() for name, values in of_arm(each).items()}
    for rate in rates:
        pair = (runs[f"{tag(rate)}.{norm}"] for norm in PAIR)
        found |= {f"{name}.{tag(rate)}": values for name, values in of_pair(*pair).items()}
    return found | of_scan(runs, rates, seeds)


def shown(found: Mapping[str, np.ndarray]) -> Arrays:
    """Those that the page or a claim names: all of the scan and of the pair at the paper's rate, some at a
    tenth of it, what other arms were left with and whether they diverged, the readings' cosine, `UNIT`."""
    paper, slow = tag(PAPER), tag(PAPER / 10)
    left = {f"{tag(rate)}.{norm}" for rate in TINY for norm in PAIR}
    left |= {f"{tag(rate)}.none" for rate in (PAPER / 10, 3e-5, 1e-4)} | {f"{paper}.none.normal"}
    left |= {f"{slow}.batch"}
    left |= {f"{paper}.batch.{reading}" for reading in READINGS}
    kept = {}
    for name, values in found.items():
        measure, _, arm = name.partition(".lr")
        arm = f"lr{arm}"
        if (
            ".lr" not in name
            or arm in (paper, f"{paper}.none", f"{paper}.batch")
            or arm in (slow, f"{slow}.none", f"{slow}.batch")
            and measure.startswith(SLOW)
            or arm in left
            and measure in ("final_loss", "diverged")
            or ".unit." in arm
            and (measure in UNIT or measure in UNIT_TESTED and arm.startswith(paper))
            or arm.startswith(f"{paper}.batch.")
            and arm in left
            and measure == "cosine"
        ):
            kept[name] = values
    return kept


# ---- Points of the figures on the deep linear network: a line with its band is (1, 3, X), low, middle, high ----

Points = dict[str, np.ndarray]
DRAWN = 110  # points of a curve of the loss, even on the logarithmic axis
SEEN = ("cosine", "relative_shift", "loss_range", "gradient_change", "smoothness", "local")
EFFECTS = ("final_loss", "loss_range", "gradient_change", "smoothness")


def loss_points(runs: Mapping[str, Trained], best: Mapping[str, float]) -> Points:
    """The loss over the training, for each norm at the paper's rate (paper.NORM) and at its best (best.NORM);
    step: the numbers of updates, (1, X)."""
    found: Points = {}
    for norm in NORMS:
        for name, rate in (("paper", PAPER), ("best", best[norm])):
            each = runs[f"{tag(rate)}.{norm}"]
            x = np.maximum(each.run["loss_step"][0], 0.7)
            kept = np.unique(np.searchsorted(x, np.geomspace(0.7, x[-1], DRAWN)))
            found[f"{name}.{norm}"] = geometric(of.loss_share(each.arm, each.run)[:, kept])
            found["step"] = x[None, kept]
    return found


def rate_points(found: Mapping[str, np.ndarray], rates: Mapping[str, Sequence[float]]) -> Points:
    """Final loss and share of diverged trainings at each norm's own rates, loss.NORM and diverged.NORM."""
    curves: Points = {}
    for norm, own in rates.items():
        final = [geometric(found[f"final_loss.{tag(rate)}.{norm}"][:, None]) for rate in own]
        curves[f"loss.{norm}"] = np.concatenate(final, axis=2)
        lost = [found[f"diverged.{tag(rate)}.{norm}"].mean() for rate in own]
        curves[f"diverged.{norm}"] = np.array([lost])
    return curves


def plateau_points(runs: Mapping[str, Trained], rates: Sequence[float], seeds: int) -> Points:
    """rank.NORM, near.NORM (S, rates): the nearest plateau and whether the loss lies on it; left.NORM (S, N):
    what is left along each direction of the targets at the paper's rate."""
    found: Points = {}
    for norm in PAIR:
        each = [runs[f"{tag(rate)}.{norm}"].first(seeds) for rate in rates]
        rank, ratio = zip(*(of.plateau(one.arm, one.run) for one in each))
        found[f"rank.{norm}"] = np.stack(rank, axis=1)
        found[f"near.{norm}"] = (np.abs(np.stack(ratio, axis=1) - 1) < 0.05).astype(float)
        run = runs[f"{tag(PAPER)}.{norm}"].run
        found[f"left.{norm}"] = (run["residual_energy"] / run["target_energy"])[:seeds]
    return found


def seen(runs: Mapping[str, Trained], rates: Sequence[float], names: Sequence[str] = SEEN) -> Points:
    """What the probes saw over the training, NAME.lrRATE.NORM."""
    found: Points = {}
    for rate in rates:
        for norm in PAIR:
            each = runs[f"{tag(rate)}.{norm}"]
            curves = of.landscape(each.arm, each.run)
            found |= {f"{name}.{tag(rate)}.{norm}": quartiles(curves[name]) for name in names}
    return found


def by_layer(runs: Mapping[str, Trained], rates: Sequence[float]) -> Points:
    """The cosine of the covariate shift of each layer, median over the training, layer.lrRATE.NORM."""
    found: Points = {}
    for rate in rates:
        for norm in PAIR:
            run = runs[f"{tag(rate)}.{norm}"].run
            layers = run["shift_cosine"].shape[2]
            middle = [over_training(run["shift_cosine"][:, :, k], run["probe_step"]) for k in range(layers)]
            found[f"layer.{tag(rate)}.{norm}"] = quartiles(np.stack(middle, axis=1))
    return found


def effect_points(found: Mapping[str, np.ndarray], rates: Sequence[float]) -> Points:
    """Without over with batch norm by rate, NAME (1, 3, rates), NaN where most networks with it diverged or a
    value is none; hollow (1, rates): 1 where most of the plain ones did."""
    lost = {norm: [found[f"diverged.{tag(rate)}.{norm}"].mean() > 0.5 for rate in rates] for norm in PAIR}
    curves: Points = {"hollow": np.array([lost["none"]], dtype=float)}
    for name in EFFECTS:
        curves[name] = np.full((1, 3, len(rates)), np.nan)
        for place, rate in enumerate(rates):
            pair = np.array([found[f"{name}.{tag(rate)}.{norm}"] for norm in PAIR])
            if not lost["batch"][place] and np.isfinite(pair).all() and (pair > 0).all():
                middle, low, high = np.exp(np.minimum(student(np.log(pair[0]) - np.log(pair[1])), 690))
                curves[name][0, :, place] = low, middle, high
    return curves


def depth_points(
    found: Mapping[str, np.ndarray], rates: Sequence[float], depths: Sequence[int], depth: int
) -> Points:
    """Geometric mean of the final loss and medians of cosine and edge, NAME.lrRATE.NORM (1, depths)."""
    curves: Points = {}
    for rate in rates:
        for norm in PAIR:
            arm = f"{tag(rate)}.{norm}"
            names = [arm if each == depth else f"{arm}.depth{each}" for each in depths]
            final = [np.exp(np.log(found[f"final_loss.{each}"]).mean()) for each in names]
            curves[f"final_loss.{arm}"] = np.array([final])
            for what in ("cosine", "edge"):
                curves[f"{what}.{arm}"] = np.array([[np.median(found[f"{what}.{each}"]) for each in names]])
    return curves


# ---- Figures ----------------------------------------------------------------------------------------------

Curves = Mapping[str, np.ndarray]
#: l2 normalization runs on batch norm's very curve: dashed, it leaves that visible; the others are like it.
ON_ANOTHER = {"l2": (0, (3, 3)), "l1": (0, (4, 2)), "linf": (0, (4, 2))}


def losses(curves: Curves, best: Mapping[str, float]) -> plt.Figure:
    """Loss over the training: left at the paper's rate, right each norm at its best."""
    fig, axes = subplots(1, 2, figsize=(7.4, 3.4), sharey=True)
    for norm, rate in best.items():
        labels = (LABELS[norm], f"{LABELS[norm]}, {power(rate)}")
        for ax, name, label in zip(axes, ("paper", "best"), labels):
            style = dict(color=COLORS[norm], label=label, linestyle=ON_ANOTHER.get(norm, "-"))
            line_with_band(ax, curves["step"][0], curves[f"{name}.{norm}"], **style)
    for ax, title in zip(axes, (f"at the paper's rate, {power(PAPER)}", "each at its best rate")):
        ax.set(xscale="log", yscale="log", title=title, xlabel="training step", ylim=(0.01, 3))
        ax.legend(loc="lower left", fontsize=letters(ax))
    axes[0].set_ylabel("loss, share of answering zero")
    return without_minor_ticks(fig)


def by_rate(curves: Curves, rates: Mapping[str, Sequence[float]]) -> plt.Figure:
    """Above the final loss, below the share that diverged, against the rate."""
    fig, axes = subplots(2, 1, figsize=(6.8, 5.2), sharex=True, height_ratios=(1.7, 1))
    for norm, own in rates.items():
        style = dict(color=COLORS[norm], label=LABELS[norm], marker="o", markersize=3.5)
        style["linestyle"] = ON_ANOTHER.get(norm, "-")
        if norm in ("l1", "linf"):
            axes[0].plot(own, curves[f"loss.{norm}"][0, 1], **style)
        else:
            line_with_band(axes[0], np.array(own), curves[f"loss.{norm}"], **style)
        axes[1].plot(own, curves[f"diverged.{norm}"][0], **style)
    for ax in axes:
        marks(ax, x=printed.LINEAR_RATE | printed.DIVERGES)
    axes[0].set(xscale="log", yscale="log", ylabel="final loss, share")
    axes[0].set_title("Which learning rate leaves the least, and which diverges?")
    legend_below(fig, axes[0], 3)
    axes[1].set(ylabel="diverged", xlabel="learning rate", ylim=(-0.05, 1.05))
    return without_minor_ticks(fig)


def plateaus(curves: Curves, rates: Sequence[float]) -> plt.Figure:
    """Left, directions fitted by rate, a cross off every plateau; right, what is left of each direction."""
    fig, axes = subplots(1, 2, figsize=(7.4, 3.4))
    for norm in PAIR:
        rank, near, left = (np.asarray(curves[f"{name}.{norm}"]) for name in ("rank", "near", "left"))
        apart = (0.07 if norm == "batch" else -0.07) + 0.05 * np.linspace(-1, 1, len(rank))
        for column, rate in enumerate(rates):
            style = dict(color=COLORS[norm], alpha=0.6, markersize=4)
            x, on = np.log10(rate) + apart, near[:, column] == 1
            dot = dict(marker="o", label=LABELS[norm]) if rate == PAPER else dict(marker=".")
            axes[0].plot(x, np.where(on, rank[:, column], np.nan), linestyle="none", **dot, **style)
            axes[0].plot(x, np.where(on, np.nan, rank[:, column]), "x", **style)
        directions = np.arange(1, left.shape[1] + 1)
        axes[1].plot(directions, left.T, ".", color=COLORS[norm], alpha=0.35, markersize=4)
        axes[1].plot(directions, np.nanmedian(left, axis=0), color=COLORS[norm], label=LABELS[norm])
    axes[0].set(xlabel="log₁₀ of the learning rate", ylabel="directions fitted, k", ylim=(-0.5, 9.5))
    axes[1].set(xlabel="singular direction of A, strongest first", ylabel="share of it left", ylim=(0, 3))
    axes[1].set_yscale("symlog", linthresh=1e-3)
    marks(axes[0], x={name: np.log10(rate) for name, rate in printed.LINEAR_RATE.items()})
    axes[0].set_title("How many directions are fitted?", fontsize=10.5)
    axes[1].set_title(f"What is left of each at {power(PAPER)}?", fontsize=10.5)
    for ax in axes:
        ax.legend(fontsize=letters(ax))
    return without_minor_ticks(fig)


def covariate_shift(curves: Curves, steps: np.ndarray, rates: Sequence[float]) -> plt.Figure:
    """Cosine and relative difference over the training, and cosine by layer; a column a rate."""
    fig, axes = subplots(3, len(rates), figsize=(7.4, 6.4), sharey="row", squeeze=False)
    x = np.maximum(steps, 0.7)
    for column, rate in zip(axes.T, rates):
        for norm in PAIR:
            style, arm = dict(color=COLORS[norm], label=LABELS[norm]), f"{tag(rate)}.{norm}"
            line_with_band(column[0], x, curves[f"cosine.{arm}"], **style)
            line_with_band(column[1], x, curves[f"relative_shift.{arm}"], **style)
            layers = np.arange(1, curves[f"layer.{arm}"].shape[2] + 1)
            line_with_band(column[2], layers, curves[f"layer.{arm}"], **style)
        column[0].set(xscale="log", ylim=(-1.3, 1.8))
        column[0].set_title(f"learning rate {power(rate)}", fontsize=10.5)
        marks(column[0], y=printed.LINEAR_SHIFT if rate == PAPER else None)
        column[1].set(xscale="log", yscale="log", xlabel="training step")
        column[2].set(xlabel="layer", ylim=(-1.05, 1.05))
    for ax, label in zip(axes[:, 0], ("cosine of G and G′", "‖G − G′‖ / ‖G‖", "cosine, by layer")):
        ax.set_ylabel(label)
    axes[0, 0].legend(fontsize=letters(axes[0, 0]), loc="lower left")
    return without_minor_ticks(fig)


def landscape(curves: Curves, steps: np.ndarray, rates: Sequence[float]) -> plt.Figure:
    """Range of the loss, change of the gradient and β over the training, a row a rate; dashed: 2/η."""
    titles = {
        "loss_range": "range of the loss (share)",
        "gradient_change": "change of the gradient",
        "smoothness": "effective β",
    }
    fig, axes = subplots(len(rates), 3, figsize=(7.6, 2.4 * len(rates)), sharex=True, squeeze=False)
    x = np.maximum(steps, 0.7)
    for row, rate in zip(axes, rates):
        for ax, (name, title) in zip(row, titles.items()):
            for norm in PAIR:
                line_with_band(
                    ax, x, curves[f"{name}.{tag(rate)}.{norm}"], color=COLORS[norm], label=LABELS[norm]
                )
                if name == "smoothness":
                    ax.plot(x, curves[f"local.{tag(rate)}.{norm}"][0, 1], ":", color=COLORS[norm])
            ax.set(xscale="log", yscale="log", title=title if rate == rates[0] else None)
            usual = curves[f"{name}.{tag(rate)}.batch"][0, 1]
            usual = usual[np.isfinite(usual) & (usual > 0)]
            if len(usual):  # a plain network that is about to diverge would need all of the axis
                low, high = ax.get_ylim()
                ax.set_ylim(max(low, usual.min() / 1e4), min(high, usual.max() * 1e8))
        marks(row[2], y={"2 / η": 2 / rate})
        row[0].set_ylabel(f"learning rate {power(rate)}")
    for ax in axes[-1]:
        ax.set_xlabel("training step")
    legend_below(fig, axes[0, 2], 2)
    return without_minor_ticks(fig)


#: Mark and colour of a verdict in the map.
MARKS = {
    "reproduced": ("+", COLORS["corrected"]),
    "yes": ("+", COLORS["corrected"]),
    "not reproduced": ("−", COLORS["wrong"]),
    "no": ("−", COLORS["wrong"]),
    "mixed": ("±", COLORS["part"]),
    "partly refuted, rest open": ("∓", COLORS["part"]),
    "open": ("?", COLORS["printed"]),
    "diverged": ("", COLORS["grid"]),
}


def activations(curves: Curves, steps: np.ndarray, layers: Sequence[int]) -> plt.Figure:
    """Fans of quantiles NORM (1, P, len(layers), 7) of one unit's output, a row a norm, a column a layer."""
    fig, axes = subplots(2, len(layers), figsize=(7.6, 4.2), sharex=True, sharey="row", squeeze=False)
    x = np.maximum(steps, 0.7)
    for row, norm in zip(axes, PAIR):
        for place, (ax, layer) in enumerate(zip(row, layers)):
            spread = np.asarray(curves[norm])[0, :, place]
            for a, b, opacity in FANS:
                style = dict(color=COLORS[norm], alpha=opacity, linewidth=0)
                ax.fill_between(x, spread[:, a], spread[:, b], **style)
            ax.plot(x, spread[:, 3], color=COLORS["theory"], linewidth=1)
            ax.set(xscale="log", title=f"layer {layer}" if norm == "none" else None)
            if norm == "none":
                words = f"paper: σ around {printed.SIGMA:g}" if place == 0 else ""
                marks(ax, y={words: printed.SIGMA})
                marks(ax, y={"": -printed.SIGMA})
        row[0].set_ylabel(LABELS[norm])
    for ax in axes[-1]:
        ax.set_xlabel("training step")
        ax.minorticks_off()
    return fig


def verdicts(words: Mapping[str, Sequence[str]], rates: Sequence[float]) -> plt.Figure:
    """A row a claim, a column a rate, a mark a verdict."""
    fig, ax = subplots(figsize=(7.4, 0.9 + 0.3 * max(1, len(words))))
    for row, found in enumerate(words.values()):
        for column, word in enumerate(found):
            mark, shade = MARKS[word]
            ax.add_patch(plt.Rectangle((column - 0.46, row - 0.44), 0.92, 0.88, color=shade))
            ax.text(column, row, mark, color="white", ha="center", va="center", fontsize=10)
    ax.set(xlim=(-0.5, len(rates) - 0.5), ylim=(max(1, len(words)) - 0.5, -0.5), xlabel="learning rate")
    names = [power(rate) + ("\npaper's" if rate == PAPER else "") for rate in rates]
    ax.set_xticks(range(len(rates)), names, fontsize=letters(ax))
    ax.set_yticks(range(len(words)), [_spoken(each) for each in words], fontsize=letters(ax))
    ax.grid(False)
    ax.minorticks_off()
    return fig


def _spoken(claim: str) -> str:
    """dln-plain-almost-no-ics -> plain almost no shift."""
    known = {"ics": "shift", "sigma": "σ", "beta": "β"}
    return " ".join(known.get(word, word) for word in claim.removeprefix("dln-").split("-"))


def effects(curves: Curves, rates: Sequence[float]) -> plt.Figure:
    """Without over with batch norm by rate, a panel a measure; hollow: most plain networks diverged."""
    titles = {
        "final_loss": "final loss",
        "loss_range": "range of the loss",
        "gradient_change": "change of gradient",
        "smoothness": "effective β",
    }
    fig, axes = subplots(2, 2, figsize=(7.4, 5.0), sharex=True)
    for ax, (name, title) in zip(axes.flat, titles.items()):
        low, middle, high = np.clip(np.asarray(curves[name])[0], 1e-30, 1e30)
        ax.vlines(rates, low, high, color=COLORS["theory"], linewidth=1)
        for rate, value, hollow in zip(rates, middle, np.asarray(curves["hollow"])[0]):
            face = "white" if hollow else COLORS["theory"]
            ax.plot(rate, value, "o", color=COLORS["theory"], markerfacecolor=face, markersize=4)
        marks(ax, x=printed.LINEAR_RATE, y={"equal": 1.0})
        finite = [rate for rate, value in zip(rates, middle) if 1e-8 < value < 1e12] or rates
        ax.set(xscale="log", yscale="log", title=title, xlim=(finite[0] / 2, finite[-1] * 2))
        bottom, top = ax.get_ylim()
        ax.set_ylim(max(bottom, 1e-8), min(top, 1e12))
    for ax in axes[:, 0]:
        ax.set_ylabel("without / with batch norm")
    for ax in axes[-1]:
        ax.set_xlabel("learning rate")
    return without_minor_ticks(fig)


def by_depth(curves: Curves, rates: Sequence[float], depths: Sequence[int]) -> plt.Figure:
    """Final loss, cosine and curvature against the number of layers, a column a rate."""
    titles = {"final_loss": "final loss, share", "cosine": "cosine of G and G′", "edge": "curvature × η / 2"}
    size = (2.3 * len(rates) + 0.7, 6.2)
    fig, axes = subplots(3, len(rates), figsize=size, sharex=True, sharey="row", squeeze=False)
    for row, (name, title) in zip(axes, titles.items()):
        for ax, rate in zip(row, rates):
            for norm in PAIR:
                style = dict(marker="o", markersize=4, color=COLORS[norm], label=LABELS[norm])
                ax.plot(depths, curves[f"{name}.{tag(rate)}.{norm}"][0], **style)
            ax.set_yscale("linear" if name == "cosine" else "log")
            ax.set_xticks(depths)
        row[0].set_ylabel(title)
    for ax, rate in zip(axes[0], rates):
        ax.set_title(f"learning rate {power(rate)}", fontsize=10.5)
    marks(axes[0, 0], x=printed.DEPTH)
    for ax in axes[-1]:
        ax.set_xlabel("layers")
    legend_below(fig, axes[0, 0], 2)
    return without_minor_ticks(fig)


# ---- Each figure of the page, from the results of its run -----------------------------------------------


def _draw_curves(results: Results) -> plt.Figure:
    best = {norm: float(results[f"best_rate.{norm}"][0]) for norm in NORMS}
    return losses(points_of(results, "curves"), best)


def _draw_rates(results: Results) -> plt.Figure:
    own = parameters_of(results)
    rates = dict.fromkeys(NORMS, own.rates) | dict.fromkeys(("l1", "linf"), own.coarse_rates)
    return by_rate(points_of(results, "rates"), rates)


def _draw_plateaus(results: Results) -> plt.Figure:
    return plateaus(points_of(results, "plateaus"), parameters_of(results).rates)


def _steps(results: Results) -> np.ndarray:
    return np.array(spread_probes(parameters_of(results).steps))


def _slow(results: Results) -> list[float]:
    return [rate for rate in (1e-8, 1e-7, PAPER) if rate in parameters_of(results).rates]


def _draw_covariate_shift(results: Results) -> plt.Figure:
    return covariate_shift(points_of(results, "covariate-shift"), _steps(results), _slow(results))


def _draw_landscape(results: Results) -> plt.Figure:
    return landscape(points_of(results, "landscape"), _steps(results), _slow(results)[-2:])


def _draw_activations(results: Results) -> plt.Figure:
    depth = parameters_of(results).depth
    layers = sorted({1, max(1, depth // 2), max(1, depth - 1), depth})
    return activations(points_of(results, "activations"), _steps(results), layers)


def _draw_effects(results: Results) -> plt.Figure:
    return effects(points_of(results, "effects"), parameters_of(results).rates)


def _draw_depth(results: Results) -> plt.Figure:
    own = parameters_of(results)
    return by_depth(points_of(results, "depth"), own.sweep_rates, sorted([*own.depths, own.depth]))


#: Without the verdicts by rate: the numbers that they rest on were not recorded.
FIGURES = {
    "curves": _draw_curves,
    "rates": _draw_rates,
    "plateaus": _draw_plateaus,
    "covariate-shift": _draw_covariate_shift,
    "landscape": _draw_landscape,
    "activations": _draw_activations,
    "effects": _draw_effects,
    "depth": _draw_depth,
}
