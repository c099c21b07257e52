"""Every checkable sentence of one text of a source, with what judges it, claims or errata, or the reason why
nothing does."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

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
