"""Numbers of the chapter on division by other norms."""

from __future__ import annotations

import numpy as np
import pytest

from bnbook.chapters import lp_norms, shared
from bnbook.deep_linear import probed_arm, train_stack


def test_the_linear_network_between_even_parts_of_its_training():
    arm = probed_arm("l1", 1e-6, steps=20, depth=3, examples=30)
    run = train_stack([(arm, 0), (arm, 1)])
    found = lp_norms.linear_numbers(arm, run)
    np.testing.assert_allclose(found["log_smoothness"], np.log(found["smoothness"]))
    still = dict(run) | {f"handed_on_{n}": 0 * run[f"handed_on_{n}"] + 1 for n in ("mean", "deviation")}
    assert (lp_norms.linear_numbers(arm, still)["mean_change"] == 0).all() and (
        found["mean_change"] > 0
    ).all()
    assert lp_norms.moved(arm, run).shape[:2] == (2, 2)
    lost = dict(run) | {"handed_on_deviation": np.full_like(run["handed_on_deviation"], np.inf)}
    with np.errstate(all="raise"):
        assert np.isnan(lp_norms.linear_numbers(arm, lost)["variance_change"]).all()
    better = dict(run) | {"landscape_distance": run["landscape_distance"] / 2}
    assert (lp_norms.smoother((arm, run), (arm, better)) == 1).all()
    np.testing.assert_allclose(lp_norms.lived([[1, np.nan, 3], [np.nan] * 3]), [2, np.nan])


def test_bands_bear_what_figures_meet():
    values = np.array([[1.0, 4.0, 0.0], [4.0, 4.0, 1.0], [2.0, np.inf, 1.0]])
    low, middle, high = shared.geometric(values)[0]
    assert middle[0] == pytest.approx(2) and low[0] < 2 < high[0] and np.isnan(middle[1:]).all()
    low, middle, high = shared.arithmetic(values[:, :1])[0]
    assert middle == pytest.approx(7 / 3) and middle - low == pytest.approx(high - middle)
    room = shared.LARGEST * (shared.LARGEST / 1e-30) ** 0.05  # a logarithmic axis has a margin of a twentieth
    assert np.isfinite(room) and shared.quartiles([[np.inf], [1e250]])[0, 1] == shared.LARGEST
    values[:, 2] = np.nan
    np.testing.assert_allclose(shared.quartiles(values)[0, 1], [2, 4, np.nan])
