"""The wheel that the site offers: it has the claims and verdicts, and a notebook alone finds and uses it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import nbformat
import pytest
from conftest import ROOT

from bnbook import __version__
from bookpress import claims
from bookpress.pipeline import chapter_runs, chapters, handout, prose

NAME = "decoupling/least-squares"


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Path:
    """The wheel with one chapter's claims, judged by its laptop run."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BNBOOK_ROOT", str(ROOT))
        chapter = next(each for each in chapters.discover() if each.name == NAME)
        run = chapter_runs.published(chapter, "laptop")
        mine = [claim for claim in claims.load_claims() if claim.chapter == NAME]
        yield handout.write_wheel(tmp_path_factory.mktemp("data"), [chapter], prose.Pages({NAME: run}, mine))


def test_it_has_the_code_the_templates_and_the_claims(made):
    assert made.name == f"bnbook-{__version__}-py3-none-any.whl"
    with zipfile.ZipFile(made) as archive:
        names = set(archive.namelist())
        carried = json.loads(archive.read("bnbook/carried.json"))[NAME]
    assert {"bnbook/book.py", "bookpress/templates/search.js", "bookpress/templates/foot.html.j2"} <= names
    verdicts = {row["claim"]["id"]: row["verdict"] for row in carried["claims"]}
    assert verdicts["ols-faster-than-gradient-descent"].startswith("reproduced")
    assert carried["parameters"]["profile"] == "laptop"


SCRIPT = """
import sys
from IPython.display import Markdown
import IPython.display
IPython.display.display = lambda shown: print(shown.data)
from bnbook.claims import load_claims, show_verdicts
assert {claim.chapter for claim in load_claims()} == {%r}
show_verdicts(%r, "smoke")
"""


def run_setup(folder, address="", script="", **more):
    """Run the set-up cell, and a script below it, in a Python that has the third parties and not bnbook; pip writes into
    the folder's `site`."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "BNBOOK_"))}
    third = Path(nbformat.__file__).parents[1]
    clean |= {"PYTHONPATH": os.pathsep.join([str(folder / "site"), str(third)]), "OMP_NUM_THREADS": "1"}
    clean |= {"PIP_TARGET": str(folder / "site"), "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": "", **more}
    source = handout.setup_cell(address).source + script
    command = [sys.executable, "-S", "-c", source]  # -S: without what site-packages install for development
    return subprocess.run(command, capture_output=True, text=True, cwd=folder, env=clean)


@pytest.mark.parametrize("place", [".", ".."])
def test_a_notebook_alone_installs_it_from_beside_itself_or_one_folder_up(made, tmp_path, place):
    folder = tmp_path / "notebooks"
    folder.mkdir()
    done = run_setup(folder)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == f"ModuleNotFoundError: {handout.by_hand()}"
    (folder / place / made.name).write_bytes(made.read_bytes())
    done = run_setup(folder, script=SCRIPT % (NAME, NAME))
    assert done.returncode == 0, done.stderr
    table = [row for row in done.stdout.splitlines() if row.startswith("|") and not row.startswith("| – ")]
    mine = claims.load_claims(ROOT / "book" / f"{NAME}.claims.yml")
    assert len(table) == 2 + len(mine) and any(row.endswith("| reproduced |") for row in table)
    again = run_setup(folder, PIP_TARGET=str(tmp_path / "none"))
    assert again.returncode == 0 and not (tmp_path / "none").exists(), "what is there stays as it is"


def test_the_setup_cell_asks_for_the_address(tmp_path):
    source = handout.setup_cell("https://code.example/a", "https://coins.example/b/").source
    assert f"source = 'https://coins.example/b/data/bnbook-{__version__}-py3-none-any.whl'" in source
    done = run_setup(tmp_path, f"file://{tmp_path}/nowhere")
    assert done.returncode == 1
    assert f"could not install --no-deps git+file://{tmp_path}/nowhere" in done.stderr.splitlines()[-1]


def test_of_a_package_whose_code_is_elsewhere_none_is_offered(ran):
    assert handout.write_wheel(ran / "data", [], prose.Pages({}, [])) is None and not (ran / "data").exists()
    assert "pip wheel --no-deps ." in handout.link_to_wheel()
