"""The whole book as one PDF: every page's text in order, printed by an installed Chromium.

`python -m bookpress.site.pdf` after `build` writes _build/book.pdf.
"""

from __future__ import annotations

import posixpath
import re
import shutil
import subprocess
import sys
from pathlib import Path

from bookpress import paths
from bookpress.book import chapter_names
from bookpress.errors import PressError, reason
from bookpress.exits import guarded
from bookpress.site import shell
from bookpress.site.verdicts import Markup, render

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome", "msedge")
GENERATED = ("errata", "provenance", "notation")  # pages behind the chapters that a reader of paper needs


def write(site: Path, target: Path) -> Path:
    """Print the site's first page, chapters and appendices into one PDF; PressError without a browser."""
    program = next((found for found in map(shutil.which, BROWSERS) if found), None)
    if program is None:
        raise PressError(f"no browser to print with; expected one of {', '.join(BROWSERS)} to be installed")
    names = ["index", *chapter_names(), *GENERATED]
    pages = {name: page for name in names if (page := site / f"{name}.html").is_file()}
    if not pages:
        raise PressError(f"no site in {site.name}/; build it first (bnbook build)")
    whole = site / "whole-book.html"
    read = ((page.read_text(encoding="utf-8"), posixpath.dirname(name)) for name, page in pages.items())
    texts = [Markup(article(*each)) for each in read]
    whole.write_text(render("printed.html.j2", title=shell.book_title(), pages=texts), encoding="utf-8")
    command = [program, "--headless", "--disable-gpu", "--no-sandbox", "--no-pdf-header-footer"]
    command += ["--virtual-time-budget=120000", "--host-resolver-rules=MAP * ~NOTFOUND"]
    command += [f"--print-to-pdf={target}", whole.as_uri()]
    try:
        subprocess.run(command, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as problem:
        raise PressError(f"the browser printed nothing: {reason(problem)}") from None
    finally:
        whole.unlink()
    return target


def article(page: str, folder: str) -> str:
    """The text of a page, its addresses as seen from the site's first page, what is folded opened."""
    text = re.search(r"<article[^>]*>(.*)</article>", page, flags=re.S)[1]
    text = re.sub(r"<script.*?</script>", "", text, flags=re.S)
    text = re.sub(r'<details(?! open)[^>]*class="[^"]*hide[^"]*".*?</details>', "", text, flags=re.S)
    text = text.replace("<details", "<details open").replace('loading="lazy"', 'loading="eager"')
    text = re.sub(r'<img[^>]*class="only-dark"[^>]*/>', "", text)

    def address(match: re.Match) -> str:
        if re.match(r"[a-z]+:|#", match[2]):
            return match[0]
        return f'{match[1]}="{posixpath.normpath(posixpath.join(folder, match[2]))}"'

    return re.sub(r'\b(src|href)="([^"]*)"', address, text)


def main() -> int:
    target = write(paths.build_folder() / "html", paths.build_folder() / "book.pdf")
    print(f"printed {target.name}, {target.stat().st_size / 1e6:.1f} MB; open {target.as_uri()}")
    return 0


if __name__ == "__main__":
    sys.exit(guarded(main))
