"""All that a piece of code rests on, written down so that only what can change a number changes the text.

A definition's own name and module, comments, docstrings, layout, what type hints say and the words of errors
are left out; an assignment that gets its first hint is written otherwise, which costs a new run and hides
nothing. Every name stands for what it is bound to: a definition of the package by its number in the order of
the first mention, a name of another package by its full name. So moving, splitting and renaming changes
nothing, and binding a name to something else does.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterable, Mapping

from bookpress.fingerprint.sources import (
    Binding,
    Definition,
    Module,
    Outside,
    Sources,
    Whole,
    measures,
    read_import,
)

Scope = dict[str, Binding | None]  # names of one function or class; None: bound there, to no import
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
UNREAD = ("ctx", "kind", "type_comment", "type_params", "returns", "lineno")
#: In a dataclass these hints decide what a field is.
TELLING_HINTS = ("ClassVar", "InitVar", "KW_ONLY")

Scopes = tuple[tuple[bool, Scope], ...]  # innermost last: whether it is a class, and its names


class Closure:
    """Reads code and numbers the definitions that it meets; `trains`: class -> function, as "module:name",
    that an instance of the class is handed to by a part of the package that does not measure."""

    def __init__(self, sources: Sources, trains: Mapping[str, str] | None = None) -> None:
        self.sources, self.trains = sources, trains or {}
        self.numbers: dict[Definition | Whole, int] = {}
        self.texts: list[str] = []
        self.modules: dict[str, None] = {}  # whatever is imported on the way, in order
        self._waiting: list[Definition | Whole] = []

    def read(self, nodes: Iterable[ast.stmt], module: Module) -> str:
        """The text of statements that belong to a module, and of all they rest on."""
        self.note_import(module)
        text = "".join(self.dump(node, module, ()) for node in nodes)
        self.finish()
        return text

    def follow(self, binding: Binding) -> str:
        """What a name is replaced by."""
        if isinstance(binding, Outside):
            return f"<{binding.name}>"
        if binding not in self.numbers:
            self.numbers[binding] = len(self.numbers)
            self.texts.append("")
            self._waiting.append(binding)
        return f"@{self.numbers[binding]}"

    def finish(self) -> None:
        """Write down every definition met so far, and those that they mention."""
        while self._waiting:
            binding = self._waiting.pop(0)
            module = self.sources.module(binding.module)
            self.note_import(module)
            if isinstance(binding, Whole):
                names = [*module.definitions, *module.imports]
                bound = (self.sources.resolve(binding.module, name) for name in dict.fromkeys(names))
                text = ",".join(self.follow(each) for each in bound if each != binding)
            else:
                nodes = module.definitions[binding.name]
                text = "".join(self.dump(node, module, ()) for node in nodes)
                trainer = self.trains.get(f"{binding.module}:{binding.name}")
                if trainer:
                    text += f" trained by {self.follow(self.sources.resolve(*trainer.split(':')))}"
            self.texts[self.numbers[binding]] = text

    def loose(self) -> list[str]:
        """The statements that run on import and define nothing, of every module imported on the way."""
        done: set[str] = set()
        found: list[str] = []
        while left := [name for name in self.modules if name not in done]:
            done.update(left)
            rows = [
                (self.sources.module(name), node) for name in left for node in self.sources.module(name).loose
            ]
            rows = [(module, node) for module, node in rows if measures(module.name) or patches(node)]
            rows.sort(key=lambda row: ast.dump(row[1]))
            found += [self.dump(node, module, ()) for module, node in rows]
            self.finish()
        return found

    def note_import(self, module: Module) -> None:
        """Note a module and all that it imports."""
        waiting = [module.name] if self.sources.path(module.name) else self.sources.imported(module)
        while waiting:
            name = waiting.pop()
            parents = [name.rsplit(".", k)[0] for k in range(name.count(".") + 1)]
            for each in parents:
                if each not in self.modules:
                    self.modules[each] = None
                    waiting += self.sources.imported(self.sources.module(each))

    # ---- Writing a syntax tree down

    def dump(self, node: object, module: Module, scopes: Scopes) -> str:
        """A syntax tree as text, the same under every Python; scopes: innermost last, (is a class, its
        names)."""
        if isinstance(node, list):
            texts = [self.dump(each, module, scopes) for each in node]
            return "[" + ",".join(text for text in texts if text) + "]"
        if not isinstance(node, ast.AST):
            return repr(node)
        if isinstance(node, ast.Import | ast.ImportFrom):
            return self._dump_import(node, module)
        if isinstance(node, ast.Name | ast.Attribute):
            text = self._dump_name(node, module, scopes)
            if text is not None:
                return text
        if isinstance(node, ast.Raise):  # its words make no number
            kind = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
            return f"raise {self.dump(kind, module, scopes)}"
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            return repr(node.value) + self._content(node.value, module)
        if isinstance(node, FUNCTIONS):
            return self._dump_function(node, module, scopes)
        if isinstance(node, ast.ClassDef):
            inner = (*scopes, (True, bound_in(node.body, module, self.sources)))
            outer = self.dump([*node.decorator_list, *node.bases, *node.keywords], module, scopes)
            own = "" if not scopes else node.name
            return f"class {own}{outer}{self.dump(without_docstring(node.body), module, inner)}"
        if isinstance(node, COMPREHENSIONS):
            first = self.dump(node.generators[0].iter, module, scopes)
            names = {
                n.id: None for g in node.generators for n in ast.walk(g.target) if isinstance(n, ast.Name)
            }
            return first + self._fields(node, module, (*scopes, (False, names)))
        if isinstance(node, ast.AnnAssign):
            hint = ast.unparse(node.annotation)
            telling = [word for word in TELLING_HINTS if word in hint]
            return "=".join(
                [*telling, *(self.dump(p, module, scopes) for p in (node.target, node.value) if p)]
            )
        return self._fields(node, module, scopes)

    def _fields(self, node: ast.AST, module: Module, scopes: Scopes) -> str:
        parts = [(name, value) for name, value in ast.iter_fields(node) if name not in UNREAD]
        if isinstance(node, ast.JoinedStr):  # 3.12 adds empty texts between the parts of an f-string
            parts = [("values", [part for part in node.values if getattr(part, "value", None) != ""])]
        if isinstance(node, ast.arg):
            parts = [("arg", node.arg)]
        if isinstance(node, ast.Assert):
            parts = [("test", node.test)]
        kept = ((name, value) for name, value in parts if value not in (None, []))
        inner = ",".join(f"{name}={self.dump(value, module, scopes)}" for name, value in kept)
        return f"{type(node).__name__}({inner})"

    def _dump_import(self, node: ast.Import | ast.ImportFrom, module: Module) -> str:
        """Nothing, for its names stand for what they are bound to; an import that is there for what it does
        counts."""
        inside = Module(module.name, module.package)
        read_import(node, inside)
        for name in self.sources.imported(inside):
            self.note_import(self.sources.module(name))
        kept = node in module.loose
        return ast.unparse(node) if kept else ""

    def _dump_name(self, node: ast.Name | ast.Attribute, module: Module, scopes: Scopes) -> str | None:
        """The binding of a name or of a dotted name; None where the first part is no name."""
        rest: list[str] = []
        while isinstance(node, ast.Attribute):
            rest.insert(0, node.attr)
            node = node.value
        if not isinstance(node, ast.Name):
            return None
        binding = self._lookup(node.id, module, scopes)
        if binding is None:
            return ".".join([node.id, *rest])
        while rest and isinstance(binding, Whole):
            binding = self.sources.resolve(binding.module, rest.pop(0))
        if isinstance(binding, Outside):
            return f"<{'.'.join([binding.name, *rest])}>"
        return ".".join([self.follow(binding), *rest])

    def _lookup(self, name: str, module: Module, scopes: Scopes) -> Binding | None:
        for place, (is_class, names) in enumerate(reversed(scopes)):
            if name in names and not (is_class and place):  # methods do not see the names of their class
                return names[name]
        if name in module.definitions:
            inside = bool(self.sources.path(module.name))  # a chapter's own names stand as they are
            return self.sources.resolve(module.name, name) if inside else None
        if name in module.imports:
            return self.sources.resolve(*module.imports[name])
        for star in module.stars:
            target = self.sources.module(star)
            if target and (name in target.definitions or name in target.imports):
                return self.sources.resolve(star, name)
        return None

    def _dump_function(self, node: ast.AST, module: Module, scopes: Scopes) -> str:
        outer = self.dump(getattr(node, "decorator_list", []), module, scopes)
        defaults = self.dump([node.args.defaults, node.args.kw_defaults], module, scopes)
        every = (
            *node.args.posonlyargs,
            *node.args.args,
            *node.args.kwonlyargs,
            node.args.vararg,
            node.args.kwarg,
        )
        body = [node.body] if isinstance(node, ast.Lambda) else without_docstring(node.body)
        names = bound_in(body, module, self.sources) | {arg.arg: None for arg in every if arg}
        kinds = "/".join(
            ",".join(arg.arg for arg in args) for args in (node.args.posonlyargs, node.args.args)
        )
        kinds += f"*{[arg.arg for arg in node.args.kwonlyargs]}"
        kinds += "".join(
            f"{star}{arg.arg}" for star, arg in (("*", node.args.vararg), ("**", node.args.kwarg)) if arg
        )
        own = getattr(node, "name", "") if scopes else ""
        text = self.dump(body, module, (*scopes, (False, names)))
        return f"{type(node).__name__} {own}{outer}({kinds}{defaults}){text}"

    def _content(self, text: str, module: Module) -> str:
        """The hash of a data file of the package, where the text is its name."""
        path = self.sources.path(module.name)
        if path is None or "/" in text or "." not in text or text.endswith(".py") or len(text) > 80:
            return ""
        file = path.parent / text
        return f"#{hashlib.sha256(file.read_bytes()).hexdigest()}" if file.is_file() else ""


# ---- Names inside a definition: which of them it binds itself; statements that reach into something else -----------


def bound_in(body: Iterable[ast.AST], module: Module, sources: Sources) -> Scope:
    """Names that a function or class body binds itself, those of imports with what they stand for."""
    names: Scope = {}
    declared: set[str] = set()
    waiting = list(body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Global | ast.Nonlocal):
            declared.update(node.names)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            inside = Module(module.name, module.package)
            read_import(node, inside)
            names |= {name: sources.resolve(*target) for name, target in inside.imports.items()}
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store | ast.Del):
            names.setdefault(node.id, None)
        elif isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar) and node.name:
            names[node.name] = None
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names[node.name] = None
            continue
        if isinstance(node, COMPREHENSIONS):  # only what is assigned by := leaves it
            waiting += [inner.target for inner in ast.walk(node) if isinstance(inner, ast.NamedExpr)]
        elif not isinstance(node, ast.Lambda):
            waiting += ast.iter_child_nodes(node)
    return {name: bound for name, bound in names.items() if name not in declared}


def without_docstring(body: list[ast.stmt]) -> list[ast.stmt]:
    first = body[0].value if body and isinstance(body[0], ast.Expr) else None
    return body[1:] if isinstance(first, ast.Constant) and isinstance(first.value, str) else body


def patches(node: ast.stmt) -> bool:
    """Whether a statement reaches into something else: an assignment to an attribute or entry, or setattr."""
    targets = [each for inner in ast.walk(node) for each in _targets(inner)]
    called = (inner.func for inner in ast.walk(node) if isinstance(inner, ast.Call))
    return any(isinstance(each, ast.Attribute | ast.Subscript) for each in targets) or any(
        isinstance(function, ast.Name) and function.id == "setattr" for function in called
    )


def _targets(node: ast.AST) -> list[ast.expr]:
    return (
        node.targets
        if isinstance(node, ast.Assign)
        else [node.target]
        if isinstance(node, ast.AugAssign)
        else []
    )
