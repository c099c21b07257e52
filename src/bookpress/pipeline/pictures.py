"""Figures as the site shows them: inks of both themes, legible letters, panels apart on a phone."""

from __future__ import annotations

import html
import itertools
import re
import string
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from bookpress.pipeline import inks, phones
from bookpress.pipeline.phones import figure, panels, parsed

# ---- A drawing of Matplotlib's in fewer letters: every figure is several files of the site -------------------------

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


# ---- Figures in the site's pages: in the inks of either theme, and on a phone what can be read there ---------------

IMAGE = re.compile(
    r'<img (?P<before>[^>]*?)src="(?P<folder>[^"]*_images/)(?P<name>[^"/]+)\.svg"(?P<after>[^>]*?)/?>'
)
CAPTION = re.compile(
    r'class="plot stacks in-a-row"(?:(?!</figure>).)*?<span class="caption-text">.*?</figure>', re.S
)
#: Where columns stand in a row -> where they stand on a phone, of two and of more.
PLACES = {2: {"left": "above", "right": "below"}, 3: {"left": "first", "right": "last"}}
#: How the drawing for phones of a figure of one panel is called, which the book's own code draws.
PHONE = ".narrow.svg"
WIDE, LEAST = 358.0, 9.0  # of a phone's column, and of the smallest letters there, in pixels
NARROW = 180.0  # points; two such columns stand side by side
SCROLLING = 10.0  # pixels; letters of a figure that is wider than a phone and scrolls in its frame


@dataclass(frozen=True)
class Drawing:
    """Suffix of its file's name, width and height in points, and the size of its smallest letters."""

    suffix: str
    width: float
    height: float
    letters: float

    def can_be_read(self, shown: float = WIDE) -> bool:
        """Whether its letters are large enough where a phone shows it so many pixels wide."""
        return self.letters * shown / self.width >= LEAST


@dataclass(frozen=True)
class Picture:
    """A figure, and what a phone shows instead of it: legends that belong to all, then columns, or a narrow
    drawing."""

    whole: Drawing
    legends: tuple[Drawing, ...] = ()
    columns: tuple[Drawing, ...] = ()
    in_a_row: bool = False  # the columns are single panels that stand side by side

    def shown(self, column: Drawing) -> float:
        """Pixels of a phone's width that a column takes: half of them where several are narrow enough."""
        small = [each for each in self.columns if each.width < NARROW and each.can_be_read(WIDE / 2)]
        return WIDE / 2 if len(small) > 1 and column in small else WIDE

    def can_be_read(self) -> bool:
        return all(each.can_be_read(self.shown(each)) for each in self.columns) and all(
            each.can_be_read(self.share(each) * WIDE) for each in self.legends
        )

    def share(self, legend: Drawing) -> float:
        """Of a phone's width, for a legend with letters as large as the widest column's are."""
        widest = max(self.columns, key=lambda each: each.width)
        return min(1.0, legend.width * self.shown(widest) / WIDE / widest.width)


def pairs(folder: Path, pages: Path) -> dict[str, Picture]:
    """Give each figure NAME.svg of the book the inks of both themes, and write what a phone shows instead:
    the drawing for phones where `pages` have one, else a file for each column; name -> how it is shown."""
    found = {}
    for path in sorted(folder.glob("*.svg")):
        svg = path.read_text(encoding="utf-8")
        if "." in path.stem or not inks.is_ours(svg):
            continue
        chapter, _, figure = inks.figure_of(svg).rpartition("/")
        phone = pages / f"{chapter}.figures" / f"{figure}{PHONE}"
        if phone.is_file():
            narrow = phone.read_text(encoding="utf-8")
            files = {"": svg, ".narrow": narrow}
            found[path.stem] = Picture(_drawing("", svg), columns=(_drawing(".narrow", narrow),))
        else:
            found[path.stem], files = _taken_apart(svg)
        for suffix, drawing in files.items():
            shown = inks.for_both_themes(compact(drawing))
            path.with_suffix(f"{suffix}.svg").write_text(shown, encoding="utf-8")
    return found


def _taken_apart(svg: str) -> tuple[Picture, dict[str, str]]:
    """How a figure is shown, and its files by their suffix."""
    legends, columns = phones.parts(svg)
    named = {f".legend{k}": drawing for k, drawing in enumerate(legends, start=1)}
    numbered = {f".{k}": drawing for k, drawing in enumerate(columns, start=1)}
    picture = Picture(
        _drawing("", svg),
        tuple(_drawing(suffix, drawing) for suffix, drawing in named.items()),
        tuple(_drawing(suffix, drawing) for suffix, drawing in numbered.items()),
        len({round(panel.frame.top) for panel in panels(figure(parsed(svg)))}) == 1,
    )
    if picture.can_be_read():
        return picture, {"": svg} | named | numbered
    return Picture(picture.whole), {"": svg}


def _drawing(suffix: str, svg: str) -> Drawing:
    width, height = re.search(r'viewBox="\S+ \S+ ([\d.]+) ([\d.]+)"', svg).groups()
    return Drawing(suffix, float(width), float(height), phones.least(svg))


def in_both_themes(page: str, shown: Mapping[str, Picture]) -> str:
    """Each figure of a page once for each theme, the whole and, for phones, column by column; it links to its
    file, where a finger can enlarge it."""

    def one(match: re.Match) -> str:
        if match["name"] not in shown:
            return match[0]
        picture, alt = shown[match["name"]], re.search(r'alt="([^"]*)"', match[0])
        words = html.unescape(alt[1]) if alt else ""
        address = f"{match['folder']}{match['name']}"
        whole = picture.whole
        kind = "stacks" if picture.columns else "fits" if whole.can_be_read() else "scrolls"
        kind += " in-a-row" if picture.columns and picture.in_a_row else ""
        wide = SCROLLING * whole.width / whole.letters
        style = f' style="--wide: {wide:.0f}px"' if kind == "scrolls" else ""
        label = html.escape(f"Open this figure by itself: {words[:60]}")
        return (
            f'<a class="plot {kind}"{style} href="{address}.svg" title="{label}">'
            f'<span class="whole">{both(address, words, whole)}</span>'
            f"{_instead(address, words, picture)}</a>"
        )

    return CAPTION.sub(_with_places, IMAGE.sub(one, page))


def _with_places(match: re.Match) -> str:
    """A caption that says left and right says, on a phone, where that is instead; not where it speaks of
    rows."""
    picture, mark, caption = match[0].partition('<span class="caption-text">')
    columns = picture.count('class="column"')
    if columns < 2 or re.search(r"\b(above|below|upper|lower)\b", caption, re.I):
        return match[0]
    places = PLACES[min(columns, 3)]

    def both_words(side: re.Match) -> str:
        place = places[side[0].lower()]
        place = place.capitalize() if side[0].istitle() else place
        return f'<span class="on-desk">{side[0]}</span><span class="on-phone">{place}</span>'

    return (
        picture + mark + re.sub(rf"(?<!and )\b({'|'.join(places)})(?=[:,)])", both_words, caption, flags=re.I)
    )


def _instead(address: str, words: str, picture: Picture) -> str:
    """What stacks on a phone."""
    of = len(picture.columns)
    said = "" if of == 1 else "Column {} of {} of this figure: "
    parts = [
        f'<span class="legend" style="--share: {100 * picture.share(each):.0f}%">'
        f"{both(address, 'The legend of this figure.', each)}</span>"
        for each in picture.legends
    ] + [
        f'<span class="column{" narrow" if picture.shown(each) < WIDE else ""}">'
        f"{both(address, said.format(number, of) + words, each)}</span>"
        for number, each in enumerate(picture.columns, start=1)
    ]
    return f'<span class="columns">{"".join(parts)}</span>' if parts else ""


def both(address: str, words: str, drawing: Drawing) -> str:
    """An image for each theme of the drawing at this address, of which a page loads what it shows."""
    size = f'width="{drawing.width * 4 / 3:.0f}" height="{drawing.height * 4 / 3:.0f}"'
    said = f'<img alt="{html.escape(words)}" loading="lazy" {size} class="only-'
    address += drawing.suffix
    return f'{said}light" src="{address}.svg" />{said}dark" src="{address}.svg#{inks.DARK}" />'
