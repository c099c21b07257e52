"""Single numbers of deep linear trainings: of one arm, of a pair, of the whole scan; (S,) each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from bnbook.deep_linear import summaries as of
from bnbook.probes.over_steps import holds_from, holds_until, over_training, share_of_training
from bnbook.studies.deep_linear.plan import NORMS, PAIR, PAPER, READINGS, TINY, Trained, tag
from bnbook.studies.ladder.windows import over_window

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
    layer at the last probe; without a normalizer correlation, bounded: `deep_linear.correlations`, mean over
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
