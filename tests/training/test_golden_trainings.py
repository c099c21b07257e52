"""One small training of every engine against numbers that were written down once, in golden_trainings.json.

A tidier engine must not train differently. Other processors round differently, and batch norm makes rounding
grow: few steps, low rates, a tolerance. After a change that is meant to change numbers,
`python tests/training/test_golden_trainings.py` writes the file anew.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import page_cells
import pytest
import torch

from bnbook.chapters import ingredients
from bnbook.data import load
from bnbook.deep_linear import LinearArm
from bnbook.deep_linear import train_stack as train_linear
from bnbook.small_networks import PhaseArm, linear_growth, train_model, train_part, train_stack
from bnbook.training.arm import Arm
from bnbook.training.engine import train
from bnbook.training.probes import Probes
from bnbook.training.resumable import arrays_of_one

GOLDEN = Path(__file__).parents[1] / "golden_trainings.json"
#: Of a value, and of the largest of an array. The same training with SSE4.1, AVX2 and AVX-512 instructions
#: differs by up to 7e-4 of a value and 1e-3 of the largest.
ROUNDING = 3e-3
KEPT = 5  # values of an array, evenly spaced, besides its mean and its shape
VGG = dict(norm="batch", width=1 / 32, steps=4, batch_size=16, learning_rate=0.01, data="textures-standin")
VGG |= dict(evaluate_every=2, train_examples=16, test_examples=24)
PROBES = dict(probe_steps=(0, 2), landscape=(0.5, 4.0), random_directions=(1.0,), covariate_shift=True)
PROBES = Probes(**PROBES, placed_layers=(2, 9), removed_gradient=True)
SMALL = dict(hidden=(7, 6), batch_size=16, steps=5, data="textures-standin", test_examples=30)
LINEAR = dict(depth=3, width=4, examples=20, steps=5, learning_rate=1e-3, probe_steps=(0, 4))


def plain(**changes):
    return lambda: train(Arm(**VGG | changes), 3, threads=1)


def placed(norm):
    arm = Arm(**VGG | dict(norm=norm), activation_examples=20, instruments=PROBES)
    return lambda: train(arm, 2, threads=1)


def stacked(rates=(0.01, 0.05), **settings):
    def run():
        arms = [PhaseArm(**SMALL | settings, gamma=1.0 + k, learning_rate=r) for k, r in enumerate(rates)]
        return train_stack([(arm, k) for k, arm in enumerate(arms)], load(SMALL["data"]), dtype=torch.float64)

    return run


def alone(network):
    def run():
        arm, dataset = PhaseArm(**SMALL, network=network, learning_rate=0.02), load(SMALL["data"])
        model, loss = train_model(arm, 2, dataset)
        return {
            "growth": [linear_growth(replace(arm, learning_rate=rate), 3, dataset) for rate in (0.01, 1.0)],
            "hidden": train_part(arm, 1, dataset, "hidden weights"),
            "loss": loss,
            "readout": list(model.parameters())[-2].detach().numpy(),
        }

    return run


def side_by_side(arm):
    settings = dict(data=SMALL["data"], pool=4, units=(8, 8, 8), strides=(), batch_size=16, steps=6, probes=2)
    member = ingredients.IngredientArm(arm, **settings, rates=(0.1, 0.4), held=True), 4
    return lambda: arrays_of_one(ingredients.start([member], load(SMALL["data"]), threads=1))


def linear(norm, **changes):
    arm = LinearArm(norm, **LINEAR | changes)
    return lambda: train_linear([(arm, 3), (replace(arm, learning_rate=5e-4), 1)])


GROWTH = page_cells.functions("batch-norm/gradient-explosion")


def growth(make):
    def run():
        networks = []
        for seed in (0, 1):
            torch.manual_seed(seed)
            networks.append(make((12, 8, 8, 8, 10)).double())
        images = torch.randn(40, 12, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
        batches = torch.randint(40, (2, 4, 12), generator=torch.Generator().manual_seed(2))
        return GROWTH["train"](networks, [0.05, 0.2], images, torch.arange(40) % 10, batches, [0, 2])

    return run


CASES = {
    "vgg, batch norm": plain(activation_layers=(2, 9), activation_units=2, activation_examples=16),
    "vgg, none": plain(norm="none", learning_rate=0.1),
    "vgg, noisy": plain(norm="noisy"),
    "vgg, linf": plain(norm="linf"),
    "vgg, augmented, momentum, decay": plain(augment=True, momentum=0.9, weight_decay=5e-3),
    "vgg, diverged": plain(norm="none", learning_rate=1e9),
    "placed, batch norm": placed("batch"),
    "placed, noisy": placed("noisy"),
    "small, fc, squared": stacked(),
    "small, fc, none, cross-entropy": stacked(norm="none", loss="cross_entropy", rates=(0.001, 0.002)),
    "small, fc, one explodes": stacked(rates=(1e4, 0.01)),
    "small, conv, cross-entropy": stacked(network="conv", loss="cross_entropy"),
    "small, conv, none, chosen examples": stacked(
        network="conv", norm="none", examples=20, rates=(1e-3, 1e-3)
    ),
    "alone, fc": alone("fc"),
    "alone, conv": alone("conv"),
    "side by side, RMS norm and the last layer centred": side_by_side("rms_centre_last"),
    **{f"linear, {norm}": linear(norm) for norm in ("none", "batch", "l2", "l1", "linf")},
    "linear, momentum, last": linear("batch", momentum=0.9, normalize_last=True),
    "linear, lost": linear("none", learning_rate=1e6, steps=20),
    "growth, chain": growth(GROWTH["chain"]),
    "growth, residual": growth(GROWTH["residual"]),
}


def summary(values) -> dict:
    """Shape, mean of the finite values, and some values with a null for each that is not finite."""
    flat = np.asarray(values, dtype=float)
    finite = flat[np.isfinite(flat)]
    some = flat.ravel()[np.linspace(0, flat.size - 1, min(KEPT, flat.size)).round().astype(int)]
    return {
        "shape": list(flat.shape),
        "mean": _short(finite.mean()) if finite.size else None,
        "values": [_short(value) if np.isfinite(value) else None for value in some],
    }


def _short(value: float) -> float:
    return float(f"{value:.9g}")


def run(name: str) -> dict:
    with np.errstate(invalid="ignore", over="ignore"):
        return {key: summary(values) for key, values in CASES[name]().items()}


@pytest.mark.parametrize("name", CASES)
def test_a_training_gives_the_numbers_it_gave(name):
    written, found = json.loads(GOLDEN.read_text(encoding="utf-8"))[name], run(name)
    assert found.keys() == written.keys()
    for key, one in written.items():
        assert found[key]["shape"] == one["shape"], key
        now, then = (np.array([entry["mean"], *entry["values"]], dtype=float) for entry in (found[key], one))
        size = np.nanmax(np.abs(then), initial=0.0)  # a mean or a gradient may be almost 0 by chance
        np.testing.assert_allclose(now, then, rtol=ROUNDING, atol=ROUNDING * size, err_msg=key)


if __name__ == "__main__":
    lines = [f"{json.dumps(name)}: {json.dumps(run(name))}" for name in CASES]
    GOLDEN.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
