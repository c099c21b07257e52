"""Look at a built site as a reader does: headless Chromium, file://, several widths, light and dark.

What is looked at is gathered in `Sight`s by `visit`; tests/bookpress/site/test_browser.py says what must hold.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

WIDTHS = (390, 768, 1280)
THEMES = ("light", "dark")
EVERYTHING = os.environ.get("BNBOOK_AXE") == "all"
NAMES = ("chromium", "chromium-browser", "google-chrome")
CHROMIUM = next((found for found in map(shutil.which, NAMES) if found), None)
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--host-resolver-rules=MAP * ~NOTFOUND",  # nor does anything of the browser itself reach the network
)
LOCAL = re.compile(r"(file|data|blob|about):")

#: No sidebar is caught while it slides in.
STILL = "*, *::before, *::after { transition: none !important; animation: none !important; }"
SETTLE = """async () => {
  for (const folded of document.querySelectorAll("article details")) folded.open = true;
  for (const image of document.images) image.loading = "eager";
  const coming = [...document.images].filter(image => !image.complete);
  await Promise.all(coming.map(image => image.decode().catch(() => null)));
  await document.fonts.ready;
  if (window.MathJax) await window.MathJax.startup.promise;
  for (let n = 0; n < 2; n++) await new Promise(requestAnimationFrame);
}"""
#: The page hears of its theme within a few frames.
HEARD = """async theme => {
  const page = document.documentElement;
  for (let n = 0; n < 60 && page.dataset.theme !== theme; n++) await new Promise(requestAnimationFrame);
}"""

LOOK = (Path(__file__).parent / "look.js").read_text(encoding="utf-8")


@dataclass
class Sight:
    """One page at one width and theme: what LOOK found there."""

    page: str
    width: int
    theme: str
    found: dict[str, Any]

    def __str__(self) -> str:
        return f"{self.page} at {self.width} px, {self.theme}"


@dataclass
class Visits:
    """All pages: what they show, what they asked for, what went wrong while they loaded."""

    pages: list[str] = field(default_factory=list)
    sights: list[Sight] = field(default_factory=list)
    requests: list[tuple[str, str]] = field(default_factory=list)  # (page, address)
    errors: list[tuple[str, str]] = field(default_factory=list)  # (page, what the console says)
    barriers: list[str] = field(default_factory=list)  # what axe-core found


def pages_of(site: Path) -> list[Path]:
    """Every page of the site but those that only lead on; what lies in folders that start with an underscore is the
    theme's own."""
    return sorted(
        path
        for path in site.rglob("*.html")
        if not any(part.startswith("_") for part in path.relative_to(site).parts)
        and 'http-equiv="refresh"' not in path.read_text(encoding="utf-8")
    )


@contextmanager
def chromium() -> Iterator[Any]:
    """The installed Chromium, headless, with an empty profile of its own."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
        try:
            yield browser
        finally:
            browser.close()


def visit(browser: Any, site: Path) -> Visits:
    """Load each page once, then look at it at every width, light and dark by turns: what is light on a phone on one page
    is dark on the next.

    All in one tab, which takes a sixth less work than a tab a page; what a page stores is forgotten before
    the next one loads.
    """
    visits = Visits()
    page = browser.new_page()
    page.set_default_timeout(300_000)
    page.add_init_script("localStorage.clear(); sessionStorage.clear()")
    listen(page, visits)
    for number, path in enumerate(pages_of(site)):
        name = path.relative_to(site).as_posix()
        visits.pages.append(name)
        page.set_viewport_size({"width": WIDTHS[0], "height": 900})
        page.emulate_media(color_scheme=THEMES[0])
        page.goto(path.as_uri())
        page.add_style_tag(content=STILL)
        for place, width in enumerate(WIDTHS):
            page.set_viewport_size({"width": width, "height": 900})
            page.evaluate(SETTLE)
            for theme in THEMES if EVERYTHING else THEMES[(number + place) % 2 :][:1]:
                page.emulate_media(color_scheme=theme)
                page.evaluate(HEARD, theme)  # in which the page hears of it; nothing is loaded again
                visits.sights.append(Sight(name, width, theme, page.evaluate(LOOK)))
        visits.barriers += barriers(page, name, number)
    page.close()
    return visits


#: How far what is already shown moves while a page loads, between 0 and 1, at once (the sum over all moves).
SHIFT = """() => new Promise(done => {
  let sum = 0;
  new PerformanceObserver(list => list.getEntries().forEach(e => { sum += e.value; }))
    .observe({type: "layout-shift", buffered: true});
  setTimeout(() => done(sum), 300);
})"""


TYPESET = "[...document.querySelectorAll('article .math')].every(e => e.querySelector('mjx-container'))"


def shifts(browser: Any, site: Path) -> dict[str, float]:
    """Page and width -> how far its layout shifts while it loads, of one page of each kind and of what slides."""
    page, found = browser.new_page(), {}
    for width in (WIDTHS[0], WIDTHS[-1]):
        page.set_viewport_size({"width": width, "height": 900})
        for name in (*KINDS, "provenance"):
            page.goto((site / f"{name}.html").as_uri())
            page.wait_for_function(TYPESET)
            found[f"{name} at {width} px"] = page.evaluate(SHIFT)
    page.close()
    return found


#: What scrolls can be reached by keyboard, which the theme tells a third of a second after a change.
TOLD = """async () => {
  const all = [...document.querySelectorAll("pre, .pst-scrollable-table-container")];
  const told = e => (e.scrollWidth > e.clientWidth || e.scrollHeight > e.clientHeight) === (e.tabIndex === 0);
  for (let n = 0; n < 40 && !all.every(told); n++) await new Promise(next => setTimeout(next, 10));
}"""

#: Rows that are made alike, page by page: the first of them stand for all. The inside of a formula, most of a page's
#: elements, is MathJax's own: a letter stands for it.
ALIKE = "li.claim, section:has(> .erratum), tr:nth-child(n + 3), ul.squares li, dl.py, pre span"
THIN = f"""kept => {{
  for (const formula of document.querySelectorAll("mjx-container")) formula.replaceWith("x");
  const seen = new Map();
  for (const row of document.querySelectorAll("{ALIKE}")) {{
    const kind = row.tagName + row.className;
    seen.set(kind, (seen.get(kind) ?? 0) + 1);
    if (seen.get(kind) > kept) row.remove();
  }}
}}"""
#: The corner of a table may be empty.
AXE = """rules => axe.run(document, {
    resultTypes: ["violations"], runOnly: rules.only, preload: false,
    rules: {"empty-table-header": {enabled: false}, "color-contrast": {enabled: rules.contrast}}})"""
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"]
EVERY_WAY = [(width, theme) for width in WIDTHS for theme in THEMES]
#: Pages of each kind, on which axe-core looks at the contrast too; LOOK looks at that of every page.
KINDS = ("index", "scoreboard", "errata", "santurkar/landscape", "how-a-verdict-is-made", "notation")


def barriers(page: Any, name: str, number: int) -> list[str]:
    """What axe-core finds on the opened page against WCAG 2.1 A and AA and its own good practice.

    On a phone and on a desk by turns, of rows that are made alike the first four; with BNBOOK_AXE=all at
    every width in both themes, every row, which takes long. Between two themes only colours differ.
    """
    import axe_playwright_python

    ways = EVERY_WAY if EVERYTHING else [(WIDTHS[0], "light"), (WIDTHS[-1], "dark")][number % 2 :][:1]
    if name.removesuffix(".html") in KINDS and not EVERYTHING:
        ways = [(WIDTHS[0], "light"), (WIDTHS[-1], "dark")]
    page.evaluate(THIN, 10**9 if EVERYTHING else 4)
    script = Path(axe_playwright_python.__file__).parent / "axe.min.js"
    page.evaluate(script.read_text(encoding="utf-8"))
    found = []
    for width, theme in ways:
        page.set_viewport_size({"width": width, "height": 900})
        page.emulate_media(color_scheme=theme)
        page.evaluate(SETTLE)
        page.evaluate(TOLD)
        again = EVERYTHING and theme != THEMES[0]
        rules = {
            "only": ["color-contrast"] if again else RULES,
            "contrast": EVERYTHING or name.removesuffix(".html") in KINDS,
        }
        for one in page.evaluate(AXE, rules)["violations"]:
            where = f"{name} at {width} px, {theme}: {one['impact']}: {one['id']}"
            found += [f"{where}: {node['html'][:160]}" for node in one["nodes"][:3]]
    return found


def listen(page: Any, visits: Visits) -> None:
    """Note every request of the page that is open, sockets too, and every error."""

    def wrong(said: str) -> None:
        visits.errors.append((visits.pages[-1], said))

    def failed(request: Any) -> None:
        # Aborted is a font that the browser asks for again after a new style sheet.
        if request.failure != "net::ERR_ABORTED":
            wrong(f"not loaded: {request.url} {request.failure}")

    page.on("request", lambda request: visits.requests.append((visits.pages[-1], request.url)))
    page.on("websocket", lambda socket: visits.requests.append((visits.pages[-1], socket.url)))
    page.on("requestfailed", failed)
    page.on("pageerror", lambda error: wrong(str(error)))
    page.on("console", lambda line: wrong(line.text) if line.type == "error" else None)
