"""Numbers of the chapter on the deep linear network, on small trainings and made-up arrays."""

from __future__ import annotations

import numpy as np
import pytest

from bnbook.chapters import deep_linear
from bnbook.chapters.deep_linear import Trained, tag
from bnbook.deep_linear import target, train_stack

SIZE = dict(steps=10, depth=3, examples=30)
RATES = (1e-7, 1e-6, 1e-4)


@pytest.fixture(scope="module")
def runs():
    """All arms of a small scan from two seeds, at the paper's rate from three."""
    every = [(2, deep_linear.scan(RATES, **SIZE)), (3, deep_linear.at_paper(**SIZE))]
    every += [(2, deep_linear.coarse([1e-6], **SIZE)), (2, deep_linear.others([1e-6], [2], **SIZE))]
    found = {
        name: Trained(arm, train_stack([(arm, seed) for seed in range(count)]))
        for count, wanted in every
        for name, arm in wanted.items()
    }
    units = deep_linear.unit_target([1e-7, 1e-6], **SIZE)
    return found | {
        name: Trained(arm, target.start([(arm, 0), (arm, 1)]).to_the_end()) for name, arm in units.items()
    }


def test_arms_are_named_as_their_results(runs):
    assert tag(1e-6) == "lr1e_06" and runs["lr1e_06.batch"].arm.learning_rate == 1e-6
    assert runs["lr1e_06.batch.last"].arm.normalize_last and not runs["lr1e_06.batch.fixed"].arm.affine
    assert runs["lr1e_06.none.normal"].arm.init == "glorot-normal"
    assert runs["lr1e_06.none.depth2"].arm.depth == 2 and runs["lr1e_09.none"].arm.probe_steps == ()
    assert [len(runs[f"lr{rate}.none"].run["loss"]) for rate in ("1e_06", "1e_07")] == [3, 2]


def test_the_second_size_of_the_target_is_shown_at_both_rates(runs):
    shown = deep_linear.shown(deep_linear.all_numbers(runs, RATES, 2))
    for rate, measures in {
        "lr1e_07": deep_linear.UNIT,
        "lr1e_06": (*deep_linear.UNIT, *deep_linear.UNIT_TESTED),
    }.items():
        for norm in deep_linear.PAIR:
            arm = f"{rate}.unit.{norm}"
            assert {name.removesuffix(f".{arm}") for name in shown if name.endswith(arm)} == set(measures)
            run, other = runs[arm].run, runs[f"{rate}.{norm}"].run
            tenth = np.isclose(run["target_energy"], other["target_energy"][:2] / 10)
            assert (
                tenth.all()
                and (shown[f"cosine.{arm}"] != deep_linear.of_arm(runs[f"{rate}.{norm}"])["cosine"][:2]).all()
            )
            start = run["loss"][:, 0] / run["target_energy"].sum(1)
            np.testing.assert_allclose(shown[f"final_loss.{arm}"], start, rtol=0.2)  # ten steps


def test_the_scan_compares_the_same_seeds(runs):
    found = deep_linear.all_numbers(runs, RATES, 2)
    scanned = [found[f"{name}.none"] for name in ("final_loss.scan", "best_other_loss", "useful_rates")]
    assert {len(values) for values in scanned} == {2} and len(found["final_loss.lr1e_06.none"]) == 3
    np.testing.assert_array_equal(found["final_loss.scan.none"], found["final_loss.lr1e_06.none"][:2])
    means = {rate: np.log(found[f"final_loss.{tag(rate)}.none"][:2]).mean() for rate in RATES}
    assert found["best_rate.none"] == min(means, key=means.get) != 1e-7
    shown = deep_linear.shown(found)
    assert "correlation.lr1e_06.none" in shown and "correlation.lr1e_07.none" in shown
    assert "loss_range.lr1e_04.none" not in shown and "final_loss.lr1e_04.none" in shown
    assert "cosine.lr1e_06.batch.last" in shown and "cosine.lr1e_06.none.depth2" not in shown


def test_two_networks_that_overflow_have_no_ratio_and_warn_of_nothing(runs):
    plain = runs["lr1e_06.none"]
    lost = dict(plain.run) | {"landscape_loss": np.full_like(plain.run["landscape_loss"], np.inf)}
    with np.errstate(all="raise"):
        found = deep_linear.of_pair(*[Trained(plain.arm, lost)] * 2)
    assert np.isnan(found["loss_range_ratio_all"]).all() and (found["gradient_norm_ratio_all"] == 1).all()
