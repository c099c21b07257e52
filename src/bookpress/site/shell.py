"""What stands around a page's text: the book's addresses, head and foot, and what is behind its figures."""

from __future__ import annotations

import html
import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlparse

import yaml

from bookpress import atomic, paths, results
from bookpress.book import command_name, repository, settings
from bookpress.pipeline import inks, pictures
from bookpress.pipeline.chapter_runs import Evidence
from bookpress.pipeline.inks import PALETTE
from bookpress.site import citing
from bookpress.site.verdicts import Markup, in_order, look, macro

#: Says that Sphinx was started by `build`.
MARK = "BNBOOK_STAGED"
#: What the extension is told of the pages: `titles`, by their names; `figures`, with what is behind each (`ways`).
TOLD = "site.json"


# ---- What the site knows of the place where its code lives: one setting, `repository: url:` of _config.yml ---------


def book_title() -> str:
    """The book's title (`title:`)."""
    return str(settings().get("title") or "")


def address(file: str) -> str:
    """Where a file of the site is published (`html: baseurl:`), or nothing."""
    base = str((settings().get("html") or {}).get("baseurl") or "")
    return base and f"{base.rstrip('/')}/{file}"


def binder() -> str:
    """Where the chapters open on Binder, a sentence with a link; nothing while there is no address."""
    link = f"https://mybinder.org/v2/git/{quote(repository(), safe='')}/main?urlpath=lab/tree/lab"
    said = f"Nothing to install: [all chapters as notebooks on Binder]({link}), which starts slowly."
    return said if repository() else ""


def clone() -> str:
    """How to get the code, for the page that says how to run it."""
    known = f"```sh\ngit clone {repository()}\n```\n\nThen, in its folder:"
    return known if repository() else "Get the book's repository, and in its folder:"


def configuration() -> str:
    """jupyter-book's configuration with the authors that are cited, without the repository: the theme's links lead to
    notebooks that it does not have, `foot` leads to the text."""
    content = settings()
    content.pop("repository", None)
    content.pop("citation", None)
    if who := citing.authors():
        content["author"] = ", ".join(who)
    return yaml.safe_dump(content, allow_unicode=True, sort_keys=False)


# ---- At the foot of each page: the repository, the file to edit, where to report an error; from one setting --------

BRANCH = "main"
#: Part of a host's name ("": any other) -> how to edit a file, and open an issue.
HOSTS = {
    "gitlab": ("/-/edit/{branch}/{file}", "/-/issues/new?issue[title]={title}"),
    "github": ("/edit/{branch}/{file}", "/issues/new?title={title}"),
    "": ("/_edit/{branch}/{file}", "/issues/new?title={title}"),
}


def foot(name: str, heading: str, commit: str, day: str) -> Markup:
    """At the foot of the page of a name (PART/CHAPTER): how to cite it, and the links where the repository has an address;
    `day` is that of the commit, YYYY-MM-DD, for a book that names none; both empty where they are not known."""
    said = citing.citation(heading, name, address(f"{name}.html"), commit, day)
    return said + nav(repository(), name) if repository() else said


def nav(repository: str, page: str) -> Markup:
    """The links of a page, named without .html."""
    host = urlparse(repository).hostname or ""
    edit, issue = next(found for name, found in HOSTS.items() if name in host)
    listed = {"Repository": repository}
    if file := source(page):
        listed["Edit this page"] = repository + edit.format(branch=BRANCH, file=quote(file))
    listed["Report an error"] = repository + issue.format(title=quote(f"{page}: ", safe=""))
    return macro("foot.html.j2", "links")(listed)


def source(page: str) -> str:
    """The file that a page is made from, in the repository; nothing where it is made from several."""
    files = (f"book/{page}{end}" for end in (".md", ".yml"))
    return next((file for file in files if (paths.repository_root() / file).is_file()), "")


# ---- What other sites show of a page: a description, and a picture of its title and its verdicts ---------------------

LONGEST_DESCRIPTION = 200
SIZE = (1200, 630)
INKS = {"true": PALETTE["corrected"][0], "part": PALETTE["part"][0], "own": "#5b45a8"}
INKS |= dict.fromkeys(("false", "mended"), PALETTE["wrong"][0])
ICON = "_static/favicon.svg"


def root(page: str) -> str:
    """The way from a page to the site's first folder."""
    return "../" * page.count("/")


def with_head(text: str, name: str, title: str, owner: str) -> str:
    """The page of a name with its title, its first paragraph, the picture of `owner` and the book's icon in its head; where
    there is no icon it says so, and no browser asks for one."""
    icon = root(name) + ICON if (paths.book_folder() / ICON).is_file() else "data:,"
    tags = macro("foot.html.j2", "tags")(title, description(text), picture_of(owner, name), icon)
    return text.replace("</title>", f"</title>\n{tags}", 1)


def draw_previews(titles: Mapping[str, str], rows: Iterable[dict[str, Any]], images: Path) -> None:
    """A PNG of 1200 by 630 pixels for each page of these titles: its title, and a square in the colour of its verdict
    for each claim; on the first page of all."""
    from matplotlib import font_manager
    from PIL import Image, ImageDraw, ImageFont

    font = font_manager.findfont("DejaVu Sans")
    large, small = (ImageFont.truetype(font, size) for size in (64, 30))
    rows = in_order(rows)
    for name, title in titles.items():
        picture = Image.new("RGB", SIZE, "white")
        draw, own = ImageDraw.Draw(picture), [row for row in rows if name in ("index", row["chapter"])]
        for number, text in enumerate(textwrap.wrap(title, 26)[:3]):
            draw.text((80, 80 + 80 * number), text, PALETTE["text"][0], large)
        room = ((side, (SIZE[0] - 160) // (side + 6), (550 - 350) // (side + 6)) for side in range(44, 0, -1))
        side, across = next((side, across) for side, across, down in room if len(own) <= across * down)
        for number, row in enumerate(own):
            x, y = 80 + (number % across) * (side + 6), 350 + (number // across) * (side + 6)
            ink = INKS.get(look(row["verdict"])[0], PALETTE["printed"][0])
            draw.rounded_rectangle((x, y, x + side, y + side), 6, ink)
        words = f"{len(own)} claims and questions, a test for each" if own else book_title()
        draw.text((80, 560), words, PALETTE["printed"][0], small)
        picture.quantize(64).save(images / preview(name), optimize=True)


def preview(name: str) -> str:
    """File name of the picture of a page."""
    return f"preview-{name.replace('/', '-')}.png"


def picture_of(owner: str, page: str) -> str:
    """Where that of `owner` lies, as a page's head says it: its whole address where the site has one, for what shows a
    preview resolves no other."""
    file = f"_images/{preview(owner)}"
    return address(file) or root(page) + file


def description(page: str) -> str:
    """The first paragraph of a page that is not about its run, without marks, cut at a word."""
    article = re.sub(r'<div class="run-stamp.*?</div>', "", page.partition("<article")[2], flags=re.S)
    for match in re.finditer(r"<p>(.*?)</p>", article, flags=re.S):
        text = " ".join(html.unescape(re.sub(r"<[^>]+>|\\[()]", "", match[1])).split())
        if len(text) > 40:
            start = text[:LONGEST_DESCRIPTION]
            return text if text == start else start.rpartition(" ")[0] + " …"
    return ""


# ---- Under each figure: Data (what it draws, as CSV) and Run (the command that repeats it) ------------------------------


def ways(runs: Iterable[Evidence], folder: Path) -> Iterator[tuple[str, tuple[str, str, str]]]:
    """PART/CHAPTER/FIGURE, and where its data lie, what they are, and the command; the data are put into the folder of the
    pages, data/PART/CHAPTER/FIGURE.csv, or the chapter's where it is not known what a figure draws."""
    for run in runs:
        name, own = run.chapter.name, run.results
        for figure in pictures.shown(run.chapter):
            drawn = (folder / f"{name}.figures" / f"{figure}.svg").read_text(encoding="utf-8")
            _, reads = inks.told(drawn)
            address = f"data/{name}/{figure}.csv" if reads else f"data/{name}.csv"
            says = "what the figure draws" if reads else "every recorded result of the chapter"
            entries = {each: own.entries[each] for each in own if not reads or each in reads}
            atomic.write_text(folder / address, results.as_csv(replace(own, entries=entries)))
            command = f"{command_name()} run {name} --profile {run.profile} --compare"
            yield f"{name}/{figure}", (address, says, command)
