"""The page of public names, made from their signatures and docstrings."""

from __future__ import annotations

import importlib
import inspect
import re
from typing import Any

from bookpress.book import book
from bookpress.claims.words import scripts

LONGEST = 84  # of a signature in one line


def names() -> str:
    """One section a module, one entry a name: signature and docstring."""
    lines = []
    for module, listed in book().public.items():
        room = importlib.import_module(module)
        lines += [f"## `{module}`", "", _escaped(inspect.getdoc(room) or "").partition("\n\n")[0], ""]
        for name in listed:
            lines += _entry(f"{module}.{name}", getattr(room, name))
    return "\n".join(lines)


def _entry(name: str, item: Any) -> list[str]:
    short = name.rpartition(".")[2]
    try:
        signature = str(inspect.signature(item))
    except (TypeError, ValueError):
        signature = "(…)"
    signature = re.sub(
        r"(: |-> )(['\"])(.*?)\2(?=[,)=\s]|$)", r"\1\3", signature
    )  # hints without their quotes
    signature = re.sub(r"<[^>]*>", "…", signature)
    if len(name + signature) > LONGEST:  # a parameter a line
        inside, _, given = signature[1:].rpartition(")")
        listed = re.split(r", (?![^\[(]*[\])])", inside)
        signature = "(\n" + "".join(f"    {each},\n" for each in listed) + f"){given}"
    text = _escaped(inspect.getdoc(item) or "")
    return [f"### {short}", "", f"```python\n{name}{signature}\n```", "", text, ""]


def _escaped(text: str) -> str:
    """A docstring as Markdown: its words are no markup but for *one*, W_i and h^{l-1}; its paragraphs and
    lists stay."""
    lines = []
    for line in text.splitlines():
        indent = len(line) - len(line.lstrip())
        if indent >= 4 and lines and not lines[-1].strip():
            line = line.strip()  # an example or a continued list, not a block of code
        parts = re.split(r"(`[^`]*`|\b[A-Za-z][A-Za-z0-9]*_[A-Za-z]{2,}\w*)", line)  # code and its names
        line = "".join(
            part if number % 2 else scripts(part.replace("->", "→")) for number, part in enumerate(parts)
        )
        lines.append(re.sub(r"`[^`]*`|</?su[bp]>|\*\w+\*|[*_<>$\[\]{}|#]", _mark, line))
    return "\n".join(lines)


def _mark(match: re.Match) -> str:
    """A sign that Markdown would take for its own; code and the few marks stay."""
    return match[0] if len(match[0]) > 1 else f"\\{match[0]}"
