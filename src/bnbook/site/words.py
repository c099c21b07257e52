"""Texts and names as HTML."""

from __future__ import annotations

import html
import re
import textwrap
from collections.abc import Sequence
from typing import Any

from bnbook.claims.words import OWN_QUESTION, scripts, spelled

#: Sources as people call them.
SOURCES = {
    "santurkar2018": "Santurkar et al. 2018",
    "meanfield2018": "Mean-field paper",
    "encyclopedia": "Wikipedia",
}
KINDS = {
    "measurement": "measurement",
    "statement": "formula or theorem",
    "question": "the book’s own question",
}
VERSIONS = ("v1", "NeurIPS")
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
    return SOURCES.get(key, key)


def source_keys(source: dict[str, str]) -> list[str]:
    """The source, and each of its versions that is named: what the board filters by."""
    return [source["key"], *(f"{source['key']} {each}" for each in VERSIONS if each in source["version"])]


def source_place(row: dict[str, Any]) -> str:
    """ "Wikipedia: Inference, first paragraph", with the version where there are several."""
    version, where = row["source"]["version"], row["source"]["where"]
    if where.startswith(f"{version} "):  # "v1 Lemma 3.3"
        return f"{source_version(row['source']['key'])}, {where}"
    return f"{source_version(row['source']['key'], version)}: {where}"


def source_version(key: str, version: str = "") -> str:
    """ "Santurkar et al. 2018, v1", and "Wikipedia" alone."""
    return source_name(key) if key == "encyclopedia" or not version else f"{source_name(key)}, {version}"
