"""The generated page of coverage: every checkable sentence of every source, and what became of it."""

from __future__ import annotations

import html
from collections.abc import Mapping

from bnbook import claims
from bnbook.claims import REASONS, Coverage, Erratum, Sentence
from bnbook.claims import without_markup as _words
from bnbook.pipeline.prose.tokens import Pages
from bnbook.site import chips, words

#: A bar inside a cell of a table.
BAR = "\\|"


def coverage(lists: list[Coverage], pages: Pages) -> str:
    """Counts, the kinds of reasons, and one table for each text of a source."""
    lines = [
        "# Every sentence of the sources",
        "",
        f"**Sentences: {counted(lists)}.** A sentence is named by its place and told in our words.",
        "Either claims or errata judge it, and their chips lead to its page, where the verdict is",
        "computed from a run, or to the errata with their tests; or the reason stands there why nothing",
        "does. A sentence that repeats another is counted once.",
        "",
        "| Source | sentences | judged | not judged | of these open | repeats |",
        "|:---|---:|---:|---:|---:|---:|",
    ]
    titles, errata = claims.source_titles(), {row.id: row for row in claims.load_errata()}
    for one in lists:
        found = claims.count_sentences([one])
        shown = f"[{titles[one.source]}, {one.version}](#coverage-{one.name})"
        numbers = (found.sentences, found.judged, found.not_judged, found.open, found.repeats)
        lines.append(f"| {' | '.join([shown, *map(str, numbers)])} |")
    used = {sentence.reason for one in lists for sentence in one.sentences}
    lines += ["", "Reasons why a sentence is not judged:", ""]
    lines += [f"- *{kind}*: {meaning}" for kind, meaning in REASONS.items() if kind in used]
    for one in lists:
        lines += ["", f"(coverage-{one.name})=", f"## {titles[one.source]}, {one.version}", ""]
        lines += [f"{{cite:t}}`{one.source}`" + ("" if one.complete else ". This list is not finished."), ""]
        lines += ["| Place | It says | Verdict |", "|:---|:---|:---|"]
        lines += [_row(sentence, pages, errata) for sentence in one.sentences]
    return "\n".join(lines) + "\n"


def counted(lists: list[Coverage]) -> str:
    """For the front page: how many sentences, and which source's list is not finished."""
    found, titles = claims.count_sentences(lists), claims.source_titles()
    missing = [f"“{titles.get(key, key)}”" for key in claims.unfinished_sources(lists)]
    rest = f" (the list of {' and '.join(missing)} is not finished)" if missing else ""
    return f"{found.judged} of {found.sentences} judged, {found.open} open{rest}"


def _row(sentence: Sentence, pages: Pages, errata: Mapping[str, Erratum]) -> str:
    cells = (_words(sentence.where), _words(sentence.says), _verdict(sentence, pages, errata))
    return f"| {' | '.join(cell.replace('|', BAR) for cell in cells)} |"


def _verdict(sentence: Sentence, pages: Pages, errata: Mapping[str, Erratum]) -> str:
    """The claims' verdicts, each a link to its row, or why there is none."""
    if sentence.repeats:
        return f"as {_words(sentence.repeats)}"
    if not sentence.judged:
        kind, _, reason = sentence.not_judged.partition(":")
        return f"*not judged* · {kind}: {_words(reason.strip())}"
    rows = [pages.rows[name] for name in sentence.claims]
    shown = [chips.chip(row) for row in rows]
    if len(rows) > 1:  # then each says what it judges
        said = words.told_apart([row["says"] for row in rows])
        shown = [f"{chip} <small>{start}</small>" for chip, start in zip(shown, said)]
    shown += [
        f'<a class="verdict" href="errata.html#{errata[name].anchor}" '
        f'title="{html.escape(errata[name].title)}">erratum, {errata[name].kind}</a>'
        for name in sentence.errata
    ]
    note = f'<small class="remark">{_words(sentence.note)}</small>' if sentence.note else ""
    return "<br>".join(shown) + note
