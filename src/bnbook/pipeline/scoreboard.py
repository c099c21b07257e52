"""The generated scoreboard: every claim with its verdict, effect and scope, and how the verdicts fell."""

from __future__ import annotations

import re

from bnbook import claims
from bnbook.claims.judging import NOT_TESTED
from bnbook.claims.tables import OWN
from bnbook.pipeline import merge, verdicts
from bnbook.pipeline.chapters import Chapter
from bnbook.pipeline.evidence import Evidence
from bnbook.pipeline.tokens import ABSENT, Pages

#: What each word means, above the table.
WORDS = (
    "- A **measurement** of a source is *reproduced* where the whole 95 % interval lies on the claim's side "
    "of its threshold, *not reproduced* where it lies wholly on the other, *open* where it straddles it. Of "
    "a claim with several parts, *mixed* says that some hold and some are refuted, *at most partly* that "
    "some are refuted and the others open.",
    "- A **formula or theorem** *holds*, *holds if* its condition is met, is *wrong, mended* where a "
    "corrected form holds, or *wrong*.",
    "- A **question of the book's own**, which no source answers, gets *yes*, *no* or *open*, and is counted "
    "apart.",
    "- *Not tested at this scale*: no run at a profile that counts has tried it.",
)

#: Where scripts are on, any verdict can be judged anew; the tables below stand without them.
GOALPOSTS = (
    '<div class="explorer" data-explorer="goalposts" data-claim="noisy-nearly-matches">\n\n'
    "Every claim stands below with its effect, its interval and what its verdict would be at other margins."
    "\n\n</div>"
)


def scoreboard(chapters: list[Chapter], pages: Pages) -> str:
    """Every claim: verdict, effect, 95 % interval, scope and a link to its figure."""
    lines = [
        "# Scoreboard",
        "",
        "Every claim that the book has put on trial so far. The test of a claim is fixed before the run "
        "that judges it;",
        "the verdict is computed from the recorded results, and goes as far as its scope: profile, data, "
        "size and",
        "length of what was trained, number of seeds.",
        "",
        *WORDS,
        "",
        "A claim that does not hold is a result like any other. Many margins had to be chosen by us: the "
        "column beside the",
        "interval says what the verdict would be at half and at twice the margin.",
        "",
        GOALPOSTS,
        "",
        short_scoreboard(chapters, pages),
        "",
    ]
    for chapter in chapters:
        own = [claim for claim in pages.claims if claim.chapter == chapter.name]
        if not own:
            continue
        lines += [f"## {chapter.title}", "", f"[Read the chapter](/{chapter.name}.ipynb)", ""]
        lines += [
            "| Claim | Verdict | Effect | 95 % interval | At half, at twice the margin | Scope | Figure |",
            "|---|---|---|---|---|---|---|",
        ]
        lines += [_claim_row(claim, chapter, pages) for claim in own]
        evidence = pages.evidence[chapter.name]
        if evidence and (gone := verdicts.withdrawn(evidence)):
            lines += [
                "",
                f"Judged by the run and withdrawn since: {', '.join(f'`{name}`' for name in gone)}.",
            ]
        lines.append("")
    return "\n".join(lines)


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


def _claim_row(claim: claims.Claim, chapter: Chapter, pages: Pages) -> str:
    judgement, evidence = pages.judgement(claim), pages.evidence[chapter.name]
    source = f"{claim.source.key}, {claim.source.version}, {claim.source.where}"
    if claim.asks:
        source = f"{OWN}, on {source}"
    says = f'<span id="{row_address(claim)}"></span>{_cell(claim.says)}<br><small>{_cell(source)}</small>'
    figure = f"[figure](#{anchor(chapter, claim.figure)})"
    if judgement is None or evidence is None:
        return f"| {says} | {ABSENT} | {ABSENT} | {ABSENT} | {ABSENT} | {ABSENT} | {figure} |"
    found = [part for _, _, part in judgement.parts] or [judgement, judgement.corrected]
    shown = [claims.effect_and_interval(each) for each in found if each]
    if judgement.corrected:
        notes = ("as printed", "under the condition" if claim.condition else "corrected")
        shown = [(f"{words}, {note}", ends) for (words, ends), note in zip(shown, notes, strict=True)]
    effect, interval = ("<br>".join(each or ABSENT for each in column) for column in zip(*shown, strict=True))
    row = [
        says,
        f"**{_cell(judgement.words)}**{claims.exploratory_note(judgement)}",
        effect,
        interval,
        _elsewhere(judgement, evidence),
    ]
    row += [judgement.scope, figure]
    return "| " + " | ".join(row) + " |"


def _elsewhere(judgement: claims.Judgement, evidence: Evidence) -> str:
    """The verdicts at other margins: what hangs on a number that somebody had to choose."""
    exact = evidence.chapter.exact
    found = claims.at_other_margins(judgement.claim, evidence.results, judgement.profile, exact=exact)
    if not found or judgement.verdict == NOT_TESTED:
        return ABSENT
    return "the same" if set(found) == {judgement.verdict} else f"*{found[0]}*, *{found[1]}*"


def row_address(claim: claims.Claim) -> str:
    """Where the claim's row stands on the scoreboard's page."""
    return f"claim-{claim.id}"


def verdict_words(pages: Pages, claim: claims.Claim) -> str:
    """The verdict on a claim, or that its chapter has not been run."""
    judgement = pages.judgement(claim)
    return judgement.marked if judgement else "not run"


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


def _cell(text: str) -> str:
    return " ".join(claims.without_markup(text).split()).replace("|", "\\|")
