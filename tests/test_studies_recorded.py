"""The studies' random trials against numbers recorded once: nothing that they draw or compare has moved.

What the numbers should be is tested elsewhere, by other means; here every one of them is looked at.
"""

from __future__ import annotations

import json

import pytest
from studies_recorded import CASES, PATH

RECORDED = json.loads(PATH.read_text())


@pytest.mark.parametrize("case", CASES)
def test_trials_give_what_they_gave(case):
    found = CASES[case]()
    assert set(found) == set(RECORDED[case])
    for name, numbers in RECORDED[case].items():
        assert found[name] == pytest.approx(numbers, rel=1e-5, abs=1e-8), name
