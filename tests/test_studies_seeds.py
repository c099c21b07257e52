"""Two seeds differ and one repeats: every function of the studies that draws at random by a seed."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from bnbook.deep_linear.problem import draw_examples, draw_problem
from bnbook.studies.gradient_growth import activations, chain, measuring
from bnbook.studies.length_direction import halfspace_trials, least_squares_trials, network_trials
from bnbook.studies.theorems import lipschitz_trials, minima_trials, smoothness_trials
from bnbook.studies.theorems.trials import run_trials


def net():
    torch.manual_seed(0)
    return chain((5, 6, 6, 10), "tanh")


#: Of a seed, whatever numbers come out.
DRAWS = {
    "lipschitz": lambda seed: run_trials(lipschitz_trials.lipschitz_trial, seed + 1, 1).values[
        "margin.better"
    ][seed],
    "smoothness": lambda seed: run_trials(smoothness_trials.smoothness_trial, seed + 1, 1).values[
        "margin.c1"
    ][seed],
    "minima": lambda seed: run_trials(minima_trials.minima_trial, seed + 1, 1).values["margin.lemma_33"][
        seed
    ],
    "least squares": lambda seed: least_squares_trials.least_squares_margins(seed, 1, 2)[0].ratio,
    "rayleigh": lambda seed: least_squares_trials.rayleigh_margins(seed, 1, 2)["corrected"].ratio,
    "half-spaces": lambda seed: halfspace_trials.run_margins(seed, 1, 1)["direction.corrected"],
    "one unit": lambda seed: network_trials.unit_margins(seed, 2, 1)["on_line"],
    "passes": lambda seed: network_trials.passes(seed, 1, [1], 1)[1],
    "batch": lambda seed: measuring.gaussian_batch(4, 3, seed)[0],
    "labels": lambda seed: measuring.gaussian_batch(40, 3, seed)[1],
    "gradients": lambda seed: measuring.gradients(net(), 8, seed).weight,
    "roughness": lambda seed: measuring.roughness(net(), 8, seed),
    "nonlinearities": lambda seed: next(activations.random_nonlinearities(1, seed))[0](torch.ones(1)),
    "examples": lambda seed: draw_examples(seed, 3, 8)[0],
    "maps": lambda seed: draw_examples(seed, 3, 8)[1],
    "first weights": lambda seed: draw_problem([seed], 2, 3, 8).weights,
}


@pytest.mark.parametrize("name", DRAWS)
def test_seeds_differ_and_repeat(name):
    one, other, again = (np.asarray(DRAWS[name](seed), dtype=float) for seed in (0, 1, 0))
    assert np.array_equal(one, again) and one.size
    assert one.shape != other.shape or not np.allclose(one, other, rtol=1e-3, atol=0)
