"""One restamp of the committed evidence, from the old fingerprint (by module) to the new one (by what measures).

    python restamp.py BASE BEFORE AFTER
    python restamp.py BASE --store FOLDER

BASE is the last commit with the old fingerprint. A run is stamped anew only if all of this holds:

1. at BASE, the old `bnbook check` passes all committed evidence;
2. the whole closure of the chapter, read by the new fingerprint, is the same at the commit that the run names
   and at BASE: what the old stamp missed (the engine behind the results store) had not changed in between;
3. the closure at BASE and today is the same; or, where only the code of the trainings was rearranged, BEFORE
   and AFTER hold results of the chapter's smoke run and of a short laptop run, by BASE and by today's code on
   one machine, and all are equal to the last bit (files CHAPTER.smoke.json and CHAPTER.laptop.json).

Only the hashes of the code and the hash of the file itself change. --store: trainings kept under the old hash
are kept under the new one.
"""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

import jupytext
import numpy as np
import torch

from bnbook import atomic, data, fingerprint, results
from bnbook.fingerprint.sources import Binding, Definition, Outside, Sources
from bnbook.pipeline import evidence, header
from bnbook.pipeline.chapters import discover
from bnbook.runs import kinds

#: Modules of BASE that pass results on, and what trained which arm there.
PASSED_ON = (
    "training.pool training.store training.worker training.stacks training.stack_worker training.progress "
    "phase.runs deep_linear.runs"
).split()
TRAINS = {
    "bnbook.training.arm:Arm": "bnbook.training.engine:train",
    "bnbook.training.probed:ProbedArm": "bnbook.training.probed:train_probed",
    "bnbook.training.first_scale:ScaleArm": "bnbook.training.first_scale:train",
    "bnbook.phase.arm:PhaseArm": "bnbook.phase.descent:train_stack",
    "bnbook.deep_linear.arm:LinearArm": "bnbook.deep_linear.descent:train_stack",
}
#: Results that are times.
TIMES = ("training_seconds",)


class Old(Sources):
    """The package as it stood at a commit before the runner."""

    def resolve(self, module: str, name: str) -> Binding:
        bound = super().resolve(module, name)
        if isinstance(bound, Definition):
            runner = bound.module.removeprefix("bnbook.") in PASSED_ON
            runner |= bound.module.endswith("first_scale") and bound.name in ("RUNS", "train_all")
            return Outside(f"bnbook:{bound.name}") if runner else bound
        return bound


def tree(commit: str, folder: Path) -> Path:
    """The files of a commit."""
    target = folder / commit
    if not target.exists():
        packed = subprocess.run(["git", "archive", commit], capture_output=True, check=True).stdout
        with tarfile.open(fileobj=io.BytesIO(packed)) as files:
            files.extractall(target, filter="data")
        intervals = target / "src/bnbook/claims/intervals.py"  # today an instrument
        intervals.rename(target / "src/bnbook/intervals.py")
        intervals.write_text("from bnbook.intervals import *\n")
    return target


def stamp(root: Path, chapter: str) -> tuple[str, str]:
    """The hashes of code and package of a chapter, as the new fingerprint reads them in a tree."""
    sources = Old(root / "src" / "bnbook")
    notebook = jupytext.reads((root / "book" / f"{chapter}.md").read_text(encoding="utf-8"), fmt="md:myst")
    cells = [
        cell.source
        for cell in notebook.cells
        if cell.cell_type == "code" and "parameters" not in cell.metadata.get("tags", [])
    ]
    own = {arm: trainer for arm, trainer in TRAINS.items() if sources.module(arm.split(":")[0])}
    closure, code = fingerprint.read_cells(cells, sources, own)
    closure.follow(sources.resolve(*fingerprint.BANDS))
    closure.finish()
    return fingerprint.digest(code), fingerprint.digest([closure.texts, closure.loose()])


def old_check_passes(base: Path) -> bool:
    """Whether the gate of BASE passes all its evidence, by its own code."""
    (base / "src/bnbook/claims/intervals.py").unlink()
    (base / "src/bnbook/intervals.py").rename(base / "src/bnbook/claims/intervals.py")
    variables = os.environ | {"PYTHONPATH": str(base / "src"), "BNBOOK_ROOT": str(base)}
    done = subprocess.run(
        [sys.executable, "-m", "bnbook", "check"], cwd=base, env=variables, capture_output=True, text=True
    )
    print(done.stdout)
    return done.returncode == 0


def same_bits(chapter: str, before: Path, after: Path) -> str:
    """How many results both codes record alike, in words; nothing where one differs or is not there."""
    count = 0
    for profile in ("smoke", "laptop"):
        name = f"{chapter.split('/')[1]}.{profile}.json"
        if not ((before / name).is_file() and (after / name).is_file()):
            return ""
        runs = [results.read(folder / name).entries for folder in (before, after)]
        one, two = ({key: row for key, row in each.items() if key not in TIMES} for each in runs)
        if one != two:
            return ""
        count += len(one)
    return f"{count} results equal to the last bit"


HASHES = """
import json
from bnbook.pipeline.fingerprint import package_fingerprint as code
from bnbook.training.store import CODE
print(json.dumps({"Arm": code([CODE["Arm"]]), "ProbedArm": code([CODE["ProbedArm"]]),
    "ScaleArm": code(["bnbook.training.first_scale:train"]), "PhaseArm": code(["bnbook.phase.descent:train_stack"]),
    "LinearArm": code(["bnbook.deep_linear.descent:train_stack"])}))
"""


def carry_over(store: Path, base: Path) -> None:
    """Give each training that the code of BASE stored the name that today's code looks for."""
    done = subprocess.run(
        [sys.executable, "-c", HASHES],
        env=os.environ | {"PYTHONPATH": str(base / "src")},
        capture_output=True,
        text=True,
        check=True,
    )
    hashes, kept, editions = json.loads(done.stdout), 0, {}
    classes = {name.split(":")[1]: kinds.find(name) for name in kinds.TRAINS}
    files = sorted(store.glob("*.npz"))
    for path in files:
        with np.load(path, allow_pickle=False) as file:
            meta = json.loads(str(file["meta"]))
        label = next(name for name in ("arm", "scale_arm", "phase_arm", "linear_arm") if name in meta)
        settings, seed = meta[label], meta["seed"]
        kind = {"arm": "ProbedArm" if "probe_steps" in settings else "Arm", "scale_arm": "ScaleArm"}.get(
            label, "PhaseArm" if label == "phase_arm" else "LinearArm"
        )
        arm = classes[kind].from_settings(settings)
        name = getattr(arm, "data", None)
        if name not in editions:
            editions[name] = name and data.prepare(name).sha256
        device = meta.get("device", "cpu").split(":")[0]
        rest = {key: value for key, value in settings.items() if key != "data"}
        old = {label: rest, "seed": seed, "code": hashes[kind], "torch": torch.__version__}
        old |= {"data": editions[name], "device": device} if name else {}
        old |= {"threads": meta["threads"]} if label == "arm" else {}
        if fingerprint.digest(old) != path.stem:
            continue  # of other code, data or torch: of no use to either
        edition = kinds.edition(kinds.kind_of(arm), editions[name])
        path.rename(store / f"{kinds.key(kinds.identity(arm, seed, edition, device))}.npz")
        kept += 1
    print(f"{kept} of {len(files)} stored trainings carried over")


def main() -> None:
    if "--store" in sys.argv:
        with tempfile.TemporaryDirectory() as scratch:
            packed = subprocess.run(["git", "archive", sys.argv[1]], capture_output=True, check=True).stdout
            with tarfile.open(fileobj=io.BytesIO(packed)) as files:
                files.extractall(scratch, filter="data")
            carry_over(Path(sys.argv[sys.argv.index("--store") + 1]), Path(scratch))
        return
    base, before, after = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        if not old_check_passes(tree(base, folder / "whole")):
            sys.exit("the old gate does not pass the evidence at BASE: nothing is stamped")
        for chapter in discover():
            run = evidence.published(chapter, "laptop")
            if not run.exists:
                continue
            made = run.results.header["provenance"]["commit"]
            parameters, rows = run.expected_parameters(), run.results.header["data"]
            now = fingerprint.chapter_fingerprint(chapter.code_cells, parameters, rows)
            if run.results.header["fingerprint"] == now:
                print(f"--   {chapter.name}: run anew at {made[:10]}")
                continue
            at_base, at_run = stamp(tree(base, folder), chapter.name), stamp(tree(made, folder), chapter.name)
            why = "closure equal" if at_base[1] == now["package"] else same_bits(chapter.name, before, after)
            if at_run != at_base or at_base[0] != now["code"] or not why:
                print(f"NOT  {chapter.name}: run it again")
                continue
            was = run.results.header["fingerprint"]
            assert (was["parameters"], was["data"]) == (now["parameters"], now["data"]), chapter.name
            old = json.loads(run.results_path.read_text(encoding="utf-8"))
            run.results.header["fingerprint"] = now
            run.results.header["content"] = header.content_digest(run.results)
            atomic.write_json(run.results_path, results.as_content(run.results))
            new = json.loads(run.results_path.read_text(encoding="utf-8"))
            assert {k for k in old if old[k] != new[k]} == {"fingerprint", "content"}
            print(f"ok   {chapter.name}: {why}; as at {made[:10]}, where it ran")


if __name__ == "__main__":
    main()
