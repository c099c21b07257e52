"""The locks: what was fixed before the data, and every way to go round it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bnbook.claims import locks
from bnbook.claims.claim import Claim, Source, Test
from bnbook.claims.locks import chain as chains
from bnbook.claims.locks import lines
from bnbook.claims.locks.standing import (
    LATE,
    OTHER_SEEDS,
    REMEASURED,
    RESET,
    UNLOCKED,
    UNPLANNED,
    measure,
    plan,
)
from bnbook.errors import BnbookError
from bnbook.results import Results

MEASURED = {"code": "c", "package": "p"}
CLAIM = Claim(
    "fair",
    "part/coin",
    Source("k", "v", "w"),
    "says",
    "f",
    Test("level", a="x", side="greater", threshold=0.0),
)
MOVED = replace(CLAIM, test=replace(CLAIM.test, threshold=-1.0))


@pytest.fixture
def book(tmp_path, monkeypatch):
    (tmp_path / "book").mkdir()
    (tmp_path / "_config.yml").write_text("")
    monkeypatch.setenv("BNBOOK_ROOT", str(tmp_path))
    return tmp_path


def parameters(n=3, **more):
    return {"profile": "laptop", "seeds": n, "width": 8, **more}


def lock(claim=CLAIM, n=3, event="locked", seen=None, why="", code=MEASURED, **more):
    content = {"event": event, "chapter": claim.chapter, "claim": claim.id, "says": "", "stop": "fixed n"}
    content |= {"test": lines.short(claim.test_hash), "measure": measure(code)}
    content |= {"planned": {"laptop": plan(parameters(n, **more))}, "seen": seen or {}}
    return content | ({"why": why} if why else {})


def run(head, seeds=range(3), code=MEASURED, **more):
    seeds = list(seeds)
    header = {"chapter": "part/coin", "profile": "laptop", "fingerprint": code, "locks": head}
    header["parameters"] = parameters(len(seeds), **more)
    return Results(header, {"x": {"values": [1.0] * len(seeds), "unit": "", "seeds": seeds, "note": ""}})


def stands(recorded, claim=CLAIM):
    return locks.standing(claim, recorded, locks.read()).exploratory


def head():
    return locks.read().head("part/coin")


def test_a_result_is_locked_by_the_first_test_that_stood_before_its_run(book):
    assert stands(run("")) == UNLOCKED
    before = head()
    locks.append([lock()])
    assert stands(run(before)) == LATE
    found = locks.standing(CLAIM, run(head()), locks.read())
    assert (found.exploratory, found.line) == ("", 1) and found.date.startswith("20")
    assert stands(run(head()), MOVED) == UNLOCKED  # a threshold moved, without a word


def test_a_threshold_moved_after_its_data_counts_on_fresh_seeds_only(book):
    locks.append([lock()])
    old = head()
    locks.append([lock(MOVED, event="changed", seen={"laptop": [[0, 2]]}, why="moved", first_seed=100)])
    assert stands(run(old), MOVED) == "test changed after its data"
    assert (
        stands(run(head()), MOVED) == "test changed after its data"
    )  # stamped again: the same seeds under the later lock
    assert stands(run(head(), range(100, 103), first_seed=100), MOVED) == ""
    assert stands(run(old, range(100, 103), first_seed=100), MOVED) == LATE


def test_more_seeds_than_planned_and_others_than_planned(book):
    locks.append([lock(n=3)])
    assert stands(run(head(), range(5))) == "5 seeds where 3 were planned"
    assert stands(run(head(), range(2))) == "2 seeds where 3 were planned"
    assert stands(run(head(), range(7, 10), first_seed=7)) == OTHER_SEEDS
    locks.append([lock(n=5, event="changed", seen={"laptop": [[0, 2]]}, why="3 to 5", first_seed=100)])
    assert stands(run(head(), range(5))) == "5 seeds where 3 were planned"
    assert stands(run(head(), range(100, 105), first_seed=100)) == ""


def test_a_run_at_a_profile_that_nobody_planned_is_exploratory(book):
    locks.append([lock()])
    other = run(head(), range(100, 103), code={"code": "d", "package": "q"}, width=9)
    for profile, words in (
        ("paper", UNPLANNED),
        ("overnight", UNPLANNED),
        ("smoke", ""),
        ("laptop", REMEASURED),
    ):
        other.header["profile"] = profile
        assert stands(other) == words


def test_another_way_to_measure_counts_where_it_gave_the_same_numbers(book):
    locks.append([lock()])
    other = {"code": "d", "package": "p"}
    assert stands(run(head(), code=other)) == REMEASURED
    assert stands(run(head(), width=9)) == RESET
    was, now = (list(locks.run_measure(run("", code=code).header)) for code in (MEASURED, other))
    about = {"event": "carried", "chapter": "part/coin", "profile": "laptop", "claims": ["fair"]}
    locks.append([{**about, "was": was, "now": now}])
    assert stands(run(head(), code=other)) == "" and stands(run(head())) == ""
    assert stands(run(head(), code={"code": "e", "package": "p"})) == REMEASURED


def test_what_was_done_before_the_locks_stands_as_it_was_entered(book):
    old = run("")
    del old.header["locks"]
    locks.append([lock()])
    assert stands(old) == LATE
    locks.append([lock(MOVED, event="changed") | {"commit": "abc"}])
    assert stands(old, MOVED) == ""


@pytest.mark.parametrize(
    ("tamper", "words"),
    [
        (lambda lines: [lines[0].replace('"seeds":3', '"seeds":9'), *lines[1:]], "line 2: `previous`"),
        (lambda lines: [lines[0], lines[2]], "line 2: `previous`"),
        (lambda lines: lines[1:], "line 1: `previous`"),
        (lambda lines: [lines[1], lines[0], lines[2]], "line 1: `previous`"),
        (lambda lines: [*lines, "{"], "line 4: it is no event"),
        (lambda lines: [*lines, '{"event":"forgotten"}'], "line 4: event 'forgotten' is unknown"),
        (lambda lines: [*lines, '{"event":"withdrawn"}'], "line 4: it lacks chapter, claim, date"),
    ],
)
def test_a_line_rewritten_removed_or_moved_is_one_clear_line(book, tamper, words):
    locks.append([lock(), lock(MOVED, event="changed"), lock(n=5, event="changed")])
    written = chains.path().read_text().splitlines()
    chains.path().write_text("\n".join(tamper(written)) + "\n")
    with pytest.raises(BnbookError, match=words) as error:
        locks.read()
    assert "expected" in str(error.value) and "\n" not in str(error.value)


def test_chapters_have_chains_of_their_own_so_that_work_on_two_can_be_merged(book):
    other = replace(CLAIM, id="other", chapter="part/dice")
    locks.append([lock()])
    first = chains.path().read_text()
    chains.path().unlink()
    locks.append([lock(other)])
    chains.path().write_text(first + chains.path().read_text())
    assert [line["claim"] for line in locks.read().lines] == ["fair", "other"]
    assert stands(run(head())) == ""


def test_a_line_whose_data_were_known_says_why(book):
    with pytest.raises(BnbookError, match="does not say why"):
        locks.append([lock(seen={"laptop": [[0, 2]]})])
    assert not chains.path().exists()


def test_seeds_of_arms_that_do_not_begin_at_the_first_seed(book):
    locks.append([lock(first_seed=100)])
    assert stands(run(head(), first_seed=100)) == ""
    assert stands(run(head(), range(7, 10), first_seed=100)) == OTHER_SEEDS
    assert stands(run(head(), range(700, 703), first_seed=100)) == ""  # which is for the locked code to say
    assert stands(run(head(), range(700, 703), first_seed=700)) == OTHER_SEEDS


def test_one_seed_more_than_planned_is_one_too_many(book):
    locks.append([lock(n=3)])
    assert stands(run(head(), range(4))) == "4 seeds where 3 were planned"
    assert stands(run(head(), range(3))) == ""
