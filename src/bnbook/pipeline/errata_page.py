"""The generated page of errata: what is printed, what holds, why, and the verdict or test that shows it."""

from __future__ import annotations

from collections import Counter

from bnbook import claims
from bnbook.claims import ERRATUM_KINDS, Erratum, without_markup
from bnbook.pipeline.chapters import Chapter
from bnbook.pipeline.scoreboard import anchor, verdict_words
from bnbook.pipeline.tokens import Pages


def errata(rows: list[Erratum], chapters: list[Chapter], pages: Pages) -> str:
    """Every row of book/errata.yml, by source: one block with an anchor (`erratum-ID`) for each."""
    titles = claims.source_titles()
    by_source: dict[str, list[Erratum]] = {}
    for row in rows:
        by_source.setdefault(row.source.key, []).append(row)
    lines = [
        "# Errata of the sources",
        "",
        f"**{len(rows)} places where a source is wrong, unclear or contradicts another**, each with what "
        "holds instead and",
        "with what shows it: a claim of this book, whose verdict is computed from a run, or a test of "
        "its code. Where the",
        "text of a source came to us through a conversion, slips that the conversion may have made are "
        "left out.",
        "",
        *_counts(by_source, titles),
    ]
    known = {chapter.name: chapter for chapter in chapters}
    titles_seen: Counter[str] = Counter()
    for key, own in by_source.items():
        lines += ["", f"(errata-{key.lower()})=", f"## {titles[key]}", "", f"{{cite:t}}`{key}`", ""]
        for row in own:
            titles_seen[row.title] += 1
            again = (
                f" ({titles_seen[row.title]})" if titles_seen[row.title] > 1 else ""
            )  # equal headings would share an address
            lines += _block(row, row.title + again, known, pages)
    return "\n".join(lines) + "\n"


def _counts(by_source: dict[str, list[Erratum]], titles: dict[str, str]) -> list[str]:
    """A table: how many of each kind in each source."""
    lines = [f"| Source | {' | '.join(ERRATUM_KINDS.values())} |", "|:---|" + "---:|" * len(ERRATUM_KINDS)]
    for key, own in by_source.items():
        tally = Counter(row.kind for row in own)
        numbers = " | ".join(str(tally[kind]) for kind in ERRATUM_KINDS)
        lines.append(f"| [{titles[key]}](#errata-{key.lower()}) | {numbers} |")
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
    head = f"**{row.kind}** · {without_markup(row.source.version)}"
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
                f", in [{chapter.title}](/{chapter.name}.ipynb), [figure](#{anchor(chapter, claim.figure)})"
                if chapter
                else ""
            )
            says, words = without_markup(claim.says).rstrip("."), verdict_words(pages, claim)
            found.append(f"the claim “{says}”: **{words}**{links}")
    if row.test:
        file, _, function = row.test.partition("::")
        found.append(f"the test `{function}` in `{file}`")
    return "; ".join(found)
