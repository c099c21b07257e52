"""The notation: its page, and in other pages a small box with the meaning at the first place of each symbol.

The box is plain HTML and CSS: it opens where a pointer rests, a finger taps or the keyboard arrives.
"""

from __future__ import annotations

import html
import re

from bookpress import paths
from bookpress.schema import Entry, Text, model, read_list, require_once
from bookpress.texts import read_yaml

PIECE = re.compile(
    r'<span class="math[^"]*">\\\((?P<tex>[^<]*)\\\)</span>'
    r'|<code class="docutils[^"]*"><span class="pre">(?P<code>[^<]*)</span></code>'
    r"|<(?P<end>/?)(?P<tag>[a-zA-Z0-9]+)[^>]*>|(?P<text>[^<]+)|<"
)
#: In these nothing is marked: links, titles, code, drawings, and tables, which scroll and would cut a box.
CLOSED = set("a button summary h1 h2 h3 h4 h5 h6 pre code table svg script style dfn nav select form".split())
OPEN = {"p", "li", "dd"}
KINDS = ("symbol", "code", "words")


@model
class Notation(Entry):
    """A row of the notation."""

    meaning: Text
    symbol: tuple[str, ...] = ()  # TeX
    code: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    only: tuple[str, ...] | None = None  # folders or pages where a symbol means this; None: all

    def means(self, kind: str, page: str) -> bool:
        """Whether the names of that kind have this meaning on a page."""
        everywhere = kind != "symbol" or self.only is None
        return everywhere or f"{page}/".startswith(tuple(f"{one}/" for one in self.only))


def entries() -> list[Notation]:
    """The rows of book/notation.yml; PressError names one that is not as it should be."""
    path = paths.book_folder() / "notation.yml"
    rows = read_yaml(path, path.name) if path.is_file() else []
    found = read_list(Notation, rows, path.name, "row", key="meaning")
    names = [(kind, _key(kind, each)) for one in found for kind in KINDS for each in getattr(one, kind)]
    require_once((f"{kind} {name}" for kind, name in names), path.name, "the")
    return list(found)


def table() -> str:
    """The rows as a table in Markdown, in a box by which a phone sets each row by itself."""
    lines = [
        ":::{container} notation",
        "| symbol | in the code | in words | meaning |",
        "|:---|:---|:---|:---|",
    ]
    for one in entries():
        looks = {_look(each): each for each in reversed(one.symbol)}  # two spellings of one look stand once
        symbols = ", ".join(f"${each}$" for each in one.symbol if each in looks.values())
        code = ", ".join(f"`{each}`" for each in one.code)
        lines.append(f"| {symbols} | {code} | {', '.join(one.words)} | {one.meaning} |")
    return "\n".join([*lines, ":::"])


def marked(page: str, rows: list[Notation], name: str = "") -> str:
    """The page with a box at the first place of each in the running text of its article."""
    before, start, rest = page.partition("<article")
    article, end, after = rest.partition("</article>")
    left = {
        kind: {_key(kind, each): row for row in rows if row.means(kind, name) for each in getattr(row, kind)}
        for kind in KINDS
    }
    closed: list[str] = []
    inside: list[str] = []
    number = 0

    def box(kind: str, each: str, shown: str) -> str:
        """What is shown, in a box where its row has none of this kind on the page yet."""
        nonlocal number
        if (row := left[kind].get(_key(kind, each))) is None:
            return shown
        left[kind] = {key: other for key, other in left[kind].items() if other is not row}
        number += 1
        code = f" In the code: {', '.join(row.code)}." if row.code else ""
        said = html.escape(f"{row.meaning[0].upper()}{row.meaning[1:]}.{code}")
        return (
            f'<dfn class="term" tabindex="0" aria-describedby="term-{number}">{shown}'
            f'<span class="tip" role="tooltip" id="term-{number}">{said}</span></dfn>'
        )

    def one(piece: re.Match) -> str:
        if piece["tag"]:
            _follow(piece, closed, CLOSED)
            _follow(piece, inside, OPEN)
        elif not closed and inside:
            if piece["tex"] is not None:
                return box("symbol", html.unescape(piece["tex"]), piece[0])
            if piece["code"] is not None:
                return box("code", html.unescape(piece["code"]), piece[0])
            if left["words"]:
                listed = "|".join(re.escape(word) for word in sorted(left["words"], key=len, reverse=True))
                pattern = rf"(?<![\w-])(?:{listed})(?![\w-])".replace(r"\ ", r"\s+")
                return re.sub(pattern, lambda word: box("words", word[0], word[0]), piece[0], flags=re.I)
        return piece[0]

    return f"{before}{start}{PIECE.sub(one, article)}{end}{after}"


def _follow(piece: re.Match, stack: list[str], names: set[str]) -> None:
    """Which of these elements are open behind a tag."""
    tag = piece["tag"].lower()
    if tag not in names or piece[0].endswith("/>"):
        return
    if not piece["end"]:
        stack.append(tag)
    elif tag in stack:
        del stack[len(stack) - 1 - stack[::-1].index(tag) :]


def _look(symbol: str) -> str:
    """What two spellings in TeX share that look alike."""
    return re.sub(r"[{}\s]", "", symbol.replace(r"\text", r"\mathrm").replace(r"\widehat", r"\hat"))


def _key(kind: str, name: str) -> str:
    """A name as it is compared: spaces say nothing in TeX, nor do capitals in words."""
    return " ".join(name.lower().split()) if kind == "words" else re.sub(r"\s+", "", name)
