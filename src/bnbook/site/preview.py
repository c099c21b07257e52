"""What other sites show of a page: a description, and a picture of its title and its verdicts."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from bnbook.pipeline.chapters.chapters import Chapter
from bnbook.pipeline.pictures.inks import PALETTE
from bnbook.site import chips

Row = dict[str, Any]
SIZE = (1200, 630)
LONGEST = 200
INKS = {
    "true": PALETTE["corrected"][0],
    "false": PALETTE["wrong"][0],
    "mended": PALETTE["wrong"][0],
    "part": PALETTE["part"][0],
    "open": "#a8adb4",
    "own": "#5b45a8",
}


def write(site: Path, chapters: Iterable[Chapter], rows: Iterable[Row], base: str = "") -> None:
    """A description and a picture for the first page and each chapter; base: the address of the site."""
    rows = list(rows)
    folder = site / "_images"
    listed = [("index", "Batch normalization, measured", rows)]
    listed += [(c.name, c.title, [row for row in rows if row["chapter"] == c.name]) for c in chapters]
    for name, title, own in listed:
        page = site / f"{name}.html"
        if not page.is_file():
            continue
        picture = f"preview-{name.replace('/', '-')}.png"
        card(title, own, folder / picture)
        root = "../" * name.count("/")
        address = f"{base.rstrip('/')}/_images/{picture}" if base else f"{root}_images/{picture}"
        text = page.read_text(encoding="utf-8")
        page.write_text(
            text.replace("</title>", f"</title>\n{tags(title, text, address)}", 1), encoding="utf-8"
        )


def tags(title: str, page: str, image: str) -> str:
    """The tags of a page's head."""
    said = html.escape(description(page))
    named = {
        "og:title": title,
        "og:description": html.unescape(said),
        "og:image": image,
        "og:type": "article",
    }
    lines = [f'<meta name="description" content="{said}">']
    lines += [f'<meta property="{key}" content="{html.escape(text)}">' for key, text in named.items()]
    return "\n".join([*lines, '<meta name="twitter:card" content="summary_large_image">'])


def description(page: str) -> str:
    """The first paragraph of a page that is not about its run, without marks, cut at a word."""
    article = page.partition("<article")[2]
    article = re.sub(r'<div class="run-stamp.*?</div>', "", article, flags=re.S)
    for match in re.finditer(r"<p>(.*?)</p>", article, flags=re.S):
        text = " ".join(html.unescape(re.sub(r"<[^>]+>|\\[()]", "", match[1])).split())
        if len(text) > 40:
            return text if len(text) <= LONGEST else text[:LONGEST].rpartition(" ")[0] + " …"
    return ""


def card(title: str, rows: Iterable[Row], path: Path) -> None:
    """A PNG of 1200 by 630 pixels: the title, and a square for each claim in the colour of its verdict."""
    from PIL import Image, ImageDraw

    picture = Image.new("RGB", SIZE, "white")
    draw, large, small = ImageDraw.Draw(picture), _font(64), _font(30)
    lines, line = [], ""
    for word in title.split():
        if line and draw.textlength(f"{line} {word}", large) > SIZE[0] - 160:
            lines, line = [*lines, line], word
        else:
            line = f"{line} {word}".strip()
    for number, text in enumerate([*lines, line][:3]):
        draw.text((80, 80 + 80 * number), text, PALETTE["text"][0], large)
    order = {verdict: place for place, verdict in enumerate(chips.ORDER)}
    ordered = sorted(rows, key=lambda row: order.get(row["verdict"], 99))
    side = 44 if len(ordered) < 60 else 22
    across = (SIZE[0] - 160) // (side + 6)
    for number, row in enumerate(ordered):
        x, y = 80 + (number % across) * (side + 6), 350 + (number // across) * (side + 6)
        draw.rounded_rectangle((x, y, x + side, y + side), 6, INKS[chips.look(row["verdict"])[0]])
    draw.text((80, 560), f"{len(ordered)} claims, each measured", PALETTE["printed"][0], small)
    picture.save(path, optimize=True)


def _font(size: int) -> Any:
    from matplotlib import font_manager
    from PIL import ImageFont

    return ImageFont.truetype(font_manager.findfont("DejaVu Sans"), size)
