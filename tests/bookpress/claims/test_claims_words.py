"""Numbers and words of claims: digits that tell, and effects that agree with their demands (the golden lines of
test_claims_verdicts have how each is said)."""

from __future__ import annotations

import math
import re

import pytest

from bookpress.claims import format_number, load_claims
from bookpress.claims.words import alike, spelled, telling


@pytest.mark.parametrize(
    ("low", "high", "edges", "shown"),
    [
        (1.20945, 1.21061, (), "1.2094 to 1.2106"),
        (1.07037, 1.09531, (1.1,), "1.07 to 1.095"),
        (-0.0002, 0.0011, (), "−0.0002 to 0.0011"),
        (916.0, 999.6, (), "916 to 1,000"),
        (3.58, 5.7, (4.0,), "3.58 to 5.7"),
        (0.5, 0.5, (), "0.5 to 0.5"),
        (-math.inf, 0.5, (), "−∞ to 0.5"),
    ],
)
def test_ends_are_told_apart_and_from_the_threshold(low, high, edges, shown):
    spec = telling(low, high, ".3g", edges)
    assert f"{format_number(low, spec)} to {format_number(high, spec)}" == shown


def test_every_demand_and_its_effect_agree_with_the_verdict(book_rows):
    """What is decided reads as decided: the number beside "more than" and "less than" lies on the side that
    the verdict says, where both are in the same words."""
    seen = 0
    for row in book_rows:
        for test in row["tests"]:
            asked = re.fullmatch(r"(more|less) than ([\d.,]+)( .*)", test["asks"])
            shown = re.fullmatch(r"(−?[\d.,]+)( .*)", test["effect"]["words"])
            if test["holds"] is None or not asked or not shown or asked[3] != shown[2]:
                continue
            number, bound = (float(text.replace(",", "").replace("−", "-")) for text in (shown[1], asked[2]))
            assert ((number > bound) == (asked[1] == "more")) == test["holds"], (row["id"], test["asks"])
            seen += 1
    assert seen > 100


def test_no_claim_shows_a_bare_logarithm():
    """A result whose name says that it is a logarithm is shown as the factor that it stands for."""
    seen = 0
    for claim in load_claims():
        shown = [part.effect or claim.effect for part in claim.parts] or [claim.effect]
        for test, effect in zip(claim.tests, shown, strict=False):
            if any("log_" in name or "_log" in name or "offset" in name for name in test.result_names()):
                seen += 1
                assert effect and effect.unit in ("log", "log10"), claim.id
    assert seen >= 40


def test_numbers_that_are_read_together_have_as_many_places():
    assert alike((1.085, 1.07, 1.1)) == ["1.08", "1.07", "1.10"]
    assert alike((5, 0.95, 12.3)) == ["5.00", "0.95", "12.3"], "no digit that was rounded away"
    assert alike((13, 13.04, 14.6)) == ["13.0", "13.0", "14.6"]
    assert alike((0.5, 0, 1)) == ["0.5", "0", "1.0"] and alike((2, 1, 3)) == ["2", "1", "3"]
    assert alike((2e7, 1.5, 3)) == ["2·10⁷", "1.5", "3"] and alike((1e7, 1.5))[0] == "10⁷"
    assert alike((1e-7, 0.25)) == ["10⁻⁷", "0.25"] and alike((0.1, 0.25), ".1%") == ["10.0 %", "25.0 %"]


#: Value, format, text.
NUMBERS = [
    (-0.5, ".2f", "−0.50"), (0.123, ".1%", "12.3 %"), (3.2e-12, ".1e", "3.2·10⁻¹²"), (math.nan, ".1f", "not finite"),
    (1.5e8, ".2g", "1.5·10⁸"), (98669.0, ".0f", "98,669"), (999.6, ".3g", "1,000"), (-1234.5, ".2g", "−1,200"),
    (-0.0002, ".3f", "0.000"), (2.4, ".1e", "2.4"), (449.2, ".1e", "450"), (0.0123, ".1e", "0.012"),
    (0.00123, ".1e", "1.2·10⁻³"),
]  # fmt: skip


@pytest.mark.parametrize(("value", "spec", "text"), NUMBERS)
def test_numbers_as_text(value, spec, text):
    assert format_number(value, spec) == text


def test_locked_wording_is_shown_as_chapters_have_it():
    assert spelled("l1 and l-infinity, lp-vgg") == "ℓ1 and ℓ∞, lp-vgg"
    assert spelled("within 0.15 decades on average") == "within a factor of 1.41 on average"
    assert (
        spelled("a layer's rate of 1e-6, 3.5e-5 or 0.1, 70%")
        == "a layer’s rate of 10⁻⁶, 3.5·10⁻⁵ or 0.1, 70 %"
    )
    assert spelled("0.3 decades below it, ± 0.15") == "0.3 decades below it, ± 0.15"
