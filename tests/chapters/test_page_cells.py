"""The cells of the pages on theorems and the like, run: of each formula and bound the right side is right and the wrong one wrong."""

from __future__ import annotations

from functools import cache

import numpy as np
import page_cells
import pytest
import torch
from page_cells import run

ran = cache(run)


#: Page -> identities that hold to 10⁻⁹ and that do not to a thousandth, bounds that hold and that break.
SIDES = {
    "theory/lipschitz": (
        "fact_c1 fact_c2 fact_c2_gamma fact_c1_v1_corrected th41 th44 c2.normalized.centred c2_general.uncentred "
        "th31.normalized.centred th31_general.uncentred c3_plain.centred sharp32_reached.centred fact_c1.eps "
        "fact_c1_count.eps fact_c1_count.unbiased equation_12 identity_weights.normalized",
        "fact_c1_v1 c2.raw.centred c2.normalized.uncentred th31.raw.centred th31.pearson.centred "
        "th31.normalized.uncentred c3.centred c3_plain.uncentred fact_c1.unbiased th41.eps th41.unbiased "
        "equation_12_printed identity_weights.raw",
        "th41 th41_linear th41_restored th44 better_small_gamma th31.uncentred th31.centred "
        "th32.cosine_squared.uncentred th32.pearson_squared.centred c4.cosine_squared.below.uncentred "
        "sharp32.uncentred always_far.uncentred th41.eps th41.unbiased sharp32.eps sharp32.unbiased "
        "equation_16_absolute equation_17_corrected",
        "th41_appendix th41_literal better th44_printed th44_maximum th32.pearson.centred "
        "th32.pearson_squared.uncentred c4.pearson.any.centred always.uncentred "
        "th32_literal.cosine_squared.uncentred equation_16 equation_17",
    ),
    "theory/smoothness": (
        "hessian equation_42 first second scale_gradient equation_44 second_term first_term equation_58_corrected "
        "equation_61_reached hessian.eps hessian.unbiased loss_expansion",
        "equation_55 equation_56 equation_58 equation_58_asymmetry plain.same plain.cross",
        "first second_fair c1 c1.isotropic sign_centre convex equation_61 equation_61_diagonal equation_61_best "
        "plain.same plain.cross c6.cross.rank_one c6_corrected.cross c6_corrected.same c6_corrected.diagonal "
        "th34_corrected.cross th34_corrected.same frobenius equation_64.cross equation_64.same "
        "equation_64_one.cross equation_64_one.same",
        "first_literal second c1_printed sign predictive convex_below_batch_norm convex_tanh equation_59 c6.cross "
        "c6.same c6.diagonal c6.same.isotropic th34.same spectral first.eps first.unbiased",
    ),
    "theory/minima": (
        "same same.eps_corrected minimum.bias minimum.fixed ray.fixed ray.any ray.centred foot.any "
        "plain_minimum.centred lemma_33_reached lemma_33_squared_reached",
        "same.eps minimum.any minimum.centred plain_minimum.any",
        "minimum.bias minimum.fixed ray.any ray.centred lemma_45.centred lemma_33_half lemma_33_three "
        "lemma_33_half_euclidean lemma_33_three_euclidean lemma_33_sharp lemma_33_squared_quarter",
        "lemma_45.any lemma_33 lemma_33.eps ray.standard",
    ),
}


@pytest.mark.parametrize("page", SIDES)
def test_right_formulas_and_bounds_hold_and_wrong_ones_do_not(page):
    found, (right, wrong, hold, fail) = ran(page)[0]["found"], (names.split() for names in SIDES[page])
    assert [name for name in right if max(found.worst(f"error.{name}")) > 1e-9] == []
    assert [name for name in wrong if max(found.worst(f"error.{name}")) < 1e-3] == []
    assert [name for name in hold if sum(found.violated(f"margin.{name}"))] == []
    assert [name for name in fail if not sum(found.violated(f"margin.{name}"))] == []


#: Page -> errors and counts that are 0 for every seed but for rounding, and what is not 0 for all.
COUNTS = {
    "decoupling/least-squares": (
        "linear_violations.direction linear_violations.gradient_descent rayleigh_violations.corrected "
        "not_convex.corrected error.variance error.reparametrisation error.length_induced "
        "error.objective_corrected error.reparametrised_corrected error.best_length",
        "error.objective_printed error.reparametrised_printed rayleigh_violations.printed "
        "rayleigh_violations.charitable not_convex.printed linear_trials.direction",
    ),
    "decoupling/halfspaces": (
        "off_line.one_turn violations.gap_corrected violations.direction_corrected violations.length_corrected "
        "violations.combined_corrected gradient_error pythagoras_error step_difference.corrected",
        "step_difference.printed found.one_turn off_line.ripple violations.gap_printed violations.direction_printed "
        "violations.length_printed violations.combined_printed",
    ),
    "decoupling/neural-networks": (
        "violations.corrected points.regular_off_line unit_points.off_line_lined pythagoras_error",
        "violations.printed trials.corrected off_line_count.logistic points.regular_found unit_points.found_lined",
    ),
}


@pytest.mark.parametrize("page", COUNTS)
def test_corrected_bounds_are_not_violated_and_printed_ones_are(page):
    recorded, (never, some) = ran(page)[1], (names.split() for names in COUNTS[page])
    largest = {name: np.abs(values).max() for name, values in recorded.items() if values.size}
    assert [name for name in never if largest[name] > 1e-8] == []
    assert [name for name in some if largest[name] < 1e-3] == []


def test_the_noise_is_as_large_and_moves_a_unit_as_far_as_its_uniforms_and_its_blurs_say():
    """By sums over even grids of μ and σ in place of formulas and of random draws."""
    recorded = ran("santurkar/noisy-batch-norm", until="train_all(arms")[1]
    u = (np.arange(40) + 0.5) / 40
    mu, sigma = u - 0.5, 1 + 0.25 * u
    blur = 0.1**2 / 3  # of the shift, uniform over 0.2; that of the factor is Gaussian of 0.1
    sizes = {"m_mean": mu.mean(), "m_variance": mu.var() + blur, "m_size_of_unit": abs(mu).mean()}
    sizes |= {"s_mean": sigma.mean(), "s_variance": sigma.var() + 0.01}
    for name, size in sizes.items():
        assert recorded[f"closed.{name}"] == pytest.approx([size], rel=0.01)
        assert len(recorded[f"drawn.{name}"]) == 10
        assert recorded[f"drawn.{name}"].mean() == pytest.approx(size, rel=0.02, abs=0.01)
    torch.manual_seed(0)
    algorithm = page_cells.functions("santurkar/noisy-batch-norm")["algorithm_1"]
    m = torch.stack([algorithm(torch.zeros(32, 16)) for _ in range(400)]).numpy()  # the shift alone
    s = torch.stack([algorithm(torch.full((32, 16), 1e4)) for _ in range(400)]).numpy() / 1e4
    shown = {"m_mean": m.mean(), "m_variance": m.var(), "m_size_of_unit": abs(m.mean(1)).mean()}
    for name, value in (shown | {"s_mean": s.mean(), "s_variance": s.var()}).items():
        assert value == pytest.approx(sizes[name], rel=0.03, abs=0.01)
    v = (sigma**2 + 0.01 + blur)[:, None]
    apart = (u[:, None] - u)[..., None, None]
    mean = (abs(apart) / np.sqrt((v + v.T) / 2 + apart**2 / 4)).mean()
    assert recorded["noise_alone.mean_change"] == pytest.approx([mean], rel=0.01)
    variance = (2 * abs(v - v.T) / (v + v.T)).mean()
    assert recorded["noise_alone.variance_change"] == pytest.approx([variance], rel=0.01)


def test_one_pass_stalls_and_more_passes_go_on():
    """After one pass the gradient hardly depends on the steps for each unit; further passes make it smaller."""
    _, recorded = ran("decoupling/neural-networks")
    single, many = recorded["curve.passes.single"], recorded["curve.passes.many"]
    assert single[:, 1] == pytest.approx(single[:, 0], rel=0.01) and (many[:, -1] < many[:, 0]).all()


def test_every_derivative_of_a_minimum_counts(monkeypatch):
    """∂/∂w₁, w₂, w₃, γ, β: one that is not zero makes W* no minimum."""
    names, problem = ran("theory/minima")[0], ran("theory/minima")[0]["problems"][0][0]
    for which in range(5):
        slope = lambda function, at, k=which: (3.0 * (np.arange(len(at)) == k), np.eye(len(at)))
        monkeypatch.setitem(names, "derivatives", slope)
        assert all(value > 0 for name, value in names["preserved"](problem).items() if "error" in name)
        assert (names["with_constants"](problem)["error.minimum.fixed"] > 0) == (which < 3)
