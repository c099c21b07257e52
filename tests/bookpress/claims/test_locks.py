"""The locks: what was fixed before the data, and every way to go round it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace

import locked_coin
import pytest
from locked_coin import CLAIM, MEASURED, as_before, lock, parameters

from bnbook.errors import BnbookError
from bookpress.claims import locks
from bookpress.claims.locks import LATE, OTHER_SEEDS, REMEASURED, RESET, UNLOCKED, UNPLANNED, plan

MOVED = replace(CLAIM, test=replace(CLAIM.test, threshold=-1.0))


def run(head, seeds=range(3), code=MEASURED, **more):
    return locked_coin.run({"x": [1.0] * len(seeds)}, seeds, code, head, **more)


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
    assert found.exploratory == "" and found.date.startswith("20")
    assert stands(run(head()), MOVED) == UNLOCKED  # a threshold moved, without a word


def test_a_threshold_moved_after_its_data_counts_on_fresh_seeds_only(book):
    """Of each history the first lock is written as now and as until November 2026: the standings are the same."""
    late = lock(MOVED, seen={"laptop": [[0, 2]]}, why="moved", first_seed=100)
    fresh = dict(seeds=range(100, 103), first_seed=100)
    for first in (lock(), as_before(lock())):
        locks.path().unlink(missing_ok=True)
        locks.append([first])
        old = head()
        locks.append([late])
        assert stands(run(old)) == stands(run(head())) == stands(run(head(), **fresh), MOVED) == ""
        assert stands(run(old), MOVED) == stands(run(head()), MOVED) == "test changed after its data"
        assert stands(run(old, **fresh), MOVED) == LATE


def test_a_run_at_a_profile_that_nobody_planned_is_exploratory(book):
    locks.append([lock()])
    other = run(head(), range(100, 103), code={"code": "d", "package": "q"}, width=9)
    for profile, words in (
        ("paper", UNPLANNED), ("overnight", UNPLANNED), ("smoke", ""), ("laptop", REMEASURED),
    ):  # fmt: skip
        other.header["profile"] = profile
        assert stands(other) == words


def test_what_was_done_before_the_locks_stands_as_it_was_entered(book):
    old = run("")
    del old.header["locks"]
    locks.append([lock()])
    assert stands(old) == LATE
    locks.append([lock(MOVED) | {"commit": "abc"}])
    assert stands(old, MOVED) == ""


def field(**change):
    """The first line with other fields."""
    return lambda lines: [json.dumps(json.loads(lines[0]) | change), *lines[1:]]


def dated(date):
    return lambda lines: [lines[0], lines[1].replace("2026-05-02T10:00Z", date), *lines[2:]]


ABOVE = "line 2: 2026-05-01T23:59Z is before part/coin's line above it"
TAMPERED = [
    (lambda lines: [lines[0].replace('"seeds":3', '"seeds":9'), *lines[1:]], "line 2: `previous`"),
    (lambda lines: [lines[0], lines[2]], "line 2: `previous`"),
    (lambda lines: lines[1:], "line 1: `previous`"),
    (lambda lines: [lines[1], lines[0], lines[2]], "line 1: `previous`"),
    (lambda lines: [*lines, "{"], "line 4: it is no event"),
    (lambda lines: [*lines, '{"event":"forgotten"}'], "line 4: it is no event; expected .*carried"),
    (lambda lines: [*lines, '{"event":"withdrawn"}'], "line 4: withdrawn: it lacks why; expected"),
    *((lambda lines, text=text: [text], "line 1: .*expected")
      for text in ("[]", "3", "null", '{"event": []}', '{"event": {}}', "[" * 100_000)),
    (dated("2026-05-01T23:59Z"), ABOVE),
    (dated("2026-05-02"), "line 2: lock: date is '2026-05-02'; expected one such as"),
    *((field(**change), f"line 1: lock: {words}.*; expected ") for change, words in (
        ({"date": 5}, "date is 5"),
        ({"date": "yesterday"}, "date is 'yesterday'"),
        ({"tests": {"fair": 5}}, "tests.fair is 5"),
        ({"planned": {"laptop": 3}}, "planned.laptop is 3"),
        ({"planned": {"laptop": {"seeds": 3}}}, "it lacks planned.laptop.settings"),
        ({"seen": {"laptop": [[3]]}, "why": "w"}, "seen.laptop.1 is .3."),
        ({"seen": {"laptop": [["a", "b"]]}, "why": "w"}, "seen.laptop.1.1 is 'a'"),
        ({"colour": "red"}, "colour is 'red'"),
    )),
]  # fmt: skip


@pytest.mark.parametrize(("tamper", "words"), TAMPERED, ids=[words for _, words in TAMPERED])
def test_a_line_rewritten_removed_moved_or_of_another_form_is_one_clear_line(
    book, monkeypatch, tamper, words
):
    monkeypatch.setattr(locks, "now", lambda: "2026-05-02T10:00Z")
    locks.append([lock(), lock(MOVED), lock(n=5)])
    written = locks.path().read_text().splitlines()
    locks.path().write_text("\n".join(tamper(written)) + "\n")
    with pytest.raises(BnbookError, match=f"^locks.jsonl, {words}") as error:
        locks.read()
    assert "expected" in str(error.value) and "\n" not in str(error.value)


def test_chapters_have_chains_of_their_own_so_that_work_on_two_can_be_merged(book):
    other = replace(CLAIM, id="other", chapter="part/dice")
    locks.append([lock()])
    first = locks.path().read_text()
    locks.path().unlink()
    locks.append([lock(other)])
    locks.path().write_text(first + locks.path().read_text())
    assert [dict(line.tests) for line in locks.read().lines] == [lock()["tests"], lock(other)["tests"]]
    assert stands(run(head())) == ""


def test_a_line_whose_data_were_known_says_why(book):
    with pytest.raises(BnbookError, match="does not say why"):
        locks.append([lock(seen={"laptop": [[0, 2]]})])
    assert not locks.path().exists()


CHANGED = "test changed after its data"
THIRD = replace(CLAIM, test=replace(CLAIM.test, threshold=-2.0))
SEEN = [  # ranges that were seen, first seed of a run of three, what it is called
    ([[5, 7]], 2, ""), ([[5, 7]], 3, CHANGED), ([[5, 7]], 5, CHANGED), ([[5, 7]], 7, CHANGED),
    ([[5, 7]], 8, ""), ([[6, 6]], 3, ""), ([[6, 6]], 4, CHANGED), ([[6, 6]], 6, CHANGED), ([[6, 6]], 7, ""),
    ([[0, 0]], 0, CHANGED), ([[0, 0]], 1, ""), ([[1, 1], [9, 9]], 2, ""), ([[1, 1], [9, 9]], 7, CHANGED),
    ([[1, 1], [9, 9]], 9, CHANGED),
]  # fmt: skip


@pytest.mark.parametrize(("seen", "first", "words"), SEEN)
def test_a_run_is_fresh_where_none_of_its_seeds_lies_in_a_range_that_was_seen(book, seen, first, words):
    late = dict(why="why", first_seed=first)
    locks.append([lock(MOVED), lock(seen={"laptop": seen}, **late)])
    assert stands(run(head(), range(first, first + 3), first_seed=first)) == words
    # What was seen at one profile does not count at another that is planned; at any that is not, it does.
    locks.append([lock(THIRD, seen={"paper": seen}, **late)])
    other = run(head(), range(first, first + 3), first_seed=first)
    assert stands(other, THIRD) == ""
    other.header["profile"] = "overnight"
    assert stands(other, THIRD) == (words or UNPLANNED)


@pytest.mark.parametrize(
    ("planned", "first", "count", "words"),
    [
        ({}, 0, 3, ""),
        ({}, 1, 3, OTHER_SEEDS),
        ({}, 1, 2, OTHER_SEEDS),  # seed 0 was dropped
        ({}, 0, 2, "2 seeds where 3 were planned"),
        ({}, 0, 4, "4 seeds where 3 were planned"),
        ({}, 0, 1, "1 seeds where 3 were planned"),
        ({"first_seed": 1}, 0, 3, OTHER_SEEDS),
        ({"first_seed": 1}, 1, 3, ""),
        ({"first_seed": 100}, 99, 3, OTHER_SEEDS),
        ({"first_seed": 100}, 101, 3, OTHER_SEEDS),
        # arms may begin at a planned first seed of their own
        ({"first_seed": 100, "fresh_first_seed": 700}, 100, 3, ""),
        ({"first_seed": 100, "fresh_first_seed": 700}, 700, 3, ""),
        ({"first_seed": 100, "fresh_first_seed": 700}, 701, 3, OTHER_SEEDS),
    ],
)
def test_the_seeds_of_a_run_are_those_that_were_planned(book, planned, first, count, words):
    locks.append([lock(**planned)])
    assert stands(run(head(), range(first, first + count), **planned)) == words


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, ""),
        ({"width": 9}, RESET),
        ({"seeds_of_stars": 4}, RESET),  # no number of seeds
        ({"linear_seeds": 5}, ""),  # nothing that the claim reads has as many
        ({"linear_seeds": 3}, "3 seeds where 7 were planned"),
        ({"first_seed": 4}, ""),  # the seeds themselves tell
        ({"profile": "other"}, ""),
    ],
)
def test_numbers_of_seeds_are_plans_and_all_else_is_a_setting(book, changes, words):
    more = {"linear_seeds": 7, "seeds_of_stars": 1}
    locks.append([lock(**more)])
    found = run(head(), **more)
    found.header["parameters"] |= changes
    assert stands(found) == words
    assert plan(parameters(**more, first_seed=0)) == plan(parameters(**more))
    assert plan(parameters(first_seed=5)) == {**plan(parameters()), "first_seed": 5}


def test_what_is_carried_is_carried_at_one_profile_and_from_one_way_to_the_next(book):
    at_both = lock()
    at_both["planned"]["paper"] = at_both["planned"]["laptop"]
    locks.append([at_both])
    codes = [{"code": c, "package": "p"} for c in "cde"]
    first, second, third = (list(locks.run_measure(run("", code=code).header)) for code in codes)
    about = {"event": "carried", "chapter": "part/coin", "claims": ["fair"]}
    locks.append([{**about, "profile": "laptop", "was": first, "now": second}])

    def at(profile, code):
        found = run(head(), code=code)
        found.header["profile"] = profile
        return stands(found)

    found = [at(profile, code) for profile in ("laptop", "paper") for code in codes]
    assert found == ["", "", REMEASURED, "", REMEASURED, REMEASURED]
    locks.append([{**about, "profile": "paper", "was": second, "now": third}])
    assert at("paper", codes[2]) == REMEASURED  # from a way that did not count there
    locks.append([{**about, "profile": "laptop", "was": second, "now": third}])
    assert at("laptop", codes[2]) == "" and at("paper", codes[2]) == REMEASURED
    locks.append([{**about, "claims": ["other"], "profile": "paper", "was": first, "now": third}])
    assert at("paper", codes[2]) == REMEASURED


PUBLISHED = {
    "event": "published", "chapter": "part/coin", "profile": "laptop", "content": "x", "seeds": [[0, 2]],
}  # fmt: skip
CARRIED = {
    "event": "carried", "chapter": "part/coin", "profile": "laptop", "claims": ["fair"], "was": [], "now": [],
}  # fmt: skip


@pytest.mark.parametrize(
    ("event", "new"),
    [
        (lock(MOVED), True),
        (lock(MOVED, why="moved"), True),
        ({"event": "withdrawn", "chapter": "part/coin", "claim": "fair", "why": "gone"}, True),
        (PUBLISHED, False),
        (CARRIED, False),
    ],
)
def test_a_test_that_is_not_committed_is_a_new_one_and_a_publication_is_none(book, event, new):
    locks.append([lock()])
    committed = locks.path().read_text()
    assert not locks.has_new_tests(committed) and not locks.has_new_tests(committed.rstrip("\n"))
    locks.append([event])
    assert locks.has_new_tests(committed) is new and not locks.has_new_tests(locks.path().read_text())
    another = {**lock(THIRD), "date": "2026-05-02T10:00Z", "previous": ""}
    assert locks.has_new_tests("") and locks.has_new_tests(locks.as_text(another))


TEXTS = [
    "a\u2028b", "a\u2029b", "a\x85b", "a\x1cb\x1d", "a\r\nb", "a\n", "\udcff", "\x1b[31m", "\u202eb",
    "γ 😀 ‖x‖₂", '"\\',
]  # fmt: skip


@pytest.mark.parametrize("text", TEXTS)
def test_any_text_is_one_line_that_is_read_as_it_was_written(book, text):
    locks.append([lock(), lock(MOVED, why=text), lock(n=5, why="after")])
    found = locks.read().lines
    assert [line["why"] for line in found[1:]] == [text, "after"] and len(found) == 3
    shown = locks.written_by_hand(text)
    assert shown.isprintable() and len(shown.splitlines()) == 1 and shown == locks.written_by_hand(shown)
    assert locks.written_by_hand(" it \u2028 was\nwider ") == "it was wider"


def test_dates_stand_in_order_within_a_chapter_and_no_clock_turns_them_back(book, monkeypatch):
    clock = iter(["2026-05-02T10:00Z", "2026-05-01T10:00Z", "2026-05-01T09:00Z"])
    monkeypatch.setattr(locks, "now", lambda: next(clock))
    for claim in (CLAIM, MOVED, replace(CLAIM, id="other", chapter="part/dice")):
        locks.append([lock(claim)])
    dates = [line["date"] for line in locks.read().lines]
    assert dates == ["2026-05-02T10:00Z", "2026-05-02T10:00Z", "2026-05-01T09:00Z"]


def test_a_date_to_come_is_named(book, monkeypatch):
    monkeypatch.setattr(locks, "now", lambda: "2026-06-01T10:00Z")
    locks.append([lock()])
    assert locks.misdated() == []
    monkeypatch.setattr(locks, "now", lambda: "2026-05-10T10:00Z")
    expected = "locks.jsonl, line 1 is dated 2026-06-01T10:00Z; expected 2026-05-10T10:00Z or earlier"
    assert locks.misdated() == [expected]


def test_a_write_that_fails_or_is_killed_leaves_the_file_as_it_was(book, monkeypatch):
    locks.append([lock()])
    before = locks.path().read_bytes()

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OSError, match="No space"):
        locks.append([lock(MOVED), lock(n=5)])
    assert locks.path().read_bytes() == before and os.listdir(book / "book") == ["locks.jsonl"]


def test_two_at_once_take_turns(book):
    """Four processes append three lines each: one chain of twelve."""
    code = (
        "import json, sys; from bookpress.claims import locks\n"
        "for event in json.loads(sys.argv[1]): locks.append([event])"
    )
    events = [lock(replace(CLAIM, id=f"c{k}")) for k in range(3)]
    words = [sys.executable, "-c", code, json.dumps(events)]
    running = [subprocess.Popen(words) for _ in range(4)]
    assert [each.wait() for each in running] == [0] * 4
    assert len(locks.read().lines) == 12


def test_who_looks_and_then_writes_is_alone_meanwhile(book):
    code = "from bookpress.claims import locks; print('waits', flush=True)\nwith locks.alone(): print('in')"
    with locks.alone():
        with locks.alone():
            other = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
            assert other.stdout.readline() == "waits\n"
        with pytest.raises(subprocess.TimeoutExpired):
            other.wait(timeout=0.3)
    assert other.communicate(timeout=60)[0] == "in\n"


def test_changes_of_tests_are_listed_with_their_reasons_and_nothing_else_is():
    def line(number, **more):
        content = {
            "event": "changed", "chapter": "part/coin", "date": f"2026-05-0{number}T10:00Z", "claim": "a",
        }  # fmt: skip
        return locks.Line(number, "", content | {"test": "x", "seen": {}, "measure": "m"} | more)

    chain = [
        line(1, event="locked"),
        line(2, measure="n", why="measured otherwise"),
        line(3, test="y", why="it asked something else after its data", seen={"laptop": [[0, 2]]}),
        line(4, event="published"),
        line(5, test="y", why="planned anew"),
        line(6, claim="b", test="y", event="locked"),
        line(7, test="x", why="test changed, seeds 3 to 5"),
    ]
    found = locks.deviations(chain)
    assert [each.words for each in found] == [
        "2026-05-03, after some of its data: it asked something else",
        "2026-05-07: no reason was written",
    ]
    assert {each.claim for each in found} == {"a"}
