"""A chapter and a run of it: its text and settings, the files of a run, the verdicts that it gives."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import BeforeValidator

from bookpress import paths
from bookpress.atomic import kept
from bookpress.book import book, chapter_names
from bookpress.errors import PressError, did_you_mean
from bookpress.parameters import Kind, checked, kind, like
from bookpress.profiles import OPTIONAL, PROFILES
from bookpress.schema import Entry, Text, Truth, model, valid
from bookpress.stamp import DEFINES, IMPORTS
from bookpress.texts import parse_yaml, read_text, read_yaml

# ---- The parameters of a chapter, read from its own `parameters` cell, and what a command changes of them ----------

#: Characters of a parameter file; YAML is read slowly, and a chapter has some tens of parameters.
LARGEST = 64 << 10


def read_cell(source: str, chapter: str) -> tuple[dict[str, Any], dict[str, Kind]]:
    """The names and literal defaults that a parameters cell assigns, and what each may be."""
    values: dict[str, Any] = {}
    kinds: dict[str, Kind] = {}
    bare: list[str] = []
    try:
        nodes = ast.parse(source).body
    except (SyntaxError, ValueError) as error:  # ValueError: a null byte, before Python 3.12
        where = f"line {getattr(error, 'lineno', 1)} of its parameters cell"
        raise PressError(f"{chapter}: {where}: {getattr(error, 'msg', error)}") from None
    for node in nodes:
        try:
            name = _target(node).id
            values[name] = ast.literal_eval(node.value)
        except (ValueError, TypeError, AttributeError):
            words = "is not `name: kind = literal`; move other code to the next cell"
            raise PressError(f"{chapter}: line {node.lineno} of its parameters cell {words}") from None
        hint = getattr(node, "annotation", None)
        bare += [name] * (hint is None)
        try:
            said = hint.value if isinstance(hint, ast.Constant) else ast.unparse(hint) if hint else None
            kinds[name] = kind(said) if said else like(values[name])
        except PressError as error:
            raise PressError(f"{chapter}: parameter {name}: {error}") from None
    if bare and len(bare) < len(nodes):
        said = f"{bare[0]}: {kinds[bare[0]].text} = {values[bare[0]]!r}"
        words = f"parameter {bare[0]} has no kind, though others have one; expected `{said}`"
        raise PressError(f"{chapter}: {words}")
    return values, kinds


def with_values(source: str, values: Mapping[str, Any], beside: Mapping[str, Any] | None = None) -> str:
    """The source of a parameters cell that assigns these values in place of its own; `beside`: the book's, said
    in the comment where they differ."""
    lines = source.split("\n")
    for node in reversed(ast.parse(source).body):
        target = _target(node)
        first, last, place = node.lineno - 1, node.end_lineno - 1, node.value
        own = ast.literal_eval(place)
        value, said = values.get(target.id, own), (beside or {}).get(target.id, own)
        comment = lines[last].encode()[place.end_col_offset :].decode()
        if beside and said != value and target.id != "profile":
            comment = "  # " + "; ".join(filter(None, (f"the book's run: {said!r}", comment.strip(" #"))))
        start = lines[place.lineno - 1].encode()[: place.col_offset].decode()
        lines[first : last + 1] = [f"{start}{_literal(value)}{comment}"]
    return "\n".join(lines)


def parse_assignments(pairs: list[str]) -> dict[str, str]:
    """`["lr=1e-3"]` -> `{"lr": "1e-3"}`, the `--set` options of the command line."""
    changes: dict[str, str] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name.strip():
            raise PressError(
                f"--set {pair!r} is not of the form name=value; write for example --set steps=100"
            )
        changes[name.strip()] = value.strip()
    return changes


def read_file(path: str) -> dict[str, Any]:
    """The parameters of a `--params` YAML file."""
    where = f"--params {path}"
    try:
        Path(path).stat()
        text = read_text(Path(path), where, LARGEST + 1)  # what is no file may have no end
    except OSError as error:
        why = (error.strerror or "cannot be read").lower()
        raise PressError(f"{where}: {why}; expected a YAML file of name: value lines") from None
    if len(text) > LARGEST:
        raise PressError(f"{where} has more than {LARGEST >> 10} KiB; expected some lines of name: value")
    content = parse_yaml(text, where)
    if not isinstance(content, dict) or not all(isinstance(name, str) for name in content):
        raise PressError(f"{where} holds no parameters; expected name: value lines")
    return content


def _target(node: Any) -> Any:
    """The one name that a line assigns to."""
    (target,) = [node.target] if isinstance(node, ast.AnnAssign) else node.targets
    return target


def _literal(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_literal, value))}]"
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else repr(value)


# ---- The settings of a chapter at each profile: its own, those of all evidence, and those that it shares -----------

#: In place of a profile: every profile whose runs are evidence, that is all but smoke.
EVIDENCE = "evidence"

Layer = dict[Literal[*PROFILES, EVIDENCE], dict[str, Any] | None]  # profile -> settings


def _families(value: Any) -> Any:
    return () if value in ("none", ["none"]) else value


@model
class Front(Entry):
    """What the front matter of a chapter says of it, under the name of the book's package."""

    title: Text
    exact: Truth = False
    data: Annotated[tuple[str, ...], BeforeValidator(_families)] = ()
    profiles: Layer | None = None  # its own settings
    #: File beside it -> groups of it, each again settings by profile.
    settings: dict[str, list[str]] | None = None


def by_profile(chapter: str, path: Path, front: Front) -> dict[str, dict[str, Any]]:
    """Profile -> settings of a chapter; path: its file. PressError, one line, for an unknown file or group, what is no
    `Layer`, and a setting that is given twice."""
    layers: list[tuple[str, Layer]] = [("its header", front.profiles or {})]
    for file, groups in (front.settings or {}).items():
        if not (path.parent / file).is_file():
            raise PressError(f"{chapter}: no settings file {file}; expected it beside the chapter")
        where = f"{chapter}: {file}"
        content = valid(dict[str, Any], read_yaml(path.parent / file, where), where)
        for group in groups:
            if group not in content:
                raise PressError(f"{where} has no group {group!r}; it has: {', '.join(content)}")
            layers.append((f"{file}, {group}", valid(Layer, content[group] or {}, f"{where}, {group}")))
    settings: dict[str, dict[str, Any]] = {profile: {} for profile in PROFILES}
    for profile, found in settings.items():
        given: dict[str, str] = {}
        for file, layer in layers:
            for part in (EVIDENCE, profile) if profile != "smoke" else (profile,):
                for name, value in (layer.get(part) or {}).items():
                    if name in given:
                        words = f"is given twice, in {given[name]} and in {file} ({part}); expected it once"
                        raise PressError(f"{chapter}: {name} at profile {profile} {words}")
                    found[name], given[name] = value, f"{file} ({part})"
    return settings


# ---- The chapters: MyST text in book/PART/chapter.md, read as notebooks --------------------------------------------


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
        import nbformat

        return nbformat.from_dict(self._plain)

    @cached_property
    def code_cells(self) -> list[str]:
        """Sources of the code cells but the parameters cell; PressError where one is no Python."""
        return self._sources(parameters=False)

    @cached_property
    def _plain(self) -> dict[str, Any]:
        """The notebook in plain types; kept by the text, for to read that takes long."""
        key = f"{version('jupytext')} {book().package} {self.text}"
        return kept(f"notebook of {self.name}", key, self._read)

    def _read(self) -> dict[str, Any]:
        notebook = read_myst(self.text, self.name)
        for name in (book().package, "jupytext"):
            notebook.metadata.pop(name, None)
        kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
        notebook.metadata["kernelspec"] = kernel
        for number, cell in enumerate(notebook.cells):
            cell["id"] = f"cell-{number}"  # jupytext's are random, and the evidence should not be
        code = [each for each in notebook.cells if each.cell_type == "code" and not is_parameters(each)]
        for number, cell in enumerate(code, start=1):
            try:
                ast.parse(cell.source)
            except SyntaxError as error:
                where = f"code cell {number} behind the parameters, line {error.lineno}"
                raise PressError(f"{self.name}: {where}: {error.msg}: {error.text or ''}") from None
        return notebook

    def _sources(self, *, parameters: bool) -> list[str]:
        code = (each for each in self._plain["cells"] if each["cell_type"] == "code")
        return [each["source"] for each in code if is_parameters(each) == parameters]

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
        cells = self._sources(parameters=True)
        if len(cells) != 1:
            raise PressError(f"{self.name}: {len(cells)} cells tagged `parameters`; expected exactly one")
        values, kinds = read_cell(cells[0], self.name)
        for name in ("profile", "seeds"):
            if name not in values:
                raise PressError(f"{self.name}: its parameters cell lacks {name!r}; add it")
        return values, kinds

    def has(self, profile: str) -> bool:
        """Whether the chapter runs at a profile."""
        return profile not in OPTIONAL or profile in self.profiles

    def parameters(self, profile: str) -> dict[str, Any]:
        """All parameters at a profile."""
        if profile not in PROFILES:
            raise PressError(f"unknown profile {profile!r}; expected one of {', '.join(PROFILES)}")
        if not self.has(profile):
            known = ", ".join(each for each in PROFILES if self.has(each))
            raise PressError(f"{self.name} has no {profile} profile; it has: {known}")
        changes = self.profiles.get(profile, {}) | {"profile": profile}
        return checked(self.kinds, {**self.defaults, **changes}, self.name)

    def changed(self, profile: str, changes: dict[str, Any]) -> dict[str, Any]:
        """Changes to the parameters at a profile, each read as what it has to be; PressError before anything runs."""
        if "profile" in changes:
            raise PressError("profile is not set with --set; use --profile")
        own = self.parameters(profile)
        values = checked(self.kinds, {**own, **changes}, self.name)
        for name in changes:
            said = f"{self.name}: parameter {name} is {values[name]!r}"
            for each in values[name] if isinstance(values[name], list) else [values[name]]:
                if str(each).endswith("-standin"):
                    if profile != "smoke":
                        words = f"generated stand-ins; the {profile} profile needs real data, such as {own[name]!r}"
                        raise PressError(f"{said}, {words}")
                elif str(each).removesuffix("-auto") in book().data_names and not each.startswith(self.data):
                    declared = ", ".join(self.data) or "none"
                    raise PressError(f"{said}; expected of what the chapter is made for: {declared}")
        return {name: values[name] for name in changes}


def read_myst(text: str, file: str) -> Any:
    """A MyST text as a notebook; PressError for what is none."""
    import jupytext
    from jupytext.myst import MystMetadataParsingError
    from nbformat import ValidationError

    if line := _boxed(text):
        words = "which jupytext cuts in two and the site does not run; end the box before it"
        raise PressError(f"{file}, line {line}: a code cell inside a box of colons, {words}")
    try:
        return jupytext.reads(text, fmt="md:myst")
    except ValidationError as error:
        known = f"{error.instance!r}, expected {error.validator_value}"
        words = f"tags are a list: write :tags: [{error.instance}]"
        raise PressError(f"{file}: a cell has {known}; {words}") from None
    except (ValueError, yaml.YAMLError, MystMetadataParsingError) as error:
        raise PressError(f"{file}: no MyST notebook: {' '.join(str(error).split())}") from None


def _boxed(text: str) -> int:
    """The line of the first code cell inside a fence of colons, 0 where there is none."""
    boxes, block = 0, ""
    for number, line in enumerate(text.split("\n"), start=1):
        marks = re.match("`{3,}|~{3,}|:{3,}|", line)[0]
        rest = line[len(marks) :].strip()
        if not marks or block:
            block = "" if marks.startswith(block) and not rest else block
        elif rest.startswith("{code-cell}") and (boxes or marks[0] == ":"):
            return number
        elif marks[0] == ":":
            boxes = boxes + 1 if rest else max(0, boxes - 1)
        else:
            block = marks
    return 0


def is_parameters(cell: Any) -> bool:
    return "parameters" in cell["metadata"].get("tags", [])


def only_defines(cell: Any) -> bool:
    """Whether a code cell holds imports, functions and classes alone: it prints nothing, in any run."""
    try:
        body = ast.parse(cell["source"]).body
    except SyntaxError:
        return False
    return bool(body) and all(isinstance(each, (*IMPORTS, *DEFINES)) for each in body)


def discover() -> list[Chapter]:
    """Every chapter of the book, in the order of `_toc.yml`."""
    folder = paths.book_folder()
    return [read(folder / f"{name}.md", name) for name in chapter_names()]


def read(path: Path, name: str) -> Chapter:
    """One chapter from its file; PressError when its front matter is not a chapter's."""
    lines = read_text(path, f"{name}: its file").split("\n")
    if lines[0] != "---" or "---" not in lines[1:]:
        raise PressError(f"{name}: no front matter; see CONTRIBUTING.md for the chapter template")
    front = parse_yaml("\n".join(lines[: lines.index("---", 1)]), f"{name}: its front matter")
    own, package = (front if isinstance(front, dict) else {}), book().package
    where = f"{name}: `{package}:` in its front matter (CONTRIBUTING.md has a template)"
    about = valid(Front, own.get(package) or {}, where)
    here = {*PROFILES} - {*OPTIONAL} | {*(about.profiles or {})}
    values = {each: found for each, found in by_profile(name, path, about).items() if each in here}
    return Chapter(name, path, about.title, about.exact, about.data, values)


def select(names: list[str]) -> list[Chapter]:
    """The chapters named (`part/chapter`, or just `chapter` where that is unambiguous); PressError lists the
    known."""
    known = {chapter.name: chapter for chapter in discover()}
    chosen = []
    for name in names:
        clean = name.removeprefix("book/").removesuffix(".md")
        of_name = [chapter for known_as, chapter in known.items() if known_as.split("/")[-1] == clean]
        matches = [known[clean]] if clean in known else of_name
        if len(matches) != 1:
            hint = did_you_mean(clean, known, 0.5)
            raise PressError(f"no chapter {name!r}; {hint}the chapters are: {', '.join(known)}")
        chosen += matches
    return chosen
