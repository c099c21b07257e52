"""Words, names and verdicts as HTML, and the templates (`bookpress/templates`) that they are put into.

Whatever is put into a template is escaped, so that nothing a run wrote reaches a page as HTML; what is HTML already
says so: it is `Markup`.
"""

from __future__ import annotations

import html
import re
import textwrap
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from bookpress.book import book, command_name
from bookpress.claims import without_markup
from bookpress.claims.judging import NOT_TESTED
from bookpress.claims.words import OWN_QUESTION, literal, scripts, spelled

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


def look(verdict: str) -> tuple[str, str, str]:
    """Look, glyph and word of a verdict."""
    return LOOKS.get(verdict, ("open", "?", verdict))


def behind(verdict: str) -> tuple[str, str]:
    """Look and glyph behind a sentence that states a verdict: that its test is decided, whichever way, for the sentence
    says which; of an open one and of one that holds in part their own."""
    kind, glyph, _ = look(verdict)
    return ("own", "✓") if kind in ("true", "false", "own", "mended") else (kind, glyph)


def in_order(rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows by their verdicts, as LOOKS has them."""
    place = {verdict: number for number, verdict in enumerate(LOOKS)}
    return sorted(rows, key=lambda row: place.get(row["verdict"], len(place)))


def at(row: dict[str, Any], root: str = "") -> str:
    """The address of a claim's row, seen from `root`."""
    return f"{root}{row['chapter']}.html#claim-{row['id']}"


#: Signs of formulas where no MathJax sets them.
SIGNS = dict(
    zip(
        "alpha beta gamma delta epsilon eta theta lambda mu pi rho sigma phi le leq ge geq ne neq approx cdot times to "
        "infty partial nabla sum pm sqrt ell langle rangle".split(),
        "αβγδεηθλμπρσφ≤≤≥≥≠≠≈·×→∞∂∇Σ±√ℓ⟨⟩",
    )
)
SIGNS |= dict.fromkeys(
    "hat tilde bar left right mathrm text operatorname mathbf widehat lvert rvert".split(), ""
)


def rich(text: str) -> Markup:
    """Words of a claim as HTML: formulas for MathJax, `code` as code, everything else escaped,
    w_t and c^2 with their letters lower and higher."""

    def one(match: re.Match) -> str:
        part = match[0]
        if part.startswith("`"):
            return f"<code>{html.escape(part[1:-1])}</code>"
        if part.startswith("$"):
            return f'<span class="math notranslate nohighlight">\\({html.escape(part[1:-1])}\\)</span>'
        return scripts(spelled(html.escape(part, quote=False)))

    return Markup(re.sub(r"`[^`]*`|\$[^$]*\$|[^`$]+|[`$]", one, text))


def plain(text: str) -> str:
    """The same where no tag may be, as in an attribute: formulas and code without their marks."""
    text = spelled(text)
    text = re.sub(r"\\(?:frac|tfrac)\{([^{}]*)\}\{([^{}]*)\}", r"(\1)/(\2)", text)
    text = re.sub(r"\\([A-Za-z]+)", lambda name: SIGNS.get(name[1], name[1]), text)
    return re.sub(r"[`${}\\]", "", text)


def brief(text: str, letters: int = 70) -> Markup:
    """How it begins, in whole words and without our reading of it: what tells a claim from others in a
    list."""
    text = text.partition("; we ")[0].rstrip(".")
    text = re.sub(rf"^The book's {OWN_QUESTION}[^:]*: (.)", lambda first: first[1].upper(), text)
    start = textwrap.shorten(text, letters, placeholder="")
    # a formula, a name or a bracket is shown whole or not at all
    while " " in start and any(
        (start.count("$") % 2, start.count("`") % 2, start.count("(") > start.count(")"))
    ):
        start = start.rsplit(" ", 1)[0]
    return rich(start.rstrip(",;:")) + Markup("\u00a0…") * (start != text)


def told_apart(texts: Sequence[str]) -> list[str]:
    """How each begins; those that begin alike whole."""
    starts = [brief(text) for text in texts]
    return [rich(text) if starts.count(start) > 1 else start for text, start in zip(texts, starts)]


def source_name(key: str) -> str:
    return book().sources.get(key, key)


def source_keys(source: dict[str, str]) -> list[str]:
    """The source, and each of its versions that is named: what the board filters by."""
    named = (each for each in book().versions if each in source["version"])
    return [source["key"], *(f"{source['key']} {each}" for each in named)]


def source_place(row: dict[str, Any]) -> str:
    """ "Wikipedia: Inference, first paragraph", with the version where there are several."""
    key, version, where = (row["source"][name] for name in ("key", "version", "where"))
    if where.startswith(f"{version} "):  # "v1 Lemma 3.3"
        return f"{source_version(key)}, {where}"
    return f"{source_version(key, version)}: {where}"


def source_version(key: str, version: str = "") -> str:
    """ "Santurkar et al. 2018, v1", and "Wikipedia" alone."""
    return source_name(key) if key == "encyclopedia" or not version else f"{source_name(key)}, {version}"


# ---- The templates ---------------------------------------------------------------------------------------------------

OWN = (look, at, rich, plain, told_apart, source_keys, source_place, source_version, spelled, repr)
FILTERS: dict[str, Callable[..., Any]] = {each.__name__: each for each in OWN} | {
    # For a page of Markdown: an author's words, anybody's, and a cell of a table.
    "words": lambda text: Markup(without_markup(text)),
    "literal": lambda text: Markup(literal(text)),
    "cell": lambda text: Markup(str(text).replace("|", "\\|")),
    "code": lambda text: Markup(f"`{str(text).replace('`', chr(39))}`"),  # nothing in it is a tag
    "data_name": lambda name: book().data_names.get(name, name),
}


@cache
def _environment() -> Environment:
    made = Environment(
        loader=PackageLoader("bookpress"),
        autoescape=lambda name: not (name or "").endswith(".txt.j2"),  # files that no browser reads
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= FILTERS
    made.globals |= {"NOT_TESTED": NOT_TESTED, "OWN_QUESTION": OWN_QUESTION, "command": command_name}
    return made


def add(**filters: Callable[..., Any]) -> None:
    """More filters for the templates of a module."""
    _environment().filters |= filters


def render(name: str, **given: Any) -> str:
    """A template of bookpress/templates, filled in."""
    return _environment().get_template(name).render(given)


def macro(template: str, name: str) -> Callable[..., Markup]:
    """A part of a template that pages ask for by itself."""
    return getattr(_environment().get_template(template).module, name)
