"""Numbers of the deep linear network out of made-up arrays, worked out a second time."""

from __future__ import annotations

import math

import numpy as np
import page_cells
import pytest
from made_up_runs import middle

from bnbook.deep_linear import LinearArm
from bnbook.deep_linear import summaries as of

NAN, INF = math.nan, math.inf
CELLS = page_cells.functions("santurkar/deep-linear")
PROBES = (0, 2, 5, 9, 14, 22, 30, 38, 44, 50, 57, 65, 72, 80, 91, 99)
LENGTHS, RATE, SEEDS, WHOLE = (0.5, 1.0, 30.0, 31.0, 100.0), 0.01, 2, 10.0
ARM = LinearArm(steps=100, depth=3, width=2, learning_rate=RATE, probe_steps=PROBES, lengths=LENGTHS)


def made_up(seed):
    draw, shape = np.random.default_rng(seed), (SEEDS, len(PROBES))
    run = {name: draw.uniform(1, 3, (*shape, 5)) for name in ("landscape_loss", "landscape_distance")}
    run |= {name: draw.uniform(1, 3, shape) for name in ("start_loss", "start_norm")}
    run |= {name: draw.uniform(1, 5, (*shape, 2)) for name in ("random_loss", "random_distance")}
    run["shift_cosine"] = draw.uniform(-1, 1, (*shape, 4))
    run |= {name: draw.uniform(1, 3, (*shape, 4)) for name in ("shift_distance", "shift_norm")}
    run |= {name: draw.uniform(0, 1, (*shape, 3)) for name in ("correlation", "bounded")}
    run["deviation"] = draw.uniform(0.5, 1.5, (*shape, 3, 2))
    run["probe_step"] = np.tile(PROBES, (SEEDS, 1))
    run["loss"], run["loss_step"] = draw.uniform(1, 9, (SEEDS, 6)), np.tile([0.0, 4, 50, 80, 95, 100], (2, 1))
    run |= {"target_energy": np.array([[6.0, 3.0, 1.0]] * 2), "diverged_at": np.full(SEEDS, INF)}
    return run


def looked(run, s):
    """What the probes of one member show, probe by probe."""
    found = {}
    for p in range(len(PROBES)):
        names = ("landscape_loss", "landscape_distance", "start_norm")
        losses, far, norm = (run[name][s, p] for name in names)
        beta = [far[k] / (LENGTHS[k] * RATE * norm) for k in range(5)]
        cosines = run["shift_cosine"][s, p, 1:]
        now = {
            "loss_range": (max(losses[:3]) - min(losses[:3])) / WHOLE,  # up to 30 times the rate
            "gradient_change": max(far[:3]),
            "smoothness": max(beta[:3]),
            "gradient_norm": norm,
            "beyond": max(beta[3:]),
            "random_change": max(abs(run["random_loss"][s, p] - run["start_loss"][s, p])) / WHOLE,
            "shift": sum(run["shift_distance"][s, p, 1:]) / 3,
            "cosine": sum(cosines) / 3,
            "absolute_cosine": sum(abs(cosines)) / 3,
            "edge": beta[0] * RATE / 2,
        }
        for name, value in now.items():
            found.setdefault(name, []).append(value)
    return {name: np.array(values) for name, values in found.items()}


def of_arm(run):
    """What the cells make of the trainings of one arm."""
    parts = [
        CELLS[name](ARM, run) for name in ("of_loss", "plateau", "alignment", "along_gradient", "outputs")
    ]
    return {name: values for part in parts for name, values in part.items()}


def test_numbers_of_what_the_probes_saw():
    run = made_up(0)
    run["shift_cosine"][0, :3] = 0.95  # the first member is aligned at its first probes and at the 8th
    run["shift_cosine"][0, 7], run["shift_cosine"][1, 0] = 0.91, 0.89
    found = of_arm(run)
    for s in range(SEEDS):
        seen = looked(run, s)
        for name, values in seen.items():
            expected = middle(values, 0, 99, name in ("cosine", "absolute_cosine"), PROBES)
            assert found[name][s] == pytest.approx(expected), name
        sigma = run["deviation"][s]
        shares = {"aligned_share": seen["cosine"] > 0.9, "sigma": sigma, "sigma_above_one": sigma > 1.0}
        for name, values in (shares | {name: run[name][s] for name in ("correlation", "bounded")}).items():
            means = np.array([np.mean(row) for row in values])
            assert found[name][s] == pytest.approx(middle(means, 0, 99, True, PROBES)), name
        assert found["sigma_last"][s] == pytest.approx(sum(sigma[-1, -1]) / 2)
    assert found["aligned_until"].tolist() == [9, 0]


def test_a_member_that_dies_is_summed_up_as_far_as_it_lived():
    made = made_up(1)
    made["shift_cosine"][:] = 0.95
    for name in ("shift_cosine", "deviation", "start_loss", "start_norm"):
        made[name][0, 3:] = NAN
    found = of_arm(made)
    assert found["aligned_until"].tolist() == [INF, INF] and found["aligned_share"].tolist() == [1, 1]
    assert found["sigma_last"][0] == pytest.approx(made["deviation"][0, 2, -1].mean())
    means = made["deviation"][0, :3].mean((1, 2))  # the probes stand for 1, 2.5 and 3.5 steps
    assert found["sigma"][0] == pytest.approx((means[0] + 2.5 * means[1] + 3.5 * means[2]) / 7)
    made["landscape_loss"][1, 0, 1] = made["landscape_distance"][1, 0, 0] = NAN  # overflowed on the way
    made["landscape_loss"][0, 3] = NAN
    seen = of.landscape(ARM, made)
    for name in ("loss_range", "smoothness", "local"):
        assert np.isinf(seen[name][1, 0]) and np.isnan(seen[name][0, 3]), name


def test_what_is_left_of_the_loss_and_where_it_stays():
    """Tails 10, 4 and 1 of the energies: 4.19 is within 5 % of 4 and 4.21 is not, as 0.951 and 0.949 of 1; 2 is, by
    the ratio, in the middle of 4 and 1."""
    near_two = ((2.01, 1, 0), (1.99, 2, 0), (NAN, NAN, 0))
    for final, rank, near in (*near_two, (4.19, 1, 1), (4.21, 1, 0), (0.951, 2, 1), (0.949, 2, 0)):
        made = made_up(2)
        made["loss"][:, -1] = final
        found = of_arm(made)
        assert (found["plateau_rank"][0], found["plateau_near"][0]) == pytest.approx(
            (rank, near), nan_ok=True
        )
        assert found["final_loss"][0] == pytest.approx(1 if np.isnan(final) else final / 10)
    steps, log = made["loss_step"][0], np.log(made["loss"][0] / 10)
    area = sum((log[k] + log[k + 1]) / 2 * (steps[k + 1] - steps[k]) for k in range(5))
    assert found["mean_loss"][0] == pytest.approx(math.exp(area / 100))
    made["loss"][:, 3] = [1.0, 5.0]  # at 80, the last before 90; what lies at 95 does not count
    made["loss"][:, -1] = [0.991, 4.94]
    assert of.settled(ARM, made).tolist() == [1, 0]  # 0.9 % and 1.2 %
    assert of.settled(ARM, made | {"diverged_at": np.array([INF, 7.0])}).tolist() == [1, 0]
    at_90 = made | {"loss_step": np.tile([0.0, 4, 50, 80, 90, 100], (2, 1))}
    at_90["loss"] = np.array([[9, 9, 9, 9, 2.0, 1.981], [9, 9, 9, 2.0, 1.97, 1.96]])
    assert of.settled(ARM, at_90).tolist() == [1, 1]  # 0.95 % and 0.5 % from step 90 on


def test_two_arms_over_all_steps_the_first_tenth_and_the_second_half():
    pair = made_up(3), made_up(4)
    pair[0]["loss"][:] = [[1, 3, 1, 3, 3, 3], [3, 3, 3, 3, 3, 1]]
    pair[1]["loss"][:] = 2
    arms = [(ARM, run) for run in pair]
    found = CELLS["against"](*arms)
    assert CELLS["lower_from"](*arms).tolist() == [80, INF]
    windows = {"all": (0, 99), "early": (0, 10), "late": (50, 99)}
    for s in range(SEEDS):
        one, other = (looked(run, s) for run in pair)
        for name in ("loss_range", "gradient_change", "smoothness", "gradient_norm"):
            holds = one[name] > other[name]
            share = middle(holds.astype(float), 0, 99, True, PROBES)
            assert found[f"smoother_share.{name}"][s] == pytest.approx(share)
            wrong = [k for k in range(len(PROBES)) if not holds[k]][-1]
            since = PROBES[wrong + 1] if wrong + 1 < len(PROBES) else INF
            assert found[f"smoother_from.{name}"][s] == since
            for part, (low, high) in windows.items():
                middles = [middle(each[name], low, high, False, PROBES) for each in (one, other)]
                ratio = middles[0] / middles[1]
                assert found[f"{name}_ratio_{part}"][s] == pytest.approx(ratio), f"{name} {part}"


RATES = (1e-7, 1e-6, 1e-5)
TAGS = ("lr1e_07", "lr1e_06", "lr1e_05")
#: Share of the loss of answering zero that is left at the end, by rate, two seeds each; NAN: it diverged.
LEFT = {
    "none": ((0.9, 0.8), (0.40, 0.49), (0.30, NAN)),
    "batch": ((0.51, 0.6), (0.2, 0.8), (0.1, 0.2)),
    "l2": ((0.3, 0.3), (0.1, 0.8), (0.4, 0.4)),
}


def member(shares):
    """A training whose target has the energies 6, 3 and 1: 10, 4 and 1 are its plateaus."""
    loss = np.array([[10.0, 10.0 * share] for share in shares])
    died = np.where(np.isnan(loss[:, -1]), 7.0, INF)
    run = {"loss": loss, "loss_step": np.tile([0.0, 100.0], (len(loss), 1)), "diverged_at": died}
    run |= {"target_energy": np.array([[6.0, 3.0, 1.0]] * len(loss))}
    run["residual_energy"] = np.array([[3.0, 3.0, 0.1]] * len(loss))
    return LinearArm(steps=100), run


def of_scan(seeds):
    """What the cells make of the scan: numbers of a norm, and the share of all that end on a plateau."""
    runs = {f"{tag}.{norm}": member(left) for norm, by in LEFT.items() for tag, left in zip(TAGS, by)}
    names = page_cells.functions("santurkar/deep-linear", runs=runs, rates=RATES, seeds=seeds, pairs=TAGS)
    found = {f"{name}.{norm}": each for norm in LEFT for name, each in names["of_scan"](norm).items()}
    near = page_cells.cell("santurkar/deep-linear", "def plateau(", **names)["on_one"]
    return found | {"plateau_near_all": np.mean(near)}


def test_the_scan_s_numbers():
    found = {name: values.tolist() for name, values in of_scan(2).items()}
    # √(0.4 · 0.49) = 0.44 is below √(0.3 · 1) = 0.55, for who diverges answers zero; √(0.1 · 0.2) = 0.14
    assert (found["best_rate.none"], found["best_rate.batch"], found["best_rate.l2"]) == (
        [1e-6],
        [1e-5],
        [1e-6],  # √(0.1 · 0.8) = 0.28 is below 0.3, the mean above it
    )
    assert found["final_loss.best.none"] == found["final_loss.scan.none"] == pytest.approx([0.40, 0.49])
    assert found["best_other_loss.none"] == pytest.approx([0.3, 1])  # not the paper's own rate
    assert found["final_loss.best.batch"] == found["best_other_loss.batch"] == pytest.approx([0.1, 0.2])
    assert found["final_loss.scan.batch"] == pytest.approx([0.2, 0.8])
    assert found["useful_rates.none"] == [2, 1] and found["useful_rates.batch"] == [2, 1]
    assert found["largest_stable.none"] == [1e-5, 1e-6] and found["largest_stable.batch"] == [1e-5, 1e-5]
    # on a plateau, 1, 0.4 or 0.1 of the loss: 0.40 without, 0.1 with, of six and six; l2 is not asked
    assert found["plateau_near_all"] == pytest.approx(2 / 12)

    found = of_scan(1)  # of the first seed alone
    assert found["best_rate.none"].tolist() == [1e-5] and found["final_loss.best.none"].tolist() == [0.3]
    assert found["plateau_near_all"] == pytest.approx(2 / 6)
