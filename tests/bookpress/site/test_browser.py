"""The built site in a real browser: nothing leaves the machine, nothing overlaps, every figure can be read.

Needs an installed Chromium or Chrome and is skipped without one. BNBOOK_SITE=_build/html looks at a site
that is built already, in place of a fresh smoke build.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterator

import browsing
import matplotlib.pyplot as plt
import pytest
from browsing import LOCAL, THEMES, WIDTHS, Visits

from bookpress.pipeline import inks
from bookpress.site import extension

pytestmark = pytest.mark.skipif(
    browsing.CHROMIUM is None,
    reason=f"no browser: none of {', '.join(browsing.NAMES)} is installed (Debian: apt-get install chromium)",
)

HASH = re.compile(r"[0-9a-f]{16,}|\S+\.(svg|png)")


@pytest.fixture(scope="module")
def visits(browser, site) -> Visits:
    return browsing.visit(browser, site)


def none(problems: list[str]) -> None:
    assert not problems, f"{len(problems)} problems:\n" + "\n".join(problems[:20])


def images(visits: Visits) -> Iterator[str]:
    for sight in visits.sights:
        for image in sight.found["images"]:
            where, shown = f"{sight}: {image['source']}", image["inArticle"] and image["visible"]
            if image["naturalWidth"] == 0:
                yield f"{where} is not loaded"
            if image["inArticle"] and (len(image["alt"]) < 20 or HASH.fullmatch(image["alt"])):
                yield f"{where} has no telling alternative text: {image['alt']!r}"
            if shown and image["width"] < 280:
                yield f"{where} is {image['width']:.0f} px wide"
            if shown and (image["ground"] < 0.5) != (image["source"] or "").endswith(".svg#dark"):
                yield f"{where} has the inks of the other theme and cannot be read"


def mathematics(visits: Visits) -> Iterator[str]:
    """It is typeset, from local files."""
    for sight in visits.sights:
        yield from (f"{sight}: {words}" for words in sight.found["rawMath"] + sight.found["badMath"])
        engines = [script for script in sight.found["scripts"] if "mathjax" in script.lower()]
        yield from (f"{sight}: {script}" for script in engines if not script.startswith("file:"))
        if sight.found["math"] and not engines:
            yield f"{sight}: no MathJax"


def seen(kind: str) -> Callable[[Visits], list[str]]:
    """What look.js has found of a kind."""
    return lambda visits: [f"{s}: {words}" for s in visits.sights for words in s.found[kind]]


#: What is looked for -> the problems of a site. Contrast is to be 4.5 at least.
CHECKS = {
    "theme": lambda visits: [f"{s} {s.found['theme']}" for s in visits.sights if s.found["theme"] != s.theme],
    "request that leaves the machine": lambda visits: [r for r in visits.requests if not LOCAL.match(r[1])],
    "hint to another host": lambda visits: [
        f"{s}: {hint}" for s in visits.sights for hint in s.found["hints"] if not LOCAL.match(hint)
    ],
    "error in the console": lambda visits: visits.errors,
    "page that scrolls sideways": lambda visits: [
        f"{s}: {s.found['scrollWidth']} px wide"
        for s in visits.sights
        if s.found["scrollWidth"] > s.found["innerWidth"] + 1
    ],
    **{kind: seen(kind) for kind in ("overlaps", "sticksOut", "cutOff", "faint")},
    "image": images,
    "mathematics": mathematics,
    "barrier to who listens or types": lambda visits: visits.barriers,
}


@pytest.mark.parametrize("check", CHECKS)
def test_no_page_has_a(visits, check):
    none(list(CHECKS[check](visits)))


@pytest.mark.parametrize("check", CHECKS)
def test_each_check_refuses_a_broken_page(broken, check):
    assert list(CHECKS[check](broken))


def test_every_page_was_opened_in_both_themes(visits):
    assert "index.html" in visits.pages and "scoreboard.html" in visits.pages and visits.requests
    assert len({(sight.page, sight.width) for sight in visits.sights}) == len(visits.pages) * len(WIDTHS)
    assert len({(sight.page, sight.theme) for sight in visits.sights}) == len(visits.pages) * len(THEMES)
    assert any(sight.found["math"] for sight in visits.sights)


def test_what_is_shown_stays_where_it_is_while_a_page_loads(browser, site):
    found = browsing.shifts(browser, site)
    none([f"{page}: {shift:.3f}" for page, shift in found.items() if shift > 0.02])


@pytest.mark.parametrize("theme", THEMES)
def test_one_drawing_has_the_inks_of_either_theme(browser, tmp_path, theme):
    """Two squares in the ink of text, one of them called by `use` as Matplotlib draws letters, and between
    them one in that of batch norm, called as a mark is."""
    marks = f"fill: {inks.palette()['batch'][0]}"
    drawing = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 90 30" width="90" height="30">'
        '<defs><path id="square" d="M0 0h30v30h-30z"/>'
        f'<g id="mark"><path style="{marks}" d="M0 0h30v30h-30z"/></g></defs>'
        '<path d="M0 0h30v30h-30z"/><use href="#mark" x="30"/><use href="#square" x="60"/></svg>'
    )
    (tmp_path / "a.svg").write_text(inks.themed(drawing, "a/b/c"), encoding="utf-8")
    (tmp_path / "page.html").write_text(extension.both("a.svg", (67.5, 22.5), ""))
    page = browser.new_page()
    page.goto((tmp_path / "page.html").as_uri())
    page.add_style_tag(
        content=f"body {{ margin: 0 }} .only-{(set(THEMES) - {theme}).pop()} {{ display: none }}"
    )
    page.evaluate(browsing.SETTLE)
    seen = plt.imread(io.BytesIO(page.locator("img:visible").screenshot()))
    page.close()
    inked = {name: inks.palette()[name][THEMES.index(theme)] for name in ("text", "batch")}
    shown = ["#" + "".join(f"{round(255 * c):02x}" for c in seen[15, x, :3]) for x in (15, 45, 75)]
    assert shown == [inked["text"], inked["batch"], inked["text"]]


def test_a_search_kept_in_the_address_is_still_in_its_field_when_the_page_has_loaded(browser, site):
    """The theme's own search, on every page, writes what the address asks of it into fields of its name."""
    page = browser.new_page(viewport={"width": 390, "height": 900})
    page.goto((site / "scoreboard.html").as_uri() + "#find=landscape")
    page.wait_for_load_state("load")
    page.evaluate(browsing.SETTLE)
    assert page.locator(".board-form [type=search]").input_value() == "landscape"
    shown, all_rows = page.inner_text(".board-count").split(" rows")[0].split(" of ")
    assert 0 < int(shown) < int(all_rows)
    top = page.evaluate("document.querySelector('.board-form').getBoundingClientRect().top")
    assert 0 <= top < 900, "a link with a filter leads to what it filters"
    page.goto((site / "scoreboard.html").as_uri() + "#verdict=nonsense")
    page.reload()
    assert page.inner_text(".board-count") == f"{all_rows} of {all_rows} rows"
    page.close()


def test_what_stands_in_the_way_is_found(broken):
    found = {words.split(": ")[2] for words in broken.barriers}
    assert {"color-contrast", "document-title", "html-has-lang"} <= found


def test_the_first_page_is_light(site):
    page = (site / "index.html").read_text(encoding="utf-8")
    shown = re.sub(r'<img[^>]*class="only-dark"[^>]*>', "", page)  # of two themes one is loaded
    named = set(re.findall(r'(?:src|href)="((?:_static|_images)/[^"?#]+)', shown))
    links = set(re.findall(r'<a [^>]*href="((?:_static|_images)/[^"?#]+)', shown))
    sizes = {name: (site / name).stat().st_size for name in named - links if (site / name).is_file()}
    mathjax = {name: size for name, size in sizes.items() if "mathjax" in name}
    assert len(page.encode()) + sum(sizes.values()) - sum(mathjax.values()) < 2.6e6, (
        sizes
    )  # of which 1.5 MB are the theme's icons


def test_the_site_is_light(site):
    assert sum(path.stat().st_size for path in site.rglob("*") if path.is_file()) < 60e6


BROKEN = """<!doctype html><html data-theme="light">
<head><link rel="preconnect" href="https://elsewhere.invalid"></head>
<body><article>
<p>One paragraph.</p><p style="margin-top: -30px">Another on top of it.</p>
<div style="width: 2000px">A very wide table.</div>
<div style="width: 60px; overflow: hidden"><p style="width: 200px">Words that are cut off.</p></div>
<p style="color: #ccc">Words too faint to read.</p>
<img src="https://elsewhere.invalid/x.svg" alt="x"> <span class="math">x^2</span>
</article><script>console.error("broken")</script></body></html>"""


@pytest.fixture(scope="module")
def broken(browser, tmp_path_factory) -> Visits:
    site = tmp_path_factory.mktemp("broken")
    for name in ("index", "scoreboard"):
        (site / f"{name}.html").write_text(BROKEN, encoding="utf-8")
    return browsing.visit(browser, site)
