"""Chips, forest plots, the board and the pages of claims: what a reader is told is what the ledger says."""

from __future__ import annotations

import csv
import io
import re
from types import SimpleNamespace

import golden_site
import pytest
from site_rows import rows

from bookpress.claims import Claim, Source, Test, judging
from bookpress.pipeline import prose
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
    ours += " button li line link main meta nav option p path pre script section select small span strong style sub"
    assert found <= set(f"{ours} summary sup svg table td text th title tr ul br".split())
    written = golden_site.FILE.with_suffix(".py").read_text(encoding="utf-8")
    assert len(set(re.findall(r"<([a-z0-9]+)>", written)) - found) > 12


def test_a_verdict_on_nothing_is_refused():
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


def held(results):
    """A run without earlier draws."""
    return SimpleNamespace(
        results=results, counted=lambda _, __, n: (results.entries[n]["seeds"], results[n])
    )


def test_the_numbers_of_a_claim_stand_beside_their_own_seeds():
    entry = {"unit": "", "note": ""}
    results = Results({}, {"a": entry | {"values": [1.0, 2.0], "seeds": [110, 111]}})
    results.entries["b"] = entry | {"values": [5.0, 6.0], "seeds": [111, 112]}
    test = Test("difference", a="a", b="b", side="greater", threshold=0.1)
    claim = Claim("a", "part/coin", Source("x", "y", "z"), "says", "f", test)
    table = list(csv.reader(io.StringIO(claim_pages.per_seed(claim, held(results)))))
    assert table == [["seed", "a", "b"], ["110", "1", ""], ["111", "2", "5"], ["112", "", "6"]]
