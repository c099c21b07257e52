"""What no page is made of: evidence that the locks do not know, scripts of others; and what is whole or not there."""

from __future__ import annotations

import base64
import errno
import hashlib
import json
import os
import re
from types import SimpleNamespace

import pytest
from locked_coin import edit_results, laptop_run

from bnbook.errors import BnbookError
from bookpress import atomic, paths
from bookpress.claims import locks
from bookpress.cli import main
from bookpress.pipeline import chapter_runs, publishing
from bookpress.site import build, pages, shell


def test_no_site_is_built_of_what_the_locks_do_not_know(tiny, monkeypatch):
    monkeypatch.setattr(pages, "stage", lambda *_: pytest.fail("pages were made"))
    with pytest.raises(BnbookError, match="claim coin-fair has no lock"):
        build.build(None)
    main(["lock"])
    monkeypatch.setattr(locks, "now", lambda: "2000-01-01T00:00Z")
    with pytest.raises(BnbookError, match="line 1 is dated 2.*; expected 2000-01-01T00:00Z or earlier"):
        build.build(None)


@pytest.mark.parametrize("verdict", ["holds", "holds if …"])
def test_no_page_says_wrong_of_what_holds(verdict):
    row = SimpleNamespace(id="printed", kind="wrong", claim="c")
    with pytest.raises(BnbookError, match="printed in errata.yml: wrong is what the ledger calls holding"):
        pages.errata([row], [], SimpleNamespace(rows={"c": {"verdict": verdict}}))


def test_only_scripts_outside_of_the_content_are_allowed_by_a_page():
    own, strange = "let a = 1;", "alert(1)"
    page = (
        f'<html><head><meta charset="utf-8"><script>{own}</script></head><body><button onclick="go(&quot;x&quot;)">'
        f"</button><main><article><script>{strange}</script><b onclick='{strange}'>x</b></article>"
        f'<i onload="{strange}"></i></main></body></html>'
    )
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', shell.with_policy(page))[1]
    hashed = re.findall(r"'sha256-([^']+)'", policy)
    expected = [
        base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        for text in (own, 'go("x")', "window.print()", "toggleFullScreen()")
    ]
    assert sorted(hashed) == sorted(expected) and "unsafe-inline" not in policy.split("style-src")[0]
    assert shell.with_policy(page).index("Security-Policy") < shell.with_policy(page).index("<script>")


def test_two_builds_at_once_are_one_clear_line(ran, monkeypatch):
    monkeypatch.setattr(pages, "stage", lambda *_: pytest.fail("pages were made"))
    with (
        atomic.alone(paths.build_folder() / ".lock", AssertionError()),
        pytest.raises(BnbookError, match="another process builds the site"),
    ):
        build.build("smoke")


@pytest.mark.parametrize("error", [KeyboardInterrupt(), OSError(errno.ENOSPC, "No space left on device")])
@pytest.mark.parametrize("cut", range(6))
def test_a_publication_that_is_cut_short_is_whole_after_the_next(ran, monkeypatch, capsys, cut, error):
    """A process that dies between any two of its steps, or a disk that is full: before, nothing is replaced; after, the
    next one ends it."""
    publishing.publish(laptop_run().chapter, "laptop")
    edit_results(lambda content: content["results"]["heads"]["values"].__setitem__(0, 0.4))
    steps = iter(range(100))

    def dying(original):
        def step(*words):
            if next(steps) == cut:
                raise error
            return original(*words)

        return step

    full = "(published in part|could not be published) .No space left on device.; (mend that|nothing was replaced)"
    told = (
        pytest.raises(BnbookError, match=full)
        if isinstance(error, OSError)
        else pytest.raises(KeyboardInterrupt)
    )
    with monkeypatch.context() as patch, told:
        patch.setattr(chapter_runs.os, "replace", dying(os.replace))
        patch.setattr(locks, "append", dying(locks.append))
        publishing.publish(laptop_run().chapter, "laptop")
    assert main(["check"]) in (0, 1) and "remove it" not in (said := capsys.readouterr().out)
    assert "was cut short" in said or isinstance(error, OSError) and cut < 2
    assert main(["publish", "coin", "--profile", "laptop"]) == 0
    assert main(["check"]) == 0 and "was cut short" not in capsys.readouterr().out
    found = chapter_runs.published(laptop_run().chapter, "laptop").results
    assert found.entries["heads"]["values"][0] == 0.4
    assert not [*paths.executed_folder().rglob(".*"), *paths.executed_folder().rglob("*.old")]


CUT = {
    "chapter": "part/coin",
    "lines": 0,
    "events": [{"event": "published", "chapter": "part/coin", "content": "0"}],
}


@pytest.mark.parametrize(
    "said",
    [
        *("{", "[]", "{}", "[" * 10**5, '{"chapter": "part/gone", "profile": "laptop"}'),
        json.dumps(CUT | {"profile": "../.."}),
        json.dumps(CUT | {"profile": "laptop", "events": [{"event": "published", "content": "0"}]}),
    ],
)
def test_a_strange_publication_that_was_cut_short_is_one_clear_line(ran, capsys, said):
    folder = paths.executed_folder() / ".laptop.publishing"
    folder.mkdir(parents=True)
    (folder / publishing.WHOLE).write_text(said)
    assert main(["publish", "coin", "--profile", "laptop"]) == 2
    assert "was cut short, of a chapter that is not there" in capsys.readouterr().err and folder.is_dir()
