"""The text of pages, notebooks and alternative texts: numbers, tables and marks of verdicts, of the run that is shown.

`{{ VERB:WHAT | FORMAT or ELSE }}` is a token, its bar written \\| in a table; a `{measured}` block is a table of tokens; a
sentence that states a verdict ends in `{{ stands:GUARD = VERDICT }}`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import numpy as np

from bookpress import claims, paths
from bookpress.book import book
from bookpress.claims import judging
from bookpress.claims.words import alike, format_number, telling
from bookpress.errors import PressError, did_you_mean
from bookpress.intervals import geometric_ratio, mean_level, paired_difference
from bookpress.pipeline import chapter_runs
from bookpress.pipeline.chapter_runs import Evidence, LeftOut
from bookpress.profiles import PROFILES
from bookpress.texts import LOADER, parse_yaml


@dataclass(frozen=True)
class Pages:
    """All that tokens may ask for: the evidence rendered for each chapter (None where there is none), and the claims."""

    evidence: Mapping[str, Evidence | None]
    claims: list[claims.Claim]

    @cached_property
    def rows(self) -> dict[str, dict[str, Any]]:
        """The ledger's row of every claim, by its id."""
        known, rows = claims.load_instruments(), []
        for claim in self.claims:
            row = self.judgement(claim) or claims.empty_row(claim)
            own = {"rests_on": [one.id for one in claims.rests_on(claim, known)]}
            # what is kept of the tests hangs on which others are listed
            rows.append(row | own | {"tests": [dict(test) for test in row["tests"]]})
        claims.keep(rows)
        return {row["id"]: row for row in rows}

    def judgement(self, claim: claims.Claim) -> claims.Row | None:
        """The row of a claim by the run that is shown, None without one."""
        evidence = self.evidence.get(claim.chapter)
        return chapter_runs.judged(claim, evidence) if evidence else None

    def claim(self, name: str) -> claims.Claim:
        """The claim of that id; ValueError where no chapter has it."""
        known = {claim.id: claim for claim in self.claims}
        if name not in known:
            raise ValueError(no_claim(name, known))
        return known[name]

    def run(self, chapter: str) -> Evidence | None:
        """The run that is shown of a chapter; ValueError where there is no such chapter."""
        if chapter not in self.evidence:
            raise ValueError(f"no chapter {chapter!r}")
        return self.evidence[chapter]


# ---- Verbs: what is said of the values (S,) of a result, of two, of a run, of a verdict -------------------------------

ABSENT = "—"  # in place of a number of a chapter that has no fresh evidence


class NoFactor(ValueError):
    """That a result has no factor, for a value is not above 0. The book's own run must have one; a run of smaller scale
    may find nothing to divide by."""


#: Of one result: a number, or one with its interval. A seed that diverged counts as infinite in a median; `factor` and
#: `power` take logarithms to base ten.
STATISTICS: dict[str, Callable[[np.ndarray], Any]] = {
    "mean": lambda x: float(x.mean()),
    "median": lambda x: float(np.median(np.where(np.isnan(x), np.inf, x))),
    "power": lambda x: float(10.0 ** x.mean()),
    "value": lambda x: float(x[0]),
    "n": len,
    "ci": mean_level,
    "geo": lambda x: geometric_ratio(x, np.ones(len(x))),
    "factor": lambda x: tuple(10.0**edge for edge in mean_level(x)),
    "share": lambda x: tuple(min(max(edge, 0.0), 1.0) for edge in mean_level(x)),
}
#: Of two, paired by seed: the sign between them, a number or one with its interval, and its unit in a sentence.
PAIRED: dict[str, tuple[str, Callable[[np.ndarray, np.ndarray], Any], str]] = {
    "times": ("/", lambda a, b: geometric_ratio(a, b)[0], ""),
    "ratio": ("/", geometric_ratio, ""),
    "points": ("-", lambda a, b: 100 * paired_difference(a, b)[0], ""),
    "gap": ("-", lambda a, b: tuple(100 * edge for edge in paired_difference(a, b)), "points"),
    "seeds": ("<>", lambda a, b: f"{(a > b).sum()} of {len(a)}", ""),
}
FACTOR = (lambda *x: np.array(x) > 0, "a factor or geometric mean needs values above 0; use ci")
SHARES = "points are of shares, and one of these is none: expected values up to 1"
#: What the values must be that some of these take, and what to say where they are not; a lead may be negative.
NEEDS: dict[str, tuple[Callable[..., np.ndarray], str]] = {
    "value": (lambda x: (x == x[0]) | np.isnan(x) & np.isnan(x[0]), "its seeds differ; use mean or ci"),
    "share": (lambda x: (x >= 0) & (x <= 1), "a share lies between 0 and 1; use ci"),
    **dict.fromkeys(("geo", "times", "ratio"), FACTOR),
    **dict.fromkeys(("points", "gap"), (lambda *x: np.abs(x) <= 1, SHARES)),
}
#: Of a run and the rows of its chapter's claims; of one claim's row.
OF_RUN: dict[str, Callable[[Evidence, list[claims.Row]], str]] = {
    "data": lambda run, _: (
        ", ".join(book().data_names.get(one["name"], one["name"]) for one in run.results.header["data"])
        or "none"
    ),
    "profile": lambda run, _: run.profile,
    "verdicts": lambda _, rows: claims.markdown_table(rows),
    "standing": lambda _, rows: chapter_runs.how_sure(rows),
    "rungs": lambda _, rows: claims.rung_table(rows),
    "turned": lambda _, rows: claims.turned(rows),
}
OF_CLAIM: dict[str, Callable[[claims.Row, str], str]] = {
    "verdict": lambda row, _: claims.marked(row),
    "effect": claims.format_effect,
}

# ---- Tokens ----------------------------------------------------------------------------------------------------------

RESULT = r"(?:[a-z0-9/-]+#)?[A-Za-z][A-Za-z0-9_.-]*(?:\[-?\d+\])?"
TOKEN = re.compile(
    r"[ \t]*\{\{\s*(?P<verb>[a-z]+)(?::\s*(?P<what>[^{}|\\]*?))?\s*(?P<bar>\\?\|\s*(?P<format>[^{}]*?))?\s*\}\}"
)
#: What looks like a token, or begins as one and does not end: in formulas a command or a brace is before double braces.
LOOKS = re.compile(
    r"\{\{\s[^{}]*\}\}|(?<![\w}^])\{\{[a-z]+\s*(?::[^}]*)?(?:\|[^}]*)?\}\}|\{\{ [a-z]+:[^{}\n]*\}?(?!\})"
)
PLACE = re.compile(r"(?:([a-z0-9/-]+)#)?([A-Za-z0-9_.-]+)(?:\[(-?\d+|[A-Za-z][\w.]*)\])?")
PAIR = re.compile(rf"(?P<a>{RESULT})\s*(?P<sign> [-<>] |/)\s*(?P<b>{RESULT}|[\d.]+)")


class Token:
    """A token of a text: its verb, what it names, and how it is said."""

    def __init__(self, match: re.Match, alone: bool = False) -> None:
        self.alone = alone  # read by the last run alone, without the draws before it
        self.text, self.verb, self.what = match[0].lstrip(), match["verb"], match["what"] or ""
        form, _, self.instead = (match["format"] or "").partition(" or ")
        self.format, self.in_table = form.strip(), (match["bar"] or "").startswith("\\")
        self.guard, _, self.stated = (part.strip() for part in self.what.partition("="))
        one = PLACE.fullmatch(self.guard)
        self.chapter, self.name, self.index = one.groups() if one else (None, "", None)
        of_two = self.verb in {"stands", *PAIRED}
        self.pair = PAIR.fullmatch(self.guard.removeprefix("geo:")) if of_two else None
        self.sign = self.pair["sign"].strip() if self.pair else ""
        #: (chapter or None for the page's own, result, index) of each that it reads.
        self.places: list[tuple[str | None, str, str | None]] = []
        if self.pair:
            named = [PLACE.fullmatch(self.pair[side]) for side in "ab" if not self.pair[side][0].isdigit()]
            self.places = [each.groups() for each in named]
        elif self.verb in STATISTICS and one:
            self.places = [one.groups()]

    def is_known(self, own: Iterable[str] = ()) -> bool:
        """Whether pages know the verb, or this page has it of its own, and it names what it should."""
        if self.verb in PAIRED:
            return bool(self.pair)
        by_name = self.verb in {*STATISTICS, *OF_CLAIM, "param"}
        return by_name and bool(self.name) or self.verb in {"stands", *OF_RUN, *own}

    def lacking(self, page: str, pages: Pages) -> list[tuple[Evidence, str]]:
        """Those of its results that their runs have not recorded."""
        runs = [(pages.run(chapter or page), name) for chapter, name, _ in self.places]
        return [(run, name) for run, name in runs if run and name not in run.results]


def tokens(text: str) -> list[Token]:
    """Every token of a text that pages have in common, those of its tables among them."""
    return [token for token in map(Token, TOKEN.finditer(expand(text))) if token.is_known()]


def result_names(text: str, or_else: bool = True) -> set[tuple[str | None, str]]:
    """(chapter or None for this one, result) of every result that a text reads; without or_else not those for which a
    token says what stands there where the run has none."""
    read = (token.places for token in tokens(text) if or_else or not token.instead)
    return {(chapter, name) for places in read for chapter, name, _ in places}


def malformed(text: str, own: Iterable[str] = ()) -> list[str]:
    """Double braces that look like a token and are none."""
    return LOOKS.findall(TOKEN.sub(lambda match: match[0] * (not Token(match).is_known(own)), expand(text)))


def no_token(text: str) -> str:
    """What is wrong with double braces that are no token, and what to do."""
    if not text.endswith("}}"):
        return f"{text} does not end; expected }}}} behind it"
    verb = re.match(r"\{\{\s*(\w*)", text)[1]
    known = {*STATISTICS, *PAIRED, *OF_CLAIM, *OF_RUN, "param", "stands"}
    return f"{text} is not a token that pages know; {did_you_mean(verb, known - {verb})}docs/writing.md lists them"


def no_claim(name: str, known: Iterable[str]) -> str:
    """That no chapter has a claim of that id, and which is meant, perhaps."""
    return f"no chapter has a claim {name!r}; {did_you_mean(name, known)}".rstrip("; ")


def fill(
    text: str, page: str, pages: Pages, extra: Mapping[str, str | Callable[[Any], str]] | None = None
) -> str:
    """The text with every token replaced by what it stands for; PressError for what asks for something that does not
    exist. extra: what a verb stands for on this page, or how to tell from the token; `stands` from the mark, which by
    itself is nothing, or says what was found where that is something else."""
    extra, text = extra or {}, expand(text, page)
    if unknown := malformed(text, extra):
        raise PressError(f"{page}.md: {no_token(unknown[0])}")
    # a figure shows the last run alone, and so do the numbers below it
    figures = [match.span() for match in chapter_runs.FIGURE.finditer(text)]

    def stands(match: re.Match) -> str:
        mark = mark_of(Token(match), page, pages)  # by all draws, as `check` reads it
        in_words = text[text.rfind("\n", 0, match.start()) + 1 :].startswith(":alt:")
        if "stands" in extra and not in_words:
            return f"\u00a0{extra['stands'](mark)}".rstrip()  # a sign begins no line
        return f" ({mark.turned})" * bool(mark.turned)

    def said(match: re.Match) -> str:
        token = Token(match, any(start <= match.start() < end for start, end in figures))
        if not token.is_known(extra):
            return match[0]
        try:
            if token.verb == "stands":
                return stands(match)
            own = extra.get(token.verb, lambda token: _said(token, page, pages))
            value = own if isinstance(own, str) else own(token)
        except LeftOut as left_out:
            value = str(left_out)
        except (ValueError, TypeError, IndexError) as problem:  # also a format or index that does not fit
            runs = (pages.evidence.get(chapter or page) for chapter, *_ in token.places)
            if not isinstance(problem, NoFactor) or any(map(_counts, runs)):
                raise PressError(f"token {token.text} on page {page}: {problem}") from None
            value = ABSENT
        return match[0].removesuffix(token.text) + value

    return TOKEN.sub(said, text)


def _said(token: Token, page: str, pages: Pages) -> str:
    """What a token that pages have in common stands for."""
    if token.verb in OF_CLAIM:
        row = pages.judgement(pages.claim(token.name))
        return OF_CLAIM[token.verb](row, token.format) if row else ABSENT
    if token.places:
        lacks = token.instead and token.lacking(page, pages)
        return token.instead if lacks else _measured(token, page, pages)
    where = token.chapter or page
    if (run := pages.run(where)) is None:
        return ABSENT
    if token.verb in OF_RUN:
        own = [pages.judgement(claim) for claim in pages.claims if claim.chapter == where]
        return OF_RUN[token.verb](run, own)
    parameters = run.results.header["parameters"]
    if token.name not in parameters:
        raise ValueError(f"{where} has no parameter {token.name!r}")
    value = parameters[token.name][int(token.index)] if token.index else parameters[token.name]
    if token.format == "fraction":
        return str(Fraction(value).limit_denominator(1000))
    return format(value, token.format) if token.format else _plain(value)


def _plain(value: Any, powers: bool = False) -> str:
    """A parameter."""
    if isinstance(value, list):  # of numbers read together all that are small are powers of ten, or none is
        powers = any(isinstance(item, float) and "e" in str(item) for item in value)
        return ", ".join(_plain(item, powers) for item in value)
    if isinstance(value, float) and (powers or "e" in str(value)):
        return format_number(value, f".{len(Decimal(str(value)).normalize().as_tuple().digits) - 1}e")
    return f"{value:,}" if type(value) is int else str(value)


def _measured(token: Token, page: str, pages: Pages) -> str:
    """A number of one result or of two, or one with its interval: in a sentence in brackets, in a table small and below
    it. Words behind the format of two stand between the number and its interval."""
    two, small = token.verb in PAIRED, token.in_table
    signs, of, unit = PAIRED[token.verb] if two else ("", STATISTICS[token.verb], "")
    if token.sign not in signs:
        raise ValueError(f"expected {' or '.join(signs)} between the two results of {token.verb}")
    if (columns := values(token, page, pages)) is None:
        return ABSENT
    if token.verb in NEEDS and not np.all(NEEDS[token.verb][0](*columns)):
        kind = NoFactor if NEEDS[token.verb] is FACTOR else ValueError
        raise kind(NEEDS[token.verb][1])
    with np.errstate(invalid="ignore"):  # of a seed that diverged the interval is none, which is shown
        found = of(*columns[:: -1 if token.sign == "<" else 1])
    spec, _, words = (token.format or (".2g" if two else ".3g")).partition(" " if two else "\0")
    if not isinstance(found, tuple):
        return format_number(found, spec) if isinstance(found, float) else str(found)
    n, spec = len(columns[0]), telling(*found[1:], spec)
    middle, low, high = alike(found, spec)
    if words := words if small else words or unit:
        middle += f" {words}"
    if n < 2 and not (small and two):
        return f"{middle} (one seed, no interval)"
    if found[1] == found[2] and not two:
        shown = "the same for every seed"
    else:
        shown = f"{low.removesuffix(' %') if small and not two else low} to {high}"
        shown = shown if small else f"95 % interval {shown}"
    if not two and n < pages.run(token.chapter or page).results.header["parameters"].get("seeds", 0):
        shown += f"; n = {n}"
    return f"{middle}<br><small>{shown}</small>" if small else f"{middle} ({shown})"


def values(token: Token, page: str, pages: Pages) -> list[np.ndarray] | None:
    """Values (S,) of one result, or of two, paired by seed; a number stands for itself, no run is None.

    Where only one of them has earlier draws, with other seeds, both are taken by the last run alone; so are they
    where they are drawn.
    """
    runs = [pages.run(chapter or page) for chapter, *_ in token.places]
    if None in runs:
        return None
    for alone in (True,) if token.alone else (False, True):
        found = []
        for (chapter, name, index), run in zip(token.places, runs, strict=True):
            together = {other for place, other, _ in token.places if place == chapter}
            found.append(run.column(name, index, alone=alone, together=together))
        columns = [values for _, values in found]
        if token.pair and len(found) < 2:
            return [*columns, np.full(len(columns[0]), float(token.pair["b"]))]
        if found[0][0] == found[-1][0]:
            return columns
    both = f"{token.pair['a']} and {token.pair['b']}"
    raise ValueError(f"{both} come from different seeds; expected the same ones")


def has_sibling(name: str, recorded: Iterable[str]) -> bool:
    """Whether there is the same of another size, `speed.w1.batch` for `speed.long.batch`: what is no slip of the
    pen."""
    parts = name.split(".")
    others = (other.split(".") for other in recorded)
    return any(len(o) == len(parts) > 1 and o[:1] + o[2:] == parts[:1] + parts[2:] for o in others)


# ---- Sentences that state a verdict: `{{ stands:GUARD = VERDICT }}` behind each ---------------------------------------

#: A word in a mark -> the verdict that it stands for: the verdict itself, or how it begins or ends.
SHORT = {"partly refuted": judging.PARTLY_REFUTED, "holds if": judging.HOLDS_IF}
SHORT |= {"corrected": judging.CORRECTED, "not tested": judging.NOT_TESTED}
WHOLE = (judging.REPRODUCED, judging.MIXED, judging.NOT_REPRODUCED, judging.HOLDS, judging.WRONG)
STATED = {verdict: verdict for verdict in (*WHOLE, judging.YES, judging.NO, judging.OPEN)} | SHORT
WORD_FOR = {verdict: word for word, verdict in STATED.items()}


class Mark(NamedTuple):
    """What a sentence states: of a claim, `claim-id`, of `claim-id[result]`, its part that tests this result, or of a
    comparison of results, `a > b`, `a < 0.5` or `geo:a > b`; what the run that is shown says of it, and whether that
    run counts as much as the book's own."""

    guard: str
    stated: str
    now: str
    counts: bool

    @property
    def claim(self) -> str:
        """The id of its claim, empty where it is a comparison."""
        return "" if re.search(" [<>] ", self.guard) else self.guard.partition("[")[0]

    @property
    def turned(self) -> str:
        """What is written beside a sentence that does not stand: of a run that counts whatever it says, of another one
        what it decides; empty where nothing else was found, or nothing tested."""
        if self.now in (self.stated, "not tested") or self.now == "open" and not self.counts:
            return ""
        return f"{'now' if self.counts else 'this run'}: {self.now}"


def mark_of(token: Token, page: str, pages: Pages) -> Mark:
    """The mark that a token is; ValueError says what is wrong with it."""
    if not (token.guard and token.stated):
        raise ValueError("expected `stands:CLAIM = VERDICT`")
    if token.stated not in STATED:
        raise ValueError(f"{token.stated!r} is no verdict; expected one of {', '.join(STATED)}")
    if token.sign in ("<", ">"):
        chapter = next((chapter for chapter, *_ in token.places if chapter), page)
        verdict = _compared(token, page, pages, pages.run(chapter))
    elif token.name and not token.chapter:
        claim = pages.claim(token.name)
        chapter, verdict = claim.chapter, _judged(claim, token.index, pages)
    else:
        raise ValueError("expected a claim, or a comparison such as `loss.none > loss.batch`")
    return Mark(token.guard, token.stated, WORD_FOR[verdict], _counts(pages.evidence.get(chapter)))


def marks(file: Path, pages: Pages) -> Iterator[tuple[str, Mark]]:
    """Every mark of a page, with its place, `book/PART/NAME.md:LINE`; PressError for one that asks for what does not
    exist."""
    text, name = file.read_text(encoding="utf-8"), file.relative_to(paths.book_folder()).as_posix()
    for match in (each for each in TOKEN.finditer(text) if each["verb"] == "stands"):
        place = f"{paths.book_folder().name}/{name}:{text.count(chr(10), 0, match.start()) + 1}"
        try:
            yield place, mark_of(Token(match), name.rpartition(".")[0], pages)
        except ValueError as problem:
            raise PressError(f"{place} {match[0].strip()}: {problem}") from None


def _judged(claim: claims.Claim, result: str | None, pages: Pages) -> str:
    """The verdict on a claim, or on its part that tests a result."""
    parts = [number for number, part in enumerate(claim.parts) if result in part.test.result_names()]
    if result and len(parts) != 1:
        raise ValueError(f"{len(parts)} parts of {claim.id} test {result!r}; expected one")
    row = pages.judgement(claim) or {"verdict": judging.NOT_TESTED}
    whole = not result or row["verdict"] == judging.NOT_TESTED
    return row["verdict"] if whole else row["tests"][parts[0]]["verdict"]


def _compared(token: Token, page: str, pages: Pages, run: Evidence | None) -> str:
    """Whether a comparison holds by a run: open where the 95 % interval of the mean paired difference, with `geo:` ratio,
    has both sides, or the run has other sizes alone. It is no test, so a smoke run of a chapter that measures does not
    try it: its grids may be too short for an index."""
    lacking = token.lacking(page, pages)
    if lacking and all(has_sibling(name, run.results) for run, name in lacking):
        return judging.OPEN
    tried = run is not None and (run.profile != "smoke" or run.chapter.exact)
    if not tried or (columns := values(token, page, pages)) is None:
        return judging.NOT_TESTED
    if not np.isfinite(columns).all():
        return judging.OPEN
    larger, smaller = columns if token.sign == ">" else columns[::-1]
    of, even = (geometric_ratio, 1.0) if token.guard.startswith("geo:") else (paired_difference, 0.0)
    _, low, high = of(larger, smaller)
    return judging.YES if low > even else judging.NO if high < even else judging.OPEN


def _counts(run: Evidence | None) -> bool:
    """Whether a run says as much of a verdict as the book's: it is published, or is one of the same profile or a higher
    one, with the parameters that the profile has."""
    if run is None or run.is_published:
        return run is not None
    of_book = next((each.folder.name for each in chapter_runs.published_runs(run.chapter)), PROFILES[1])
    is_as_high = PROFILES.index(run.profile) >= PROFILES.index(of_book)
    return is_as_high and bool(run.results.header.get("default_parameters"))


# ---- Tables of numbers: a `{measured}` block becomes a Markdown table of tokens, as docs/writing.md says ---------------

MEASURED = re.compile(
    r"^(?P<fence>`{3,}|:{3,})\{measured\}[ \t]*\n(?P<body>.*?)^(?P=fence)[ \t]*$", re.M | re.S
)
CELL = re.compile(rf"(?:(?P<verb>[a-z]+):)?(?P<what>{RESULT})\s*(?:\|\s*(?P<format>[^\s|]+))?")
NAME = re.compile(r"\$[^$]*\$|(?<!\{)\{([a-z]\w*)\}(?!\})")  # {column}, not in a formula, no token's braces
KEYS = {"corner", "columns", "rows", "statistic", "format", "missing"}
WITHOUT_FORMAT = ("n", "param", "verdict")


class _Plain(LOADER):
    """YAML whose texts are text: `.3f`, `1` and `none` stay what was written."""

    yaml_implicit_resolvers: dict[str, Any] = {}


def expand(text: str, page: str = "") -> str:
    """The text with every `{measured}` block replaced by a Markdown table whose cells are tokens; PressError, one line
    that begins with the page, for a block that is none.

    A row's text with a name in braces is the cell of each column, `{column}` standing for the column's text; otherwise the
    column's text is, with `{row}`; names with values may stand in place of the text that is put in. A row may also be a
    list of its cells, of which a last one with a name serves all further columns.
    """
    return MEASURED.sub(lambda match: _table(match["body"], page), text)


def _names(text: Any) -> list[str]:
    return [name for name in NAME.findall(text) if name] if isinstance(text, str) else []


@lru_cache(maxsize=512)  # gate, page and notebook ask for the same ones
def _table(body: str, page: str) -> str:
    start = body.strip().partition("\n")[0][:60]
    where = f"page {page}: " * bool(page) + f"{{measured}} table {start!r}"

    def amiss(found: str, expected: str) -> NoReturn:
        raise PressError(f"{where} {found}; expected {expected}")

    given = parse_yaml(body, where, _Plain)
    if not isinstance(given, dict) or not {"columns", "rows"} <= set(given) <= KEYS:
        has = ", ".join(map(str, given)) if isinstance(given, dict) else "no keys"
        amiss(f"has {has}", "columns and rows; optional corner, statistic, format, missing")
    pairs: dict[str, list[tuple[str, Any]]] = {}
    for key in ("columns", "rows"):
        listed = given[key] if isinstance(given[key], list) else [given[key]]
        if not listed or not all(isinstance(one, dict) for one in listed):
            amiss(f"has {key} {given[key]!r}", "`title: text` lines")
        pairs[key] = [(str(title), text) for one in listed for title, text in one.items()]
    columns = [text for _, text in pairs["columns"]]

    def cell(row: str, pattern: Any, what: str, put: Any, statistic: str | None) -> str:
        if isinstance(pattern, dict) or what == "row" and not _names(pattern):
            amiss(f"{row} has no cells", "a text with {column} there or with {row} in the columns")
        known = put if isinstance(put, dict) else {what: put}
        if unknown := [name for name in _names(pattern) if name not in known]:
            amiss(f"{row} asks for {{{unknown[0]}}}", f"one of {', '.join(map(str, known))}")
        text = NAME.sub(lambda match: str(known[match[1]]) if match[1] else match[0], str(pattern)).strip()
        found = CELL.fullmatch(text)
        if not (verb := found and (found["verb"] or statistic)):
            if re.fullmatch(r"[a-z]\w*(\.\w+)+", text):
                amiss(f"{row} has the cell {text!r}", f"{', '.join(STATISTICS)}:NAME")
            return text
        form = f" | {found['format'] or given.get('format', '.3g')}" * (verb not in WITHOUT_FORMAT)
        instead = f" or {given['missing']}" if form and "missing" in given else ""
        return f"{{{{ {verb}:{found['what']}{form}{instead} }}}}"

    lines = [[given.get("corner", ""), *(title for title, _ in pairs["columns"])]]
    lines.append(["---"] * len(lines[0]))
    for title, row in pairs["rows"]:
        cells = row if isinstance(row, list) else [row] * len(columns)
        what = "column" if isinstance(row, list) or _names(row) else "row"
        if cells and _names(cells[-1]):
            cells = cells + cells[-1:] * (len(columns) - len(cells))
        if len(cells) != len(columns):
            amiss(f"row {title!r} has {len(cells)} cells", f"{len(columns)}, one a column")
        line = [title]
        for pattern, column in zip(cells, columns):
            statistic = given.get("statistic") if not isinstance(row, list) or _names(pattern) else None
            put = (pattern, what, column) if what == "column" else (column, what, row)
            line.append(cell(f"row {title!r}", *put, statistic))
        lines.append(line)
    bars = [[re.sub(r"(?<!\\)\|", r"\\|", each) for each in line] for line in lines]
    return "\n".join(f"| {' | '.join(line).strip()} |" for line in bars)
