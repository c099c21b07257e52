"""Write a page, a JSON and a CSV file for each claim into the built site."""

from __future__ import annotations

import csv
import html
import io
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bnbook import claims
from bnbook.pipeline.chapters import drawn, merge
from bnbook.pipeline.chapters.chapters import Chapter
from bnbook.pipeline.chapters.evidence import Evidence, published
from bnbook.pipeline.pictures import pictures
from bnbook.pipeline.prose import tokens
from bnbook.profiles import PUBLISHED
from bnbook.site import limits, ways
from bnbook.site.claim_page import ROOT, Context, claim_page

Row = dict[str, Any]
CAPTION = re.compile(r'<span class="caption-text">(.*?)</span>(?=<a class="headerlink"|\s*</p>)', re.S)


def write(
    site: Path, chapters: list[Chapter], shown: tokens.Pages, figures: Mapping[str, Any], repository: str = ""
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
            known=limits.known(row, rows, instruments),
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
    return [one.as_data for one in drawn.each_alone(claim, evidence)] if evidence else []


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
    chapter: Chapter, figure: str, images: Mapping[str, str], columns: Mapping[str, Any], shown: tokens.Pages
) -> tuple[str, str]:
    """The HTML of a claim's figure, and its label in the chapter."""
    name = images.get(f"{chapter.name}/{figure}")
    for path, alt, directive in merge.referenced_figures(chapter.text):
        if name and path.endswith(f"/{figure}.svg"):
            label = re.search(r"^:name: *(\S+)", directive, flags=re.M)
            words = html.escape(tokens.fill(alt, chapter.name, shown))
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


def _runs(chapters: list[Chapter], shown: tokens.Pages) -> dict[str, list[tuple[str, Row]]]:
    """Claim -> the verdict of every fresh published run, where there is more than one."""
    found: dict[str, list[tuple[str, Row]]] = {}
    for chapter in chapters:
        held = [one for one in (published(chapter, each) for each in PUBLISHED) if one.exists]
        if len(held) < 2:
            continue
        for one in (one for one in held if not one.stale()):
            evidence = {**shown.evidence, chapter.name: one}
            pages = shown if shown.evidence == evidence else tokens.Pages(evidence, shown.claims)
            for name, row in pages.rows.items():
                if row["chapter"] == chapter.name:
                    found.setdefault(name, []).append((one.profile, row))
    return found
