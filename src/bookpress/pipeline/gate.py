"""What a run must be before its numbers may be shown."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from bookpress import claims, paths, results, stamp
from bookpress.atomic import kept
from bookpress.book import book, command_name, folders
from bookpress.claims import kinds, locks
from bookpress.claims.judging import NOT_TESTED, tested
from bookpress.errors import PressError, did_you_mean
from bookpress.pipeline import chapter_runs, pictures, prose
from bookpress.pipeline.chapter_runs import Evidence, fresh_run, published_runs
from bookpress.pipeline.chapters import Chapter
from bookpress.profiles import PROFILES
from bookpress.texts import read_text

Lines = Iterator[str]  # what is amiss

# ---- What evidence must not tell of the one who made it: paths of a machine, mail addresses ------------------------

#: Absolute paths of somebody's machine; a results file or a page must not carry them.
PLACES = (
    "home|root|Users|tmp|private|var|work|workspace|mnt|media|opt|srv|data|scratch|nfs|gpfs|lustre|storage|"
    "project|projects|content|kaggle|run|proc|Volumes|usr/local|usr/lib|usr/share"
)
#: Each begins with a plain character, which makes the search in megabytes fast.
LOCAL_PATHS = (
    re.compile(rf"/(?<![\w.:/)\]}}]/)(?:{PLACES})/[\w.~-]"),
    re.compile(r":(?<=\b[A-Za-z]:)(?:\\{1,2}|/)(?:Users|Windows|Program Files|ProgramData|Temp)\b"),
    re.compile(r"file:///?\w"),
)
#: Mail addresses; `a@b.T` and `a@b.to(…)` are products of matrices.
ADDRESS = re.compile(
    r"@(?<=[\w.+-]@)(?:[\w-]+\.)+(?:com|org|net|edu|gov|info|io|ai|dev|example|local|[a-z]{2})\b(?!\w|\(|\[|\.\w)"
)

#: What Python prints where the code of a cell warns: the file of the cell, the line, the warning.
WARNED = re.compile(
    r"(?:ipykernel_\d+[^\s\"]*\.py|\(a path of this machine\)):\d+: (\w*Warning: [^\\\"]{1,80})"
)

#: In place of a path in what a cell printed; such a run is for its owner and is not published.
SCRUBBED = "(a path of this machine)"

#: Metadata of an executed cell that are evidence, and papermill's; all else (times, paths, notes of frontends) goes.
KEPT, KEPT_STATUS = ("tags", "mystnb"), ("status", "exception")


def scrub(notebook: Any) -> None:
    """Take out what papermill, the kernel and the cells wrote of this machine: times, identities, paths, and frames of
    progress, which belong to the terminal; in place."""
    patterns = [re.escape(place) for place in sorted(_here(), key=len, reverse=True)]
    patterns += [each.pattern for each in LOCAL_PATHS]
    pattern = re.compile(rf"(?:{'|'.join(patterns)})[^\s\"'<>|:()]*")
    notebook.metadata = {
        "kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"},
        "language_info": {"name": "python"},
    }
    for cell in notebook.cells:
        status = cell.metadata.get("papermill", {})
        cell.metadata = {k: v for k, v in cell.metadata.items() if k in KEPT}
        if cell.cell_type != "code":
            continue
        cell.metadata["papermill"] = {k: v for k, v in status.items() if k in KEPT_STATUS}
        frames = [each for each in cell.outputs if each.get("name") == "stderr" and "\r" in each.text]
        cell.outputs = [output for output in cell.outputs if output not in frames]
        for output in cell.outputs:
            output.get("metadata", {}).pop("papermill", None)
            if output.output_type == "stream":
                output.text = pattern.sub(SCRUBBED, output.text)
            for kind, text in output.get("data", {}).items():
                if kind.startswith("text/") and isinstance(text, str):
                    output.data[kind] = pattern.sub(SCRUBBED, text)


def scrubbed(evidence: Evidence) -> Lines:
    """What a cell printed with a path of the machine is not published."""
    text = evidence.notebook_path.read_text(encoding="utf-8")
    if SCRUBBED in text:
        why = f": {warned[1]}" if (warned := WARNED.search(text)) else ""
        yield f"{evidence.notebook_path.name}: a cell prints {SCRUBBED[1:-1]}, mend it{why}"


def _here() -> set[str]:
    places = (paths.repository_root(), os.path.expanduser("~"), sys.prefix, tempfile.gettempdir())
    return {str(place) for place in places} - {"/", "~"}


def local_paths(evidence: Evidence) -> Lines:
    """No path of the machine that ran it, in the notebook or the results."""
    for path in (evidence.notebook_path, evidence.results_path):
        text = path.read_text(encoding="utf-8")
        leaks = [match[0] for pattern in LOCAL_PATHS if (match := pattern.search(text))]
        leaks += [place for place in _here() if json.dumps(place)[1:-1] in text]
        if leaks:
            warned = WARNED.search(text)
            why = f": a cell prints a warning, mend what it is about: {warned[1]}" if warned else ""
            yield f"{path.name} carries a local path ({leaks[0]}…){why}"
        if match := ADDRESS.search(text):
            yield f"{path.name} carries a mail address (…{match[0]})"


#: Beyond words, tables and formulas in Markdown: tags, links, pictures, directives and roles, which name files; a text
#: of JSON with one.
ACTIVE = re.compile(r"<[A-Za-z/!?]|\][(:]|[`~:]{3}\s*\{|\}`")
#: What of TeX reaches beyond a formula: links, styles, classes, other packages, new meanings of names.
BEYOND = (
    r"(?:href|url|style|class|cssId|html\w*|data|require|unicode|bbox|includegraphics|mmlToken|texttip|tooltip|toggle|"
    r"action|def|gdef|let|(?:re)?new(?:command|environment))(?![A-Za-z])"
)
TEX = re.compile(rf"\\{BEYOND}")
MARKED = re.compile(rf'"((?:[^"\\]|\\.)*?(?:{ACTIVE.pattern}|\\\\{BEYOND})(?:[^"\\]|\\.)*)"')


def plain(evidence: Evidence) -> Lines:
    """No markup in what a results file says of its run, names of fields as well: its words stand on pages."""
    entries = evidence.results.entries.items()
    about = {name: [entry.get("unit"), entry.get("note")] for name, entry in entries}
    headers = [each.header for each in (evidence.results, *evidence.results.draws)]
    said = json.dumps([headers, about], ensure_ascii=False)
    for text in MARKED.findall(said)[:3]:
        yield f"{evidence.results_path.name}: {text[:60]!r} has markup; expected plain words"


# ---- What a run must hold: cells that ran, figures with words, every result that is read, the data it names --------

#: Outputs that a page may show: none that a browser runs.
SHOWN = {"text/plain", "text/markdown", "text/latex", "image/png", "image/jpeg"}
LONGEST_HASH = re.compile(r"[0-9a-f]{16,}")
LACKS = "lacks an alternative text; expected a sentence that says what is seen"


def cells(evidence: Evidence) -> Lines:
    """Every code cell ran to its end, none raised, no picture without alternative text, no progress
    frames."""
    code = chapter_runs.ran_cells(evidence.notebook)
    for number, cell in enumerate(code, start=1):
        where, status = f"code cell {number}", cell.metadata.get("papermill", {}).get("status")
        if cell.source.strip() and status != "completed":
            yield f"{where} is {status or 'not run'}, expected completed: {cell.source[:60]!r}"
        for output in cell.outputs:
            shown = output.get("data", {})
            if output.output_type == "error":
                yield f"{where} raised {output.ename}: {output.evalue}"
            if active := sorted(set(shown) - SHOWN):
                yield f"{where} shows {active[0]}; expected one of {', '.join(sorted(SHOWN))}"
            marked = "\n".join(str(shown.get(f"text/{kind}", "")) for kind in ("markdown", "latex"))
            if found := ACTIVE.search(marked) or TEX.search(marked):
                yield f"{where} shows {found[0]!r}; expected words, tables and formulas alone"
            alt = cell.metadata.get("mystnb", {}).get("image", {}).get("alt", "")
            if any(kind.startswith("image/") for kind in shown) and _is_mute(alt):
                yield f"{where} shows a picture {LACKS}"
            if output.output_type == "stream" and "\r" in output.text:
                yield f"{where} printed progress frames; progress belongs to the terminal"
    expected = len(chapter_runs.ran_cells(evidence.chapter.notebook))
    if len(code) != expected:
        yield f"{len(code)} code cells ran that do more than define, the chapter has {expected}"


def figures(evidence: Evidence) -> Lines:
    """Every figure of the text is drawn by a function of results and says in words what it shows; every figure drawn is
    in the text."""
    own, there, named = f"{evidence.chapter.path.stem}.figures/", drawn(evidence), set()
    known = pictures.told(evidence.chapter)
    for path, alt, *_ in chapter_runs.referenced_figures(evidence.chapter.text):
        if _is_mute(alt):
            yield f"figure {path} {LACKS}"
        named.add(name := path.removeprefix(own).removesuffix(".svg"))
        if not path.startswith(own):
            yield f"figure {path} is not from {own}; expected a figure that this chapter's run draws"
        elif name not in there:
            yield f"figure {path} is in the text but nothing draws it"
        elif name not in known:
            yield f"figure {path} is drawn by a cell alone; expected a function of results, as figure(NAME, draw) takes"
    for name in sorted(there - named):
        yield f"figure {name} is drawn but the text does not show it"


def drawn(evidence: Evidence) -> frozenset[str]:
    """The figures that a run's cells drew; of a published run those that a function draws from its results."""
    if evidence.is_published:
        return pictures.told(evidence.chapter)
    files = (path for path in evidence.figures_folder.glob("*.svg") if path.is_file())
    return frozenset(path.name.partition(".")[0] for path in files)


def required_results(evidence: Evidence) -> Lines:
    """Everything that the claims and the prose read was recorded, and nothing is an empty or malformed token. Other
    parameters may well leave out an arm that the text is about; nothing of such a run is published."""
    chapter, recorded = evidence.chapter, set(evidence.results)
    if not evidence.results.header.get("default_parameters"):
        return
    try:
        named = prose.result_names(chapter.text)
        spared = named - prose.result_names(chapter.text, or_else=False)
    except PressError as malformed_table:
        yield str(malformed_table)
        return
    wanted = {name for owner, name in named if owner in (None, chapter.name)}
    wanted -= {name for _, name in spared if prose.has_sibling(name, recorded)}
    # A smoke run stands for the laptop run: it must record whatever that one is judged by.
    profile, there = "laptop" if evidence.profile == "smoke" else evidence.profile, drawn(evidence)
    for claim in claims.chapter_claims(chapter.name):
        if claim.counts_as_evidence(profile, chapter.exact):
            wanted.update(claim.required_names())
        if claim.figure not in there:
            yield f"claim {claim.id} points to figure {claim.figure!r}, which nothing draws"
    for name in sorted(wanted - recorded):
        near = did_you_mean(name, recorded).rstrip()
        yield f"result {name!r} is missing; the text or a claim needs it" + f"; {near}" * bool(near)
    yield from map(prose.no_token, prose.malformed(chapter.text))


def seeds(evidence: Evidence) -> Lines:
    """Every result has one row for each seed that it names, and names each once."""
    for name, entry in evidence.results.entries.items():
        rows, once = len(entry["values"]), len(set(entry["seeds"]))
        if not rows == len(entry["seeds"]) == once:
            yield f"result {name!r} has {rows} rows for {once} seeds"


def judgeable(evidence: Evidence) -> Lines:
    """The claims can be judged by what was recorded."""
    try:
        chapter_runs.chapter_verdicts(evidence)
    except PressError as error:
        yield str(error)


def within_reach(evidence: Evidence) -> Lines:
    """With the seeds that a profile gives a test it could have held; a smoke run judges nothing, and a rerun with
    fewer seeds leaves such a claim open."""
    if evidence.profile == "smoke" or not evidence.results.header.get("default_parameters"):
        return
    recorded, own = set(evidence.results), claims.chapter_claims(evidence.chapter.name)
    own = [claim for claim in own if not claim.out_of_reach and set(claim.result_names()) <= recorded]
    with suppress(PressError):  # what is recorded does not fit the test: another check says so
        for row in [chapter_runs.judged(claim, evidence) for claim in own]:
            judged = [(tested(each), each["n"]) for each in row["tests"] if each["verdict"] != NOT_TESTED]
            for test, n in judged:
                if not kinds.can_hold(test, n):
                    expected = f"at least {kinds.least_seeds(test)}, or `out_of_reach: true` beside it"
                    yield f"claim {row['id']}: with {n} seeds its test cannot hold; expected {expected}"


def data_identity(evidence: Evidence) -> Lines:
    """The data are those the chapter names, are what their hash says, and are no stand-ins above smoke."""
    header, families, sets = evidence.results.header, evidence.chapter.data, book().data.known_sets()
    rows, asked = header.get("data", []), str(header.get("parameters", {}).get("data", "-auto"))
    names = [str(row.get("name")) for row in rows]
    if rows and not asked.endswith("-auto") and asked not in names:
        yield f"the run asked for data {asked} and rests on {', '.join(names)}"
        return
    if families and not rows:
        yield f"the run names no data set; expected {' or '.join(families)} through {book().package}.data.load"
    for row, name in zip(rows, names, strict=True):
        if known := sets.get(name):
            told = ("train", "test", "shape", "exact", *["sha256"] * bool(known["sha256"]))
            wrong = [part for part in told if row.get(part) != known[part]]
            yield from (f"data {name}: {part} is {row.get(part)}, expected {known[part]}" for part in wrong)
        else:
            yield f"data {name!r} are no set that the book knows; expected one of {', '.join(sets)}"
        stand_in = name.endswith("-standin")
        if stand_in and evidence.profile != "smoke" and name not in families:  # else it is made for the page
            yield f"data {name} are stand-ins; the {evidence.profile} profile needs real data"
        if not stand_in and not name.startswith(families):
            yield f"data {name} are not what the chapter declares ({', '.join(families) or 'none'})"


def _is_mute(alt: str) -> bool:
    return len(alt) < 20 or LONGEST_HASH.search(alt) is not None


# ---- The header of a results file: what a run was made from, and how -----------------------------------------------

KERNELS = re.compile(
    r"(ATEN_CPU_|(ONE)?DNN|MKL_|OPENBLAS_|BLIS_|VECLIB_|NPY_|GLIBC_TUNABLES|KMP_|OMP_|CUBLAS_|NVIDIA_TF32|TORCH_ALLOW_TF32)"
)
PACKAGES = ("torch", "torchvision", "numpy", "scipy", "scikit-learn", "papermill", "jupytext", "matplotlib")


def not_as_locked(header: Mapping[str, Any]) -> str:
    """Versions of a run that are not those of requirements.lock, in words; empty where all are."""
    lock = paths.repository_root() / "requirements.lock"
    text = read_text(lock, lock.name) if lock.is_file() else ""
    pins: dict[str, list[str]] = {}
    for name, pin in re.findall(r"^([\w.-]+)==([^\s;+]+)", text, flags=re.M):
        pins.setdefault(name, []).append(pin)
    made = header.get("provenance", {}).get("versions", {})
    others = {n: then for n, then in made.items() if n in pins and then.split("+")[0] not in pins[n]}
    return ", ".join(f"{name} {then} (locked: {', '.join(pins[name])})" for name, then in others.items())


def kernels() -> str:
    """What of this processor torch's kernels use, a digest of how its matrix products round, and the variables that
    choose others: with other kernels the same training rounds otherwise, and after some hundred steps is another draw.

    The digest is of a fixed product in float32 and in float64: the name of a processor does not tell what its products use.
    """
    import numpy as np
    import torch

    factor = torch.from_numpy(np.random.default_rng(0).standard_normal((96, 300)))
    products = [(each @ each.T).numpy().tobytes() for each in (factor.float(), factor)]
    rounded = hashlib.sha256(b"".join(products)).hexdigest()[:8]
    set_here = [f"{name}={value}" for name, value in sorted(os.environ.items()) if KERNELS.match(name)]
    return "; ".join([torch.backends.cpu.get_cpu_capability(), f"products {rounded}", *set_here])


def content_digest(recorded: results.Results) -> str:
    """SHA-256 of everything in a results file but this hash itself: a number edited by hand shows."""
    return stamp.digest({k: v for k, v in results.as_content(recorded).items() if k != "content"})


def _git(*words: str) -> str:
    """What git says of the repository, of the objects that their names name; nothing where there is no git, no
    repository or no such thing."""
    if not shutil.which("git"):
        return ""
    command = ["git", "--no-replace-objects", "-C", str(paths.repository_root()), *words]
    done = subprocess.run(command, capture_output=True, encoding="utf-8")
    return done.stdout if done.returncode == 0 else ""


def commit() -> dict[str, Any]:
    """The commit checked out, and whether what runs differs from it: the packages, the chapters, the lock and what
    names the package."""
    root, packages = paths.repository_root(), folders()
    if not (head := _git("rev-parse", "HEAD").strip()):
        return {"commit": "unknown", "dirty": True}
    own = {name: root / "src" / name for name in packages}
    elsewhere = any(own[name].is_dir() and own[name].resolve() != packages[name].resolve() for name in own)
    asked = [*(f"src/{name}" for name in packages), "book", "requirements.lock", "_config.yml"]
    rows = _git("status", "--porcelain", "--untracked-files=all", "--", *asked).splitlines()
    lines = f"book/{locks.NAME}"  # publishing adds to it, which is no other code; a lock is to be committed
    changed = elsewhere or any(row[3:] != lines for row in rows)
    return {"commit": head, "dirty": changed or locks.has_new_tests(_git("show", f"HEAD:{lines}").strip())}


def to_take_back(claim: str) -> str:
    """What to do where a claim's last lock came too early, in words: nothing where it is committed."""
    committed, chain = _git("show", f"HEAD:book/{locks.NAME}").count("\n"), locks.read()
    new = chain.lines[committed:] if committed else ()
    if not any(claim in line.tests for line in new) or any(line.event == "published" for line in new):
        return ""
    return f"; its last lock is not committed yet, and git checkout book/{locks.NAME} takes it back"


def head() -> tuple[str, str]:
    """The commit checked out and its day, YYYY-MM-DD; both empty where there is no git or no commit."""
    commit, _, day = _git("show", "-s", "--format=%H %cs", "HEAD").strip().partition(" ")
    return commit, day


# ---- The gate: what a run must be before its numbers may be shown --------------------------------------------------


def problems(evidence: Evidence, *, fresh: bool = False) -> list[str]:
    """Everything that forbids showing this run, one line each; empty for a run that passed.

    `fresh`: the run has just ended, so its hashes are its own and only its content is judged.
    """
    try:
        evidence.read()
    except PressError as error:
        return [str(error)]
    checks = [cells, figures, required_results, seeds, local_paths, plain, data_identity, within_reach]
    checks += [judgeable] if fresh else [in_its_place, unaltered, freshness, size]
    checks += [default_parameters, published_last] if evidence.is_published else []
    return [line for check in checks for line in check(evidence)]


def default_parameters(evidence: Evidence) -> Lines:
    """A published run has the parameters that the chapter gives its profile."""
    if not evidence.results.header.get("default_parameters"):
        yield "made with other parameters than the profile's"


def in_its_place(evidence: Evidence) -> Lines:
    """A run lies in the folder of its own profile, or in one that it was given, and under the name of its own chapter, and
    so do its draws."""
    chapter, profile = evidence.results.header.get("chapter"), evidence.results.header.get("profile")
    drawn_at = {(each.header["chapter"], each.header["profile"]) for each in evidence.results.draws}
    if strange := drawn_at - {(evidence.chapter.name, evidence.folder.name)}:
        yield f"a draw of {' at '.join(min(strange))} lies among those of {evidence.name}"
    if chapter != evidence.chapter.name:
        yield f"the results are those of chapter {chapter}, expected {evidence.chapter.name}"
    if evidence.folder.name in PROFILES and profile != evidence.folder.name:
        yield f"a {profile} run lies among the {evidence.folder.name} runs"


def published_last(evidence: Evidence) -> Lines:
    """The run is the one that the locks name last, and began under one of them."""
    header, name = evidence.results.header, evidence.chapter.name
    try:
        chain = locks.read()
    except PressError:  # said where the locks are looked at
        return
    own = [line for line in chain.of_chapter(name) if line.event == "published"]
    last = [line["content"] for line in own if line["profile"] == evidence.folder.name]
    if last[-1:] != [locks.short(header.get("content", ""))]:
        yield f"it is not the run that was published last; {command_name()} publish {name} writes it down"
    elif "locks" in header and chain.position(name, header["locks"]) is None:
        yield "it began under a lock that is not in the file"


def unaltered(evidence: Evidence) -> Lines:
    """Notebook and results are those that the run wrote."""
    then, now = evidence.results.header.get("files", {}), evidence.files()
    changed = [name for name, content in now.items() if then.get(name) != content]
    if evidence.results.header.get("content") != content_digest(evidence.results):
        changed.append(evidence.results_path.name)
    yield from (f"{name} is not the file that the run wrote" for name in changed)


def freshness(evidence: Evidence) -> Lines:
    """The fingerprint fits the checkout."""
    commit = evidence.results.header.get("provenance", {}).get("commit", "")[:10]
    diff = f" (git diff {commit} -- src/{book().package})" if re.fullmatch("[0-9a-f]{10}", commit) else ""
    words = {
        "code": "the chapter's code cells changed since the run",
        "package": f"the {book().package} code that it imports changed since the run{diff}",
        "parameters": f"the {evidence.profile} parameters changed since the run",
        "data": "the data rows in the results file changed since the run",
    }
    yield from (f"stale: {words[part]}; run it again" for part in evidence.stale())


def size(evidence: Evidence) -> Lines:
    megabytes = evidence.notebook_path.stat().st_size / 2**20
    if megabytes > 2:
        yield f"the notebook has {megabytes:.1f} MiB; at most 2 are allowed"


# ---- What pages and lists show of a chapter: the run that passes the gate, whose answers are kept by content -------


def passed_run(chapter: Chapter, profile: str | None = None, name: str | None = None) -> Evidence | None:
    """What every page and list shows of a chapter: the fresh run at `profile` or in runs/`name`, or with neither the
    committed evidence at the highest profile that passes; None where there is nothing to show.

    Raises PressError for a fresh run that does not pass.
    """
    if profile is None and name is None:
        return next((run for run in published_runs(chapter) if not _remembered(run)), None)
    run = fresh_run(chapter, profile or "", name)
    if not run.exists:
        return None
    if found := problems(run):
        lines = "; ".join(found[:3])
        raise PressError(
            f"the {name or profile} run of {chapter.name} does not pass the gate: {lines}; run it again"
        )
    return run


def refused(chapters: Iterable[Chapter]) -> list[str]:
    """Published runs that do not pass, which no page shows, one line each that says why."""
    return [
        f"{run.name} does not pass the check and is not shown: {'; '.join(found[:2])}"
        for run in chapter_runs.kept_runs(chapters).values()
        if (found := _remembered(run) if run.exists else problems(run))
    ]


def _remembered(evidence: Evidence) -> list[str]:
    """What the gate says of committed evidence, asked again only when something that it reads has changed."""
    return kept(f"gate {evidence.name}", _key(evidence), lambda: problems(evidence))


def _key(evidence: Evidence) -> str:
    """SHA-256 of all that the gate reads: run, draws, chapter, claims, settings, locks, package, the machine's paths."""
    beside = evidence.chapter.path.parent
    own = [*beside.glob(f"{evidence.chapter.path.stem}.*"), *beside.glob("_*")]
    run = [evidence.notebook_path, evidence.results_path, *evidence.figures_folder.rglob("*")]
    run.append(results.draws_path(evidence.results_path))
    machine = (str(paths.repository_root()), os.path.expanduser("~"), sys.version)
    locked = locks.read().head(evidence.chapter.name)
    return _digest([*sorted(own), *sorted(run)], f"{code_here()} {machine} {locked}")


@cache
def code_here() -> str:
    """SHA-256 of the package and the press, with their lists."""
    found = (path for folder in folders().values() for path in folder.rglob("*"))
    return _digest(sorted(path for path in found if path.suffix in (".py", ".yml")), "")


def _digest(files: list[Path], more: str) -> str:
    found = hashlib.sha256(more.encode())
    for path in files:
        content = path.read_bytes() if path.is_file() else b""
        found.update(f"{path} {len(content)} ".encode() + content)
    return found.hexdigest()
