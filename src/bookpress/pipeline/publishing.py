"""A passed run taken over into executed/, with its trainings and its draws; what of executed/ is amiss."""

from __future__ import annotations

import hashlib
import json
import shutil
import tempfile
from pathlib import Path
from typing import Any

from bookpress import atomic, claims, paths, results, stamp
from bookpress.atomic import kept
from bookpress.book import command_name
from bookpress.claims import Claim, locks
from bookpress.claims.draws import is_in
from bookpress.claims.locks import ranges, same_numbers, short
from bookpress.errors import PressError, reason
from bookpress.pipeline import gate
from bookpress.pipeline.chapter_runs import Evidence, fresh_run, kept_runs, move, published
from bookpress.pipeline.chapters import Chapter
from bookpress.profiles import PUBLISHED
from bookpress.results import Results
from bookpress.runs import store


def take_over(run: Evidence) -> None:
    """Copy the trainings that a run keeps into executed/trainings/, each named by all that it rests on.

    PressError for one that the store has no longer, or that is not what its name says.
    """
    for name in _named(run.results):
        target = paths.trainings_folder() / f"{name}.npz"
        if target.is_file():
            continue
        path = store.path_of(name)
        wrong = store.problem(name, path.read_bytes()) if path.is_file() else "not in the results store"
        if wrong:
            raise PressError(f"training {name[:12]} of {run.chapter.name} is {wrong}; run the chapter again")
        atomic.write_bytes(target, path.read_bytes())


def tidy() -> None:
    """Remove what no published run keeps any more; nothing while a published run cannot be read."""
    wanted, unread = _wanted()
    for path in [] if unread else paths.trainings_folder().glob("*.npz"):
        if path.stem not in wanted:
            path.unlink()


def kept_problems() -> list[str]:
    """Trainings that are missing, that no published run keeps, or that are not what their names say; nothing but
    the published runs that cannot be read, while there are any."""
    wanted, unread = _wanted()
    if unread:
        return [f"which of them are kept cannot be told: {line}" for line in unread]
    there = {path.stem: path for path in sorted(paths.trainings_folder().glob("*.npz"))}
    held = {name: path.read_bytes() for name, path in there.items() if name in wanted}

    def broken() -> dict[str, str]:
        return {name: wrong for name, each in held.items() if (wrong := store.problem(name, each))}

    hashes = [
        (name, hashlib.sha256(each).hexdigest()) for name, each in held.items()
    ]  # to unpack them takes a second
    amiss = kept("trainings", stamp.digest([hashes, gate.code_here()]), broken)
    found = [f"trainings/{n}.npz is missing; publish its chapter again" for n in sorted(wanted - set(there))]
    found += [
        f"trainings/{n}.npz belongs to no published run; remove it" for n in sorted(set(there) - wanted)
    ]
    return found + [f"trainings/{n}.npz is {why}; publish its chapter again" for n, why in amiss.items()]


def _wanted() -> tuple[set[str], list[str]]:
    """Names of the trainings that the published runs keep; why results cannot be read, one line a file."""
    wanted, unread = set(), []
    for path in (p for each in PUBLISHED for p in sorted((paths.executed_folder() / each).glob("*/*.json"))):
        try:
            wanted |= {*_named(results.read(path))}
        except PressError as error:
            unread.append(str(error))
    return wanted, unread


def _named(recorded: results.Results) -> list[str]:
    return recorded.header.get("provenance", {}).get("store", {}).get("kept", [])


# ---- Draws are kept: what a published run gave stays beside the one that takes its place, as numbers only ----------

#: Of a run's header and of its provenance, what a draw keeps.
HEADER = ("chapter", "profile", "parameters", "fingerprint", "locks", "content")
MADE = ("commit", "date", "device", "threads", "kernels", "platform")


def with_replaced(chapter: Chapter, old: Results, new: Results) -> list[Results]:
    """The draws of a chapter once `new` takes the place of the published run `old`, the oldest first.

    Of `old` all is kept that a claim reads or could ask of (one number a seed), unless all of it that `new` has is
    the same there: a run from the results store is no other draw, nor are fewer seeds of the same trainings. An
    exact chapter, or one without claims, has no draws.
    """
    read = {name for claim in claims.chapter_claims(chapter.name) for name in claim.result_names()}
    if chapter.exact or not read:
        return []
    names = [name for name in old if name in read or old[name].ndim == 1]
    header = {key: old.header[key] for key in HEADER if key in old.header}
    header["provenance"] = {key: value for key, value in old.header["provenance"].items() if key in MADE}
    entries = {name: {key: old.entries[name][key] for key in ("values", "unit", "seeds")} for name in names}
    kept = Results(header, entries)
    before = [draw for draw in old.draws if draw.header["content"] != old.header["content"]]
    return [each for each in (*before, kept) if not is_in(each, new, [name for name in each if name in new])]


def write(path: Path, found: list[Results]) -> None:
    """A line for each draw, with its own hash; no file where there is none."""
    if not found:
        path.unlink(missing_ok=True)
        return
    signed = [
        {"header": draw.header | {"digest": results.draw_digest(draw)}, "results": draw.entries}
        for draw in found
    ]
    lines = ",\n".join(json.dumps(draw, separators=(",", ":")) for draw in signed)
    path.parent.mkdir(parents=True, exist_ok=True)
    atomic.write_text(path, f'{{"draws":[\n{lines}\n]}}\n')


# ---- What a publication adds to the locks: the run, and the claims whose numbers it left as they were --------------

#: Of an identity's tolerance: rounding errors differ from machine to machine, and mean the same.
ROUNDING = 1e-3


def publishing(chapter: Chapter, profile: str, old: Results | None, new: Results) -> list[dict[str, Any]]:
    """The events of a publication: the claims whose numbers are those of the run before, and the run.

    PressError where a result has lost seeds although the parameters are the same, or a rung is gone.
    """
    events = []
    if old is not None:
        _require_no_seed_lost(chapter, old, new)
        same = [claim.id for claim in remeasured(chapter, profile, old, new) if unchanged(claim, old, new)]
        if same:
            about = {"event": "carried", "chapter": chapter.name, "profile": profile, "claims": same}
            was, now = ([*locks.run_measure(run.header)] for run in (old, new))
            events.append(about | {"was": was, "now": now})
    seeds = {seed for entry in new.entries.values() for seed in entry["seeds"]}
    about = {"event": "published", "chapter": chapter.name, "profile": profile}
    return [*events, about | {"content": short(new.header["content"]), "seeds": ranges(seeds)}]


def _require_no_seed_lost(chapter: Chapter, old: Results, new: Results) -> None:
    own = (claim for claim in claims.chapter_claims(chapter.name) if claim.rungs)
    judged = {name for claim in own for name in claim.result_names()}
    if gone := sorted(judged & set(old) - set(new)):
        raise PressError(
            f"{chapter.name}: result {gone[0]} of the published run is gone, by which a claim is judged at "
            "its size; expected every size that was published: run it with them"
        )
    alike = old.header.get("parameters") == new.header.get("parameters")
    for name in set(old) & set(new) if alike else ():
        if lost := sorted(set(old.entries[name]["seeds"]) - set(new.entries[name]["seeds"])):
            raise PressError(
                f"{chapter.name}: result {name} lacks the seeds {lost} of the published run, with the same "
                "parameters; expected all that were planned: run it again"
            )


def remeasured(chapter: Chapter, profile: str, old: Results, new: Results) -> list[Claim]:
    """Claims that the new run measures in a way that no lock of theirs knows, while it knows the old."""
    chain, was, now = locks.read(), locks.run_measure(old.header), locks.run_measure(new.header)

    def is_otherwise(claim: Claim) -> bool:
        own = (line for line in chain.of_claim(claim.id) if line.tests)
        known = [same_numbers(line, claim.id, chain, profile) for line in own]
        return any(was in each and now not in each for each in known)

    return [claim for claim in claims.chapter_claims(chapter.name) if is_otherwise(claim)]


def unchanged(claim: Claim, old: Results, new: Results) -> bool:
    """Whether all that the claim reads has the same numbers on the seeds of the run before; rungs that only
    the new one has reached were not seen."""
    exact = [test.tolerance for test in claim.tests if test.kind == "identity"]
    slack = ROUNDING * max(exact, default=0.0)
    names = [name for name in claim.result_names() if not claim.rungs or name in old]
    return bool(names) and is_in(old, new, names, slack)


def words(evidence: Evidence) -> list[str]:
    """What a publication did to the standing of the chapter's claims."""
    chain, name = locks.read(), evidence.chapter.name
    carried = [line for line in chain.of_chapter(name)[-2:-1] if line.event == "carried"]
    lines = [f"  measured otherwise, same numbers: {len(line['claims'])} claims" for line in carried]
    standing = {
        each.id: locks.standing(each, evidence.results, chain) for each in claims.chapter_claims(name)
    }
    late = ((name, stands.exploratory) for name, stands in standing.items() if stands.exploratory)
    return lines + [f"  exploratory: {name} ({why})" for name, why in late]


# ---- Take a passed run over into executed/, the committed evidence -------------------------------------------------

LARGEST_MIB = 40


def publish(chapter: Chapter, profile: str) -> Evidence:
    """Copy the chapter's fresh run at `profile` to executed/; the locks get its line.

    Raises PressError for a smoke run, a run with other parameters than the profile's, and a run that fails
    the gate.
    """
    if profile not in PUBLISHED:
        known = ", ".join(PUBLISHED[::-1])
        words = f"a {profile} run is no evidence and is never published; expected --profile one of {known}"
        raise PressError(words)
    run = fresh_run(chapter, profile)
    if not run.exists:
        again = f"{command_name()} run {chapter.name} --profile {profile}"
        raise PressError(f"{chapter.name} has no {profile} run; run it first: {again}")
    wrong = ""
    if found := [*gate.problems(run), *gate.scrubbed(run)]:
        wrong = f" does not pass the gate: {'; '.join(found)}"
    elif any(gate.default_parameters(run)):
        wrong = ": the run has its own parameters (--set, --seeds or --params); run it without"
    elif (made := run.results.header["provenance"])["dirty"]:
        wrong = f": the run was made from uncommitted code ({made['commit'][:10]}); commit, then run it again"
    if wrong:
        raise PressError(f"{chapter.name}{wrong}")
    target = published(chapter, profile)
    old = target.results if target.results_path.is_file() else None
    events = publishing(chapter, profile, old, run.results)
    take_over(run)
    try:
        with locks.alone():
            _put(run, old, target)
            locks.append(events)
    except OSError as error:
        raise PressError(
            f"{chapter.name} could not be published ({reason(error)}); mend that and publish it again, or put back what "
            f"was: git checkout executed book/{locks.NAME}"
        ) from None
    tidy()
    return published(chapter, profile)


def _put(run: Evidence, old: Results | None, target: Evidence) -> None:
    """The run's files and its draws in place of those of the run before, each whole: they are written beside them
    first."""
    target.folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.folder, prefix=".publishing.") as made:
        ready = Evidence(run.chapter, Path(made))
        ready.notebook_path.parent.mkdir(parents=True)
        shutil.copy2(run.notebook_path, ready.notebook_path)
        shutil.copy2(run.results_path, ready.results_path)
        # a draw that is the published run itself does not count twice
        draws = with_replaced(run.chapter, old, run.results) if old is not None else []
        write(results.draws_path(target.results_path), draws)
        move(ready, target)


def executed_problems(
    chapters: list[Chapter], runs: dict[str, Evidence] | None = None, beside: bool = True
) -> dict[str, list[str]]:
    """For each published run (`profile/chapter`) what the gate says now; `beside` them of trainings and files of no
    chapter."""
    folder, runs = paths.executed_folder(), kept_runs(chapters) if runs is None else runs
    found = {name: gate.problems(evidence) for name, evidence in runs.items()}
    if not beside:
        return found
    expected = {paths.rewritten(), folder / stamp.FROM_BEFORE, *paths.trainings_folder().glob("*.npz")}
    for run in runs.values():
        expected |= {run.notebook_path, run.results_path, results.draws_path(run.results_path)}
    files = [path for path in folder.rglob("*") if path.is_file()] if folder.is_dir() else []
    files = [path for path in files if "/.publishing." not in path.as_posix()]  # of one that was killed
    strays = sorted(path.relative_to(folder).as_posix() for path in files if path not in expected)
    lines = [f"{name} belongs to no chapter; remove it" for name in strays]
    if (megabytes := sum(path.stat().st_size for path in files) / 2**20) > LARGEST_MIB:
        lines.append(f"executed/ has {megabytes:.0f} MiB; at most {LARGEST_MIB} are allowed")
    others = {"executed": lines, "trainings": kept_problems()}
    return found | {name: problems for name, problems in others.items() if problems}
