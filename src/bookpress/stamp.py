"""What a number rests on, as one hash: the definitions of the package that cells lead to, followed by name, with the
parameters and the data.

A definition counts by what it does: docstrings, comments, hints, the words of errors and layout are left out, and so
is the module that it lies in, so that moving is free; renaming is not (`same`). Names are followed without regard to
scopes: what only looks alike counts, too, for a stamp may be stale too often, never too seldom. Left out are parts
that pass numbers on (`Book.not_measuring`, the press but for the bands of figures) and functions that return a figure.
"""

from __future__ import annotations

import ast
import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from bookpress import paths
from bookpress.atomic import kept
from bookpress.book import PRESS, book, folders
from bookpress.errors import PressError
from bookpress.schema import read_table

#: Fields of a syntax tree that change no number or that one Python has and another has not.
UNREAD = ("ctx", "type_comment", "type_params", "returns", "lineno", "simple")
#: In a dataclass these hints decide what a field is.
TELLING_HINTS = ("ClassVar", "InitVar", "KW_ONLY")
WHOLE = "*"  # the name of all that a module has
ASSIGNS = (ast.Assign, ast.AnnAssign, ast.AugAssign)
IMPORTS = (ast.Import, ast.ImportFrom)
DEFINES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


class Place(NamedTuple):
    """A definition by its module and name; the module itself where `name` is empty."""

    module: str
    name: str


Mentions = list[tuple[str, Place]]  # names as written, and where each is defined
#: The bands of every figure: the press makes no number but these.
BANDS = Place(f"{PRESS}.intervals", "mean_and_interval")
CELLS = Place("", "")


@dataclass
class Module:
    """The top level of a source file: what each name is bound to, and what is done on import."""

    name: str
    package: str  # that relative imports start from
    path: Path | None = None
    defined: dict[str, list[ast.stmt]] = field(default_factory=dict)
    imports: dict[str, Place] = field(default_factory=dict)
    loose: list[ast.stmt] = field(default_factory=list)


def digest(value: Any) -> str:
    """SHA-256 of the canonical JSON of a value."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def data_digest(rows: Iterable[Mapping[str, Any]]) -> str:
    return digest(sorted(json.dumps(row, sort_keys=True) for row in rows))


def measures(module: str) -> bool:
    """Whether a change in a module can change a number."""
    package, _, inner = module.partition(".")
    if package == PRESS:
        return module == BANDS.module
    return not any(inner == other or inner.startswith(f"{other}.") for other in book().not_measuring)


# ---- A syntax tree without what makes no number ----------------------------------------------------------------------


class Reading:
    """A syntax tree as `text`, the same under every Python, with the `names` that stand in it, each with the attributes
    that are asked of it ("np", "linalg", "norm"), its imports and its strings."""

    def __init__(self, nodes: list[ast.stmt]) -> None:
        self.names, self.strings = set[tuple[str, ...]](), set[str]()
        self.imports = list[ast.Import | ast.ImportFrom]()
        self.text = self.of(nodes)

    def of(self, node: object, behind: tuple[str, ...] = ()) -> str:
        if isinstance(node, list):
            texts = [self.of(each) for each in node if not draws(each)]
            return f"[{','.join([text for text in texts if text])}]"
        if not isinstance(node, ast.AST):
            if isinstance(node, str):
                self.strings.add(node)
            return repr(node)
        kind = type(node)
        if kind is ast.Name:
            self.names.add((node.id, *behind))
            return node.id
        if kind is ast.Attribute:
            return f"{self.of(node.value, (node.attr, *behind))}.{node.attr}"
        if kind is ast.Constant:
            return self.of(node.value)
        if kind in IMPORTS:  # names stand for what they are bound to
            self.imports.append(node)
            return ""
        fields = ((name, self.part(node, kind, name)) for name in kind._fields if name not in UNREAD)
        return f"{kind.__name__}({','.join([f'{name}={self.of(each)}' for name, each in fields if each])})"

    def part(self, node: Any, kind: type, name: str) -> Any:
        """A field of a node as far as it can change a number; a false number is a Constant's and not met here."""
        value = getattr(node, name, None)
        if kind in DEFINES and name == "body":
            return value[1:] if _is_text(value[0]) else value
        if kind is ast.Raise:  # its words make no number
            return name == "exc" and (value.func if isinstance(value, ast.Call) else value)
        if kind is ast.arg and name != "arg" or kind is ast.Assert and name != "test":
            return None
        if kind is ast.AnnAssign and name == "annotation":
            return [word for word in TELLING_HINTS if word in ast.unparse(value)]
        if kind is ast.JoinedStr:  # 3.12 adds empty texts between the parts of an f-string
            return [each for each in value if getattr(each, "value", None) != ""]
        return value


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(getattr(node.value, "value", None), str)


def draws(node: object) -> bool:
    """Whether a statement only draws: a function that returns a figure, or `figure(NAME, draw)`."""
    if isinstance(node, ast.FunctionDef):
        return node.returns is not None and "Figure" in ast.unparse(node.returns)
    called = getattr(getattr(node, "value", None), "func", None) if isinstance(node, ast.Expr) else None
    return getattr(called, "attr", getattr(called, "id", "")) == "figure"


# ---- Code: the packages that a result may rest on, taken apart -------------------------------------------------------


class Code:
    """The book's package and the press in their folders, as they are or as a checkout of another commit has them."""

    def __init__(self, root: Path | None = None) -> None:
        self.folders = folders() if root is None else {name: root / name for name in (book().package, PRESS)}
        self.asked = set[str]()  # modules and files that were looked at since somebody emptied it
        self._made: dict[
            str | Place, tuple[Any, set[str]]
        ] = {}  # what is read once only, and what it asked for

    def read(self, path: Path) -> str:
        return path.read_text(encoding="utf-8")

    def module(self, name: str) -> Module | None:
        """A module of the packages, taken apart; None for any other name."""

        def make() -> Module | None:
            path = self.path(name)
            package = name if path and path.name == "__init__.py" else name.rpartition(".")[0]
            return path and self.take_apart(Module(name, package, path), self.read(path))

        return self._once(name, make, name)

    def _once(self, key: str | Place, make: Callable[[], Any], *asks: str) -> Any:
        """What `make` gives the first time; what it looks at counts as asked for each time."""
        if key not in self._made:
            outside, self.asked = self.asked, {*asks}
            self._made[key] = make(), self.asked
            self.asked = outside
        made, asked = self._made[key]
        self.asked |= asked
        return made

    def path(self, name: str) -> Path | None:
        """The file of a module, or that which a path names; None where there is none."""
        first, *rest = name.split(".")
        folder = self.folders[first].joinpath(*rest) if first in self.folders else None
        files = [folder / "__init__.py", folder.with_suffix(".py")] if folder else []
        files += [Path(name)] if Path(name).is_absolute() else []
        return next((path for path in files if path.is_file()), None)

    def content(self, name: str) -> str:
        """Hash of what a module or file holds, "" where there is none."""
        path = self.path(name)
        return hashlib.sha256(path.read_bytes()).hexdigest() if path else ""

    def take_apart(self, module: Module, source: str) -> Module:
        """What each name of a source text is bound to."""
        for top in ast.parse(source).body:
            assigns = isinstance(top, ASSIGNS) and not _patches(top)
            plain = assigns or isinstance(top, (*IMPORTS, *DEFINES))
            if idle(top):
                continue
            module.loose += [] if plain else [top]
            for node in _targets(top) if assigns else [top] if plain else ast.walk(top):
                if isinstance(node, IMPORTS):
                    module.imports |= self.imported(node, module.package)
                elif isinstance(node, DEFINES):
                    module.defined.setdefault(node.name, []).append(node)
                elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                    module.defined.setdefault(node.id, []).append(top)
        return module

    def imported(self, node: ast.Import | ast.ImportFrom, package: str = "") -> dict[str, Place]:
        """The names that an import binds."""
        if isinstance(node, ast.Import):
            first = [(each.name.split(".")[0], each) for each in node.names]
            return {
                each.asname or name: Place(each.name if each.asname else name, "") for name, each in first
            }
        above = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
        base = ".".join([*above, *filter(None, [node.module])])
        names = {each.asname or each.name: Place(base, each.name) for each in node.names if each.name != "*"}
        if len(names) < len(node.names) and (there := self.module(base)):
            names |= {name: Place(base, name) for name in (*there.defined, *there.imports)}
        return names

    def resolve(self, place: Place) -> Place:
        """Where a name is defined, followed through every module that only passes it on; of a part that does not
        measure the name that it is asked for by."""
        there = self.module(place.module)
        if there is None or not place.name or place.name in there.defined or not measures(place.module):
            return place
        if (further := there.imports.get(place.name, place)) != place:
            return self.resolve(further)
        if self.module(f"{place.module}.{place.name}"):
            return Place(f"{place.module}.{place.name}", "")
        return Place(place.module, "__getattr__") if "__getattr__" in there.defined else place

    def defines(self, place: Place) -> bool:
        """Whether there is what a name of the packages stands for; of another package that is not known."""
        there = self.module(place.module)
        return there is None or place.name in ("", WHOLE, *there.defined, *there.imports)

    def mentioned(self, read: Reading, module: Module) -> Mentions:
        """Every name of a tree that is defined at a top level, as written, with where that is; names of other
        packages as well."""
        inside = [self.imported(each, module.package) for each in read.imports]
        found = set[tuple[str, Place]]()
        for name, *behind in read.names:
            bound = [Place(module.name, name)] if name in module.defined else []
            for place in (*bound, *(each[name] for each in (module.imports, *inside) if name in each)):
                asked, place = list(behind), self.resolve(place)
                while asked and not place.name and self.module(place.module):
                    place = self.resolve(Place(place.module, asked.pop(0)))
                whole = not place.name and self.module(place.module)
                found.add((name, Place(place.module, WHOLE) if whole else place))
        return sorted(found)

    def definition(self, place: Place) -> tuple[str, Mentions]:
        """The text of a definition, or of what its module does on import, and what it mentions."""

        def make() -> tuple[str, Mentions]:
            module = self.module(place.module)
            read = Reading(module.defined.get(place.name, []) if place.name else module.loose)
            files = [str(module.path.parent / text) for text in sorted(read.strings) if text.endswith(".yml")]
            self.asked |= {*files}
            return read.text + "".join(map(self.content, files)), self.mentioned(read, module)

        return self._once(place, make)

    def trains(self) -> dict[Place, Place]:
        """Class of an arm -> the function that trains it: the press hands the one to the other, and does not
        measure."""
        there = self.module(book().trainings_module)
        nodes = there.defined.get("TRAINS", []) if there else []
        rows = [row for node in nodes for row in ast.literal_eval(node.value).items()]
        return {Place(*arm.split(":")): Place(*trainer.split(":")) for arm, trainer in rows}

    def closure(self, roots: Iterable[Place]) -> dict[Place, Mentions]:
        """All that measures of what the roots lead to -> what each mentions."""
        waiting, mentions, trains = list(map(self.resolve, roots)), dict[Place, Mentions](), self.trains()
        while waiting:
            place = waiting.pop()
            module = self.module(place.module) if measures(place.module) else None
            if module is None or place in mentions or any(map(draws, module.defined.get(place.name, []))):
                continue
            if place.name == WHOLE:
                mentions[place] = []
                named = (Place(place.module, name) for name in (*module.defined, *module.imports))
                waiting += map(self.resolve, named)
                continue
            more = [("trained by", self.resolve(trains[place]))] if place in trains else []
            mentions[place] = [*self.definition(place)[1], *more]
            waiting += [Place(place.module, "")] if module.loose else []
            waiting += [each for _, each in mentions[place]]
        return {place: mentions[place] for place in mentions if place.name != WHOLE}

    def texts(self, met: Mapping[Place, Mentions]) -> dict[Place, str]:
        """Each definition as text, with what its names are bound to: a definition of the package by its name, and by
        its module only where two that are met have one name or where it does not measure."""
        often = Counter(place.name for place in met)

        def called(place: Place) -> str:
            if place.name and self.module(place.module) and not measures(place.module):
                return f":{place.name}"
            return place.name if place in met and place.name and often[place.name] == 1 else ":".join(place)

        return {
            place: "\n".join([self.definition(place)[0], *(f"{name} {called(to)}" for name, to in bound)])
            for place, bound in met.items()
        }

    def of(self, cells: Sequence[str]) -> dict[Place, str]:
        """The cells of a chapter, `CELLS`, and all that they lead to, as texts."""
        nodes = [node for cell in cells for node in ast.parse(cell).body]
        read = Reading(nodes)
        mentions = self.mentioned(read, Module("", ""))
        self._made[CELLS] = (read.text, mentions), set()
        return self.texts(self.closure([*(to for _, to in mentions), BANDS]) | {CELLS: mentions})


def _targets(node: ast.stmt) -> list[ast.AST]:
    """All that stands to the left of an assignment."""
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    return [each for target in targets for each in ast.walk(target)]


def _patches(node: ast.stmt) -> bool:
    """Whether an assignment reaches into something else: an attribute or an entry."""
    reached = (each for each in _targets(node) if isinstance(each, ast.Attribute | ast.Subscript))
    return any(isinstance(each.ctx, ast.Store) for each in reached)


def idle(node: ast.stmt) -> bool:
    """Whether a statement does nothing on import: a text, a block for type checkers or for `python -m`."""
    if isinstance(node, ast.If):
        return ast.unparse(node.test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING", "__name__ == '__main__'")
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


# ---- Stamps: of a chapter, of a kind of training ---------------------------------------------------------------------


@cache
def here() -> Code:
    """The code of this checkout, read once; `forget` where it may have changed."""
    return Code()


def forget() -> None:
    here.cache_clear()
    content_here.cache_clear()


def of_chapter(
    cells: Sequence[str],
    parameters: Mapping[str, Any],
    data: Iterable[Mapping[str, Any]],
    code: Code | None = None,
) -> dict[str, str]:
    """The four hashes that decide freshness; cells: sources of the code cells without the parameters cell."""
    own, package = _of_cells(cells, code) if code else _kept(tuple(cells))
    return {"code": own, "package": package, "parameters": digest(parameters), "data": data_digest(data)}


def _of_cells(cells: Sequence[str], code: Code) -> tuple[str, str]:
    found = code.of(cells)
    return digest(found.pop(CELLS)), digest(sorted(found.values()))


def _kept(cells: tuple[str, ...]) -> tuple[str, str]:
    """The same by the code of this checkout; from before where all that was looked at then holds the same now."""
    code = here()

    def make() -> dict[str, Any]:
        code.asked = set()
        hashes = _of_cells(cells, code)
        return {"hashes": hashes, "of": {name: code.content(name) for name in sorted(code.asked)}}

    def fits(found: dict[str, Any]) -> bool:
        return all(content_here(name) == then for name, then in found["of"].items())

    rules = [Path(__file__).read_text(encoding="utf-8"), book().package, *book().not_measuring]
    said = json.dumps([cells, *rules, book().trainings_module])
    return tuple(kept(f"stamp of {digest(cells)}", said, make, fits)["hashes"])


@cache
def content_here(name: str) -> str:
    return here().content(name)


def definitions(cells: Sequence[str], code: Code | None = None) -> dict[str, str]:
    """All that cells lead to, "module:name" -> its text; the cells themselves as ":"."""
    return {":".join(place): text for place, text in (code or here()).of(cells).items()}


def code_of(names: Iterable[str], code: Code | None = None) -> str:
    """One hash of definitions of the package ("package.x:name") and of all that they lead to."""
    code = code or here()
    return digest(sorted(code.texts(code.closure(Place(*name.split(":")) for name in names)).values()))


# ---- Evidence from before: what its fingerprints are called now ------------------------------------------------------


def measure(fingerprint: Mapping[str, Any]) -> str:
    """What a run or a lock measures with, as far as code goes, as one short name."""
    return digest([fingerprint.get("code"), fingerprint.get("package")])[:16]


#: Beside the runs: the short name of a fingerprint from before -> code and package as they are hashed now.
FROM_BEFORE = "stamps.json"


def known(fingerprint: Mapping[str, str]) -> dict[str, str]:
    """A run's fingerprint, its hashes as they are taken now where they were taken in another way (scripts/stamps.py)."""
    return {**fingerprint, **_from_before(measure(fingerprint))}


def name_now(named: str) -> str:
    """The same of a short name, such as a lock keeps."""
    found = _from_before(named)
    return measure(found) if found else named


def _from_before(named: str) -> dict[str, str]:
    try:
        path = paths.executed_folder() / FROM_BEFORE
        return _table(path, path.stat().st_mtime_ns).get(named, {})
    except (FileNotFoundError, PressError):  # none, or no book around here
        return {}


@lru_cache(maxsize=4)
def _table(path: Path, _: int) -> dict[str, dict[str, str]]:
    return read_table(dict[str, dict[str, str]], path)
