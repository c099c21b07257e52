"""The ledger as others read it: as JSON, as CSV, for a terminal, and as a folder that stands alone, in one of two public
formats for checked claims.

- `evaluable-artifact`: evaluable-artifact/v2 of the Universal Artifact SDK (its SPEC.md, sections 2 and 5).
- `ara`: Agent-Native Research Artifact 1.0 (Liu et al., arXiv 2604.24658; its ara-schema.md).

Neither has a place for seeds, intervals, preregistration or equivalence; what it has no place for stands in the
artifact's open block of the package's name, in ARA's beside the fields that it knows.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import yaml

from bookpress import atomic, claims, paths
from bookpress.book import book, command_name
from bookpress.claims import Test
from bookpress.errors import PressError
from bookpress.pipeline import chapter_runs, chapters
from bookpress.pipeline.chapter_runs import Evidence
from bookpress.pipeline.gate import passed_run
from bookpress.pipeline.prose import Pages
from bookpress.site import rendering
from bookpress.site.rendering import macro
from bookpress.texts import read_yaml

# ---- `ledger.json`, every claim with all that was found, {"schema": 1, "claims": [row, …]} (`claims.ledger` says what a
# row holds); `ledger.csv`, a line a test; and the same for a terminal

SCHEMA = 1
#: Columns of the CSV file: of the claim, then of its test.
OF_CLAIM = ("id", "chapter", "kind", "verdict", "words", "scope", "profile", "remark")
OF_CLAIM += ("exploratory", "locked")
OF_TEST = ("role", "says", "asks", "holds", "n", "side", "p", "sign_p", "kept")


def listing(names: list[str], profile: str | None = None, *, as_data: bool = False) -> str:
    """The named chapters' claims for a terminal, or as JSON, from runs of `profile` or the committed ones."""
    known = [chapter for chapter in chapters.discover() if as_data or chapter.name in names]
    evidence = {chapter.name: passed_run(chapter, profile) for chapter in known}  # what is kept hangs on all
    pages = Pages(evidence, [claim for claim in claims.load_claims() if claim.chapter in evidence])
    rows = [row for row in pages.rows.values() if row["chapter"] in names] if as_data else []
    return as_json(rows) if as_data else as_text(pages, names)


def of_instrument(name: str) -> str:
    """The claims that rest on an instrument, for a terminal: id, chapter, and below it what it says."""
    one = claims.find_instrument(name)
    return "".join(
        f"{claim.id:<40} {claim.chapter}\n    {claim.says}\n"
        for claim in claims.load_claims()
        if one.under(claim)
    )


def as_json(rows: list[dict[str, Any]]) -> str:
    """A line for each claim."""
    lines = ",\n".join(json.dumps(row, ensure_ascii=False, allow_nan=False) for row in rows)
    return f'{{"schema": {SCHEMA}, "claims": [\n{lines}\n]}}\n'


def as_csv(rows: list[dict[str, Any]]) -> str:
    """A line for each test; `effect` and `interval` as numbers, then in words."""
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    numbers = ("effect", "unit", "low", "high", "effect_words", "interval_words", "half", "twice")
    table.writerow([*OF_CLAIM, "source", "where", *(f"test_{name}" for name in OF_TEST), *numbers])
    for row in rows:
        half, twice = row["other_margins"] or ("", "")
        of_claim = [row[name] for name in OF_CLAIM] + [row["source"]["key"], row["source"]["where"]]
        for test in row["tests"]:
            effect, interval = test["effect"], test["interval"] or dict.fromkeys(("low", "high", "words"))
            found = [effect["number"], effect["unit"], interval["low"], interval["high"]]
            found += [effect["words"], interval["words"], half, twice]
            table.writerow([*of_claim, *(test[name] for name in OF_TEST), *found])
    return text.getvalue()


def as_text(pages: Pages, chapters: Iterable[str]) -> str:
    """Three lines for each claim of the chapters: its id, what it says, and what was found."""
    lines = []
    for chapter in chapters:
        for claim in (claim for claim in pages.claims if claim.chapter == chapter):
            found = pages.judgement(claim)
            words = f"{found.marked}: {claims.format_effect(found)}" if found else "not run"
            lines += [claim.id, f"    {claim.says}", f"    {words}"]
        evidence = pages.evidence[chapter]
        for name in chapter_runs.withdrawn(evidence) if evidence else []:
            lines += [name, "    judged by the run and withdrawn since"]
    return "".join(f"{line}\n" for line in lines)


def write(folder: Path, pages: Pages) -> None:
    """Both files into the built site."""
    rows = list(pages.rows.values())
    atomic.write_text(folder / "ledger.json", as_json(rows))
    atomic.write_text(folder / "ledger.csv", as_csv(rows))


# ---- Folders that stand alone ----------------------------------------------------------------------------------------

#: What ARA calls a claim of which we say this; every other verdict is a hypothesis: open, mixed, not tested.
SUPPORTED = ("holds", "holds if", "reproduced", "yes")
REFUTED = ("wrong", "corrected", "not reproduced", "no")


@dataclass(frozen=True)
class Run:
    """A published run as the formats see it."""

    evidence: Evidence
    rows: Sequence[Mapping[str, Any]]  # of the claims that it judges

    @property
    def slug(self) -> str:
        return f"{self.evidence.profile}/{self.evidence.chapter.name}".replace("/", "-")

    @property
    def file(self) -> str:
        """Where its results stand in the folder."""
        return f"results/{self.evidence.profile}/{self.evidence.chapter.name}.json"

    @property
    def command(self) -> str:
        return f"{command_name()} run {self.evidence.chapter.name} --profile {self.evidence.profile}"

    @cached_property
    def header(self) -> Mapping[str, Any]:
        return self.evidence.results.header

    @cached_property
    def former(self) -> list[Mapping[str, Any]]:
        """The headers of earlier draws, which are kept and judged together with this one."""
        return [draw.header for draw in self.evidence.results.draws]


def export(kind: str, target: Path) -> int:
    """Write the ledger of the published runs to the new folder `target`; the number of claims.

    PressError for a folder that is there already. The folder is whole or not there.
    """
    target = Path(target).absolute()
    if target.exists():
        raise PressError(f"{target} exists already; expected a folder to make, such as --to {target}-2")
    runs, rows = _runs()
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=f".{target.name}.") as made:
        folder = Path(made) / "whole"
        for run in runs:
            copy = folder / run.file
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(run.evidence.results_path, copy)
        atomic.write_text(folder / "results" / "ledger.json", as_json(rows))
        for name, text in FORMATS[kind](runs, rows):
            atomic.write_text(folder / name, text)
        os.replace(folder, target)
    return len(rows)


def _runs() -> tuple[list[Run], list[dict[str, Any]]]:
    """The published runs in the book's order, each with the rows of its claims; and all those rows."""
    evidence = {chapter.name: passed_run(chapter) for chapter in chapters.discover()}
    there = {name: one for name, one in evidence.items() if one}
    pages = Pages(there, [claim for claim in claims.load_claims() if claim.chapter in there])
    rows = list(pages.rows.values())
    own = {name: [row for row in rows if row["chapter"] == name] for name in there}
    return [Run(one, own[name]) for name, one in there.items()], rows


def _about() -> Mapping[str, Any]:
    """CITATION.cff: title, authors, abstract, keywords, version."""
    path = paths.repository_root() / "CITATION.cff"
    return read_yaml(path, path.name)


# ---- evaluable-artifact/v2 ------------------------------------------------------------------------------------------


def _evaluable(runs: Sequence[Run], rows: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, str]]:
    """The files of an evaluable artifact: name and text."""
    data = {each["name"]: each for run in runs for each in run.header["data"] if each.get("sha256")}
    results = [_result(run) for run in runs if run.rows]
    experiments = [each for run in runs for each in _experiments(run)]
    files = {
        "claims.yml": {"claims": [_claim(row, run) for run in runs for row in run.rows]},
        "results.yml": {"results": results},
        "datasets.yml": {"datasets": [_dataset(name, each) for name, each in data.items()]},
    }
    active = [each for each in experiments if "disposition" not in each]
    inventory = {
        "has_runnable_experiments": bool(active),
        "has_traces": False,
        "trace_count": 0,
        "has_exhibits": False,
        "exhibit_count": 0,
        "has_released_data": bool(data),
        "has_paper_source": True,
        "has_citations_export": True,
        "has_journal": False,
        "has_research_agent": False,
        "experiments_attempted": len(experiments),
        "experiments_reported": len(active),
        "evidence_kinds": ["metrics"],
        "validation_modes": ["re-analyze"],
    }
    about = _about()
    files["manifest.yml"] = {
        "format_version": "evaluable-artifact/v2",
        "sdk_version": "artifact-sdk/v1",
        "id": f"{book().package}-{about['version']}",
        "title": about["title"],
        "producer": {"name": book().package, "version": about["version"]},
        "experiments": experiments,
        "paths": {name.removesuffix(".yml"): name for name in files},
        "paper": {"source": "book", "references_export": "book/references.bib"},
        "evidence_inventory": inventory,
    }
    texts = {name: _yaml(content) for name, content in files.items()}
    texts |= dict(_book())
    yield from texts.items()
    sums = {name: hashlib.sha256(text.encode()).hexdigest() for name, text in texts.items()}
    sums |= {run.file: hashlib.sha256(run.evidence.results_path.read_bytes()).hexdigest() for run in runs}
    sums["results/ledger.json"] = hashlib.sha256(as_json(list(rows)).encode()).hexdigest()
    yield "SHA256SUMS", "".join(f"{digest}  {name}\n" for name, digest in sorted(sums.items()))


def _book() -> Iterator[tuple[str, str]]:
    """The book's own text, of which each claim names the chapter."""
    book = paths.book_folder()
    for path in sorted([*book.glob("*.md"), *book.glob("*/*.md"), book / "references.bib"]):
        yield f"book/{path.relative_to(book).as_posix()}", path.read_text(encoding="utf-8")


def _claim(row: Mapping[str, Any], run: Run) -> dict[str, Any]:
    """A claim as a hypothesis that its run tests: what a source says is not ours to assert."""
    told = ("kind", "words", "effect", "interval", "n", "scope", "locked", "exploratory", "rests_on")
    where = {
        "source": row["source"]["key"],
        "version": row["source"]["version"],
        "section": row["source"]["where"],
    }
    return {
        "id": row["id"],
        "statement": row["says"],
        "stance": "hypothesis",
        "tested_by": [run.slug],
        "paper_ref": {name: value for name, value in where.items() if value},
        "validators": [
            {
                "id": f"{row['id']}-verdict",
                "kind": "procedure",
                "instructions": f"With the package installed and its repository checked out, `{command_name()} claims "
                f"{row['chapter']} --json` computes the verdict from the published results. What must hold: {_asked(row)}.",
                "tools": [{"name": book().package, "version": str(_about()["version"])}],
                "inputs": [f"R-{run.slug}"],
                "success_criteria": f"the claim {row['id']} has the verdict “{row['verdict']}”",
            }
        ],
        book().package: {name: row[name] for name in told if row[name] not in (None, "", [])},
    }


def _asked(row: Mapping[str, Any]) -> str:
    joined = "; or " if row["combine"] == "any" else "; and "
    return joined.join(test["asks"] for test in row["tests"]) or "nothing was tested at this size"


def _experiments(run: Run) -> Iterator[dict[str, Any]]:
    """The run that is published, and before it those that it followed."""
    what = {"directory": str(Path(run.file).parent), "run": {"command": run.command}}
    uses = [
        {"dataset": each["name"], "at": "BNBOOK_DATA"} for each in run.header["data"] if each.get("sha256")
    ]
    for number, header in enumerate(run.former, start=1):
        why = f"An earlier draw, of {header['provenance']['date']}; it is kept, and what it measured alike is judged with the later."
        gone = {"status": "superseded", "rationale": why, "superseded_by": run.slug}
        yield {"slug": f"{run.slug}-draw-{number}", **what, "disposition": gone}
    origin = run.header["provenance"]
    alone = origin.get("seconds") and not origin.get("store")  # nothing was taken from the store
    took = {"expected_runtime": f"{origin['seconds']:.0f}s"} if alone else {}
    yield {"slug": run.slug, **what, **({"uses_data": uses} if uses else {}), **took}


def _result(run: Run) -> dict[str, Any]:
    tests = [Test(**test["test"]) for row in run.rows for test in row["tests"]]
    names = dict.fromkeys(name for test in tests for name in test.result_names())
    recorded = {n: {"json": f"results.{n}.values"} for n in names if n in run.evidence.results}
    return {
        "id": f"R-{run.slug}",
        "produced_by": run.slug,
        "validates": [row["id"] for row in run.rows],
        "evidence": run.file,
        "kind": "metrics",
        "validation_mode": "re-analyze",
        "locators": recorded,
    }


def _dataset(name: str, known: Mapping[str, Any]) -> dict[str, Any]:
    size = f"{known['train']} training and {known['test']} test examples"
    exact = "the published set" if known["exact"] else "not the published set to the last bit"
    home = next(
        (at for key, at in book().data_homes.items() if name.startswith(key)), "https://scikit-learn.org"
    )
    place = {"kind": "external", "uri": home, "sha256": known["sha256"], "access": "public"}
    return {
        "id": name,
        "description": f"{size}; {exact}; the hash is of the decoded arrays",
        "location": place,
    }


# ---- ARA 1.0 --------------------------------------------------------------------------------------------------------


def _ara(runs: Sequence[Run], rows: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, str]]:
    """The files of an ARA: name and text. C001 is the first claim, E01 the first chapter."""
    ids = {row["id"]: f"C{number:03d}" for number, row in enumerate(rows, start=1)}
    numbered = {run.slug: f"E{number:02d}" for number, run in enumerate(runs, start=1)}
    own = {row["id"]: run for run in runs for row in run.rows}

    def text(name: str, *given: Any) -> str:
        return str(macro("ara.txt.j2", name)(*given))

    yield "logic/claims.md", text("claims", rows, ids, own, numbered, SUPPORTED, REFUTED)
    yield "logic/experiments.md", text("experiments", runs, ids, numbered)
    yield "logic/problem.md", book().problem
    yield "logic/concepts.md", text("concepts", claims.load_instruments())
    yield "logic/related_work.md", text("works", rows, ids, claims.source_titles(), _places())
    yield "logic/solution/constraints.md", book().constraints
    yield "src/environment.md", text("environment", runs)
    for run in runs:
        yield f"evidence/tables/derived_{run.slug}.md", text("derived", run, ids)
    yield "evidence/README.md", text("index", runs, ids)
    yield "trace/exploration_tree.yaml", _yaml({"tree": [_ara_tree(runs, ids)]})
    about = _about()
    yield "PAPER.md", text("paper", _yaml(_front(about, rows)), about, len(rows), len(runs))


def _places() -> dict[str, str]:
    """Key -> arXiv number or address of every entry of book/references.bib that has one."""
    found = claims.references().items()
    places = {
        key: f"arXiv:{fields['eprint']}" if "eprint" in fields else fields.get("url") for key, fields in found
    }
    return {key: place for key, place in places.items() if place}


def _ara_tree(runs: Sequence[Run], ids: Mapping[str, str]) -> dict[str, Any]:
    """A question with an experiment for each chapter; below each the draws that it followed."""
    number = iter(range(1, 10_000))

    def node(kind: str, title: str, below: Callable[[], list] = list, **more: Any) -> dict[str, Any]:
        """Numbered before what stands below it."""
        made = {
            "id": f"N{next(number):02d}",
            "type": kind,
            "title": title,
            "support_level": "explicit",
            **more,
        }
        return made | ({"children": found} if (found := below()) else {})

    def draws(run: Run) -> list[dict[str, Any]]:
        kept = {
            "source_refs": [run.file],
            "result": "kept; what it measured alike is judged with the later one",
        }
        dates = [header["provenance"]["date"] for header in run.former]
        return [node("experiment", f"an earlier draw, {date}", **kept) for date in dates]

    def question(run: Run) -> dict[str, Any]:
        title, page = run.evidence.chapter.title, [f"book/{run.evidence.chapter.name}.md"]
        counted = chapter_runs.tally(row["verdict"] for row in run.rows).replace(" · ", ", ")
        found = {"result": counted or "no claim", "evidence": [ids[row["id"]] for row in run.rows]}
        own = lambda: [node("experiment", run.command, lambda: draws(run), source_refs=page, **found)]
        return node("question", title, own, source_refs=page, description=title)

    asks = {"source_refs": ["book/index.md"], "description": book().asks}
    return node("question", book().question, lambda: [question(run) for run in runs], **asks)


def _front(about: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    answered = [row["says"] for row in rows if row["kind"] == "question" and row["verdict"] == "yes"]
    return {
        "title": about["title"],
        "authors": [each["name"] for each in about["authors"]],
        "year": int(str(about["date-released"])[:4]),
        "venue": "a book that runs",
        "doi": "Not specified",
        "ara_version": "1.0",
        "domain": "Machine learning",
        "keywords": list(about["keywords"]),
        "claims_summary": answered[:10],
        "abstract": _line(about["abstract"]),
    }


# ---- What both write ------------------------------------------------------------------------------------------------


class _Plain(yaml.SafeDumper):
    """YAML without anchors: what stands twice is written twice."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _yaml(content: Mapping[str, Any]) -> str:
    return yaml.dump(content, Dumper=_Plain, allow_unicode=True, sort_keys=False, width=10_000)


def _line(text: str) -> str:
    """A line of plain words: no breaks, and no bar that would end a cell."""
    return re.sub(r"\s+", " ", text).replace("|", "∣").strip()


rendering.add(line=_line, asked=_asked, of=lambda name, known: known[name])

FORMATS: dict[str, Callable[[Sequence[Run], Sequence[Mapping[str, Any]]], Iterator[tuple[str, str]]]] = {
    "evaluable-artifact": _evaluable,
    "ara": _ara,
}
