"""Figures as the site shows them: drawn from a run's results, for a page and for a phone, in the inks of both themes.

A figure is a function of results. The book's package says how one becomes a drawing (`book().figures`); here is which
function draws which figure, what is drawn again, and how a page shows it.
"""

from __future__ import annotations

import ast
import hashlib
import importlib
import importlib.metadata
import shutil
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from bookpress import atomic, paths, results, stamp
from bookpress.book import PRESS, book, folders
from bookpress.cores import cores, pool
from bookpress.errors import PressError
from bookpress.pipeline import chapter_runs, inks
from bookpress.pipeline.chapter_runs import Evidence
from bookpress.pipeline.chapters import Chapter, select
from bookpress.results import Results

Draw = Callable[[Results], Any]

# ---- Which function draws a figure -----------------------------------------------------------------------------------


def drawings(chapter: Chapter) -> dict[str, Draw]:
    """Figure -> draw(results), of those that the chapter's cells draw from results alone, as `figure(NAME, draw)`, and
    of those that its package draws where a cell has its own way; PressError where one cannot be found."""
    found, names = dict(book().figures.drawings(chapter.name)), dict[str, Any]()
    for statement in (each for cell in chapter.code_cells for each in ast.parse(cell).body):
        if isinstance(statement, ast.Import | ast.ImportFrom | ast.FunctionDef):
            with suppress(Exception):  # a default value that only a run has: it is none that draws
                exec(compile(ast.Module([statement], []), "cell", "exec"), names)
        elif call := _of_figure(statement):
            try:
                draw = eval(compile(ast.Expression(call.args[1]), "cell", "eval"), names)
            except Exception as error:
                raise PressError(
                    f"{chapter.name}: {ast.unparse(call)[:80]!r} names no drawing function ({error}); expected one that "
                    "is imported or defined in a cell"
                ) from None
            found[ast.literal_eval(call.args[0])] = draw
    return found


def told(chapter: Chapter) -> frozenset[str]:
    """The figures of `drawings`, told from the code alone: nothing is imported, which takes seconds. A name that the
    package does not define draws none."""
    return _told(chapter.name, "\n".join(chapter.code_cells), stamp.here())


@lru_cache(maxsize=64)
def _told(chapter: str, cells: str, code: stamp.Code) -> frozenset[str]:
    found = set[str]()
    body = ast.parse(cells).body
    known = [each for each in body if isinstance(each, ast.Import | ast.ImportFrom | ast.FunctionDef)]
    own = code.take_apart(stamp.Module("", ""), ast.unparse(ast.Module(known, [])))
    for module in map(code.module, book().modules(chapter)):
        for node in module.defined.get("FIGURES", ()):
            found |= {key.value for key in node.value.keys}
    for call in filter(None, map(_of_figure, body)):
        drawn = stamp.Reading([ast.Expr(call.args[1])])
        mentioned = code.mentioned(drawn, own)
        given = {each.arg for each in ast.walk(call.args[1]) if isinstance(each, ast.arg)}
        if {name for name, *_ in drawn.names} <= {name for name, _ in mentioned} | given:
            found |= {call.args[0].value} if all(code.defines(place) for _, place in mentioned) else set()
    return frozenset(found)


def _of_figure(statement: ast.stmt) -> ast.Call | None:
    """The call of `figure(NAME, draw)`, by whatever object."""
    call = statement.value if isinstance(statement, ast.Expr) else None
    if not isinstance(call, ast.Call) or len(call.args) != 2 or not isinstance(call.args[0], ast.Constant):
        return None
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    return call if name == "figure" else None


def shown(chapter: Chapter) -> list[str]:
    """The figures of the chapter's text."""
    own = f"{chapter.path.stem}.figures/"
    names = (one.path for one in chapter_runs.referenced_figures(chapter.text) if one.path.startswith(own))
    return [name.removeprefix(own).removesuffix(".svg") for name in names]


# ---- Drawn once for the same results and the same code ---------------------------------------------------------------

#: How the drawing for phones of a figure is called.
PHONE = ".narrow.svg"
KEPT_DRAWINGS = 2000  # files; what is older goes
FEW = 4  # drawings for which no further process is worth its start
#: In the figures' folder of a run: what its cells drew with.
MADE_WITH = "made-with"


def put(runs: Iterable[Evidence], folder: Path) -> None:
    """The figures of each run's page into NAME.figures beside it; PressError names the first that cannot be drawn."""
    jobs, places, now = [], [], folders()
    for run in runs:
        made_of, own = digest(run), run.figures_folder
        note = own / MADE_WITH
        as_now = note.is_file() and note.read_text(encoding="utf-8") == made_with(run.chapter, now.values())
        for name in shown(run.chapter):
            place = folder / f"{run.chapter.name}.figures" / f"{name}.svg"
            place.parent.mkdir(parents=True, exist_ok=True)
            for narrow, target in ((False, place), (True, place.with_suffix(PHONE))):
                kept = _kept(made_of, run.chapter, name, narrow)
                ready = own / f"{name}.svg" if as_now and not narrow else None
                jobs.append((run.chapter, run.results_path, name, narrow, ready, kept))
                places.append((kept[0], target))
    jobs = [job for job in jobs if not all(path.is_file() for path in job[-1])]
    if len(jobs) <= FEW:
        list(map(_draw, jobs))
    else:
        with pool(cores()) as workers:
            list(workers.map(_draw, jobs))
    for kept, place in places:
        kept.touch()
        shutil.copyfile(kept, place)
    for old in sorted(_store().glob("*.svg"), key=lambda path: -path.stat().st_mtime)[KEPT_DRAWINGS:]:
        old.unlink()


def picture(run: Evidence) -> bytes | None:
    """The first figure of the run's page as a PNG, which a notebook shows before it is trusted; None where no function
    of its results draws it."""
    name = next(iter(shown(run.chapter)), "")
    if name not in told(run.chapter):
        return None
    kept = _kept(digest(run), run.chapter, name, False)
    if not kept[-1].is_file():
        _draw((run.chapter, run.results_path, name, False, None, kept))
    return kept[-1].read_bytes()


def _store() -> Path:
    return paths.build_folder() / "drawings"


def _kept(made_of: str, chapter: Chapter, name: str, narrow: bool) -> list[Path]:
    """Where a drawing is kept, and the first of a page as a picture beside it."""
    called = hashlib.sha256(f"{made_of} {name} {narrow}".encode()).hexdigest()
    first = name == shown(chapter)[0] and not narrow
    return [_store() / f"{called}{ending}" for ending in (".svg", ".png")[: 1 + first]]


class _Noted(Results):
    """Results that note which of them are read."""

    def __getitem__(self, name: str) -> Any:
        found = super().__getitem__(name)
        self.__dict__.setdefault("read", {})[name] = True
        return found


def _draw(job: tuple[Chapter, Path, str, bool, Path | None, list[Path]]) -> None:
    """ready: the same drawing as the run's cell made it, of which only the names of the results that it reads are asked."""
    chapter, path, name, narrow, ready, (target, *picture) = job
    held, made = _results(path), []
    noted = _Noted(held.header, held.entries)
    try:
        if ready and ready.is_file():
            made.append(ready.read_bytes())
        formats = ("svg", "png")[len(made) : 1 + len(picture)]
        svg, *png = made + book().figures.drawn(_drawings(chapter.name)[name], noted, narrow, formats)
    except Exception as error:
        way = " for a phone" if narrow else ""
        raise PressError(
            f"{chapter.name}: the figure {name} cannot be drawn from its results{way} ({type(error).__name__}: {error})"
        ) from None
    read = () if narrow else noted.__dict__.get("read", ())
    atomic.write_text(target, inks.themed(svg.decode(), f"{chapter.name}/{name}", read))
    for place, content in zip(picture, png):
        atomic.write_bytes(place, content)


_results = lru_cache(4)(results.read)


@cache
def _drawings(name: str) -> dict[str, Draw]:
    return drawings(select([name])[0])


def made_with(chapter: Chapter, packages: Iterable[Path]) -> str:
    """A hash of all that a run's drawings rest on beside its numbers: its cells, every file of code, what draws."""
    made = hashlib.sha256("\n".join([*chapter.code_cells, *_drawn_with()]).encode())
    for file in (each for folder in packages for each in sorted(folder.rglob("*.py"))):
        made.update(file.read_bytes())
    return made.hexdigest()


def _drawn_with() -> list[str]:
    return [importlib.metadata.version(name) for name in ("matplotlib", "numpy")]


def digest(run: Evidence) -> str:
    """What a run's figures are made of: its results, the code that its cells and its package's drawings reach by
    imports, the press's own, the inks, the versions of what draws."""
    own = "\n".join(run.chapter.code_cells)
    starts = {*_imported(own), book().figures_module, *book().modules(run.chapter.name)}
    code = hashlib.sha256(own.encode())
    for module in sorted(_reached(starts) | {f"{PRESS}.pipeline.pictures", f"{PRESS}.pipeline.inks"}):
        code.update(_source(module).encode())
    drawn_with = [*_drawn_with(), inks.palette(), book().scales, book().painted]
    return f"{run.results.header.get('content')} {run.chapter.name} {code.hexdigest()} {drawn_with}"


def _reached(starts: Iterable[str]) -> set[str]:
    found, left = set[str](), [module for module in starts if module.split(".")[0] == book().package]
    while left:
        if (module := left.pop()) not in found and _source(module):
            found.add(module)
            left += [other for other in _imported(_source(module)) if other.split(".")[0] == book().package]
    return found


@cache
def _imported(code: str) -> frozenset[str]:
    """Every module that some code may mean by its imports."""
    found = set()
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return frozenset(found)


@cache
def _source(module: str) -> str:
    """The text of a module of the package or the press, empty where a name is no module."""
    there = stamp.here().module(module)
    return there.path.read_text(encoding="utf-8") if there else ""
