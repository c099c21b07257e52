"""The site: pages staged in _build/pages, rendered by jupyter-book, mended, and put in place in one step."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from bookpress import atomic, paths
from bookpress.book import command_name, repository
from bookpress.errors import PressError
from bookpress.pipeline import gate, handout, pictures
from bookpress.site import check, details, exports, pages, shell, teaching, wheel
from bookpress.site.staged import MARK

#: What the site needs of MathJax; the rest of the package (20 MB of other renderers and languages) is left
#: out.
MATHJAX_KEPT = (
    "tex-chtml.js",
    "output/chtml/fonts/woff-v2",
    "input/tex/extensions",
    "a11y",
    "sre/mathmaps/en.json",
)
#: What comes with the theme and no reader's browser asks for: its scripts' sources, words for Sphinx, its templates,
#: and fonts that stand there in a smaller form.
UNREAD = (".map", ".po", ".mo", "macros.html", ".ttf")


def build(profile: str | None = None) -> Path:
    """Render the book and return its first page: the fresh runs of `profile`, or with None the committed
    evidence.

    `_build` is wiped before: what an earlier build left (glue files, pages of removed chapters) never reaches
    the site.
    """
    if profile is None and (wrong := check.unlocked()):
        raise PressError(
            f"the locks cannot be trusted: {'; '.join(wrong[:3])}; {command_name()} check says all"
        )
    folder = paths.build_folder()
    words = f"another process builds the site in {folder}; wait for it and start again"
    with atomic.alone(folder / ".lock", PressError(words)):
        try:
            return _built(folder, profile)
        finally:
            shutil.rmtree(folder / "output", ignore_errors=True)


def _built(folder: Path, profile: str | None) -> Path:
    staged, output, site = folder / "pages", folder / "output", folder / "html"
    for old in (staged, output, folder / "jupyter_execute", folder / ".jupyter_cache"):
        shutil.rmtree(old, ignore_errors=True)
    chapters, shown = pages.stage(staged, profile)
    rendered, made = output / "_build" / "html", output / "made"
    with _jupyter_book(staged, output):  # meanwhile, what needs none of its pages
        handout.write(made, chapters, shown)
        wheel.write(output / "wheel", chapters, shown)
        sheets = teaching.students()
    figures = finish(rendered, staged)
    sheets = teaching.write(rendered, sheets)
    about = repository(), shell.address(), *gate.head()
    titles = {"index": shell.book_title()} | {chapter.name: chapter.title for chapter in chapters}
    shell.draw_previews(titles, shown.rows.values(), rendered / "_images")
    for page in sorted(rendered.rglob("*.html")):
        name = page.relative_to(rendered).with_suffix("").as_posix()
        text = shell.with_ways(page.read_text(encoding="utf-8"), name, rendered, shown, figures)
        if name == "teach":
            text = text.replace(teaching.MADE, sheets)
        if not name.startswith("_"):
            owner = name if name in titles else "index"
            image = shell.picture_of(owner, name)
            text = shell.with_foot(shell.with_description(text, image, titles.get(name, "")), name, *about)
        text = shell.with_icon(text, "../" * name.count("/"), rendered)
        page.write_text(shell.with_policy(text, page.name in shell.WITHOUT_RUNS), encoding="utf-8")
    details.redirect(rendered, shown)
    # what the download button of a page gives
    shutil.copytree(made, rendered / "_sources", dirs_exist_ok=True)
    exports.write(rendered, shown)
    if (output / "wheel").is_dir():
        shutil.copytree(output / "wheel", rendered / "data", dirs_exist_ok=True)
    old_site = folder / "html.old"
    shutil.rmtree(old_site, ignore_errors=True)
    if site.exists():
        os.replace(site, old_site)
    os.replace(rendered, site)
    shutil.rmtree(old_site, ignore_errors=True)
    return site / "index.html"


#: This interpreter's jupyter-book, whatever PATH says, in which nbformat starts as quickly as here; without the
#: collector of cyclic garbage, which takes a third of its time and finds little before its end; and ended with this
#: process, at whose end its input ends.
PROGRAM = """
import gc, os, sys, threading
threading.Thread(target=lambda: (os.read(0, 1), os._exit(1)), daemon=True).start()
gc.disable()
import bookpress.pipeline
from jupyter_book.cli.main import main
main()
"""


@contextmanager
def _jupyter_book(staged: Path, output: Path) -> Iterator[None]:
    """Run jupyter-book with warnings as errors beside what is done inside; PressError with its own words when it
    refuses."""
    command = [sys.executable, "-c", PROGRAM, "build", str(staged), "--path-output", str(output)]
    command += ["-W", "-n", "--keep-going", "--all", "-q"]
    environment = os.environ | {"PYTHONWARNINGS": "ignore", "SOURCE_DATE_EPOCH": str(int(time.time()))}
    environment |= {"PYTHONUTF8": "1", MARK: "1"}  # what it says is read as UTF-8
    with tempfile.TemporaryFile("w+", encoding="utf-8") as said:
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=said, stderr=said, env=environment)
        try:
            yield
            process.wait()
        finally:
            process.kill()
            process.stdin.close()
        if process.returncode or not (output / "_build" / "html" / "index.html").is_file():
            said.seek(0)
            lines = said.read().splitlines()
            telling = [line for line in lines if re.search(r"WARNING|ERROR|Error", line)] or lines[-5:]
            raise PressError("jupyter-book refused the pages: " + " | ".join(telling[:6]))


FORMULA = r'<span class="math [^>]*>[^<]*</span>'
#: What the theme and jupyter-book leave undone in pages: what stands there, and what is to stand there.
MENDS: list[tuple[str, str | Callable[[re.Match], str]]] = [
    # sphinx-thebe, which is always loaded, is unmaintained and points to another host
    (r"<script\b[^>]*>[^<]*(?:THEBE_JS_URL|thebe_selector)[^<]*</script>\s*", ""),
    (r'(?s:<script type="text/x-thebe-config">.*?</script>\s*)', ""),
    (r"<(?:script|link)\b[^>]*sphinx-thebe\.(?:js[^>]*></script>|css[^>]*>)\s*", ""),
    (r"<script>kernelName = [^<]*</script>\s*", ""),
    # scripts of _static/: those that a page needs are named in _config.yml, deferred, and load the others
    (r'<script src="[^"]*_static/(?:board|explorers/[^"]*)\.js[^"]*"></script>\s*', ""),
    # the link to a page's notebook downloads it
    (r'(<a href="[^"]*_sources/[^"]*\.(?:ipynb|md)")(?![^>]*\sdownload)', r"\1 download"),
    # the link beside a heading that has a label names the label, not a slug or number that changes with the page
    (
        r'(<span id="([^"]+)"></span><h[1-6]>(?:(?!</h[1-6]>).)*<a class="headerlink" href="#)[^"]+',
        r"\g<1>\g<2>",
    ),
    # no line starts with a comma: a formula stays with the bracket or quote before it and the stops behind it
    (rf"([(“‘]{FORMULA}[,.;:!?)”’]*|{FORMULA}[,.;:!?)”’]+)", r'<span class="unbroken">\1</span>'),
    (r"(?<=\d)[ \n]%", "\u00a0%"),  # nor with the sign of a share
    # the space of a solution's title stands before its link
    (r'(Solution to)(<a class="reference internal" [^>]*>) ', r"\1 \2"),
    # neighbouring folded cells that show nothing between them are under one bar
    (
        r'\n</details>\n</div>\n<div class="cell [^"]*\btag_hide-input\b[^"]*">\n'
        r'<details class="[^"]*\babove-input\b[^"]*">\n(?s:<summary\b.*?</summary>)\n',
        "\n",
    ),
    # a long name of code in a heading breaks behind a dot or a bar
    (
        r'(<h[1-6]>(?:(?:(?!</h[1-6]>).)*?<span class="pre">)?)([\w.]+)(?=<)',
        lambda name: name[1] + re.sub(r"(?<=[._])(?=\w)", "<wbr>", name[2]),
    ),
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
LOADS_MATHJAX = re.compile(
    r"<script>window\.MathJax = .*?</script>\s*<script defer=\"defer\" src=\"[^\"]*tex-chtml\.js[^\"]*\"></script>\s*",
    re.S,
)


def mended(page: str) -> str:
    """A page of the theme with all of that, and MathJax only where it has a formula."""
    for before, after in MENDS:
        page = re.sub(before, after, page)
    if 'class="math' not in page:
        page = LOADS_MATHJAX.sub("", page)
    if "bd-sidebar-secondary" not in page:  # told to the style sheet before the text is set
        page = page.replace('class="bd-article-container"', 'class="bd-article-container wide"', 1)
    return page


def finish(site: Path, staged: Path) -> dict[str, pictures.Picture]:
    """Every page mended and its figures in both themes, what no browser asks for removed; returns how each figure is
    shown."""
    shown = pictures.pairs(site / "_images", staged)
    for page in site.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        page.write_text(mended(pictures.in_both_themes(text, shown)), encoding="utf-8")
    mathjax = site / "_static" / "mathjax"
    for path in sorted((site / "_static").rglob("*"), reverse=True):
        rest = mathjax in path.parents and not path.relative_to(mathjax).as_posix().startswith(MATHJAX_KEPT)
        if path.is_file() and (rest or path.name.endswith(UNREAD)):
            path.unlink()
        elif path.is_dir() and not any(path.iterdir()):
            path.rmdir()
    return shown
