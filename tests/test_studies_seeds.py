"""Two seeds differ and one repeats: every function of the studies that draws at random by a seed."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from bnbook.chapters import (
    gradient_explosion,
    halfspaces,
    least_squares,
    lipschitz,
    minima,
    neural_networks,
    smoothness,
)
from bnbook.chapters.gradient_explosion import chain
from bnbook.chapters.theorems import run_trials
from bnbook.deep_linear.problem import draw_examples, draw_problem


def net():
    torch.manual_seed(0)
    return chain((5, 6, 6, 10), "tanh")


#: Of a seed, whatever numbers come out.
DRAWS = {
    "lipschitz": lambda seed: run_trials(lipschitz.lipschitz_trial, seed + 1, 1).values["margin.better"][
        seed
    ],
    "smoothness": lambda seed: run_trials(smoothness.smoothness_trial, seed + 1, 1).values["margin.c1"][seed],
    "minima": lambda seed: run_trials(minima.minima_trial, seed + 1, 1).values["margin.lemma_33"][seed],
    "least squares": lambda seed: least_squares.least_squares_margins(seed, 1, 2)[0].ratio,
    "rayleigh": lambda seed: least_squares.rayleigh_margins(seed, 1, 2)["corrected"].ratio,
    "half-spaces": lambda seed: halfspaces.run_margins(seed, 1, 1)["direction.corrected"],
    "one unit": lambda seed: neural_networks.unit_margins(seed, 2, 1)["on_line"],
    "passes": lambda seed: neural_networks.run_passes(seed, 1, [1], 1)[1],
    "batch": lambda seed: gradient_explosion.gaussian_batch(4, 3, seed)[0],
    "labels": lambda seed: gradient_explosion.gaussian_batch(40, 3, seed)[1],
    "gradients": lambda seed: gradient_explosion.gradients(net(), 8, seed).weight,
    "roughness": lambda seed: gradient_explosion.roughness(net(), 8, seed),
    "nonlinearities": lambda seed: next(gradient_explosion.random_nonlinearities(1, seed))[0](torch.ones(1)),
    "examples": lambda seed: draw_examples(seed, 3, 8)[0],
    "maps": lambda seed: draw_examples(seed, 3, 8)[1],
    "first weights": lambda seed: draw_problem([seed], 2, 3, 8).weights,
}


@pytest.mark.parametrize("name", DRAWS)
def test_seeds_differ_and_repeat(name):
    one, other, again = (np.asarray(DRAWS[name](seed), dtype=float) for seed in (0, 1, 0))
    assert np.array_equal(one, again) and one.size
    assert one.shape != other.shape or not np.allclose(one, other, rtol=1e-3, atol=0)
