"""What the book says of its sources: book/errata.yml, the places where one is wrong, book/coverage/, its sentences with
what judges each, and book/instruments.yml, what is known of what the numbers were measured with.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from fnmatch import translate
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import AfterValidator, model_validator

from bookpress import paths
from bookpress.claims.claim import Claim, Source
from bookpress.claims.reading import load_claims
from bookpress.errors import PressError
from bookpress.schema import Entry, Formulas, Id, Some, Text, Truth, model, read_list, require_once, valid
from bookpress.texts import parse_yaml, read_text

#: What may be amiss with a place, gravest first; incomplete is what holds on a condition that is not stated.
ERRATUM_KINDS = ("wrong", "incomplete", "contradiction", "unclear")
#: What a slip changes, gravest first.
CHANGES = {
    "theorem": "A theorem or statement that does not hold as printed",
    "formula": "A formula that gives other numbers than it should",
    "reading": "What can be read in two ways, or contradicts another place",
    "slip": "Numbering and printing",
}


@model
class Erratum(Entry):
    """One place of a source: what is printed there, what holds instead, and why; texts may hold $formulas$.

    `changes` is a key of CHANGES, `short` the erratum in one line.
    `claim` is the id of the claim whose verdict shows it, `test` the function that does; one of them may be
    empty.
    """

    id: Id
    source: Source
    kind: Literal[*ERRATUM_KINDS]
    printed: Formulas
    correct: Formulas
    why: Formulas
    claim: Text = ""
    test: Text = ""
    changes: Literal[*CHANGES] = "formula"
    short: Text = ""

    @model_validator(mode="after")
    def _shown(self) -> Erratum:
        if not (self.claim or self.test):
            raise ValueError("has nothing that shows it; expected a claim, a test or both")
        return self

    @property
    def title(self) -> str:
        """The place in the source, as a heading."""
        return self.source.where[0].upper() + self.source.where[1:]

    @property
    def anchor(self) -> str:
        """Where the row stands on the page: an address has no dots."""
        return f"erratum-{self.id.replace('.', '-')}"


def load_errata() -> list[Erratum]:
    """Read and validate book/errata.yml, in the file's order; PressError, one line, for what is wrong with it, such as a
    source, claim or test function that there is not."""
    known, claims, tests = source_titles(), {claim.id for claim in load_claims()}, _test_functions()

    def wrong(row: Erratum) -> str:
        if row.source.key not in known:
            return _not_in_references(row.source.key, known)
        if row.claim and row.claim not in claims:
            return f"there is no claim {row.claim!r}; expected the id of a claim of a chapter"
        if row.test and row.test not in tests:
            return (
                f"there is no test {row.test!r}; expected tests/test_x.py::test_name, a function of that file"
            )
        return ""

    rows = list(read_list(Erratum, _content("errata.yml"), "errata.yml", "erratum", wrong=wrong))
    require_once((row.anchor.removeprefix("erratum-") for row in rows), "errata.yml", "erratum")
    return rows


def _not_in_references(key: str, known: Collection[str]) -> str:
    return f"source {key!r} is not in references.bib; expected one of {', '.join(known)}"


def _content(file: str) -> Any:
    """What a file of the book's folder holds."""
    return _parsed(read_text(paths.book_folder() / file, file), file)


@lru_cache(maxsize=16)  # by content: one command asks many times, and an edited file is another key
def _parsed(text: str, file: str) -> Any:
    return parse_yaml(text, file)


def references() -> dict[str, dict[str, str]]:
    """Key -> fields of every entry of book/references.bib, a line each, without their braces."""
    text = read_text(paths.book_folder() / "references.bib", "references.bib")
    entries = re.findall(r"^@\w+\{\s*([^\s,]+),(.*?)(?=^@|\Z)", text, flags=re.M | re.S)
    fields = {key: re.findall(r"^\s*(\w+)\s*=\s*\{(.*)\},?\s*$", own, flags=re.M) for key, own in entries}
    return {key: {name: re.sub(r"[{}]", "", value) for name, value in own} for key, own in fields.items()}


def source_titles() -> dict[str, str]:
    """Key -> title of every entry of book/references.bib."""
    return {key: fields.get("title", key) for key, fields in references().items()}


def _test_functions() -> set[str]:
    """`tests/test_x.py::test_name` for every test function of the repository."""
    files = sorted((paths.repository_root() / "tests").rglob("test_*.py"))
    return {
        f"{file.relative_to(paths.repository_root()).as_posix()}::{name}"
        for file in files
        for name in re.findall(r"^def (test_\w+)\(", file.read_text(encoding="utf-8"), flags=re.M)
    }


# ---- Every checkable sentence of one text of a source, with what judges it, claims or errata, or the reason why
# nothing does.

#: Why a sentence is not judged; a reason reads `kind: words`.
REASONS = {
    "open": "this book could judge it and does not yet; the words say what would",
    "scale": "it needs data, networks or hardware beyond this book",
    "background": "it reports what others did, found or believed",
    "definition": "it names or defines something, or holds by the definition",
    "assumption": "it is supposed, not asserted",
    "setting": "it says what the authors did",
    "step": "a step of a derivation whose end is judged",
    "opinion": "a judgement, motive or outlook that nothing measurable decides",
    "unspecific": "it says too little to be tested",
}


def _once(names: tuple[str, ...]) -> tuple[str, ...]:
    if len(set(names)) < len(names):
        raise ValueError(f"has an id twice: {', '.join(names)}; expected each once")
    return names


Ids = Annotated[tuple[str, ...], Some, AfterValidator(_once)]


@model
class Sentence(Entry):
    """One checkable sentence, in our words, with either claims and errata, or `not_judged`, or `repeats`.

    `where` is its place in the text, unique in the list; `repeats` is the place of the sentence that says the
    same, `VERSION: PLACE` if it is in another text of the source; an erratum judges by its test or claim;
    `not_judged` is a key of REASONS, a colon and words; `note` says what the verdicts leave open.
    """

    where: Text
    says: Formulas
    claims: Ids = ()
    errata: Ids = ()
    not_judged: Formulas = ""
    repeats: Text = ""
    note: Formulas = ""

    @model_validator(mode="after")
    def _judged_once(self) -> Sentence:
        if sum(map(bool, (self.judged, self.not_judged, self.repeats))) != 1:
            wrong = "none or several of claims (or errata), not_judged and repeats"
            raise ValueError(f"has {wrong}; expected exactly one of them")
        if self.note and not self.judged:
            raise ValueError("has a note but no claims; expected a note beside claims or errata only")
        if self.not_judged and (self.reason not in REASONS or not self.not_judged.partition(":")[2].strip()):
            expected = f"`KIND: words` with one of {', '.join(REASONS)}"
            raise ValueError(f"has not_judged {self.not_judged!r}, which is no reason; expected {expected}")
        return self

    @property
    def judged(self) -> bool:
        return bool(self.claims or self.errata)

    @property
    def reason(self) -> str:
        """The key of REASONS, or nothing."""
        return self.not_judged.partition(":")[0]


class Coverage(NamedTuple):
    """The sentences of one text in its own order; `complete` promises that no checkable one is missing."""

    name: str
    source: str
    version: str
    complete: bool
    sentences: tuple[Sentence, ...]


class Count(NamedTuple):
    """How many sentences say something of their own, and what became of them."""

    sentences: int
    judged: int
    not_judged: int
    open: int
    repeats: int


def count_sentences(lists: Iterable[Coverage]) -> Count:
    """The sentences of several lists; one that repeats another is counted as a repeat only."""
    found = [sentence for one in lists for sentence in one.sentences]
    own = [sentence for sentence in found if not sentence.repeats]
    judged, still = sum(each.judged for each in own), sum(each.reason == "open" for each in own)
    return Count(len(own), judged, len(own) - judged, still, len(found) - len(own))


# ---- Reading book/coverage/NAME.yml ---------------------------------------------------------------------------------


@model
class _Text(Entry):
    key: Text
    version: Text


@model
class _List(Entry):
    """A file of coverage."""

    source: _Text
    sentences: list[Any]
    complete: Truth = False


def unfinished_sources(lists: Iterable[Coverage]) -> list[str]:
    """Keys of the sources that claims cite and that have no list, or one that is not complete."""
    finished: dict[str, bool] = {}
    for one in lists:
        finished[one.source] = finished.get(one.source, True) and one.complete
    return [key for key in dict.fromkeys(c.source.key for c in load_claims()) if not finished.get(key, False)]


def load_coverage() -> list[Coverage]:
    """Read and validate every list of book/coverage/, by name; none without a folder.

    Raises PressError, one line, for what is wrong with one, such as a place or sentence that comes twice, and, where all
    lists of a source are complete, for a claim or erratum of it that no sentence leads to.
    """
    folder = paths.book_folder() / "coverage"
    claims, errata, sources = load_claims(), load_errata(), source_titles()
    known = {"claim": {claim.id for claim in claims}, "erratum": {row.id for row in errata}}
    files = sorted(folder.iterdir()) if folder.is_dir() else []
    lists = [_read(path, known, sources) for path in files]
    require_once((f"{one.source}, {one.version}" for one in lists), "coverage", "the list of")
    _require_repeated(lists)
    done = {one.source for one in lists} - set(unfinished_sources(lists))
    for row in (*claims, *errata):
        own = [one for one in lists if one.source == row.source.key]
        led = {name for one in own for s in one.sentences for name in (*s.claims, *s.errata)}
        if row.source.key in done and row.id not in led:
            raise PressError(
                f"coverage/{own[0].name}.yml: it is complete, but no sentence leads to {row.id} "
                f"({row.source.where}); expected it among the claims or errata of its sentence"
            )
    return lists


def _require_repeated(lists: list[Coverage]) -> None:
    """PressError for a repeat of what is neither in its own list nor, as `VERSION: PLACE`, in another text
    of the source."""
    places = {(one.source, one.version, s.where) for one in lists for s in one.sentences if not s.repeats}
    for one in lists:
        for sentence in one.sentences:
            version, colon, where = sentence.repeats.partition(": ")
            named = {(one.source, one.version, sentence.repeats), (one.source, version, where)}
            if sentence.repeats and not named & places:
                raise PressError(
                    f"coverage/{one.name}.yml: {sentence.where}: it repeats {sentence.repeats!r}, which is "
                    "no place here; expected a place that repeats none, or VERSION: PLACE of another text"
                )


def _read(path: Path, known: dict[str, set[str]], sources: Collection[str]) -> Coverage:
    file = f"coverage/{path.name}"
    if path.suffix != ".yml":
        raise PressError(f"{file} is no list; expected NAME.yml")
    head = valid(_List, _content(file), file)
    if head.source.key not in sources:
        raise PressError(f"{file}: {_not_in_references(head.source.key, sources)}")

    def wrong(one: Sentence) -> str:
        led = [("claim", name) for name in one.claims] + [("erratum", name) for name in one.errata]
        missing = [f"{what} {name!r}" for what, name in led if name not in known[what]]
        return f"there is no {missing[0]}; expected the id of one that there is" if missing else ""

    sentences = read_list(Sentence, head.sentences, file, "sentence", key="where", wrong=wrong)
    require_once((sentence.where for sentence in sentences), file, "the place")
    require_once((s.says for s in sentences if not s.repeats), file, "the sentence")
    return Coverage(path.stem, head.source.key, head.source.version, head.complete, sentences)


# ---- Reading book/instruments.yml: what the numbers of claims were measured with, and what is known of it --------------


@model
class Instrument(Entry):
    """What it measures, which values it takes by itself (pins, floors, windows) and when it says nothing.

    `line` is what a claim's row says of it behind its name, `mark` the same in two words, beside
    its verdict there; both may be empty. `reads` are patterns of result names, CHAPTER:NAME or NAME in any chapter.
    """

    id: Id
    name: Text
    measures: Text
    own: Text
    silent: Text
    reads: Annotated[tuple[Text, ...], Some]
    line: Text = ""
    mark: Text = ""

    @property
    def anchor(self) -> str:
        """Where it stands on its page."""
        return f"instrument-{self.id}"

    def under(self, claim: Claim) -> bool:
        """Whether a test of the claim reads one of its results."""
        return any(self.covers(claim, name) for name in claim.result_names())

    def covers(self, claim: Claim, name: str) -> bool:
        """Whether a result of the claim's chapter is one of its own."""
        return bool(self._patterns.match(f"{claim.chapter}:{name}"))

    @cached_property
    def _patterns(self) -> re.Pattern:
        whole = (each if ":" in each else f"*:{each}" for each in self.reads)
        return re.compile("|".join(map(translate, whole)))


def load_instruments() -> list[Instrument]:
    """Read and validate book/instruments.yml, in the file's order; PressError, one line, for what is wrong with it."""
    name = "instruments.yml"
    if not (paths.book_folder() / name).is_file():
        return []  # a small book, of formulas, has none; `unmeasured` says so of any other
    found = read_list(Instrument, _content(name), name, "instrument")
    require_once((one.id for one in found), name, "instrument")
    return list(found)


def find_instrument(name: str) -> Instrument:
    """The one of that id; PressError lists the known."""
    known = {one.id: one for one in load_instruments()}
    if name not in known:
        raise PressError(f"no instrument {name!r}; expected one of {', '.join(known)}")
    return known[name]


def rests_on(claim: Claim, instruments: Iterable[Instrument]) -> tuple[Instrument, ...]:
    """The instruments that the claim's numbers come from."""
    return tuple(one for one in instruments if one.under(claim))


def unmeasured(claims: Iterable[Claim], instruments: Sequence[Instrument]) -> list[str]:
    """What is amiss, one line each: a result that a measured claim reads and no instrument covers, an
    instrument on which no claim rests. A formula or theorem needs none."""
    claims = list(claims)
    lines = [
        f"claim {claim.id} reads {name}, which no instrument covers; expected a pattern of it in instruments.yml"
        for claim in claims
        for name in (() if claim.statement else claim.result_names())
        if not any(one.covers(claim, name) for one in instruments)
    ]
    idle = [one.id for one in instruments if not any(one.under(claim) for claim in claims)]
    return lines + [f"no claim rests on instrument {name}; expected a pattern of a result" for name in idle]
