"""Reading claims.yml: what is accepted, what is refused and in which words, and what the hash covers."""

from __future__ import annotations

import pytest
import tiny_book
import yaml

from bnbook.claims import load_claims
from bnbook.errors import BnbookError

GOOD = {
    "id": "faster-lr0.1",
    "chapter": "santurkar/training",
    "source": {"key": "santurkar2018", "version": "v1", "where": "Figure 1"},
    "says": "Batch norm trains faster.",
    "figure": "curves",
    "test": {"kind": "difference", "a": "acc.batch", "b": "acc.none", "side": "greater", "threshold": 0},
}


def write(tmp_path, *entries):
    path = tmp_path / "claims.yml"
    path.write_text(yaml.safe_dump(list(entries), allow_unicode=True), encoding="utf-8")
    return path


def changed(**changes):
    return tiny_book.changed(GOOD, **changes)


def one(tmp_path, **changes):
    return load_claims(write(tmp_path, changed(**changes)))[0]


def test_a_claim_is_read_whole(tmp_path):
    claim = one(tmp_path)
    assert (claim.id, claim.source.key, claim.test.kind) == ("faster-lr0.1", "santurkar2018", "difference")
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
    path = tmp_path / "claims.yml"
    text = yaml.safe_dump([changed(test={"kind": "identity", "a": "x", "tolerance": "PUT"})])
    path.write_text(text.replace("PUT", "1e-3"), encoding="utf-8")
    assert isinstance(yaml.safe_load(path.read_text())[0]["test"]["tolerance"], str)
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
    (dict(test=None), "both test and parts, or neither"),
    (dict(parts=[{"says": "p", "test": GOOD["test"]}] * 2), "both test and parts, or neither"),
    (dict(test=None, parts=[{"says": "p", "test": GOOD["test"]}]), "list of at least two"),
    (dict(figure=None), "lacks figure"),
    (dict(says=""), "says is ''"),
    (dict(source__version=None), "source lacks version"),
    (dict(source="paper"), "source is str"),
    (dict(colour="red"), "unknown key colour"),
    (dict(evidence=["weekly"]), "evidence ['weekly'] is unknown"),
    (dict(statement="yes please"), "no truth value"),
    (dict(corrected=GOOD["test"]), "is no statement"),
    (dict(statement=True, correction="words"), "words a correction that nothing tests"),
    (dict(id="Not An Id"), "id 'Not An Id' is malformed"),
    (dict(chapter="/etc/passwd"), "chapter '/etc/passwd' is malformed"),
]


@pytest.mark.parametrize("changes,words", REFUSED, ids=[words for _, words in REFUSED])
def test_a_mistake_is_one_line_that_names_file_claim_and_remedy(tmp_path, changes, words):
    with pytest.raises(BnbookError) as caught:
        one(tmp_path, **changes)
    message = str(caught.value)
    assert words in message and "\n" not in message
    assert message.startswith("claims.yml: claim ") and "; expected " in message
    assert "id" in changes or "claim faster-lr0.1:" in message


def test_a_doubled_id_is_refused(tmp_path):
    with pytest.raises(BnbookError, match="claim faster-lr0.1 appears twice"):
        load_claims(write(tmp_path, GOOD, GOOD))


@pytest.mark.parametrize(
    "text,words",
    [("- id: [", "line 2 is not YAML"), ("id: x", "holds no list"), ("- 3", "number 1: the claim is int")],
)
def test_a_broken_file_is_one_line(tmp_path, text, words):
    path = tmp_path / "claims.yml"
    path.write_text(text + "\n", encoding="utf-8")
    with pytest.raises(BnbookError, match=words) as caught:
        load_claims(path)
    assert "\n" not in str(caught.value)


def test_a_missing_file_is_one_line(tmp_path):
    with pytest.raises(BnbookError, match="no claims file none.yml"):
        load_claims(tmp_path / "none.yml")


def test_the_hash_covers_what_decides_and_no_prose(tmp_path):
    before = one(tmp_path).test_hash
    prose = dict(says="Other words", figure="other", source__where="Figure 2", chapter="santurkar/other")
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
