"""Numbers of the deep linear network with ℓp normalizations."""

from __future__ import annotations

import numpy as np

from bnbook.deep_linear import LinearArm
from bnbook.deep_linear import summaries as of
from bnbook.probes.activations import moment_change
from bnbook.probes.over_steps import over_training, share_of_training

Arrays = dict[str, np.ndarray]
EXAMPLES = LinearArm.examples
MEASURES = ("loss_range", "gradient_change", "smoothness")


def of_arm(arm: LinearArm, run: Arrays) -> Arrays:
    """mean_loss, final_loss: share of the loss of answering zero, over all steps and at the end; diverged;
    the medians over the training of MEASURES and their natural logarithms, log_NAME; mean_change,
    variance_change: of what a layer hands on, between twenty even parts of the training, median over them."""
    found = {
        "mean_loss": of.mean_log_loss(arm, run),
        "final_loss": of.loss_share(arm, run)[:, -1],
        "diverged": of.diverged(run),
    }
    seen = of.landscape(arm, run)
    for name in MEASURES:
        found[name] = over_training(seen[name], run["probe_step"])
        with np.errstate(divide="ignore"):
            found[f"log_{name}"] = np.log(found[name])
    for name, values in zip(("mean_change", "variance_change"), moved(arm, run)):
        found[name] = lived(values)
    return found


def moved(arm: LinearArm, run: Arrays) -> np.ndarray:
    """Change of mean and variance between even parts of the training, mean over all units: (2, S, T)."""
    steps = run["probe_step"][0]
    regular = np.isin(steps, np.arange(0, steps[-1] + 1, max(1, arm.steps // 20)))
    handed = [run[f"handed_on_{name}"][:, regular, :-1] for name in ("mean", "deviation")]
    mean, deviation = (values.reshape(*values.shape[:2], -1).astype(float) for values in handed)
    with np.errstate(invalid="ignore", over="ignore"):  # shortly before a divergence
        return np.moveaxis(np.array([moment_change(m, v**2) for m, v in zip(mean, deviation)]), 1, 0)


def smoother(plain: tuple[LinearArm, Arrays], other: tuple[LinearArm, Arrays]) -> np.ndarray:
    """Share of the steps at which the other has the smaller β, as far as the plain network lived, (S,)."""
    one, two = (of.landscape(*pair)["smoothness"] for pair in (plain, other))
    return share_of_training(one > two, np.isfinite(plain[1]["start_loss"]), plain[1]["probe_step"][0])


def lived(values: np.ndarray) -> np.ndarray:
    """Median over all axes but the first, NaN (after a divergence, or a unit without spread) left out."""
    rows = np.asarray(values, dtype=float).reshape(len(values), -1)
    return np.array([np.median(row[~np.isnan(row)]) if (~np.isnan(row)).any() else np.nan for row in rows])
