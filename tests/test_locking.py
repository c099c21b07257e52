"""bnbook lock, run, publish and check together: lies that were planted, and reruns that are none."""

from __future__ import annotations

import json
import re

import pytest
from conftest import bnbook

from bnbook import claims, results
from bnbook.claims import locks
from bnbook.cli import main
from bnbook.errors import BnbookError
from bnbook.pipeline.chapters import chapters, evidence, verdicts
from bnbook.pipeline.gate import carrying, header, locking, publish
from bnbook.pipeline.gate.seen import Known
from bnbook.pipeline.pages import ledger_checks

COIN = "part/coin"


def coin():
    return chapters.select([COIN])[0]


def edit(path, old, new):
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def claims_file(root):
    return root / "book" / "part" / "coin.claims.yml"


def known():
    planned = {profile: locks.plan(coin().parameters(profile)) for profile in ("laptop", "paper")}
    return Known(coin(), locks.read(), planned)


def shown(profile="laptop"):
    """Why the chapter's one verdict is exploratory, or nothing."""
    return verdicts.chapter_verdicts(evidence.published(coin(), profile))[0].exploratory


def problems():
    return "; ".join(ledger_checks.unlocked([coin()]))


def stamped(run, change):
    """A run whose results were changed and whose hashes were made to fit."""
    content = json.loads(run.results_path.read_text())
    change(content)
    run.results_path.write_text(json.dumps(content))
    content["content"] = header.content_digest(results.read(run.results_path))
    run.results_path.write_text(json.dumps(content))


def test_what_is_locked_before_its_run_is_not_exploratory(ran, capsys):
    publish.publish(coin(), "laptop")
    assert shown() == "" and problems() == "" and main(["check"]) == 0
    assert "ok  1 locks in 2 lines" in capsys.readouterr().out
    assert main(["check", "coin"]) == 0 and "ok  laptop/part/coin" in capsys.readouterr().out
    assert [line.event for line in locks.read().lines] == ["locked", "published"]
    assert "nothing to lock: part/coin" in locking.lock([coin()], "laptop")[0]


def test_a_test_of_a_result_that_no_run_has_is_locked_with_a_word(ran, capsys):
    edit(claims_file(ran), "a: heads", "a: head")
    assert main(["lock", "coin", "--why", "a slip"]) == 0
    said = capsys.readouterr().out
    assert (
        "here has 'head' (did you mean 'heads'?); see whether bnbook run" in said and "git checkout" in said
    )
    edit(claims_file(ran), "a: head,", "a: heads,")
    assert main(["lock", "coin", "--why", "it"]) == 0 and "note" not in capsys.readouterr().out


def test_a_threshold_that_moved_is_refused_until_it_is_locked_and_exploratory_then(ran, capsys):
    publish.publish(coin(), "laptop")
    edit(claims_file(ran), "tolerance: 0.2", "tolerance: 0.3")
    assert "another test than its locks have" in problems() and main(["check"]) == 1
    assert main(["lock", "coin", "--why", "wider"]) == 0
    assert "wider after its data" in capsys.readouterr().out
    assert problems() == "" and shown() == "test changed after its data"


def test_a_result_that_is_stamped_again_under_the_new_test_stays_exploratory(ran):
    publish.publish(coin(), "laptop")
    edit(claims_file(ran), "tolerance: 0.2", "tolerance: 0.3")
    locking.lock([coin()], "laptop", "wider")
    head, run = locks.read().head(COIN), evidence.fresh_run(coin(), "laptop")
    stamped(run, lambda content: content.update(locks=head))
    publish.publish(coin(), "laptop")
    assert shown() == "test changed after its data"


def test_a_seed_that_was_dropped_shows_although_the_hashes_fit(ran):
    publish.publish(coin(), "laptop")

    def drop(content):
        for entry in content["results"].values():
            entry["values"], entry["seeds"] = entry["values"][:-1], entry["seeds"][:-1]

    stamped(evidence.published(coin(), "laptop"), drop)
    assert "is not the run that was published last" in problems()
    publish.publish(coin(), "laptop")
    stamped(evidence.fresh_run(coin(), "laptop"), drop)
    with pytest.raises(BnbookError, match=r"lacks the seeds \[4\] of the published run"):
        publish.publish(coin(), "laptop")


def test_a_claim_that_is_gone_leaves_a_line(ran):
    publish.publish(coin(), "laptop")
    text = claims_file(ran).read_text().replace("id: coin-fair", "id: coin-fairer")
    claims_file(ran).write_text(text)
    assert "coin-fair is gone without a word" in problems()
    written = locking.lock([coin()], "laptop")
    words = [re.sub(r" \(.*", "", line) for line in written if "seeds:" not in line]
    assert words == ["locked coin-fairer", "withdrawn coin-fair"]
    assert problems() == "" and shown() == "test written after its data"


def test_a_head_that_is_in_no_chain_is_refused(ran):
    stamped(evidence.fresh_run(coin(), "laptop"), lambda content: content.update(locks="0" * 64))
    publish.publish(coin(), "laptop")
    assert "began under a lock that is not in the file" in problems()


def test_a_rung_that_no_run_has_reached_is_locked_anew_and_one_that_is_published_stays(ran):
    edit(claims_file(ran), "claims:", "rungs: {small: Small., wide: Wide.}\nclaims:")
    edit(claims_file(ran), "a: heads", 'a: "heads.{rung}"')
    locking.lock([coin()], "laptop", "at two sizes")

    def run(name, **print_):
        found = evidence.fresh_run(coin(), "laptop").results
        found.entries[name] = found.entries.pop("heads")
        found.header["fingerprint"] |= print_
        return found

    def stands(found):
        found.header["locks"] = locks.read().head(COIN)
        return locks.standing(claims.load_claims()[0], found, locks.read()).exploratory

    other, reached = run("else", package="q"), run("heads.small", package="q")
    events = carrying.publishing(coin(), "laptop", run("else"), other)
    assert [event["event"] for event in events] == ["published"]
    locks.append(events)
    assert (stands(other), stands(reached)) == ("", "measured otherwise than locked")
    assert known().seen(claims.load_claims()[0], locked=True) == {}
    with pytest.raises(BnbookError, match="result heads.small of the published run is gone"):
        carrying.publishing(coin(), "laptop", reached, other)


def other_code(content):
    content["fingerprint"]["package"] = "another"


@pytest.mark.parametrize(
    ("moved", "reason"), [(0.0, ""), (1e-12, ""), (1e-3, "measured otherwise than locked")]
)
def test_a_rerun_by_other_code_carries_the_locks_over_where_the_numbers_are_the_same(ran, moved, reason):
    publish.publish(coin(), "laptop")
    first, again = (evidence.published(coin(), "laptop").results for _ in range(2))
    other_code(again.header)
    values = again.entries["heads"]["values"]
    values[0] += moved
    again.entries["heads"]["unit"] = first.entries["heads"]["unit"] = ""
    events = carrying.publishing(coin(), "laptop", first, again)
    assert ["carried" in event.values() for event in events] == ([False] if reason else [True, False])
    locks.append(events)
    assert locks.standing(claims.load_claims()[0], again, locks.read()).exploratory == reason


def test_shares_must_be_the_same_to_the_last_bit_and_rounding_errors_need_not(ran):
    a, b = (evidence.fresh_run(coin(), "laptop").results for _ in range(2))
    claim = claims.load_claims()[0]
    assert carrying.unchanged(claim, a, b)
    b.entries["heads"]["values"][0] += 1e-12
    assert not carrying.unchanged(claim, a, b)


def test_more_seeds_are_locked_as_what_they_are(ran):
    publish.publish(coin(), "laptop")
    edit(ran / "book" / "part" / "coin.md", "seeds: 5}\n    paper", "seeds: 9}\n    paper")
    assert "changed coin-fair (seeds 5 to 9 after its data" in locking.lock([coin()], "laptop")[0]


def test_rules_that_changed_after_a_run_are_named(ran, capsys):
    def others(content):
        content["rules"] = "others"

    def ruled(content):
        others(content)
        content["judged"]["coin-fair"]["verdict"] = "not reproduced"

    publish.publish(coin(), "laptop")
    stamped(evidence.published(coin(), "laptop"), others)
    assert ledger_checks.other_rules([coin()]) == [], "no verdict turned, so there is nothing to do"
    stamped(evidence.published(coin(), "laptop"), ruled)
    main(["check"])
    words = "note laptop/part/coin was judged by other rules; turned since: coin-fair reproduced (“not repro"
    assert words in capsys.readouterr().out


def test_the_command_says_what_it_wrote_or_that_nothing_is_missing(tiny):
    done = bnbook("lock", "coin", root=tiny)
    assert done.stdout == (
        "locked coin-fair (paper n = 5, laptop n = 5)\n"
        "    with 5 seeds: no earlier run says how far seeds spread\n"
    )
    assert "nothing to lock: part/coin has" in bnbook("lock", root=tiny, code=0).stdout


def test_a_lock_has_to_be_committed_before_its_run_and_a_publication_need_not(ran):
    assert not header.commit()["dirty"]
    publish.publish(coin(), "laptop")
    assert not header.commit()["dirty"]
    edit(ran / "book" / "locks.jsonl", '"seeds":5', '"seeds":4')
    with pytest.raises(BnbookError, match="`previous`"):
        header.commit()
    edit(ran / "book" / "locks.jsonl", '"seeds":4', '"seeds":5')
    locks.append([{"event": "withdrawn", "chapter": COIN, "claim": "x", "why": "y"}])
    assert header.commit()["dirty"]


def test_a_lock_is_refused_where_the_published_run_was_put_aside(ran):
    publish.publish(coin(), "laptop")
    edit(claims_file(ran), "tolerance: 0.2", "tolerance: 0.3")
    evidence.published(coin(), "laptop").results_path.unlink()
    with pytest.raises(BnbookError, match="not the run that was published last.*put it back"):
        locking.lock([coin()], "laptop")


def test_a_run_from_before_the_words_were_noted_is_held_to_those_of_its_lock(ran):
    stamped(evidence.fresh_run(coin(), "laptop"), lambda content: content.pop("judged"))
    run = evidence.fresh_run(coin(), "laptop")
    assert verdicts.chapter_verdicts(run)[0].remark == ""
    edit(claims_file(ran), "half of the time", "never")
    assert verdicts.chapter_verdicts(run)[0].remark == verdicts.REWORDED


def test_words_that_say_the_same_more_clearly_stand_beside_those_of_the_lock(ran):
    run, old = evidence.fresh_run(coin(), "laptop"), "A coin shows heads half of the time."
    edit(claims_file(ran), f"says: {old}", f"says: Heads fall half of the time.\n  was: {old}")
    (found,) = verdicts.chapter_verdicts(run)
    assert (found.claim.says, found.remark) == ("Heads fall half of the time.", "")
    edit(claims_file(ran), f"was: {old}", "was: Heads fall.")
    assert verdicts.chapter_verdicts(run)[0].remark == verdicts.REWORDED


def test_a_condition_that_changed_after_the_run_is_noted(ran):
    edit(claims_file(ran), "  figure: shares", "  figure: shares\n  statement: true\n  condition: it is fair")
    run = evidence.fresh_run(coin(), "laptop")
    noted = verdicts.as_recorded(claims.load_claims(), run.results, "laptop", exact=False)
    stamped(run, lambda content: content.update(judged=noted))
    run = evidence.fresh_run(coin(), "laptop")
    assert verdicts.chapter_verdicts(run)[0].remark == ""
    edit(claims_file(ran), "it is fair", "the moon is full")
    assert verdicts.chapter_verdicts(run)[0].remark == verdicts.REWORDED
