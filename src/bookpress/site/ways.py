"""Under each figure: Code (the lines that lead to it), Data (CSV) and Run (the command that repeats it)."""

from __future__ import annotations

import ast
import html
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from bookpress import rows
from bookpress.book import command_name
from bookpress.pipeline import prose
from bookpress.pipeline.chapter_runs import Evidence
from bookpress.pipeline.chapters import Chapter, Statement, called, calls, statements
from bookpress.pipeline.inks import MARK
from bookpress.site.shell import at_commit

# ---- What stands behind a figure: the lines of its chapter that lead to it, and the results that it draws ----------

#: Methods of axes that say nothing about what is drawn; so do all that begin with `set`.
DRESS = ("legend", "minorticks_off", "tick_params", "grid", "use_style", "set")
RECORD = ("record", "record_table", "record_data", "record_device", "number_seeds_from")


def lines_behind(chapter: Chapter, figure: str) -> list[str]:
    """The statements on which the figure rests, in their order: no imports, no settings, no dressing of axes,
    nothing that only records; empty where no cell saves the figure."""
    every = statements(chapter)
    end = _saving(every, figure)
    if end is None:
        return []
    kept, needed, savers = [every[end]], set(every[end].reads), _savers(every)
    canvas = {
        name
        for line in every[:end]
        if line.cell == every[end].cell and line.binds & needed and "plt" in line.reads
        for name in line.binds
    }
    for line in reversed(every[:end]):
        own = line.cell == every[end].cell
        if isinstance(line.node, ast.Import | ast.ImportFrom) or _only(line.node, RECORD) or _dresses(line):
            continue
        draws = own and not line.binds & needed and _draws(line, canvas) and not _saves(line, savers)
        if line.binds & needed or draws:
            kept.append(line)
            if isinstance(line.node, ast.Assign | ast.FunctionDef) and not line.binds & line.reads:
                needed -= line.binds  # what the name held before does not matter
            needed |= line.reads
    return [line.text for line in reversed(kept)]


def results_behind(chapter: Chapter, figure: str, recorded: Iterable[str]) -> tuple[list[str], bool]:
    """The recorded results that the figure draws, and whether its own points are among them.

    Its points are `curve.FIGURE.…`, and with them whatever is recorded from a value that is handed to
    `save_figure`. Where no points are recorded: the results that its cell records or names; else none.
    """
    recorded, every = list(recorded), statements(chapter)
    own = [name for name in recorded if name.startswith(f"curve.{figure.replace('-', '_')}.")]
    end = _saving(every, figure)
    if end is None:
        return own, bool(own)
    if own:
        handed = every[end].reads & _held(every)
        named = [line for line in every if line.reads & handed and _records(line)]
    else:
        cell, savers = [line for line in every if line.cell == every[end].cell], _savers(every)
        named = [line for line in cell if not _saves(line, savers)]
    patterns = [pattern for line in named for pattern in _patterns(line.node, whole=bool(own))]
    found = [name for name in recorded if any(re.fullmatch(pattern, name) for pattern in patterns)]
    return [*own, *(name for name in found if name not in own and not name.startswith("curve."))], bool(own)


def _saving(every: Sequence[Statement], figure: str) -> int | None:
    """Place of the statement that saves the figure under its name."""
    savers = _savers(every)
    for place, line in enumerate(every):
        looped = ast.walk(line.node.iter) if isinstance(line.node, ast.For) else ()
        names = {each.value for each in looped if isinstance(each, ast.Constant)}
        for call in calls(line.node):
            given = names | {each.value for each in call.args if isinstance(each, ast.Constant)}
            if called(call) in savers and figure in given and not isinstance(line.node, ast.FunctionDef):
                return place
    return None


def _savers(every: Sequence[Statement]) -> set[str]:
    """`save_figure` and `figure`, and the chapter's own functions that call it."""
    defined = [line.node for line in every if isinstance(line.node, ast.FunctionDef)]
    return {"save_figure", "figure"} | {
        node.name for node in defined if any(called(call) == "save_figure" for call in calls(node))
    }


def _saves(line: Statement, savers: set[str]) -> bool:
    return not line.binds and any(called(call) in savers for call in calls(line.node))


def _draws(line: Statement, canvas: set[str]) -> bool:
    """Whether a statement that binds nothing draws on what the figure is drawn on."""
    return not isinstance(line.node, ast.Assign | ast.FunctionDef) and bool(line.reads & canvas)


def _dresses(line: Statement) -> bool:
    """Whether it only sets titles, limits and legends."""
    body = line.node.body if isinstance(line.node, ast.For) else [line.node]
    return all(
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Call)
        and (called(node.value) in DRESS or called(node.value).startswith(("set_", "sup", "use_style")))
        for node in body
    )


def _only(node: ast.stmt, names: Sequence[str]) -> bool:
    """Whether a statement does nothing but call one of these."""
    if isinstance(node, ast.For | ast.With | ast.If):
        return all(_only(each, names) for each in node.body)
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and called(node.value) in names


def _records(line: Statement) -> bool:
    return not line.binds and any(called(call) in RECORD for call in calls(line.node))


def _held(every: Sequence[Statement]) -> set[str]:
    """Names of values, not of functions, that the chapter's cells bind."""
    return {name for line in every if isinstance(line.node, ast.Assign) for name in line.binds}


def _patterns(node: ast.stmt, whole: bool) -> Iterator[str]:
    """Each text in a statement as a pattern of result names: what stands in braces may be anything; unless
    `whole`, a plain word also stands for all results that begin with it and a dot."""
    inside = {id(part) for each in ast.walk(node) if isinstance(each, ast.JoinedStr) for part in each.values}
    for each in ast.walk(node):
        if isinstance(each, ast.JoinedStr):
            parts = [part.value if isinstance(part, ast.Constant) else "\0" for part in each.values]
            text = "".join(map(str, parts))
        elif isinstance(each, ast.Constant) and isinstance(each.value, str) and id(each) not in inside:
            text = re.sub(r"\{\w*\}", "\0", each.value)
        else:
            continue
        if re.match(r"[a-z][a-z0-9_]{3}", text) and re.fullmatch(r"[a-z0-9_.\0]+", text):
            pattern = re.escape(text).replace("\0", r"[a-z0-9_.]+")
            yield pattern if whole or "\0" in text else rf"{pattern}(\..+)?"


# ---- Under each figure: Code (the lines that lead to it), Data (CSV) and Run (the command that repeats it) ---------

FIGURE = re.compile(r'<figure\b(?:(?!</figure>).)*?href="[^"]*_images/([^"/]+)\.svg".*?</figure>', re.S)
LONGEST = 24  # lines of code under a figure, as many as a cell has at most; the rest stands in the cells
POINTS = "what the figure draws"
NAMED = "what the figure’s cell records or names; its single points were not recorded"
ALL = "every recorded result of the chapter; the figure’s own points were not recorded"


def write(site: Path, chapters: Iterable[Chapter], shown: prose.Pages, repository: str = "") -> None:
    """Put the three under every figure of every page, and data/PART/CHAPTER/FIGURE.csv beside the pages."""
    known = {chapter.name: chapter for chapter in chapters}
    drawn, behind_it = images(site), {}  # an image is on several pages
    for page in site.rglob("*.html"):
        root = "../" * (len(page.relative_to(site).parts) - 1)

        def one(match: re.Match, root: str = root) -> str:
            name, _, figure = drawn.get(match[1], "").rpartition("/")
            if name not in known or (evidence := shown.evidence[name]) is None:
                return match[0]
            if match[1] not in behind_it:
                code = _code(known[name], evidence, figure, repository)
                behind_it[match[1]] = code, *_data(site, known[name], evidence, figure)
            code, data, says = behind_it[match[1]]
            parts = [
                code,
                f'<a class="way" download href="{root}{data}" title="CSV: {says}">Data</a>',
                _run(name, evidence),
            ]
            label = 'role="group" aria-label="Behind this figure"'
            return f'{match[0]}\n<div class="ways" {label}>{"".join(parts)}</div>'

        text = page.read_text(encoding="utf-8")
        mended = FIGURE.sub(one, text)
        if mended != text:
            page.write_text(mended, encoding="utf-8")


def images(site: Path) -> dict[str, str]:
    """Name of an image of the site -> the figure that it shows, PART/CHAPTER/FIGURE."""
    found = {}
    for path in sorted((site / "_images").glob("*.svg")):
        mark = re.search(rf'{MARK}="([^"]+)"', path.read_text(encoding="utf-8")[:1000])
        if mark and "." not in path.stem:  # no part of it, NAME.1.svg
            found[path.stem] = mark[1]
    return found


def command(chapter: str, profile: str) -> str:
    """How to repeat the run, and see whether it agrees."""
    return f"{command_name()} run {chapter} --profile {profile} --compare"


def shortened(lines: Sequence[str], longest: int = LONGEST) -> str:
    """The last statements, as many as fit; the first line says where the others are."""
    kept, size = [], 0
    for text in reversed(lines):
        size += text.count("\n") + 1
        if kept and size > longest:
            return "\n".join(["# What comes before stands in the chapter's cells.", *reversed(kept)])
        kept.append(text)
    return "\n".join(reversed(kept))


def _data(site: Path, chapter: Chapter, evidence: Evidence, figure: str) -> tuple[str, str]:
    """Write the figure's file; its address from the site's first page, and what is in it."""
    names, points = results_behind(chapter, figure, evidence.results)
    says = POINTS if points else NAMED if names else ALL
    address = f"data/{chapter.name}/{figure}.csv" if names else f"data/{chapter.name}.csv"
    entries = {name: evidence.results.entries[name] for name in names or evidence.results}
    path = site / address
    if not path.is_file():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(rows.as_csv(replace(evidence.results, entries=entries)), encoding="utf-8")
    return address, says


def _code(chapter: Chapter, evidence: Evidence, figure: str, repository: str) -> str:
    text = shortened(lines_behind(chapter, figure))
    commit = str(evidence.results.header.get("provenance", {}).get("commit", ""))
    link = at_commit(repository, commit, f"book/{chapter.name}.md")
    return _folded("Code", f"{_highlighted(text, 'python')}<p>{link}</p>")


def _run(chapter: str, evidence: Evidence) -> str:
    return _folded("Run", _highlighted(command(chapter, evidence.profile), "sh"))


def _folded(title: str, inside: str) -> str:
    return f"<details><summary>{title}</summary>{inside}</details>"


def _highlighted(text: str, language: str) -> str:
    from pygments import highlight
    from pygments.formatters import HtmlFormatter
    from pygments.lexers import get_lexer_by_name

    shown = (
        highlight(text, get_lexer_by_name(language), HtmlFormatter(nowrap=True))
        if text
        else html.escape(text)
    )
    return (
        f'<div class="highlight-{language} notranslate"><div class="highlight">'
        f'<pre tabindex="0">{shown.rstrip()}\n</pre></div></div>'
    )
