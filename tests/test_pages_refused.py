"""What no page is made of: outputs that a browser would run, evidence that the locks do not know."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from nbformat import v4

from bnbook.errors import BnbookError
from bnbook.pipeline import build, gate, pages


@pytest.mark.parametrize("kind", ["text/html", "application/javascript", "image/svg+xml"])
def test_an_output_that_a_browser_runs_is_refused(kind):
    output = v4.new_output("display_data", {kind: "<script>alert(1)</script>", "text/plain": "1"})
    cell = v4.new_code_cell("1", outputs=[output], metadata={"papermill": {"status": "completed"}})
    book = v4.new_notebook(cells=[cell])
    run = SimpleNamespace(notebook=book, chapter=SimpleNamespace(notebook=book))
    assert any(f"shows {kind}" in line for line in gate.cells(run))


def test_no_site_is_built_of_what_the_locks_do_not_know(tiny, monkeypatch):
    monkeypatch.setattr(pages, "stage", lambda *_: pytest.fail("pages were made"))
    with pytest.raises(BnbookError, match="claim coin-fair has no lock"):
        build.build(None)
