"""Numbers in prose: tokens and tables that are filled in from a run, and marks of the verdicts that sentences state."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import numpy as np
import yaml

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

# ---- What a token says of one result, of its values for each seed --------------------------------------------------


def _geometric(values: np.ndarray, _spec: str) -> Interval:
    """For what is positive by nature: geometric mean, and an interval of the logarithms, which never reaches
    zero."""
    if (values <= 0).any():
        raise ValueError("a geometric mean needs values above 0; use ci")
    return geometric_ratio(values, np.ones(len(values)))


def _bounded(values: np.ndarray, _spec: str) -> Interval:
    """For a share of something in each seed: the interval stops at 0 and 1, beyond which no share lies."""
    if (values < 0).any() or (values > 1).any():
        raise ValueError("a share lies between 0 and 1; use ci")
    mean, low, high = mean_level(values)
    return mean, max(low, 0.0), min(high, 1.0)


def with_interval(found: Interval, seeds: int, spec: str, table: bool, fewer: bool) -> str:
    """In a sentence with words, in a table (where the bar is written \\|) small and below the value.

    fewer: the result has fewer seeds than the run, which is said.
    """
    spec = telling(*found[1:], spec)
    middle, low, high = alike(found, spec)
    if seeds < 2:
        return f"{middle} (one seed, no interval)"
    count = f"; n = {seeds}" if fewer else ""
    if found[1] == found[2]:
        same = f"the same for every seed{count}"
        return f"{middle}<br><small>{same}</small>" if table else f"{middle} ({same})"
    if table:
        return f"{middle}<br><small>{low.removesuffix(' %')} to {high}{count}</small>"
    return f"{middle} (95 % interval {low} to {high}{count})"


def _single(values: np.ndarray, spec: str) -> str:
    """The number that every seed gave."""
    if not ((values == values[0]) | np.isnan(values) & np.isnan(values[0])).all():
        raise ValueError("its seeds differ; use mean or ci")
    return format_number(float(values[0]), spec)


#: Verb -> a number, or one with its interval, from a result's values (S,) and a format.
STATISTICS: dict[str, Callable[[np.ndarray, str], str | Interval]] = {
    "mean": lambda values, spec: format_number(float(values.mean()), spec),
    # for what a few seeds carry by orders of magnitude; a seed that diverged counts as infinite
    "median": lambda values, spec: format_number(
        float(np.median(np.where(np.isnan(values), np.inf, values))), spec
    ),
    "ci": lambda values, _: mean_level(values),
    "geo": _geometric,
    # of logarithms to base ten: ten to the power of their mean, and of the ends of its interval
    "factor": lambda values, _: tuple(10.0**edge for edge in mean_level(values)),
    "power": lambda values, spec: format_number(float(10.0 ** values.mean()), spec),
    "share": _bounded,
    "value": _single,
    "n": lambda values, _: str(len(values)),
}


# ---- Tables of measured numbers: a `{measured}` block in a chapter's text becomes a Markdown table of tokens -------

MEASURED = re.compile(
    r"^(?P<fence>`{3,}|:{3,})\{measured\}[ \t]*\n(?P<body>.*?)^(?P=fence)[ \t]*$", re.M | re.S
)
# Tokens that take a format, and those that do not.
FORMATTED = ("mean", "median", "ci", "geo", "factor", "power", "share", "value", "effect")
PLAIN = ("n", "param", "verdict")
CELL = re.compile(
    rf"(?:(?P<verb>{'|'.join(FORMATTED + PLAIN)}):)?"
    r"(?P<what>(?:[a-z0-9/-]+#)?[A-Za-z][A-Za-z0-9_.-]*(?:\[-?\d+\])?)\s*(?:\|\s*(?P<format>[^\s|]+))?"
)
NAME = re.compile(r"\$[^$]*\$|(?<!\{)\{([a-z]\w*)\}(?!\})")  # {column}, not in a formula, no token's braces
KEYS = {"corner", "columns", "rows", "statistic", "format", "missing"}

Pairs = list[tuple[str, Any]]


def expand(text: str, page: str = "") -> str:
    """The text with every `{measured}` block replaced by a Markdown table whose cells are tokens.

    `columns` and `rows` give a title and a text each, as a mapping or, where a title comes twice, as a list
    of mappings. The text of a row with a name in braces is the cell of each column, `{column}` standing for
    the column's text; otherwise the column's text is, with `{row}`. Names with values may stand in place of
    the text that is put in: `{net: fc, arm: none}` for `{net}` and `{arm}`. A row may also be a list of its
    cells; a last one with a name in braces serves all further columns.

    A cell is a token without its braces (`geo:smoothness.batch | .3g`) or text, tokens among it. `statistic`
    and `format` are those of cells that name none; `corner` is the title of the first column; `missing` what
    stands where the run has no such result, but one whose name differs in a single part. PressError, one
    line that begins with the page, for a block that is none of this.
    """
    return MEASURED.sub(lambda match: _Table(match["body"], page).markdown(), text)


class _Table:
    """One block."""

    def __init__(self, body: str, page: str) -> None:
        self.where = (
            (f"page {page}: " if page else "")
            + "{measured} table "
            + repr(body.strip().partition("\n")[0][:60])
        )
        content = parse_yaml(body, self.where, _Strict)
        if not isinstance(content, dict) or set(content) - KEYS or not {"columns", "rows"} <= set(content):
            given = ", ".join(map(str, content)) if isinstance(content, dict) else "no keys"
            self._fail(f"has {given}", "columns and rows; optional corner, statistic, format, missing")
        self.columns, self.rows = (self._pairs(content[key], key) for key in ("columns", "rows"))
        self.statistic, self.format = content.get("statistic"), content.get("format", ".3g")
        self.corner = str(content.get("corner", ""))
        self.instead = f" or {content['missing']}" if "missing" in content else ""
        if self.statistic not in (None, *FORMATTED, *PLAIN):
            self._fail(f"has statistic {self.statistic!r}", f"one of {', '.join(FORMATTED + PLAIN)}")

    def markdown(self) -> str:
        lines = [[self.corner, *(title for title, _ in self.columns)], ["---"] * (len(self.columns) + 1)]
        for label, row in self.rows:
            self.where_row = f"row {label!r}"
            patterns = self._patterns(row)
            cells = [
                self._cell(pattern, row, column)
                for pattern, (_, column) in zip(patterns, self.columns, strict=True)
            ]
            lines.append([label, *cells])
        return "\n".join("| " + " | ".join(map(_escaped, line)).strip() + " |" for line in lines)

    def _patterns(self, row: Any) -> list[Any]:
        """What each column of a row is made from: the row's cells, the row's text or the columns' own."""
        if isinstance(row, list) and row:
            missing = len(self.columns) - len(row)
            if missing > 0 and _names(row[-1]):
                return row + row[-1:] * missing
            if missing:
                self._fail(f"{self.where_row} has {len(row)} cells", f"{len(self.columns)}, one a column")
            return row
        if isinstance(row, str) and _names(row):
            return [row] * len(self.columns)
        return [column for _, column in self.columns]

    def _cell(self, pattern: Any, row: Any, column: Any) -> str:
        own = isinstance(row, list) or isinstance(row, str) and _names(row)
        given = column if own else row
        values = given if isinstance(given, Mapping) else {"column" if own else "row": given}
        if isinstance(pattern, Mapping) or not own and not _names(pattern):
            self._fail(
                f"{self.where_row} has no cells", "a text with {column} there or with {row} in the columns"
            )

        def value(match: re.Match) -> str:
            if match[1] is None:
                return match[0]
            if match[1] not in values:
                self._fail(f"{self.where_row} asks for {match[0]}", f"one of {', '.join(map(str, values))}")
            return str(values[match[1]])

        text = NAME.sub(value, str(pattern))
        return self._token(text.strip(), default=not isinstance(row, list) or _names(pattern))

    def _token(self, text: str, default: bool) -> str:
        """A cell that names a result as its token, another as it is."""
        match = CELL.fullmatch(text)
        verb = match and (match["verb"] or (self.statistic if default else None))
        if not verb:
            if re.match(r"[a-z]+:[a-z]", text) or re.fullmatch(r"[a-z]\w*(\.\w+)+", text):
                self._fail(f"{self.where_row} has the cell {text!r}", f"{', '.join(FORMATTED + PLAIN)}:NAME")
            return text
        suffix = f" | {match['format'] or self.format}{self.instead}" if verb in FORMATTED else ""
        return f"{{{{ {verb}:{match['what']}{suffix} }}}}"

    def _pairs(self, content: Any, what: str) -> Pairs:
        """Title and text of each row or column."""
        listed = [content] if isinstance(content, dict) else content
        if not listed or not isinstance(listed, list) or not all(isinstance(one, dict) for one in listed):
            self._fail(f"has {what} {content!r}", "`title: text` lines")
        return [(str(title), text) for one in listed for title, text in one.items()]

    def _fail(self, wrong: str, expected: str) -> NoReturn:
        raise PressError(f"{self.where} {wrong}; expected {expected}")


def _names(pattern: Any) -> bool:
    """Whether a text has a name in braces."""
    return any(match[1] for match in NAME.finditer(str(pattern)))


def _escaped(cell: str) -> str:
    return re.sub(r"(?<!\\)\|", r"\\|", cell)


class _Strict(LOADER):
    """YAML whose texts are text (`.3f`, `1`, `none` stay what was written) and whose keys come once."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict:
        keys = [key.value for key, _ in node.value]
        for key in keys:
            if keys.count(key) > 1:
                raise yaml.constructor.ConstructorError(None, None, f"{key!r} comes twice: use a list", None)
        return super().construct_mapping(node, deep)


_Strict.yaml_implicit_resolvers = {}


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

    @cached_property
    def _judgements(self) -> dict[claims.Claim, claims.Judgement | None]:
        return {}

    def judgement(self, claim: claims.Claim) -> claims.Judgement | None:
        if claim not in self._judgements:
            evidence = self.evidence.get(claim.chapter)
            self._judgements[claim] = chapter_runs.judged(claim, evidence) if evidence else None
        return self._judgements[claim]

    def claim(self, name: str) -> claims.Claim:
        """The claim of that id; ValueError where no chapter has it."""
        found = [claim for claim in self.claims if claim.id == name]
        if not found:
            raise ValueError(f"no chapter has a claim {name!r}")
        return found[0]


# ---- Tokens: `{{ VERB:WHAT | FORMAT or ELSE }}`, in a table with its bar written \\| ----------------------------------

ABSENT = "—"  # in place of a number of a chapter that has no fresh evidence
NAME_OF = r"(?:(?P<chapter>[a-z0-9/-]+)#)?(?P<name>[A-Za-z0-9_.-]+)(?:\[(?P<index>-?\d+|[A-Za-z][\w.]*)\])?"
RESULT = r"(?:[a-z0-9/-]+#)?[A-Za-z][A-Za-z0-9_.-]*(?:\[-?\d+\])?"
TOKEN = re.compile(
    r"\{\{\s*(?P<verb>[a-z]+)(?::\s*(?P<what>[^{}|\\]*?))?\s*(?P<bar>\\?\|\s*(?P<format>[^{}]*?))?\s*\}\}"
)
ONE = re.compile(NAME_OF)
TWO = re.compile(rf"(?P<a>{RESULT})\s*(?P<sign> [-<>] |/)\s*(?P<b>{RESULT}|[\d.]+)")
COMPARISON = re.compile(rf"(?P<geo>geo:)?(?P<a>{RESULT})\s+(?P<sign>[<>])\s+(?P<b>{RESULT}|[\d.]+)")
#: Sign between the two results of a verb.
SIGNS = {"times": "/", "ratio": "/", "points": "-", "gap": "-", "seeds": "<>"}
#: Verbs that name nothing, of a run and of the page; those of a claim.
ALONE = ("data", "profile", "device", "verdicts", "standing", "rungs", "turned")
ALONE += ("scoreboard", "coverage", "waffle", "trust", "clone", "binder", "names", "notation")
OF_CLAIM = ("verdict", "effect", "found", "tally", "here")


class Token:
    """A token of a text: its verb, what it names, and how it is said."""

    def __init__(self, match: re.Match, alone: bool = False) -> None:
        self.alone = alone  # read by the last run alone, without the draws before it
        self.text, self.verb, self.what = match[0], match["verb"], match["what"] or ""
        form, _, self.instead = (match["format"] or "").partition(" or ")
        self.format = form.strip()
        self.in_table = (match["bar"] or "").startswith("\\")
        self.one, self.two = ONE.fullmatch(self.what), TWO.fullmatch(self.what)
        self.chapter, self.name, self.index = self.one.groups() if self.one else (None, "", None)

    @property
    def is_known(self) -> bool:
        """Whether pages know the verb, and it names what it should."""
        if self.verb in SIGNS:
            return bool(self.two)
        if self.verb == "stands":
            return True
        if self.verb in ALONE:
            return not self.what or bool(self.one)
        return bool(self.one) and self.verb in {*STATISTICS, *OF_CLAIM, "param"}

    @property
    def results(self) -> set[tuple[str | None, str]]:
        """(chapter or None for the page's own, result) of all that it reads."""
        if self.verb == "stands":
            return _of_pair(COMPARISON.fullmatch(self.what.partition("=")[0].strip()))
        if self.verb in SIGNS:
            return _of_pair(self.two)
        return {(self.chapter, self.name)} if self.verb in STATISTICS else set()


def tokens(text: str) -> list[Token]:
    """Every token of a text that pages know."""
    return [token for token in map(Token, TOKEN.finditer(text)) if token.is_known]


def _of_pair(match: re.Match | None) -> set[tuple[str | None, str]]:
    texts = [match[key] for key in ("a", "b")] if match else []
    places = [ONE.fullmatch(text) for text in texts if not text[0].isdigit()]
    return {(place["chapter"], place["name"]) for place in places}


def result_names(text: str, or_else: bool = True) -> set[tuple[str | None, str]]:
    """(chapter or None for this one, result) of every result that the tokens of a text read; without or_else not those
    for which a token says what stands there where the run has none."""
    found = [token.results for token in tokens(expand(text)) if or_else or not token.instead]
    return set().union(*found)


def names_shown_as(verb: str, text: str) -> set[str]:
    """Results of a chapter that its text shows by one verb."""
    return {token.name for token in tokens(expand(text)) if token.verb == verb and not token.chapter}


def without(text: str) -> str:
    """The text without what is filled in."""
    text = STANDS.sub("", expand(text))
    return TOKEN.sub(lambda match: "" if Token(match).is_known else match[0], text)


def malformed(text: str) -> list[str]:
    """Double braces that look like a token and are none; in formulas a command or a brace is before."""
    looks = r"\{\{\s[^{}]*\}\}|(?<![\w}^])\{\{[a-z]+\s*(?::[^}]*)?(?:\|[^}]*)?\}\}"
    return re.findall(looks, without(text))


Say = Callable[[Token, str, "Pages"], str]


#: A figure shows the last run alone, and so do the numbers below it.
FIGURE = re.compile(r"^(`{3,}|:{3,})\{figure\}.*?^\1", re.M | re.S)


def fill(
    text: str,
    chapter: str,
    pages: Pages,
    extra: Mapping[str, str | Callable[[Token], str]] | None = None,
    alone: bool = False,
) -> str:
    """The text with every token replaced by what it stands for; PressError for what asks for something that does not
    exist.

    extra: what a verb stands for on this page, or how to tell from the token; `stands` from the mark, which by itself is
    nothing, or says what was found where that is something else. alone: the text is of a figure.
    """
    extra = extra or {}

    def checked(match: re.Match, value: Callable[[], str]) -> str:
        try:
            return value()
        except LeftOut as left_out:
            return str(left_out)
        except (ValueError, TypeError, IndexError) as problem:  # also a format or index that does not fit
            shown = match[0].strip().partition("\n")[0]
            raise PressError(f"token {shown} on page {chapter}: {problem}") from None

    def stands(match: re.Match) -> str:
        mark = mark_of(match["what"], chapter, pages)
        in_words = text[text.rfind("\n", 0, match.start()) + 1 :].startswith(":alt:")
        if "stands" in extra and not in_words:
            return f" {extra['stands'](mark)}".rstrip(" ")
        return f" ({mark.turned})" * bool(mark.turned)

    def one(match: re.Match) -> str:
        token = Token(match, alone or any(start < match.start() < end for start, end in figures))
        if not token.is_known:
            return match[0]
        if token.verb in extra:
            own = extra[token.verb]
            return own if isinstance(own, str) else checked(match, lambda: own(token))
        return checked(match, lambda: VERBS[token.verb](token, chapter, pages))

    if unknown := malformed(text):
        raise PressError(f"{chapter}.md: {unknown[0]} is not a token that pages know")
    text = expand(text, chapter)
    text = STANDS.sub(lambda match: checked(match, lambda: stands(match)), text)
    figures = [match.span() for match in FIGURE.finditer(text)]
    return TOKEN.sub(one, text)


# ---- Verbs of a run, of one result and of a claim ------------------------------------------------------------------


def _run(chapter: str, pages: Pages) -> Evidence | None:
    """The run that is shown of a chapter; None where there is none."""
    if chapter not in pages.evidence:
        raise ValueError(f"no chapter {chapter!r}")
    return pages.evidence[chapter]


def _of_result(token: Token, chapter: str, pages: Pages) -> str:
    if (run := _run(token.chapter or chapter, pages)) is None:
        return ABSENT
    if token.instead and token.name not in run.results:
        return token.instead
    values, spec = run.per_seed(token.name, token.index, alone=token.alone), token.format or ".3g"
    with np.errstate(invalid="ignore"):  # of a seed that diverged the interval is none, which is shown
        shown = STATISTICS[token.verb](values, spec)
    if isinstance(shown, str):
        return shown
    fewer = len(values) < run.results.header["parameters"].get("seeds", 0)
    return with_interval(shown, len(values), spec, token.in_table, fewer)


def _of_run(say: Callable[[Token, Mapping[str, Any]], str]) -> Say:
    """What the header of a run says."""

    def value(token: Token, chapter: str, pages: Pages) -> str:
        run = _run(token.chapter or chapter, pages)
        return say(token, run.results.header) if run else ABSENT

    return value


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
        digits = Decimal(str(value)).normalize().as_tuple().digits
        return format_number(value, f".{len(digits) - 1}e")
    return f"{value:,}" if type(value) is int else str(value)


def _data(_: Token, header: Mapping[str, Any]) -> str:
    return ", ".join(book().data_names.get(row["name"], row["name"]) for row in header["data"]) or "none"


def _of_judgements(say: Callable[[list[claims.Judgement | None]], str]) -> Say:
    """What is said of all verdicts of a chapter."""

    def value(token: Token, chapter: str, pages: Pages) -> str:
        where = token.chapter or chapter
        own = [claim for claim in pages.claims if claim.chapter == where]
        return say([pages.judgement(claim) for claim in own]) if _run(where, pages) else ABSENT

    return value


def _of_claim(say: Callable[[claims.Judgement, Token], str]) -> Say:
    def value(token: Token, _: str, pages: Pages) -> str:
        judgement = pages.judgement(pages.claim(token.name))
        return say(judgement, token) if judgement else ABSENT

    return value


# ---- Verbs of two results, a factor or a difference, and which of the two is larger --------------------------------


def number(token: Token, chapter: str, pages: Pages) -> str:
    """`times:a / b` a factor and `ratio:a / b` with its interval, `points:a - b` a difference of shares in points and
    `gap:a - b` with its interval, `seeds:a > b` in how many seeds it is so.

    A factor is the geometric mean over the seeds, which are paired. Words behind the format stand between the
    number and its interval: `gap:a - b | .1f points more`; what stands where the run lacks a result is last:
    `.1f or –`. In a table the interval stands below, small. ValueError says why there is none.
    """
    verb, sign = token.verb, token.two["sign"].strip()
    spec, _, words = (token.format or ".2g").partition(" ")
    if sign not in SIGNS[verb]:
        raise ValueError(f"expected {' or '.join(SIGNS[verb])} between the two results of {verb}")
    if token.instead and _lacking(token.results, chapter, pages):
        return token.instead
    columns = values(token.two, chapter, pages, token.alone)
    if columns is None:
        return ABSENT
    a, b = columns
    if verb == "seeds":
        return f"{int((a > b).sum() if sign == '>' else (a < b).sum())} of {len(a)}"
    if verb in ("times", "ratio"):
        if (a <= 0).any() or (b <= 0).any():
            raise ValueError("a factor needs values above 0")
        found, unit = geometric_ratio(a, b), words
    else:
        if max(abs(a).max(), abs(b).max()) > 1:  # a lead, a difference of shares, may be negative
            raise ValueError("points are of shares, and one of these is none: expected values up to 1")
        found, unit = tuple(100 * edge for edge in paired_difference(a, b)), words or "points"
    if verb in ("times", "points"):
        return format_number(found[0], spec)
    spec = telling(*found[1:], spec)
    middle, low, high = alike(found, spec)
    if token.in_table:
        return f"{middle}{' ' * bool(words)}{words}<br><small>{low} to {high}</small>"
    interval = f"(95 % interval {low} to {high})" if len(a) > 1 else "(one seed, no interval)"
    return " ".join(part for part in (middle, unit, interval) if part)


def _is_larger(match: re.Match, chapter: str, pages: Pages) -> str | None:
    """Whether a match of COMPARISON is so: yes, no, or open where the 95 % interval has both sides.

    The interval is that of the mean paired difference, with `geo:` of the mean ratio. None without a run; open
    too where a run has the results of other sizes alone.
    """
    lacking = _lacking(_of_pair(match), chapter, pages)
    if lacking and all(has_sibling(name, run.results) for run, name in lacking):
        return judging.OPEN
    columns = values(match, chapter, pages)
    if columns is None:
        return None
    a, b = columns if match["sign"] == ">" else columns[::-1]
    if not (np.isfinite(a).all() and np.isfinite(b).all()):
        return judging.OPEN
    _, low, high = geometric_ratio(a, b) if match["geo"] else paired_difference(a, b)
    even = 1.0 if match["geo"] else 0.0
    return judging.YES if low > even else judging.NO if high < even else judging.OPEN


def _lacking(named: set[tuple[str | None, str]], chapter: str, pages: Pages) -> list[tuple[Evidence, str]]:
    """Those of the results that their runs have not recorded."""
    runs = [(pages.evidence.get(where or chapter), name) for where, name in named]
    return [(run, name) for run, name in runs if run and name not in run.results]


def has_sibling(name: str, recorded: Iterable[str]) -> bool:
    """Whether there is the same of another size, `speed.w1.batch` for `speed.long.batch`: what is no slip of the
    pen."""
    parts = name.split(".")
    others = (other.split(".") for other in recorded)
    return any(len(o) == len(parts) > 1 and o[:1] + o[2:] == parts[:1] + parts[2:] for o in others)


def values(
    match: re.Match, chapter: str, pages: Pages, drawn: bool = False
) -> tuple[np.ndarray, np.ndarray] | None:
    """Values (S,) of the two results, paired by seed; a number stands for itself, no run is None.

    Where only one of them has earlier draws, with other seeds, both are taken by the last run alone; so are they
    where they are drawn.
    """
    for alone in (True,) if drawn else (False, True):
        found = _values(match, chapter, pages, alone)
        if found is None or found[1][0] == found[1][-1]:
            return found and found[0]
    raise ValueError(f"{match['a']} and {match['b']} come from different seeds; expected the same ones")


def _values(match: re.Match, chapter: str, pages: Pages, alone: bool) -> tuple[tuple, list[list[int]]] | None:
    """The two columns, and the seeds of those that are results."""
    found, seeds = [], []
    named = [ONE.fullmatch(text) for text in (match["a"], match["b"]) if not text[0].isdigit()]
    for text in (match["a"], match["b"]):
        if text[0].isdigit():
            found.append(np.full(len(found[0]), float(text)))
            continue
        place = ONE.fullmatch(text)
        if (run := _run(place["chapter"] or chapter, pages)) is None:
            return None
        together = {each["name"] for each in named if each["chapter"] == place["chapter"]}
        found.append(run.per_seed(place["name"], place["index"], alone=alone, together=together))
        entry = run.results.entries[place["name"]]
        seeds.append(entry["seeds"] if alone else run.quoted(place["name"], together)[0])
    return (found[0], found[1]), seeds


# ---- Sentences that state a verdict: `{{ stands:GUARD = VERDICT }}` behind each ------------------------------------------

STANDS = re.compile(r"[ \t]*\{\{\s*stands\b:?(?P<what>[^{}]*?)\}\}")
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
        return "" if is_comparison(self.guard) else self.guard.partition("[")[0]

    @property
    def turned(self) -> str:
        """What is written beside a sentence that does not stand: of a run that counts whatever it says, of another one
        what it decides; empty where nothing else was found, or nothing tested."""
        if self.now in (self.stated, "not tested") or self.now == "open" and not self.counts:
            return ""
        return f"{'now' if self.counts else 'this run'}: {self.now}"


def is_comparison(guard: str) -> bool:
    return COMPARISON.fullmatch(guard) is not None


def mark_of(what: str, page: str, pages: Pages) -> Mark:
    """What stands in `{{ stands:… }}`, read; ValueError says what is wrong with it."""
    guard, equals, word = (text.strip() for text in what.partition("="))
    if not (guard and equals and word):
        raise ValueError("expected `stands:CLAIM = VERDICT`")
    if word not in STATED:
        raise ValueError(f"{word!r} is no verdict; expected one of {', '.join(STATED)}")
    now = WORD_FOR.get(verdict_of(guard, page, pages) or "", "not tested")
    return Mark(guard, word, now, _counts(pages.evidence.get(_tested_in(guard, page, pages))))


def marks(file: Path, pages: Pages) -> Iterator[tuple[str, Mark]]:
    """Every mark of a page, with its place, `book/PART/NAME.md:LINE`; PressError for one that asks for what does not
    exist."""
    text, name = file.read_text(encoding="utf-8"), file.relative_to(paths.book_folder()).as_posix()
    for match in STANDS.finditer(text):
        place = f"{paths.book_folder().name}/{name}:{text.count(chr(10), 0, match.start()) + 1}"
        try:
            yield place, mark_of(match["what"], name.rpartition(".")[0], pages)
        except ValueError as problem:
            raise PressError(f"{place} {match[0].strip()}: {problem}") from None


def _tested_in(guard: str, page: str, pages: Pages) -> str:
    """The chapter whose run a guard asks."""
    if compared := COMPARISON.fullmatch(guard):
        return next((place for place, _ in _of_pair(compared) if place), page)
    return pages.claim(guard.partition("[")[0]).chapter


def _counts(run: Evidence | None) -> bool:
    """Whether a run says as much of a verdict as the book's: it is published, or is one of the same profile or a higher
    one, with the parameters that the profile has."""
    if run is None or run.is_published:
        return run is not None
    of_book = next((each.folder.name for each in chapter_runs.published_runs(run.chapter)), PROFILES[1])
    is_as_high = PROFILES.index(run.profile) >= PROFILES.index(of_book)
    return is_as_high and bool(run.results.header.get("default_parameters"))


def verdict_of(guard: str, page: str, pages: Pages) -> str | None:
    """The verdict on a guard; None without a run. A comparison is no test: a smoke run, of a chapter that measures, does
    not try it."""
    if compared := COMPARISON.fullmatch(guard):
        run = pages.evidence.get(_tested_in(guard, page, pages))
        tried = run is None or run.chapter.exact or run.profile != "smoke"
        word = _is_larger(compared, page, pages)
        return word if tried else judging.NOT_TESTED
    claim = CLAIM.fullmatch(guard)
    if not claim:
        raise ValueError("expected a claim, or a comparison such as `loss.none > loss.batch`")
    asked = pages.claim(claim["id"])
    judgement, part = pages.judgement(asked), claim["result"] and asked.part_of(claim["result"])
    if judgement is None or part is None or judgement.verdict == judging.NOT_TESTED:
        return judgement and judgement.verdict
    return judgement.parts[part][1]


#: Every verb that pages have in common.
VERBS: dict[str, Say] = {
    **dict.fromkeys(STATISTICS, _of_result),
    **dict.fromkeys(SIGNS, number),
    "param": _of_run(_parameter),
    "data": _of_run(_data),
    "profile": _of_run(lambda _, header: header["profile"]),
    "device": _of_run(lambda _, header: header["provenance"]["device"]),
    "verdicts": _of_judgements(claims.markdown_table),
    "standing": _of_judgements(chapter_runs.how_sure),
    "rungs": _of_judgements(claims.rung_table),
    "turned": _of_judgements(claims.turned),
    "verdict": _of_claim(lambda found, _: found.marked),
    "effect": _of_claim(lambda found, token: format_effect(found, token.format or None)),
}
