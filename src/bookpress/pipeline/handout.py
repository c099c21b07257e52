"""The notebook that a reader takes away, which runs by itself. `python -m bookpress.pipeline.handout DIR`."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import nbformat
from nbformat.v4 import new_code_cell as code_cell
from nbformat.v4 import new_markdown_cell as markdown_cell
from nbformat.v4 import new_output

from bookpress import atomic, claims, paths
from bookpress.book import book, command_name, folders, repository, settings
from bookpress.claims.reading import CARRIED
from bookpress.errors import PressError
from bookpress.exits import guarded
from bookpress.pipeline import chapter_runs, pictures, prose
from bookpress.pipeline.chapter_runs import Evidence, published_runs
from bookpress.pipeline.chapters import Chapter, discover, is_parameters, only_defines, with_values
from bookpress.pipeline.gate import passed_run
from bookpress.schema import as_plain

# ---- The first code cell of a notebook that is handed out: where something is missing, it installs it --------------

#: Module -> package of all that a chapter's cells lead to; the site's own packages are not among them, and a
#: hosted notebook keeps the torch that it has.
NEEDED = {
    "IPython": "ipython",
    "PIL": "pillow",
    "cloudpickle": "cloudpickle",
    "filelock": "filelock",
    "matplotlib": "matplotlib",
    "numpy": "numpy",
    "platformdirs": "platformdirs",
    "pydantic": "pydantic",
    "scipy": "scipy",
    "torch": "torch",
    "torchvision": "torchvision",
    "tqdm": "tqdm",
    "yaml": "pyyaml",
}
SOURCE = """# @title Set-up: installs what is missing; where all is there it does nothing
import importlib
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

wheel = {wheel!r}  # of the book's package, which the site offers
source = {source!r}  # where it is when it lies neither here nor one folder up
needed = {needed!r}
pip = [sys.executable, "-m", "pip", "install", "--quiet"]
wanted = [[package for module, package in needed.items() if not find_spec(module)]]
if not find_spec({package!r}):
    book = [str(place / wheel) for place in (Path(), Path("..")) if (place / wheel).is_file()]
    book += filter(None, [source])
    if not book:
        raise ModuleNotFoundError({by_hand!r})
    wanted.append(["--no-deps", book[0]])
for packages in filter(None, wanted):
    if subprocess.run([*pip, *packages]).returncode:
        raise RuntimeError("pip could not install " + " ".join(packages) + ": see above; is there a network?")
importlib.invalidate_caches()"""


def wheel() -> str:
    """File name of the package's wheel."""
    return f"{book().package}-{book().version}-py3-none-any.whl"


def by_hand() -> str:
    """What to do where nothing can be installed from."""
    return (
        f"{book().package} is not installed: put its wheel, {wheel()}, which the book's site offers on its page Run it "
        "yourself, beside this notebook or one folder up, and run the cell again"
    )


def setup_cell(repository: str, site: str = "") -> Any:
    """The folded cell; the addresses of the book's repository and site, empty while it has none.

    The package comes from its wheel beside the notebook or one folder up, else from the site's, which has the book's
    claims and verdicts, else from the repository; with none of them the cell says in one line what to do. What
    the chapter's own parameters need is inside the package; real data are fetched by the chapter itself when its `data`
    names them.
    """
    source = f"{site.rstrip('/')}/data/{wheel()}" if site else f"git+{repository}" if repository else ""
    given = {"wheel": wheel(), "source": source, "needed": NEEDED, "package": book().package}
    metadata = {"jupyter": {"source_hidden": True}, "cellView": "form"}
    return code_cell(SOURCE.format(**given, by_hand=by_hand()), metadata=metadata)


# ---- A chapter's MyST text as plain Markdown, which every notebook editor shows ------------------------------------

BLOCK = re.compile(
    r"^(?P<fence>`{3,}|:{3,})\{(?P<name>[a-z:-]+)\}[ \t]*(?P<argument>[^\n]*)\n"
    r"(?P<body>.*?)^(?P=fence)[ \t]*$",
    re.M | re.S,
)
OPTION = re.compile(r"^:([a-z-]+):[ \t]*(.*)\n", re.M)
LABELLED = re.compile(r"\$\$(?P<formula>[^$]*?)\s*\$\$ \((?P<label>[a-z0-9-]+)\)")
ROLE = re.compile(r"(?P<space> ?)\{(?P<name>cite|cite:t|eq|ref)\}`(?P<text>[^`]*)`")
LINK = re.compile(
    r"(?<!!)\[(?P<text>(?:[^\]\[]|\[[^\]]*\])*)\]\((?:#[\w-]+|/(?P<page>[\w/-]+)\.(?P<kind>ipynb|md))\)"
)
EXPLORER = re.compile(r'^<div class="explorer"[^>]*>\n(?P<still>.*?)\n</div>$', re.M | re.S)


def equation_numbers(text: str) -> dict[str, int]:
    """Label -> number of each labelled formula, in order."""
    return {match["label"]: number for number, match in enumerate(LABELLED.finditer(text), start=1)}


def plain(
    text: str, numbers: Mapping[str, int], figure: Callable[[str, str], str], neighbours: str = ""
) -> str:
    """The text without directives, roles and links that only the site can follow.

    numbers: of the chapter's labelled formulas. figure: (path, caption) -> what stands in place of a figure.
    neighbours: the way to the folder with all chapters' notebooks, "../", where it lies among them.
    An exercise becomes a headed paragraph, solutions and dropdowns fold, a citation is author and year, a labelled
    formula has its number.
    """

    def block(match: re.Match) -> str:
        name, argument = match["name"], match["argument"].strip()
        options = dict(OPTION.findall(match["body"]))
        body = inside(OPTION.sub("", match["body"]).strip())
        if name == "figure":
            return figure(argument, body)
        if name in ("index", "container"):  # entries of the site's index, a class of its style
            return body
        title = "Solution" if name == "solution" else argument or options.get("title", name.capitalize())
        if name == "exercise":
            title = f"Exercise{': ' + argument if argument else ''}"
        if name == "solution" or options.get("class") == "dropdown":
            return f"<details>\n<summary>{title}</summary>\n\n{body}\n\n</details>"
        return f"**{title}**\n\n{body}"

    def role(match: re.Match) -> str:
        name, text = match["name"], match["text"]
        if name == "eq":
            said = f"({numbers[text]})"
        elif name == "ref":
            said = text.partition(" <")[0]
        else:
            said = _cited(text.split(","), name == "cite:t", match.string[: match.start()])
        return f"{match['space']}{said}" if said else ""

    def link(match: re.Match) -> str:
        """To the notebook beside this one; else its words, and the title of the page that it leads to."""
        text, page = match["text"], match["page"]
        if not page:
            return text
        if neighbours and match["kind"] == "ipynb":
            return f"[{text}]({neighbours}{page}.ipynb)"
        title = f"*{_title(page)}*"
        return title if text.strip("*") == title.strip("*") else f"{text} ({title})"

    def inside(text: str) -> str:
        text = EXPLORER.sub(r"*On the site of the book this can be explored by hand.*\n\g<still>", text)
        text = LABELLED.sub(lambda m: f"$${m['formula']} \\tag{{{numbers[m['label']]}}}\n$$", text)
        text = LINK.sub(link, ROLE.sub(role, text))
        return re.sub(r"^(?:\([a-z0-9-]+\)=|% [^\n]*)\n", "", text, flags=re.M)  # labels, comments

    return inside(BLOCK.sub(block, text))


def _title(page: str) -> str:
    """The heading of a page of the book, of one that only the site has its name."""
    path = paths.book_folder() / f"{page}.md"
    found = re.search(r"^# (.+)$", path.read_text(encoding="utf-8"), re.M) if path.is_file() else None
    return found[1] if found else page


def _cited(keys: Sequence[str], in_text: bool, before: str) -> str:
    """Author and year of entries of book/references.bib: "(Ioffe and Szegedy 2015)", in a text "Ioffe and Szegedy
    (2015)"; behind the name itself, which ends what stands `before`, the year alone."""
    said = []
    for key in map(str.strip, keys):
        fields = claims.references().get(key, {})
        names = [name.partition(",")[0] for name in fields.get("author", key).split(" and ")]
        who = " and ".join(names) if len(names) < 3 else f"{names[0]} et al."
        known = (who, f"{names[0]} and others", names[-1])
        who = "" if before.rstrip().lower().endswith(tuple(map(str.lower, known))) else who
        year = fields.get("year", "")
        said.append(f"{who} ({year})" if in_text and year else f"{who} {year}".strip())
    return ", ".join(said) if in_text else f"({'; '.join(said)})" if any(said) else ""


# ---- The notebook that is handed out: a chapter in plain Markdown that runs by itself, at the smoke profile --------

TO_RUN = (
    "**To run it**, here or in a hosted notebook such as Colab, run all cells: the first one installs what "
    "is missing, the book's package ({package}) among it. The parameters are those of the smoke "
    "profile (seconds on two cores, no download, too small for evidence); those of the book's run stand "
    "beside them. Change them in their cell, or run it from a shell with other ones: "
    "`papermill NOTEBOOK.ipynb out.ipynb -p seeds 3`."
)
TO_RUN_AGAIN = (
    "**To run it again**, run all cells, or `papermill NOTEBOOK.ipynb out.ipynb -p seeds 3` from a shell: what `-p` "
    "names changes, all other parameters stay those of this run. The first cell installs what is missing, the book's "
    "package ({package}) among it."
)


#: The head of the parameters' cell.
PROFILE = "# profile only names this run, it changes no value."
BOOKS = """ For the book's run set it to "{profile}"
# and each value below to what its comment calls the book's; in the book's folder:
# {command} run {chapter} --profile {profile}"""
#: Tag of a cell -> what of it JupyterLab shows folded.
FOLDED = {"hide-input": ["source"], "hide-output": ["outputs"], "hide-cell": ["source", "outputs"]}


def notebook(chapter: Chapter, shown: prose.Pages, *, own: bool = False, lab: bool = False) -> Any:
    """The chapter's notebook for a reader's own machine.

    Its text is plain Markdown with the numbers of the run that `shown` has, each caption under the cell that draws its
    figure, and the book's main figure where the notebook draws its own; the smoke parameters are active, the run's stand
    beside them; what the book folds is folded; the last cell judges what the notebook has measured by the book's claims.
    own: with the run's parameters active and its outputs. lab: among the notebooks of all chapters.
    """
    evidence, page = shown.evidence.get(chapter.name), chapter.notebook.copy()
    used = evidence.results.header["parameters"] if evidence else {}
    made = iter(chapter_runs.ran_cells(evidence.notebook)) if own else None
    drawn, main = _drawing_cells(page.cells), next(iter(pictures.shown(chapter)), "")
    stored = _drawn(evidence, main) if evidence and not own and main in drawn else []
    neighbours = "../" * chapter.name.count("/") * lab
    about = (
        {"profile": evidence.profile, "command": command_name(), "chapter": chapter.name} if evidence else {}
    )
    head = PROFILE + (BOOKS.format(**about) if about else "")
    numbers = equation_numbers(chapter.text)
    below = [markdown_cell("") for _ in page.cells]  # captions of what each cell draws

    def caption(path: str, text: str) -> str:
        name = Path(path).stem
        if (place := drawn.get(name)) is None:
            return f"*Figure {name}.* {text}"
        words = "the cell above draws it from your run; this caption tells of the book's"
        if own:
            words = "the cell above draws it when it runs"
        elif stored and name == main:
            words = "the book's own run; running the cell above puts yours in its place, and this caption stays the book's"
        below[place].source = f"{below[place].source}\n\n*Figure {name}: {words}.* {text}".lstrip()
        return ""

    cells: list[Any] = []
    for number, original in enumerate(page.cells):
        source = original.source
        if original.cell_type == "markdown":
            text = plain(prose.fill(source, chapter.name, shown), numbers, caption, neighbours)
            cells.append(markdown_cell(re.sub(r"\n{3,}", "\n\n", text).strip()))
        elif is_parameters(original):
            source = with_values(source, used) if own else f"{head}\n{with_values(source, {}, used)}"
            cells.append(code_cell(source, metadata={"tags": ["parameters"]}))
        elif own or not re.search(r"^show_verdicts\(", source, re.M):
            tags = original.metadata.get("tags", [])
            folded = {f"{part}_hidden": True for tag in tags for part in FOLDED.get(tag, ())}
            cells.append(code_cell(source, metadata={"jupyter": folded} if folded else {}))
        if made and original.cell_type == "code" and not only_defines(original):
            ran = next(made)
            cells[-1] |= {each: ran[each] for each in ("outputs", "execution_count")}
            cells[-1].metadata |= ran.metadata
        elif number == drawn.get(main):
            cells[-1]["outputs"] = stored
        cells.append(below[number])
    to_run = (TO_RUN_AGAIN if own else TO_RUN).format(package=f"{book().package} {book().version}")
    title, _, rest = cells[0].source.partition("\n")
    cells[0].source = f"{title}\n\n{_about(evidence, own)}\n\n{to_run}\n{rest}"
    cells.insert(1, setup_cell(repository(), str((settings().get("html") or {}).get("baseurl") or "")))
    has_claims = any(claim.chapter == chapter.name for claim in shown.claims)
    if has_claims and not (own and any("show_verdicts(" in source for source in chapter.code_cells)):
        call = f'show_verdicts("{chapter.name}", profile{", exact=True" if chapter.exact else ""})'
        cells.append(markdown_cell("## This run beside the book's"))
        cells.append(code_cell(f"from {book().package}.claims import show_verdicts\n\n{call}"))
    page["cells"] = [cell for cell in cells if cell.source]
    for number, cell in enumerate(page.cells):
        cell["id"] = f"cell-{number}"
        if own and cell.cell_type == "code" and "papermill" not in cell.metadata:
            cell.metadata["tags"] = [chapter_runs.ADDED]
    page.metadata["language_info"] = {"name": "python", "file_extension": ".py", "mimetype": "text/x-python"}
    page.metadata[book().package] = {"chapter": chapter.name, "content": content(page)}
    return page


def finish(evidence: Evidence) -> None:
    """Write a run's own notebook as it is handed out: its numbers in the text, its parameters in their cell, so
    that papermill's `-p` changes one of them and leaves the others."""
    found = {chapter.name: next(iter(published_runs(chapter)), None) for chapter in discover()}
    shown = prose.Pages(found | {evidence.chapter.name: evidence}, claims.load_claims())
    page = notebook(evidence.chapter, shown, own=True)
    atomic.write_text(evidence.notebook_path, nbformat.writes(page))


def content(page: Any) -> str:
    """SHA-256 of the sources of a notebook's cells: tells whether somebody has worked in it."""
    return hashlib.sha256("\0".join(cell.source for cell in page.cells).encode()).hexdigest()


def write(folder: Path, chapters: Sequence[Chapter], shown: prose.Pages, lab: bool = False) -> list[Path]:
    """Write PART/chapter.ipynb for each chapter; `lab`: a reader's own folder, where links lead from one to the other
    and none is written over in which somebody has worked.

    Returns those that were kept although the book's differ.
    """
    kept = []
    for chapter in chapters:
        path, page = folder / f"{chapter.name}.ipynb", notebook(chapter, shown, lab=lab)
        if lab and path.is_file():
            written, now = _worked_in(path)
            if written == page.metadata[book().package]["content"]:
                continue  # with the outputs and the edits of its reader
            if now != written:
                kept.append(path)
                continue
        atomic.write_text(path, nbformat.writes(page))
    return kept


def _worked_in(path: Path) -> tuple[str | None, str]:
    """What a notebook had for content when it was written, and what it has now."""
    try:
        old = nbformat.read(path, as_version=4)
        return old.metadata.get(book().package, {}).get("content"), content(old)
    except Exception:  # whatever nbformat says of a file that is no notebook: it is its reader's
        return None, ""


def _drawing_cells(cells: Sequence[Any]) -> dict[str, int]:
    """Figure -> number of the code cell that saves it under that name, where one does."""
    return {
        name: number
        for number, cell in enumerate(cells)
        if cell.cell_type == "code"
        for name in re.findall(r"figure\([^\n]*?\"([a-z0-9-]+)\"", cell.source)
    }


def _about(evidence: Evidence | None, own: bool = False) -> str:
    """On which run the printed numbers rest."""
    if evidence is None:
        return "*The book has no run of this chapter: its numbers are missing (—) until you run the cells.*"
    made = evidence.results.header["provenance"]
    run = f"{evidence.profile} run of {made['date']} (commit {made['commit'][:7]})"
    if own:
        return (
            f"*The numbers in the text are those of the {run} whose outputs stand below, also after you run the cells "
            "again, and the sentences state the book's verdicts; then the last cell sets yours beside the book's.*"
        )
    real = [each for each in evidence.chapter.data if not each.endswith("-standin")]
    names = " and ".join(book().data_names.get(each, each) for each in real)
    small = f"small settings and stand-ins for {names}" if names else "small settings"
    return (
        f"**The text, its tables and captions speak of the book's {run}, also below cells that you have run; this "
        f"notebook's cells start with {small}, and what they print and draw is of your run.** The last cell sets it beside "
        "the book's."
    )


def _drawn(run: Evidence, name: str) -> list[Any]:
    """The figure of the book's run as an output of the cell that draws it."""
    if (picture := pictures.picture(run)) is None:
        return []
    shown = {"image/png": base64.b64encode(picture).decode(), "text/plain": f"<the book's figure {name}>"}
    return [new_output("display_data", shown)]


# ---- The wheel of the book's package that the site offers, for a notebook that has been taken away ---------------------

#: Beside the code, what the package is made by; the interpreter's setuptools makes it, nothing is fetched.
MADE_BY = ("pyproject.toml", "MANIFEST.in", "README.md", "LICENSE", "LICENSE-text")
MAKES_WHEEL = "import sys; from setuptools import build_meta; build_meta.build_wheel(sys.argv[1])"


def is_offered() -> bool:
    """Whether the package that makes this book has its code in the book's repository."""
    root = paths.repository_root()
    return (root / "pyproject.toml").is_file() and root in folders()[book().package].parents


def write_wheel(folder: Path, chapters: Sequence[Chapter], shown: prose.Pages) -> Path | None:
    """Write the wheel, with the claims and verdicts that `shown` has, into the folder; None where none is offered."""
    if not is_offered():
        return None
    root = paths.repository_root()
    with tempfile.TemporaryDirectory() as temporary:
        copy = Path(temporary) / "source"
        left_out = shutil.ignore_patterns("__pycache__", "*.egg-info")
        shutil.copytree(root / "src", copy / "src", ignore=left_out)
        for name in filter(lambda name: (root / name).is_file(), MADE_BY):
            shutil.copyfile(root / name, copy / name)
        told = carried(chapters, shown)
        (copy / "src" / book().package / CARRIED).write_text(told, encoding="utf-8")
        folder.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, "-c", MAKES_WHEEL, str(folder.resolve())]
        surroundings = {"cwd": copy, "env": os.environ | {"PYTHONUTF8": "1"}}
        done = subprocess.run(command, **surroundings, capture_output=True, encoding="utf-8")
    made = folder / wheel()
    if done.returncode or not made.is_file():
        said = (done.stderr or done.stdout).strip().splitlines()[-1:]
        raise PressError(f"the package's wheel {made.name} could not be made: {' '.join(said)}")
    return made


def link_to_wheel() -> str:
    """Where a page of the site's first folder finds it, or how one is made where it offers none."""
    name = wheel()
    if is_offered():
        return f'<a href="data/{name}" download>{name}</a>'
    return f"{name} (made with `pip wheel --no-deps .` in the package's repository)"


def carried(chapters: Sequence[Chapter], shown: prose.Pages) -> str:
    """The claims of these chapters with the book's verdicts, and the parameters of its runs, as the wheel carries them."""
    runs = {}
    for chapter in chapters:
        mine = (claim for claim in shown.claims if claim.chapter == chapter.name)
        run = shown.evidence.get(chapter.name)
        runs[chapter.name] = {
            "claims": [as_plain(claims.as_carried(claim, shown.judgement(claim))) for claim in mine],
            "parameters": run.results.header["parameters"] if run else None,
        }
    return json.dumps(runs, ensure_ascii=False)


def main(given: list[str]) -> int:
    """Write the notebooks of all chapters into the one folder that is named, as `make lab` does."""
    if len(given) != 1:
        raise PressError("one folder is needed: python -m bookpress.pipeline.handout DIR")
    chapters = discover()
    words = (
        f"{len(chapters)} chapters go into {given[0]}/ as notebooks: half a minute, more on a busy machine"
    )
    print(words, flush=True)
    evidence = {chapter.name: passed_run(chapter) for chapter in chapters}
    kept = write(Path(given[0]), chapters, prose.Pages(evidence, claims.load_claims()), lab=True)
    for path in kept:
        print(f"{path} stays as you left it, and the book has a newer one: delete it to get that")
    return 0


if __name__ == "__main__":
    sys.exit(guarded(lambda: main(sys.argv[1:])))
