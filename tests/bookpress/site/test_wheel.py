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
from bookpress.site import wheel

NAME = "decoupling/least-squares"


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Path:
    """The wheel with one chapter's claims, judged by its laptop run."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BNBOOK_ROOT", str(ROOT))
        chapter = next(each for each in chapters.discover() if each.name == NAME)
        run = chapter_runs.published(chapter, "laptop")
        mine = [claim for claim in claims.load_claims() if claim.chapter == NAME]
        yield wheel.write(tmp_path_factory.mktemp("data"), [chapter], prose.Pages({NAME: run}, mine))


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


@pytest.mark.parametrize("place", [".", ".."])
def test_a_notebook_alone_installs_it_from_beside_itself_or_one_folder_up(made, tmp_path, place):
    folder = tmp_path / "notebooks"
    folder.mkdir()
    (folder / place / made.name).write_bytes(made.read_bytes())
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "BNBOOK_"))}
    third = Path(nbformat.__file__).parents[1]
    clean |= {"PYTHONPATH": os.pathsep.join([str(tmp_path / "site"), str(third)]), "OMP_NUM_THREADS": "1"}
    clean |= {"PIP_TARGET": str(tmp_path / "site"), "PIP_NO_INDEX": "1"}
    source = handout.setup_cell("").source + SCRIPT % (NAME, NAME)
    done = subprocess.run(
        [sys.executable, "-S", "-c", source], capture_output=True, text=True, cwd=folder, env=clean
    )
    assert done.returncode == 0, done.stderr
    table = done.stdout.strip().splitlines()
    mine = claims.load_claims(ROOT / "book" / f"{NAME}.claims.yml")
    assert len(table) == 2 + len(mine) and any(row.endswith("| reproduced |") for row in table)


def test_of_a_package_whose_code_is_elsewhere_none_is_offered(ran):
    assert wheel.write(ran / "data", [], prose.Pages({}, [])) is None and not (ran / "data").exists()
    assert "pip wheel --no-deps ." in wheel.link()
