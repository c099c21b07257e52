"""How the book is cited: a sentence and BibTeX at the foot of each page, of CITATION.cff (citation-file-format.github.io)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from bookpress import paths
from bookpress.book import book, repository, settings
from bookpress.errors import PressError
from bookpress.site.rendering import Markup, macro
from bookpress.texts import read_yaml

#: What LaTeX takes for its own.
SPECIAL = re.compile(r"[%&#_$]")
NAMES = "{name: …} of a group, {given-names: …, family-names: …} of a person"


def about() -> dict[str, Any]:
    """CITATION.cff; what it lacks, or a book without one, by `title:` and `author:` of `_config.yml`; PressError where an
    author has no name."""
    path, own = paths.repository_root() / "CITATION.cff", settings()
    named = [{"name": own["author"]}] if own.get("author") else []
    told = {"title": str(own.get("title") or ""), "authors": named}
    told |= (read_yaml(path, path.name) if path.is_file() else None) or {}
    for author in told["authors"]:
        if not isinstance(author, Mapping) or not ("name" in author or "family-names" in author):
            raise PressError(f"{path.name}: author {author!r} has no name; expected {NAMES}")
    return told


def authors() -> list[str]:
    """The authors as people write them."""
    named = (
        (each.get("given-names"), each.get("name") or each["family-names"]) for each in about()["authors"]
    )
    return [" ".join(filter(None, each)) for each in named]


def _of_bibtex(author: Mapping[str, str]) -> str:
    """A group is one name, of a person the family's comes first."""
    whole = ", ".join(filter(None, (author.get("family-names"), author.get("given-names"))))
    return _in_latex(f"{{{author['name']}}}" if "name" in author else whole)


def _in_latex(text: str) -> str:
    return SPECIAL.sub(r"\\\g<0>", text)


def citation(heading: str, name: str, address: str, commit: str, day: str) -> Markup:
    """How to cite the page of a name (PART/CHAPTER), folded; `day` where CITATION.cff has none."""
    told = about()
    whole = told["title"]
    who, version = " and ".join(authors()), told.get("version", "")
    day, there = str(told.get("date-released") or day), address or repository()
    inside = f"“{heading}”, in " if heading and heading not in (whole, settings().get("title")) else ""
    state = ", ".join([f"version {version}"] * bool(version) + [f"commit {commit[:10]}"] * bool(commit))
    said = ", ".join(filter(None, (f"{inside}{whole}", state, day)))
    opening = f"{who} ({day[:4]}): " if who and day else f"{who}: " if who else ""
    fields = {
        "author": " and ".join(map(_of_bibtex, told["authors"])),
        "title": "{" + _in_latex(heading or whole) + "}",
        "howpublished": _in_latex(", ".join(filter(None, (f"In: {whole}" if inside else "", state)))),
        "year": day[:4],
        "note": day,
        "url": there,
    }
    lines = ",\n".join(f'  {field} = "{value}"' for field, value in fields.items() if value)
    key = "-".join([book().package, *re.findall(r"[a-z0-9]+", name.lower())])
    return macro("foot.html.j2", "cite")(
        f"{opening}{said}." + f" {there}" * bool(there), f"@misc{{{key},\n{lines}\n}}"
    )
