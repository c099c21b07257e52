"""What the explorers of this book draw from its committed results: name -> (pages) -> JSON, or None where nothing is
published or too little; `bookpress.pipeline.explorers` writes them."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from scipy.optimize import brentq

from bnbook.meanfield import Convolutional, FullyConnected
from bookpress.pipeline.explorers import recorded, rounded
from bookpress.pipeline.prose import Pages
from bookpress.results import Results
from bookpress.runs import store

# ---- Light the fuse: the gradient by layer, and its growth in a layer by batch size --------------------------------


def fuse(results: Results) -> dict[str, Any]:
    """The measured networks of the chapter on exploding gradients: by layer, and their rate by batch size."""
    used = results.header["parameters"]
    sizes = used["batch_sizes"]
    names = ("relu", "tanh", "linear", "zigzag")
    layers = {
        kind: rounded(recorded(results, f"curve.layers.{kind}")) for kind in ("batch", "residual", "none")
    }
    measured = {
        name: {m: rounded(recorded(results, f"growth2.{name}.m{m}")) for m in sizes} for name in names
    }
    theory = {name: rounded(recorded(results, f"curve.rates.{name}")[0]) for name in names}
    return {
        "layers": {"depth": len(layers["batch"][0]), "size": 64, "width": used["deep_width"], **layers},
        "rates": {
            "layers": used["layers"],
            "sizes": rounded(recorded(results, "curve.rates.batch_sizes")[0]),
            "theory": theory,
            "measured": measured,
        },
    }


# ---- The landscape, step by step: the losses met along the gradient while a network trains, a rung a network -------
# The ladder publishes its trainings, and they hold the loss at P probed steps and A step lengths: the whole
# cross-section of each rung that was reached. So does a chapter that records `along_gradient.ARM` (S, P, A).

CHAPTER, LADDER = "santurkar/landscape", "santurkar/scale"
ARMS = ("none", "batch")
REACH = (0.5, 4.0)  # learning rates, the paper's


def landscape(pages: Pages) -> list[dict[str, Any]] | None:
    """A row for each network whose losses along the gradient are known; None where there is none."""
    rows = []
    if ladder := pages.evidence.get(LADDER):
        rows += rungs(ladder.results)
    if single := pages.evidence.get(CHAPTER):
        steps, used = single.results["probe_step"][0], single.results.header["parameters"]
        losses = {arm: recorded(single.results, f"along_gradient.{arm}") for arm in ARMS}
        title = f"{_share(used['width'])}, {used['steps']:,} steps, this page's seeds"
        rows.append(_row_of_loss(title, losses, used["lengths"], steps))
    return rows or None


def rungs(ladder: Results) -> list[dict[str, Any]]:
    """A row for each network of the trainings that a run keeps, with and without batch norm, by the seeds of
    both; the narrow and short ones first."""
    networks: dict[tuple[Any, ...], dict[str, dict[int, dict[str, np.ndarray]]]] = {}
    lengths: dict[tuple[Any, ...], list[float]] = {}
    for name in ladder.header.get("provenance", {}).get("store", {}).get("kept", []):
        if (found := store.kept(name)) is None:
            continue
        arrays, about = found
        arm = next(part for part in about.values() if isinstance(part, dict) and "landscape" in part)
        network = tuple(arm[part] for part in ("steps", "width", "learning_rate", "augment"))
        networks.setdefault(network, {}).setdefault(arm["norm"], {})[about["seed"]] = arrays
        lengths[network] = arm["landscape"]
    rows = []
    for network, arms in sorted(networks.items()):
        seeds = sorted(set.intersection(*(set(arms.get(arm, {})) for arm in ARMS)))
        if seeds:
            losses = {arm: np.stack([arms[arm][seed]["landscape_loss"] for seed in seeds]) for arm in ARMS}
            steps = arms["none"][seeds[0]]["probe_step"]
            rows.append(_row_of_loss(_title(*network), losses, lengths[network], steps))
    return rows


def _title(steps: int, width: float, learning_rate: float, augment: bool) -> str:
    others = [f"rate {learning_rate:g}"] * (learning_rate != 0.1) + ["crop and flip"] * augment
    return ", ".join([_share(width), f"{steps:,} steps", *others])


def _share(width: float) -> str:
    return f"{Fraction(width).limit_denominator(64)} of the width" if width != 1 else "its whole width"


def _row_of_loss(
    title: str, losses: Mapping[str, np.ndarray], lengths: Sequence[float], steps: np.ndarray
) -> dict:
    """Geometric means over the seeds of the loss (S, P, A) at each length, and of its smallest and largest
    value within the paper's lengths."""
    at = np.array(lengths, dtype=float)
    within, arms = (at >= REACH[0]) & (at <= REACH[1]), {}
    for arm, values in losses.items():
        with np.errstate(invalid="ignore", divide="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # where no seed has a finite loss
            logs = np.log(values)
            edges = {"low": logs[..., within].min(-1), "high": logs[..., within].max(-1), "along": logs}
            arms[arm] = {name: rounded(np.exp(np.nanmean(edge, axis=0))) for name, edge in edges.items()}
    seeds = len(losses["none"])
    return {"title": title, "seeds": seeds, "steps": rounded(steps), "lengths": at.tolist(), "arms": arms}


# ---- Break the training: where it breaks, where theories say so, how recorded trainings went and ended -------------

MOMENTUM = 0.9
NETWORKS = {"fc": "fully connected", "conv": "convolutional"}
SETS = {"mnist": "MNIST", "cifar10-auto": "CIFAR-10", "cifar10": "CIFAR-10"}


def limits(results: Results) -> dict[str, Any] | None:
    """Measured and predicted limits of the learning rate, and the test losses of the coarse map.

    None where there are too few γ for a line between them.
    """
    used = results.header["parameters"]
    if len(used["gammas"]) < 2:
        return None
    shapes = [tuple(row["shape"]) for row in results.header["data"]]
    gammas = np.array(used["gammas"])
    networks = {}
    for place, (data, shape) in enumerate(zip(used["datasets"], shapes)):
        nets = {
            "fc": FullyConnected((int(np.prod(shape)), *used["hidden"], 10)),
            "conv": Convolutional(shape, tuple(used["channels"])),
        }
        moments = recorded(results, f"moments.set{place}")[0].tolist()
        for net, architecture in nets.items():
            suffix = f"{net}.set{place}"
            rates = recorded(results, f"curve.map.rates.{suffix}")[0]  # log10, (γ, rates)
            table = recorded(results, f"map.{suffix}").mean(axis=0)
            networks[suffix.replace(".", "_")] = {
                "title": f"{NETWORKS[net]}, {SETS.get(data, data)}",
                "fanIn": architecture.fan_in,
                "positions": architecture.positions,
                "base": dict(zip(("q", "xy", "ab"), moments)),
                "readout": readout(results, gammas, suffix),
                "boundary": rounded(recorded(results, f"boundary.{suffix}")),
                "byStep": by_step(results, suffix),
                "map": rounded(np.stack([rates, table], axis=-1)),
            }
    return {
        "gammas": used["gammas"],
        "momentum": MOMENTUM,
        "batch": used["batch_size"],
        "steps": used["map_steps"],
        "networks": networks,
    }


def readout(results: Results, gammas: np.ndarray, suffix: str) -> float:
    """a of the readout's own largest eigenvalue γ² a + 1, the 1 its bias, in the mean over the networks: from the
    recorded distance of its rate 2 (1 + μ) / (γ² a + 1) to the measured one, a mean over γ of decades."""
    distance = results[f"boundary.{suffix}"].mean(axis=1) - results[f"offset.readout.{suffix}"]

    def beyond(a: float) -> float:
        return np.log10(2 * (1 + MOMENTUM) / (gammas**2 * 10**a + 1)).mean() - distance.mean()

    return float(10 ** brentq(beyond, -6.0, 9.0))


def by_step(results: Results, suffix: str) -> dict[str, Any]:
    """Losses by step of one restart at γ = 1, a row for each distance to its limit in decades."""
    names = {"away": "away", "step": "step", "loss": suffix}
    return {key: rounded(recorded(results, f"by_step.{name}")[0]) for key, name in names.items()}


# ---- All of them -------------------------------------------------------------------------------------------------


def of_chapter(name: str, collect: Callable[[Results], Any]) -> Callable[[Pages], Any]:
    """From the run of one chapter."""

    def draws_from(pages: Pages) -> Any:
        evidence = pages.evidence.get(name)
        return collect(evidence.results) if evidence else None

    return draws_from


EXPLORERS: dict[str, Callable[[Pages], Any]] = {
    "fuse": of_chapter("batch-norm/gradient-explosion", fuse),
    "break": of_chapter("mean-field/learning-rate", limits),
    "landscape": landscape,
}
