"""Rows of the ledger as Markdown: a table of verdicts, the tables of a ladder of sizes, and the last cell of a notebook."""

from __future__ import annotations

import os
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import zip_longest
from os.path import commonprefix
from typing import Any

from bookpress import results as session
from bookpress.claims import locks
from bookpress.claims.claim import EXACT, Claim
from bookpress.claims.effects import ABSENT, BASES, NO_INTERVAL, SHARES, describe_test
from bookpress.claims.judging import NOT_TESTED, Recorded, Row, deciding, empty_row, judge, other_settings
from bookpress.claims.reading import Carried, carried, chapter_claims
from bookpress.claims.reading import settings as carried_settings
from bookpress.claims.words import OWN_QUESTION, literal, rounded, without_markup
from bookpress.errors import PressError


def format_effect(row: Row, spec: str = "") -> str:
    """Effect with its 95 % interval in words; with a `spec` the bare numbers: "0.12 (95 % interval 0.1 to
    0.14)"."""
    test = deciding(row)
    if test is None:
        return ABSENT
    effect, interval, found = test["effect"], test["interval"], _ends(test)
    words, number = effect["words"], effect["number"]
    if spec and number is not None:
        low, high = (interval["low"], interval["high"]) if interval else (number, number)
        middle, *ends = rounded((number, low, high), spec)
        unit = effect["unit"] * (
            effect["unit"] not in (*SHARES, *BASES)
        )  # the number is no factor, no hundredths
        words, found = f"{middle} {unit}".strip(), " to ".join(ends) if interval else found
    return f"{words} ({interval_words(found)})" if found else words


def marked(row: Row) -> str:
    """The words of a verdict, and that it is exploratory where it is."""
    return f"{row['words']} (exploratory)" if row["exploratory"] else row["words"]


def interval_words(interval: str) -> str:
    """An interval where no heading says what it is."""
    return interval if interval in ("", NO_INTERVAL) else f"95 % interval {interval}"


def _ends(test: Row) -> str:
    """The interval of a test in words: none of an exact check or of equal seeds, and of one seed that there is none."""
    if test["interval"]:
        return test["interval"]["words"]
    one = test["n"] == 1 and test["test"]["kind"] not in EXACT and test["effect"]["number"] is not None
    return NO_INTERVAL if one else ""


# ---- Verdicts for readers: a Markdown table ------------------------------------------------------------------------

UNBROKEN = "\u00a0"
HEAD = "| the source says | measured | verdict |\n|:---|:---|:---|"


def markdown_table(rows: Iterable[Row]) -> str:
    """A Markdown table: a line per claim, and below it one per part or for the corrected form; what all parts have to
    fulfil is said once where it is the same."""
    lines = [HEAD]
    for row in rows:
        parts = [test for test in row["tests"] if test["role"] == "part"]
        whole, corrected = ([], parts) if parts else (row["tests"][:1], row["tests"][1:])
        asked = {test["asks"] for test in parts}
        shared = [f"{'any' if row['combine'] == 'any' else 'each'} must hold: {each}" for each in asked]
        shared = [*shared, "95 % intervals"] if len(parts) > 1 and len(asked) == 1 else []
        notes = [_where(row), *(f"must hold: {test['asks']}" for test in whole), *shared]
        below = [*(f"test changed {literal(words)}" for words in row["changed"]), row["scope"]]
        verdict = f"**{without_markup(row['words'])}**{exploratory_note(row)}"
        verdict += "".join(f"<br><small>{words}</small>" for words in below if words)
        measured = "" if parts else "".join(map(_measured, whole)) or ABSENT
        lines.append(line(row["says"], notes, measured, verdict))
        for test in corrected:
            if not test["n"]:
                continue  # the table of the rungs names those that no run has reached
            notes = [] if shared else [f"must hold: {test['asks']}"]
            n, verdict = (test["n"] * (test["n"] != row["n"]), test["verdict"]) if parts else (0, "")
            lines.append(line(f"– {test['says']}", notes, _measured(test, bool(shared), n), verdict))
    return "\n".join(lines)


def exploratory_note(row: Row) -> str:
    """Below a verdict whose test did not stand before its data: that it is exploratory, and why."""
    reason = without_markup(row["exploratory"])
    return f"<br><small>exploratory: {reason}</small>" if reason else ""


def _where(row: Row) -> str:
    """Where the source says it; of a question that the book asks itself, what it is about."""
    where = row["source"]["where"]
    if row["kind"] != "question":
        return where
    return f"{'' if OWN_QUESTION in row['says'] else f'the book’s {OWN_QUESTION}, '}on {where}"


def _measured(test: Row, inline: bool = False, n: int = 0) -> str:
    """Effect, then small its interval and the number of seeds if it is given; inline: that it is one of 95 % is said
    above."""
    interval = _ends(test)
    said = f"({interval})".replace(" ", UNBROKEN) if inline and interval else interval_words(interval)
    notes = "; ".join(words for words in (said, f"n = {n}" if n else "") if words)
    effect = test["effect"]["words"]
    return f"{effect}{' ' if inline else '<br>'}<small>{notes}</small>" if notes else effect


def line(says: str, notes: Sequence[str], *others: str) -> str:
    """One line of a table: what is said, small below it the notes, and the other cells."""
    said = "<br><small>".join(without_markup(text) for text in (says, "; ".join(notes)) if text)
    cells = (f"{said}</small>" if notes else said, *others)
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


# ---- Which answers stay and which turn: tables of claims against the rungs of a ladder -----------------------------

NO_SIZE = "No size has been reached."
#: Whether a claim holds and whether it fails at some rung -> what is said of it.
GROUPS = {
    (True, True): "Turns between the sizes",
    (True, False): "Holds wherever it is decided",
    (False, True): "Fails wherever it is decided",
    (False, False): "Open",
}
Tried = dict[str, Row]  # words of a rung that was reached -> its test


def rung_table(rows: Iterable[Row]) -> str:
    """Markdown tables, one for the claims that turn, one each for those that hold, fail and are open at all
    rungs: a line for each claim that is judged rung by rung, a column for each rung that was reached, whose
    seeds stand in its head where all claims have as many; whether it holds there, and beside the word the
    effect. Below them the rungs that no run has reached."""
    ladders = [(row, _tried(row)) for row in rows if row["rungs"]]
    named = dict.fromkeys(test["says"] for row, _ in ladders for test in row["tests"])
    seeds = {says: {tried[says]["n"] for _, tried in ladders if says in tried} for says in named}
    shown, missing = [says for says in named if seeds[says]], [says for says in named if not seeds[says]]
    if not shown:
        return NO_SIZE
    groups: dict[str, list[str]] = {title: [] for title in GROUPS.values()}
    for row, tried in ((row, tried) for row, tried in ladders if tried):
        words, short = shared_words([test["effect"]["words"] for test in tried.values()])
        shared = f"<br><small>{words}</small>".replace("|", "\\|") * bool(words)
        own = dict.fromkeys((test["says"] for test in row["tests"]), ABSENT)
        own |= {says: _cell(test, short, len(seeds[says]) > 1) for says, test in tried.items()}
        says = without_markup(row["says"]).replace("|", "\\|") + exploratory_note(row) + shared
        groups[_group(tried)].append(f"| {says} | {' | '.join(own.get(each, '') for each in shown)} |")
    counted = {says: f"<br><small>n = {min(seeds[says])}</small>" * (len(seeds[says]) == 1) for says in shown}
    titles = " | ".join(says.rstrip(".") + counted[says] for says in shown)
    head = f"| the source says | {titles} |\n|:---|{':---|' * len(shown)}"
    tables = [
        "\n".join([f"**{title}** ({len(lines)})\n", head, *lines]) for title, lines in groups.items() if lines
    ]
    if missing:
        tables.append(f"Not tested at this scale: {'; '.join(says.rstrip('.') for says in missing)}.")
    return "\n\n".join(tables)


def turned(rows: Iterable[Row]) -> str:
    """How many claims hold at one rung and fail at another, hold or fail wherever they are decided, and are
    open; and, where a width has rungs of two lengths, how many turn with the width and with the length."""
    found = [tried for row in rows if row["rungs"] and (tried := _tried(row))]
    if not found:
        return NO_SIZE
    counts = Counter(map(_group, found))
    turn, hold, fail, still = (counts[title] for title in GROUPS.values())
    who = "One claim" if turn == 1 else f"{turn or 'None'} of the {len(found)} claims"
    s = "s" * (turn < 2)
    decided = f"{hold} hold{'s' * (hold == 1)} and {fail} fail{'s' * (fail == 1)} at every size that decides"
    left = f"{still or 'None'} {'is' if still == 1 else 'are'} open at every size"
    return f"{who} hold{s} at one size and fail{s} at another. Of the others {decided}. {left}.{_with_what(found)}"


def _with_what(found: list[Tried]) -> str:
    """Whether claims turn between widths, at as many steps, or between numbers of steps, at one width."""
    wide, long = 0, []
    for tried in found:
        widths, lengths = defaultdict(list), defaultdict(list)
        for says, holds in ((says, test["holds"]) for says, test in tried.items()):
            if holds is not None:
                width, _, steps = says.rstrip(".").partition(", ")
                widths[steps].append(holds)
                lengths[width].append(holds)
        wide += any(len(set(decided)) > 1 for decided in widths.values())
        long += [(decided[0], decided[-1]) for decided in lengths.values() if len(decided) > 1]
    if not long:
        return ""
    up, down = long.count((False, True)), long.count((True, False))
    return (
        f" At equal steps, width changes the verdict of {wide or 'none'}. At equal width, longer training changes the "
        f"verdict of {up + down or 'none'} of the {len(long)} that both lengths decide: {up} from no to yes, {down} from "
        "yes to no."
    )


def _tried(row: Row) -> Tried:
    return {test["says"]: test for test in row["tests"] if test["verdict"] != NOT_TESTED}


def _group(tried: Tried) -> str:
    here = {test["holds"] for test in tried.values()}
    return GROUPS[True in here, False in here]


def shared_words(effects: list[str]) -> tuple[str, Callable[[str], str]]:
    """The words that all effects begin and end with, behind their numbers, to stand once;
    and how an effect reads without them: "4.96 times fewer steps with batch norm" becomes "4.96"."""
    said = [effect.split(" ") for effect in effects]
    before = commonprefix([words[1:] for words in said])
    after = commonprefix([words[1 + len(before) :][::-1] for words in said])[::-1]
    alike = all(len(words) == 1 + len(before) + len(after) for words in said)
    shared = " ".join(before + (after if alike or not after else ["…", *after]))

    def short(effect: str) -> str:
        words = effect.split(" ")
        return " ".join(words[:1] + words[1 + len(before) : len(words) - len(after)])

    return shared, short


def _cell(test: Row, short: Callable[[str], str], counted: bool) -> str:
    effect = short(test["effect"]["words"]).replace("|", "\\|")
    said = f"open, {effect}" if test["holds"] is None else f"{'yes' if test['holds'] else 'no'}, **{effect}**"
    return said + f"<br><small>n = {test['n']}</small>" * counted


# ---- The last cell of a notebook: this run's numbers and verdicts beside the book's --------------------------------

SHOWN_HEAD = (
    "| the source says | this run | its verdict | the book's run | its verdict |\n|:---|:---|:---|:---|:---|"
)
IN_QUOTES = "A verdict in quotes does not count: it is only what this run's numbers say by themselves."


def show_verdicts(chapter: str, profile: str, *, exact: bool = False) -> None:
    """Show, below the last cell of a notebook, what the book's claims say of the numbers that it recorded.

    Under `run` it stays silent: there the page shows the verdicts. The claims and the book's verdicts
    are those that the notebook carries, else those of the book around it; where there is neither, and for
    what this run has not recorded, it says so.
    """
    if os.environ.get("BNBOOK_RESULTS"):
        return
    from IPython.display import Markdown, display

    try:
        listed = carried(chapter) or of_the_book(chapter, exact=exact)
        found = session.current()
        found.header |= {"default_parameters": False}  # so that too few seeds leave a claim open
        other = unlike_the_books(chapter, found, sys._getframe(1).f_globals)
        text = comparison(listed, found, profile, other, exact=exact)
    except PressError as error:
        text = f"No verdicts: {error}"
    display(Markdown(text))


def unlike_the_books(chapter: str, found: session.Results, values: Mapping[str, Any]) -> str:
    """How a notebook's parameters and data differ from those of the book's run, in words: "width = 16, layers = 64"."""
    theirs = carried_settings.get(chapter)
    if theirs is None:
        try:
            theirs = session.load(chapter).header["parameters"]
        except PressError:
            theirs = {}
    another = "another profile" * (theirs.get("profile") != values.get("profile"))
    return other_settings(values, theirs, found.header.get("data", [])) or another


def comparison(
    listed: list[Carried], results: Recorded, profile: str, other: str = "", *, exact: bool = False
) -> str:
    """A Markdown table: a line per claim, and below it one per part or for the corrected form; this run's effect and
    verdict, then the book's of the same. Above it stands once in what the run is `other` than the book's, and that a
    verdict in quotes does not count."""
    lines, above = [SHOWN_HEAD], [f"Unlike the book's run, this {profile} run has {other}."] if other else []
    for theirs in listed:
        claim = theirs.claim
        counts = claim.counts_as_evidence(profile, exact) and (exact or not other)
        try:
            row = judge(claim, results, profile if counts else None, exact=exact)
            words = without_markup(row["words"])
            verdict = f"**{words}**" if counts else quoted(words)
            above += [] if counts or IN_QUOTES in above else [IN_QUOTES]
        except PressError as missing:
            row, verdict = empty_row(claim), f"not judged: {missing}"
        tests = [
            *zip_longest(claim.own_tests, as_carried(claim, row).tests, theirs.tests, fillvalue=(ABSENT, ""))
        ]
        if claim.parts:
            effects, asks = ("", ""), f"{'one' if claim.combine == 'any' else 'each'} part must hold"
        else:
            (_, *test), *found = tests.pop(0)
            effects, asks = [effect for effect, _ in found], f"must hold: {describe_test(*test)}"
        notes = [_where(row), asks]
        lines.append(line(claim.says, notes, effects[0], verdict, effects[1], without_markup(theirs.verdict)))
        for (says, *test), (effect, word), (book_effect, book_word) in tests:
            if effect != ABSENT or book_effect != ABSENT and not claim.rungs:
                asks, word = f"must hold: {describe_test(*test)}", word if counts else quoted(word)
                lines.append(line(f"– {says}", [asks], effect, word, book_effect, book_word))
    return "\n\n".join([" ".join(above)] * bool(above) + ["\n".join(lines)])


def quoted(words: str) -> str:
    """A verdict that does not count, and its notes."""
    verdict, notes, more = words.partition(" (")
    return words if verdict in ("", NOT_TESTED) else f"“{verdict}”{notes}{more}"


def as_carried(claim: Claim, row: Row | None) -> Carried:
    """What a run found of a claim, in words."""
    if row is None:
        return Carried(claim)
    return Carried(claim, marked(row), tuple((_measured(test), test["verdict"]) for test in row["tests"]))


def of_the_book(chapter: str, *, exact: bool = False) -> list[Carried]:
    """The chapter's claims from the book around this notebook, with the verdicts of its committed run."""
    mine = chapter_claims(chapter)
    if not mine:
        raise PressError(
            f"the book has no claims for {chapter!r}; expected PART/CHAPTER, such as theory/minima"
        )
    try:
        run = session.load(chapter)
        rows = [judge(claim, run, run.profile, exact=exact) for claim in mine]
    except PressError:
        return [Carried(claim, "no committed run") for claim in mine]
    for claim, row in zip(mine, rows, strict=True):
        row["exploratory"] = locks.standing(claim, run, locks.read()).exploratory
    return [*map(as_carried, mine, rows)]
