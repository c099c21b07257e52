"""Reading the files of claims: what is accepted, what is refused in which words, and what the hash covers."""

from __future__ import annotations

import pytest
import tiny_book
import yaml

from bnbook.errors import BnbookError
from bookpress.claims import load_claims

GOOD = {
    "id": "faster-lr0.1",
    "source": {"key": "santurkar2018", "version": "v1", "where": "Figure 1"},
    "says": "Batch norm trains faster.",
    "figure": "curves",
    "test": {"kind": "difference", "a": "acc.batch", "b": "acc.none", "side": "greater", "threshold": 0},
}


FILE = "santurkar/training.claims.yml"


def write(tmp_path, *entries, **head):
    path = tmp_path / FILE
    path.parent.mkdir(exist_ok=True)
    path.write_text(yaml.safe_dump({**head, "claims": list(entries)}, allow_unicode=True), encoding="utf-8")
    return path


def changed(**changes):
    return tiny_book.changed(GOOD, **changes)


def one(tmp_path, **changes):
    return load_claims(write(tmp_path, changed(**changes)))[0]


def test_a_claim_is_read_whole(tmp_path):
    claim = one(tmp_path)
    assert (claim.id, claim.source.key, claim.test.kind) == ("faster-lr0.1", "santurkar2018", "difference")
    assert claim.chapter == "santurkar/training"
    assert claim.evidence == ("laptop", "paper") and not claim.statement
    assert claim.result_names() == ("acc.batch", "acc.none")


def test_every_kind_is_read(tmp_path):
    tests = [
        {"kind": "ratio", "a": "x", "b": "y", "side": "less", "threshold": 1},
        {"kind": "equivalence", "a": "x", "b": "y", "margin": 0.01},
        {"kind": "ordering", "results": ["x", "y", "z"]},
        {"kind": "identity", "a": "x", "tolerance": "1e-10"},
        {"kind": "inequality", "a": "x", "b": "trials", "allowed": 0},
        {"kind": "rate", "a": "x", "expected": 1.467, "tolerance": 0.01},
        {"kind": "rate", "a": "x", "side": "greater", "threshold": 1},
        {"kind": "agreement", "a": "x", "b": 0.5, "tolerance": 0.1},
        {"kind": "level", "a": "x", "side": "greater", "threshold": 0.8},
    ]
    entries = [changed(id=f"c{k}", test=test) for k, test in enumerate(tests)]
    assert [claim.test.kind for claim in load_claims(write(tmp_path, *entries))] == [t["kind"] for t in tests]


def test_scientific_notation_that_yaml_reads_as_text_is_a_number(tmp_path):
    path = write(tmp_path, changed(test={"kind": "identity", "a": "x", "tolerance": "PUT"}))
    path.write_text(path.read_text().replace("PUT", "1e-3"), encoding="utf-8")
    assert isinstance(yaml.safe_load(path.read_text())["claims"][0]["test"]["tolerance"], str)
    assert load_claims(path)[0].test.tolerance == 1e-3


REFUSED = [
    (dict(test__kind="diffrence"), "unknown kind 'diffrence'"),
    (dict(test__side="bigger"), "unknown side 'bigger'"),
    (dict(test__threshold="much"), "threshold of test is 'much'"),
    (dict(test__threshold=True), "threshold of test is True"),
    (dict(test__threshold=float("nan")), "threshold of test is nan"),
    (dict(test__threshold=None), "lacks threshold"),
    (dict(test__margin=0.1), "unknown key margin"),
    (dict(test={"kind": "equivalence", "a": "x", "b": "y", "margin": -1}), "margin of test is negative"),
    (dict(test={"kind": "rate", "a": "x", "expected": 1.0}), "lacks tolerance"),
    (dict(test={"kind": "ordering", "results": ["x"]}), "list of at least two names"),
    (dict(test={"kind": "inequality", "a": "x", "allowed": 0.5}), "allowed 0.5 of test is no count"),
    (
        dict(test={"kind": "ratio", "a": "x", "b": "y", "side": "less", "threshold": 1, "resolution": 0.1}),
        "below 1",
    ),
    (
        dict(test={"kind": "level", "a": "x", "expected": 1, "tolerance": 1, "cells": 1}),
        "cells 1 of test is no",
    ),
    (dict(test={"kind": "level", "a": "x", "expected": 1, "tolerance": 1, "events": 1}), "events 1 of test"),
    (dict(test=None), "both test and parts, or neither"),
    (dict(parts=[{"says": "p", "test": GOOD["test"]}] * 2), "both test and parts, or neither"),
    (dict(test=None, parts=[{"says": "p", "test": GOOD["test"]}]), "list of at least two"),
    (dict(figure=None), "lacks figure"),
    (dict(says=""), "says is ''"),
    (dict(source__version=None), "source lacks version"),
    (dict(source="Figure 1"), "source lacks key, version"),
    (dict(source=3), "source is int"),
    (dict(colour="red"), "unknown key colour"),
    (dict(evidence=["weekly"]), "evidence ['weekly'] is unknown"),
    (dict(statement="yes please"), "no truth value"),
    (dict(corrected=GOOD["test"]), "is no statement"),
    (dict(statement=True, correction="words"), "words a correction that nothing tests"),
    (dict(id="Not An Id"), "id 'Not An Id' is malformed"),
    (dict(chapter="santurkar/landscape"), "unknown key chapter"),
]


@pytest.mark.parametrize("changes,words", REFUSED, ids=[words for _, words in REFUSED])
def test_a_mistake_is_one_line_that_names_file_claim_and_remedy(tmp_path, changes, words):
    with pytest.raises(BnbookError) as caught:
        one(tmp_path, **changes)
    message = str(caught.value)
    assert words in message and "\n" not in message
    assert message.startswith(f"{FILE}: claim ") and "; expected " in message
    assert "id" in changes or "claim faster-lr0.1:" in message


HEAD = dict(source={"key": "santurkar2018", "version": "v1"}, figure="curves", statement=True)
BARE = changed(source="Figure 2", figure=None)


def test_the_head_of_a_file_gives_what_a_claim_does_not_say(tmp_path):
    other = changed(id="c2", source={"version": "NeurIPS", "where": "Figure 3"}, figure="f", statement=False)
    first, second = load_claims(write(tmp_path, BARE, other, evidence=["smoke"], **HEAD))
    assert (first.source.key, first.source.version, first.source.where) == ("santurkar2018", "v1", "Figure 2")
    assert (first.figure, first.statement, first.evidence) == ("curves", True, ("smoke",))
    assert (second.source.key, second.source.version) == ("santurkar2018", "NeurIPS")
    assert (second.figure, second.statement) == ("f", False)
    whole = changed(source={**HEAD["source"], "where": "Figure 2"}, statement=True, evidence=["smoke"])
    assert load_claims(write(tmp_path, whole)) == [first], "a default is the same claim written shorter"


@pytest.mark.parametrize(
    "head", [dict(chapter="a/b"), dict(source="v1"), dict(source={"where": "everywhere"})]
)
def test_a_wrong_head_is_one_line(tmp_path, head):
    with pytest.raises(BnbookError, match=f"^{FILE}: its head has .*; expected .*$"):
        load_claims(write(tmp_path, GOOD, **head))


def test_a_doubled_id_is_refused(tmp_path):
    with pytest.raises(BnbookError, match=f"^{FILE}: claim faster-lr0.1 appears twice"):
        load_claims(write(tmp_path, GOOD, GOOD))


@pytest.fixture
def book(tmp_path, monkeypatch):
    """A book of two chapters, part/coin with its claim and before it part/air without."""
    config = tmp_path / "config.yml"
    config.write_text("")
    tiny_book.write(tmp_path / "book-of-two", config)
    root = tmp_path / "book-of-two"
    (root / "book" / "part" / "air.md").write_text(tiny_book.CHAPTER)
    toc = tiny_book.TOC.replace("chapters:\n", "chapters:\n  - file: part/air\n").replace(
        "  - file: part/coin\n", ""
    )
    (root / "_toc.yml").write_text(toc + "  - file: part/coin\n")
    monkeypatch.setenv("BNBOOK_ROOT", str(root))
    return root / "book" / "part"


def test_claims_come_in_the_order_of_the_table_of_contents(book):
    air = tiny_book.CLAIMS.replace("coin-fair", "air-fair")
    assert [claim.id for claim in load_claims()] == ["coin-fair"], "a chapter need not have claims"
    (book / "air.claims.yml").write_text(air)
    assert [claim.id for claim in load_claims()] == ["air-fair", "coin-fair"]
    toc = book.parent.parent / "_toc.yml"
    toc.write_text(tiny_book.TOC + "  - file: part/air\n")
    assert [(claim.id, claim.chapter) for claim in load_claims()] == [
        ("coin-fair", "part/coin"),
        ("air-fair", "part/air"),
    ]


def test_a_doubled_id_in_two_files_names_both(book):
    (book / "air.claims.yml").write_text(tiny_book.CLAIMS)
    with pytest.raises(
        BnbookError, match=r"^part/air\.claims\.yml and part/coin\.claims\.yml: claim coin-fair app"
    ):
        load_claims()


def test_claims_without_their_chapter_are_refused(book):
    (book / "cion.claims.yml").write_text(tiny_book.CLAIMS)
    with pytest.raises(
        BnbookError, match=r"^part/cion\.claims\.yml belongs to no chapter; expected book/part/cion\.md"
    ):
        load_claims()


@pytest.mark.parametrize(
    "text,words",
    [
        ("claims: [", "line 2 is not YAML"),
        ("- id: x", "holds no list"),
        ("claims: {id: x}", "holds no list"),
        ("claims: [3]", "number 1: the claim is int"),
    ],
)
def test_a_broken_file_is_one_line(tmp_path, text, words):
    path = write(tmp_path)
    path.write_text(text + "\n", encoding="utf-8")
    with pytest.raises(BnbookError, match=f"^{FILE}.*{words}") as caught:
        load_claims(path)
    assert "\n" not in str(caught.value)


def test_a_missing_file_is_one_line(tmp_path):
    with pytest.raises(BnbookError, match="^no file part/none.claims.yml; expected it under part/"):
        load_claims(tmp_path / "part" / "none.claims.yml")


def test_the_hash_covers_what_decides_and_no_prose(tmp_path):
    before = one(tmp_path).test_hash
    prose = dict(says="Other words", figure="other", source__where="Figure 2")
    assert one(tmp_path, **prose).test_hash == before
    assert one(tmp_path, test__threshold="0.0").test_hash == before
    decisive = [
        dict(test__threshold=0.01),
        dict(test__side="less"),
        dict(test__a="acc.other"),
        dict(test__nonfinite=0.1),
        dict(evidence=["paper"]),
        dict(statement=True),
        dict(statement=True, corrected={"kind": "identity", "a": "x", "tolerance": 1}),
        dict(statement=True, condition="m > 1"),
        dict(test=None, parts=[{"says": "p", "test": GOOD["test"]}] * 2),
    ]
    hashes = {one(tmp_path, **changes).test_hash for changes in decisive}
    assert len(hashes | {before}) == len(decisive) + 1


def test_part_wording_is_prose_but_its_test_decides(tmp_path):
    def hashed(says, threshold):
        test = {**GOOD["test"], "threshold": threshold}
        return one(
            tmp_path, test=None, parts=[{"says": says, "test": test}, {"says": "q", "test": test}]
        ).test_hash

    assert hashed("p", 0) == hashed("other words", 0) != hashed("p", 1)
