"""Drawings in fewer letters show the same picture."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from bnbook.pipeline.compact import compact

EXECUTED = Path(__file__).parents[1] / "executed/laptop"
SVG = "{http://www.w3.org/2000/svg}"


def points(path: str) -> list[tuple[str, float, float]]:
    """Command and absolute place, of paths of straight lines."""
    found, at, start, command = [], (0.0, 0.0), (0.0, 0.0), ""
    words = re.findall(r"[MLlz]|-?(?:\d+\.?\d*|\.\d+)", path)
    while words:
        if words[0] in "MLlz":
            command = words.pop(0)
        if command == "z":
            found.append(("z", *start))
            at = start
            continue
        x, y = float(words.pop(0)), float(words.pop(0))
        at = (at[0] + x, at[1] + y) if command == "l" else (x, y)
        if command == "M":
            start = at
        found.append(("M" if command == "M" else "L", *at))
        command = "L" if command == "M" else command
    return found


def marks(root: ElementTree.Element) -> list[tuple[str, str, str, str]]:
    """Each mark with its place and the style that it has from itself or from its group."""
    groups = {child: group for group in root.iter() for child in group}
    return [
        (
            *(each.get(name, "") for name in ("{http://www.w3.org/1999/xlink}href", "x", "y")),
            each.get("style") or groups[each].get("style") or "",
        )
        for each in root.iter(f"{SVG}use")
    ]


@pytest.mark.parametrize("name", ["theory/minima.figures/plane", "mean-field/fisher.figures/figure-one"])
def test_the_picture_is_the_same_and_smaller(name):
    svg = (EXECUTED / f"{name}.svg").read_text(encoding="utf-8")
    small = compact(svg)
    before, after = ElementTree.fromstring(svg), ElementTree.fromstring(small)
    assert len(small) < 0.9 * len(svg) and compact(small) == small
    assert marks(before) == marks(after) != []
    assert [each.tag for each in before.iter()] == [each.tag for each in after.iter()]
    straight = 0
    for one, other in zip(before.iter(f"{SVG}path"), after.iter(f"{SVG}path")):
        if not one.get("d"):  # the blank of a font
            assert not other.get("d")
        elif set(re.findall("[A-Za-z]", one.get("d"))) <= set("MLz"):
            straight += 1
            was, now = points(one.get("d")), points(other.get("d"))
            assert [each[0] for each in was] == [each[0] for each in now]
            assert all(abs(a - b) < 0.0051 for x, y in zip(was, now) for a, b in zip(x[1:], y[1:]))
        else:
            assert one.get("d").split() == other.get("d").split()
    assert straight > 20


def test_rounding_does_not_add_up():
    drawn = f'<path d="M 0 0 {" ".join(f"L {0.004 * k:.3f} 1" for k in range(1, 501))}"/>'
    assert points(re.search('d="([^"]*)"', compact(drawn))[1])[-1][1] == pytest.approx(2.0, abs=0.0051)


def test_marks_of_two_styles_keep_their_own():
    two = '<g><use href="#a" style="fill: red"/><use href="#a" style="fill: blue"/></g>'
    assert compact(two) == two
