"""Whether a run judges a claim by a test that stood before its data.

A line of the locks counts for a run if it has the claim's present test, stands before the head of the chain
that the run noted when it started, and none of the run's seeds had been looked at when it was written. Then
the run has to measure in the way that was locked, or in one that gave the same numbers, at a profile that was
planned, with the planned number of seeds and from the first that was planned. More seeds than planned are not
tested in any sequential way: the new ones alone decide, under a lock of their own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bnbook.claims.claim import Claim
from bnbook.claims.locks.chain import Chain
from bnbook.claims.locks.lines import Line, short
from bnbook.fingerprint import digest
from bnbook.results import Results

UNLOCKED = "its test is not locked"
LATE = "test locked after the run began"
REMEASURED = "measured otherwise than locked"
RESET = "other settings than locked"
OTHER_SEEDS = "other seeds than planned"
FIRST_SEED = "first_seed"
UNPLANNED = "no run at this profile was planned"


@dataclass(frozen=True)
class Standing:
    """`exploratory` says why in a few words, "" where the test is locked; `date` and `line` are those of the
    lock that counts."""

    exploratory: str = ""
    date: str = ""
    line: int = 0


def standing(claim: Claim, recorded: Results, chain: Chain) -> Standing:
    """How the verdict on a claim by these results stands; of several locks of one test the first counts."""
    own = chain.of_claim(claim.id)
    candidates = [line for line in own if line.tests and line["test"] == short(claim.test_hash)]
    reasons = []
    for line in candidates:
        reason = _against(line, own, claim, recorded, chain)
        if not reason:
            return Standing("", line["date"], line.number)
        reasons.append(reason)
    if reasons and not is_reached(claim, recorded):  # what stands on no data needs no lock before them
        return Standing("", candidates[-1]["date"], candidates[-1].number)
    return Standing(next((each for each in reasons if each != LATE), LATE) if reasons else UNLOCKED)


def _against(line: Line, own: list[Line], claim: Claim, recorded: Results, chain: Chain) -> str:
    """Why a lock does not count for a run, or nothing."""
    header = recorded.header
    used, profile = seeds_used(claim, recorded), header.get("profile", "smoke")
    seen = line["seen"].get(profile) if profile in line["planned"] else sum(line["seen"].values(), [])
    if any(first <= seed <= last for seed in used for first, last in seen or ()):
        return _late(line, own)
    if not _stood_before(line, header, chain):
        return LATE
    if (planned := line["planned"].get(profile)) is None:
        return "" if profile == "smoke" else UNPLANNED
    now = run_measure(header)
    if now not in same_numbers(line, own, profile):
        return RESET if now[0] == line["measure"] else REMEASURED
    return _other_seeds(claim, recorded, planned)


def _late(line: Line, own: list[Line]) -> str:
    """What came after the data, in a few words; the line's own `why` may be long."""
    if line.get("commit"):
        return line["why"]
    before = [each for each in own if each.tests and each.number < line.number]
    if not before:
        return "test written after its data"
    if before[-1]["test"] != line["test"]:
        return "test changed after its data"
    remeasured = before[-1]["measure"] != line["measure"]
    return f"{'measured otherwise' if remeasured else 'planned anew'} after its data"


def _stood_before(line: Line, header: Mapping[str, Any], chain: Chain) -> bool:
    """A run from before the locks has no head: for it counts what was entered from the history."""
    if "locks" not in header:
        return bool(line.get("commit"))
    head = chain.position(header.get("chapter", ""), header["locks"])
    return head is not None and line.number <= head


def same_numbers(line: Line, own: list[Line], profile: str) -> set[tuple[str, str]]:
    """(measure, settings) that gave the same numbers as those of a lock, by the `carried` lines of its
    claim."""
    found = {(line["measure"], line["planned"][profile]["settings"])} if profile in line["planned"] else set()
    for each in own:
        if each.event == "carried" and each["profile"] == profile and tuple(each["was"]) in found:
            found.add(tuple(each["now"]))
    return found


def run_measure(header: Mapping[str, Any]) -> tuple[str, str]:
    """What a run measured with: hash of its code and the package's, and of its settings."""
    print_, parameters = header.get("fingerprint", {}), header.get("parameters", {})
    return measure(print_), plan(parameters)["settings"]


def measure(fingerprint: Mapping[str, str]) -> str:
    return short(digest([fingerprint.get("code"), fingerprint.get("package")]))


def plan(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """What a lock fixes of a profile: numbers of seeds (parameters named …seeds), the first seeds (…first_seed),
    and a hash of all other parameters."""
    seeds = {name: value for name, value in parameters.items() if is_count_of_seeds(name)}
    first = {name: value for name, value in parameters.items() if name.endswith(FIRST_SEED) and value}
    settings = digest({n: value for n, value in parameters.items() if not is_of_seeds(n) and n != "profile"})
    return {**seeds, **first, "settings": settings[:8]}


def firsts(planned: Mapping[str, Any]) -> set[int]:
    """The seeds from which a plan counts: its first seed, and those of arms that have one of their own."""
    return {planned.get(FIRST_SEED, 0)} | {planned[name] for name in planned if name.endswith(FIRST_SEED)}


def is_count_of_seeds(name: str) -> bool:
    return name == "seeds" or name.endswith("_seeds")


def is_of_seeds(name: str) -> bool:
    """Whether a parameter says how many seeds are drawn, or which."""
    return is_count_of_seeds(name) or name.endswith(FIRST_SEED)


def is_reached(claim: Claim, recorded: Results) -> bool:
    """Whether a run has all that one of the claim's tests reads: of rungs it may have none."""
    return any(set(test.result_names()) <= set(recorded) for test in claim.tests)


def seeds_used(claim: Claim, recorded: Results) -> set[int]:
    """Seeds of the results that a claim reads; a theory's one value beside measured ones has none."""
    listed = [recorded.entries[name]["seeds"] for name in claim.result_names() if name in recorded.entries]
    several = [seeds for seeds in listed if len(seeds) > 1]
    return {seed for seeds in several or listed for seed in seeds}


def _other_seeds(claim: Claim, recorded: Results, planned: Mapping[str, Any]) -> str:
    parameters, used = recorded.header.get("parameters", {}), seeds_used(claim, recorded)
    if used and min(used) not in firsts(planned):
        return OTHER_SEEDS
    counts = {
        len(recorded.entries[name]["seeds"]) for name in claim.result_names() if name in recorded.entries
    }
    for name, count in planned.items():
        now = parameters.get(name)
        if is_count_of_seeds(name) and isinstance(now, int) and now != count and now in counts:
            return f"{now} seeds where {count} were planned"
    return ""
