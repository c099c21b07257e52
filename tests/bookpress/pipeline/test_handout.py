"""The notebook that is handed out: plain Markdown, runs alone, and ends with this run beside the book's."""

from __future__ import annotations

import ast
import base64
import hashlib
import json
import os
import re
import shutil
import sys

import nbformat
import numpy as np
import pytest
from conftest import ROOT

from bnbook.errors import BnbookError
from bookpress import claims, results
from bookpress.claims import ledger, reading
from bookpress.pipeline import chapter_runs, chapters, handout, prose
from bookpress.schema import as_plain, valid

#: Anything of MyST that a notebook editor would show as it is written.
RAW = re.compile(
    r"^(?:`{3,}|:{3,})\{[a-z]|\{[a-z:]+\}`|\{\{|^\([a-z0-9-]+\)=$|<div class=\"explorer\"|^% |"
    r"^\*\*! |\]\(/",
    re.M,
)


#: What the site folds of a cell -> what JupyterLab does.
SHUT = {
    "hide-input": ["source_hidden"],
    "hide-output": ["outputs_hidden"],
    "hide-cell": ["source_hidden", "outputs_hidden"],
}


@pytest.fixture
def alone(monkeypatch):
    """A session that has recorded and carries nothing yet."""
    monkeypatch.setattr(reading, "_carried", {})
    monkeypatch.setattr(results, "_session", results.Results())
    monkeypatch.delenv("BNBOOK_RESULTS", raising=False)


@pytest.fixture(scope="module")
def book() -> tuple[list, prose.Pages]:
    """The book's chapters and their committed laptop runs, fresh or not, None where there is none."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BNBOOK_ROOT", str(ROOT))
        found = chapters.discover()
        runs = [chapter_runs.published(chapter, "laptop") for chapter in found]
        known = {run.chapter.name: run if run.exists else None for run in runs}
        return found, prose.Pages(known, claims.load_claims())


def text(page) -> str:
    return "\n\n".join(cell.source for cell in page.cells if cell.cell_type == "markdown")


def test_every_notebook_of_the_book_is_plain(book, monkeypatch):
    monkeypatch.setattr(handout, "_drawn", lambda *_: [])  # of which one is looked at below
    without = prose.Pages(
        dict.fromkeys(book[1].evidence), book[1].claims
    )  # what a few chapters show of no run
    for place, chapter in enumerate(book[0]):
        assert re.search(r"^# .*\n% .*`make lab`", chapter.text, re.M), (
            "raw in JupyterLab, it says where it can be read"
        )
        for shown in (book[1], without) if place % 5 == 0 else (book[1],):
            page = handout.notebook(chapter, shown)
            nbformat.validate(page)
            left = [match[0] for match in RAW.finditer(text(page))]
            assert not left, (chapter.name, left)
            assert page.cells[0].source.startswith("# ")
            shut = {cell.source: set(cell.metadata.get("jupyter", ())) for cell in page.cells}
            for cell in chapter.notebook.cells:
                tags = {*cell.metadata.get("tags", ())} if "show_verdicts(" not in cell.source else set()
                parts = {part for tag, parts in SHUT.items() if tag in tags for part in parts}
                assert shut.get(cell.source, parts) == parts, (chapter.name, cell.source)
            last = "profile, exact=True)" if chapter.exact else "profile)"
            judged = any(claim.chapter == chapter.name for claim in shown.claims)
            assert page.cells[-1].source.endswith(last) or not judged
        code = [cell.source for cell in page.cells if cell.cell_type == "code"]
        assert sum("show_verdicts(" in source for source in code) == judged, "its table comes once"
        assert set(chapter.code_cells) - set(code) <= {c for c in chapter.code_cells if "show_verdicts(" in c}


#: What a page says in MyST -> in plain Markdown.
MYST = {
    "See {cite}`a, b` and {cite:t}`c`.": "See (Ann 2001; Bob and Cy 2002) and Di et al. (2003).",
    "Ann {cite}`a`, Bob and Cy {cite}`b`": "Ann (2001), Bob and Cy (2002)",
    "Di et al. {cite}`c` or Di, Bob and Cy {cite}`c` or Di and others {cite}`c`": (
        "Di et al. (2003) or Di, Bob and Cy (2003) or Di and others (2003)"
    ),
    "Wiki {cite}`d` says, or the page {cite}`d`": "Wiki says, or the page (Wiki)",
    "{eq}`two` follows from {eq}`one`": "(2) follows from (1)",
    "and {ref}`the exercise <x>`": "and the exercise",
    "[tossed](/part/coin.ipynb), [Figure 1](#a)": "tossed (*A coin*), Figure 1",
    "[*A tiny book*](/index.md), [all](/made.md)": "*A tiny book*, all (*made*)",
    "[Out](https://example.org/a)": "[Out](https://example.org/a)",
    "% a comment\n(there)=\n$$\na = b\n$$ (one)\n\n$$ c = d $$": "$$\na = b \\tag{1}\n$$\n\n$$ c = d $$",
    "$$ e = f $$ (two)": "$$ e = f \\tag{2}\n$$",
    "```{exercise} A title\n:label: x\n\nDo it.\n```": "**Exercise: A title**\n\nDo it.",
    "````{solution} x\n:class: dropdown\n\n```python\ndone = True\n```\n````": (
        "<details>\n<summary>Solution</summary>\n\n```python\ndone = True\n```\n\n</details>"
    ),
    "```{figure} coin.figures/shares.svg\n:name: coin-shares\n:alt: A line.\n\nIts caption with $x$.\n```": (
        "<coin.figures/shares.svg: Its caption with $x$.>"
    ),
    "```{note}\nMind.\n```": "**Note**\n\nMind.",
    ":::{admonition} A proof of $x$\n:class: dropdown\n\nSo [it](/part/coin.ipynb) is.\n:::": (
        "<details>\n<summary>A proof of $x$</summary>\n\nSo it (*A coin*) is.\n\n</details>"
    ),
    "```{index} ! rank collapse\n```\n\n:::{container} rungs\nOne.\n:::": "\n\nOne.",
    '<div class="explorer" data-explorer="fuse">\n\n| a |\n|---|\n\n</div>\n\nMore.': (
        "*On the site of the book this can be explored by hand.*\n\n| a |\n|---|\n\n\nMore."
    ),
}
BIBLIOGRAPHY = """@misc{a,
  author = {Ann, A.},
  year = {2001}
}
@misc{b,
  author = {Bob, B. and Cy, C.},
  year   = {2002},
}
@misc{c,
  author = {Di, D. and Bob, B. and Cy, C.},
  year = {2003}
}
@misc{d,
  author = {{Wiki}}
}
"""


def test_the_text_without_directives_and_roles(tiny):
    (tiny / "book" / "references.bib").write_text(BIBLIOGRAPHY)
    numbers = handout.equation_numbers("\n\n".join(MYST))
    assert numbers == {"one": 1, "two": 2}
    for text, plain in MYST.items():
        assert handout.plain(text, numbers, lambda path, caption: f"<{path}: {caption}>") == plain
    beside = handout.plain("[tossed](/part/coin.ipynb), [all](/made.md)", {}, str, neighbours="../")
    assert beside == "[tossed](../part/coin.ipynb), all (*made*)"


def test_a_chapter_as_it_is_handed_out(ran):
    chapter = chapters.select(["coin"])[0]
    run = chapter_runs.fresh_run(chapter, "laptop")
    page = handout.notebook(chapter, prose.Pages({"part/coin": run}, claims.load_claims()))
    kinds = [(cell.cell_type, cell.source) for cell in page.cells]
    assert kinds[0][1].startswith(
        "# A coin\n\n**The text, its tables and captions speak of the book's laptop run"
    )
    assert "cells start with small settings, and" in kinds[0][1]
    assert "of 400 tosses" in kinds[0][1] and "**To run it**" in kinds[0][1]
    parameters = next(source for _, source in kinds if '\nprofile = "smoke"\n' in source)
    assert parameters.startswith(
        "# profile only names this run, it changes no value. For the book's run set it"
    )
    assert "bnbook run part/coin --profile laptop\n" in parameters
    assert "tosses = 100  # the book's run: 400; tosses a run\n" in parameters
    assert "rate = 0.5  # chance of heads\n" in parameters
    assert page.cells[1].source.startswith("# @title Set-up") and "source = ''  #" in page.cells[1].source
    drawing = next(k for k, (_, source) in enumerate(kinds) if 'figure("shares"' in source)
    assert kinds[drawing + 1][1].startswith(
        "*Figure shares: the book's own run; running the cell above puts yours in its place, and this caption"
    )
    assert "| A coin shows heads half of the time." in text(page)
    assert not [source for _, source in kinds if "carry(" in source], "the package carries the claims"
    own = handout.notebook(chapter, prose.Pages({"part/coin": run}, claims.load_claims()), own=True)
    for each in (page, own):
        shut = {cell.source: "jupyter" in cell.metadata for cell in each.cells if cell.cell_type == "code"}
        assert [shut for source, shut in shut.items() if 'figure("shares"' in source] == [True]
        assert [shut for source, shut in shut.items() if "\nseeds = " in source] == [False]
    assert "*Figure shares: the cell above draws it when it runs.* The share" in text(own)
    without = handout.notebook(chapter, prose.Pages({"part/coin": None}, claims.load_claims()))
    assert (
        "*Figure shares: the cell above draws it from your run; this caption tells of the book's.*"
        in text(without)
    )
    assert [cell for cell in without.cells if cell.source.startswith(f"{handout.PROFILE}\nprofile")]
    (shown,) = page.cells[drawing].outputs
    assert base64.b64decode(shown["data"]["image/png"]).startswith(b"\x89PNG")
    assert not [cell for k, cell in enumerate(page.cells) if k != drawing and cell.get("outputs")]
    assert kinds[-1] == (
        "code",
        'from bnbook.claims import show_verdicts\n\nshow_verdicts("part/coin", profile)',
    )


def copied(tmp_path):
    """The package as a wheel would install it, outside any repository, and an empty folder to work in."""
    shutil.copytree(ROOT / "src", tmp_path / "site")
    (tmp_path / "empty").mkdir()
    return tmp_path / "site", tmp_path / "empty"


@pytest.mark.parametrize("name", ["decoupling/least-squares", "mean-field/readout"])
def test_it_runs_from_the_top_without_the_repository(book, tmp_path, monkeypatch, name):
    from nbclient import NotebookClient

    site, empty = copied(tmp_path)
    for variable in [each for each in os.environ if each.startswith("BNBOOK_")]:
        monkeypatch.delenv(variable)
    monkeypatch.setenv("PYTHONPATH", str(site))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path / "cache"))
    chapter = next(chapter for chapter in book[0] if chapter.name == name)
    page = handout.notebook(chapter, book[1])
    assert ("small settings and stand-ins for MNIST and CIFAR-10, and" in page.cells[0].source) == bool(
        chapter.data
    )
    carried = handout.carried([chapter], book[1])
    (site / "bnbook" / reading.CARRIED).write_text(carried, encoding="utf-8")  # as the site's wheel has it
    page.cells.insert(
        -1, nbformat.v4.new_code_cell("import bnbook\nprint(bnbook.__file__)\nrecord('again', [1])\n" * 2)
    )
    client = NotebookClient(
        page, timeout=300, kernel_name="python3", resources={"metadata": {"path": str(empty)}}
    )
    client.execute()
    assert str(site) in page.cells[-2].outputs[0].text, "it is this package that ran"
    above, table = page.cells[-1].outputs[0]["data"]["text/markdown"].split("\n\n")
    mine = [claim for claim in book[1].claims if claim.chapter == name]
    rows = [row.split(" | ") for row in table.split("\n")[2:] if not row.startswith("| – ")]
    assert len(rows) == len(mine) and "not judged" not in table
    assert above.startswith("Unlike the book's run, this smoke run has ")
    counts = [row[2].startswith("**") for row in rows]
    assert (set(counts), ledger.IN_QUOTES in above) == ({chapter.exact}, not chapter.exact)
    shown = [output for cell in page.cells if cell.cell_type == "code" for output in cell.outputs]
    figures = [output for output in shown if "image/png" in output.get("data", {})]
    assert len(figures) == chapter.text.count("```{figure}"), "each figure is shown below its cell"
    assert not list(empty.iterdir()), "nothing is left beside the notebook"


def test_a_copy_that_somebody_worked_in_stays(ran, tmp_path):
    def shown(profile):
        return prose.Pages({"part/coin": chapter_runs.fresh_run(chapter, profile)}, claims.load_claims())

    chapter = chapters.select(["coin"])[0]
    chapter.path.write_text(chapter.path.read_text() + "\nWhy [it](/part/coin.ipynb) is.\n")
    chapter = chapters.select(["coin"])[0]
    lab, path = tmp_path / "lab", tmp_path / "lab" / "part" / "coin.ipynb"
    before = {p: hashlib.sha256(p.read_bytes()).digest() for p in (ran / "book").rglob("*") if p.is_file()}
    assert handout.write(lab, [chapter], shown("smoke"), lab=True) == []
    page = nbformat.read(path, 4)
    assert "Why [it](../part/coin.ipynb) is." in text(page)
    next(cell for cell in page.cells if cell.cell_type == "code").outputs = [
        nbformat.v4.new_output("stream", text="ran")
    ]
    nbformat.write(page, path)  # run, not changed
    assert handout.write(lab, [chapter], shown("smoke"), lab=True) == []
    assert "ran" in path.read_text(), "its outputs stay while the book's is the same"
    assert handout.write(lab, [chapter], shown("laptop"), lab=True) == []
    assert "laptop run" in path.read_text(), "untouched, it follows the book"
    path.write_text(path.read_text().replace("tosses = 100", "tosses = 123"))
    assert handout.write(lab, [chapter], shown("smoke"), lab=True) == [path]
    assert "tosses = 123" in path.read_text() and "laptop run" in path.read_text()
    assert handout.write(lab, [chapter], shown("smoke")) == [] and "tosses = 100" in path.read_text()
    assert "Why it (*A coin*) is." in path.read_text(), "alone it has no neighbours"
    for broken in ("", "{", "[]", '{"cells": 3}', "\udcfc"):
        path.write_bytes(broken.encode("utf-8", "surrogateescape"))
        assert handout.write(lab, [chapter], shown("smoke"), lab=True) == [path]
    assert before == {
        p: hashlib.sha256(p.read_bytes()).digest() for p in (ran / "book").rglob("*") if p.is_file()
    }


def test_the_claims_that_a_notebook_carries_are_the_books(book, alone, monkeypatch, tmp_path):
    rows = [reading.Carried(claim, "reproduced", (("0.1", "reproduced"),)) for claim in book[1].claims]
    claims.carry(json.dumps([as_plain(row) for row in rows]))
    assert reading.carried() == rows
    assert [row.claim.test_hash for row in reading.carried()] == [claim.test_hash for claim in book[1].claims]
    monkeypatch.setenv("BNBOOK_ROOT", str(tmp_path))
    assert claims.load_claims() == book[1].claims, "where there is no book they stand in for it"
    with pytest.raises(BnbookError, match="copy of the claims cannot be read; download the notebook again"):
        claims.carry("[{}]")


def made(**own) -> claims.Claim:
    """A claim on the results a and b, each of three seeds."""
    about = {"id": "c", "chapter": "p/c", "source": {"key": "k", "version": "v", "where": "w"}, "figure": "f"}
    return valid(claims.Claim, about | {"says": "So it is."} | own, "made up")


def above(name: str) -> dict:
    return {"kind": "level", "a": name, "side": "greater", "threshold": 0.0}


BOUND = {"kind": "identity", "tolerance": 0.1}
PARTS = made(parts=[{"says": "here", "test": above("a")}, {"says": "there", "test": above("b")}])
CORRECTED = made(test=BOUND | {"a": "a"}, corrected=BOUND | {"a": "b"}, correction="halved", statement=True)
ONE, UP, DOWN = made(test=above("a")), {"a": [1.0, 1.1, 1.2], "b": [1.0, 1.1, 1.2]}, [-1.0, -1.1, -1.2]
LEVEL = "<small>must hold: mean > 0</small>"
HIGH, LOW = (
    "<br><small>95 % interval 0.852 to 1.35</small>",
    "<br><small>95 % interval −1.35 to −0.852</small>",
)
#: Claim, what this run and the book's differ from UP by, profile, other settings; each line without its first words.
BESIDE = [
    (PARTS, {"b": DOWN}, {"a": DOWN}, "laptop", "", [
        "w; each part must hold</small> |  | **mixed** |  | mixed |",
        f"– here<br>{LEVEL} | 1.10{HIGH} | reproduced | −1.10{LOW} | not reproduced |",
        f"– there<br>{LEVEL} | −1.10{LOW} | not reproduced | 1.10{HIGH} | reproduced |",
    ]),
    (CORRECTED, {"b": [0.0]}, {"a": [0.0], "b": [0.0]}, "laptop", "", [
        "w; must hold: off by at most 0.1</small> | off by at most 1.2 | **wrong as printed, corrected** | exact | holds |",
        "– halved<br><small>must hold: off by at most 0.1</small> | exact | holds | – |  |",
    ]),
    (ONE, {}, {}, "laptop", "", [f"w; must hold: mean > 0</small> | 1.10{HIGH} | **reproduced** | 1.10{HIGH} | reproduced |"]),
    (ONE, {}, {}, "laptop", "steps = 6", [
        "Unlike the book's run, this laptop run has steps = 6. A verdict in quotes does not count: it is only what "
        "this run's numbers say by themselves.",
        f"w; must hold: mean > 0</small> | 1.10{HIGH} | “reproduced” | 1.10{HIGH} | reproduced |",
    ]),
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(BESIDE)))
def test_each_number_of_this_run_stands_beside_the_books_of_the_same_part(number):
    claim, mine, theirs, profile, other, lines = BESIDE[number]
    mine, theirs = ({name: np.array(v) for name, v in (UP | each).items()} for each in (mine, theirs))
    listed = [ledger.as_carried(claim, claims.judge(claim, theirs, "laptop"))]
    shown = ledger.comparison(listed, mine, profile, other).replace(ledger.SHOWN_HEAD, "").split("\n")
    assert [row.removeprefix("| So it is.<br><small>").removeprefix("| ") for row in shown if row] == lines


def test_a_run_that_does_not_count_is_said_to_once(alone, monkeypatch):
    """By its parameters; an exact chapter counts with any, and what is another is named just so."""
    listed, found = [ledger.as_carried(ONE, None)] * 2, {"a": np.array(UP["a"])}
    smoke = ledger.comparison(listed, found, "smoke")
    assert smoke.count("not count") == 1 and smoke.count("| “reproduced” |") == 2
    exact = ledger.comparison(listed, found, "smoke", "size = 10", exact=True)
    assert exact.startswith("Unlike the book's run, this smoke run has size = 10.\n\n| the source")
    assert exact.count("**reproduced**") == 2 and "not judged: claim c: result a is" in ledger.comparison(
        listed, {}, "laptop"
    )
    for values, said in (
        ({"profile": "laptop", "steps": 6}, "steps = 6"),
        ({"profile": "laptop", "steps": 9}, ""),
        ({"profile": "smoke", "steps": 9}, "another profile"),
    ):
        monkeypatch.setitem(reading.settings, "p/c", {"profile": "laptop", "steps": 9})
        assert ledger.unlike_the_books("p/c", results.current(), values) == said


def test_without_a_carried_copy_the_book_around_the_notebook_is_asked(ran, alone, capsys):
    assert [(row.claim.id, row.verdict) for row in ledger.of_the_book("part/coin")] == [
        ("coin-fair", "no committed run")
    ]
    shutil.copytree(ran / "runs" / "laptop", ran / "executed" / "laptop")
    (row,) = ledger.of_the_book("part/coin")
    assert row.verdict == "reproduced" and row.tests[0][0].startswith("0.")
    with pytest.raises(BnbookError, match="no claims for 'part/cion'"):
        ledger.of_the_book("part/cion")
    results.record("heads", [0.5, 0.6])
    results.record("heads", [0.4, 0.5])  # a cell that is run again
    claims.show_verdicts("part/coin", "smoke")
    assert "Markdown object" in capsys.readouterr().out


def test_under_bnbook_run_the_last_cell_is_silent(ran, alone, monkeypatch, capsys):
    monkeypatch.setenv("BNBOOK_RESULTS", str(ran / "x.json"))
    claims.show_verdicts("part/coin", "smoke")
    assert capsys.readouterr().out == ""


# ---- the set-up cell ----


def test_the_setup_cell_names_all_that_a_chapter_leads_to():
    """By the imports of the chapters and of every module of the package that they lead to."""
    modules = {}
    for path in (ROOT / "src").rglob("*.py"):
        parts = path.relative_to(ROOT / "src").with_suffix("").parts
        modules[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path.read_text("utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BNBOOK_ROOT", str(ROOT))
        due = [name for chapter in chapters.discover() for c in chapter.code_cells for name in imported(c)]
    seen, third = set(), set()
    while due:
        name = due.pop()
        if name not in seen and name in modules:
            due += imported(modules[name]) + [name.rpartition(".")[0]]
        elif name.split(".")[0] not in {"", "bnbook", "bookpress"} | sys.stdlib_module_names:
            third.add(name.split(".")[0])
        seen.add(name)
    others = {"pandas", "distributed"}  # only where it is there; only where a cluster is named
    assert third - others == set(handout.NEEDED)


def imported(source):
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            found += [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
    return found
