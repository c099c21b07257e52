"""The generated page of instruments: what each measures, its own values, when it says nothing, its claims."""

from __future__ import annotations

from bnbook.claims import without_markup
from bnbook.claims.sources import Instrument
from bnbook.pipeline.prose import tokens
from bnbook.pipeline.prose.tokens import Pages
from bnbook.site import chips

HEAD = """# Instruments

**{count} instruments gave the numbers of this book's measured claims.** Each takes some values by itself: the
end of a grid, a floor, a window of steps. Those that we know stand here and on the page of each claim that
rests on them; a test computes them from the grids that were used. Where one is found wanting,
`bnbook claims --instrument NAME` lists its claims."""


def instruments(found: list[Instrument], pages: Pages) -> str:
    """Every instrument of book/instruments.yml with an anchor (`instrument-ID`); tokens are filled in."""
    text = "\n\n".join([HEAD.format(count=len(found)), *(_block(one, pages) for one in found)])
    return tokens.fill(f"{text}\n", "instruments", pages)


def _block(one: Instrument, pages: Pages) -> str:
    rows = [row for row in pages.rows.values() if one.id in row["rests_on"]]
    listed = "\n".join(
        f"- {chips.chip(row)} {without_markup(row['says'].partition('; we ')[0].rstrip('.'))}" for row in rows
    )
    paragraphs = {
        "Measures.": one.measures,
        "Values of its own.": one.own,
        "When it says nothing.": one.silent,
    }
    return "\n\n".join(
        [
            f"({one.anchor})=\n## {without_markup(one.name)}",
            *(f"**{word}** {without_markup(text)}" for word, text in paragraphs.items()),
            f":::{{admonition}} Claims that rest on `{one.id}`: {len(rows)}\n:class: dropdown\n",
            f"{listed}\n:::",
        ]
    )
