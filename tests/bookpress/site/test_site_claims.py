"""Chips, forest plots, the board and the rows of claims: what a reader is told is what the ledger says."""

from __future__ import annotations

import re
from types import SimpleNamespace

import golden_site
import pytest

from bookpress.claims import judging
from bookpress.pipeline import prose
from bookpress.site import exports, verdicts

found, place = (verdicts.macro("claim.html.j2", name) for name in ("found", "place"))


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


@pytest.mark.parametrize(("name", "of"), [("parts", "b: "), ("corrected", ""), ("ours", "")])
def test_in_a_terminal_too_an_effect_says_which_part_it_is_of(name, of):
    row = golden_site.ODD[name]
    claim = SimpleNamespace(id=name, chapter="part/coin", says="So.")
    pages = SimpleNamespace(claims=[claim], judgement=lambda _: row, evidence={"part/coin": None})
    said = f"reproduced: {of}13 points higher with batch norm (95 % interval 11 to 15)"
    assert exports.as_text(pages, ["part/coin"]) == f"{name}\n    So.\n    {said}\n"


def test_a_verdict_on_nothing_is_refused():
    (token,) = prose.tokens("{{ verdict:a-b }}")
    with pytest.raises(ValueError, match="no chapter has a claim 'a-b'"):
        verdicts.inlined({}, "")(token)


def test_every_verdict_has_a_look_a_glyph_and_a_word_of_its_own():
    names = [name for name in dir(judging) if name.isupper() and isinstance(getattr(judging, name), str)]
    names = set(names) - {"SEEN", "DIVERGED"}  # why a draw is left out, and what a number did
    assert {getattr(judging, name) for name in names} <= set(verdicts.LOOKS)
    seen = [(kind, glyph) for kind, glyph, _ in verdicts.LOOKS.values()]
    pairs = {verdict: seen.count(verdicts.LOOKS[verdict][:2]) for verdict in verdicts.LOOKS}
    same = {verdict for verdict, number in pairs.items() if number > 1}
    assert same == {"reproduced", "holds", "wrong", "not reproduced", "not tested at this scale", "not run"}
