"""A drawing of Matplotlib's in fewer letters: every figure is several files of the site (themes, columns)."""

from __future__ import annotations

import re

REMARK = re.compile(r"<!--.*?-->", re.S)
PATH = re.compile(r'(<path[^>]*? d=")([^"]*)')
GROUP = re.compile(r"<g((?: clip-path=\"[^\"]*\")?)>((?:<use [^>]*/>){2,})</g>")
STYLE = re.compile(r' style="[^"]*"')


def compact(svg: str) -> str:
    """The same picture to a hundredth of a point: lines in steps from point to point, a style that all marks
    of a group share stated once, no remarks, no indents."""
    svg = PATH.sub(lambda match: match[1] + _steps(match[2]), REMARK.sub("", svg))
    svg = re.sub(r">\s+<", "><", svg)
    return GROUP.sub(_share_style, svg)


def _share_style(match: re.Match) -> str:
    clip, marks = match.groups()
    styles = STYLE.findall(marks)
    if len(set(styles)) != 1 or len(styles) != marks.count("<use "):
        return match[0]
    return f"<g{clip}{styles[0]}>{STYLE.sub('', marks)}</g>"


def _steps(path: str) -> str:
    """Straight lines in relative coordinates; what has curves (a letter's outline) or is short already only
    without line ends."""
    words = path.split()
    if set(re.findall(r"[A-Za-z]\S*", path)) - set("MLz"):
        return " ".join(words)
    said, at, start, k = [], (0.0, 0.0), (0.0, 0.0), 0
    while k < len(words):
        if words[k] == "z":
            said.append("z")
            at, k = start, k + 1
            continue
        command = words[k] if words[k].isalpha() else "L"
        k += words[k].isalpha()
        x, y = float(words[k]), float(words[k + 1])
        k += 2
        if command == "M":
            said.append(f"M{_short(x)} {_short(y)}")
            at = start = round(x, 2), round(y, 2)
        else:  # from where the steps so far have led, so that rounding does not add up
            step = round(x - at[0], 2), round(y - at[1], 2)
            again = said[-1][0] not in "Mz"  # a command that repeats is not said again
            said.append(f"{' ' if again else 'l'}{_short(step[0])} {_short(step[1])}")
            at = at[0] + step[0], at[1] + step[1]
    return "".join(said).replace(" -", "-")


def _short(number: float) -> str:
    """0.50 -> ".5", -0.00 -> "0"."""
    text = f"{number:.2f}".rstrip("0").rstrip(".")
    return "0" if text in ("-0", "") else re.sub(r"^(-?)0\.", r"\1.", text)
