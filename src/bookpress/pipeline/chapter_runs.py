"""One run of one chapter on disk: NAME.ipynb, NAME.json and NAME.figures/, in runs/PROFILE or
executed/PROFILE.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bookpress import claims, paths, results, stamp
from bookpress.claims import Claim, Row, chapter_claims, draws, judging, locks
from bookpress.errors import PressError
from bookpress.pipeline.chapters import Chapter, is_parameters, only_defines, with_values
from bookpress.profiles import PUBLISHED
from bookpress.results import Results
from bookpress.schema import read_table


def rewritten() -> dict[str, str]:
    """Notebooks of evidence that were rewritten after their run: SHA-256 now -> SHA-256 as the run wrote it."""
    path = paths.rewritten()
    return read_table(dict[str, str], path) if path.is_file() else {}


class LeftOut(ValueError):
    """A run with other parameters lacks a result, as it may; the message stands in its place."""


@dataclass(frozen=True)
class Evidence:
    """The files of one run; `folder` is runs/PROFILE or executed/PROFILE."""

    chapter: Chapter
    folder: Path
    #: What was asked of it already: results by name and what they stand beside, verdicts by claim and locks.
    known: dict[Any, Any] = field(default_factory=dict, init=False, repr=False, compare=False)

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
        """The drawings that its cells made; of a published run those alone that no function draws from its results."""
        return self.folder / f"{self.chapter.name}.figures"

    @property
    def exists(self) -> bool:
        return self.results_path.is_file() and self.notebook_path.is_file()

    @cached_property
    def results(self) -> results.Results:
        return results.read(self.results_path)

    @cached_property
    def notebook(self) -> Any:
        """The executed notebook; PressError where the file is not a whole one."""
        from nbformat import ValidationError, v4, validate

        try:
            found = v4.reads(self.notebook_path.read_text(encoding="utf-8"))
            validate(found, relax_add_props=True)
            if not all(isinstance(cell.metadata.get("papermill", {}), dict) for cell in found.cells):
                raise ValueError
        except (ValueError, AttributeError, TypeError, KeyError, RecursionError, ValidationError):
            name = self.notebook_path.name
            raise PressError(f"{name} is not a whole notebook; run the chapter again") from None
        return found

    def read(self) -> None:
        """PressError where a file is missing or not whole."""
        if not self.exists:
            raise PressError("notebook or results file is missing")
        _ = self.results, self.notebook

    @property
    def is_published(self) -> bool:
        return self.folder.parent == paths.executed_folder()

    @property
    def profile(self) -> str:
        return self.results.profile

    def quoted(self, name: str, together: Collection[str] = ()) -> tuple[list[int], np.ndarray]:
        """Seeds and values of a recorded result as pages quote it, in one sentence with the results `together`:
        where a claim reads it, by all its draws."""
        asked = name, frozenset(together)
        if asked not in self.known:
            pooled = chapter_claims(self.chapter.name) if self.results.draws else []
            self.known[asked] = draws.as_quoted(name, self.results, pooled, asked[1])
        return self.known[asked]

    def column(
        self, name: str, index: str | None = None, *, alone: bool = False, together: Collection[str] = ()
    ) -> tuple[list[int], np.ndarray]:
        """Seeds and one number a seed (S,) of a recorded result, at one place of its second axis, as pages quote it;
        `alone`: by this run without earlier draws; `together`: as for `quoted`. ValueError says why there is none."""
        if name not in self.results:
            if not self.results.header.get("default_parameters"):
                raise LeftOut("(not in this run)")
            raise ValueError(f"{self.chapter.name} recorded no result {name!r}")
        own = self.results.entries[name]["seeds"], self.results[name]
        seeds, values = own if alone else self.quoted(name, together or (name,))
        if index is not None:
            if values.ndim < 2 or not -values.shape[1] <= int(index) < values.shape[1]:
                raise ValueError(f"{name!r} has shape {values.shape} and no [{index}]")
            values = values[:, int(index)]
        if values.ndim != 1:
            raise ValueError(f"{name!r} is not one number per seed; name an [index]")
        return seeds, values

    def files(self) -> dict[str, str]:
        """SHA-256 of the notebook, by its name; of one that was rewritten after its run, for papermill, that of the file
        that the run wrote."""
        found = hashlib.sha256(self.notebook_path.read_bytes()).hexdigest()
        before = rewritten()
        return {self.notebook_path.name: before.get(found, found)}

    def stale(self) -> list[str]:
        """Which parts of its stamp no longer fit the checkout: code, package, parameters (data: see the gate)."""
        header, chain, name = self.results.header, locks.read(), self.chapter.name
        now = stamp.of_chapter(self.chapter.code_cells, self.expected_parameters(), header.get("data", []))
        then = stamp.known(header.get("fingerprint", {}))
        if chain.measured(name, stamp.measure(now)) == chain.measured(name, stamp.measure(then)):
            then |= {part: now[part] for part in ("code", "package")}
        return [part for part, value in now.items() if then.get(part) != value]

    def is_fresh(self) -> bool:
        """Whether it is whole and nothing of its stamp is another; that it passes the gate is for `check` to say."""
        try:
            return not self.stale()
        except PressError:
            return False

    def expected_parameters(self) -> dict[str, Any]:
        """For a default run the profile's parameters as the chapter now states them, else those that were
        given."""
        header = self.results.header
        if header.get("default_parameters"):
            return self.chapter.parameters(self.profile)
        return header.get("parameters", {})


def published(chapter: Chapter, profile: str) -> Evidence:
    return Evidence(chapter, paths.executed_folder() / profile)


def kept_runs(chapters: Iterable[Chapter]) -> dict[str, Evidence]:
    """The published runs of these chapters by `profile/chapter`, the highest profile first; of one a file may be
    missing."""
    runs = [published(chapter, profile) for chapter in chapters for profile in PUBLISHED]
    return {run.name: run for run in runs if run.results_path.is_file() or run.notebook_path.is_file()}


def published_runs(chapter: Chapter) -> list[Evidence]:
    """Those that are there, the highest profile first."""
    return [run for run in kept_runs([chapter]).values() if run.exists]


def fresh_run(chapter: Chapter, profile: str, name: str | None = None) -> Evidence:
    """In runs/PROFILE, or in runs/NAME where the run was given a name."""
    return Evidence(chapter, paths.runs_folder() / (name or profile))


def move(source: Evidence, target: Evidence) -> None:
    """Take over the three parts, those that are still there; the results file, which carries the hashes of the
    others, goes last."""
    target.notebook_path.parent.mkdir(parents=True, exist_ok=True)
    old = target.figures_folder.with_suffix(".old")  # a folder is not replaced by another in one stroke
    if source.figures_folder.exists():
        shutil.rmtree(old, ignore_errors=True)
        if target.figures_folder.exists():
            os.replace(target.figures_folder, old)
    for part in ("figures_folder", "notebook_path", "results_path"):
        if getattr(source, part).exists():
            os.replace(getattr(source, part), getattr(target, part))
    shutil.rmtree(old, ignore_errors=True)


# ---- The one way from recorded values to the verdicts that readers see: claims judged by a run ---------------------

REWORDED = "reworded after the run"


def judged(claim: Claim, evidence: Evidence) -> Row:
    """The row as every page shows it: exploratory where its test did not stand before the data, with a
    remark where its words are not those that the run was made under."""
    chain, run = locks.read(), evidence.results
    key = claim, chain.head(claim.chapter)
    if key in evidence.known:
        return evidence.known[key]
    given = {"profile": evidence.profile, "exact": evidence.chapter.exact}
    stands, changes = locks.standing(claim, run, chain), locks.deviations(chain.of_claim(claim.id))
    earlier = draws.counting(claim, run)
    more_seeds = any(
        set(draw.entries[name]["seeds"]) - set(run.entries[name]["seeds"])
        for draw in earlier
        for name in set(claim.result_names()) & set(draw) & set(run)
    )

    def known(verdict: str) -> Row:
        alone = claims.verdict(claim, replace(run, draws=()), **given) if earlier else verdict
        fresh = alone if alone != verdict else ""  # what the last run says by itself
        remark = f"fresh seeds alone: “{fresh}”" if fresh else _remark(claim, verdict, run.header)
        found = {"remark": remark, "fresh": fresh, "pooled": more_seeds, "locked": stands.date}
        return found | {"exploratory": stands.exploratory, "changed": [each.words for each in changes]}

    return evidence.known.setdefault(key, claims.judge(claim, run, known=known, **given))


def chapter_verdicts(evidence: Evidence) -> list[Row]:
    """Every claim of the chapter that the run has the results for."""
    own = claims.chapter_claims(evidence.chapter.name)
    return [judged(claim, evidence) for claim in own if set(claim.required_names()) <= set(evidence.results)]


def as_recorded(
    listed: Iterable[Claim], recorded: Results, profile: str, exact: bool
) -> dict[str, dict[str, str]]:
    """What a run notes of its own verdicts, so that whatever turns them later shows."""
    noted = {}
    for claim in listed:
        with suppress(PressError):  # a result is missing or not as the test needs it: the gate says so
            word = claims.verdict(claim, recorded, profile, exact=exact)
            noted[claim.id] = {"says": wording(claim), "verdict": word, "terms": terms(claim)}
    return noted


def wording(claim: Claim) -> str:
    """All that the claim says, in its parts too, in the words of its lock."""
    return " | ".join([claim.was or claim.says, *(part.says for part in claim.parts)])


def terms(claim: Claim) -> str:
    """What a verdict adds to it: the condition under which it holds, how it is corrected."""
    return " | ".join((claim.condition, claim.correction))


def withdrawn(evidence: Evidence) -> list[str]:
    """Ids of claims that the run was made under and that the book no longer lists."""
    listed = {claim.id for claim in claims.chapter_claims(evidence.chapter.name)}
    return [name for name in evidence.results.header.get("claims", {}) if name not in listed]


def how_sure(rows: Iterable[Row]) -> str:
    """How many of a chapter's tests stood before its run, in words; the others are exploratory, and why; and how
    many are judged by more seeds than the run's."""
    found = list(rows)
    if pooled := sum(row["pooled"] for row in found):
        some = "All are" if pooled == len(found) > 1 else f"{pooled} are" if pooled > 1 else "One is"
        fixed = how_sure(row | {"pooled": False} for row in found)
        return f"{fixed}. {some} judged with the seeds of earlier runs as well"
    reasons = Counter(row["exploratory"] for row in found if row["exploratory"])
    count, late = len(found), reasons.total()
    if not late:
        return f"All {count} tests of this chapter were fixed before its run" if count else "No test"
    each = ", each for one of these reasons" * (len(reasons) > 1)
    why = each + ": " + "; ".join(reason for reason, _ in reasons.most_common())
    if late == count:
        return f"The {count} tests of this chapter are exploratory{why}"
    others = "The other is" if late == 1 else f"The other {late} are"
    return f"{count - late} of the {count} tests of this chapter were fixed before its run. {others} exploratory{why}"


def _remark(claim: Claim, verdict: str, header: Mapping[str, Any]) -> str:
    """Why the verdict is not what it was when the run ended, or nothing."""
    then = header.get("judged", {}).get(claim.id)
    if then and (then["says"] != wording(claim) or then.get("terms", terms(claim)) != terms(claim)):
        return REWORDED
    before = then and judging.NOW.get(then["verdict"], then["verdict"])
    return f"“{before}” when it ran" if before and before != verdict else ""


# ---- Text and evidence joined: the chapter's current words with the outputs and figures of a run -------------------

#: The tag of a code cell that is not the chapter's: it installs, carries the claims or shows the verdicts.
ADDED = "added"


def ran_cells(notebook: Any) -> list[Any]:
    """The chapter's own code cells of an executed notebook: not those that papermill or the book added, nor those that
    only define something, which have nothing to show."""
    code = (cell for cell in notebook.cells if cell.cell_type == "code" and not only_defines(cell))
    return [cell for cell in code if not {ADDED, "injected-parameters"} & {*cell.metadata.get("tags", [])}]


def with_evidence(chapter: Chapter, evidence: Evidence) -> Any:
    """The chapter's notebook with the outputs of a run put under the code cells that made them.

    Cells are matched in order: that the code is the code that ran, or prints the same, is the stamp's to say.
    """
    page, ran = chapter.notebook.copy(), iter(ran_cells(evidence.notebook))
    cells = []
    for original in chapter.notebook.cells:
        cell = original.copy()
        if cell.cell_type == "code" and not only_defines(cell):
            made = next(ran)  # the gate has counted them
            cell["outputs"] = [_plain(output) for output in made.outputs]
            cell["execution_count"] = made.execution_count
        if is_parameters(cell):
            cell["source"] = with_values(cell.source, evidence.results.header["parameters"])
            cell["metadata"] = cell.metadata | {
                "tags": sorted({*cell.metadata.get("tags", []), "hide-input"})
            }
        cells.append(cell)
    page["cells"] = cells
    return page


FIGURE = re.compile(r"^(`{3,}|:{3,})\{figure\} +(\S+)\n(.*?)^\1", re.M | re.S)


class Figure(NamedTuple):
    """A `{figure}` directive of a text: what it names, empty where it does not, and the whole of it."""

    path: str
    alt: str
    label: str
    directive: str


def _plain(output: Any) -> Any:
    """What a cell printed with NumPy's scalars as the numbers that they are: `np.float64(2.5)` as 2.5."""
    if output.output_type != "stream":
        return output
    return type(output)(output | {"text": re.sub(r"\bnp\.\w+\(([^()]*)\)", r"\1", output.text)})


def referenced_figures(text: str) -> list[Figure]:
    """Every `{figure}` directive in a text."""
    found = []
    for match in FIGURE.finditer(text):
        options = dict(re.findall(r"^:(alt|name): *(.*?) *$", match[3], flags=re.M))
        found.append(Figure(match[2], options.get("alt", ""), options.get("name", ""), match[0]))
    return found
