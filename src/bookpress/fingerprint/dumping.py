"""A syntax tree as text: what can change a number, and nothing else.

A definition's own name, comments, docstrings, layout, what type hints say (whether an assignment has one
counts) and the words of errors are left out; every name stands for what it is bound to.
"""

from __future__ import annotations

import ast
import hashlib

from bookpress.fingerprint.names import COMPREHENSIONS, Scope, bound_in, without_docstring
from bookpress.fingerprint.sources import Binding, Module, Outside, Sources, Whole, read_import

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
UNREAD = ("ctx", "kind", "type_comment", "type_params", "returns", "lineno")
#: In a dataclass these hints decide what a field is.
TELLING_HINTS = ("ClassVar", "InitVar", "KW_ONLY")

Scopes = tuple[tuple[bool, Scope], ...]  # innermost last: whether it is a class, and its names


class Writer:
    """Writes statements down; what a name stands for (`follow`) and what an import runs is a subclass's to
    say."""

    sources: Sources

    def follow(self, binding: Binding) -> str:
        """What a name is replaced by."""
        raise NotImplementedError

    def note_import(self, module: Module) -> None:
        """A module that runs because of what is written."""
        raise NotImplementedError

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
