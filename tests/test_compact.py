"""Drawings in fewer letters show the same picture."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from bookpress.pipeline.pictures import compact

EXECUTED = Path(__file__).parents[1] / "executed/laptop"
SVG = "{http://www.w3.org/2000/svg}"


PAIRS = {"M": 1, "L": 1, "Q": 2, "C": 3}


def points(path: str) -> list[tuple]:
    """Command and absolute places."""
    found, at, start, command = [], (0.0, 0.0), (0.0, 0.0), ""
    words = re.findall(r"[A-Za-z]|-?(?:\d+\.?\d*|\.\d+)", path)
    while words:
        if words[0].isalpha():
            command = words.pop(0)
        if command == "z":
            found.append(("z", *start))
            at = start
            continue
        ends = [(float(words.pop(0)), float(words.pop(0))) for _ in range(PAIRS[command.upper()])]
        if command.islower():
            ends = [(at[0] + x, at[1] + y) for x, y in ends]
        at = ends[-1]
        start = at if command == "M" else start
        found.append((command.upper(), *(number for end in ends for number in end)))
    return found


def marks(root: ElementTree.Element) -> list[tuple]:
    """Each mark with the outline that it calls, its place, and the style from itself or from its group."""
    named = {f"#{each.get('id')}": place for place, each in enumerate(root.iter()) if each.get("id")}
    groups = {child: group for group in root.iter() for child in group}
    return [
        (
            named[each.get("href") or each.get("{http://www.w3.org/1999/xlink}href")],
            *(each.get(name, "") for name in ("x", "y", "transform")),
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
    for one, other in zip(before.iter(f"{SVG}path"), after.iter(f"{SVG}path")):
        was, now = points(one.get("d") or ""), points(other.get("d") or "")
        assert [each[0] for each in was] == [each[0] for each in now]
        assert all(abs(a - b) < 0.0051 for x, y in zip(was, now) for a, b in zip(x[1:], y[1:]))


def test_rounding_does_not_add_up():
    drawn = f'<path d="M 0 0 {" ".join(f"L {0.004 * k:.3f} 1" for k in range(1, 501))}"/>'
    assert points(re.search('d="([^"]*)"', compact(drawn))[1])[-1][1] == pytest.approx(2.0, abs=0.0051)


def test_marks_of_two_styles_keep_their_own():
    two = '<g><use href="#a" style="fill: red"/><use href="#a" style="fill: blue"/></g>'
    assert compact(two) == two


def test_names_that_nothing_calls_go_and_the_others_are_short():
    svg = '<g id="text_1"><defs><path id="DejaVu-1" d="z"/><path id="DejaVu-2" d="z"/></defs>'
    svg += '<g clip-path="url(#p1)"><use href="#DejaVu-2"/><use href="#DejaVu-2"/><use href="#DejaVu-1"/></g>'
    svg += "</g>"
    assert compact(svg) == (
        '<g><defs><path id="c" d="z"/><path id="a" d="z"/></defs>'
        '<g clip-path="url(#b)"><use href="#a"/><use href="#a"/><use href="#c"/></g></g>'
    )
