"""Reading book/coverage/NAME.yml; a mistake in it is one line: the file, the place, what is wrong and
expected."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

from bnbook import paths
from bnbook.claims.coverage import REASONS, Coverage, Sentence
from bnbook.claims.entries import Entry, read_yaml, require_once
from bnbook.claims.errata import load_errata, source_titles
from bnbook.claims.reading import load_claims
from bnbook.errors import BnbookError

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
    reader = _Reader(file, read_yaml(path, file), known)
    return reader.coverage(path.stem, sources)


class _Reader(Entry):
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
