"""What authors write in YAML - claims, errata, coverage, instruments: what is read, what is refused in which words, and
what the hash of a test covers."""

from __future__ import annotations

import pytest
import tiny_book
import yaml

from bnbook.errors import BnbookError
from bookpress.claims import load_claims, load_coverage, load_errata, load_instruments, unmeasured
from bookpress.claims.claim import Effect

TEST = {"kind": "difference", "a": "acc.batch", "b": "acc.none", "side": "greater", "threshold": 0}
GOOD = {
    "id": "faster-lr0.1",
    "source": {"key": "santurkar2018", "version": "v1", "where": "Figure 1"},
    "says": "Batch norm trains faster.",
    "figure": "curves",
    "test": TEST,
}
LEVEL = {"kind": "level", "a": "x", "expected": 1, "tolerance": 1}
PART = {"says": "p", "test": TEST}
ERRATUM = {
    "id": "coin-two-sides",
    "source": {"key": "folklore", "version": "oral", "where": "on coins"},
    "kind": "wrong",
    "printed": "Heads has chance $p = 1$.",
    "correct": "It has $p = \\frac12$.",
    "why": "Tails is a side too.",
    "claim": "coin-fair",
    "test": "tests/test_coin.py::test_toss",
}
HALF = {"where": "Verse 1", "says": "It is $\\frac12$.", "claims": ["coin-fair"], "note": "One coin."}
EDGE = {"where": "Verse 2", "says": "It never stands.", "not_judged": "open: toss it often"}
AGAIN = {"where": "Refrain", "says": "Half, I say.", "repeats": "Verse 1"}
SONG = {"source": {"key": "folklore", "version": "oral"}, "sentences": [HALF, EDGE, AGAIN]}
BETA = dict(id="beta", name="Effective β", measures="It.", own="2/η.", silent="Else.", reads=["smoothness.*"])
RUNGS = {"small": "An eighth.", "wide": "The whole."}


@pytest.fixture
def book(tiny):
    (tiny / "tests").mkdir()
    (tiny / "tests" / "test_coin.py").write_text("def test_toss():\n    def test_inner():\n        pass\n")
    (tiny / "book" / "coverage").mkdir()
    return tiny


FILES = {  # what is read -> its file and its reader
    "claims": ("book/part/coin.claims.yml", load_claims),
    "errata": ("book/errata.yml", load_errata),
    "coverage": ("book/coverage/song.yml", load_coverage),
    "instruments": ("book/instruments.yml", load_instruments),
}


def read(root, what, content):
    place, reader = FILES[what]
    text = content if isinstance(content, str) else yaml.safe_dump(content, allow_unicode=True)
    (root / place).write_text(text, encoding="utf-8")
    return reader()


def claims(*entries, **head):
    return {**head, "claims": list(entries)}


def changed(**changes):
    return tiny_book.changed(GOOD, **changes)


def song(sentence, **changes):
    return SONG | {"sentences": [tiny_book.changed(sentence, **changes)]}


def of_claim(changes, words):
    where = f"claim {changes['id']}" if "id" in changes else "claim faster-lr0.1"
    return "claims", claims(changed(**changes)), f"part/coin.claims.yml: {where}: {words}"


def of_erratum(changes, words):
    where = "number 1" if changes.get("id", "") is None else changes.get("id", "coin-two-sides")
    return "errata", [tiny_book.changed(ERRATUM, **changes)], f"errata.yml: erratum {where}: {words}"


REFUSED = [
    *(
        of_claim(changes, words)
        for changes, words in (
            (dict(test__kind="diffrence"), "test.kind is 'diffrence'; expected 'difference', 'ratio'"),
            (dict(test__threshold=True), "test.threshold is True; expected a finite number"),
            (dict(test__threshold=None), "test of kind difference lacks threshold; expected keys kind, a, b, s"),
            (dict(test__margin=0.1), "test of kind difference has unknown key margin; expected keys kind, a"),
            (dict(test__colour=1), "test has unknown key colour"),
            (dict(test__b=True), "test.b is True; expected a result's name, or a finite number"),
            (dict(test={"kind": "ordering", "results": ["x"]}), "test.results is ['x']; expected at least 2"),
            (dict(test=LEVEL | {"cells": 2.5}), "test.cells is 2.5; expected a whole"),
            (dict(test=TEST | {"kind": "ratio", "resolution": 0.1}), "test has a resolution below 1"),
            (dict(test=LEVEL | {"cells": 1}), "test.cells is 1; expected a number ≥ 2"),
            (dict(test=LEVEL | {"events": 1}), "test.events is 1; expected true or false"),
            (dict(test=LEVEL | {"events": False}), "test has events False; expected `events: true`, or nothing"),
            (dict(test=None), "it has both test and parts, or neither; expected exactly one of them"),
            (dict(parts=[]), "parts is empty; expected a list of at least one, or no such key"),
            (dict(test=None, parts=[PART]), "it has one part; expected at least two"),
            (dict(test=None, parts=[PART, {"says": "q"}]), "parts.2 lacks test; expected keys says, test"),
            (dict(combine="any"), "it has a way to combine parts and none"),
            (dict(says=""), "it has nothing behind says; expected a value, or no such key"),
            (dict(says="  "), "says is ' '; expected a line of text"),
            (dict(source__version=None), "source lacks version; expected keys key, version, where"),
            (dict(colour="red"), "it has unknown key colour; expected keys id, source"),
            (dict(ask=True), "it has unknown key ask (did you mean asks?); expected keys id, source"),
            (dict(says=None, sais="p"), "it lacks says and has sais; expected keys id, source, says"),
            (dict(test__treshold=1), "test has unknown key treshold (did you mean threshold?); expected keys kind"),
            (dict(chapter="part/other"), "it has unknown key chapter; expected none"),
            (dict(scope="width"), "scope is 'width'; expected a list"),
            (dict(effect={"less": "fewer"}), "effect has a word for less and none for more"),
            (dict(corrected=TEST), "it has a correction or condition but is no statement"),
            (dict(statement=True, correction="words"), "it has a correction that nothing tests"),
            (
                dict(statement=True, corrected=TEST, test=None, parts=[PART] * 2),
                "it has parts and a correction; expected one claim per corrected formula",
            ),
            (dict(id="Not An Id"), "id is 'Not An Id'; expected lower-case words joined by hyphens"),
            (dict(rungs=["small"]), "sizes ['small'] are unknown; expected a list of some of"),
        )
    ),
    ("claims", claims(changed(of="nobody")), "part/coin.claims.yml: claim faster-lr0.1 is of 'nobody'; expected"),
    ("claims", claims(changed(id=None)), "part/coin.claims.yml: claim number 1: it lacks id; expected"),
    ("claims", claims(GOOD, GOOD), "part/coin.claims.yml: claim faster-lr0.1 appears twice; expected"),
    ("claims", claims(GOOD, chapter="a/b"), "part/coin.claims.yml: it has unknown key chapter; expected keys"),
    ("claims", claims(GOOD, source={"where": "x"}), "part/coin.claims.yml: source.where.[key] is 'where'; expec"),
    ("claims", claims(GOOD, nonfinite="dropped"), "part/coin.claims.yml: nonfinite is 'dropped'; expected 'open'"),
    ("claims", "claims: [\n", "part/coin.claims.yml, line 2 is not YAML"),
    ("claims", "claims: {id: x}\n", "part/coin.claims.yml: claims is {'id': 'x'}; expected a list"),
    *(
        ("claims", claims(changed(**own), rungs=RUNGS), f"part/coin.claims.yml: claim faster-lr0.1: {words}")
        for own, words in (
            (dict(rungs=["narrow"]), "sizes ['narrow'] are unknown; expected a list of some of small, wide"),
            ({}, "it is judged size by size and no result has {rung}; expected `a: speed.{rung}.batch`"),
        )
    ),
    *(
        of_erratum(changes, words)
        for changes, words in (
            (dict(source__key="hearsay"), "source 'hearsay' is not in references.bib; expected one of folklore"),
            (dict(claim=None, test=None), "it has nothing that shows it; expected a claim, a test or both"),
            (dict(claim="coin-unfair"), "there is no claim 'coin-unfair'; expected the id of a claim"),
            (dict(test="tests/test_coin.py::test_tos"), "there is no test 'tests/test_coin.py::test_tos'; expec"),
            (dict(test="tests/test_coin.py::test_inner"), "there is no test"),
            (dict(correct="It has $p = \frac12$."), "correct has a backslash that YAML read as an escape"),
        )
    ),
    ("errata", [ERRATUM, ERRATUM], "errata.yml: erratum coin-two-sides appears twice"),
    (
        "errata",
        [ERRATUM | {"id": name} for name in ("theorem-4.1", "theorem-4-1")],
        "errata.yml: erratum theorem-4-1 appears twice",
    ),
    ("errata", "id: x\n", "errata.yml holds no list; expected one entry `- id: …` per erratum"),
    ("errata", '- {id: x, why: "$\\sigma$"}\n', "errata.yml, line 1 is not YAML"),
    *(
        ("coverage", content, f"coverage/song.yml{words}")
        for content, words in (
            (song(HALF, says="Chance $p."), ": sentence Verse 1: says has a formula that does not end"),
            (song(HALF, claims=["coin-unfair"]), ": sentence Verse 1: there is no claim 'coin-unfair'; expected"),
            (song(HALF, claims=["coin-fair"] * 2), ": sentence Verse 1: claims has an id twice: coin-fair, coin-f"),
            (song(HALF, claims=None, note=None), ": sentence Verse 1: it has none or several of claims (or errata)"),
            (song(HALF, not_judged="open: why"), ": sentence Verse 1: it has none or several of claims (or errat"),
            (song(EDGE, note="but"), ": sentence Verse 2: it has a note but no claims"),
            (song(EDGE, not_judged="it is hard"), ": sentence Verse 2: it has not_judged 'it is hard', which is no"),
            (song(EDGE, not_judged="open:"), ": sentence Verse 2: it has not_judged 'open:', which is no reason"),
            (song(AGAIN), ": Refrain: it repeats 'Verse 1', which is no place here"),
            (
                SONG | {"sentences": [HALF, AGAIN, AGAIN | {"where": "Coda", "repeats": "Refrain"}]},
                ": Coda: it repeats 'Refrain', which is no place here; expected a place that repeats none",
            ),
            (SONG | {"sentences": [HALF, EDGE | {"where": "Verse 1"}]}, ": the place Verse 1 appears twice"),
            (SONG | {"sentences": [HALF, EDGE | {"says": HALF["says"]}]}, f": the sentence {HALF['says']} appear"),
        )
    ),
    *(
        ("instruments", [BETA | changes], f"instruments.yml: instrument beta: {words}")
        for changes, words in (
            (dict(reads=[]), "reads is empty; expected a list of at least one"),
        )
    ),
    ("instruments", [BETA, BETA], "instruments.yml: instrument beta appears twice"),
]  # fmt: skip


@pytest.mark.parametrize("what, content, words", REFUSED, ids=[f"{row[0]}: {row[2]}" for row in REFUSED])
def test_a_mistake_is_one_line_that_names_file_entry_key_and_remedy(book, what, content, words):
    with pytest.raises(BnbookError) as caught:
        read(book, what, content)
    message = str(caught.value)
    assert message.startswith(words) and "\n" not in message
    assert "; expected " in message or "is not YAML" in message


@pytest.mark.parametrize("what", ["claims", "errata"])
def test_a_missing_file_is_one_line(book, what):
    (book / FILES[what][0]).unlink()
    reader = load_errata if what == "errata" else lambda: load_claims(book / FILES[what][0])
    name = FILES[what][0].removeprefix("book/")
    with pytest.raises(
        BnbookError, match=f"^no file {name}; expected it under {'book' if what == 'errata' else 'part'}/"
    ):
        reader()


def test_a_claim_is_read_whole(book):
    head = dict(evidence=["smoke"], statement=True, figure="f", source={"key": "k", "version": "v1"})
    more = dict(
        asks=True, decided_by="nine  seeds", scope=["width"], effect={"unit": "steps", "more": "fewer"}
    )
    own, short = changed(**more), changed(id="c2", source="Figure 2", figure=None, was="So.")
    first, second = read(book, "claims", claims(own, short, **head))
    assert (first.id, first.chapter, first.figure) == ("faster-lr0.1", "part/coin", "curves")
    assert (first.source.key, first.source.where, first.says) == ("santurkar2018", "Figure 1", GOOD["says"])
    assert first.test.keys() == TEST and first.result_names() == ("acc.batch", "acc.none")
    assert (first.asks, first.decided_by, first.scope) == (True, "nine seeds", ("width",))
    assert first.effect == Effect("steps", "fewer", "fewer") and first.evidence == ("smoke",)
    source = second.source
    assert (source.key, source.version, source.where, second.figure) == ("k", "v1", "Figure 2", "f")
    assert second.statement and second.was == "So." and not second.asks and second.scope[0] == "data"
    (alone,) = read(book, "claims", claims(changed(effect="points")))
    assert alone.evidence == ("laptop", "paper") and not alone.statement and alone.effect == Effect("points")


def test_claims_come_in_the_order_of_the_table_of_contents(book):
    part, toc = book / "book" / "part", book / "_toc.yml"
    (part / "air.md").write_text(tiny_book.CHAPTER)
    assert [claim.id for claim in load_claims()] == ["coin-fair"], "a chapter need not have claims"
    (part / "air.claims.yml").write_text(tiny_book.CLAIMS.replace("coin-fair", "air-fair"))
    toc.write_text(tiny_book.TOC.replace("chapters:\n", "chapters:\n  - file: part/air\n"))
    assert [(claim.id, claim.chapter) for claim in load_claims()][0] == ("air-fair", "part/air")
    toc.write_text(tiny_book.TOC + "  - file: part/air\n")
    assert [claim.id for claim in load_claims()] == ["coin-fair", "air-fair"]
    (part / "air.claims.yml").write_text(tiny_book.CLAIMS)
    with pytest.raises(
        BnbookError, match=r"^part/coin.claims.yml and part/air.claims.yml: claim coin-fair ap"
    ):
        load_claims()
    (part / "cion.claims.yml").write_text(tiny_book.CLAIMS)
    with pytest.raises(
        BnbookError, match=r"^part/cion\.claims\.yml belongs to no chapter; expected book/part"
    ):
        load_claims()


def test_the_hash_covers_what_decides_and_no_prose(book):
    def hashed(**changes):
        return read(book, "claims", claims(changed(**changes)))[0].test_hash

    EVENTS = dict(test__events=True, out_of_reach=True)

    def parts(says, threshold, **more):
        test = {**TEST, "threshold": threshold}
        return dict(test=None, parts=[{"says": says, "test": test}, {"says": "q", "test": test}], **more)

    before = hashed()
    prose = dict(says="Other words", figure="other", source__where="Figure 2", scope=[], effect="points")
    for same in (prose, dict(test__threshold="0.0"), dict(test__resolution=0.5), EVENTS):
        assert hashed(**same) == before, same
    assert hashed(**parts("p", 0)) == hashed(**parts("other words", 0))
    decisive = [
        dict(test__threshold=0.01),
        dict(test__side="less"),
        dict(test__a="acc.other"),
        dict(test__nonfinite=0.1),
        dict(evidence=["paper"]),
        dict(statement=True),
        dict(statement=True, corrected={"kind": "identity", "a": "x", "tolerance": 1}),
        dict(statement=True, condition="m > 1"),
        parts("p", 0),
        parts("p", 1),
        parts("p", 0, combine="any"),
    ]
    hashes = {hashed(**changes) for changes in decisive}
    assert len(hashes | {before}) == len(decisive) + 1


def test_one_test_stands_for_every_rung(book):
    def claim(**more):
        own = changed(test={**TEST, "a": "s.{rung}.batch"}, **more)
        return read(book, "claims", claims(own, rungs=RUNGS))[0]

    whole, wide = claim(), claim(rungs=["wide"])
    said = [("An eighth.", "s.small.batch"), ("The whole.", "s.wide.batch")]
    assert [(part.says, part.test.a) for part in whole.parts] == said and whole.test is None
    assert whole.required_names() == () and whole.result_names() == (
        "s.small.batch",
        "acc.none",
        "s.wide.batch",
    )
    assert wide.parts == whole.parts[1:] and wide.test_hash != whole.test_hash


EVENT = {"kind": "level", "a": "a", "side": "greater", "threshold": 0.9, "events": True, "nonfinite": 0}
SILENT = {"kind": "level", "a": "a", "side": "greater", "threshold": 0.9}
SEEDS, TRAINS = (
    "with 5 seeds its test cannot hold; expected at least 36 seeds, or `out_of_r",
    "its chapter trains, but",
)


@pytest.mark.parametrize(
    "test, cell, head, more, words",
    [
        (EVENT, "", {}, {}, SEEDS),
        (EVENT, "", {}, {"out_of_reach": True}, ""),
        (EVENT, "start_seeds = 40", {}, {}, ""),
        (EVENT, "shared", {}, {}, ""),
        (SILENT, "", {}, {}, ""),
        (SILENT, "steps = 100  # of training", {}, {}, TRAINS),
        (SILENT, "steps: int = 100", {}, {}, TRAINS),
        (SILENT, "steps = 100", {"nonfinite": "open"}, {}, ""),
        (SILENT | {"nonfinite": 0.1}, "steps = 100", {}, {}, ""),
        ({"kind": "identity", "a": "a", "tolerance": 0}, "steps = 100", {}, {}, ""),
    ],
)
def test_a_test_that_planned_seeds_cannot_make_hold_or_silent_on_divergence_is_refused(
    book, test, cell, head, more, words
):
    part = book / "book" / "part"
    (part / "coin.md").write_text(
        f"---\nbnbook:\n  profiles:\n    laptop:\n      seeds: 5\n---\n\nseeds = 2\n{cell}\n"
    )
    if cell == "shared":
        (part / "_settings.yml").write_text("starts:\n  start_seeds: 40  # more\n")
    content = claims(changed(test=test, **more), **head)
    if not words:
        assert read(book, "claims", content)
        return
    with pytest.raises(BnbookError, match=f"^part/coin.claims.yml: claim faster-lr0.1: {words}"):
        read(book, "claims", content)


def test_errata_coverage_and_instruments_are_read_whole(book):
    (row,) = read(book, "errata", [ERRATUM | {"short": "It is  false.", "id": "theorem-4.1"}])
    assert (row.id, row.kind, row.claim, row.test) == ("theorem-4.1", "wrong", "coin-fair", ERRATUM["test"])
    assert (row.source.key, row.source.version, row.source.where) == ("folklore", "oral", "on coins")
    assert [row.printed, row.correct, row.why] == [ERRATUM[key] for key in ("printed", "correct", "why")]
    assert (row.short, row.changes, row.anchor) == ("It is false.", "formula", "erratum-theorem-4-1")
    for lacking in ("claim", "test"):
        (other,) = read(book, "errata", [tiny_book.changed(ERRATUM, **{lacking: None})])
        assert getattr(other, lacking) == ""
    sides = {"where": "Verse 3", "says": "Two.", "claims": ["coin-fair"], "errata": ["coin-two-sides"]}
    assert load_coverage() == [], "a book may have none"
    (one,) = read(book, "coverage", SONG | {"complete": True, "sentences": [HALF, EDGE, AGAIN, sides]})
    assert (one.name, one.source, one.version, one.complete) == ("song", "folklore", "oral", True)
    half, edge, again, sides = one.sentences
    assert (half.where, half.says, half.note) == (HALF["where"], HALF["says"], "One coin.")
    assert (half.claims, edge.claims, sides.errata) == (("coin-fair",), (), ("coin-two-sides",))
    assert (edge.reason, again.repeats) == ("open", "Verse 1")


def test_a_measured_claim_rests_on_an_instrument_and_each_instrument_has_a_claim(book):
    assert load_instruments() == [], "a small book has none"
    line = {"line": "which may be 2/η", "reads": ["part/coin:smooth.*", "edge"]}
    (beta,) = read(book, "instruments", [BETA | line])
    assert (beta.id, beta.line, beta.mark, beta.anchor) == ("beta", line["line"], "", "instrument-beta")
    names = enumerate(("smooth.none", "edge", "edges"))
    at = {name: changed(id=f"c{k}", test=LEVEL | {"a": name}) for k, name in names}
    smooth, edge, edges = read(book, "claims", claims(*at.values()))
    assert beta.under(smooth) and beta.under(edge) and not beta.under(edges)
    assert unmeasured([smooth, edge], [beta]) == []
    assert unmeasured([smooth, edges], [beta]) == [
        "claim c2 reads edges, which no instrument covers; expected a pattern of it in instruments.yml"
    ]
    (formula,) = read(book, "claims", claims(at["edges"] | {"statement": True}))
    assert unmeasured([smooth, formula], [beta]) == []
    assert unmeasured([], [beta]) == ["no claim rests on instrument beta; expected a pattern of a result"]
