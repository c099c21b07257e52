"""Two seeds differ and one repeats: every function of the studies that draws at random by a seed."""

from __future__ import annotations

import numpy as np
import page_cells
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
from bnbook.chapters.theorems import draw_all
from bnbook.deep_linear.problem import draw_examples, draw_problem


def net():
    torch.manual_seed(0)
    return chain((5, 6, 6, 10), "tanh")


BOUNDS, ONE_UNIT = (
    page_cells.functions(f"decoupling/{name}")["both_sides"] for name in ("halfspaces", "neural-networks")
)
#: Of a seed, whatever numbers come out.
DRAWS = {
    "lipschitz": lambda seed: draw_all(lipschitz.draw_layer, 1, 1, seed, 0)[0][0].case.g,
    "smoothness": lambda seed: draw_all(smoothness.draw_layer, 1, 1, seed, 1)[0][0].minimum,
    "minima": lambda seed: draw_all(minima.draw_problem, 1, 1, seed, 2)[0][0].t,
    "least squares": lambda seed: least_squares.least_squares_margins(seed, 1, 2)[0].ratio,
    "rayleigh": lambda seed: least_squares.rayleigh_margins(seed, 1, 2)["corrected"].ratio,
    "half-spaces": lambda seed: halfspaces.run_margins(seed, 1, 1, BOUNDS)["direction.corrected"],
    "one unit": lambda seed: neural_networks.unit_margins(seed, 2, 1, ONE_UNIT)["on_line"],
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
