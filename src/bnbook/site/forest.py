"""A forest plot of one test as inline SVG: where it holds, its interval, a dot for each seed."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from bnbook.claims import Test
from bnbook.claims.judging import NOT_TESTED
from bnbook.claims.kinds import KINDS, edges

WIDTH, HEIGHT, PAD = 220.0, 34.0, 10.0
#: From this spread on factors are drawn on a logarithmic axis.
WIDE = 3.0


@dataclass(frozen=True)
class Scale:
    """Values to pixels."""

    low: float
    high: float
    log: bool

    def __call__(self, value: float) -> float:
        low, high, at = (math.log(each) if self.log else each for each in (self.low, self.high, value))
        share = (at - low) / (high - low) if high > low else 0.5
        return round(PAD + min(max(share, -0.04), 1.04) * (WIDTH - 2 * PAD), 1)


def deciding(row: dict[str, Any]) -> dict[str, Any] | None:
    """The test of a row that its effect and interval are of."""
    same = [
        test
        for test in row["tests"]
        if test["effect"] == row["effect"]
        and test["interval"] == row["interval"]
        and test["role"] != "corrected"
    ]
    return same[0] if same else None


def bounds(test: dict[str, Any]) -> tuple[float | None, float | None]:
    """Between which values a test holds; None: without end."""
    given = {key: tuple(value) if isinstance(value, list) else value for key, value in test["test"].items()}
    low, high = edges(Test(**given))
    return (low if math.isfinite(low) else None), (high if math.isfinite(high) else None)


def plot(test: dict[str, Any] | None) -> str:
    """The SVG, or nothing where there is nothing between two numbers to show."""
    if test is None or KINDS[test["test"]["kind"]].exact or test["effect"]["number"] is None:
        return ""
    ends_of_ground, effect, interval = bounds(test), test["effect"]["number"], test["interval"]
    ends = [interval["low"], interval["high"]] if interval else []
    # A sign test's interval is of the share of seeds, its values are not.
    dots = [value for value in test["values"] if value is not None and test["test"]["kind"] != "sign"]
    shown = [*ends, effect, *(edge for edge in ends_of_ground if edge is not None)]
    spread = sorted(dots)
    if len(spread) > 2:  # a seed that is far out does not squeeze all the others
        shown += [spread[0], spread[-1]] if spread[-1] - spread[0] < 8 * (max(shown) - min(shown)) else []
    else:
        shown += spread
    log = KINDS[test["test"]["kind"]].in_factors and min(shown) > 0 and max(shown) / min(shown) > WIDE
    low, high = min(shown), max(shown)
    room = 0.06 * (high - low) or abs(high) or 1.0
    scale = Scale(low, high, True) if log else Scale(low - room, high + room, False)
    counts = test["verdict"] != NOT_TESTED
    parts = [_ground(ends_of_ground, scale)] * counts
    parts += [f'<path class="edge" d="M{scale(edge)} 3V31"/>' for edge in ends_of_ground if edge is not None]
    for number, value in enumerate(dots):
        high_or_low = 11.5 + 11 * ((number * 0.618) % 1)  # dots do not hide each other
        parts.append(f'<circle class="dot" cx="{scale(value)}" cy="{high_or_low:.1f}" r="2.2"/>')
    if ends:
        parts.append(f'<path class="interval" d="M{scale(ends[0])} 17H{scale(ends[1])}"/>')
    parts.append(f'<path class="effect" d="M{scale(effect)} 11l4.5 6-4.5 6-4.5-6z"/>')
    state = {True: "true", False: "false", None: "open"}[test["holds"]] if counts else "untested"
    size = f'viewBox="0 0 {WIDTH:.0f} {HEIGHT:.0f}"'
    return f'<svg class="forest {state}" {size} aria-hidden="true">{"".join(parts)}</svg>'


def _ground(edges: tuple[float | None, float | None], scale: Scale) -> str:
    """Where the test holds."""
    left = 0.0 if edges[0] is None else scale(edges[0])
    right = WIDTH if edges[1] is None else scale(edges[1])
    return f'<path class="holds" d="M{left} 3H{right}V31H{left}z"/>'
