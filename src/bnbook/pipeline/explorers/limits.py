"""Break the training: where it breaks, where theories say so, how recorded trainings went and ended."""

from __future__ import annotations

from typing import Any

import numpy as np

from bnbook.meanfield import Convolutional, FullyConnected
from bnbook.pipeline.explorers import moments
from bnbook.pipeline.explorers.drawn import recorded, rounded
from bnbook.results import Results

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
    offsets = np.linspace(-1.5, 0.3, used["map_rates"])  # decades of the map from the line through the batch
    networks = {}
    for place, (data, shape) in enumerate(zip(used["datasets"], shapes)):
        nets = {
            "fc": FullyConnected((int(np.prod(shape)), *used["hidden"], 10)),
            "conv": Convolutional(shape, tuple(used["channels"])),
        }
        base = moments.of_inputs(results, nets, f"set{place}")
        for net, architecture in nets.items():
            suffix = f"{net}.set{place}"
            line = moments.line(architecture, "through_batch", gammas, used["batch_size"], base)
            table = recorded(results, f"map.{suffix}").mean(axis=0)
            networks[suffix.replace(".", "_")] = {
                "title": f"{NETWORKS[net]}, {SETS.get(data, data)}",
                "fanIn": architecture.fan_in,
                "positions": architecture.positions,
                "base": {"q": base[0], "xy": base[1], "ab": base[2]},
                "readout": moments.readout(results, gammas, suffix),
                "boundary": rounded(recorded(results, f"boundary.{suffix}")),
                "byStep": by_step(results, suffix),
                "map": [
                    [[rounded(log + offset), rounded(loss)] for offset, loss in zip(offsets, row)]
                    for log, row in zip(line, table)
                ],
            }
    return {
        "gammas": used["gammas"],
        "momentum": moments.MOMENTUM,
        "batch": used["batch_size"],
        "steps": used["map_steps"],
        "networks": networks,
    }


def by_step(results: Results, suffix: str) -> dict[str, Any] | None:
    """Losses by step of one restart at γ = 1, a row for each distance to its limit in decades; None where a
    run recorded none."""
    if f"by_step.{suffix}" not in results:
        return None
    losses = recorded(results, f"by_step.{suffix}")[0]
    away, steps = (recorded(results, f"by_step.{name}")[0] for name in ("away", "step"))
    return {"away": rounded(away), "step": rounded(steps), "loss": rounded(losses)}
