"""Sentences that stay true: of several written ones, that which the verdict or the numbers call for."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from bnbook.claims import judging
from bnbook.errors import BnbookError
from bnbook.pipeline.chapters.evidence import LeftOut
from bnbook.pipeline.prose import pairs
from bnbook.pipeline.prose.pairs import ABSENT

if TYPE_CHECKING:
    from bnbook.pipeline.prose.tokens import Pages

BLOCK = re.compile(
    r"^[ \t]*(?P<fence>`{3,}|:{3,})\{says\}[ \t]*(?P<guard>[^\n]+)\n(?P<body>.*?)\n[ \t]*(?P=fence)[ \t]*$",
    re.M | re.S,
)
INLINE = re.compile(r"\{\{\s*says:\s*(?P<guard>[^|}]+?)\s*\\?\|\s*(?P<choice>[^{}|]+?)\s*\}\}")
CLAIM = re.compile(r"(?P<id>[a-z][a-z0-9.-]*)(?:\[(?P<result>[A-Za-z][\w.]*)\])?")
#: A word before a sentence -> the verdict that it stands for.
WORDS = {
    "reproduced": judging.REPRODUCED,
    "mixed": judging.MIXED,
    "partly refuted": judging.PARTLY_REFUTED,
    "not reproduced": judging.NOT_REPRODUCED,
    "holds": judging.HOLDS,
    "holds if": judging.HOLDS_IF,
    "corrected": judging.CORRECTED,
    "wrong": judging.WRONG,
    "yes": judging.YES,
    "no": judging.NO,
    "open": judging.OPEN,
}
OTHERWISE = "otherwise"
LINE = re.compile(rf"^[ \t]*(?P<words>(?:{'|'.join([*WORDS, OTHERWISE])})(?:, [a-z ]+)*): ", re.M)
HELD = (judging.REPRODUCED, judging.HOLDS, judging.HOLDS_IF, judging.YES)
UNKNOWN = (judging.OPEN, judging.NOT_TESTED)


def choose(text: str, chapter: str, pages: Pages) -> str:
    """The text with each `{says}` block and `says:` token replaced by the words that hold, and with the
    numbers of two results filled in.

    A guard is a claim, `claim-id` or `claim-id[result]` for its part that tests this result, or a comparison
    of results, `a > b`, `a < 0.5` or `geo:a > b`, which gives yes or no where the 95 % interval of the paired
    difference (of the ratio, with `geo:`) lies wholly on one side, else open. BnbookError for a guard that
    asks for what does not exist, and for sentences that are not written as they should be.
    """

    def filled(value: Callable[[re.Match], str]) -> Callable[[re.Match], str]:
        def one(match: re.Match) -> str:
            try:
                return value(match)
            except LeftOut as left_out:
                return str(left_out)
            except ValueError as problem:
                shown = match[0].strip().partition("\n")[0]
                raise BnbookError(f"token {shown} on page {chapter}: {problem}") from None

        return one

    def sentence(match: re.Match) -> str:
        return _sentence(match["body"], _verdict(match["guard"].strip(), chapter, pages))

    def words(match: re.Match) -> str:
        return _words(match["choice"], _verdict(match["guard"], chapter, pages))

    text = INLINE.sub(filled(words), BLOCK.sub(filled(sentence), text))
    return pairs.PAIR.sub(filled(lambda match: pairs.number(match, chapter, pages)), text)


def result_names(text: str, or_else: bool = True) -> set[tuple[str | None, str]]:
    """(chapter or None for the page's own, result) of all that guards and numbers of two results read; without
    or_else not those numbers that say what stands there where the run has none."""
    guards = [match["guard"].strip() for kind in (BLOCK, INLINE) for match in kind.finditer(text)]
    compared = [match for match in map(pairs.COMPARISON.fullmatch, guards) if match]
    numbers = [each for each in pairs.PAIR.finditer(text) if or_else or not pairs.format_and_else(each)[1]]
    return pairs.result_names([*numbers, *compared])


def without(text: str) -> str:
    """The text without what is chosen or filled in here; all sentences of a block stay."""
    text = BLOCK.sub(lambda match: LINE.sub("", match["body"]), text)
    return pairs.PAIR.sub("", INLINE.sub("", text))


def _verdict(guard: str, chapter: str, pages: Pages) -> str | None:
    """The verdict on a guard; None without a run."""
    if compared := pairs.COMPARISON.fullmatch(guard):
        found = pairs.is_larger(compared, chapter, pages)
        return found and {True: judging.YES, False: judging.NO, None: judging.OPEN}[found[0]]
    claim = CLAIM.fullmatch(guard)
    if not claim:
        raise ValueError("expected a claim, or a comparison such as `loss.none > loss.batch`")
    asked = pages.claim(claim["id"])
    judgement, part = pages.judgement(asked), claim["result"] and asked.part_of(claim["result"])
    if judgement is None or part is None or judgement.verdict == judging.NOT_TESTED:
        return judgement and judgement.verdict
    return judgement.parts[part][1]


def _sentence(body: str, verdict: str | None) -> str:
    """The sentence written for a verdict, else the one for all others, else one that names the verdict."""
    starts = list(LINE.finditer(body))
    if not starts or body[: starts[0].start()].strip():
        raise ValueError(f"expected lines `WORD: sentence`, WORD one of {', '.join(WORDS)} or {OTHERWISE}")
    sentences = {}
    for start, end in zip(starts, [*starts[1:], None], strict=True):
        for word in start["words"].split(", "):
            if word != OTHERWISE and word not in WORDS:
                raise ValueError(f"{word!r} is no verdict; expected {', '.join(WORDS)} or {OTHERWISE}")
            sentences[WORDS.get(word, word)] = body[start.end() : end and end.start()].strip()
    if verdict is None:
        return ABSENT
    return sentences.get(verdict) or sentences.get(OTHERWISE) or f"The verdict of this run: *{verdict}*."


def _words(choice: str, verdict: str | None) -> str:
    """Of "smaller / larger / alike" the first where it holds, the second where not, else the third."""
    options = [option.strip() for option in choice.split(" / ")]
    if len(options) != 3:
        raise ValueError("expected three choices, `where it holds / where it does not / where it is open`")
    return ABSENT if verdict is None else options[0 if verdict in HELD else 2 if verdict in UNKNOWN else 1]
