"""Tables of measured numbers: a `{measured}` block in a chapter's text becomes a Markdown table of tokens."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NoReturn

import yaml

from bnbook.errors import BnbookError
from bnbook.texts import parse_yaml

BLOCK = re.compile(r"^(?P<fence>`{3,}|:{3,})\{measured\}[ \t]*\n(?P<body>.*?)^(?P=fence)[ \t]*$", re.M | re.S)
# Tokens that take a format, and those that do not.
FORMATTED = ("mean", "median", "ci", "geo", "factor", "power", "share", "value", "effect")
PLAIN = ("n", "param", "verdict")
CELL = re.compile(
    rf"(?:(?P<verb>{'|'.join(FORMATTED + PLAIN)}):)?"
    r"(?P<what>(?:[a-z0-9/-]+#)?[A-Za-z][A-Za-z0-9_.-]*(?:\[-?\d+\])?)\s*(?:\|\s*(?P<format>[^\s|]+))?"
)
NAME = re.compile(r"\$[^$]*\$|(?<!\{)\{([a-z]\w*)\}(?!\})")  # {column}, not in a formula, no token's braces
KEYS = {"corner", "columns", "rows", "statistic", "format", "missing"}

Pairs = list[tuple[str, Any]]


def expand(text: str, page: str = "") -> str:
    """The text with every `{measured}` block replaced by a Markdown table whose cells are tokens.

    `columns` and `rows` give a title and a text each, as a mapping or, where a title comes twice, as a list
    of mappings. The text of a row with a name in braces is the cell of each column, `{column}` standing for
    the column's text; otherwise the column's text is, with `{row}`. Names with values may stand in place of
    the text that is put in: `{net: fc, arm: none}` for `{net}` and `{arm}`. A row may also be a list of its
    cells; a last one with a name in braces serves all further columns.

    A cell is a token without its braces (`geo:smoothness.batch | .3g`) or text, tokens among it. `statistic`
    and `format` are those of cells that name none; `corner` is the title of the first column; `missing` what
    stands where the run has no such result, but one whose name differs in a single part. BnbookError, one
    line that begins with the page, for a block that is none of this.
    """
    return BLOCK.sub(lambda match: _Table(match["body"], page).markdown(), text)


class _Table:
    """One block."""

    def __init__(self, body: str, page: str) -> None:
        self.where = (
            (f"page {page}: " if page else "")
            + "{measured} table "
            + repr(body.strip().partition("\n")[0][:60])
        )
        content = parse_yaml(body, self.where, _Strict)
        if not isinstance(content, dict) or set(content) - KEYS or not {"columns", "rows"} <= set(content):
            given = ", ".join(map(str, content)) if isinstance(content, dict) else "no keys"
            self._fail(f"has {given}", "columns and rows; optional corner, statistic, format, missing")
        self.columns, self.rows = (self._pairs(content[key], key) for key in ("columns", "rows"))
        self.statistic, self.format = content.get("statistic"), content.get("format", ".3g")
        self.corner = str(content.get("corner", ""))
        self.instead = f" or {content['missing']}" if "missing" in content else ""
        if self.statistic not in (None, *FORMATTED, *PLAIN):
            self._fail(f"has statistic {self.statistic!r}", f"one of {', '.join(FORMATTED + PLAIN)}")

    def markdown(self) -> str:
        lines = [[self.corner, *(title for title, _ in self.columns)], ["---"] * (len(self.columns) + 1)]
        for label, row in self.rows:
            self.where_row = f"row {label!r}"
            patterns = self._patterns(row)
            cells = [
                self._cell(pattern, row, column)
                for pattern, (_, column) in zip(patterns, self.columns, strict=True)
            ]
            lines.append([label, *cells])
        return "\n".join("| " + " | ".join(map(_escaped, line)).strip() + " |" for line in lines)

    def _patterns(self, row: Any) -> list[Any]:
        """What each column of a row is made from: the row's cells, the row's text or the columns' own."""
        if isinstance(row, list) and row:
            missing = len(self.columns) - len(row)
            if missing > 0 and _names(row[-1]):
                return row + row[-1:] * missing
            if missing:
                self._fail(f"{self.where_row} has {len(row)} cells", f"{len(self.columns)}, one a column")
            return row
        if isinstance(row, str) and _names(row):
            return [row] * len(self.columns)
        return [column for _, column in self.columns]

    def _cell(self, pattern: Any, row: Any, column: Any) -> str:
        own = isinstance(row, list) or isinstance(row, str) and _names(row)
        given = column if own else row
        values = given if isinstance(given, Mapping) else {"column" if own else "row": given}
        if isinstance(pattern, Mapping) or not own and not _names(pattern):
            self._fail(
                f"{self.where_row} has no cells", "a text with {column} there or with {row} in the columns"
            )

        def value(match: re.Match) -> str:
            if match[1] is None:
                return match[0]
            if match[1] not in values:
                self._fail(f"{self.where_row} asks for {match[0]}", f"one of {', '.join(map(str, values))}")
            return str(values[match[1]])

        text = NAME.sub(value, str(pattern))
        return self._token(text.strip(), default=not isinstance(row, list) or _names(pattern))

    def _token(self, text: str, default: bool) -> str:
        """A cell that names a result as its token, another as it is."""
        match = CELL.fullmatch(text)
        verb = match and (match["verb"] or (self.statistic if default else None))
        if not verb:
            if re.match(r"[a-z]+:[a-z]", text) or re.fullmatch(r"[a-z]\w*(\.\w+)+", text):
                self._fail(f"{self.where_row} has the cell {text!r}", f"{', '.join(FORMATTED + PLAIN)}:NAME")
            return text
        suffix = f" | {match['format'] or self.format}{self.instead}" if verb in FORMATTED else ""
        return f"{{{{ {verb}:{match['what']}{suffix} }}}}"

    def _pairs(self, content: Any, what: str) -> Pairs:
        """Title and text of each row or column."""
        listed = [content] if isinstance(content, dict) else content
        if not listed or not isinstance(listed, list) or not all(isinstance(one, dict) for one in listed):
            self._fail(f"has {what} {content!r}", "`title: text` lines")
        return [(str(title), text) for one in listed for title, text in one.items()]

    def _fail(self, wrong: str, expected: str) -> NoReturn:
        raise BnbookError(f"{self.where} {wrong}; expected {expected}")


def _names(pattern: Any) -> bool:
    """Whether a text has a name in braces."""
    return any(match[1] for match in NAME.finditer(str(pattern)))


def _escaped(cell: str) -> str:
    return re.sub(r"(?<!\\)\|", r"\\|", cell)


class _Strict(yaml.SafeLoader):
    """YAML whose texts are text (`.3f`, `1`, `none` stay what was written) and whose keys come once."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict:
        keys = [key.value for key, _ in node.value]
        for key in keys:
            if keys.count(key) > 1:
                raise yaml.constructor.ConstructorError(None, None, f"{key!r} comes twice: use a list", None)
        return super().construct_mapping(node, deep)


_Strict.yaml_implicit_resolvers = {}
