"""Chips, forest plots, the board and the pages of claims: what a reader is told is what the ledger says."""

from __future__ import annotations

import csv
import io
import re
from types import SimpleNamespace
from xml.etree import ElementTree

import golden_site
import numpy as np
import pytest
from site_rows import row, rows

from bookpress.claims import Claim, Source, Test, judging
from bookpress.pipeline import prose
from bookpress.pipeline.prose import Pages
from bookpress.results import Results
from bookpress.site import board, claim_pages, front, rendering

found, place = (rendering.macro("claim.html.j2", name) for name in ("found", "place"))


def test_what_is_shown_of_made_up_claims_is_what_the_golden_file_has():
    assert golden_site.text() == golden_site.FILE.read_text(encoding="utf-8"), (
        "python tests/golden_site.py writes it anew"
    )


def test_nothing_that_a_claim_or_a_run_says_becomes_html():
    """Their words in golden_site.py are full of <tags> of their own."""
    found = set(re.findall(r"</?([a-z0-9]+)", golden_site.text()))
    ours = "a abbr article body circle code dd details div dl dt em figcaption figure form h1 h2 head html img input label"
    ours += " button dfn li line link main meta nav option p path pre script section select small span strong style sub"
    assert found <= set(f"{ours} summary sup svg table td text th title tr ul br".split())
    written = golden_site.FILE.with_suffix(".py").read_text(encoding="utf-8")
    assert len(set(re.findall(r"<([a-z0-9]+)>", written)) - found) > 12


def test_what_is_not_counted_is_refused():
    with pytest.raises(ValueError, match="nothing is counted"):
        front.tally(rows(), "statement.hold")
    (token,) = prose.tokens("{{ verdict:a-b }}")
    with pytest.raises(ValueError, match="no chapter has a claim 'a-b'"):
        board.inlined({}, "")(token)


def test_every_verdict_has_a_look_a_glyph_and_a_word_of_its_own():
    names = [name for name in dir(judging) if name.isupper() and isinstance(getattr(judging, name), str)]
    names = set(names) - {"SEEN", "DIVERGED"}  # why a draw is left out, and what a number did
    assert {getattr(judging, name) for name in names} <= set(rendering.LOOKS)
    seen = [(kind, glyph) for kind, glyph, _ in rendering.LOOKS.values()]
    pairs = {verdict: seen.count(rendering.LOOKS[verdict][:2]) for verdict in rendering.LOOKS}
    same = {verdict for verdict, number in pairs.items() if number > 1}
    assert same == {"reproduced", "holds", "wrong", "not reproduced", "not tested at this scale", "not run"}


@pytest.mark.parametrize(
    ("test", "expected"),
    [
        ({"kind": "difference", "a": "x", "b": "y", "side": "greater", "threshold": 0.1}, (0.1, None)),
        ({"kind": "ratio", "a": "x", "b": "y", "side": "less", "threshold": 2.0}, (None, 2.0)),
        ({"kind": "equivalence", "a": "x", "b": "y", "margin": 0.03}, (-0.03, 0.03)),
        ({"kind": "rate", "a": "x", "expected": -0.5, "tolerance": 0.05}, (-0.55, -0.45)),
        ({"kind": "agreement", "a": "x", "b": "y", "tolerance": 0.1}, (-0.1, 0.1)),
        ({"kind": "ordering", "results": ["a", "b"]}, (0.0, None)),
        ({"kind": "sign", "a": "x", "b": "y", "side": "greater"}, (0.5, None)),
    ],
)
def test_a_forest_plot_knows_where_each_kind_of_test_holds(test, expected):
    found = board.bounds({"test": test})
    assert [None if edge is None else round(edge, 9) for edge in found] == list(expected)


def test_the_legend_counts_the_squares_and_explains_their_frames():
    made = [*rows(), row("a-rung", "open", rungs=True)]
    legend = board.waffle(made).partition("waffle-legend")[2]
    counted = [int(number) for number in re.findall(r"</span>(\d+) (?!of them)", legend)]
    assert sum(counted) == len(rows()) and "1 yes (own questions)" in legend
    assert "1 of them exploratory" in legend and "#standing=exploratory&amp;sizes=first" in legend
    trust = front.trust(made, Pages({}, []))
    assert f"of {len(rows())} claims, 1 are exploratory" in trust
    untried = re.search(r"(\d+) open, (\d+) not tested", trust)
    assert f"{untried[1]} open" in legend, "the same squares are counted"


def held(results):
    """A run without earlier draws."""
    return SimpleNamespace(results=results, quoted=lambda n: (results.entries[n]["seeds"], results[n]))


def test_the_first_pages_pictures_are_as_wide_as_their_card_and_their_letters_are_not():
    found = {"a": [1.0, 3.0], "b": [4.0]}
    evidence = SimpleNamespace(per_seed=lambda name, _: found[name])
    shown = SimpleNamespace(evidence={"part/chapter": evidence})
    block = "```{dots}\none | batch | part/chapter#a\nother | none | part/chapter#b\n```\n"
    (svg,) = ElementTree.fromstring(front.pictures(block, shown))
    assert svg.get("width") == "100%" and "viewBox" not in svg.attrib
    bars = [float(each.get("x2").rstrip("%")) for each in svg if each.get("class", "").startswith("bar")]
    dots = [float(each.get("cx").rstrip("%")) for each in svg if each.tag == "circle"]
    zero = float(svg[1].get("x1").rstrip("%"))
    assert bars[0] - zero == pytest.approx((bars[1] - zero) / 2, abs=0.02)  # means 2 and 4, from 0 on
    assert dots[-1] == bars[1] == max(dots) > 70 and bars[0] == pytest.approx(
        (dots[0] + dots[1]) / 2, abs=0.02
    )


def test_the_places_of_a_forest_plot_by_hand():
    """From 0.1 to 0.15 with 6 % of room on each side, 200 pixels; factors on a logarithmic axis."""
    test = row("a")["tests"][0]
    shown = board.plot(test | {"values": [0.11, 0.12, 0.13, 2.0]})  # one is far out: it squeezes no other
    assert 'd="M20.7 3V31"' in shown and 'd="M56.4 17H199.3"' in shown and 'cx="218.0"' in shown
    ratio = {"kind": "ratio", "a": "a", "b": "b", "side": "greater", "threshold": 1.0}
    found = {"effect": {"number": 10.0}, "interval": {"low": 5.0, "high": 100.0}, "values": [10.0]}
    assert 'class="effect" d="M110.0 ' in board.plot(test | found | {"test": ratio})  # half of two decades
    near = {"effect": {"number": 1.5}, "interval": {"low": 1.2, "high": 2.0}, "values": [1.5]}
    assert 'class="effect" d="M110.0 ' in board.plot(test | near | {"test": ratio})  # half from 1 to 2


def test_dots_on_a_logarithmic_axis_and_logarithms_as_factors():
    found = {"a": [1.0, 4.0], "b": [4.0], "c": [1.0, 1.0]}
    evidence = SimpleNamespace(per_seed=lambda name, _: np.array(found[name]))
    shown = SimpleNamespace(evidence={"part/chapter": evidence})
    lines = "one | batch | part/chapter#a\nother | none | part/chapter#b\n"
    text = front.pictures(f"```{{dots}} log\n{lines}```\n", shown)
    (svg,) = ElementTree.fromstring(text)
    assert not [each for each in svg if each.get("class", "").startswith("bar")]  # a bar would start at zero
    dots = [float(each.get("cx").rstrip("%")) for each in svg if each.tag == "circle"]
    ticks = {each.text: float(each.get("x").rstrip("%")) for each in svg if each.get("class") == "at"}
    assert ticks == {"1": dots[0], "2": pytest.approx((dots[0] + dots[1]) / 2, abs=0.02)}
    assert "one: 2; other: 4. A dot a seed, logarithmic scale" in text
    powers = front.pictures("```{dots} factor\nthree | batch | part/chapter#c\n```\n", shown)
    assert "three: 10 times. A dot a seed." in powers


def test_the_numbers_of_a_claim_stand_beside_their_own_seeds():
    entry = {"unit": "", "note": ""}
    results = Results({}, {"a": entry | {"values": [1.0, 2.0], "seeds": [110, 111]}})
    results.entries["b"] = entry | {"values": [5.0, 6.0], "seeds": [111, 112]}
    test = Test("difference", a="a", b="b", side="greater", threshold=0.1)
    claim = Claim("a", "part/coin", Source("x", "y", "z"), "says", "f", test)
    table = list(csv.reader(io.StringIO(claim_pages.per_seed(claim, held(results)))))
    assert table == [["seed", "a", "b"], ["110", "1", ""], ["111", "2", "5"], ["112", "", "6"]]
