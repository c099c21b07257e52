"""Whatever of the package ran in a smoke run of a chapter was hashed: the runs of the site are traced
(tracing/)."""

from __future__ import annotations

import ast
import json
from pathlib import Path

import pytest

from bnbook import fingerprint
from bnbook.fingerprint.sources import measures
from bnbook.pipeline.chapters import Chapter, discover

SRC = Path(fingerprint.__file__).resolve().parents[2]
#: Bands and verdicts call these on behalf of parts that do not measure; `fingerprint.BANDS` is followed by
#: itself.
#: The runner asks which set a name stands for; the SHA-256 vouches for it.
ON_BEHALF = ("bnbook.intervals:", "bnbook.data:prepare")


@pytest.mark.parametrize("chapter", discover(), ids=lambda chapter: chapter.name)
def test_what_ran_was_hashed(chapter: Chapter, built_site: Path) -> None:
    files = (built_site / "runs" / "traces").glob(f"{chapter.name.replace('/', '--')}.*.json")
    rows = [row for file in files for row in json.loads(file.read_text(encoding="utf-8"))]
    ran = {_definition(Path(file), line) for file, line in rows}
    ran = {name for name in ran if measures(name.split(":")[0]) and not name.startswith(ON_BEHALF)}
    ran = {name for name in ran if not name.endswith(":__getattr__")}  # asked for names that no module has
    closure, _ = fingerprint.read_cells(chapter.code_cells)
    assert ran, "a chapter that measures runs something of the package"
    assert sorted(ran - fingerprint.definitions(closure)) == []


def _definition(file: Path, line: int) -> str:
    """The top-level definition of the package that a line belongs to, as "module:name"."""
    module = ".".join(file.relative_to(SRC).with_suffix("").parts).removesuffix(".__init__")
    for node in ast.parse(file.read_text(encoding="utf-8")).body:
        first = min([node.lineno, *(each.lineno for each in getattr(node, "decorator_list", []))])
        if first <= line <= node.end_lineno:
            named = node.targets[0] if isinstance(node, ast.Assign) else node
            return f"{module}:{getattr(named, 'name', None) or getattr(named, 'id', '?')}"
    return f"{module}:?"
