"""The text of pages: numbers, tables and marks of verdicts, filled in from the run that is shown."""

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
from bookpress.claims.ledger import format_effect
from bookpress.claims.words import alike, format_number, telling
from bookpress.errors import PressError
from bookpress.intervals import Interval, geometric_ratio, mean_level, paired_difference
from bookpress.pipeline import chapter_runs
from bookpress.pipeline.chapter_runs import Evidence, LeftOut
from bookpress.profiles import PROFILES
from bookpress.texts import LOADER, parse_yaml

# ---- What pages are filled from: the evidence that is shown for each chapter, and the claims that it judges --------


@dataclass(frozen=True)
class Pages:
    """All that tokens may ask for: the evidence rendered for each chapter (None where there is none)."""

    evidence: dict[str, Evidence | None]
    claims: list[claims.Claim]

    @cached_property
    def rows(self) -> dict[str, dict[str, Any]]:
        """The ledger's row of every claim, by its id."""
        known = claims.load_instruments()
        rows = [self._row(claim, [one.id for one in claims.rests_on(claim, known)]) for claim in self.claims]
        claims.keep(rows)
        return {row["id"]: row for row in rows}

    def _row(self, claim: claims.Claim, rests_on: list[str]) -> dict[str, Any]:
        found, evidence = self.judgement(claim), self.evidence.get(claim.chapter)
        if not found or not evidence:
            return claims.ledger_row(claim, None, rests_on=rests_on)
        exact = evidence.chapter.exact
        margins = claims.at_other_margins(claim, evidence.results, found.profile, exact=exact)
        return claims.ledger_row(claim, found, margins, rests_on)

    def judgement(self, claim: claims.Claim) -> claims.Judgement | None:
        evidence = self.evidence.get(claim.chapter)
        return chapter_runs.judged(claim, evidence) if evidence else None

    def claim(self, name: str) -> claims.Claim:
        """The claim of that id; ValueError where no chapter has it."""
        found = [claim for claim in self.claims if claim.id == name]
        if not found:
            raise ValueError(f"no chapter has a claim {name!r}")
        return found[0]

    def run(self, chapter: str) -> Evidence | None:
        """The run that is shown of a chapter; ValueError where there is no such chapter."""
        if chapter not in self.evidence:
            raise ValueError(f"no chapter {chapter!r}")
        return self.evidence[chapter]


# ---- Tokens: `{{ VERB:WHAT | FORMAT or ELSE }}`, in a table with its bar written \\| ----------------------------------

ABSENT = "—"  # in place of a number of a chapter that has no fresh evidence
RESULT = r"(?:[a-z0-9/-]+#)?[A-Za-z][A-Za-z0-9_.-]*(?:\[-?\d+\])?"
TOKEN = re.compile(
    r"[ \t]*\{\{\s*(?P<verb>[a-z]+)(?::\s*(?P<what>[^{}|\\]*?))?\s*(?P<bar>\\?\|\s*(?P<format>[^{}]*?))?\s*\}\}"
)
ONE = re.compile(
    r"(?:(?P<chapter>[a-z0-9/-]+)#)?(?P<name>[A-Za-z0-9_.-]+)(?:\[(?P<index>-?\d+|[A-Za-z][\w.]*)\])?"
)
TWO = re.compile(rf"(?P<a>{RESULT})\s*(?P<sign> [-<>] |/)\s*(?P<b>{RESULT}|[\d.]+)")
COMPARISON = re.compile(rf"(?P<geo>geo:)?(?P<a>{RESULT})\s+(?P<sign>[<>])\s+(?P<b>{RESULT}|[\d.]+)")
#: A figure shows the last run alone, and so do the numbers below it.
FIGURE = re.compile(r"^(`{3,}|:{3,})\{figure\}.*?^\1", re.M | re.S)


class NoFactor(ValueError):
    """That a result has no factor, for a value is not above 0. The book's own run must have one; a run of smaller scale
    may find nothing to divide by."""


def _need(holds: Any, words: str, kind: type[ValueError] = ValueError) -> bool:
    if not np.all(holds):
        raise kind(words)
    return True


def _single(x: np.ndarray) -> float:
    _need((x == x[0]) | np.isnan(x) & np.isnan(x[0]), "its seeds differ; use mean or ci")
    return float(x[0])


def _geo(x: np.ndarray) -> Interval:
    _need(x > 0, "a geometric mean needs values above 0; use ci", NoFactor)
    return geometric_ratio(x, np.ones(len(x)))


def _share(x: np.ndarray) -> Interval:
    _need((x >= 0) & (x <= 1), "a share lies between 0 and 1; use ci")
    mean, low, high = mean_level(x)
    return mean, max(low, 0.0), min(high, 1.0)


def _ratio(a: np.ndarray, b: np.ndarray) -> Interval:
    _need((a > 0) & (b > 0), "a factor needs values above 0", NoFactor)
    return geometric_ratio(a, b)


def _points(a: np.ndarray, b: np.ndarray) -> Interval:  # a lead, a difference of shares, may be negative
    _need(
        max(abs(a).max(), abs(b).max()) <= 1,
        "points are of shares, and one of these is none: expected values up to 1",
    )
    mean, low, high = paired_difference(a, b)
    return 100 * mean, 100 * low, 100 * high


#: Verb -> of a result's values (S,) a number, or one with its interval. A seed that diverged counts as infinite in a
#: median; `factor` and `power` take logarithms to base ten.
STATISTICS: dict[str, Callable[[np.ndarray], float | int | Interval]] = {
    "mean": lambda x: float(x.mean()),
    "median": lambda x: float(np.median(np.where(np.isnan(x), np.inf, x))),
    "power": lambda x: float(10.0 ** x.mean()),
    "value": _single,
    "n": len,
    "ci": mean_level,
    "geo": _geo,
    "factor": lambda x: tuple(10.0**edge for edge in mean_level(x)),
    "share": _share,
}
#: Verb of two results, paired by seed -> the sign between them, a number or one with its interval, and its unit there.
PAIRED: dict[str, tuple[str, Callable[[np.ndarray, np.ndarray], float | Interval], str]] = {
    "times": ("/", lambda a, b: _ratio(a, b)[0], ""),
    "ratio": ("/", _ratio, ""),
    "points": ("-", lambda a, b: _points(a, b)[0], ""),
    "gap": ("-", _points, "points"),
    "seeds": ("<>", lambda a, b: float((a > b).sum()), ""),
}
#: Verb -> what the header of a run says.
HEADER: dict[str, Callable[[Mapping[str, Any]], str]] = {
    "data": lambda header: (
        ", ".join(book().data_names.get(row["name"], row["name"]) for row in header["data"]) or "none"
    ),
    "profile": lambda header: header["profile"],
    "device": lambda header: header["provenance"]["device"],
}
#: Verb -> what is said of all verdicts of a chapter; of one.
VERDICTS = {
    "verdicts": claims.markdown_table,
    "standing": chapter_runs.how_sure,
    "rungs": claims.rung_table,
    "turned": claims.turned,
}
OF_CLAIM: dict[str, Callable[[claims.Judgement, str], str]] = {
    "verdict": lambda found, _: found.marked,
    "effect": lambda found, spec: format_effect(found, spec or None),
}


class Token:
    """A token of a text: its verb, what it names, and how it is said."""

    def __init__(self, match: re.Match, alone: bool = False) -> None:
        self.alone = alone  # read by the last run alone, without the draws before it
        self.text, self.verb, self.what = match[0].lstrip(), match["verb"], match["what"] or ""
        form, _, self.instead = (match["format"] or "").partition(" or ")
        self.format, self.in_table = form.strip(), (match["bar"] or "").startswith("\\")
        self.one, self.two = ONE.fullmatch(self.what), TWO.fullmatch(self.what)
        self.chapter, self.name, self.index = self.one.groups() if self.one else (None, "", None)

    def is_known(self, own: Iterable[str] = ()) -> bool:
        """Whether pages know the verb, or this page has it of its own, and it names what it should."""
        if self.verb in PAIRED:
            return bool(self.two)
        alone = self.verb in {"stands", *HEADER, *VERDICTS, *own}
        return alone or bool(self.one) and self.verb in {*STATISTICS, *OF_CLAIM, "param"}

    @property
    def results(self) -> set[tuple[str | None, str]]:
        """(chapter or None for the page's own, result) of all that it reads."""
        if self.verb == "stands":
            return _of_pair(COMPARISON.fullmatch(self.what.partition("=")[0].strip()))
        return (
            _of_pair(self.two)
            if self.verb in PAIRED
            else {(self.chapter, self.name)}
            if self.verb in STATISTICS
            else set()
        )


def tokens(text: str) -> list[Token]:
    """Every token of a text that pages have in common."""
    return [token for token in map(Token, TOKEN.finditer(text)) if token.is_known()]


def _of_pair(match: re.Match | None) -> set[tuple[str | None, str]]:
    places = [ONE.fullmatch(match[key]) for key in ("a", "b") if not match[key][0].isdigit()] if match else []
    return {(place["chapter"], place["name"]) for place in places}


def result_names(text: str, or_else: bool = True) -> set[tuple[str | None, str]]:
    """(chapter or None for this one, result) of every result that the tokens of a text read; without or_else not those
    for which a token says what stands there where the run has none."""
    return set().union(*(token.results for token in tokens(expand(text)) if or_else or not token.instead))


def names_shown_as(verb: str, text: str) -> set[str]:
    """Results of a chapter that its text shows by one verb."""
    return {token.name for token in tokens(expand(text)) if token.verb == verb and not token.chapter}


def malformed(text: str, own: Iterable[str] = ()) -> list[str]:
    """Double braces that look like a token and are none; in formulas a command or a brace is before."""
    looks = r"\{\{\s[^{}]*\}\}|(?<![\w}^])\{\{[a-z]+\s*(?::[^}]*)?(?:\|[^}]*)?\}\}"
    return re.findall(
        looks, TOKEN.sub(lambda match: match[0] * (not Token(match).is_known(own)), expand(text))
    )


def fill(
    text: str,
    page: str,
    pages: Pages,
    extra: Mapping[str, str | Callable[[Any], str]] | None = None,
    alone: bool = False,
) -> str:
    """The text with every token replaced by what it stands for; PressError for what asks for something that does not
    exist.

    extra: what a verb stands for on this page, or how to tell from the token; `stands` from the mark, which by itself is
    nothing, or says what was found where that is something else. alone: the text is of a figure.
    """
    extra, text = extra or {}, expand(text, page)
    if unknown := malformed(text, extra):
        raise PressError(f"{page}.md: {unknown[0]} is not a token that pages know")
    figures = [match.span() for match in FIGURE.finditer(text)]

    def said(match: re.Match) -> str:
        token = Token(match, alone or any(start <= match.start() < end for start, end in figures))
        if not token.is_known(extra):
            return match[0]
        try:
            if token.verb == "stands":
                in_words = text[text.rfind("\n", 0, match.start()) + 1 :].startswith(":alt:")
                mark = mark_of(token.what, page, pages)
                beside = f" ({mark.turned})" * bool(mark.turned)
                return (
                    f" {extra['stands'](mark)}".rstrip(" ") if "stands" in extra and not in_words else beside
                )
            own = extra.get(token.verb, lambda token: _said(token, page, pages))
            value = own if isinstance(own, str) else own(token)
        except LeftOut as left_out:
            value = str(left_out)
        except NoFactor as problem:
            if any(_counts(pages.evidence.get(where or page)) for where, _ in token.results):
                raise PressError(f"token {token.text} on page {page}: {problem}") from None
            value = ABSENT
        except (ValueError, TypeError, IndexError) as problem:  # also a format or index that does not fit
            raise PressError(f"token {token.text} on page {page}: {problem}") from None
        return match[0][: len(match[0]) - len(token.text)] + value

    return TOKEN.sub(said, text)


def _said(token: Token, page: str, pages: Pages) -> str:
    """What a token that pages have in common stands for."""
    if token.verb in PAIRED:
        return _of_two(token, page, pages)
    if token.verb in OF_CLAIM:
        found = pages.judgement(pages.claim(token.name))
        return OF_CLAIM[token.verb](found, token.format) if found else ABSENT
    where = token.chapter or page
    if (run := pages.run(where)) is None:
        return ABSENT
    if token.verb in VERDICTS:
        return VERDICTS[token.verb](
            [pages.judgement(claim) for claim in pages.claims if claim.chapter == where]
        )
    if token.verb in HEADER:
        return HEADER[token.verb](run.results.header)
    if token.verb == "param":
        return _parameter(token, run.results.header)
    if token.instead and token.name not in run.results:
        return token.instead
    values = run.per_seed(token.name, token.index, alone=token.alone)
    with np.errstate(invalid="ignore"):  # of a seed that diverged the interval is none, which is shown
        found = STATISTICS[token.verb](values)
    fewer = f"; n = {len(values)}" * (len(values) < run.results.header["parameters"].get("seeds", 0))
    return _number(found, len(values), token.format or ".3g", token.in_table, fewer=fewer)


def _of_two(token: Token, page: str, pages: Pages) -> str:
    """A factor or a difference of two results, a geometric or a plain mean over the seeds, or in how many seeds one is the
    larger. Words behind the format stand between the number and its interval."""
    signs, of, unit = PAIRED[token.verb]
    if (sign := token.two["sign"].strip()) not in signs:
        raise ValueError(f"expected {' or '.join(signs)} between the two results of {token.verb}")
    if token.instead and _lacking(token.results, page, pages):
        return token.instead
    if (columns := values(token.two, page, pages, token.alone)) is None:
        return ABSENT
    a, b = columns
    if token.verb == "seeds":
        return f"{int(of(a, b) if sign == '>' else of(b, a))} of {len(a)}"
    spec, _, words = (token.format or ".2g").partition(" ")
    return _number(
        of(a, b), len(a), spec, token.in_table, words if token.in_table else words or unit, ends=True
    )


def _number(
    found: float | Interval,
    seeds: int,
    spec: str,
    in_table: bool,
    words: str = "",
    *,
    fewer: str = "",
    ends: bool = False,
) -> str:
    """A number, or one with its interval: in a sentence in brackets, in a table small and below it.

    fewer: that it has fewer seeds than the run. ends: the interval of two equal ends, and the unit of its first, is said.
    """
    if not isinstance(found, tuple):
        return format_number(found, spec) if isinstance(found, float) else str(found)
    spec = telling(*found[1:], spec)
    middle, low, high = alike(found, spec)
    middle += f" {words}" * bool(words)
    if seeds < 2 and not (in_table and ends):
        return f"{middle} (one seed, no interval)"
    shown = f"{low if ends or not in_table else low.removesuffix(' %')} to {high}"
    if found[1] == found[2] and not ends:
        shown = "the same for every seed"
    elif not in_table:
        shown = f"95 % interval {shown}"
    return f"{middle}<br><small>{shown}{fewer}</small>" if in_table else f"{middle} ({shown}{fewer})"


def _parameter(token: Token, header: Mapping[str, Any]) -> str:
    if token.name not in header["parameters"]:
        raise ValueError(f"{header['chapter']} has no parameter {token.name!r}")
    value = header["parameters"][token.name]
    value = value[int(token.index)] if token.index else value
    if token.format == "fraction":
        return str(Fraction(value).limit_denominator(1000))
    return format(value, token.format) if token.format else _plain(value)


def _plain(value: Any, powers: bool = False) -> str:
    if isinstance(value, list):  # of numbers read together all that are small are powers of ten, or none is
        powers = any(isinstance(item, float) and "e" in str(item) for item in value)
        return ", ".join(_plain(item, powers) for item in value)
    if isinstance(value, float) and (powers or "e" in str(value)):
        return format_number(value, f".{len(Decimal(str(value)).normalize().as_tuple().digits) - 1}e")
    return f"{value:,}" if type(value) is int else str(value)


def values(
    match: re.Match, page: str, pages: Pages, alone: bool = False
) -> tuple[np.ndarray, np.ndarray] | None:
    """Values (S,) of two results, paired by seed; a number stands for itself, no run is None.

    Where only one of them has earlier draws, with other seeds, both are taken by the last run alone; so are they
    where they are drawn.
    """
    named = [ONE.fullmatch(match[key]) for key in ("a", "b") if not match[key][0].isdigit()]
    runs = [pages.run(place["chapter"] or page) for place in named]
    if None in runs:
        return None
    for last in (True,) if alone else (False, True):
        found, seeds = [], []
        for place, run in zip(named, runs, strict=True):
            together = {each["name"] for each in named if each["chapter"] == place["chapter"]}
            found.append(run.per_seed(place["name"], place["index"], alone=last, together=together))
            entry = run.results.entries[place["name"]]
            seeds.append(entry["seeds"] if last else run.quoted(place["name"], together)[0])
        if seeds[0] == seeds[-1]:
            return found[0], found[1] if len(found) > 1 else np.full(len(found[0]), float(match["b"]))
    raise ValueError(f"{match['a']} and {match['b']} come from different seeds; expected the same ones")


def _lacking(named: set[tuple[str | None, str]], page: str, pages: Pages) -> list[tuple[Evidence, str]]:
    """Those of the results that their runs have not recorded."""
    runs = [(pages.evidence.get(where or page), name) for where, name in named]
    return [(run, name) for run, name in runs if run and name not in run.results]


def has_sibling(name: str, recorded: Iterable[str]) -> bool:
    """Whether there is the same of another size, `speed.w1.batch` for `speed.long.batch`: what is no slip of the
    pen."""
    parts = name.split(".")
    others = (other.split(".") for other in recorded)
    return any(len(o) == len(parts) > 1 and o[:1] + o[2:] == parts[:1] + parts[2:] for o in others)


# ---- Sentences that state a verdict: `{{ stands:GUARD = VERDICT }}` behind each ----------------------------------------

CLAIM = re.compile(r"(?P<id>[a-z][a-z0-9.-]*)(?:\[(?P<result>[A-Za-z][\w.]*)\])?")
#: A word in a mark -> the verdict that it stands for.
STATED = {
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
    "not tested": judging.NOT_TESTED,
}
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
        return "" if COMPARISON.fullmatch(self.guard) else self.guard.partition("[")[0]

    @property
    def turned(self) -> str:
        """What is written beside a sentence that does not stand: of a run that counts whatever it says, of another one
        what it decides; empty where nothing else was found, or nothing tested."""
        if self.now in (self.stated, "not tested") or self.now == "open" and not self.counts:
            return ""
        return f"{'now' if self.counts else 'this run'}: {self.now}"


def mark_of(what: str, page: str, pages: Pages) -> Mark:
    """What stands in `{{ stands:… }}`, read; ValueError says what is wrong with it."""
    guard, _, word = (text.strip() for text in what.partition("="))
    if not (guard and word):
        raise ValueError("expected `stands:CLAIM = VERDICT`")
    if word not in STATED:
        raise ValueError(f"{word!r} is no verdict; expected one of {', '.join(STATED)}")
    chapter, verdict = _now(guard, page, pages)
    return Mark(guard, word, WORD_FOR.get(verdict or "", "not tested"), _counts(pages.evidence.get(chapter)))


def marks(file: Path, pages: Pages) -> Iterator[tuple[str, Mark]]:
    """Every mark of a page, with its place, `book/PART/NAME.md:LINE`; PressError for one that asks for what does not
    exist."""
    text, name = file.read_text(encoding="utf-8"), file.relative_to(paths.book_folder()).as_posix()
    for match in (each for each in TOKEN.finditer(text) if each["verb"] == "stands"):
        place = f"{paths.book_folder().name}/{name}:{text.count(chr(10), 0, match.start()) + 1}"
        try:
            yield place, mark_of(match["what"] or "", name.rpartition(".")[0], pages)
        except ValueError as problem:
            raise PressError(f"{place} {match[0].strip()}: {problem}") from None


def _now(guard: str, page: str, pages: Pages) -> tuple[str, str | None]:
    """The chapter whose run a guard asks, and the verdict on it; None without a run. A comparison is open where the 95 %
    interval of the mean paired difference, with `geo:` ratio, has both sides, or the run has other sizes alone; it is no
    test, so a smoke run of a chapter that measures does not try it."""
    if compared := COMPARISON.fullmatch(guard):
        named = _of_pair(compared)
        chapter = next((place for place, _ in named if place), page)
        lacking = _lacking(named, page, pages)
        if lacking and all(has_sibling(name, run.results) for run, name in lacking):
            return chapter, judging.OPEN
        if (run := pages.run(chapter)) is None:
            return chapter, None
        if (
            run.profile == "smoke" and not run.chapter.exact
        ):  # also where its grids are too short for an index
            return chapter, judging.NOT_TESTED
        if (columns := values(compared, page, pages)) is None:
            return chapter, None
        larger, smaller = columns if compared["sign"] == ">" else columns[::-1]
        if not np.isfinite(columns).all():
            return chapter, judging.OPEN
        _, low, high = (geometric_ratio if compared["geo"] else paired_difference)(larger, smaller)
        even = 1.0 if compared["geo"] else 0.0
        return chapter, judging.YES if low > even else judging.NO if high < even else judging.OPEN
    if not (claim := CLAIM.fullmatch(guard)):
        raise ValueError("expected a claim, or a comparison such as `loss.none > loss.batch`")
    asked = pages.claim(claim["id"])
    found, part = pages.judgement(asked), claim["result"] and asked.part_of(claim["result"])
    if found is None or part is None or found.verdict == judging.NOT_TESTED:
        return asked.chapter, found and found.verdict
    return asked.chapter, found.parts[part][1]


def _counts(run: Evidence | None) -> bool:
    """Whether a run says as much of a verdict as the book's: it is published, or is one of the same profile or a higher
    one, with the parameters that the profile has."""
    if run is None or run.is_published:
        return run is not None
    of_book = next((each.folder.name for each in chapter_runs.published_runs(run.chapter)), PROFILES[1])
    is_as_high = PROFILES.index(run.profile) >= PROFILES.index(of_book)
    return is_as_high and bool(run.results.header.get("default_parameters"))


# ---- Tables of numbers: a `{measured}` block becomes a Markdown table of tokens ------------------------------------------

MEASURED = re.compile(
    r"^(?P<fence>`{3,}|:{3,})\{measured\}[ \t]*\n(?P<body>.*?)^(?P=fence)[ \t]*$", re.M | re.S
)
#: Verbs of a cell that take a format, and those that do not.
FORMATTED = (*(verb for verb in STATISTICS if verb != "n"), "effect")
PLAIN = ("n", "param", "verdict")
CELL = re.compile(
    rf"(?:(?P<verb>{'|'.join(FORMATTED + PLAIN)}):)?(?P<what>{RESULT})\s*(?:\|\s*(?P<format>[^\s|]+))?"
)
NAME = re.compile(r"\$[^$]*\$|(?<!\{)\{([a-z]\w*)\}(?!\})")  # {column}, not in a formula, no token's braces
KEYS = {"corner", "columns", "rows", "statistic", "format", "missing"}


class _Plain(LOADER):
    """YAML whose texts are text: `.3f`, `1` and `none` stay what was written."""

    yaml_implicit_resolvers: dict[str, Any] = {}


def expand(text: str, page: str = "") -> str:
    """The text with every `{measured}` block replaced by a Markdown table whose cells are tokens, as docs/writing.md
    says; PressError, one line that begins with the page, for a block that is none.

    A row's text with a name in braces is the cell of each column, `{column}` standing for the column's text; otherwise the
    column's text is, with `{row}`; names with values may stand in place of the text that is put in. A row may also be a
    list of its cells, of which a last one with a name serves all further columns.
    """
    return MEASURED.sub(lambda match: _table(match["body"], page), text)


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
    if given.get("statistic", "n") not in FORMATTED + PLAIN:
        amiss(f"has statistic {given['statistic']!r}", f"one of {', '.join(FORMATTED + PLAIN)}")

    def pairs(key: str) -> list[tuple[str, Any]]:
        listed = [given[key]] if isinstance(given[key], dict) else given[key]
        if not listed or not isinstance(listed, list) or not all(isinstance(one, dict) for one in listed):
            amiss(f"has {key} {given[key]!r}", "`title: text` lines")
        return [(str(title), text) for one in listed for title, text in one.items()]

    def names(text: Any) -> list[str]:
        return [] if isinstance(text, Mapping) else [name for name in NAME.findall(str(text)) if name]

    def cell(row: str, pattern: Any, put: Any, what: str, measured: bool) -> str:
        known = put if isinstance(put, Mapping) else {what: put}
        if isinstance(pattern, Mapping) or what == "row" and not names(pattern):
            amiss(f"{row} has no cells", "a text with {column} there or with {row} in the columns")
        for name in names(pattern):
            if name not in known:
                amiss(f"{row} asks for {{{name}}}", f"one of {', '.join(map(str, known))}")
        text = NAME.sub(lambda match: str(known[match[1]]) if match[1] else match[0], str(pattern)).strip()
        found = CELL.fullmatch(text)
        verb = found and (found["verb"] or (given.get("statistic") if measured else None))
        if verb:
            instead = f" or {given['missing']}" if "missing" in given else ""
            form = f" | {found['format'] or given.get('format', '.3g')}{instead}" if verb in FORMATTED else ""
            return f"{{{{ {verb}:{found['what']}{form} }}}}"
        if re.match(r"[a-z]+:[a-z]", text) or re.fullmatch(r"[a-z]\w*(\.\w+)+", text):
            amiss(f"{row} has the cell {text!r}", f"{', '.join(FORMATTED + PLAIN)}:NAME")
        return text

    columns = pairs("columns")
    lines = [[str(given.get("corner", "")), *(title for title, _ in columns)], ["---"] * (len(columns) + 1)]
    for title, row in pairs("rows"):
        listed = isinstance(row, list) and row
        own = bool(listed or isinstance(row, str) and names(row))
        cells = list(row) if listed else [row if own else text for _, text in columns]
        if 0 < len(cells) < len(columns) and names(cells[-1]):
            cells += cells[-1:] * (len(columns) - len(cells))
        if len(cells) != len(columns):
            amiss(f"row {title!r} has {len(cells)} cells", f"{len(columns)}, one a column")
        puts = [column if own else row for _, column in columns]
        measured = [not listed or bool(names(each)) for each in cells]
        what = "column" if own else "row"
        lines.append(
            [title, *(cell(f"row {title!r}", *each, what, m) for *each, m in zip(cells, puts, measured))]
        )
    return "\n".join(
        "| " + " | ".join(re.sub(r"(?<!\\)\|", r"\\|", each) for each in line).strip() + " |"
        for line in lines
    )
