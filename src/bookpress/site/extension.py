"""The one place where pages are changed: what the theme, jupyter-book and other extensions leave undone in them.

What stands in a page is changed by a transform of its document; what the theme's templates write around it, as each page
is rendered. What the book knows of its pages stands beside them in site.json, which `pages.stage` writes.
"""

from __future__ import annotations

import html
import json
import os
import posixpath
import re
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

from docutils import nodes
from markupsafe import Markup
from sphinx.transforms import SphinxTransform
from sphinx.transforms.post_transforms import SphinxPostTransform

from bookpress.book import book, command_name
from bookpress.errors import PressError
from bookpress.pipeline import gate, inks
from bookpress.pipeline.pictures import PHONE
from bookpress.site import shell
from bookpress.site.verdicts import macro

SAID = (
    "{name}: the pages in book/ get their numbers, figures and verdicts when they are staged; "
    "build the site with `{name} build` (or `make book`), not with jupyter-book alone"
)


def setup(app: Any) -> dict[str, bool]:
    """End with one line and exit code 2 where Sphinx was not started by `build`; else change the pages."""
    if shell.MARK not in os.environ:
        with suppress(PressError):  # which book, if any, is around here
            book()
        print(SAID.format(name=command_name()), file=sys.stderr)
        raise SystemExit(2)
    app.add_node(Drawing, html=(visit_drawing, None))
    for transform in (Drawings, Labels, Unbroken):
        app.add_transform(transform)
    app.add_post_transform(Cells)
    app.connect("config-inited", configure)
    app.connect("builder-inited", begin)
    app.connect("html-page-context", load_only_what_is_used, priority=900)
    for heard in app.events.listeners.values():  # unmaintained, always loaded, and it points to another host
        heard[:] = [each for each in heard if each.handler.__module__ != "sphinx_thebe"]
    return {"parallel_read_safe": True, "parallel_write_safe": True}


# ---- Figures: in the inks of either theme, on a phone what can be read there, and below each its data and its command --

SCROLLING = 10.0  # pixels; letters of a figure that is wider than a phone and scrolls in its frame


class Drawing(nodes.General, nodes.Element):
    """A figure's drawing, and the one for phones where there is one."""


class Drawings(SphinxTransform):
    """Each image that `inks.themed` made, with its drawing for phones, and what is behind it below its figure."""

    default_priority = 400

    def apply(self) -> None:
        told = json.loads(Path(self.app.srcdir, shell.TOLD).read_text(encoding="utf-8"))["figures"]
        for image in list(self.document.findall(nodes.image)):
            path = Path(self.env.relfn2path(image["uri"], self.env.docname)[1])
            svg = path.read_text(encoding="utf-8") if path.suffix == ".svg" and path.is_file() else ""
            if not (of := inks.told(svg)[0]):
                continue
            drawing, figure = Drawing("", sizes=[inks.size(svg)], alt=image.get("alt", "")), image.parent
            figure.replace(image, drawing)
            drawing += image
            if (phone := path.with_suffix(PHONE)).is_file():
                drawing["sizes"] += [inks.size(phone.read_text(encoding="utf-8"))]
                drawing += nodes.image(uri=image["uri"].removesuffix(".svg") + PHONE, alt=drawing["alt"])
            if isinstance(figure, nodes.figure) and (known := told.get(of)):
                address, *words = known
                below = macro("foot.html.j2", "ways")(shell.root(self.env.docname) + address, *words)
                figure.parent.insert(figure.parent.index(figure) + 1, nodes.raw("", below, format="html"))


def visit_drawing(translator: Any, node: Drawing) -> None:
    builder = translator.builder
    there = [posixpath.join(builder.imgpath, quote(builder.images[image["uri"]])) for image in node.children]
    translator.body.append(plot(there, node["sizes"], node["alt"]))
    raise nodes.SkipNode


def plot(addresses: list[str], sizes: list[inks.Size], words: str) -> str:
    """A drawing and the one for phones, once for each theme; it links to its file, where a finger can enlarge it."""
    shown = [(kind, both(*each, words)) for kind, *each in zip(("whole", "columns"), addresses, sizes)]
    letters = inks.LEAST * max(1.0, sizes[0][0] / inks.COLUMN)
    wide = f'scrolls" style="--wide: {SCROLLING * sizes[0][0] / letters:.0f}px'
    label = html.escape(f"Open this figure by itself: {words[:60]}")
    inside = "".join(f'<span class="{kind}">{images}</span>' for kind, images in shown)
    kind = "stacks" if len(shown) > 1 else wide
    return f'<a class="plot {kind}" href="{addresses[0]}" title="{label}">{inside}</a>'


def both(address: str, points: inks.Size, words: str) -> str:
    """An image for each theme of the drawing at this address, of which a page loads what it shows."""
    width, height = (4 / 3 * each for each in points)
    said = f'<img alt="{html.escape(words)}" loading="lazy" width="{width:.0f}" height="{height:.0f}" class="only-'
    return f'{said}light" src="{address}" />{said}dark" src="{address}#{inks.DARK}" />'


# ---- Headings, formulas, folded cells -----------------------------------------------------------------------------------


class Labels(SphinxTransform):
    """The link beside a heading that has a label names the label, not a slug or number that changes with the page."""

    default_priority = 400  # after docutils has given the label to its heading

    def apply(self) -> None:
        for section in self.document.findall(nodes.section):
            section["ids"] = section["ids"][-1:] + section["ids"][:-1]


class Unbroken(SphinxTransform):
    """No line starts with a comma or a percent sign: a formula stays with the bracket or quote before it and the
    stops behind it, a sign with its number."""

    default_priority = 870  # after quotes are smart

    def apply(self) -> None:
        for text in list(self.document.findall(nodes.Text)):
            if not isinstance(text.parent, nodes.literal | nodes.math | nodes.FixedTextElement):
                text.parent.replace(text, nodes.Text(re.sub(r"(?<=\d) %", "\u00a0%", text)))
        for math in list(self.document.findall(nodes.math)):
            parent, place = math.parent, math.parent.index(math)
            before, after = parent[place - 1 : place], parent[place + 1 : place + 2]
            start, stops = (
                re.search(sign, node[0])[0] if node and isinstance(node[0], nodes.Text) else ""
                for node, sign in ((before, r"[(“‘]?$"), (after, r"^[,.;:!?)”’]*"))
            )
            if start + stops:
                box = nodes.inline("", start, classes=["unbroken"])
                parent.replace(math, box)
                box += [math, nodes.Text(stops)]
            if start:
                parent.replace(before[0], nodes.Text(before[0].removesuffix(start)))
            if stops:
                parent.replace(after[0], nodes.Text(after[0].removeprefix(stops)))


class Cells(SphinxPostTransform):
    """Neighbouring folded cells that show nothing between them are under one bar."""

    default_priority = 198  # before myst-nb folds them
    formats = ("html",)

    def run(self, **_: Any) -> None:
        for cell in list(self.document.findall(nodes.container)):
            place = cell.parent.index(cell)
            former = cell.parent[place - 1] if place else None
            silent = _folds(former) == "input" and len(former.children) == 1
            if silent and (_folds(cell) or "").startswith("input"):
                cell[0].children[:0] = former[0].children
                cell[0].setup_child(former[0][0])
                cell.parent.remove(former)


def _folds(node: Any) -> str | None:
    """What a cell hides that has a source."""
    is_cell = isinstance(node, nodes.container) and node.get("nb_element") == "cell_code" and node.children
    return node.get("hide_mode") if is_cell and node[0].get("nb_element") == "cell_code_source" else None


# ---- Search: its text, and neither its code nor what its cells print ---------------------------------------------------

SCORER = Path(__file__).parents[1] / "templates" / "search.js"
PRINTED = {"cell_output", "cell_input"}


def text_of(page: nodes.document) -> nodes.document:
    """A copy of the page without code and what it prints."""
    copy = page.deepcopy()
    for node in list(copy.findall(nodes.Element)):
        left_out = isinstance(node, nodes.literal_block) or PRINTED & set(node.get("classes", ()))
        if left_out and node.parent is not None:
            node.parent.remove(node)
    return copy


# ---- Around the text: what is loaded, the head, the foot ----------------------------------------------------------------


def configure(app: Any, config: Any) -> None:
    """Results of the search are ordered and quoted by SCORER; of the scripts in _static/ a page loads those that
    _config.yml names, deferred: they load the others."""
    config.html_search_scorer = str(SCORER)
    config.html_js_files = [each for each in config.html_js_files if not isinstance(each, str)]


def begin(app: Any) -> None:
    """The index is made of `text_of` each page; each page is mended as it is rendered."""
    builder, told = app.builder, Path(app.srcdir, shell.TOLD)
    if index := getattr(builder, "index_page", None):  # of a builder that has one
        builder.index_page = lambda name, page, title: index(name, text_of(page), title)
    if getattr(builder, "templates", None) and told.is_file():
        render, head = builder.templates.render, gate.head()
        titles = json.loads(told.read_text(encoding="utf-8"))["titles"]

        def rendered(template: str, context: dict[str, Any]) -> str:
            page = render(template, context)
            return whole(page, context, titles, head) if template.endswith(".html") else page

        builder.templates.render = rendered


def load_only_what_is_used(app: Any, name: str, template: str, context: dict[str, Any], _: Any) -> None:
    """No style of what is not used, and MathJax only where there is a formula."""
    math = 'class="math' in context.get("body", "")

    def is_used(file: Any) -> bool:
        said = f"{getattr(file, 'filename', file)} {getattr(file, 'attributes', {}).get('body', '')}"
        return "sphinx-thebe" not in said and (math or not re.search(r"tex-chtml|window\.MathJax", said))

    for kind in ("script_files", "css_files"):
        context[kind] = [file for file in context.get(kind, []) if is_used(file)]


#: What the theme's templates leave undone: what stands there, and what is to stand there.
MENDS = [
    # the link to a page's notebook downloads it
    (r'(<a href="[^"]*_sources/[^"]*\.(?:ipynb|md)")(?![^>]*\sdownload)', r"\1 download"),
    ('role="doc-biblioentry"', 'role="listitem"'),  # what stands in a list
    ('data-theme="auto"', 'data-theme="light"'),  # where scripts are off
    # a theme is known before anything is painted: the colours, and lines of them, that the theme's own script would
    # bring half a second later
    (
        r'(localStorage\.getItem\("theme"\)) \|\| "auto"',
        r'\1 || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")',
    ),
    # the theme puts the title of the book outside all landmarks
    ('<div id="pst-primary-sidebar"', r'\g<0> role="complementary" aria-label="The book"'),
]


def whole(page: str, context: dict[str, Any], titles: dict[str, str], head: tuple[str, str]) -> str:
    """A page as it is read: mended, with its head and its foot."""
    name, heading = context["pagename"], Markup(context.get("title") or "").striptags()
    for before, after in MENDS:
        page = re.sub(before, after, page)
    if "bd-sidebar-secondary" not in page:  # one without contents beside it is told so before its text is set
        page = page.replace('class="bd-article-container"', 'class="bd-article-container wide"', 1)
    if "<article" in page:
        said = shell.foot(name, heading, *head)
        page = re.sub(r'<footer class="prev-next-footer|</main>', lambda at: f"{said}{at[0]}", page, count=1)
    title = titles.get(name, heading or name)
    return shell.with_head(page, name, title, name if name in titles else "index")
