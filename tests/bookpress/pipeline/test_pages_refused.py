"""What no page is made of: evidence that the locks do not know, scripts of others; and what is whole or not there."""

from __future__ import annotations

import errno
import os
from types import SimpleNamespace

import pytest
from locked_coin import edit_results, laptop_run

from bnbook.errors import BnbookError
from bookpress import atomic, paths
from bookpress.claims import locks
from bookpress.cli import main
from bookpress.pipeline import chapter_runs, pictures, publishing
from bookpress.site import build, pages


def test_no_site_is_built_of_what_the_locks_do_not_know(tiny, monkeypatch):
    monkeypatch.setattr(pages, "stage", lambda *_: pytest.fail("pages were made"))
    with pytest.raises(BnbookError, match="claim coin-fair has no lock"):
        build.build(None)
    main(["lock"])
    monkeypatch.setattr(locks, "now", lambda: "2000-01-01T00:00Z")
    with pytest.raises(BnbookError, match="line 1 is dated 2.*; expected 2000-01-01T00:00Z or earlier"):
        build.build(None)


INCOMPLETE = "source: {key: folklore, version: oral}\ncomplete: true\nsentences:\n- {where: x, says: y, not_judged: 'open: z'}\n"


@pytest.mark.parametrize(
    ("file", "old", "new", "said"),
    [
        ("coverage/song.yml", "", INCOMPLETE, "it is complete, but no sentence leads to coin-fair"),
        ("index.md", "mean:part", "mean:prt", "'prt/coin'|prt/coin#heads"),
        ("part/coin.md", "Is it fair?", "{{ stands:coin-fare = yes }}", "did you mean coin-fair"),
    ],
)  # fmt: skip
def test_what_cannot_be_filled_in_is_said_before_a_figure_is_drawn(ran, monkeypatch, file, old, new, said):
    monkeypatch.setattr(pictures, "put", lambda *_: pytest.fail("figures were drawn"))
    if file.startswith("coverage"):
        monkeypatch.setattr(pages, "passed_run", lambda *_: pytest.fail("runs were read"))
    path = ran / "book" / file
    path.parent.mkdir(exist_ok=True)
    path.write_text(path.read_text().replace(old, new) if old else new)
    with pytest.raises(BnbookError, match=said):
        build.build("smoke")


@pytest.mark.parametrize("verdict", ["holds", "holds if …"])
def test_no_page_says_wrong_of_what_holds(verdict):
    row = SimpleNamespace(id="printed", kind="wrong", claim="c")
    with pytest.raises(BnbookError, match="printed in errata.yml: wrong is what the ledger calls holding"):
        pages.errata([row], [], SimpleNamespace(rows={"c": {"verdict": verdict}}))


def test_two_builds_at_once_are_one_clear_line(ran, monkeypatch):
    monkeypatch.setattr(pages, "stage", lambda *_: pytest.fail("pages were made"))
    with (
        atomic.alone(paths.build_folder() / ".lock", AssertionError()),
        pytest.raises(BnbookError, match="another process builds the site"),
    ):
        build.build("smoke")


@pytest.mark.parametrize("cut", range(4))
def test_a_publication_that_is_cut_short_is_whole_after_the_next(ran, monkeypatch, cut):
    """A disk that is full at any of its steps."""
    publishing.publish(laptop_run().chapter, "laptop")
    edit_results(lambda content: content["results"]["heads"]["values"].__setitem__(0, 0.4))
    steps = iter(range(100))

    def full(original):
        def step(*words):
            if next(steps) == cut:
                raise OSError(errno.ENOSPC, "No space left on device")
            return original(*words)

        return step

    told = r"could not be published \(No space left on device\); mend that and .* git checkout executed book/locks.jsonl"
    with monkeypatch.context() as patch, pytest.raises(BnbookError, match=told):
        patch.setattr(chapter_runs.os, "replace", full(os.replace))
        patch.setattr(locks, "append", full(locks.append))
        publishing.publish(laptop_run().chapter, "laptop")
    assert main(["publish", "coin", "--profile", "laptop"]) == 0 and main(["check"]) == 0
    found = chapter_runs.published(laptop_run().chapter, "laptop").results
    assert found.entries["heads"]["values"][0] == 0.4
    assert not [*paths.executed_folder().rglob(".*"), *paths.executed_folder().rglob("*.old")]
