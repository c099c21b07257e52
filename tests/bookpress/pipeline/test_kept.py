"""What is kept by what it was computed from: asked again for the same, made anew for anything else."""

from __future__ import annotations

import pytest
from locked_coin import edit

from bookpress import stamp
from bookpress.atomic import kept
from bookpress.pipeline import chapters


@pytest.fixture
def cache(tmp_path, monkeypatch, tiny):
    monkeypatch.setenv("BNBOOK_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "kept"


def test_the_same_is_asked_for_once_and_anything_else_again(cache):
    made = iter(range(99))
    ask = lambda key="a", **more: kept("label", key, lambda: next(made), **more)
    assert [ask(), ask(), ask("b"), ask("b"), ask("a")] == [0, 0, 1, 1, 2]
    assert ask(fits=lambda value: value != 2) == 3 == ask()
    (file,) = cache.glob("*.json")
    for broken in ("", "[]", "{", '{"key": 1}', "[" * 100_000):
        file.write_text(broken)
        assert ask() == ask()
    file.unlink()
    cache.chmod(0o500)  # nowhere to write
    assert ask() in range(99)
    cache.chmod(0o700)


def test_cells_are_those_of_the_text(cache, tiny):
    (first,) = chapters.select(["coin"])
    before = first.notebook.copy()
    (again,) = chapters.select(["coin"])
    assert again.code_cells == first.code_cells and list(cache.glob("*.json"))
    assert again.notebook == before and type(again.notebook.cells[1]) is type(before.cells[1])
    edit(first.path, "import numpy as np", "import numpy as np\n\nOTHER = 1")
    assert chapters.select(["coin"])[0].code_cells != first.code_cells
    edit(first.path, "kernelspec:", "date: 2026-11-28\nkernelspec:")  # no word of JSON's
    assert chapters.select(["coin"])[0].notebook.metadata["date"].year == 2026


def test_a_stamp_is_that_of_the_code_as_it_is(cache, tmp_path, monkeypatch):
    """By what was read for it: another module may change, one that is met may not, nor one appear that was looked for."""
    package = tmp_path / "bnbook"
    package.mkdir()
    source = {
        "__init__": "",
        "one": "from bnbook import two\ndef f(): return two.g()",
        "two": "def g(): return 1",
        "three": "",
    }
    for name, text in source.items():
        (package / f"{name}.py").write_text(text)
    monkeypatch.setattr(stamp, "folders", lambda: {"bnbook": package, "bookpress": tmp_path / "bookpress"})
    counted = []
    of_cells = stamp._of_cells
    monkeypatch.setattr(stamp, "_of_cells", lambda *given: counted.append(1) or of_cells(*given))

    def now(name="three", text=""):
        (package / f"{name}.py").write_text(text)
        stamp.forget()
        return stamp.of_chapter(["from bnbook.one import f\nf()"], {}, [])["package"]

    first = now()
    assert now() == first and now("three", "x = 1") == first and len(counted) == 1
    assert now("two", "def g(): return 2") != first and len(counted) == 2
    assert now("two", source["two"]) == first and len(counted) == 3
    stamp.forget()
