"""All that a piece of code rests on, written down so that only what can change a number changes the text.

A definition's own name and module, comments, docstrings, layout, what type hints say and the words of errors
are left out; an assignment that gets its first hint is written otherwise, which costs a new run and hides
nothing. Every name stands for what it is bound to: a definition of the package by its number in the order of
the first mention, a name of another package by its full name. So moving, splitting and renaming changes
nothing, and binding a name to something else does.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping

from bookpress.fingerprint.dumping import Writer
from bookpress.fingerprint.names import patches
from bookpress.fingerprint.sources import Binding, Definition, Module, Outside, Sources, Whole, measures

BLANK = "\0"  # no text of a program has it: repr writes it out


class _Blank(Writer):
    """Writes down one definition with a blank for each number, and notes what goes there."""

    def __init__(self, sources: Sources) -> None:
        self.sources = sources
        self.bindings: list[Binding] = []
        self.imports: list[Module] = []

    def follow(self, binding: Binding) -> str:
        self.bindings.append(binding)
        return BLANK

    def note_import(self, module: Module) -> None:
        self.imports.append(module)


class Closure(Writer):
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
                text = self._written(binding, module)
                trainer = self.trains.get(f"{binding.module}:{binding.name}")
                if trainer:
                    text += f" trained by {self.follow(self.sources.resolve(*trainer.split(':')))}"
            self.texts[self.numbers[binding]] = text

    def _written(self, definition: Definition, module: Module) -> str:
        """The text of a definition; all but the numbers is the same in every closure and written once."""
        if definition not in self.sources.texts:
            blank = _Blank(self.sources)
            text = "".join(blank.dump(node, module, ()) for node in module.definitions[definition.name])
            self.sources.texts[definition] = (text.split(BLANK), blank.bindings, blank.imports)
        (first, *parts), bindings, imports = self.sources.texts[definition]
        for each in imports:
            self.note_import(each)
        return first + "".join(self.follow(each) + part for each, part in zip(bindings, parts, strict=True))

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
