"""bnbook lock, run, publish and check together: lies that were planted, and reruns that are none."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from dataclasses import replace

import numpy as np
import pytest
from conftest import bnbook
from locked_coin import CLAIM, COIN, claims_file, coin, edit, edit_results, run, stamped

from bnbook.errors import BnbookError
from bookpress import claims, paths
from bookpress.claims import locks
from bookpress.cli import main
from bookpress.pipeline import chapter_runs, gate, locking, publishing
from bookpress.pipeline.locking import Known
from bookpress.runs import store
from bookpress.site import check, verdicts


def known():
    return Known(coin(), locks.read())


def shown(profile="laptop"):
    """Why the chapter's one verdict is exploratory, or nothing."""
    return chapter_runs.chapter_verdicts(chapter_runs.published(coin(), profile))[0]["exploratory"]


def problems():
    run = chapter_runs.published(coin(), "laptop")
    return "; ".join([*check.unlocked(), *(gate.problems(run) if run.exists else [])])


def test_what_is_locked_before_its_run_is_not_exploratory(ran, capsys):
    publishing.publish(coin(), "laptop")
    assert shown() == "" and problems() == "" and main(["check"]) == 0
    assert "ok  1 locks in 2 lines" in capsys.readouterr().out
    assert main(["check", "coin"]) == 0 and "ok  laptop/part/coin" in capsys.readouterr().out
    assert [line.event for line in locks.read().lines] == ["lock", "published"]
    assert "nothing to lock: part/coin" in locking.lock([coin()], "laptop")[0]


def test_a_test_of_a_result_that_no_run_has_is_locked_with_a_word_and_goes_back(ran, capsys):
    """It is refused where a smoke run of the same code tells that the cells do not record it."""
    before = locks.path().read_text()
    edit(claims_file(ran), "a: heads", "a: head")
    assert main(["lock", "coin", "--why", "a slip"]) == 2 and locks.path().read_text() == before
    assert "the smoke run of part/coin records no 'head' (did you mean 'heads'?)" in capsys.readouterr().err
    edit(ran / "book" / "part" / "coin.md", "import numpy as np", "import numpy as np\n\nOTHER = 1")
    assert main(["lock", "coin", "--why", "a slip"]) == 0
    said = capsys.readouterr().out
    assert "here has 'head' (did you mean 'heads'?); see whether bnbook run" in said
    back = "git checkout book/locks.jsonl takes it back"
    edit(claims_file(ran), "a: head,", "a: draws,")
    assert 'another test than its locks have: bnbook lock part/coin --why "…"; its last' in problems()
    assert back in problems() and main(["lock", "coin"]) == 2 and back in capsys.readouterr().err
    subprocess.run(["git", "-C", str(ran), "checkout", "-q", "book/locks.jsonl"], check=True)
    assert locks.path().read_text() == before
    assert "another test" in problems() and back not in problems(), "that lock is committed"
    assert main(["lock", "coin", "--why", "it"]) == 0 and "note" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("header", "said"),
    [
        ("", "(test written after its data, laptop n = 3; seeds that were seen: laptop 0 to 2: exploratory"),
        ("\n    evidence: {first_seed: 2}", "laptop n = 3; seeds that were seen: laptop 2: exploratory"),
        ("\n    evidence: {first_seed: 100}", "(test written, laptop n = 3)"),
        (
            "\n    evidence: {first_seed: 100}\n    paper: {seeds: 4}",
            "(test written, paper n = 4, laptop n = 3)",
        ),
    ],
)
def test_a_lock_comes_after_its_data_where_planned_seeds_were_seen(ran, header, said):
    """Smoke has the settings of the laptop run here; of other profiles only those that the header has are named."""
    path = ran / "book" / "part" / "coin.md"
    edit(path, "\n    laptop: {tosses: 400, seeds: 5}\n    paper: {tosses: 1000, seeds: 5}", header)
    edit(path, "seeds = 3  # runs", "seeds = 3  # runs\nfirst_seed = 0  # the first")
    locks.path().unlink()
    chapter_runs.fresh_run(coin(), "laptop").results_path.unlink()
    (line,) = locking.lock([coin()], "laptop")
    assert said in line and locks.read().lines[-1]["seen"]["laptop"] == [[0, 2]]
    unnumbered = {"planned": {"laptop": {"settings": "x"}}, "seen": {"laptop": [[0, 1]]}}
    assert locking._met(coin(), unnumbered) == {"laptop": [[0, 1]]}, "of no planned number all that was seen"


def test_a_seed_that_was_dropped_shows_although_the_hashes_fit(ran):
    publishing.publish(coin(), "laptop")

    def drop(content):
        for entry in content["results"].values():
            entry["values"], entry["seeds"] = entry["values"][:-1], entry["seeds"][:-1]

    stamped(chapter_runs.published(coin(), "laptop"), drop)
    assert "is not the run that was published last" in problems()
    publishing.publish(coin(), "laptop")
    stamped(chapter_runs.fresh_run(coin(), "laptop"), drop)
    with pytest.raises(BnbookError, match=r"lacks the seeds \[4\] of the published run"):
        publishing.publish(coin(), "laptop")


def test_a_claim_that_is_gone_leaves_a_line(ran):
    publishing.publish(coin(), "laptop")
    text = claims_file(ran).read_text().replace("id: coin-fair", "id: coin-fairer")
    claims_file(ran).write_text(text)
    assert "coin-fair is gone without a word" in problems()
    written = locking.lock([coin()], "laptop")
    words = [re.sub(r" \(.*", "", line) for line in written]
    assert words == ["locked coin-fairer", "withdrawn coin-fair"]
    assert problems() == "" and shown() == "test written after its data"


def test_a_head_that_is_in_no_chain_is_refused(ran):
    stamped(chapter_runs.fresh_run(coin(), "laptop"), lambda content: content.update(locks="0" * 64))
    publishing.publish(coin(), "laptop")
    assert "began under a lock that is not in the file" in problems()


def test_a_rung_that_no_run_has_reached_is_locked_anew_and_one_that_is_published_stays(ran):
    edit(claims_file(ran), "claims:", "rungs: {small: Small., wide: Wide.}\nclaims:")
    edit(claims_file(ran), "a: heads", 'a: "heads.{rung}"')
    locking.lock([coin()], "laptop", "at two sizes")

    def finished(name, **print_):
        found = chapter_runs.fresh_run(coin(), "laptop").results
        found.entries[name] = found.entries.pop("heads")
        found.header["fingerprint"] |= print_
        return found

    def stands(found):
        found.header["locks"] = locks.read().head(COIN)
        return locks.standing(claims.load_claims()[0], found, locks.read()).exploratory

    other, reached = finished("else", package="q"), finished("heads.small", package="q")
    events = publishing.publishing(coin(), "laptop", finished("else"), other)
    assert [event["event"] for event in events] == ["published"]
    locks.append(events)
    assert (stands(other), stands(reached)) == ("", "measured otherwise than locked")
    assert known().seen(claims.load_claims()[0], locked=True) == {}
    with pytest.raises(BnbookError, match="result heads.small of the published run is gone"):
        publishing.publishing(coin(), "laptop", reached, other)


def test_a_rung_that_is_new_leaves_the_others_as_they_were():
    parts = [claims.Part(name, replace(CLAIM.test, a=name)) for name in ("small", "wide")]
    claim = replace(CLAIM, test=None, parts=tuple(parts), rungs=True)
    up, down = [0.5, 0.6, 0.7], [-0.5, -0.6, -0.7]
    for before, after, same in (
        ({"small": up}, {"small": up, "wide": down}, True),
        ({"small": up}, {"small": down, "wide": down}, False),
        ({"small": up, "wide": up}, {"small": up}, False),
        ({}, {"small": up}, False),  # there is nothing to compare
    ):
        assert publishing.unchanged(claim, run(before, range(3)), run(after, range(3))) is same


def other_code(content):
    content["fingerprint"]["package"] = "another"


@pytest.mark.parametrize(
    ("moved", "reason"), [(0.0, ""), (1e-12, ""), (1e-3, "measured otherwise than locked")]
)
def test_a_rerun_by_other_code_carries_the_locks_over_where_the_numbers_are_the_same(ran, moved, reason):
    publishing.publish(coin(), "laptop")
    first, again = (chapter_runs.published(coin(), "laptop").results for _ in range(2))
    other_code(again.header)
    values = again.entries["heads"]["values"]
    values[0] += moved
    again.entries["heads"]["unit"] = first.entries["heads"]["unit"] = ""
    events = publishing.publishing(coin(), "laptop", first, again)
    assert ["carried" in event.values() for event in events] == ([False] if reason else [True, False])
    locks.append(events)
    assert locks.standing(claims.load_claims()[0], again, locks.read()).exploratory == reason


def test_shares_must_be_the_same_to_the_last_bit_and_rounding_errors_need_not(ran):
    a, b = (chapter_runs.fresh_run(coin(), "laptop").results for _ in range(2))
    claim = claims.load_claims()[0]
    assert publishing.unchanged(claim, a, b)
    b.entries["heads"]["values"][0] += 1e-12
    assert not publishing.unchanged(claim, a, b)


def test_verdicts_that_turned_since_their_run_are_named(ran, capsys):
    publishing.publish(coin(), "laptop")
    assert check.turned([chapter_runs.published(coin(), "laptop")]) == []
    edit_results(lambda content: content["judged"]["coin-fair"].update(verdict="not reproduced"))
    publishing.publish(coin(), "laptop")
    main(["check"])
    words = "note laptop/part/coin: verdicts that turned since the run: coin-fair reproduced (“not repro"
    assert words in capsys.readouterr().out


def test_the_command_says_what_it_wrote_or_that_nothing_is_missing(tiny):
    done = bnbook("lock", "coin", root=tiny)
    assert done.stdout == "locked coin-fair (paper n = 5, laptop n = 5)\n"
    assert "nothing to lock: part/coin has" in bnbook("lock", root=tiny, code=0).stdout


def test_a_lock_has_to_be_committed_before_its_run_and_a_publication_need_not(ran):
    assert not gate.commit()["dirty"]
    publishing.publish(coin(), "laptop")
    assert not gate.commit()["dirty"]
    edit(ran / "book" / "locks.jsonl", '"seeds":5', '"seeds":4')
    with pytest.raises(BnbookError, match="`previous`"):
        gate.commit()
    edit(ran / "book" / "locks.jsonl", '"seeds":4', '"seeds":5')
    locks.append([{"event": "withdrawn", "chapter": COIN, "claim": "x", "why": "y"}])
    assert gate.commit()["dirty"]


def test_a_lock_is_refused_where_the_published_run_was_put_aside(ran):
    publishing.publish(coin(), "laptop")
    edit(claims_file(ran), "tolerance: 0.2", "tolerance: 0.3")
    chapter_runs.published(coin(), "laptop").results_path.unlink()
    with pytest.raises(BnbookError, match="not the run that was published last.*put it back"):
        locking.lock([coin()], "laptop")


def test_words_that_say_the_same_more_clearly_stand_beside_those_of_the_lock_and_others_are_noted(ran):
    run, old = chapter_runs.fresh_run(coin(), "laptop"), "A coin shows heads half of the time."
    edit(claims_file(ran), f"says: {old}", f"says: Heads fall half of the time.\n  was: {old}")
    (found,) = chapter_runs.chapter_verdicts(run)
    assert (found["says"], found["remark"]) == ("Heads fall half of the time.", "")
    edit(claims_file(ran), f"was: {old}", "was: Heads fall.")
    assert chapter_runs.chapter_verdicts(run)[0]["remark"] == chapter_runs.REWORDED
    edit(claims_file(ran), "  figure: shares", "  figure: shares\n  statement: true\n  condition: it is fair")
    edit(claims_file(ran), "was: Heads fall.", f"was: {old}")
    run = chapter_runs.fresh_run(coin(), "laptop")
    noted = chapter_runs.as_recorded(claims.load_claims(), run.results, "laptop", exact=False)
    stamped(run, lambda content: content.update(judged=noted))
    run = chapter_runs.fresh_run(coin(), "laptop")
    assert chapter_runs.chapter_verdicts(run)[0]["remark"] == ""
    edit(claims_file(ran), "it is fair", "the moon is full")
    assert chapter_runs.chapter_verdicts(run)[0]["remark"] == chapter_runs.REWORDED


def peeked(name="laptop", **changes):
    """The finished run of the fixture as one in runs/NAME, with other fields of its header."""
    source = chapter_runs.fresh_run(coin(), "laptop").results_path
    content = json.loads(source.read_text())
    content["parameters"] |= changes.pop("parameters", {})
    target = chapter_runs.fresh_run(coin(), "laptop", name).results_path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(json.dumps(content | changes))
    return target


def seen_now(locked=False):
    return known().seen(claims.load_claims()[0], locked)


@pytest.mark.parametrize(
    ("name", "changes", "seen"),
    [
        ("laptop", {}, {"laptop": [[0, 4]]}),
        ("mine", {}, {"laptop": [[0, 4]]}),
        ("failed", {}, {"laptop": [[0, 4]]}),
        ("mine", {"parameters": {"tosses": 401}}, {"laptop": [[0, 4]]}),
        ("paper", {"profile": "paper", "parameters": {"tosses": 401}}, {"paper": [[0, 4]]}),
        ("overnight", {"profile": "overnight", "parameters": {"tosses": 401}}, {"overnight": [[0, 4]]}),
        ("smoke", {"profile": "smoke", "parameters": {"tosses": 100}}, {}),
        ("smoke", {"profile": "smoke", "parameters": {"tosses": 400}}, {"laptop": [[0, 4]]}),
        ("smoke", {"profile": "smoke", "parameters": {"tosses": 400, "seeds": 9}}, {"laptop": [[0, 4]]}),
        ("mine", {"profile": "paper"}, {"paper": [[0, 4]], "laptop": [[0, 4]]}),
        ("mine", {"results": {}}, {}),
        ("mine", {"results": 3}, {}),
    ],
)
def test_every_finished_run_counts_as_seen_at_the_profiles_whose_data_it_shows(ran, name, changes, seen):
    moved = peeked("kept", **changes)
    for profile in ("laptop", "smoke"):
        chapter_runs.fresh_run(coin(), profile).results_path.unlink()
    target = chapter_runs.fresh_run(coin(), "laptop", name).results_path
    target.parent.mkdir(parents=True, exist_ok=True)
    moved.rename(target.with_suffix(".failed.json") if name == "failed" else target)
    assert seen_now() == seen


def test_a_published_run_counts_when_its_folder_of_runs_is_gone_but_not_without_what_a_new_claim_reads(ran):
    publishing.publish(coin(), "laptop")
    for profile in ("laptop", "smoke"):
        chapter_runs.fresh_run(coin(), profile).results_path.unlink()
    assert seen_now() == {"laptop": [[0, 4]]}
    edit(claims_file(ran), "a: heads", "a: head")
    assert (seen_now(locked=False), seen_now(locked=True)) == ({}, {"laptop": [[0, 4]]})


def trained(seed, chapter=COIN, label="phase_arm", **settings):
    """A finished training in the store; it trains for as many steps as the tiny book tosses at laptop."""
    arm = {"norm": "batch", "steps": 400, "data": "mnist"} | settings
    about = {label: arm, "seed": seed, "data": "d", "code": "c", "torch": "t", "device": "cpu", "threads": 1}
    name = store.key(about)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BNBOOK_CHAPTER", chapter)
        store.write(name, {"x": np.zeros(1)}, seconds=1.0, about=about)
    return name


@pytest.fixture
def trains(tiny):
    """The tiny book, its tosses called steps: 100 at smoke, 400 at laptop, 1000 at paper."""
    path = tiny / "book" / "part" / "coin.md"
    path.write_text(path.read_text().replace("tosses", "steps"))
    edit(claims_file(tiny), "tolerance: 0.2}", "tolerance: 0.2, nonfinite: 0.0}")
    return tiny


@pytest.mark.parametrize(
    ("made", "seen"),
    [
        ([dict(seed=3), dict(seed=4), dict(seed=9)], {"laptop": [[3, 4], [9, 9]]}),
        ([dict(seed=3, steps=1000)], {"paper": [[3, 3]]}),
        ([dict(seed=3, steps=100)], {}),  # a smoke run's
        ([dict(seed=3, steps=77)], {"laptop": [[3, 3]], "paper": [[3, 3]]}),  # nobody plans it: who knows
        ([dict(seed=3, data="digits-standin")], {}),
        ([dict(seed=3, label="linear_arm")], {"laptop": [[3, 3]]}),
        ([dict(seed=3, chapter="part/dice")], {}),
        ([dict(seed=3, chapter="part/dice"), dict(seed=4)], {"laptop": [[3, 4]]}),  # the same arm
        ([dict(seed=3, chapter="", data="mnist-auto"), dict(seed=4)], {"laptop": [[3, 4]]}),
        ([dict(seed=3, chapter="part/dice", norm="none"), dict(seed=4)], {"laptop": [[4, 4]]}),
    ],
)
def test_a_finished_training_of_the_chapter_counts_as_seen(trains, made, seen):
    for each in made:
        trained(**each)
    path = store.path_of("damaged")
    path.write_bytes(b"not a training")
    assert seen_now() == seen == seen_now(locked=True)
    assert ("seen" in locking.lock([coin()], "laptop")[0]) is bool(seen)
    assert locks.read().lines[-1]["seen"] == seen


def test_a_training_that_was_published_counts_and_that_of_a_published_rung_stays(trains):
    name = trained(5)
    paths.trainings_folder().mkdir(parents=True)
    store.path_of(name).rename(paths.trainings_folder() / f"{name}.npz")
    assert seen_now() == {"laptop": [[5, 5]]}
    claim = replace(claims.load_claims()[0], rungs=True)
    assert known().seen(claim, locked=False) == known().seen(claim, locked=True) == {"laptop": [[5, 5]]}
    header_ = {"provenance": {"store": {"kept": [name]}}, "content": "x"}
    path = chapter_runs.published(coin(), "laptop").results_path
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps({"schema": 1, "results": {}} | header_))
    assert known().seen(claim, locked=True) == {}
    assert known().seen(claim, locked=False) == {"laptop": [[5, 5]]}


def test_only_what_is_there_when_a_test_is_locked_counts(trains):
    locking.lock([coin()], "laptop")
    trained(0)
    assert locking.lock([coin()], "laptop")[0].startswith("nothing to lock")
    assert [line["seen"] for line in locks.read().lines] == [{}]


def test_a_changed_test_needs_its_reason_and_no_other_change_does(ran, capsys):
    publishing.publish(coin(), "laptop")
    edit(claims_file(ran), "tolerance: 0.2", "tolerance: 0.3")
    assert "another test than its locks have" in problems() and main(["check"]) == 1
    before = locks.path().read_text()
    for why in ([], ["--why", ""], ["--why", " \u2028 "]):
        capsys.readouterr()
        assert main(["lock", "coin", *why]) == 2
        said = capsys.readouterr().err
        assert "the test of coin-fair changed since it was written down; expected the reason" in said
        assert said.count("\n") == 1 and locks.path().read_text() == before
    assert main(["lock", "coin", "--why", "wider | <b>*than*</b> {{ ci:heads }}\u2028$x$"]) == 0
    assert "after its data" in capsys.readouterr().out
    assert problems() == "" and shown() == "test changed after its data"
    (found,) = chapter_runs.chapter_verdicts(chapter_runs.published(coin(), "laptop"))
    day = locks.read().lines[-1]["date"][:10]
    assert found["changed"] == [
        f"{day}, after some of its data: wider | <b>*than*</b> {{{{ ci:heads }}}} $x$"
    ]
    edit(ran / "book" / "part" / "coin.md", "seeds: 5}\n    paper", "seeds: 9}\n    paper")
    assert main(["lock", "coin"]) == 0 and len(locks.deviations(locks.read().lines)) == 1
    assert "changed coin-fair (seeds 5 to 9 after its data" in capsys.readouterr().out
    table = claims.markdown_table([found])
    assert "&#60;b&#62;&#42;than" in table and table.count("\n") == 2
    assert not [sign for sign in ("<b>", "{{", "$x$") if sign in table]
    for shown_there in (verdicts.macro("claim.html.j2", "place")(found), verdicts.folded(found)):
        assert "&lt;b&gt;*than*" in shown_there and "<b>" not in shown_there
        assert "test changed" in shown_there.lower()


def test_what_the_seeds_can_show_is_said_when_asked_and_nothing_is_written(ran, capsys):
    """By the spread of the published run, else of any that is here, else of what is given; what else is: test_cli.py."""
    before = locks.path().read_text()

    def said(*words):
        assert main(["lock", "coin", "--power", *words]) == 0 and locks.path().read_text() == before
        first, *rest = capsys.readouterr().out.splitlines()
        assert first == "coin-fair"
        return "; ".join(rest)

    assert said().startswith("    with 5 seeds: mean within 0.5 ± 0.1")
    assert said().endswith("shows in 80 of 100 runs, by the spread of the laptop run in runs/laptop")
    assert said("--spread", "coin-fair=0.05").endswith("by the spread of 0.05 that was given")
    assert "even the middle of the margin shows in fewer" in said("--spread", "coin-fair=0.5")
    shutil.copytree(ran / "runs" / "smoke", ran / "executed" / "paper")
    assert said().endswith("by the spread of the published paper run")
    for left in ("runs", "executed"):
        shutil.rmtree(ran / left)
    assert "no earlier run says how far seeds spread; --spread coin-fair=NUMBER says it" in said()


def test_claims_that_are_locked_at_one_stroke_are_one_line(ran):
    """What had been seen or changed of some alone makes a second one."""
    one = claims_file(ran).read_text().partition("claims:\n")[2]
    more = "".join(one.replace("coin-fair", f"coin-{name}") for name in ("fairer", "fairest"))
    claims_file(ran).write_text(claims_file(ran).read_text() + more)
    for name in ("laptop", "smoke"):
        chapter_runs.fresh_run(coin(), name).results_path.unlink()
    said = locking.lock([coin()], "laptop")
    assert [line.partition(" (")[0] for line in said] == ["locked coin-fairer", "locked coin-fairest"]
    claims_file(ran).write_text(claims_file(ran).read_text().replace("tolerance: 0.2", "tolerance: 0.3", 1))
    locking.lock([coin()], "laptop", "wider")
    assert [len(line.tests) for line in locks.read().lines] == [1, 2, 1]


@pytest.mark.parametrize(
    ("published", "named", "lines"), [(True, False, 0), (False, False, 1), (False, True, 1)]
)
def test_other_code_alone_is_locked_before_a_run_and_not_by_the_way(ran, published, named, lines):
    """Where something is published and all chapters are locked, nothing is written for code that has changed, although the
    seeds to come are others than those that were published."""
    if published:
        publishing.publish(coin(), "laptop")
    chapter = ran / "book" / "part" / "coin.md"
    edit(chapter, "import numpy as np", "import numpy as np\n\nOTHER = 1")
    before = len(locks.read().lines)
    locking.lock([coin()], "paper", named=named)
    assert len(locks.read().lines) - before == lines
