"""One run of one chapter on disk: NAME.ipynb, NAME.json and NAME.figures/, in runs/PROFILE or
executed/PROFILE."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from bnbook import fingerprint, paths, results
from bnbook.claims import Claim, chapter_claims, judging
from bnbook.errors import BnbookError
from bnbook.pipeline.chapters.chapters import Chapter


class LeftOut(ValueError):
    """A run with other parameters lacks a result, as it may; the message stands in its place."""


@dataclass(frozen=True)
class Evidence:
    """The files of one run; `folder` is runs/PROFILE or executed/PROFILE."""

    chapter: Chapter
    folder: Path

    @property
    def name(self) -> str:
        return f"{self.folder.name}/{self.chapter.name}"

    @property
    def notebook_path(self) -> Path:
        return self.folder / f"{self.chapter.name}.ipynb"

    @property
    def results_path(self) -> Path:
        return self.folder / f"{self.chapter.name}.json"

    @property
    def figures_folder(self) -> Path:
        return self.folder / f"{self.chapter.name}.figures"

    @property
    def comparison_path(self) -> Path:
        return self.folder / f"{self.chapter.name}.compare.svg"

    @property
    def exists(self) -> bool:
        return self.results_path.is_file() and self.notebook_path.is_file()

    @cached_property
    def results(self) -> results.Results:
        return results.read(self.results_path)

    @cached_property
    def notebook(self) -> Any:
        """The executed notebook; BnbookError where the file is not a whole one."""
        from nbformat import v4

        try:
            found = v4.reads(self.notebook_path.read_text(encoding="utf-8"))
            assert all(cell.cell_type and isinstance(cell.source, str) for cell in found.cells)
        except (ValueError, AttributeError, TypeError, KeyError, AssertionError):
            name = self.notebook_path.name
            raise BnbookError(f"{name} is not a whole notebook; run the chapter again") from None
        return found

    def read(self) -> None:
        """BnbookError where a file is missing or not whole."""
        if not self.exists:
            raise BnbookError("notebook or results file is missing")
        assert self.results is not None and self.notebook is not None

    @property
    def is_published(self) -> bool:
        return self.folder.parent == paths.executed_folder()

    @property
    def profile(self) -> str:
        return self.results.profile

    def quoted(self, name: str) -> tuple[list[int], np.ndarray]:
        """Seeds and values of a recorded result as pages quote it: where a claim reads it, by all its draws."""
        if name not in self._quoted:
            self._quoted[name] = judging.as_quoted(name, self.results, self._drawn)
        return self._quoted[name]

    @cached_property
    def _drawn(self) -> list[tuple[Claim, list[results.Results]]]:
        """The chapter's claims, each with the earlier draws by which it is judged."""
        listed = chapter_claims(self.chapter.name) if self.results.draws else []
        return [(claim, judging.counting(claim, self.results)) for claim in listed]

    @cached_property
    def _quoted(self) -> dict[str, tuple[list[int], np.ndarray]]:
        return {}

    def per_seed(self, name: str, index: str | None = None, *, alone: bool = False) -> np.ndarray:
        """One number per seed (S,) of a recorded result, at one place of its second axis, as pages quote it;
        `alone`: by this run without earlier draws. ValueError says why there is none."""
        if name not in self.results:
            if not self.results.header.get("default_parameters"):
                raise LeftOut("(not in this run)")
            raise ValueError(f"{self.chapter.name} recorded no result {name!r}")
        values = self.results[name] if alone else self.quoted(name)[1]
        if index is not None:
            if values.ndim < 2 or not -values.shape[1] <= int(index) < values.shape[1]:
                raise ValueError(f"{name!r} has shape {values.shape} and no [{index}]")
            values = values[:, int(index)]
        if values.ndim != 1:
            raise ValueError(f"{name!r} is not one number per seed; name an [index]")
        return values

    def files(self) -> dict[str, str]:
        """SHA-256 of the notebook and of every figure, by name relative to the part's folder; of a notebook that was
        rewritten after its run, for papermill, that of the file that the run wrote."""
        found = [self.notebook_path, *(p for p in sorted(self.figures_folder.glob("*")) if p.is_file())]
        here = self.notebook_path.parent
        hashes = {p.relative_to(here).as_posix(): hashlib.sha256(p.read_bytes()).hexdigest() for p in found}
        before = json.loads(paths.rewritten().read_bytes()) if paths.rewritten().is_file() else {}
        return {name: before.get(value, value) for name, value in hashes.items()}

    def stale(self) -> list[str]:
        """Which parts of the fingerprint no longer fit the checkout: code, package, parameters (data: see the
        gate)."""
        header = self.results.header
        now = fingerprint.chapter_fingerprint(
            self.chapter.code_cells, self.expected_parameters(), header.get("data", [])
        )
        then = header.get("fingerprint", {})
        return [part for part, value in now.items() if then.get(part) != value]

    def expected_parameters(self) -> dict[str, Any]:
        """For a default run the profile's parameters as the chapter now states them, else those that were
        given."""
        header = self.results.header
        if header.get("default_parameters"):
            return self.chapter.parameters(self.profile)
        return header.get("parameters", {})


def published(chapter: Chapter, profile: str) -> Evidence:
    return Evidence(chapter, paths.executed_folder() / profile)


def fresh_run(chapter: Chapter, profile: str, name: str | None = None) -> Evidence:
    """In runs/PROFILE, or in runs/NAME where the run was given a name."""
    return Evidence(chapter, paths.runs_folder() / (name or profile))


def move(source: Evidence, target: Evidence) -> None:
    """Take over the three parts; the results file, which carries the hashes of the others, goes last."""
    target.notebook_path.parent.mkdir(parents=True, exist_ok=True)
    old = target.figures_folder.with_suffix(".old")
    shutil.rmtree(old, ignore_errors=True)
    if target.figures_folder.exists():
        os.replace(target.figures_folder, old)
    os.replace(source.figures_folder, target.figures_folder)
    os.replace(source.notebook_path, target.notebook_path)
    os.replace(source.results_path, target.results_path)
    shutil.rmtree(old, ignore_errors=True)
