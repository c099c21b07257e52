"""The cells of the pages on theorems and the like, run: at smoke an exact page's formulas and bounds have the verdicts of
the published run, and other counts are what the corrected bounds promise."""

from __future__ import annotations

from functools import cache

import numpy as np
import page_cells
import pytest
import torch
from page_cells import run

from bnbook.claims import judge, load_claims
from bnbook.results import load
from bookpress.pipeline import chapters

ran = cache(run)
EXACT = [chapter.name for chapter in chapters.discover() if chapter.exact]
#: They want more problems than the smoke profile has.
MORE = {
    "minima-lemma-3.3-squared",
    "ols-rate-attained",
    "network-whole-converges",
    "network-falls-every-pass",
}


@pytest.mark.parametrize("page", EXACT)
def test_an_exact_pages_verdicts_are_those_of_the_book(page):
    here, there = ran(page)[1], load(page)
    for claim in load_claims():
        if claim.chapter == page and claim.id not in MORE:
            found, book = (judge(claim, results, exact=True)["verdict"] for results in (here, there))
            assert found == book, claim.id


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
