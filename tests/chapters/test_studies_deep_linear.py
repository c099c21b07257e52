"""Numbers of the chapter on the deep linear network, as its cells give them at the smoke profile."""

from __future__ import annotations

import numpy as np
import page_cells
import pytest

from bnbook.chapters import deep_linear
from bnbook.chapters.deep_linear import Trained, tag

PAGE = "santurkar/deep-linear"


@pytest.fixture(scope="module")
def page():
    """What the cells bind, and what they record: two seeds, three at the paper's rate."""
    return page_cells.run(PAGE)


def test_the_second_size_of_the_target_is_recorded_at_both_rates(page):
    names, recorded = page
    tested = (*deep_linear.UNIT, *deep_linear.UNIT_TESTED)
    for rate, measures in {"lr1e_07": deep_linear.UNIT, "lr1e_06": tested}.items():
        for norm in deep_linear.PAIR:
            arm = f"{rate}.unit.{norm}"
            assert {name.removesuffix(f".{arm}") for name in recorded if name.endswith(arm)} == set(measures)
            run, other = (names["runs"][each].run for each in (arm, f"{rate}.{norm}"))
            count = len(run["target_energy"])
            assert np.isclose(run["target_energy"], other["target_energy"][:count] / 10).all()
            cosine = {each: names["turned"][f"cosine.{each}"] for each in (arm, f"{rate}.{norm}")}
            assert (cosine[arm] != cosine[f"{rate}.{norm}"][:count]).all()
            start = run["loss"][:, 0] / run["target_energy"].sum(1)
            np.testing.assert_allclose(recorded[f"final_loss.{arm}"], start, rtol=0.2)  # ten steps


def test_the_scan_compares_the_same_seeds(page):
    names, recorded = page
    scanned = [recorded[f"{name}.none"] for name in ("final_loss.scan", "best_other_loss", "useful_rates")]
    assert {len(values) for values in scanned} == {2} and len(recorded["final_loss.lr1e_06.none"]) == 3
    np.testing.assert_array_equal(recorded["final_loss.scan.none"], recorded["final_loss.lr1e_06.none"][:2])
    final = {rate: names["found"][f"final_loss.{tag(rate)}.none"][:2] for rate in names["rates"]}
    assert recorded["best_rate.none"] == min(final, key=lambda rate: np.log(final[rate]).mean()) != 1e-7
    assert "correlation.lr1e_06.none" in recorded and "correlation.lr1e_07.none" in recorded
    assert "edge.lr1e_04.none" not in recorded and "loss_range.lr1e_04.none" in recorded
    assert "mean_loss.lr1e_09.none" not in recorded and "final_loss.lr1e_09.none" in recorded
    assert "cosine.lr1e_06.batch.last" in recorded and "cosine.lr1e_06.none.depth2" not in recorded
    assert "largest_stable.none.normal" in recorded
    assert {name for name in recorded if name.endswith(".l2") and "curve" not in name} == {"best_rate.l2"}


def test_all_that_the_verdicts_by_rate_read_is_recorded(page):
    """The claims that name other rates have no row; of the others every number is there, at all four rates."""
    fig = deep_linear.verdicts(page[1])
    rows, marks = fig.axes[0].get_yticklabels(), [text.get_text() for text in fig.axes[0].texts]
    assert len(rows) == 16 and len(marks) == 4 * 16 and set(marks) <= {"+", "−", "±", "∓", "?", ""}


def test_two_networks_that_overflow_have_no_ratio_and_warn_of_nothing(page):
    plain = page[0]["runs"]["lr1e_06.none"]
    lost = dict(plain.run) | {"landscape_loss": np.full_like(plain.run["landscape_loss"], np.inf)}
    with np.errstate(all="raise"):
        found = page[0]["against"](*[Trained(plain.arm, lost)] * 2)
    assert np.isnan(found["loss_range_ratio_all"]).all() and (found["gradient_norm_ratio_all"] == 1).all()
