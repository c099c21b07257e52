"""The notebook that is handed out: a chapter in plain Markdown that runs by itself, at the smoke profile."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import nbformat

from bnbook import __version__, atomic, claims
from bnbook.claims import reading
from bnbook.claims.ledger import format_effect
from bnbook.pipeline.chapters import merge
from bnbook.pipeline.chapters.chapters import Chapter, discover, is_parameters
from bnbook.pipeline.chapters.evidence import Evidence, published
from bnbook.pipeline.chapters.parameters import with_values
from bnbook.pipeline.gate.passed import passed_run
from bnbook.pipeline.handout import plain
from bnbook.pipeline.handout.setup_cell import setup_cell
from bnbook.pipeline.prose import tokens
from bnbook.profiles import PUBLISHED
from bnbook.site import settings

TO_RUN = (
    "**To run it**, here or in a hosted notebook such as Colab, run all cells: the first one installs what "
    f"is missing, the book's package (bnbook {__version__}) among it. The parameters are those of the smoke "
    "profile (seconds on two cores, no download, too small for evidence); those of the book's run stand "
    "beside them. Change them in their cell, or run it from a shell with other ones: "
    "`papermill NOTEBOOK.ipynb out.ipynb -p seeds 3`."
)
TO_RUN_AGAIN = (
    "**To run it again**, run all cells, or `papermill NOTEBOOK.ipynb out.ipynb -p seeds 3` from a shell: what `-p` "
    "names changes, all other parameters stay those of this run. The first cell installs what is missing, the book's "
    f"package (bnbook {__version__}) among it."
)


def notebook(chapter: Chapter, shown: tokens.Pages, *, own: bool = False) -> Any:
    """The chapter's notebook for a reader's own machine.

    Its text is plain Markdown with the numbers of the run that `shown` has, each caption under the cell that
    draws its figure; the smoke parameters are active, the run's stand beside them; the last cell judges what
    the notebook has measured by the book's claims. own: with the run's parameters active and its outputs.
    """
    evidence = shown.evidence.get(chapter.name)
    used = evidence.results.header["parameters"] if evidence else {}
    made = iter(merge.ran_cells(evidence.notebook)) if own else None
    mine = [claim for claim in shown.claims if claim.chapter == chapter.name]
    page = chapter.notebook.copy()
    texts, captions = _plain_texts(chapter, page.cells, shown)
    cells: list[Any] = []
    for number, original in enumerate(page.cells):
        source = original.source
        if original.cell_type == "markdown":
            cells.append(_markdown(texts[number]))
        elif is_parameters(original):
            cells += [_claims_cell(mine, shown)] if mine else []
            cells.append(_code(with_values(source, *((used,) if own else ({}, used))), tags=["parameters"]))
        elif own or not source.startswith("show_verdicts("):
            cells.append(_code(source))
        if made and original.cell_type == "code":
            ran = next(made)
            cells[-1] |= {"outputs": ran.outputs, "execution_count": ran.execution_count}
            cells[-1]["metadata"] = ran.metadata
        cells.append(_markdown(captions.get(number, "")))
    cells[0].source = _after_title(
        cells[0].source, f"{_about(evidence, own)}\n\n{TO_RUN_AGAIN if own else TO_RUN}"
    )
    cells.insert(1, setup_cell(settings.repository()))
    if mine and not (own and any("show_verdicts(" in source for source in chapter.code_cells)):
        call = f'show_verdicts("{chapter.name}", profile{", exact=True" if chapter.exact else ""})'
        cells.append(_markdown("## This run beside the book's"))
        cells.append(_code(f"from bnbook.claims import show_verdicts\n\n{call}"))
    if own:
        for cell in cells:
            if cell.cell_type == "code" and "papermill" not in cell.metadata:
                cell.metadata["tags"] = [merge.ADDED]
    page["cells"] = [cell for cell in cells if cell.source]
    for number, cell in enumerate(page.cells):
        cell["id"] = f"cell-{number}"
    page.metadata["bnbook"] = {"chapter": chapter.name, "content": content(page)}
    return page


def finish(evidence: Evidence) -> None:
    """Write a run's own notebook as it is handed out: its numbers in the text, its parameters in their cell, so
    that papermill's `-p` changes one of them and leaves the others."""
    found = {chapter.name: _any_published(chapter) for chapter in discover()}
    shown = tokens.Pages(found | {evidence.chapter.name: evidence}, claims.load_claims())
    page = notebook(evidence.chapter, shown, own=True)
    atomic.write_text(evidence.notebook_path, nbformat.writes(page))


def _any_published(chapter: Chapter) -> Evidence | None:
    runs = (published(chapter, profile) for profile in PUBLISHED)
    return next((run for run in runs if run.exists), None)


def _plain_texts(
    chapter: Chapter, cells: Sequence[Any], shown: tokens.Pages
) -> tuple[dict[int, str], dict[int, str]]:
    """Number of a cell -> its text made plain, and number of a cell -> captions of the figures it draws."""
    numbers, drawn = plain.equation_numbers(chapter.text), _drawing_cells(cells)
    captions: dict[int, str] = {}

    def caption(path: str, text: str) -> str:
        words = f"*Figure {Path(path).stem}.* {text}"
        place = drawn.get(Path(path).stem)
        if place is None:
            return words
        captions[place] = "\n\n".join(filter(None, (captions.get(place), words)))
        return ""

    texts = {}
    for number, cell in enumerate(cells):
        if cell.cell_type == "markdown":
            text = plain.plain(tokens.fill(cell.source, chapter.name, shown), numbers, caption)
            texts[number] = re.sub(r"\n{3,}", "\n\n", text).strip()
    return texts, captions


def _markdown(source: str) -> Any:
    return nbformat.v4.new_markdown_cell(source)


def _code(source: str, **metadata: Any) -> Any:
    return nbformat.v4.new_code_cell(source, metadata=metadata)


def content(page: Any) -> str:
    """SHA-256 of the sources of a notebook's cells: tells whether somebody has worked in it."""
    return hashlib.sha256("\0".join(cell.source for cell in page.cells).encode()).hexdigest()


def write(folder: Path, chapters: Sequence[Chapter], shown: tokens.Pages, keep: bool = False) -> list[Path]:
    """Write PART/chapter.ipynb for each chapter; `keep`: not over one in which somebody has worked.

    Returns those that were kept although the book's differ.
    """
    kept = []
    for chapter in chapters:
        path, page = folder / f"{chapter.name}.ipynb", notebook(chapter, shown)
        if keep and path.is_file():
            try:
                old = nbformat.read(path, as_version=4)
                written, now = old.metadata.get("bnbook", {}).get("content"), content(old)
            except Exception:  # whatever nbformat says of a file that is no notebook: it is its reader's
                written, now = None, ""
            if written == page.metadata["bnbook"]["content"]:
                continue  # with the outputs and the edits of its reader
            if now != written:
                kept.append(path)
                continue
        path.parent.mkdir(parents=True, exist_ok=True)
        atomic.write_text(path, nbformat.writes(page))
    return kept


def _drawing_cells(cells: Sequence[Any]) -> dict[str, int]:
    """Figure -> number of the code cell that saves it under that name, where one does."""
    return {
        name: number
        for number, cell in enumerate(cells)
        if cell.cell_type == "code"
        for name in re.findall(r"save_figure\([^\n]*?\"([a-z0-9-]+)\"", cell.source)
    }


def _about(evidence: Evidence | None, own: bool = False) -> str:
    """On which run the printed numbers rest."""
    if evidence is None:
        return "*The book has no run of this chapter: its numbers are missing (—) until you run the cells.*"
    made = evidence.results.header["provenance"]
    run = f"{evidence.profile} run of {made['date']} (commit {made['commit'][:7]})"
    if own:
        return (
            f"*The numbers and verdicts in the text are those of the {run} whose outputs stand below, also after you "
            "run the cells again; then the last cell sets yours beside the book's.*"
        )
    return (
        f"*The numbers and verdicts in the text are those of the book's {run}, not of this notebook; its last cell "
        "sets your own beside them.*"
    )


def _after_title(text: str, addition: str) -> str:
    title, _, rest = text.partition("\n")
    return f"{title}\n\n{addition}\n{rest}"


def _claims_cell(mine: Sequence[claims.Claim], shown: tokens.Pages) -> Any:
    """A folded cell with the chapter's claims and the book's verdicts: the notebook may be alone."""
    rows = []
    for claim in mine:
        found = shown.judgement(claim)
        rows.append(
            reading.Carried(claim, format_effect(found), found.marked) if found else reading.Carried(claim)
        )
    head = "# @title The book's claims and verdicts, for the last cell\nfrom bnbook.claims import carry\n\n"
    run = shown.evidence.get(mine[0].chapter)
    beside = f", {run.results.header['parameters']!r}" if run else ""
    cell = _code(f"{head}carry(r'''{reading.as_text(rows)}'''{beside})")
    cell.metadata = {"jupyter": {"source_hidden": True}, "cellView": "form"}
    return cell


def main(folder: str) -> int:
    """Write the notebooks of all chapters into a folder, as `make lab` does."""
    chapters = discover()
    evidence = {chapter.name: passed_run(chapter) for chapter in chapters}
    kept = write(Path(folder), chapters, tokens.Pages(evidence, claims.load_claims()), keep=True)
    for path in kept:
        print(f"{path} stays as you left it, and the book has a newer one: delete it to get that")
    return 0
