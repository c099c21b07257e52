"""Other code that gives the same numbers keeps a run fresh; other numbers are refused with their names and sizes."""

from __future__ import annotations

import json
import shutil
import subprocess

import pytest
from locked_coin import COIN, coin

import bnbook
from bookpress import results, stamp
from bookpress.claims import locks
from bookpress.errors import PressError
from bookpress.pipeline import same
from bookpress.pipeline.chapter_runs import published
from bookpress.results import Results


@pytest.fixture
def page(tiny, tmp_path_factory):
    """The coin's page, committed with the package, and published by the code that it has."""
    shutil.copytree(stamp.folders()[bnbook.__name__], tiny / "src" / "bnbook")
    shutil.copytree(stamp.folders()["bookpress"], tiny / "src" / "bookpress")
    git = ["git", "-C", str(tiny), "-c", "user.name=Ann", "-c", "user.email=ann@example.org"]
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "A coin"]):
        subprocess.run([*git, *words], check=True)
    run = published(coin(), "laptop")
    run.results_path.parent.mkdir(parents=True)
    parameters = coin().parameters("laptop")
    made = stamp.of_chapter(coin().code_cells, parameters, [])
    header = {"chapter": COIN, "profile": "laptop", "parameters": parameters, "fingerprint": made}
    run.results_path.write_text(
        json.dumps(results.as_content(Results(header | {"default_parameters": True})))
    )
    run.notebook_path.write_text("")
    return tiny / "book" / "part" / "coin.md"


def test_what_gives_the_same_numbers_is_fresh_again_and_what_does_not_is_refused(page):
    assert "nothing to say" in same.same(coin())[0]
    text = page.read_text()
    page.write_text(text.replace("shares", "parts"))
    assert published(coin(), "laptop").stale() == ["code"] and same.is_stale(coin())
    (line,) = same.same(coin())
    assert "6 numbers in 2 results" in line and "the cells" in line
    assert published(coin(), "laptop").stale() == [] and locks.read().lines[-1].event == "same"

    page.write_text(text.replace("/ tosses", "/ (tosses + 1e-9)"))
    with pytest.raises(
        PressError, match=r"1 of 2 results differ at the smoke profile: heads by up to \S+ of"
    ):
        same.same(coin())
    page.write_text(text.replace('record("draws"', 'record("drawn"'))
    with pytest.raises(PressError, match="differ at the smoke profile: draws is gone; expected"):
        same.same(coin())
    assert len(locks.read().lines) == 1

    page.write_text(text.replace('record("draws"', 'record("more", shares)\nrecord("draws"'))
    assert "6 numbers in 2 results" in same.same(coin())[0]  # what is new changes nothing that stood


def test_a_cell_that_only_defines_may_come_and_go_and_what_cells_print_may_not_change(page):
    text = page.read_text()
    record = 'record("draws"'
    cell = "```{code-cell} ipython3\nimport math\n\n\ndef same(values):\n    return values\n```\n\n"
    head, last = text.rsplit("```{code-cell}", 1)
    page.write_text(f"{head}{cell}```{{code-cell}}{last.replace('shares)', 'same(shares))')}")
    assert "the cells" in same.same(coin())[0] and published(coin(), "laptop").stale() == []

    page.write_text(text.replace(record, f'print("tossed")\n{record}'))
    with pytest.raises(PressError, match=r"prints '.*tossed\\n' and printed '.*'; expected the same words"):
        same.same(coin())
    page.write_text(f"{head}```{{code-cell}} ipython3\n1\n```\n\n```{{code-cell}}{last}")
    with pytest.raises(PressError, match="3 cells, 2 before, those that only define something not counted"):
        same.same(coin())
