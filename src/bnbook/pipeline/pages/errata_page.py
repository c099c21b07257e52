"""The generated page of errata: what is printed, what holds, why, and the verdict or test that shows it."""

from __future__ import annotations

from collections import Counter

from bnbook import claims
from bnbook.claims import CHANGES, Erratum, without_markup
from bnbook.pipeline.chapters.chapters import Chapter
from bnbook.pipeline.pages.scoreboard import anchor
from bnbook.pipeline.prose import tokens
from bnbook.pipeline.prose.tokens import Pages
from bnbook.site import chips
from bnbook.site.words import source_name, source_version


def errata(rows: list[Erratum], chapters: list[Chapter], pages: Pages) -> str:
    """Every row of book/errata.yml, gravest first: one block with an anchor (`erratum-ID`) for each; tokens
    are filled in."""
    titles = claims.source_titles()
    lines = [
        "# Errata of the sources",
        "",
        f"**{len(rows)} places where a source is wrong, unclear or contradicts another**, ordered by what "
        "they change; *incomplete* is what holds on a condition that is not stated. Each comes with what "
        "holds instead and with what shows it: a claim of this book, whose "
        "verdict is computed from a run, or a test of its code. Where the text of a source came to us "
        "through a conversion, slips that the conversion may have made are left out.",
        "",
        *_counts(rows, titles),
    ]
    known = {chapter.name: chapter for chapter in chapters}
    titles_seen: Counter[str] = Counter()
    for change, meaning in CHANGES.items():
        own = sorted(
            (row for row in rows if row.changes == change),
            key=lambda row: claims.ERRATUM_KINDS.index(row.kind),
        )
        if not own:
            continue
        lines += ["", f"(errata-{change})=", f"## {meaning}", "", *map(_line, own), ""]
        for row in own:
            titles_seen[row.title] += 1
            again = (
                f" ({titles_seen[row.title]})" if titles_seen[row.title] > 1 else ""
            )  # equal headings would share an address
            lines += _block(row, row.title + again, known, pages)
    return tokens.fill("\n".join(lines) + "\n", "errata", pages)


def _line(row: Erratum) -> str:
    """One line of the list above the blocks."""
    return f"- [{without_markup(row.short or row.title)}](#{row.anchor}) *{source_name(row.source.key)}*"


def _counts(rows: list[Erratum], titles: dict[str, str]) -> list[str]:
    """A table: how many of each class in each source."""
    by_source: dict[str, Counter[str]] = {}
    for row in rows:
        by_source.setdefault(row.source.key, Counter())[row.changes] += 1
    lines = [f"| Source | {' | '.join(CHANGES)} |", "|:---|" + "---:|" * len(CHANGES)]
    for key, tally in by_source.items():
        lines.append(f"| {titles[key]} {{cite:t}}`{key}` | {' | '.join(str(tally[c]) for c in CHANGES)} |")
    return lines


def _block(row: Erratum, title: str, chapters: dict[str, Chapter], pages: Pages) -> list[str]:
    """Heading, kind and printing, and a definition list that a narrow screen shows as it is."""
    items = {
        "Printed": without_markup(row.printed),
        "Holds": without_markup(row.correct),
        "Why": without_markup(row.why),
        "Shown by": _shown_by(row, chapters, pages),
    }
    body = [line for word, text in items.items() for line in (word, f": {text}", "")]
    head = f"**{row.kind}** · {without_markup(source_version(row.source.key, row.source.version))}"
    head += f" · {without_markup(row.short)}" if row.short else ""
    return [
        f"({row.anchor})=",
        f"### {without_markup(title)}",
        "",
        ":::{container} erratum",
        head,
        "",
        *body,
        ":::",
        "",
    ]


def _shown_by(row: Erratum, chapters: dict[str, Chapter], pages: Pages) -> str:
    """The claim's verdict with its chapter and figure, then the test."""
    found = []
    for claim in pages.claims:
        if claim.id == row.claim:
            chapter = chapters.get(claim.chapter)
            links = (
                f" in [{chapter.title}](/{chapter.name}.ipynb), [figure](#{anchor(chapter, claim.figure)})"
                if chapter
                else ""
            )
            says, shown = without_markup(claim.says).rstrip("."), chips.chip(pages.rows[claim.id])
            found.append(f"the claim “{says}”: {shown}{links}")
    if row.test:
        file, _, function = row.test.partition("::")
        # words, which a narrow page can break
        words = function.removeprefix("test_").replace("_s_", "’s_").replace("_", " ")
        found.append(f"the test “{words}” in `{file}`")
    return "; ".join(found)
