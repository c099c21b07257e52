"""What each draw of a claim gave by itself, as a table of its page."""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import Any

from bnbook.site import chips

HEADS = ("published run of", "seeds", "on", "by itself", "found", "counts")


def table(row: dict[str, Any], drawn: Sequence[dict[str, Any]]) -> str:
    """A line for each draw (`Drawn.as_data`), the last run below, then all that count together; nothing where
    there is but one draw."""
    if not drawn:
        return ""
    lines = [
        _line(one["date"], _seeds(one["seeds"]), one["device"], one, one["left_out"] or "yes")
        for one in drawn
    ]
    lines.append(_line("<strong>together</strong>", f"n = {row['n']}", "", row, ""))
    heads = "".join(f"<th>{head}</th>" for head in HEADS)
    # By the keyboard, too, where it is wider than a phone: these pages are without the theme's script.
    frame = '<div class="pst-scrollable-table-container" tabindex="0">'
    note = "Each seed counts once, by the mean of its draws that count."
    return f'{frame}<table class="table"><tr>{heads}</tr>{"".join(lines)}</table></div><p>{note}</p>'


def _line(date: str, seeds: str, device: str, found: dict[str, Any], counts: str) -> str:
    effect = found["effect"]["words"] if found["effect"] else ""
    effect += f", 95 % interval {found['interval']['words']}" if found["interval"] else ""
    chip = chips.chip({"verdict": found["verdict"], "words": found["verdict"], "exploratory": ""}, link=False)
    cells = (date, seeds, html.escape(device), chip, html.escape(effect), html.escape(counts))
    return "<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>"


def _seeds(ranges: Sequence[Sequence[int]]) -> str:
    return ", ".join(str(low) if low == high else f"{low} to {high}" for low, high in ranges)
