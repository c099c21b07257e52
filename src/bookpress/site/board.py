"""A verdict at a glance: colour, glyph and word, one form for prose, tables and board."""

from __future__ import annotations

import html
import math
import re
import textwrap
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bookpress.book import book
from bookpress.claims import Test, without_markup
from bookpress.claims.judging import NOT_TESTED
from bookpress.claims.kinds import KINDS
from bookpress.claims.words import OWN_QUESTION, literal, scripts, spelled
from bookpress.pipeline.chapters import Chapter

#: Verdict -> (look, glyph, word on the chip). The look is a colour of book.css; the glyph tells it without.
LOOKS = {
    "reproduced": ("true", "✓", "reproduced"),
    "holds": ("true", "✓", "holds"),
    "holds if …": ("part", "◐", "holds if"),
    "wrong as printed, corrected": ("mended", "✎", "wrong as printed, corrected"),
    "wrong": ("false", "✕", "wrong"),
    "not reproduced": ("false", "✕", "not reproduced"),
    "mixed": ("part", "◑", "mixed"),
    "partly refuted, rest open": ("part", "◔", "partly refuted, rest open"),
    "open": ("open", "?", "open"),
    "yes": ("own", "✓", "yes"),
    "no": ("own", "✕", "no"),
    "not tested at this scale": ("open", "○", "not tested here"),
    "not run": ("open", "○", "not run"),
}
ORDER = tuple(LOOKS)


def look(verdict: str) -> tuple[str, str, str]:
    """Look, glyph and word of a verdict."""
    return LOOKS.get(verdict, ("open", "?", verdict))


def address(claim: str, root: str = "") -> str:
    """The claim's own page, seen from a page whose way to the site's first page is `root`."""
    return f"{root}claims/{claim}.html"


def chip(row: dict[str, Any], root: str = "", link: bool = True) -> str:
    """The chip of a row of the ledger, a link to the claim's page; exploratory ones are marked."""
    kind, glyph, word = look(row["verdict"])
    inside = f'<span class="glyph" aria-hidden="true">{glyph}</span>{html.escape(word)}'
    if row["exploratory"]:
        said = html.escape(f"exploratory: {row['exploratory']}")
        inside += f'<abbr class="exploratory" title="{said}">exploratory</abbr>'
    title = f' title="{html.escape(row["words"])}"'
    if not link:
        return f'<span class="chip {kind}"{title}>{inside}</span>'
    return f'<a class="chip {kind}" href="{address(row["id"], root)}"{title}>{inside}</a>'


def row_of(rows: Mapping[str, dict[str, Any]], token: re.Match) -> dict[str, Any]:
    """The row of the claim that a token names; ValueError where no chapter has it."""
    if token["name"] not in rows:
        raise ValueError(f"no chapter has a claim {token['name']!r}")
    return rows[token["name"]]


def inlined(rows: Mapping[str, dict[str, Any]], root: str) -> Callable[[re.Match], str]:
    """How pages say the verdict on the claim of an id in a sentence of Markdown: its chip, and behind it
    what the verdict hangs on."""

    return lambda token: in_words(row_of(rows, token), root)


def in_words(row: dict[str, Any], root: str) -> str:
    """The chip, and behind it what the verdict hangs on."""
    start = "holds if" if row["verdict"] == "holds if …" else row["verdict"]
    return chip(row, root) + without_markup(row["words"].removeprefix(start))


def in_line(row: dict[str, Any], root: str) -> str:
    """A claim as one line of Markdown: chip, what is said without our reading of it, effect."""
    effect = f" **{literal(row['effect']['words'])}**" if row["effect"] else ""
    said = without_markup(row["says"].partition("; we ")[0].rstrip(". "))
    return f"{chip(row, root)} {said}{'' if said.endswith('?') else '.'}{effect}"


# ---- Texts and names as HTML ---------------------------------------------------------------------------------------

KIND_NAMES = {
    "measurement": "measurement",
    "statement": "formula or theorem",
    "question": "the book’s own question",
}
#: Signs of formulas where no MathJax sets them.
SIGNS = {
    **dict(
        zip("alpha beta gamma delta epsilon eta theta lambda mu pi rho sigma phi".split(), "αβγδεηθλμπρσφ")
    ),
    **dict(
        zip("le leq ge geq ne neq approx cdot times to infty partial nabla sum pm".split(), "≤≤≥≥≠≠≈·×→∞∂∇Σ±")
    ),
    **dict.fromkeys(
        "hat tilde bar left right mathrm text operatorname mathbf widehat lvert rvert".split(), ""
    ),
    **dict(zip("sqrt ell langle rangle".split(), "√ℓ⟨⟩")),
}


def rich(text: str) -> str:
    """Words of a claim as HTML: formulas for MathJax, `code` as code, everything else escaped,
    w_t and c^2 with their letters lower and higher."""

    def one(match: re.Match) -> str:
        part = match[0]
        if part.startswith("`"):
            return f"<code>{html.escape(part[1:-1])}</code>"
        if part.startswith("$"):
            return f'<span class="math notranslate nohighlight">\\({html.escape(part[1:-1])}\\)</span>'
        return scripts(spelled(html.escape(part, quote=False)))

    return re.sub(r"`[^`]*`|\$[^$]*\$|[^`$]+|[`$]", one, text)


def plain(text: str) -> str:
    """The same for an attribute: formulas and code without their marks."""
    text = spelled(text)
    text = re.sub(r"\\(?:frac|tfrac)\{([^{}]*)\}\{([^{}]*)\}", r"(\1)/(\2)", text)
    text = re.sub(r"\\([A-Za-z]+)", lambda name: SIGNS.get(name[1], name[1]), text)
    return html.escape(re.sub(r"[`${}\\]", "", text))


def brief(text: str, letters: int = 70) -> str:
    """How it begins, in whole words and without our reading of it: what tells a claim from others in a
    list."""
    text = text.partition("; we ")[0].rstrip(".")
    text = re.sub(rf"^The book's {OWN_QUESTION}[^:]*: (.)", lambda first: first[1].upper(), text)
    start = textwrap.shorten(text, letters, placeholder="")
    while " " in start and (
        start.count("$") % 2 or start.count("`") % 2 or start.count("(") > start.count(")")
    ):
        start = start.rsplit(" ", 1)[0]  # a formula, a name or a bracket is shown whole or not at all
    return rich(start.rstrip(",;:")) + "\u00a0…" * (start != text)


def told_apart(texts: Sequence[str]) -> list[str]:
    """How each begins; those that begin alike whole."""
    starts = [brief(text) for text in texts]
    return [rich(text) if starts.count(start) > 1 else start for text, start in zip(texts, starts)]


def source_name(key: str) -> str:
    return book().sources.get(key, key)


def source_keys(source: dict[str, str]) -> list[str]:
    """The source, and each of its versions that is named: what the board filters by."""
    return [
        source["key"],
        *(f"{source['key']} {each}" for each in book().versions if each in source["version"]),
    ]


def source_place(row: dict[str, Any]) -> str:
    """ "Wikipedia: Inference, first paragraph", with the version where there are several."""
    version, where = row["source"]["version"], row["source"]["where"]
    if where.startswith(f"{version} "):  # "v1 Lemma 3.3"
        return f"{source_version(row['source']['key'])}, {where}"
    return f"{source_version(row['source']['key'], version)}: {where}"


def source_version(key: str, version: str = "") -> str:
    """ "Santurkar et al. 2018, v1", and "Wikipedia" alone."""
    return source_name(key) if key == "encyclopedia" or not version else f"{source_name(key)}, {version}"


# ---- A forest plot of one test as inline SVG: where it holds, its interval, a dot for each seed --------------------

WIDTH, HEIGHT, PAD = 220.0, 34.0, 10.0
#: From this spread on factors are drawn on a logarithmic axis.
WIDE = 3.0


@dataclass(frozen=True)
class Scale:
    """Values to pixels."""

    low: float
    high: float
    log: bool

    def __call__(self, value: float) -> float:
        low, high, at = (math.log(each) if self.log else each for each in (self.low, self.high, value))
        share = (at - low) / (high - low) if high > low else 0.5
        return round(PAD + min(max(share, -0.04), 1.04) * (WIDTH - 2 * PAD), 1)


def deciding(row: dict[str, Any]) -> dict[str, Any] | None:
    """The test of a row that its effect and interval are of."""
    same = [
        test
        for test in row["tests"]
        if test["effect"] == row["effect"]
        and test["interval"] == row["interval"]
        and test["role"] != "corrected"
    ]
    return same[0] if same else None


def bounds(test: dict[str, Any]) -> tuple[float | None, float | None]:
    """Between which values a test holds; None: without end."""
    given = {key: tuple(value) if isinstance(value, list) else value for key, value in test["test"].items()}
    low, high = KINDS[given["kind"]].edges(Test(**given))
    return (low if math.isfinite(low) else None), (high if math.isfinite(high) else None)


def plot(test: dict[str, Any] | None) -> str:
    """The SVG, or nothing where there is nothing between two numbers to show."""
    if test is None or KINDS[test["test"]["kind"]].exact or test["effect"]["number"] is None:
        return ""
    ends_of_ground, effect, interval = bounds(test), test["effect"]["number"], test["interval"]
    ends = [interval["low"], interval["high"]] if interval else []
    # A sign test's interval is of the share of seeds, its values are not.
    dots = [value for value in test["values"] if value is not None and test["test"]["kind"] != "sign"]
    shown = [*ends, effect, *(edge for edge in ends_of_ground if edge is not None)]
    spread = sorted(dots)
    if len(spread) > 2:  # a seed that is far out does not squeeze all the others
        shown += [spread[0], spread[-1]] if spread[-1] - spread[0] < 8 * (max(shown) - min(shown)) else []
    else:
        shown += spread
    log = KINDS[test["test"]["kind"]].in_factors and min(shown) > 0 and max(shown) / min(shown) > WIDE
    low, high = min(shown), max(shown)
    room = 0.06 * (high - low) or abs(high) or 1.0
    scale = Scale(low, high, True) if log else Scale(low - room, high + room, False)
    counts = test["verdict"] != NOT_TESTED
    parts = [_ground(ends_of_ground, scale)] * counts
    parts += [f'<path class="edge" d="M{scale(edge)} 3V31"/>' for edge in ends_of_ground if edge is not None]
    for number, value in enumerate(dots):
        high_or_low = 11.5 + 11 * ((number * 0.618) % 1)  # dots do not hide each other
        parts.append(f'<circle class="dot" cx="{scale(value)}" cy="{high_or_low:.1f}" r="2.2"/>')
    if ends:
        parts.append(f'<path class="interval" d="M{scale(ends[0])} 17H{scale(ends[1])}"/>')
    parts.append(f'<path class="effect" d="M{scale(effect)} 11l4.5 6-4.5 6-4.5-6z"/>')
    state = {True: "true", False: "false", None: "open"}[test["holds"]] if counts else "untested"
    size = f'viewBox="0 0 {WIDTH:.0f} {HEIGHT:.0f}"'
    return f'<svg class="forest {state}" {size} aria-hidden="true">{"".join(parts)}</svg>'


def _ground(edges: tuple[float | None, float | None], scale: Scale) -> str:
    """Where the test holds."""
    left = 0.0 if edges[0] is None else scale(edges[0])
    right = WIDTH if edges[1] is None else scale(edges[1])
    return f'<path class="holds" d="M{left} 3H{right}V31H{left}z"/>'


# ---- The board: every claim as a row of a plain list, which a script can search and filter -------------------------

Row = dict[str, Any]
SHOWN = 3  # of the tests of a claim, those whose smallest effect its page says
SCALES = {"smoke": "smoke run", "laptop": "laptop", "overnight": "overnight", "paper": "the papers’ own"}


def board(rows: list[Row], chapters: list[Chapter]) -> str:
    """The form (hidden where no script runs) and the list, by chapter."""
    lines = [_form(rows, chapters), '<p class="board-count" role="status"></p>']
    for chapter in chapters:
        own = [row for row in rows if row["chapter"] == chapter.name]
        if own:
            lines.append(f'<section class="board-chapter" aria-label="{html.escape(chapter.title)}">')
            title = f'<a href="{chapter.name}.html">{html.escape(chapter.title)}</a>'
            lines.append(
                f'<p class="board-title" role="heading" aria-level="2">{title}</p><ul class="board">'
            )
            lines += [item(row) for row in own]
            lines.append("</ul></section>")
    return "\n".join(lines)


def item(row: Row) -> str:
    """One row: chip and sentence, forest plot, effect in words, place and scope."""
    test = deciding(row)
    kept = {
        "source": "|".join(source_keys(row["source"])),
        "chapter": row["chapter"],
        "verdict": row["verdict"],
        "kind": row["kind"],
        "standing": standing(row),
        "scale": row["profile"] or "none",
        "sizes": "again" if row["rungs"] else "first",
    }
    data = "".join(f' data-{key}="{html.escape(value)}"' for key, value in kept.items())
    measured = found(row)
    picture = plot(test)
    picture = f'<div class="claim-plot">{picture}</div>' if picture else ""
    says = f'<a class="claim-name" href="{address(row["id"])}">{rich(row["says"])}</a>'
    return (
        f'<li class="claim{"" if picture else " bare"}" id="claim-{row["id"]}"{data}>'
        f'<div class="claim-says">{chip(row)} {says}</div>{picture}'
        f'<p class="claim-found">{measured}</p><p class="claim-place">{place(row)}</p></li>'
    )


def found(row: Row) -> str:
    """Effect in words with its interval, what must hold, and what other margins would say."""
    test = deciding(row)
    if test is None:
        return ""
    said = [f"<strong>{html.escape(test['effect']['words'])}</strong>"]
    if test["interval"]:
        said.append(f"95 % interval {html.escape(test['interval']['words'])}")
    more = len(row["tests"])
    if test["role"] == "part" and more > 1:
        said.append(f"part {row['tests'].index(test) + 1} of {more}")
    if row["verdict"] == NOT_TESTED:
        said.append("at a scale that does not count")
    asked = f"must hold: {html.escape(test['asks'])}"
    other = row["other_margins"]
    if other and set(other) != {row["verdict"]}:
        asked += f"; at half the margin <em>{other[0]}</em>, at twice <em>{other[1]}</em>"
    return f"{', '.join(said)} · {asked}"


def place(row: Row) -> str:
    """Where the source says it, and how far the verdict goes."""
    where = rich(source_place(row))
    if row["kind"] == "question":
        where = f"{'' if OWN_QUESTION in row['says'] else 'The book’s own question. '}About {where}"
    said = [where, html.escape(row["scope"])]
    said += [
        html.escape(words) for words in [row["remark"], *(f"test changed {why}" for why in row["changed"])]
    ]
    return " · ".join(each for each in said if each)


def preregistered(row: Row) -> dict[str, str]:
    """What a claim's page says of its test before the data: what its seeds can decide, and how it changed."""
    shown, more = row["power"][:SHOWN], len(row["power"]) - SHOWN
    rest = [f"and {more} more in the file of locks"] if more > 0 else []
    return {"Smallest effect": "; ".join([*shown, *rest]), "Test changed": "; ".join(row["changed"])}


def standing(row: Row) -> str:
    """Whether the test was fixed before its data."""
    return "exploratory" if row["exploratory"] else "locked"


def counts(rows: Iterable[Row]) -> list[tuple[str, int]]:
    """How many of each verdict, in the order of `chips.ORDER`."""
    tally = Counter(row["verdict"] for row in rows)
    return [(verdict, tally[verdict]) for verdict in ORDER if tally[verdict]]


def _form(rows: list[Row], chapters: list[Chapter]) -> str:
    sources = {row["source"]["key"]: None for row in rows}
    named: dict[str, str] = {}
    for key in sources:
        named[key] = source_name(key)
        versions = {one for row in rows for one in source_keys(row["source"]) if one.startswith(f"{key} ")}
        named |= {one: f"– only {one.partition(' ')[2]}" for one in sorted(versions)}
    fields = {
        "source": ("Source", named),
        "chapter": ("Chapter", {each.name: each.title for each in chapters}),
        "verdict": ("Verdict", {verdict: verdict for verdict, _ in counts(rows)}),
        "kind": ("Kind", KIND_NAMES),
        "standing": ("Test", {"locked": "locked before its data", "exploratory": "exploratory"}),
        "scale": (
            "Scale",
            {one: SCALES.get(one, one) for one in sorted({r["profile"] or "none" for r in rows})},
        ),
        "sizes": ("Judged", {"first": "with a square", "again": "again, at several sizes"}),
    }
    chosen = "".join(_select(name, label, options) for name, (label, options) in fields.items())
    search = '<label class="wide">Search <input type="search" name="find" autocomplete="off"></label>'
    reset = '<button type="reset">Show all</button>'
    return f'<form class="board-form" role="search" aria-label="Claims" hidden>{search}{chosen}{reset}</form>'


def _select(name: str, label: str, options: dict[str, str]) -> str:
    listed = "".join(
        f'<option value="{html.escape(value)}">{html.escape(re.sub("[$]", "", text))}</option>'
        for value, text in options.items()
    )
    return f'<label>{label} <select name="{name}"><option value="">all</option>{listed}</select></label>'


# ---- The waffle: every claim of the sources as one square, source by source ----------------------------------------


def waffle(rows: list[Row]) -> str:
    """A list of squares for each source, then the book's own questions; under them what the glyphs mean, and
    how many squares have each.

    A claim that is judged again at several sizes has its square from the chapter that judges it first.
    """
    rows = [row for row in rows if not row["rungs"]]
    claimed = [row for row in rows if row["kind"] != "question"]
    keys = dict.fromkeys(key for key in book().sources if any(row["source"]["key"] == key for row in claimed))
    keys |= dict.fromkeys(row["source"]["key"] for row in claimed)
    parts = [_source(source_name(key), [r for r in claimed if r["source"]["key"] == key]) for key in keys]
    own = [row for row in rows if row["kind"] == "question"]
    if own:
        parts.append(_source("The book’s own questions", own))
    legend = "".join(_meaning(verdict, number) for verdict, number in counts(rows))
    if young := sum(bool(row["exploratory"]) for row in rows):
        legend += _entry("standing=exploratory", "open unsure", "", f"{young} of them exploratory")
    return (
        f'<div class="waffle" data-waffle>{"".join(parts)}<p class="waffle-said" aria-hidden="true"></p>'
        f'<ul class="waffle-legend">{legend}</ul></div>'
    )


def _source(name: str, rows: list[Row]) -> str:
    order = {verdict: place for place, verdict in enumerate(ORDER)}
    ordered = sorted(rows, key=lambda row: order.get(row["verdict"], len(order)))
    squares = "".join(map(_square, ordered))
    return (
        f'<div class="waffle-source"><p class="waffle-name">{name} <span>{len(rows)}</span></p>'
        f'<ul class="squares" aria-label="{name}: {len(rows)} claims">{squares}</ul></div>'
    )


def _square(row: Row) -> str:
    kind, glyph, word = look(row["verdict"])
    said = f"{plain(row['says'])} — {word}" + (" (exploratory)" if row["exploratory"] else "")
    mark = " unsure" if row["exploratory"] else ""
    return (
        f'<li><a class="{kind}{mark}" href="{address(row["id"])}" title="{said}">'
        f'<span aria-hidden="true">{glyph}</span><span class="said">{said}</span></a></li>'
    )


def _meaning(verdict: str, number: int) -> str:
    kind, glyph, word = look(verdict)
    words = f"{number} {word}" + " (own questions)" * (kind == "own")
    return _entry(f"verdict={verdict.replace(' ', '+')}", kind, glyph, words)


def _entry(filters: str, kind: str, glyph: str, words: str) -> str:
    """A square and what it means, a link to the rows of the board that have it."""
    return (
        f'<li><a href="scoreboard.html#{filters}&amp;sizes=first">'
        f'<span class="square {kind}" aria-hidden="true">{glyph}</span>{words}</a></li>'
    )
