"""A drawing of Matplotlib's in fewer letters: every figure is several files of the site."""

from __future__ import annotations

import itertools
import re
import string
from collections import Counter
from collections.abc import Iterator

REMARK = re.compile(r"<!--.*?-->", re.S)
PATH = re.compile(r'(<path[^>]*? d=")([^"]*)')
GROUP = re.compile(r"<g((?: clip-path=\"[^\"]*\")?)>((?:<use [^>]*/>){2,})</g>")
STYLE = re.compile(r' style="[^"]*"')
NAME, NAMED = re.compile(r' id="([^"]*)"'), re.compile(r'(\bhref="#|url\(#)([^")]+)')
#: A path's commands -> how many points each takes.
PAIRS = {"M": 1, "L": 1, "Q": 2, "C": 3}


def compact(svg: str) -> str:
    """The same picture to a hundredth of a point: paths in steps from point to point, a style that all marks
    of a group share stated once, no name that nothing calls and short ones for the rest, no remarks, no
    indents."""
    svg = PATH.sub(lambda match: match[1] + _steps(match[2]), REMARK.sub("", svg))
    svg = _short_names(re.sub(r">\s+<", "><", svg))
    return GROUP.sub(_share_style, svg).replace("xlink:href=", "href=")


def _short_names(svg: str) -> str:
    called = Counter(name for _, name in NAMED.findall(svg))  # what is called most has the shortest name
    short = {name: letters for (name, _), letters in zip(called.most_common(), _letters())}
    svg = NAME.sub(lambda match: f' id="{short[match[1]]}"' if match[1] in short else "", svg)
    return NAMED.sub(lambda match: match[1] + short[match[2]], svg)


def _letters() -> Iterator[str]:
    """a, b, ..., Z, aa, ab, ..."""
    for length in itertools.count(1):
        yield from map("".join, itertools.product(string.ascii_letters, repeat=length))


def _share_style(match: re.Match) -> str:
    clip, marks = match.groups()
    styles = STYLE.findall(marks)
    if len(set(styles)) != 1 or len(styles) != marks.count("<use "):
        return match[0]
    return f"<g{clip}{styles[0]}>{STYLE.sub('', marks)}</g>"


def _steps(path: str) -> str:
    """Lines and curves in relative coordinates; what is short already as it is."""
    words = path.split()
    if not words or set(re.findall(r"[A-Za-z]\S*", path)) - {"z", *PAIRS}:
        return path
    said, at, start, k, command, last = [], (0.0, 0.0), (0.0, 0.0), 0, "", ""
    while k < len(words):
        if words[k] == "z":
            said.append("z")
            at, k, last = start, k + 1, "z"
            continue
        if words[k] in PAIRS:
            command, k = words[k], k + 1
        ends = [(float(words[k + j]), float(words[k + j + 1])) for j in range(0, 2 * PAIRS[command], 2)]
        k += 2 * len(ends)
        if command == "M":
            at = start = round(ends[0][0], 2), round(ends[0][1], 2)
            said.append(f"M{_short(at[0])} {_short(at[1])}")
            last = command
            continue
        # From where the steps so far have led, so that rounding does not add up.
        steps = [(round(x - at[0], 2), round(y - at[1], 2)) for x, y in ends]
        letter = " " if command == last else command.lower()
        said.append(f"{letter}{' '.join(map(_short, itertools.chain(*steps)))}")
        at, last = (at[0] + steps[-1][0], at[1] + steps[-1][1]), command
    return "".join(said).replace(" -", "-")


def _short(number: float) -> str:
    """0.50 -> ".5", -0.00 -> "0"."""
    text = f"{number:.2f}".rstrip("0").rstrip(".")
    return "0" if text in ("-0", "") else re.sub(r"^(-?)0\.", r"\1.", text)
