"""The squares of the first page: large enough for a finger, their symbols dark enough to read."""

from __future__ import annotations

import re

import pytest
from conftest import ROOT

from bookpress.pipeline import inks

CSS = (ROOT / "book" / "_static" / "book.css").read_text(encoding="utf-8")
KINDS = ("true", "false", "part", "open", "own")
BLOCKS = {"light": r"^html \{(.*?)\}", "dark": r'^html\[data-theme="dark"\] \{(.*?)\}'}


def rule(selector: str, named: str) -> str:
    """What a property of that selector is, in the last rule that has it."""
    found = [
        each[1]
        for body in re.findall(rf"^{re.escape(selector)} \{{(.*?)\}}", CSS, re.M | re.S)
        for each in re.finditer(rf"(?:^|[;\s]){named}: ([^;]+);", body)
    ]
    return found[-1]


def mixed(said: str, known: dict[str, str]) -> str:
    """color-mix(in srgb, var(--a) 20%, var(--b)) as a hexadecimal colour."""
    first, share, second = re.fullmatch(
        r"color-mix\(in srgb, var\(--([\w-]+)\) (\d+)%, var\(--([\w-]+)\)\)", said
    ).groups()
    a, b = ([int(known[name][i : i + 2], 16) for i in (1, 3, 5)] for name in (first, second))
    return "#" + "".join(
        f"{round((int(share) * x + (100 - int(share)) * y) / 100):02x}" for x, y in zip(a, b)
    )


def test_a_square_is_as_large_as_a_finger_needs():
    """WCAG 2.5.8."""
    assert (
        min(int(rule(".squares a, .square", side).removesuffix("px")) for side in ("width", "height")) >= 24
    )


@pytest.mark.parametrize("theme", BLOCKS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_symbol_stands_out_from_its_square(theme, kind):
    known = dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", re.search(BLOCKS[theme], CSS, re.M | re.S)[1]))
    known |= {"ink": known[f"ink-{kind}"], "ground": known[f"ground-{kind}"]}
    symbol, ground = (mixed(rule(".squares a, .square", each), known) for each in ("color", "background"))
    assert inks.contrast(symbol, ground) >= 4.5
