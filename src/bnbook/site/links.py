"""At the foot of each page: the repository, the file to edit, where to report an error; from one setting."""

from __future__ import annotations

import html
import re
from pathlib import Path
from urllib.parse import quote, urlparse

from bnbook import paths

BRANCH = "main"
#: Part of a host's name ("": any other) -> how to edit a file, see one at a commit, and open an issue.
HOSTS = {
    "gitlab": ("/-/edit/{branch}/{file}", "/-/blob/{commit}/{file}", "/-/issues/new?issue[title]={title}"),
    "github": ("/edit/{branch}/{file}", "/blob/{commit}/{file}", "/issues/new?title={title}"),
    "": ("/_edit/{branch}/{file}", "/src/commit/{commit}/{file}", "/issues/new?title={title}"),
}
BEFORE = re.compile(r'<footer class="prev-next-footer|</main>')


def write(site: Path, repository: str) -> None:
    """Put the links on every page; nothing where no address is set."""
    if not repository:
        return
    for page in site.rglob("*.html"):
        name = page.relative_to(site).with_suffix("").as_posix()
        text = page.read_text(encoding="utf-8")
        if not name.startswith("_") and "<article" in text:
            said = nav(repository, name)
            page.write_text(BEFORE.sub(lambda at: f"{said}{at[0]}", text, count=1), encoding="utf-8")


def nav(repository: str, page: str) -> str:
    """The links of a page, named without .html."""
    edit, _, issue = ways(repository)
    listed = {"Repository": repository}
    if file := source(page):
        listed["Edit this page"] = repository + edit.format(branch=BRANCH, file=quote(file))
    listed["Report an error"] = repository + issue.format(title=quote(f"{page}: ", safe=""))
    shown = " · ".join(f'<a href="{html.escape(to)}">{text}</a>' for text, to in listed.items())
    return f'<nav class="source-links" aria-label="The code of this page">{shown}</nav>'


def source(page: str) -> str:
    """The file that a page is made from, in the repository; nothing where it is made from several."""
    root = paths.repository_root()
    return next(
        (f"book/{page}{end}" for end in (".md", ".yml") if (root / f"book/{page}{end}").is_file()), ""
    )


def at_commit(repository: str, commit: str, file: str) -> str:
    """A file at a commit: a link to it, or its name and the commit where no address is set."""
    if not repository or not commit:
        return f"<code>{file}</code>" + (f" at commit <code>{commit[:10]}</code>" if commit else "")
    address = repository + ways(repository)[1].format(commit=commit, file=quote(file))
    return f'<a href="{html.escape(address)}">{file} at {commit[:10]}</a>'


def ways(repository: str) -> tuple[str, str, str]:
    """How the repository's host calls its pages."""
    host = urlparse(repository).hostname or ""
    return next(found for name, found in HOSTS.items() if name in host)
