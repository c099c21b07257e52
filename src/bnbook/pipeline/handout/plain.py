"""A chapter's MyST text as plain Markdown, which every notebook editor shows."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from bnbook import paths
from bnbook.texts import read_text

BLOCK = re.compile(
    r"^(?P<fence>`{3,}|:{3,})\{(?P<name>[a-z:-]+)\}[ \t]*(?P<argument>[^\n]*)\n"
    r"(?P<body>.*?)^(?P=fence)[ \t]*$",
    re.M | re.S,
)
OPTION = re.compile(r"^:([a-z-]+):[ \t]*(.*)\n", re.M)
LABELLED = re.compile(r"\$\$(?P<formula>[^$]*?)\s*\$\$ \((?P<label>[a-z0-9-]+)\)")
ROLE = re.compile(r"\{(?P<name>cite|cite:t|eq|ref)\}`(?P<text>[^`]*)`")
LINK = re.compile(r"(?<!!)\[(?P<text>(?:[^\]\[]|\[[^\]]*\])*)\]\((?P<target>/[\w/.-]+\.ipynb|#[\w-]+)\)")
EXPLORER = re.compile(r'^<div class="explorer"[^>]*>\n(?P<still>.*?)\n</div>$', re.M | re.S)


def equation_numbers(text: str) -> dict[str, int]:
    """Label -> number of each labelled formula, in order."""
    return {match["label"]: number for number, match in enumerate(LABELLED.finditer(text), start=1)}


def plain(text: str, numbers: Mapping[str, int], figure: Callable[[str, str], str]) -> str:
    """The text without directives, roles and links that only the site can follow.

    numbers: of the chapter's labelled formulas. figure: (path, caption) -> what stands in place of a figure.
    An exercise becomes a headed paragraph, a solution folds, a citation is author and year, a labelled
    formula has its number.
    """

    def block(match: re.Match) -> str:
        name, argument = match["name"], match["argument"].strip()
        options = dict(OPTION.findall(match["body"]))
        body = inside(OPTION.sub("", match["body"]).strip())
        if name == "figure":
            return figure(argument, body)
        if name == "exercise":
            return f"**Exercise{': ' + argument if argument else ''}**\n\n{body}"
        if name == "solution":
            return f"<details>\n<summary>Solution</summary>\n\n{body}\n\n</details>"
        title = argument or options.get("title", name.capitalize())
        return f"**{title}**\n\n{body}"

    def inside(text: str) -> str:
        text = EXPLORER.sub(r"*On the site of the book this can be explored by hand.*\n\g<still>", text)
        text = LABELLED.sub(lambda m: f"$${m['formula']} \\tag{{{numbers[m['label']]}}}\n$$", text)
        text = ROLE.sub(lambda m: _role(m["name"], m["text"], numbers), text)
        text = LINK.sub(lambda m: _link(m["text"], m["target"]), text)
        return re.sub(r"^\([a-z0-9-]+\)=\n", "", text, flags=re.M)

    return inside(BLOCK.sub(block, text))


def _role(name: str, text: str, numbers: Mapping[str, int]) -> str:
    if name == "eq":
        return f"({numbers[text]})"
    if name == "ref":
        return text.partition(" <")[0]
    shown = [_citation(key.strip(), in_text=name == "cite:t") for key in text.split(",")]
    return ", ".join(shown) if name == "cite:t" else f"({'; '.join(shown)})"


def _link(text: str, target: str) -> str:
    """The words of a link, and the chapter that it leads to."""
    if target.startswith("#"):
        return text
    return f"{text} (*{target.strip('/').removesuffix('.ipynb')}*)"


def _citation(key: str, in_text: bool) -> str:
    """Author and year of an entry of book/references.bib: "Ioffe and Szegedy 2015"."""
    bibliography = read_text(paths.book_folder() / "references.bib", "references.bib")
    entry = re.search(rf"^@\w+\{{{re.escape(key)},(.*?)(?=^@|\Z)", bibliography, flags=re.M | re.S)
    fields = dict(re.findall(r"^\s*(author|year)\s*=\s*\{+(.*?)\}+,?\s*$", entry[1] if entry else "", re.M))
    names = [name.partition(",")[0] for name in fields.get("author", key).split(" and ")]
    who = names[0] if len(names) == 1 else " and ".join(names) if len(names) == 2 else f"{names[0]} et al."
    year = fields.get("year", "")
    return who + (f" ({year})" if in_text else f" {year}") if year else who
