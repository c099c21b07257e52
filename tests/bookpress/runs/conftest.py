"""What the tests of trainings share: a results store of their own."""

from __future__ import annotations

import pytest

from bookpress import results


@pytest.fixture
def own_store(tmp_path, monkeypatch):
    """The folder of the store; what trainings say of themselves goes to `said` beside it."""
    monkeypatch.setenv("BNBOOK_STORE", str(tmp_path / "store"))
    monkeypatch.setenv("BNBOOK_PROGRESS", str(tmp_path / "said"))
    for name in ("BNBOOK_RESULTS", "BNBOOK_SCHEDULER"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(results, "_session", results.Results())
    return tmp_path / "store"
