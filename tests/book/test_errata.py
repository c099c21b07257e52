"""What is said of the sources: errata, the lists of their sentences, and the command that lists an instrument's claims."""

from __future__ import annotations

import pytest
import yaml
from conftest import bnbook

from bnbook.errors import BnbookError
from bookpress import claims
from bookpress.claims import load_coverage, load_errata
from bookpress.cli import main
from bookpress.pipeline import chapter_runs, chapters, gate, prose
from bookpress.site import check, pages

EDGE = {"where": "Verse 2", "says": "It never stands.", "not_judged": "open: toss it often"}
AGAIN = {"where": "Refrain", "says": "Half, I say.", "repeats": "Verse 1"}
HALF = {"where": "Verse 1", "says": "Heads has chance $p = \\frac12$.", "claims": ["coin-fair"]}
SIDES = HALF | {"errata": ["coin-two-sides"]}
ORAL, WRITTEN = ({"source": {"key": "folklore", "version": version}} for version in ("oral", "written"))


def write(root, *sentences, of=ORAL, name="song", **more):
    folder = root / "book" / "coverage"
    folder.mkdir(exist_ok=True)
    text = yaml.safe_dump(of | {"sentences": list(sentences)} | more, allow_unicode=True)
    (folder / f"{name}.yml").write_text(text, encoding="utf-8")


def edit_erratum(root, **changes):
    path = root / "book" / "errata.yml"
    (row,) = yaml.safe_load(path.read_text(encoding="utf-8"))
    path.write_text(yaml.safe_dump([row | changes], allow_unicode=True), encoding="utf-8")


@pytest.mark.parametrize(
    "broken, where", [("errata", "erratum coin-two-sides"), ("coverage/song", "sentence Verse 1")]
)
def test_check_counts_and_reports_a_broken_file(ran, broken, where):
    write(ran, HALF, EDGE, AGAIN)
    words = ("check", "--runs", "--profile", "laptop")
    shown = bnbook(*words, root=ran).stdout
    assert "ok  1 errata" in shown and "ok  2 sentences of the sources, 1 judged" in shown
    path = ran / "book" / f"{broken}.yml"
    path.write_text(path.read_text().replace("coin-fair", "coin-unfair"))
    shown = bnbook(*words, root=ran, code=1).stdout
    assert f"{broken}.yml: {where}: there is no claim 'coin-unfair'" in shown
    assert "ok  laptop/part/coin" in shown and "locks in" in shown, "the rest is looked at, too"


def test_measured_numbers_and_sentences_in_a_row_are_filled_in(ran):
    said = "{{ n:part/coin#heads }} {{ stands:coin-fair = reproduced }} {{ stands:coin-fair = no }}"
    edit_erratum(ran, correct=f"Heads is half of {said}")
    (chapter,) = chapters.select(["coin"])
    evidence = {chapter.name: chapter_runs.fresh_run(chapter, "laptop")}
    shown = pages.errata(load_errata(), [chapter], prose.Pages(evidence, claims.load_claims()))
    assert ': Heads is half of 5\u00a0<a class="chip mark own" href="part/coin.html#claim-coin-fair"' in shown
    assert shown.count("⚠") == 1 and "⚠ now: reproduced</strong>" in shown


@pytest.mark.parametrize(
    ("kind", "condition", "refused"),
    [("wrong", "", True), ("wrong", "  condition: it is fair\n", True), ("incomplete", "", False)],
)
def test_what_the_ledger_says_holds_is_not_called_wrong(ran, monkeypatch, kind, condition, refused):
    monkeypatch.setattr(gate, "passed_run", lambda chapter: chapter_runs.fresh_run(chapter, "laptop"))
    path = ran / "book" / "part" / "coin.claims.yml"
    statement = f"- statement: true\n{condition}  id: coin-fair"
    path.write_text(path.read_text("utf-8").replace("- id: coin-fair", statement))
    edit_erratum(ran, kind=kind)
    lines, _ = check.report([], some=True)
    assert ("coin-two-sides in errata.yml: wrong is what" in "\n".join(lines)) is refused


def test_a_text_has_one_list_and_the_folder_holds_nothing_else(tiny):
    write(tiny, HALF, EDGE, AGAIN)
    write(tiny, HALF, EDGE, AGAIN, name="tune")
    with pytest.raises(BnbookError, match="the list of folklore, oral appears twice"):
        load_coverage()
    write(tiny, HALF, EDGE, AGAIN, of=WRITTEN, name="tune")
    assert [one.name for one in load_coverage()] == ["song", "tune"]
    found = claims.count_sentences(load_coverage()[:1])
    assert (found.sentences, found.judged, found.not_judged, found.open, found.repeats) == (2, 1, 1, 1, 1)
    (tiny / "book" / "coverage" / "notes.txt").touch()
    with pytest.raises(BnbookError, match="coverage/notes.txt is no list; expected NAME.yml"):
        load_coverage()


def test_a_complete_list_leads_to_every_claim_of_its_source(tiny):
    write(tiny, EDGE)
    assert claims.unfinished_sources(load_coverage()) == ["folklore"]
    for sentence, lost in ((EDGE, r"coin-fair \(everywhere\)"), (HALF, r"coin-two-sides \(On coins\)")):
        write(tiny, sentence, complete=True)
        with pytest.raises(BnbookError, match=f"no sentence leads to {lost}"):
            load_coverage()
    write(tiny, EDGE, complete=True)
    write(tiny, EDGE, of=WRITTEN, name="tune")
    assert claims.unfinished_sources(load_coverage()) == ["folklore"], "the other text is not finished"
    write(tiny, SIDES, of=WRITTEN, name="tune", complete=True)
    assert claims.unfinished_sources(load_coverage()) == [], "either text may lead to the claim"


def test_a_claim_that_no_sentence_leads_to_is_said_once_and_by_every_command_before_the_site(ran):
    write(ran, EDGE, complete=True)
    fault = "coverage/song.yml: it is complete, but no sentence leads to coin-fair"
    for words, code in ((["publish", "coin"], 0), (["check", "coin"], 0), (["check"], 1)):
        said = bnbook(*words, root=ran, code=code).stdout
        assert said.count(fault) == 1 and (f"note {fault}" in said) is (code == 0)


def test_one_command_lists_the_claims_of_an_instrument(capsys):
    assert main(["claims", "--instrument", "effective-beta"]) == 0
    listed = capsys.readouterr().out
    names = {line.split()[0] for line in listed.splitlines() if not line.startswith(" ")}
    assert {"landscape-smoothness", "scale-smoothness", "dln-smoother-beta"} < names
    assert "training-faster-lr0.1" not in names
    assert main(["claims", "--instrument", "ruler"]) == 2
    assert "no instrument 'ruler'; expected one of effective-beta" in capsys.readouterr().err
