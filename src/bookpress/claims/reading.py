"""Reading book/PART/CHAPTER.claims.yml, and the copy of it that a notebook carries."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

from bookpress import paths
from bookpress.book import book, chapter_names, folders
from bookpress.claims.claim import Claim
from bookpress.claims.kinds import can_hold, least_seeds
from bookpress.errors import PressError
from bookpress.schema import Entry, Text, model, read_list, valid
from bookpress.texts import parse_yaml, read_text

SUFFIX = ".claims.yml"
#: What stands for the rung in the names of a test's results.
PLACE = "{rung}"


@model
class Head(Entry):
    """A file of claims: the claims, and what its head gives for each of them that does not say it itself."""

    claims: list[Any]
    source: dict[Literal["key", "version"], Text] | None = None
    figure: Any = None
    evidence: Any = None
    statement: Any = None
    scope: Any = None
    rungs: dict[Text, Text] | None = None  # name -> words for it
    nonfinite: Literal["open"] | None = None


def load_claims(path: Path | str | None = None) -> list[Claim]:
    """Read and validate the claims of every chapter, in the book's order, or those of one file, in its own.

    The chapter of a claim is that of its file. Raises PressError, one line, for a file that is missing or belongs
    to no chapter, what `Head` and `Claim` refuse, a doubled id, in the whole book a claim `of` none. Where there is
    no book, the claims are those that the notebook carries.
    """
    try:
        files = _files() if path is None else [Path(path)]
    except PressError:
        if own := [row.claim for row in carried()]:
            return own
        raise
    first: dict[str, Claim] = {}
    for claim in (claim for file in files for claim in _read(file)):
        if claim.id in first:
            places = dict.fromkeys(f"{found.chapter}{SUFFIX}" for found in (first[claim.id], claim))
            raise PressError(
                f"{' and '.join(places)}: claim {claim.id} appears twice; expected every id once"
            )
        first[claim.id] = claim
    for claim in first.values() if path is None else ():
        if claim.of and (claim.of not in first or first[claim.of].rungs):
            expected = "the id of a claim that another chapter judges at one size"
            raise PressError(
                f"{claim.chapter}{SUFFIX}: claim {claim.id} is of {claim.of!r}; expected {expected}"
            )
    return list(first.values())


def chapter_claims(chapter: str) -> list[Claim]:
    """The claims that stand beside one chapter, none where it has no such file."""
    path = paths.book_folder() / f"{chapter}{SUFFIX}"
    return load_claims(path) if path.is_file() else []


def _files() -> list[Path]:
    """The files of claims in the order of the chapters that they stand beside."""
    book, chapters = paths.book_folder(), chapter_names()
    for path in sorted(book.glob(f"**/*{SUFFIX}")):
        if (name := path.relative_to(book).as_posix().removesuffix(SUFFIX)) not in chapters:
            raise PressError(f"{name}{SUFFIX} belongs to no chapter; expected book/{name}.md beside it")
    return [path for name in chapters if (path := book / f"{name}{SUFFIX}").is_file()]


def _read(path: Path) -> tuple[Claim, ...]:
    chapter = f"{path.parent.name}/{path.name.removesuffix(SUFFIX)}"
    text, beside = read_text(path, f"{chapter}{SUFFIX}"), path.with_name(f"{Path(chapter).name}.md")
    plans = (beside, *sorted(beside.parent.glob("_*.yml"))) if beside.is_file() else ()
    return _listed(chapter, text, tuple(read_text(each, each.name) for each in plans))


@lru_cache(maxsize=64)  # by content: one command asks many times, and an edited file is another key
def _listed(chapter: str, text: str, plans: tuple[str, ...]) -> tuple[Claim, ...]:
    """The claims of a file, from its text and those of the chapter and of the settings beside it."""
    file = f"{chapter}{SUFFIX}"
    head = valid(Head, parse_yaml(text, file), file)
    # the most seeds that anything is given, None where no word is said of them; what has steps may diverge
    seeds = max((int(number) for each in plans for number in SEEDS.findall(each)), default=None)
    diverges = bool(plans) and head.nonfinite is None and bool(STEPS.search(plans[0]))
    return read_list(
        Claim,
        head.claims,
        file,
        "claim",
        whole=lambda own: _whole(own, head, chapter),
        wrong=lambda claim: _not_judgeable(claim, seeds, diverges),
    )


def _whole(own: Mapping[str, Any], head: Head, chapter: str) -> dict[str, Any]:
    """A claim as it is written, with what the head of its file gives and its rungs spelled out as parts."""
    if "chapter" in own:
        raise ValueError("it has unknown key chapter; expected none, for its file stands beside its chapter")
    given = {key: getattr(head, key) for key in ("figure", "evidence", "statement", "scope")}
    entry = {key: value for key, value in given.items() if value is not None} | {**own, "chapter": chapter}
    if isinstance(place := own.get("source", {}), (str, Mapping)):
        entry["source"] = {**(head.source or {}), **({"where": place} if isinstance(place, str) else place)}
    if head.rungs is not None or "rungs" in own:
        named = own.get("rungs", list(head.rungs or ()))
        if not isinstance(named, list) or not named or not set(named) <= set(head.rungs or ()):
            known = ", ".join(head.rungs or ())
            raise ValueError(f"sizes {named!r} are unknown; expected a list of some of {known}")
        test = json.dumps(entry.pop("test", None), default=str)
        if PLACE not in test:
            expected = f"`a: speed.{PLACE}.batch`"
            raise ValueError(f"it is judged size by size and no result has {PLACE}; expected {expected}")
        # the rung is put into the names of the results
        parts = [{"says": head.rungs[n], "test": json.loads(test.replace(PLACE, n))} for n in named]
        entry |= {"parts": parts, "rungs": True}
    return entry


# ---- What a chapter plans: a test that its seeds cannot make hold is refused when it is read -------------------------

SEEDS = re.compile(r"^\s*(?:\w+_)?seeds(?:: .*? =|:| =) *(\d+)", re.M)
STEPS = re.compile(r"^(?:\w+_)?steps(?:: .*?)? = ", re.M)


def _not_judgeable(claim: Claim, seeds: int | None, diverges: bool) -> str:
    """With the planned seeds its tests can hold, and each says what a seed without a number counts as."""
    for test in claim.tests:
        if seeds and not claim.out_of_reach and not can_hold(test, seeds):
            least = least_seeds(test)
            return f"with {seeds} seeds its test cannot hold; expected at least {least} seeds, or `out_of_reach: true` beside it"
        if diverges and test.nonfinite is None and not test.exact:
            return (
                "its chapter trains, but its test says nothing of seeds without a finite value; expected "
                "`nonfinite: NUMBER` in the test, or `nonfinite: open` in the head of the file"
            )
    return ""


# ---- What the package's wheel carries of the book, for a notebook may be alone: claims and their verdicts -----------

#: In the package of the wheel that the site offers: chapter -> its claims, and the parameters of the book's run.
CARRIED = "carried.json"


@model
class Carried(Entry):
    """A claim, and what the book's run found: its verdict in words, and effect and verdict of each of its tests; empty
    where there is none."""

    claim: Claim
    verdict: str = ""
    tests: tuple[tuple[str, str], ...] = ()


_carried: dict[str, Carried] = {}
settings: dict[str, dict[str, Any]] = {}  # chapter -> parameters of the book's run, its profile among them


def carry(text: str, parameters: Mapping[str, Any] | None = None) -> None:
    """Take over claims with the book's verdicts, a list of `Carried` as JSON, and the parameters of the book's run;
    PressError where it is something else."""
    try:
        rows = valid(list[Carried], json.loads(text), "")
    except (ValueError, RecursionError, PressError):
        words = "the notebook's copy of the claims cannot be read; download the notebook again"
        raise PressError(words) from None
    _carried.update({row.claim.id: row for row in rows})
    settings.update({row.claim.chapter: dict(parameters) for row in rows if parameters})


def carried(chapter: str | None = None) -> list[Carried]:
    """What this session or the book's package carries, of one chapter or of all, in the book's order."""
    if not any(chapter in (None, row.claim.chapter) for row in _carried.values()):
        try:
            file = folders()[book().package] / CARRIED
        except PressError:  # no book is known
            return []
        known = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
        for name, own in known.items():
            if chapter in (None, name):
                carry(json.dumps(own["claims"]), own["parameters"])
    return [row for row in _carried.values() if chapter in (None, row.claim.chapter)]
