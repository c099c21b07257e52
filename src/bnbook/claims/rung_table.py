"""Which answers stay and which turn: tables of claims against the rungs of a ladder."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from os.path import commonprefix

from bnbook.claims.effects import effect_and_interval
from bnbook.claims.judging import NOT_TESTED, Judgement
from bnbook.claims.outcome import Outcome
from bnbook.claims.tables import changed_note, exploratory_note
from bnbook.claims.words import without_markup

UNTRIED = "–"
#: Whether a claim holds and whether it fails at some rung -> what is said of it.
GROUPS = {
    (True, True): "Turns between the rungs",
    (True, False): "Holds wherever it is decided",
    (False, True): "Fails wherever it is decided",
    (False, False): "Open",
}


def rung_table(judgements: Iterable[Judgement]) -> str:
    """Markdown tables, one for the claims that turn, one each for those that hold, fail and are open at all
    rungs: a row for each claim that is judged rung by rung, a column for each rung that was reached, whose
    seeds stand in its head where all claims have as many; whether it holds there, and beside the word the
    effect. Below them the rungs that no run has reached."""
    rows = [found for found in judgements if found.claim.rungs and found.parts]
    named = dict.fromkeys(says for found in rows for says, _, _ in found.parts)
    tried = {says for found in rows for says, verdict, _ in found.parts if verdict != NOT_TESTED}
    shown, missing = [says for says in named if says in tried], [says for says in named if says not in tried]
    if not shown:
        return "No rung has been reached."
    seeds: dict[str, set[int]] = {says: set() for says in named}
    for says, verdict, outcome in (part for found in rows for part in found.parts):
        seeds[says] |= {outcome.n} if verdict != NOT_TESTED else set()
    groups: dict[str, list[str]] = {title: [] for title in GROUPS.values()}
    for found in rows:
        parts = {says: (verdict, outcome) for says, verdict, outcome in found.parts}
        here = [outcome.holds for verdict, outcome in parts.values() if verdict != NOT_TESTED]
        if here:
            said = [
                effect_and_interval(outcome)[0]
                for verdict, outcome in parts.values()
                if verdict != NOT_TESTED
            ]
            words, short = shared_words(said)
            shared = f"<br><small>{words}</small>".replace("|", "\\|") * bool(words)
            cells = [
                _cell(*parts[says], short, len(seeds[says]) > 1) if says in parts else "" for says in shown
            ]
            words = without_markup(found.claim.says).replace("|", "\\|")
            words += exploratory_note(found) + changed_note(found) + shared
            groups[GROUPS[True in here, False in here]].append(f"| {words} | {' | '.join(cells)} |")
    counted = {says: f"<br><small>n = {min(seeds[says])}</small>" * (len(seeds[says]) == 1) for says in shown}
    titles = " | ".join(_short(says) + counted[says] for says in shown)
    head = [f"| the source says | {titles} |", "|:---|" + ":---|" * len(shown)]
    tables = [
        "\n".join([f"**{title}** ({len(lines)})\n", *head, *lines])
        for title, lines in groups.items()
        if lines
    ]
    if missing:
        tables.append(f"Not tested at this scale: {'; '.join(map(_short, missing))}.")
    return "\n\n".join(tables)


def turned(judgements: Iterable[Judgement]) -> str:
    """How many claims hold at one rung and fail at another, hold or fail wherever they are decided, and are
    open; and, where a width has rungs of two lengths, how many turn with the width and with the length."""
    judgements, counts = list(judgements), dict.fromkeys(GROUPS, 0)
    for found in judgements:
        parts = [outcome.holds for _, verdict, outcome in found.parts if verdict != NOT_TESTED]
        if found.claim.rungs and parts:
            counts[True in parts, False in parts] += 1
    turn, hold, fail, still = counts.values()
    every = sum(counts.values())
    if not every:
        return "No rung has been reached."
    who = "One claim" if turn == 1 else f"{turn or 'None'} of the {every} claims"
    s = "s" * (turn < 2)
    decided = f"{hold} hold{'s' * (hold == 1)} and {fail} fail{'s' * (fail == 1)} at every rung that decides"
    return (
        f"{who} hold{s} at one rung and fail{s} at another; {decided}, {still} "
        f"{'is' if still == 1 else 'are'} open at every rung.{_with_what(judgements)}"
    )


def _with_what(judgements: list[Judgement]) -> str:
    """Whether claims turn between widths, at as many steps, or between numbers of steps, at one width."""
    wide, long = 0, []
    for found in (each for each in judgements if each.claim.rungs):
        widths, lengths = defaultdict(list), defaultdict(list)
        for says, verdict, outcome in found.parts:
            if verdict != NOT_TESTED and outcome.holds is not None:
                width, _, steps = _short(says).partition(", ")
                widths[steps].append(outcome.holds)
                lengths[width].append(outcome.holds)
        wide += any(len(set(decided)) > 1 for decided in widths.values())
        long += [(decided[0], decided[-1]) for decided in lengths.values() if len(decided) > 1]
    if not long:
        return ""
    up, down = long.count((False, True)), long.count((True, False))
    return (
        f" At as many steps {wide or 'none'} turn{'s' * (wide < 2)} with the width; with the number of "
        f"steps, at one width, {up + down or 'none'} of {len(long)} turn{'s' * (up + down < 2)}: {up} from "
        f"no to yes, {down} from yes to no."
    )


def ends(found: Judgement) -> str:
    """The effects at the first rung, at the last that was reached of as many steps, and at one of more: "4.96
    times fewer steps at 1/16 of the width, 2.53 (open) at the whole width, 1.75 after 15,000 steps at 1/4 of
    the width"."""
    tried = [(_short(says).partition(", "), at) for says, verdict, at in found.parts if verdict != NOT_TESTED]
    if not tried:
        return UNTRIED
    steps = tried[0][0][2]
    alike = [(width.lower(), at) for (width, _, own), at in tried if own == steps]
    shown = [(f"at {width}", at) for width, at in alike[:1] + alike[1:][-1:]]
    longer = [(f"after {own} at {width.lower()}", at) for (width, _, own), at in tried if own != steps]
    said, before = [], ""
    for place, outcome in shown + [each for each in longer if ", " not in each[0]][-1:]:
        effect, still = effect_and_interval(outcome)[0], " (open)" * (outcome.holds is None)
        number, _, words = effect.partition(" ")
        said.append(f"{number if words == before else effect}{still} {place}")
        before = words
    return ", ".join(said)


def _short(says: str) -> str:
    return says.rstrip(".")


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


def _cell(verdict: str, outcome: Outcome, short: Callable[[str], str], counted: bool) -> str:
    if verdict == NOT_TESTED:
        return UNTRIED
    effect = short(effect_and_interval(outcome)[0]).replace("|", "\\|")
    said = f"open, {effect}" if outcome.holds is None else f"{'yes' if outcome.holds else 'no'}, **{effect}**"
    return said + f"<br><small>n = {outcome.n}</small>" * counted
