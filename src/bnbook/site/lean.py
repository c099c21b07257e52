"""What a page loads and does not need: most icons of the theme, MathJax where there is no formula."""

from __future__ import annotations

import re
from pathlib import Path

ICON = re.compile(
    r'(?<=[,{])(?P<name>"[a-z0-9-]+"|[a-z0-9]+):\[\d+,\d+,\[(?P<other>[^\]]*)\],"[0-9a-f]+",'
    r'(?:"[^"]*"|\["[^"]*","[^"]*"\])\],?'
)
#: How the theme's style would draw an icon as a letter; its script draws them as pictures.
LETTERS = re.compile(r'(?:\.fa-[a-z0-9-]+:{1,2}before,?)+\{(?:--fa|content):"[^"]*"(?:;[^}]*)?\}')
MATHJAX = re.compile(
    r"<script>window\.MathJax = .*?</script>\s*"
    r'<script defer="defer" src="[^"]*tex-chtml\.js[^"]*"></script>\s*',
    re.S,
)


def without_idle_mathjax(html: str) -> str:
    """The page without MathJax where it has no formula."""
    return html if 'class="math' in html else MATHJAX.sub("", html)


def without_source_maps(site: Path) -> None:
    """Leave out what only those need who debug the theme's own scripts and styles, 3.5 MB."""
    for mapped in site.rglob("*.map"):
        mapped.unlink()
        source = mapped.with_suffix("")
        if source.is_file():
            text = source.read_text(encoding="utf-8")
            source.write_text(re.sub(r"/[/*]# sourceMappingURL=\S+( \*/)?", "", text), encoding="utf-8")


def slim_icons(site: Path) -> None:
    """Leave of the theme's icon script, 1.5 MB with 2,000 icons, those that pages and scripts name."""
    script = site / "_static" / "scripts" / "fontawesome.js"
    if not script.is_file():
        return
    sources = [*site.rglob("*.html"), *(site / "_static").rglob("*.js")]
    used = set()
    for path in sources:
        if re.search("fontawesome|mathjax", path.relative_to(site).as_posix()):  # they name all
            continue
        used |= set(re.findall(r"\bfa-([a-z0-9-]+)", path.read_text(encoding="utf-8")))

    def one(match: re.Match) -> str:
        names = {match["name"].strip('"'), *re.findall(r'"([^"]*)"', match["other"])}
        return match[0] if names & used else ""

    text = ICON.sub(one, script.read_text(encoding="utf-8"))
    script.write_text(text.replace(",}", "}"), encoding="utf-8")
    style = site / "_static" / "styles" / "pydata-sphinx-theme.css"
    if style.is_file():
        style.write_text(LETTERS.sub("", style.read_text(encoding="utf-8")), encoding="utf-8")
