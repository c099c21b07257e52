"""The chapters: MyST text in book/PART/chapter.md, read as notebooks."""

from __future__ import annotations

import ast
import difflib
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from bnbook import contents, paths
from bnbook.errors import BnbookError
from bnbook.parameters import Kind
from bnbook.pipeline.chapters import parameters as parameter_cell
from bnbook.pipeline.chapters import settings
from bnbook.profiles import OPTIONAL, PROFILES
from bnbook.texts import parse_yaml, read_text


@dataclass(frozen=True)
class Chapter:
    """One chapter: its name (`part/chapter`), its file and what its front matter says."""

    name: str
    path: Path
    title: str
    exact: bool = False
    data: tuple[str, ...] = ()
    profiles: dict[str, dict[str, Any]] = field(default_factory=dict)

    @cached_property
    def text(self) -> str:
        return self.path.read_text(encoding="utf-8")

    @cached_property
    def notebook(self) -> Any:
        """The chapter as a notebook (nbformat), its text cells and code cells in order, no outputs."""
        import jupytext
        from jupytext.myst import MystMetadataParsingError

        try:
            notebook = jupytext.reads(self.text, fmt="md:myst")
        except (ValueError, MystMetadataParsingError) as error:
            raise BnbookError(f"{self.name}: no MyST notebook: {error}") from None
        notebook.metadata.pop("bnbook", None)
        notebook.metadata.pop("jupytext", None)
        notebook.metadata["kernelspec"] = {
            "name": "python3",
            "display_name": "Python 3",
            "language": "python",
        }
        for number, cell in enumerate(notebook.cells):
            cell["id"] = f"cell-{number}"  # jupytext's are random, and the evidence should not be
        return notebook

    @cached_property
    def code_cells(self) -> list[str]:
        """Sources of the code cells but the parameters cell; BnbookError where one is no Python."""
        cells = [cell for cell in self.notebook.cells if cell.cell_type == "code" and not is_parameters(cell)]
        for number, cell in enumerate(cells, start=1):
            try:
                ast.parse(cell.source)
            except SyntaxError as error:
                where = f"code cell {number} behind the parameters, line {error.lineno}"
                raise BnbookError(f"{self.name}: {where}: {error.msg}: {error.text or ''}") from None
        return [cell.source for cell in cells]

    @property
    def defaults(self) -> dict[str, Any]:
        """The parameters cell: names and smoke values."""
        return self._declared[0]

    @property
    def kinds(self) -> dict[str, Kind]:
        """What each parameter may be."""
        return self._declared[1]

    @cached_property
    def _declared(self) -> tuple[dict[str, Any], dict[str, Kind]]:
        cells = [cell for cell in self.notebook.cells if cell.cell_type == "code" and is_parameters(cell)]
        if len(cells) != 1:
            raise BnbookError(f"{self.name}: {len(cells)} cells tagged `parameters`; expected exactly one")
        values, kinds = parameter_cell.read_cell(cells[0].source, self.name)
        for name in ("profile", "seeds"):
            if name not in values:
                raise BnbookError(f"{self.name}: its parameters cell lacks {name!r}; add it")
        return values, kinds

    def has(self, profile: str) -> bool:
        """Whether the chapter runs at a profile."""
        return profile not in OPTIONAL or profile in self.profiles

    def parameters(self, profile: str) -> dict[str, Any]:
        """All parameters at a profile."""
        if profile not in PROFILES:
            raise BnbookError(f"unknown profile {profile!r}; expected one of {', '.join(PROFILES)}")
        if not self.has(profile):
            known = ", ".join(each for each in PROFILES if self.has(each))
            raise BnbookError(f"{self.name} has no {profile} profile; it has: {known}")
        changes = self.profiles.get(profile, {}) | {"profile": profile}
        return parameter_cell.override(self.defaults, changes, self.name, self.kinds)

    def changed(self, profile: str, changes: dict[str, Any]) -> dict[str, Any]:
        """Changes to the parameters at a profile, each read as what it has to be; BnbookError before anything runs."""
        if "profile" in changes:
            raise BnbookError("profile is not set with --set; use --profile")
        values = parameter_cell.override(self.parameters(profile), changes, self.name, self.kinds)
        for name in changes if profile != "smoke" else ():
            if any(str(each).endswith("-standin") for each in (values[name] if isinstance(values[name], list) else [values[name]])):
                raise BnbookError(
                    f"{self.name}: parameter {name} is {values[name]!r}, generated stand-ins; the {profile} profile needs "
                    f"real data, such as {self.parameters(profile)[name]!r}"
                )
        return {name: values[name] for name in changes}


def is_parameters(cell: Any) -> bool:
    return "parameters" in cell.metadata.get("tags", [])


def discover() -> list[Chapter]:
    """Every chapter of the book, in the order of `_toc.yml`."""
    book = paths.book_folder()
    return [read(book / f"{name}.md", name) for name in contents.chapter_names()]


def read(path: Path, name: str) -> Chapter:
    """One chapter from its file; BnbookError when its front matter is not a chapter's."""
    lines = read_text(path, f"{name}: its file").split("\n")
    if lines[0] != "---" or "---" not in lines[1:]:
        raise BnbookError(f"{name}: no front matter; see CONTRIBUTING.md for the chapter template")
    front = parse_yaml("\n".join(lines[: lines.index("---", 1)]), f"{name}: its front matter")
    about = front.get("bnbook") if isinstance(front, dict) else None
    if not isinstance(about, dict) or not isinstance(about.get("title"), str):
        raise BnbookError(
            f"{name}: its front matter lacks `bnbook: title:`; see CONTRIBUTING.md for the template"
        )
    unknown = set(about) - {"title", "exact", "data", "profiles", "settings"}
    if unknown:
        raise BnbookError(
            f"{name}: unknown front matter {sorted(unknown)}; expected title, exact, data, profiles, settings"
        )
    exact, families = about.get("exact", False), about.get("data") or []
    families = [] if families in ("none", ["none"]) else families
    if not isinstance(exact, bool):
        raise BnbookError(f"{name}: its front matter has exact {exact!r}; expected true or false")
    if not isinstance(families, list) or not all(isinstance(each, str) for each in families):
        raise BnbookError(f"{name}: its front matter has data {families!r}; expected a list, such as [mnist]")
    values = settings.by_profile(name, path, about, PROFILES)
    own = about.get("profiles") or {}
    return Chapter(
        name=name,
        path=path,
        title=about["title"],
        exact=exact,
        data=tuple(families),
        profiles={each: values[each] for each in PROFILES if each not in OPTIONAL or each in own},
    )


def select(names: list[str]) -> list[Chapter]:
    """The chapters named (`part/chapter`, or just `chapter` where that is unambiguous); BnbookError lists the
    known."""
    known = {chapter.name: chapter for chapter in discover()}
    chosen = []
    for name in names:
        clean = name.removeprefix("book/").removesuffix(".md")
        matches = (
            [known[clean]] if clean in known else [c for n, c in known.items() if n.split("/")[-1] == clean]
        )
        if len(matches) != 1:
            near = difflib.get_close_matches(clean, known, n=1, cutoff=0.5)
            hint = f"did you mean {near[0]}? " if near else ""
            raise BnbookError(f"no chapter {name!r}; {hint}the chapters are: {', '.join(known)}")
        chosen.append(matches[0])
    return chosen
