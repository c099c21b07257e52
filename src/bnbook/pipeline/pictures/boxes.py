"""Rectangles in a drawing, and about where a line of text stands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

#: In hundredths of a font's size: how wide a letter is where the next one does not tell, how high a line.
LETTER, LINE = 62.0, 75.0


@dataclass(frozen=True)
class Box:
    """A rectangle in points: left, top, right, bottom."""

    left: float
    top: float
    right: float
    bottom: float

    def with_(self, other: Box) -> Box:
        return Box(
            min(self.left, other.left),
            min(self.top, other.top),
            max(self.right, other.right),
            max(self.bottom, other.bottom),
        )

    def moved(self, x: float, y: float, scale: float = 1.0) -> Box:
        return Box(*(scale * edge + by for edge, by in zip(self.edges(), (x, y, x, y))))

    def wider(self, by: float) -> Box:
        return Box(self.left - by, self.top - by, self.right + by, self.bottom + by)

    def edges(self) -> tuple[float, float, float, float]:
        return self.left, self.top, self.right, self.bottom


def of_line(x: float, y: float, unit: float, offsets: Sequence[float], angle: float) -> Box:
    """Of a line of text that begins at (x, y), from where its letters stand on it; upright at 90 degrees."""
    long, high = unit * (max(offsets, default=0.0) + LETTER), unit * LINE
    if abs(angle) == 90:
        return Box(x - high, y - long, x + 0.2 * high, y)
    return Box(x, y - high, x + long, y + 0.2 * high)
