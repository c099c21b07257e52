"""What the tests of a claim found: an entry for each on the claim's page."""

from __future__ import annotations

import csv
import html
import io
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bookpress import claims
from bookpress.book import command_name
from bookpress.claims import Instrument, format_number
from bookpress.claims.judging import NOT_TESTED
from bookpress.claims.ledger import SIGN_TEST_DECIDES, shared_words
from bookpress.claims.words import spelled
from bookpress.intervals import LEVEL
from bookpress.pipeline import chapter_runs, pictures, prose
from bookpress.pipeline.chapter_runs import Evidence, published
from bookpress.pipeline.chapters import Chapter
from bookpress.profiles import PUBLISHED
from bookpress.site import board, shell, ways
from bookpress.site.shell import page, with_fixed_spaces

#: Of a test: look, glyph and word.
MET = {True: ("true", "✓", "met"), False: ("false", "✕", "not met"), None: ("open", "?", "open")}
UNTRIED = ("open", "○", "does not count at this scale")
UNREACHED = ("open", "○", NOT_TESTED)


def found(row: dict[str, Any]) -> str:
    """An entry for each test: what must hold, the plot, effect and interval, whether it is met."""
    lines = []
    for test in row["tests"]:
        look, glyph, word = _met(test)
        sentence = board.rich(test["says"].rstrip("."))
        said = {"printed": "As printed. ", "corrected": f"Corrected: {sentence}. "}
        says = f"{sentence}. " if test["role"] == "part" else said.get(test["role"], "")
        picture = board.plot(test)
        lines.append(
            f'<li class="claim{"" if picture else " bare"}"><div class="claim-says">'
            f'<span class="chip {look}"><span class="glyph" aria-hidden="true">{glyph}</span>{word}</span> '
            f"{says}Must hold: {html.escape(test['asks'])}.</div>"
            + (f'<div class="claim-plot">{picture}</div>' if picture else "")
            + (f'<p class="claim-found">{_measured(test)}</p>' if test["n"] else "")
            + "</li>"
        )
    parts = len([test for test in row["tests"] if test["role"] == "part"])
    all_or_any = {"all": "All parts have to hold.", "any": "One part has to hold."}[row["combine"]]
    if row["rungs"]:
        all_or_any = "It has to hold at every size that was reached."
    plotted = [test for test in row["tests"] if board.plot(test)]
    ground = ["Green ground: where the test holds."] * any(test["verdict"] != NOT_TESTED for test in plotted)
    marks = ["Dots: seeds; bar: 95 % interval; diamond: the effect."] * bool(plotted)
    note = " ".join([all_or_any] * (parts > 1) + ground + marks)
    note = f'<p class="claim-place">{note}</p>' if note else ""
    return f'{note}<ul class="board">{"".join(lines)}</ul>' if lines else "<p>Nothing was measured here.</p>"


def _met(test: dict[str, Any]) -> tuple[str, str, str]:
    if test["verdict"] != NOT_TESTED:
        return MET[test["holds"]]
    return UNTRIED if test["n"] else UNREACHED


def _measured(test: dict[str, Any]) -> str:
    said = [f"<strong>{html.escape(test['effect']['words'])}</strong>"]
    if test["interval"]:
        said.append(f"95 % interval {html.escape(test['interval']['words'])}")
    said.append(f"n = {test['n']}")
    if test["p"] is not None:
        said.append(f"p = {format_number(test['p'], '.2g')}" if test["p"] > 1e-12 else "p < 10⁻¹²")
    return ", ".join(said) + "".join(f"; {mark}" for mark in _marks(test))


def _marks(test: dict[str, Any]) -> list[str]:
    """Where a test decides, but not among the book's many tests, or not by the sign test (from six seeds
    on)."""
    if test["p"] is None or test["holds"] is None:
        return []
    many = [] if test["kept"] else ["not kept among the many tests of the book"]
    if test["n"] < SIGN_TEST_DECIDES or test["sign_p"] <= 1 - LEVEL:
        return many
    return [*many, f"the sign test does not decide (p = {format_number(test['sign_p'], '.2g')})"]


# ---- What each draw of a claim gave by itself, as a table of its page ----------------------------------------------

HEADS = ("published run of", "seeds", "on", "by itself", "found", "counts")


def table(row: dict[str, Any], drawn: Sequence[dict[str, Any]]) -> str:
    """A line for each draw (`Drawn.as_data`), the last run below, then all that count together; nothing where
    there is but one draw."""
    if not drawn:
        return ""
    lines = [
        _draw_line(one["date"], _seeds(one["seeds"]), one["device"], one, one["left_out"] or "yes")
        for one in drawn
    ]
    lines.append(_draw_line("<strong>together</strong>", f"n = {row['n']}", "", row, ""))
    heads = "".join(f"<th>{head}</th>" for head in HEADS)
    # By the keyboard, too, where it is wider than a phone: these pages are without the theme's script.
    frame = '<div class="pst-scrollable-table-container" tabindex="0">'
    note = "Each seed counts once, by the mean of its draws that count."
    return f'{frame}<table class="table"><tr>{heads}</tr>{"".join(lines)}</table></div><p>{note}</p>'


def _draw_line(date: str, seeds: str, device: str, found: dict[str, Any], counts: str) -> str:
    effect = found["effect"]["words"] if found["effect"] else ""
    effect += f", 95 % interval {found['interval']['words']}" if found["interval"] else ""
    chip = board.chip({"verdict": found["verdict"], "words": found["verdict"], "exploratory": ""}, link=False)
    cells = (date, seeds, html.escape(device), chip, html.escape(effect), html.escape(counts))
    return "<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>"


def _seeds(ranges: Sequence[Sequence[int]]) -> str:
    return ", ".join(str(low) if low == high else f"{low} to {high}" for low, high in ranges)


# ---- What stands beside a claim: what its instruments do by themselves, and how it goes at other sizes -------------

Row = dict[str, Any]
PAGE = "instruments.html"
MANY = 2  # lines of sizes above which they are folded


def beside(row: Row, rows: Sequence[Row], instruments: Sequence[Instrument]) -> str:
    """The HTML of a claim's page: a line each for its instruments and for its siblings at other sizes."""
    own, sizes = _instruments(row, instruments), _sizes(row, rows)
    lines = "".join(map(_line, sizes))
    if len(sizes) > MANY:
        lines = f"<details><summary>At other sizes</summary>{lines}</details>"
    return (_line(own) if own else "") + lines


def _line(text: str) -> str:
    return f'<p class="claim-known">{text}</p>'


def marks(instruments: Sequence[Instrument], root: str) -> Callable[[Row], str]:
    """What stands small below the verdict on a claim: the marks of its instruments."""

    def of(row: Row) -> str:
        marked = [one for one in instruments if one.mark and one.id in row["rests_on"]]
        links = " · ".join(
            f'<a href="{root}{PAGE}#{one.anchor}">{html.escape(one.mark)}</a>' for one in marked
        )
        return f"<br><small>{links}</small>" if links else ""

    return of


def _instruments(row: Row, instruments: Sequence[Instrument]) -> str:
    said = [
        f'<a href="../{PAGE}#{one.anchor}">{board.rich(one.name)}</a>'
        + (f", {board.rich(one.line)}" if one.line else "")
        for one in instruments
        if one.id in row["rests_on"]
    ]
    return f"Rests on: {'; '.join(said)}." if said else ""


def _sizes(row: Row, rows: Sequence[Row]) -> list[str]:
    """The claim's verdicts at the sizes of a ladder, or where it is judged at one size."""
    lines = [
        f"At one size, in its own chapter: {board.chip(one, '../')} {board.rich(one['says'])}"
        for one in rows
        if row["of"] == one["id"]
    ]
    siblings = [one for one in rows if one["of"] == row["id"]]
    for one in siblings:
        tried = [test for test in one["tests"] if test["verdict"] != NOT_TESTED]
        shared, short = shared_words([test["effect"]["words"] for test in tried])
        sizes = " ".join(_size(test, short) for test in tried)
        of = f" ({board.rich(one['says'].rstrip('.'))})" if len(siblings) > 1 else ""
        more = html.escape(shared.removeprefix("… ")) if sizes else "not tried"
        link = f'<a href="{one["id"]}.html">At other sizes</a>{of}'
        lines.append(f"{link}{', ' if more else ''}{more}{':' if sizes else '.'} {sizes}")
    return lines


def _size(test: Row, short: Callable[[str], str]) -> str:
    look, glyph, word = MET[test["holds"]]
    effect = html.escape(short(test["effect"]["words"]))
    title = html.escape(f"{word}: {test['effect']['words']}")
    said = f"{html.escape(test['says'].rstrip('.'))}: {effect}"
    inside = f'<span class="glyph" aria-hidden="true">{glyph}</span>{said}'
    return f'<span class="chip {look}" title="{title}">{inside}</span>'


# ---- The page of one claim: what is said and where, how it was tested, what was found, and how to repeat it --------

ROOT = "../"
#: What of a claim's sentence is this book's decision.
READING = re.compile(r"; we read,? (.*?)\.?$", re.S)


@dataclass(frozen=True)
class Context:
    """What a claim's page shows besides its row."""

    chapter: str  # title
    evidence: Evidence | None
    figure: str = ""  # its HTML
    anchor: str = ""  # of the figure in the chapter
    caption: str = ""  # its HTML there
    places: Sequence[str] = ()  # sentences of the sources that it judges
    runs: Sequence[tuple[str, Row]] = ()  # (profile, row) of every published run that judged it
    drawn: Sequence[Row] = ()  # what each draw gave by itself
    locked: str = ""
    known: str = ""  # HTML: its instruments, and how it goes at other sizes
    repository: str = ""
    before: str = ""  # id of the claim before it
    after: str = ""


def claim_page(row: Row, about: Context) -> str:
    """The whole HTML page, in claims/ID.html."""
    chapter = f"{ROOT}{row['chapter']}.html"
    crumbs = (
        f'› <a href="{ROOT}scoreboard.html">Board</a> › <a href="{chapter}">{html.escape(about.chapter)}</a>'
    )
    parts = [
        f"<h1>{board.rich(row['says'])}</h1>",
        f'<p class="claim-verdict">{board.chip(row, link=False)} {board.rich(_rest(row))}</p>',
        f'<p class="claim-place">{board.place(row)}</p>',
        about.known,
        *[f"<h2>{title}</h2>{text}" for title, text in _sections(row, about).items() if text],
        _neighbours(about),
    ]
    title = f"{board.plain(row['says'])} – {row['verdict']}"
    said = f"{row['verdict']}. {row['effect']['words'] if row['effect'] else ''} {board.source_place(row)}"
    return page(html.unescape(title), with_fixed_spaces("\n".join(parts)), ROOT, said, crumbs)


def _rest(row: Row) -> str:
    start = "holds if" if row["verdict"] == "holds if …" else row["verdict"]
    return row["words"].removeprefix(start).strip()


def _sections(row: Row, about: Context) -> dict[str, str]:
    return {
        "What was found": found(row),
        "The picture": _figure_on_page(row, about),
        "How sure": _sure(row, about),
        "Where it is said": _said(row, about),
        "Every run that judged it": _runs_on_page(about.runs),
        "Each draw by itself": table(row, about.drawn),
        "Repeat it": _repeat(row, about),
    }


def _figure_on_page(row: Row, about: Context) -> str:
    if not about.figure:
        return ""
    link = f'<a href="{ROOT}{row["chapter"]}.html#{about.anchor}">The figure in its chapter</a>'
    caption = f'<p><span class="caption-text">{about.caption}</span></p>' if about.caption else ""
    return f"<figure>{about.figure}<figcaption>{caption}<p>{link}</p></figcaption></figure>"


def _sure(row: Row, about: Context) -> str:
    made = about.evidence.results.header["provenance"] if about.evidence else {}
    mark = (
        f"exploratory: {row['exploratory']}"
        if row["exploratory"]
        else f"locked {about.locked or 'before its data'}"
    )
    margins = row["other_margins"]
    said = {
        "Test": mark,
        **board.preregistered(row),
        "In the words of its lock": spelled(row["was"]),
        "Run": f"{made.get('date', '')}, {row['profile']} profile" if made else "",
        "Scope": row["scope"],
        "At half the margin": margins[0] if margins else "",
        "At twice the margin": margins[1] if margins else "",
        "Since the run": row["remark"],
    }
    return _list({key: html.escape(str(text)) for key, text in said.items() if text})


def _said(row: Row, about: Context) -> str:
    listed = "".join(f"<li>{board.rich(place)}</li>" for place in about.places)
    where = board.rich(board.source_place(row))
    if row["kind"] == "question":
        where = f"No source says it: the book asks it, about {where}." + " It bears on:" * bool(listed)
    reading = READING.search(row["says"])
    ours = f"<p>Our reading: {board.rich(reading[1])}.</p>" if reading else ""
    return f"<p>{where}</p>" + (f"<ul>{listed}</ul>" if listed else "") + ours


def _runs_on_page(runs: Sequence[tuple[str, Row]]) -> str:
    lines = ""
    for profile, row in runs:
        effect = row["effect"]["words"] if row["effect"] else ""
        cells = (profile, board.chip(row, link=False), html.escape(effect), html.escape(row["scope"]))
        lines += "<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>"
    return _table(lines) if lines else ""


def _table(lines: str) -> str:
    # By the keyboard, too, where it is wider than a phone: these pages are without the theme's script.
    frame = '<div class="pst-scrollable-table-container" tabindex="0">'
    return f'{frame}<table class="table">{lines}</table></div>'


def _repeat(row: Row, about: Context) -> str:
    profile = row["profile"] or "laptop"
    made = about.evidence.results.header["provenance"] if about.evidence else {}
    commit = str(made.get("commit", ""))
    code = shell.at_commit(about.repository, commit, f"book/{row['chapter']}.md")
    data = f'<a href="{row["id"]}.json">JSON</a> · <a href="{row["id"]}.csv">CSV, a line a seed</a>'
    command = f'<pre tabindex="0"><code>{command_name()} run {row["chapter"]} --profile {profile} --compare</code></pre>'
    return command + _list({"Code": code, "Numbers": data, "Name": f"<code>{row['id']}</code>"})


def _neighbours(about: Context) -> str:
    links = [
        f'<a rel="{rel}" href="{name}.html">{text}</a>'
        for rel, name, text in (
            ("prev", about.before, "← claim before"),
            ("next", about.after, "next claim →"),
        )
        if name
    ]
    return f'<nav class="claim-next" aria-label="Other claims">{" ".join(links)}</nav>'


def _list(items: dict[str, str]) -> str:
    return "<dl>" + "".join(f"<dt>{key}</dt><dd>{text}</dd>" for key, text in items.items()) + "</dl>"


# ---- Write a page, a JSON and a CSV file for each claim into the built site ----------------------------------------

CAPTION = re.compile(r'<span class="caption-text">(.*?)</span>(?=<a class="headerlink"|\s*</p>)', re.S)


def write(
    site: Path, chapters: list[Chapter], shown: prose.Pages, figures: Mapping[str, Any], repository: str = ""
) -> None:
    """claims/ID.html, .json and .csv for every claim; figures: name of an image -> its columns."""
    rows = list(shown.rows.values())
    folder = site / "claims"
    folder.mkdir(exist_ok=True)
    known, own = {chapter.name: chapter for chapter in chapters}, {claim.id: claim for claim in shown.claims}
    images = {figure: image for image, figure in ways.images(site).items()}
    places, runs = _places(), _runs(chapters, shown)
    names, instruments = [row["id"] for row in rows], claims.load_instruments()
    for number, row in enumerate(rows):
        chapter, claim = known[row["chapter"]], own[row["id"]]
        picture, anchor = _figure(chapter, row["figure"], images, figures, shown)
        judgement = shown.judgement(claim)
        about = Context(
            chapter=chapter.title,
            evidence=shown.evidence[chapter.name],
            figure=picture,
            anchor=anchor,
            caption=caption_of(site / f"{chapter.name}.html", anchor),
            places=places.get(row["id"], ()),
            runs=runs.get(row["id"], ()),
            drawn=_drawn(claim, shown.evidence[chapter.name]),
            locked=getattr(judgement, "locked", ""),
            known=beside(row, rows, instruments),
            repository=repository,
            before=names[number - 1] if number else "",
            after=names[number + 1] if number + 1 < len(names) else "",
        )
        (folder / f"{row['id']}.html").write_text(claim_page(row, about), encoding="utf-8")
        (folder / f"{row['id']}.json").write_text(
            json.dumps(
                row | {"run": _run(about.evidence), "draws": about.drawn}, ensure_ascii=False, indent=1
            ),
            encoding="utf-8",
        )
        (folder / f"{row['id']}.csv").write_text(per_seed(claim, about.evidence), encoding="utf-8")


def _run(evidence: Evidence | None) -> dict[str, Any] | None:
    """Where the numbers of a claim come from: date, commit and device of their run."""
    made = evidence.results.header["provenance"] if evidence else None
    return {key: made.get(key) for key in ("date", "commit", "device")} if made else None


def _drawn(claim: claims.Claim, evidence: Evidence | None) -> list[Row]:
    """What each draw of a claim gave by itself, the last run at the end; none where there is but one."""
    return [one.as_data for one in chapter_runs.each_alone(claim, evidence)] if evidence else []


def per_seed(claim: claims.Claim, evidence: Evidence | None) -> str:
    """CSV: a line a seed, a column for each number that the claim's tests read."""
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    names = [name for name in claim.result_names() if evidence and name in evidence.results]
    columns: dict[str, dict[int, float]] = {}
    for name in names:
        seeds, values = evidence.quoted(name)
        flat = values.reshape(len(values), -1)
        titles = [name] if flat.shape[1] == 1 else [f"{name}[{k}]" for k in range(flat.shape[1])]
        columns |= {title: dict(zip(seeds, column, strict=True)) for title, column in zip(titles, flat.T)}
    table.writerow(["seed", *columns])
    for seed in sorted({seed for column in columns.values() for seed in column}):
        cells = (f"{column[seed]:.9g}" if seed in column else "" for column in columns.values())
        table.writerow([seed, *cells])
    return text.getvalue()


def _figure(
    chapter: Chapter, figure: str, images: Mapping[str, str], columns: Mapping[str, Any], shown: prose.Pages
) -> tuple[str, str]:
    """The HTML of a claim's figure, and its label in the chapter."""
    name = images.get(f"{chapter.name}/{figure}")
    for path, alt, directive in chapter_runs.referenced_figures(chapter.text):
        if name and path.endswith(f"/{figure}.svg"):
            label = re.search(r"^:name: *(\S+)", directive, flags=re.M)
            words = html.escape(prose.fill(alt, chapter.name, shown))
            image = f'<img alt="{words}" src="{ROOT}_images/{name}.svg" />'
            return pictures.in_both_themes(image, columns), label[1] if label else ""
    return "", ""


def caption_of(page: Path, anchor: str) -> str:
    """What stands under a figure on its chapter's page, without links."""
    text = page.read_text(encoding="utf-8") if anchor and page.is_file() else ""
    _, found, after = text.partition(f'id="{anchor}"')
    caption = CAPTION.search(after) if found else None
    return re.sub(r"</?a\b[^>]*>", "", caption[1]) if caption else ""


def _places() -> dict[str, list[str]]:
    """Claim -> the sentences of the sources that it judges."""
    found: dict[str, list[str]] = {}
    for listed in claims.load_coverage():
        for sentence in listed.sentences:
            for name in sentence.claims:
                found.setdefault(name, []).append(f"{listed.version}, {sentence.where}: {sentence.says}")
    return found


def _runs(chapters: list[Chapter], shown: prose.Pages) -> dict[str, list[tuple[str, Row]]]:
    """Claim -> the verdict of every fresh published run, where there is more than one."""
    found: dict[str, list[tuple[str, Row]]] = {}
    for chapter in chapters:
        held = [one for one in (published(chapter, each) for each in PUBLISHED) if one.exists]
        if len(held) < 2:
            continue
        for one in (one for one in held if not one.stale()):
            evidence = {**shown.evidence, chapter.name: one}
            pages = shown if shown.evidence == evidence else prose.Pages(evidence, shown.claims)
            for name, row in pages.rows.items():
                if row["chapter"] == chapter.name:
                    found.setdefault(name, []).append((one.profile, row))
    return found
