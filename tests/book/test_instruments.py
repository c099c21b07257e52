"""Instruments: every measured claim rests on one, one command lists their claims, pages say what is known."""

from __future__ import annotations

from dataclasses import replace

import yaml
from site_rows import row

from bookpress import claims
from bookpress.claims import Claim, Source, Test
from bookpress.cli import main
from bookpress.site import claim_pages, pages

ONE = dict(id="beta", name="Effective β", measures="It.", own="2/η.", silent="Else.", reads=["smoothness.*"])


def read(tmp_path, **changes):
    path = tmp_path / "instruments.yml"
    path.write_text(yaml.safe_dump([ONE | changes]), encoding="utf-8")
    return claims.load_instruments(path)


def claim(result, chapter="part/coin", **changes):
    test = Test("level", a=result, side="greater", threshold=1.0)
    return Claim(
        "it", chapter, Source("santurkar2018", "v1", "Figure 1"), "It is.", "curves", test, **changes
    )


def test_every_measured_claim_of_the_book_rests_on_an_instrument_and_every_instrument_has_one():
    known, listed = claims.load_instruments(), claims.load_claims()
    assert len(known) > 30 and claims.unmeasured(listed, known) == []
    assert claims.unmeasured(listed, [one for one in known if one.id != "started"])


def test_one_command_lists_the_claims_of_an_instrument(capsys):
    assert main(["claims", "--instrument", "effective-beta"]) == 0
    listed = capsys.readouterr().out
    names = [line.split()[0] for line in listed.splitlines() if not line.startswith(" ")]
    assert {"landscape-smoothness", "scale-smoothness", "dln-smoother-beta"} < set(names)
    assert "training-faster-lr0.1" not in names and "Say" not in names
    assert main(["claims", "--instrument", "ruler"]) == 2
    assert "no instrument 'ruler'; expected one of effective-beta" in capsys.readouterr().err


def test_a_claims_page_says_what_is_known_of_its_instruments(tmp_path):
    known = read(tmp_path, line="which may be 2/η", mark="β may be 2/η")
    told = row("a", rests_on=["beta"])
    assert claim_pages.beside(told, [told], known) == (
        '<p class="claim-known">Rests on: <a href="../instruments.html#instrument-beta">Effective β</a>, '
        "which may be 2/η.</p>"
    )
    assert claim_pages.beside(row("a"), [], known) == ""
    assert claim_pages.marks(known, "../")(told) == (
        '<br><small><a href="../instruments.html#instrument-beta">β may be 2/η</a></small>'
    )
    assert (
        claim_pages.marks(known, "../")(row("a"))
        == claim_pages.marks([replace(known[0], mark="")], "")(told)
        == ""
    )


def ladder():
    """A claim at one size, and at three sizes, of which one was not tried."""
    test = row("a")["tests"][0] | {"role": "part"}
    sizes = [
        test | {"says": "An eighth.", "effect": {"words": "1.56 times as large without batch norm"}},
        test
        | {"says": "The whole.", "holds": None, "effect": {"words": "1.2 times as large without batch norm"}},
        test | {"says": "More.", "verdict": "not tested at this scale", "effect": {"words": "–"}},
    ]
    return row("a"), row("a-ladder", rungs=True, of="a", tests=sizes)


def test_a_claim_and_its_sibling_on_the_ladder_lead_to_each_other():
    own, wide = ladder()
    there = claim_pages.beside(own, [own, wide], [])
    assert '<a href="a-ladder.html">At other sizes</a>, times as large without batch norm: ' in there
    assert "An eighth: 1.56</span>" in there and "The whole: 1.2</span>" in there and "More" not in there
    assert there.count('class="chip true"') == 1 and there.count('class="chip open"') == 1
    back = claim_pages.beside(wide, [own, wide], [])
    assert "At one size, in its own chapter: " in back and 'href="../claims/a.html"' in back
    several = claim_pages.beside(own, [own, wide, wide | {"id": "b"}], [])
    assert several.count("At other sizes</a> (") == 2 and "<details>" not in several
    many = claim_pages.beside(own, [own, wide, wide | {"id": "b"}, wide | {"id": "c"}], [])
    assert many.startswith("<details><summary>At other sizes</summary>") and many.count("<p ") == 3


def test_the_page_has_an_anchor_the_text_and_the_claims_of_each_instrument(tmp_path):
    class Shown:
        rows = {"a": row("a", rests_on=["beta"], says="It is; we read, so."), "b": row("b")}
        evidence = {}
        claims = []

    text = pages.instruments(read(tmp_path), Shown())
    assert "(instrument-beta)=\n## Effective β" in text and "**Values of its own.** 2/η." in text
    assert (
        "Claims that rest on `beta`: 1\n" in text and "</a> It is\n" in text and "claims/b.html" not in text
    )
