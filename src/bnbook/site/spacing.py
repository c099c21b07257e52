"""Where a line of a page may not break, and what stands together: numbers and their signs, folded cells."""

from __future__ import annotations

import re

#: Tags, and what is no running text.
ASIDE = re.compile(r"(<(script|style|pre|code|svg|textarea|title)\b.*?</\2>|<[^>]*>)", re.S)
FIXED = "\u00a0"
SIGN = r"=|≤|≥|±|≈|&lt;|&gt;"
JOINT = re.compile(
    r"\n</details>\n</div>\n"  # the end of a cell that shows nothing, and the start of another folded one
    r'<div class="cell [^"]*\btag_hide-input\b[^"]*">\n<details class="[^"]*\babove-input\b[^"]*">\n'
    r"<summary\b.*?</summary>\n",
    re.S,
)


def with_fixed_spaces(html: str) -> str:
    """The page with no break inside "95 %", "n = 20", "p < 0.05", "≤ 10⁻⁹"."""
    parts = ASIDE.split(html)  # text, what is aside, the name of its tag, text, …
    parts[::3] = map(_fixed, parts[::3])
    return "".join(part for number, part in enumerate(parts) if number % 3 != 2)


def _fixed(text: str) -> str:
    text = re.sub(r"(?<=\d)[ \n]%", f"{FIXED}%", text)
    text = re.sub(rf"\b([np])[ \n]({SIGN})[ \n](?=[−\d])", rf"\1{FIXED}\2{FIXED}", text)
    return re.sub(rf"({SIGN})[ \n](?=[−\d])", rf"\1{FIXED}", text)


def with_one_fold(html: str) -> str:
    """The page with neighbouring folded cells that show nothing between them under one bar."""
    return JOINT.sub("\n", html)
