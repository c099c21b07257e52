"""Reading book/errata.yml: places where a source is wrong, unclear or contradicts another, each with what
shows it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import translate
from pathlib import Path
from typing import Any

from bookpress import paths
from bookpress.claims.claim import Claim, Source
from bookpress.claims.reading import CLAIM_ID, Entry, load_claims, read_yaml, require_once
from bookpress.errors import BnbookError
from bookpress.texts import read_text

#: What may be amiss with a place, gravest first; incomplete is what holds on a condition that is not stated.
ERRATUM_KINDS = ("wrong", "incomplete", "contradiction", "unclear")
#: What a slip changes, gravest first.
CHANGES = {
    "theorem": "A theorem or statement that does not hold as printed",
    "formula": "A formula that gives other numbers than it should",
    "reading": "What can be read in two ways, or contradicts another place",
    "slip": "Numbering and printing",
}
ERRATUM_NEEDED = ("id", "source", "kind", "printed", "correct", "why")


@dataclass(frozen=True)
class Erratum:
    """One place of a source: what is printed there, what holds instead, and why; texts may hold $formulas$.

    `changes` is a key of CHANGES, `short` the erratum in one line.
    `claim` is the id of the claim whose verdict shows it, `test` the function that does; one of them may be
    empty.
    """

    id: str
    source: Source
    kind: str
    printed: str
    correct: str
    why: str
    claim: str = ""
    test: str = ""
    changes: str = "formula"
    short: str = ""

    @property
    def title(self) -> str:
        """The place in the source, as a heading."""
        return self.source.where[0].upper() + self.source.where[1:]

    @property
    def anchor(self) -> str:
        """Where the row stands on the page: an address has no dots."""
        return f"erratum-{self.id.replace('.', '-')}"


@dataclass(frozen=True)
class Known:
    """What a row may point to."""

    sources: Collection[str]
    claims: Collection[str]
    tests: Collection[str]


def load_errata(path: Path | str | None = None) -> list[Erratum]:
    """Read and validate the errata (by default book/errata.yml), in the file's order.

    Raises BnbookError, one line, for a file that is missing or no YAML list, an unknown or missing key, an
    unknown kind, a source that is not in book/references.bib, a claim that no chapter has, a test
    function that is not in tests/, neither claim nor test, a formula without its second dollar sign or with a
    backslash lost, a doubled id.
    """
    path = Path(path) if path is not None else paths.book_folder() / "errata.yml"
    entries = read_yaml(path, path.name)
    if not isinstance(entries, list):
        raise BnbookError(f"{path.name} holds no list; expected one entry `- id: …` per erratum")
    known = Known(source_titles().keys(), {claim.id for claim in load_claims()}, _test_functions())
    rows = [
        _ErratumReader(path.name, entry, number, "erratum").erratum(known)
        for number, entry in enumerate(entries, start=1)
    ]
    require_once((row.anchor.removeprefix("erratum-") for row in rows), path.name, "erratum")
    return rows


def source_titles() -> dict[str, str]:
    """Key -> title of every entry of book/references.bib."""
    text = read_text(paths.book_folder() / "references.bib", "references.bib")
    found = {}
    for key, fields in re.findall(r"^@\w+\{\s*([^\s,]+),(.*?)(?=^@|\Z)", text, flags=re.M | re.S):
        title = re.search(r"^\s*title\s*=\s*\{(.*)\},?$", fields, flags=re.M)
        found[key] = re.sub(r"[{}]", "", title.group(1)) if title else key
    return found


class _ErratumReader(Entry):
    """One erratum of the file."""

    def erratum(self, known: Known) -> Erratum:
        name, entry = self._name(CLAIM_ID), self.entry
        self._keys(entry, ERRATUM_NEEDED, ("claim", "test", "changes", "short"), "the erratum")
        source, kind = self._source(entry["source"]), self._text(entry, "kind")
        claim, test = (self._text(entry, key) if key in entry else "" for key in ("claim", "test"))
        if source.key not in known.sources:
            self._fail(
                f"source {source.key!r} is not in references.bib", f"one of {', '.join(known.sources)}"
            )
        if kind not in ERRATUM_KINDS:
            self._fail(f"kind {kind!r} is unknown", f"one of {', '.join(ERRATUM_KINDS)}")
        if not (claim or test):
            self._fail("nothing shows it", "a claim, a test or both")
        if claim and claim not in known.claims:
            self._fail(f"there is no claim {claim!r}", "the id of a claim of a chapter")
        if test and test not in known.tests:
            self._fail(f"there is no test {test!r}", "tests/test_x.py::test_name, a function of that file")
        more = {key: self._text(entry, key) for key in ("changes", "short") if key in entry}
        if more.get("changes", "formula") not in CHANGES:
            self._fail(f"changes {more['changes']!r} is unknown", f"one of {', '.join(CHANGES)}")
        texts = {key: self._formulas(entry, key) for key in ("printed", "correct", "why")}
        return Erratum(id=name, source=source, kind=kind, claim=claim, test=test, **texts, **more)


def _test_functions() -> set[str]:
    """`tests/test_x.py::test_name` for every test function of the repository."""
    files = sorted((paths.repository_root() / "tests").glob("test_*.py"))
    return {
        f"tests/{file.name}::{name}"
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


@dataclass(frozen=True)
class Sentence:
    """One checkable sentence, in our words, with either claims and errata, or `not_judged`, or `repeats`.

    `where` is its place in the text, unique in the list; `repeats` is the place of the sentence that says the
    same, `VERSION: PLACE` if it is in another text of the source; an erratum judges by its test or claim;
    `note` says what the verdicts leave open.
    """

    where: str
    says: str
    claims: tuple[str, ...] = ()
    errata: tuple[str, ...] = ()
    not_judged: str = ""
    repeats: str = ""
    note: str = ""

    @property
    def judged(self) -> bool:
        return bool(self.claims or self.errata)

    @property
    def reason(self) -> str:
        """The key of REASONS, or nothing."""
        return self.not_judged.partition(":")[0]


@dataclass(frozen=True)
class Coverage:
    """The sentences of one text in its own order; `complete` promises that no checkable one is missing."""

    name: str
    source: str
    version: str
    complete: bool
    sentences: tuple[Sentence, ...]


@dataclass(frozen=True)
class Count:
    """How many sentences say something of their own, and what became of them."""

    sentences: int
    judged: int
    open: int
    repeats: int

    @property
    def not_judged(self) -> int:
        return self.sentences - self.judged


def count_sentences(lists: Iterable[Coverage]) -> Count:
    """The sentences of several lists; one that repeats another is counted as a repeat only."""
    found = [sentence for one in lists for sentence in one.sentences]
    own = [sentence for sentence in found if not sentence.repeats]
    return Count(
        sentences=len(own),
        judged=sum(sentence.judged for sentence in own),
        open=sum(sentence.reason == "open" for sentence in own),
        repeats=len(found) - len(own),
    )


# ---- Reading book/coverage/NAME.yml; a mistake in it is one line: the file, the place, what is wrong and -----------
# expected.

JUDGED = ("claims", "errata")
UNJUDGED = ("not_judged", "repeats")


def unfinished_sources(lists: Iterable[Coverage]) -> list[str]:
    """Keys of the sources that claims cite and that have no list, or one that is not complete."""
    finished: dict[str, bool] = {}
    for one in lists:
        finished[one.source] = finished.get(one.source, True) and one.complete
    return [key for key in dict.fromkeys(c.source.key for c in load_claims()) if not finished.get(key, False)]


def load_coverage(folder: Path | str | None = None) -> list[Coverage]:
    """Read and validate every list (by default those of book/coverage/), by name; none without a folder.

    Raises BnbookError, one line, for a file that is no list, an unknown or missing key, a source that is
    not in references.bib, an unknown claim or erratum, a sentence with neither or both of what judges it
    and why nothing does, an unknown reason, a place or sentence that comes twice, a repeat of what is not
    there, a text with two lists, and, where all lists of a source are complete, a claim or erratum of it
    that no sentence leads to.
    """
    folder = Path(folder) if folder is not None else paths.book_folder() / "coverage"
    claims, errata, sources = load_claims(), load_errata(), source_titles()
    known = {"claims": {claim.id for claim in claims}, "errata": {row.id for row in errata}}
    files = sorted(folder.iterdir()) if folder.is_dir() else []
    lists = [_read(path, known, sources) for path in files]
    require_once((f"{one.source}, {one.version}" for one in lists), "coverage", "the list of")
    _require_repeated(lists)
    done = {one.source for one in lists} - set(unfinished_sources(lists))
    for row in (*claims, *errata):
        own = [one for one in lists if one.source == row.source.key]
        led = {name for one in own for s in one.sentences for name in (*s.claims, *s.errata)}
        if row.source.key in done and row.id not in led:
            raise BnbookError(
                f"coverage/{own[0].name}.yml: it is complete, but no sentence leads to {row.id} "
                f"({row.source.where}); expected it among the claims or errata of its sentence"
            )
    return lists


def _require_repeated(lists: list[Coverage]) -> None:
    """BnbookError for a repeat of what is neither in its own list nor, as `VERSION: PLACE`, in another text
    of the source."""
    places = {(one.source, one.version, s.where) for one in lists for s in one.sentences if not s.repeats}
    for one in lists:
        for sentence in one.sentences:
            version, colon, where = sentence.repeats.partition(": ")
            named = {(one.source, one.version, sentence.repeats), (one.source, version, where)}
            if sentence.repeats and not named & places:
                raise BnbookError(
                    f"coverage/{one.name}.yml: {sentence.where}: it repeats {sentence.repeats!r}, which is "
                    "no place here; expected a place that repeats none, or VERSION: PLACE of another text"
                )


def _read(path: Path, known: Mapping[str, Collection[str]], sources: Collection[str]) -> Coverage:
    file = f"coverage/{path.name}"
    if path.suffix != ".yml":
        raise BnbookError(f"{file} is no list; expected NAME.yml")
    reader = _CoverageReader(file, read_yaml(path, file), known)
    return reader.coverage(path.stem, sources)


class _CoverageReader(Entry):
    """One file."""

    def __init__(self, file: str, content: Any, known: Mapping[str, Collection[str]]) -> None:
        self.where, self._known = file, known
        self.entry = self._mapping(content, "the list")

    def coverage(self, name: str, sources: Collection[str]) -> Coverage:
        self._keys(self.entry, ("source", "sentences"), ("complete",), "the list")
        source = self._mapping(self.entry["source"], "source")
        self._keys(source, ("key", "version"), (), "source")
        key, rows = self._text(source, "key"), self.entry["sentences"]
        complete = self.entry.get("complete", False)
        if key not in sources:
            self._fail(f"source {key!r} is not in references.bib", f"one of {', '.join(sources)}")
        if not isinstance(complete, bool):
            self._fail(f"complete {complete!r} is no truth value", "true or false")
        if not isinstance(rows, list):
            self._fail("sentences is no list", "one entry `- where: …` per sentence")
        file = self.where
        sentences = tuple(self._sentence(file, row, number) for number, row in enumerate(rows, start=1))
        require_once((sentence.where for sentence in sentences), file, "the place")
        require_once((s.says for s in sentences if not s.repeats), file, "the sentence")
        return Coverage(name, key, self._text(source, "version"), complete, sentences)

    def _sentence(self, file: str, content: Any, number: int) -> Sentence:
        self.where = f"{file}: sentence number {number}"
        row = self._mapping(content, "the sentence")
        self._keys(row, ("where", "says"), (*JUDGED, *UNJUDGED, "note"), "the sentence")
        where = self._text(row, "where")
        self.where = f"{file}: {where}"
        judged = any(key in row for key in JUDGED)
        if judged + sum(key in row for key in UNJUDGED) != 1:
            self._fail("none or several of claims (or errata), not_judged and repeats", "exactly one of them")
        if "note" in row and not judged:
            self._fail("it has a note but no claims", "a note beside claims or errata only")
        texts = {key: self._formulas(row, key) for key in ("not_judged", "note") if key in row}
        sentence = Sentence(
            where=where,
            says=self._formulas(row, "says"),
            **{key: self._ids(row[key], key) for key in JUDGED if key in row},
            repeats=self._text(row, "repeats") if "repeats" in row else "",
            **texts,
        )
        if sentence.not_judged:
            kind, _, words = sentence.not_judged.partition(":")
            if kind not in REASONS or not words.strip():
                self._fail(
                    f"not_judged {sentence.not_judged!r} gives no reason",
                    f"`KIND: words` with one of {', '.join(REASONS)}",
                )
        return sentence

    def _ids(self, content: Any, key: str) -> tuple[str, ...]:
        """Ids of claims or of errata that there are, each once."""
        if not isinstance(content, list) or not content:
            self._fail(f"{key} {content!r} is no list of ids", f"`{key}: [id, …]`")
        one = {"claims": "claim", "errata": "erratum"}[key]
        for name in content:
            if not isinstance(name, str) or name not in self._known[key]:
                self._fail(f"there is no {one} {name!r}", "the id of one that there is")
        require_once(content, self.where, one)
        return tuple(content)


# ---- Reading book/instruments.yml: what the numbers of claims were measured with, and what is known of each --------
# instrument.

INSTRUMENT_NEEDED = ("id", "name", "measures", "own", "silent", "reads")


@dataclass(frozen=True)
class Instrument:
    """What it measures, which values it takes by itself (pins, floors, windows) and when it says nothing.

    `line` is what a claim's page says of it behind its name, `mark` the same in two words, where verdicts are
    listed; both may be empty. `reads` are patterns of result names, CHAPTER:NAME or NAME in any chapter.
    """

    id: str
    name: str
    measures: str
    own: str
    silent: str
    reads: re.Pattern
    line: str = ""
    mark: str = ""

    @property
    def anchor(self) -> str:
        """Where it stands on its page."""
        return f"instrument-{self.id}"

    def under(self, claim: Claim) -> bool:
        """Whether a test of the claim reads one of its results."""
        return any(self.reads.match(f"{claim.chapter}:{name}") for name in claim.result_names())


def load_instruments(path: Path | None = None) -> list[Instrument]:
    """Read and validate the instruments (by default book/instruments.yml), in the file's order.

    Raises BnbookError, one line, for a file that is no YAML list, an unknown or missing key, a doubled id.
    """
    path = path or paths.book_folder() / "instruments.yml"
    if not path.is_file():
        return []  # a small book, of formulas, has none; `unmeasured` says so of any other
    entries = read_yaml(path, path.name)
    if not isinstance(entries, list):
        raise BnbookError(f"{path.name} holds no list; expected one entry `- id: …` per instrument")
    found = [
        _InstrumentReader(path.name, entry, number, "instrument").instrument()
        for number, entry in enumerate(entries, 1)
    ]
    require_once((one.id for one in found), path.name, "instrument")
    return found


def find_instrument(name: str) -> Instrument:
    """The one of that id; BnbookError lists the known."""
    known = {one.id: one for one in load_instruments()}
    if name not in known:
        raise BnbookError(f"no instrument {name!r}; expected one of {', '.join(known)}")
    return known[name]


def rests_on(claim: Claim, instruments: Iterable[Instrument]) -> tuple[Instrument, ...]:
    """The instruments that the claim's numbers come from."""
    return tuple(one for one in instruments if one.under(claim))


def unmeasured(claims: Iterable[Claim], instruments: Sequence[Instrument]) -> list[str]:
    """What is amiss, one line each: a result that a measured claim reads and no instrument covers, an
    instrument on which no claim rests. A formula or theorem needs none."""
    claims = list(claims)
    lines = [
        f"claim {claim.id} reads {name}, which no instrument covers; expected a pattern of it in "
        "instruments.yml"
        for claim in claims
        if not claim.statement
        for name in claim.result_names()
        if not any(one.reads.match(f"{claim.chapter}:{name}") for one in instruments)
    ]
    idle = [one.id for one in instruments if not any(one.under(claim) for claim in claims)]
    return lines + [f"no claim rests on instrument {name}; expected a pattern of a result" for name in idle]


class _InstrumentReader(Entry):
    """One instrument of the file."""

    def instrument(self) -> Instrument:
        name, entry = self._name(CLAIM_ID), self.entry
        self._keys(entry, INSTRUMENT_NEEDED, ("line", "mark"), "the instrument")
        texts: dict[str, Any] = {
            key: self._text(entry, key)
            for key in (*INSTRUMENT_NEEDED, "line", "mark")
            if key in entry and key not in ("id", "reads")
        }
        reads = entry["reads"]
        if not isinstance(reads, list) or not reads or not all(isinstance(each, str) for each in reads):
            self._fail(f"reads {reads!r} is no list of patterns", "`reads: [smoothness.*, CHAPTER:beyond.*]`")
        whole = (each if ":" in each else f"*:{each}" for each in reads)
        return Instrument(id=name, **texts, reads=re.compile("|".join(map(translate, whole))))
