"""How the book is cited: a sentence and BibTeX at the foot of each page, and CITATION.cff, all of `_config.yml`.

`python -m bookpress.site.citing` writes CITATION.cff anew.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from typing import Any

import yaml

from bookpress import atomic, paths
from bookpress.book import book, repository, settings
from bookpress.errors import PressError
from bookpress.exits import guarded
from bookpress.site.verdicts import Markup, macro

#: What LaTeX takes for its own.
SPECIAL = re.compile(r"[%&#_$]")
NAMES = "{name: …} of a group, {given-names: …, family-names: …} of a person"


def about() -> dict[str, Any]:
    """`citation:` of `_config.yml`, with `author:` where it names nobody; PressError where an author has no name."""
    own = settings()
    told = dict(own.get("citation") or {})
    named = [{"name": own["author"]}] if own.get("author") else []
    told["authors"] = told.get("authors") or named
    for author in told["authors"]:
        if not isinstance(author, Mapping) or not ("name" in author or "family-names" in author):
            raise PressError(f"_config.yml: citation: author {author!r} has no name; expected {NAMES}")
    return told


def title() -> str:
    """The book's title with its subtitle."""
    return ": ".join(filter(None, (str(settings().get("title") or ""), about().get("subtitle"))))


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
    """How to cite the page of a name (PART/CHAPTER), folded; `day` where `_config.yml` has none."""
    told, whole = about(), title()
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


def cff() -> str:
    """CITATION.cff; an address that is not set is left out."""
    told, own = about(), settings()
    lines = {
        "cff-version": "1.2.0",
        "message": "If you use this book or its code, please cite it as below.",
        "title": title(),
        "abstract": told.get("abstract"),
        "type": "software",
        **{name: told.get(name) for name in ("authors", "license", "keywords", "version", "date-released")},
        "repository-code": repository(),
        "url": (own.get("html") or {}).get("baseurl"),
    }
    kept = {name: value for name, value in lines.items() if value}
    return yaml.safe_dump(kept, allow_unicode=True, sort_keys=False, width=118)


def main(arguments: list[str]) -> int:
    """Write CITATION.cff."""
    if arguments:
        raise PressError("nothing may follow: python -m bookpress.site.citing")
    atomic.write_text(paths.repository_root() / "CITATION.cff", cff())
    return 0


if __name__ == "__main__":
    sys.exit(guarded(lambda: main(sys.argv[1:])))
