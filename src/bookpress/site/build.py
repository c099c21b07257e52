"""The site: pages staged in _build/pages, rendered by jupyter-book, mended, and put in place in one step."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from bookpress import contents, paths
from bookpress.book import command_name
from bookpress.errors import PressError
from bookpress.pipeline import gate, handout, ledger, pictures
from bookpress.pipeline.chapters import discover
from bookpress.site import claim_pages, notation, pages, shell, teaching, ways
from bookpress.site.rendering import macro
from bookpress.site.staged import MARK

SIDEBAR = '<div id="pst-primary-sidebar"'  # the theme puts the title of the book outside all landmarks
#: What the site needs of MathJax; the rest of the package (20 MB of other renderers and languages) is left
#: out.
MATHJAX_KEPT = (
    "tex-chtml.js",
    "output/chtml/fonts/woff-v2",
    "input/tex/extensions",
    "a11y",
    "sre/mathmaps/en.json",
)
#: What comes with the theme and no reader's browser asks for: its scripts' sources, words for Sphinx, and fonts that
#: stand there in a smaller form.
UNREAD = (".map", ".po", ".mo", ".ttf")


def build(profile: str | None = None) -> Path:
    """Render the book and return its first page: the fresh runs of `profile`, or with None the committed
    evidence.

    `_build` is wiped before: what an earlier build left (glue files, pages of removed chapters) never reaches
    the site.
    """
    if profile is None and (wrong := pages.unlocked(discover())):
        raise PressError(
            f"the locks do not fit the evidence: {'; '.join(wrong[:3])}; {command_name()} check says all"
        )
    with _alone(paths.build_folder()) as folder:
        return _built(folder, profile)


@contextmanager
def _alone(folder: Path) -> Iterator[Path]:
    """No other process builds into the same folder (the system ends the lock of a dead one)."""
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with FileLock(folder / ".lock", timeout=0):
            yield folder
    except Timeout:
        raise PressError(
            f"another process builds the site in {folder}; wait for it and start again"
        ) from None


def _built(folder: Path, profile: str | None) -> Path:
    staged, output, site = folder / "pages", folder / "output", folder / "html"
    for old in (staged, output, folder / "jupyter_execute", folder / ".jupyter_cache"):
        shutil.rmtree(old, ignore_errors=True)
    chapters, shown = pages.stage(staged, profile)
    rendered, made = output / "_build" / "html", output / "made"
    with _jupyter_book(staged, output):  # meanwhile, what needs none of its pages
        handout.write(made, chapters, shown)
        sheets = teaching.students()
        judged = claim_pages.judgements(chapters, shown)
    figures = finish(rendered, staged)
    claim_pages.write(rendered, chapters, shown, figures, judged, contents.repository())
    sheets = teaching.write(rendered, sheets)
    previews = shell.previews(rendered, chapters, shown.rows.values())
    data, symbols = ways.Data(rendered, chapters, shown, figures), notation.entries()
    about = contents.repository(), shell.address(), *gate.head()
    for page in sorted(rendered.rglob("*.html")):
        name = page.relative_to(rendered).with_suffix("").as_posix()
        text = data.under_figures(page.read_text(encoding="utf-8"), name)
        if name == "teach":
            text = text.replace(teaching.MADE, sheets)
        if not name.startswith("_"):
            text = shell.with_foot(previews.tagged(text, name), name, *about)
        if name in {chapter.name for chapter in chapters}:
            text = notation.marked(text, symbols, name)
        page.write_text(shell.with_policy(text, page.name in shell.WITHOUT_RUNS), encoding="utf-8")
    # what the download button of a page gives
    shutil.copytree(made, rendered / "_sources", dirs_exist_ok=True)
    ledger.write(rendered, shown)
    old_site = folder / "html.old"
    shutil.rmtree(old_site, ignore_errors=True)
    if site.exists():
        os.replace(site, old_site)
    os.replace(rendered, site)
    for old in (old_site, output):
        shutil.rmtree(old, ignore_errors=True)
    return site / "index.html"


#: This interpreter's jupyter-book, whatever PATH says, in which nbformat starts as quickly as here; and without the
#: collector of cyclic garbage, which takes a third of its time and finds little before its end.
PROGRAM = "import gc; gc.disable(); import bookpress.pipeline; from jupyter_book.cli.main import main; main()"


@contextmanager
def _jupyter_book(staged: Path, output: Path) -> Iterator[None]:
    """Run jupyter-book with warnings as errors beside what is done inside; PressError with its own words when it
    refuses."""
    command = [sys.executable, "-c", PROGRAM, "build", str(staged), "--path-output", str(output)]
    command += ["-W", "-n", "--keep-going", "--all", "-q"]
    environment = os.environ | {"PYTHONWARNINGS": "ignore", "SOURCE_DATE_EPOCH": str(int(time.time()))}
    environment |= {"PYTHONUTF8": "1", MARK: "1"}  # what it says is read as UTF-8
    with tempfile.TemporaryFile("w+", encoding="utf-8") as said:
        process = subprocess.Popen(command, stdout=said, stderr=said, env=environment)
        try:
            yield
            process.wait()
        finally:
            process.kill()
        if process.returncode or not (output / "_build" / "html" / "index.html").is_file():
            said.seek(0)
            lines = said.read().splitlines()
            telling = [line for line in lines if re.search(r"WARNING|ERROR|Error", line)] or lines[-5:]
            raise PressError("jupyter-book refused the pages: " + " | ".join(telling[:6]))


def finish(site: Path, staged: Path) -> dict[str, pictures.Picture]:
    """Mend what the theme leaves undone: downloads that download, lasting links, no other host's script, a
    lean MathJax, figures in both themes; returns how each is shown."""
    shown = pictures.pairs(site / "_images", staged)
    for page in site.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        mended = pictures.in_both_themes(
            without_thebe(without_doubles(lasting_links(download_links(text)))), shown
        )
        mended = without_idle_mathjax(with_links_to_exercises(with_their_stops(mended)))
        if 'class="math' in mended and "tex-chtml.js" not in mended:  # formulas that Sphinx has not seen
            mended = mended.replace("</head>", macro("alone.html.j2", "mathjax")("") + "</head>", 1)
        mended = with_room(mended)
        mended = shell.with_one_fold(shell.with_fixed_spaces(mended))
        mended = names_at_dots(mended).replace(
            'role="doc-biblioentry"', 'role="listitem"'
        )  # what stands in a list
        mended = mended.replace('data-theme="auto"', 'data-theme="light"', 1)  # where scripts are off
        mended = mended.replace(SIDEBAR, f'{SIDEBAR} role="complementary" aria-label="The book"', 1)
        if mended != text:
            page.write_text(mended, encoding="utf-8")
    mathjax = site / "_static" / "mathjax"
    for path in sorted((site / "_static").rglob("*"), reverse=True):
        rest = mathjax in path.parents and not path.relative_to(mathjax).as_posix().startswith(MATHJAX_KEPT)
        if path.is_file() and (rest or path.suffix in UNREAD):
            path.unlink()
        elif path.is_dir() and not any(path.iterdir()):
            path.rmdir()
    return shown


def download_links(html: str) -> str:
    """Give the theme's link to a page's notebook the `download` attribute that it lacks."""
    return re.sub(r'(<a href="[^"]*_sources/[^"]*\.(?:ipynb|md)")(?![^>]*\sdownload)', r"\1 download", html)


def lasting_links(html: str) -> str:
    """Let the link beside a heading that has a label name the label, not a slug or number that changes with
    the page."""
    heading = r'(<span id="([^"]+)"></span><h[1-6]>(?:(?!</h[1-6]>).)*<a class="headerlink" href="#)[^"]+'
    return re.sub(heading, r"\g<1>\g<2>", html)


def with_their_stops(html: str) -> str:
    """Keep a formula in the line with the bracket or quote before it and the stops behind it: no line starts
    with a comma."""
    formula = r'<span class="math [^>]*>[^<]*</span>'
    return re.sub(
        rf"([(“‘]{formula}[,.;:!?)”’]*|{formula}[,.;:!?)”’]+)", r'<span class="unbroken">\1</span>', html
    )


def with_links_to_exercises(html: str) -> str:
    """Put the space before the link of a solution's title in front of it."""
    return re.sub(r'(Solution to)(<a class="reference internal" [^>]*>) ', r"\1 \2", html)


def names_at_dots(html: str) -> str:
    """Let a long name of code in a heading break behind a dot or a bar."""
    return re.sub(
        r'(<h[1-6]>(?:(?:(?!</h[1-6]>).)*?<span class="pre">)?)([\w.]+)(?=<)',
        lambda name: name[1] + re.sub(r"(?<=[._])(?=\w)", "<wbr>", name[2]),
        html,
    )


def with_room(html: str) -> str:
    """Tell the style sheet of a page that has no list of contents at its side, before its text is set."""
    if "bd-sidebar-secondary" in html:
        return html
    return html.replace('class="bd-article-container"', 'class="bd-article-container wide"', 1)


def without_idle_mathjax(html: str) -> str:
    """The page without MathJax where it has no formula."""
    loads = r"<script>window\.MathJax = .*?</script>\s*"
    loads += r'<script defer="defer" src="[^"]*tex-chtml\.js[^"]*"></script>\s*'
    return html if 'class="math' in html else re.sub(loads, "", html, flags=re.S)


def without_doubles(html: str) -> str:
    """Remove the scripts of _static/ that jupyter-book adds to every page by itself: those that a page needs
    are named in _config.yml, deferred, and load the others."""
    return re.sub(r'<script src="[^"]*_static/(?:board|explorers/[^"]*)\.js[^"]*"></script>\s*', "", html)


def without_thebe(html: str) -> str:
    """Remove sphinx-thebe, which jupyter-book always loads: it is unmaintained and points to another host."""
    html = re.sub(r"<script\b[^>]*>[^<]*(?:THEBE_JS_URL|thebe_selector)[^<]*</script>\s*", "", html)
    html = re.sub(r'<script type="text/x-thebe-config">.*?</script>\s*', "", html, flags=re.S)
    html = re.sub(r"<script\b[^>]*sphinx-thebe\.js[^>]*></script>\s*", "", html)
    html = re.sub(r"<link\b[^>]*sphinx-thebe\.css[^>]*>\s*", "", html)
    return re.sub(r"<script>kernelName = [^<]*</script>\s*", "", html)
