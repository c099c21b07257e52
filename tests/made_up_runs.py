"""Arrays of a placed training that never took place, and middles over it, worked out step by step."""

from __future__ import annotations

import numpy as np

from bnbook.probes.places import PLACES
from bnbook.training.arm import Arm
from bnbook.training.probes import Probes

STEPS, SEEDS, CLASSES = 400, 2, 10
PROBES = (0, 3, 10, 16, 24, 31, 45, 60, 80, 101, 122, 140, 158, 170, 186, 203, 230, 251, 290, 333, 360, 398)
LAYERS = (1, 2, 5, 7, 8)  # those whose moments are taken; the chapters look at 2, 5 and 8
LENGTHS, RANDOM, RATE = (0.05, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0), (0.5, 2.0), 0.1


def arm(steps: int = STEPS, **changes: object) -> Arm:
    """changes: of its instruments."""
    looks = dict(probe_steps=PROBES, placed_layers=LAYERS, landscape=LENGTHS, random_directions=RANDOM)
    return Arm(steps=steps, learning_rate=RATE, instruments=Probes(**looks | changes))


def run(seed: int = 0) -> dict[str, np.ndarray]:
    """Every array drawn anew at every probe, so that no two windows have the same middle."""
    draw = np.random.default_rng(seed)
    P, A, R, L = len(PROBES), len(LENGTHS), len(RANDOM), len(LAYERS)

    def some(*shape: int, low: float = 0.5, high: float = 3.0) -> np.ndarray:
        return draw.uniform(low, high, (SEEDS, *shape))

    found = {name: some(P, A) for name in ("landscape_loss", "landscape_distance", "landscape_norm")}
    found |= {name: some(P, R) for name in ("random_loss", "random_distance", "random_norm")}
    found |= {name: some(P) for name in ("start_loss", "start_norm")}
    found |= {name: some(P, 4) for name in ("shift_distance", "shift_norm")}
    found["shift_cosine"] = some(P, 4, low=-1, high=1)
    for name in ("along_one", "along_values"):
        found |= {f"removed_{name}{part}": some(P, 3, low=0, high=0.3) for part in ("", "_part")}
    moments = (L, len(PLACES), 2)
    found |= {name: some(P, *moments) for name in ("update_change", "batch_change")}
    found |= {"checkpoint_change": some(4, *moments), "median_variance": some(5, *moments[:2])}
    found |= {name: some(5, low=0.1, high=0.9) for name in ("train_accuracy", "test_accuracy")}
    found["accuracy"] = some(STEPS, low=0.1, high=0.9)
    # The first seed starts at the 90th step or so, the other at about the 310th.
    falling = [
        np.where(np.arange(STEPS) < at, 2.31, 2.31 - 1e-2 * (np.arange(STEPS) - at)) for at in (70, 290)
    ]
    found["loss"] = np.array(falling) + some(STEPS, low=-0.01, high=0.01)
    found["probe_step"] = np.repeat([PROBES], SEEDS, axis=0)
    return found | {"diverged": np.array([0.0, 1.0]), "seconds": np.array([3.0, 4.0])}


def middle(
    row: np.ndarray, low: float, high: float, mean: bool = False, probes: tuple[int, ...] = PROBES
) -> float:
    """Median (or mean) over a window, a tenth of a step at a time, each with the value of the nearest
    probe."""
    tenths = np.arange(round(10 * max(low, probes[0])), round(10 * min(high, probes[-1]))) / 10 + 0.05
    values = np.asarray(row)[np.abs(tenths[:, None] - np.array(probes)).argmin(1)]
    return float(np.mean(values)) if mean else float(sorted(values)[(len(values) - 1) // 2])


def curves(run: dict[str, np.ndarray], seed: int) -> dict[str, np.ndarray]:
    """What the landscape and the covariate shift of one seed come to, probe by probe, (P,)."""
    found: dict[str, list[float]] = {}
    for p in range(len(PROBES)):
        losses, far = run["landscape_loss"][seed, p], run["landscape_distance"][seed, p]
        start, norm = run["start_loss"][seed, p], run["start_norm"][seed, p]
        paper = [k for k, length in enumerate(LENGTHS) if length in (0.5, 1, 2, 4)]
        layers = [1, 2, 3]  # the first has no layer before it
        shift, size = run["shift_distance"][seed, p], run["shift_norm"][seed, p]
        now = {
            "loss_range": max(losses[k] for k in paper) - min(losses[k] for k in paper),
            "loss_change": max(abs(losses[k] - start) for k in paper),
            "gradient_change": max(far[k] for k in paper),
            "smoothness": max(far[k] / (LENGTHS[k] * RATE * norm) for k in paper),
            "gradient_norm": norm,
            "relative_range": (max(losses[k] for k in paper) - min(losses[k] for k in paper)) / start,
            "relative_change": max(far[k] for k in paper) / norm,
            "beyond": max(far[k] / (LENGTHS[k] * RATE * norm) for k in (6, 7)),  # 8 and 16
            "beyond_range": abs(losses[6] - losses[7]),
            "near_slope": far[0] / (LENGTHS[0] * RATE * norm),
            "random_smoothness": max(
                run["random_distance"][seed, p, k] / (RANDOM[k] * RATE * norm) for k in range(len(RANDOM))
            ),
            "random_loss_change": max(abs(run["random_loss"][seed, p] - start)),
            "start_loss": start,
            "low": np.log(min(losses[k] for k in paper)),
            "high": np.log(max(losses[k] for k in paper)),
            "shift": sum(shift[k] for k in layers) / 3,
            "relative_shift": sum(shift[k] / size[k] for k in layers) / 3,
            "cosine": sum(run["shift_cosine"][seed, p, k] for k in layers) / 3,
            "removed_along_one": sum(run["removed_along_one"][seed, p]) / 3,
        }
        for length in (1, 2, 4, 8, 16):
            k = LENGTHS.index(length)
            there = run["landscape_norm"][seed, p, k]
            now[f"error_x{length}"] = far[k]
            now[f"relative_error_x{length}"] = far[k] / norm
            now[f"cosine_x{length}"] = max(
                -1, min(1, (norm**2 + there**2 - far[k] ** 2) / (2 * norm * there))
            )
            now[f"descends_x{length}"] = float(losses[k] < start)
        for name, value in now.items():
            found.setdefault(name, []).append(float(value))
    return {name: np.array(values) for name, values in found.items()}


MEANS = ("cosine", "descends", "removed")  # over the steps; of all other curves the median


def summed_up(run: dict[str, np.ndarray], seed: int) -> dict[str, float]:
    """Each curve over a training, its first tenth, its second half and the tenth from the start of learning on; how far
    the moments move; the shift's decline; the slope by its distance and where the effective β is reached."""
    start, seen = start_step(run["loss"][seed]), curves(run, seed)
    windows = {"": (0, STEPS), "_early": (0, STEPS / 10), "_late": (STEPS / 2, STEPS)}
    windows["_started"] = (start, start + STEPS / 10)
    found = {
        f"{name}{part}": middle(values, *window, name.startswith(MEANS))
        for name, values in seen.items()
        for part, window in windows.items()
    }
    of = [LAYERS.index(layer) for layer in (2, 5, 8)]
    for way in ("update", "batch", "checkpoint"):
        for m, moment in enumerate(("mean", "variance")):
            for k, place in enumerate(PLACES):
                each = [sum(row[j, k, m] for j in of) / 3 for row in run[f"{way}_change"][seed]]
                value = sum(each) / 4 if way == "checkpoint" else middle(each, 0, STEPS)
                found[f"{way}_{moment}_{place}"] = value
                found[f"{way}_{moment}_{place}_log"] = float(np.log(value))
            for word, row in (("first", 0), ("last", -1)):
                each = [probe[row, PLACES.index("next_input"), m] for probe in run["update_change"][seed]]
                found[f"update_{moment}_{word}"] = middle(each, 0, STEPS)
    paper = [k for k, length in enumerate(LENGTHS) if 0.5 <= length <= 4]
    far, norm = run["landscape_distance"][seed], run["start_norm"][seed]
    slope = np.array([[d / (a * RATE * g) for a, d in zip(LENGTHS, row)] for row, g in zip(far, norm)])
    at_first = [float(row[paper[0]] == max(row[k] for k in paper)) for row in slope]
    return found | {
        "start_step": start,
        "shift_decline": found["shift_early"] / found["shift_late"],
        "near_slope_log": float(np.log(found["near_slope"])),
        "shortest_share": middle(at_first, 0, STEPS, mean=True),
        "of_pin": 0.5 * RATE * found["smoothness"],
        "slopes": [middle(column, 0, STEPS) for column in slope.T],
    }


def lowest_means(loss: np.ndarray) -> list[float]:
    """The lowest mean of the last 50 losses so far (of all, where there are fewer), step by step."""
    means = [float(np.mean(loss[max(0, t - 49) : t + 1])) for t in range(len(loss))]
    return [min(means[: t + 1]) for t in range(len(means))]


def start_step(loss: np.ndarray) -> int:
    """Updates until that lies 2 % below ln 10; all of them where it never does."""
    under = [t + 1 for t, value in enumerate(lowest_means(loss)) if value < 0.98 * np.log(10)]
    return under[0] if under else len(loss)


def lowest_around(loss: np.ndarray) -> list[float]:
    """The lowest mean so far of a loss and 25 on each side, step by step: at the start as many as both sides
    have, at the end the last 51."""
    centres = [min(t, len(loss) - 26) for t in range(len(loss))]
    means = [float(np.mean(loss[t - min(25, t) : t + min(25, t) + 1])) for t in centres]
    return [min(means[: t + 1]) for t in range(len(means))]


def levels(made: tuple[dict[str, np.ndarray], ...], seed: int) -> list[list[int]]:
    """Nine losses from the start of learning to the end of the arm that ends higher, and for each arm the
    first step at which it has come there."""
    come = [lowest_around(each["loss"][seed]) for each in made]
    high, low = 0.98 * np.log(10), max(min(each) for each in come)
    wanted = [high + (low - high) * k / 8 for k in range(9)]
    return [[next(t for t, x in enumerate(each) if x <= loss + 1e-12) for loss in wanted] for each in come]


def between(row: np.ndarray, step: int) -> float:
    """Read off along a straight line between two probes; that of the last behind it."""
    for k, (a, b) in enumerate(zip(PROBES, PROBES[1:])):
        if step <= b:
            return row[k] + (row[k + 1] - row[k]) * (step - a) / (b - a)
    return row[-1]
