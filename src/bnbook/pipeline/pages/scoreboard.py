"""The generated board: every claim with its verdict, effect and scope, and how the verdicts fell."""

from __future__ import annotations

import re

from bnbook import claims
from bnbook.pipeline.chapters import merge, verdicts
from bnbook.pipeline.chapters.chapters import Chapter
from bnbook.pipeline.prose.tokens import ABSENT, Pages
from bnbook.site import board, waffle
from bnbook.site.board import Row

#: How to read the board.
WORDS = (
    "- A **measurement** of a source is *reproduced* where the whole 95 % interval lies on the claim's side "
    "of its threshold, *not reproduced* where it lies wholly on the other, *open* where it straddles it. Of "
    "a claim with several parts, *mixed* says that some hold and some are refuted, *partly refuted, "
    "rest open* that some are refuted and the others open.",
    "- A **formula or theorem** *holds*, *holds if* its condition is met, is *wrong as printed, "
    "corrected* (a corrected form holds), or *wrong*.",
    "- A **question of the book's own**, which no source answers, gets *yes*, *no* or *open*, and is counted "
    "apart.",
    "- *Not tested here*: no run at a scale that counts has tried it.",
    "- *Exploratory*: the test was made or changed after its data. All others were locked before the run.",
    "- The small plot: on green ground the claim holds; dots are seeds, the bar is the 95 % interval.",
)


#: Where scripts are on, any verdict can be judged anew.
GOALPOSTS = (
    '<div class="explorer" data-explorer="goalposts" data-claim="noisy-nearly-matches">\n\n'
    "Every claim stands below with its effect, its interval and what its verdict would be at other margins."
    "\n\n</div>"
)


def scoreboard(chapters: list[Chapter], pages: Pages) -> str:
    """Every claim: the waffle, and below it a row each with verdict, effect, interval, place and scope."""
    rows = list(pages.rows.values())
    lines = [
        "# The board",
        "",
        "Every claim of the sources, each with its verdict, computed from the recorded results and going as "
        "far as its scope: data, size and length of what was trained, number of seeds. A claim that does "
        "not hold is a result like any other. Each has a page of its own with its numbers.",
        "",
        _population(rows),
        "",
        raw(waffle.waffle(rows)),
        "",
        GOALPOSTS,
        "",
        ":::{admonition} How to read it",
        ":class: dropdown",
        "",
        *WORDS,
        "",
        ":::",
        "",
        raw(board.board(rows, chapters)),
        "",
    ]
    for chapter in chapters:
        evidence = pages.evidence[chapter.name]
        if evidence and (gone := verdicts.withdrawn(evidence)):
            names = ", ".join(f"`{name}`" for name in gone)
            link = f"[{chapter.title}](/{chapter.name}.ipynb)"
            lines += [f"Withdrawn since its run, in {link}: {names}.", ""]
    return "\n".join(lines)


def _population(rows: list[Row]) -> str:
    """What the squares and the rows are, and why there are more rows."""
    squares = [row for row in rows if not row["rungs"]]
    own = sum(row["kind"] == "question" for row in squares)
    again = (
        f"; {len(rows) - len(squares)} judge claims again at several sizes"
        if len(rows) > len(squares)
        else ""
    )
    return (
        f"A square each for {len(squares) - own} claims of the sources and {own} questions of the book's "
        f"own. Below them {len(rows)} rows: one for each square{again}."
    )


def raw(html: str) -> str:
    """HTML that goes into a page as it is."""
    return f"````{{raw}} html\n{html}\n````"


def short_scoreboard(chapters: list[Chapter], pages: Pages) -> str:
    """One row a chapter: how many claims of the sources and how their verdicts fell; apart from them the
    book's own questions."""
    lines = ["| Chapter | Claims | Verdicts | Own questions |", "|---|---|---|---|"]
    for chapter in chapters:
        own = [claim for claim in pages.claims if claim.chapter == chapter.name]
        claimed, asked = (
            [_bare_word(pages, claim) for claim in own if claim.asks is asks] for asks in (False, True)
        )
        link = f"[{chapter.title}](/{chapter.name}.ipynb)"
        counted = verdicts.tally(claimed) or ABSENT
        lines.append(f"| {link} | {len(claimed)} | {counted} | {verdicts.tally(asked) or ABSENT} |")
    return "\n".join(lines)


def _bare_word(pages: Pages, claim: claims.Claim) -> str:
    judgement = pages.judgement(claim)
    return judgement.verdict if judgement else "not run"


def anchor(chapter: Chapter, figure: str) -> str:
    """The label of a claim's figure, from the `:name:` option of its directive."""
    for path, _, directive in merge.referenced_figures(chapter.text):
        name = re.search(r"^:name: *(\S+)", directive, flags=re.M)
        if path.endswith(f"/{figure}.svg") and name:
            return name.group(1)
    return figure
