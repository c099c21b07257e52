"""Take a passed run over into executed/, the committed evidence."""

from __future__ import annotations

import shutil

from bnbook import paths, results
from bnbook.claims import locks
from bnbook.errors import BnbookError, reason
from bnbook.pipeline.chapters.chapters import Chapter
from bnbook.pipeline.chapters.evidence import Evidence, fresh_run, move, published
from bnbook.pipeline.gate import carrying, draws, gate, header, kept, leaks
from bnbook.profiles import PUBLISHED

LARGEST_MIB = 40


def publish(chapter: Chapter, profile: str) -> Evidence:
    """Copy the chapter's fresh run at `profile` to executed/, whole or not at all; the locks get its line.

    Raises BnbookError for a smoke run, a run with other parameters than the profile's, and a run that fails
    the gate.
    """
    if profile not in PUBLISHED:
        known = ", ".join(PUBLISHED[::-1])
        raise BnbookError(
            f"a {profile} run is no evidence and is never published; expected --profile one of {known}"
        )
    run = fresh_run(chapter, profile)
    if not run.exists:
        raise BnbookError(
            f"{chapter.name} has no {profile} run; run it first: bnbook run {chapter.name} --profile "
            f"{profile}"
        )
    if found := [*gate.problems(run), *leaks.scrubbed(run)]:
        raise BnbookError(f"{chapter.name} does not pass the gate: {'; '.join(found)}")
    if gate.default_parameters(run):
        raise BnbookError(
            f"{chapter.name}: the run has its own parameters (--set, --seeds or --params); run it without"
        )
    made = run.results.header["provenance"]
    if made["dirty"]:
        raise BnbookError(
            f"{chapter.name}: the run was made from uncommitted code ({made['commit'][:10]}); commit, "
            "then run it again"
        )
    target = published(chapter, profile)
    old = target.results if target.results_path.is_file() else None
    events = carrying.publishing(chapter, profile, old, run.results)
    kept.take_over(run)
    staging = Evidence(chapter, paths.executed_folder() / f".{profile}.publishing")
    try:
        staging.notebook_path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copytree(run.figures_folder, staging.figures_folder, dirs_exist_ok=True)
        shutil.copy2(run.notebook_path, staging.notebook_path)
        shutil.copy2(run.results_path, staging.results_path)
        if old is not None:  # a draw that is the published run itself does not count twice
            draws.write(
                results.draws_path(target.results_path), draws.with_replaced(chapter, old, run.results)
            )
        move(staging, target)
    except OSError as error:
        raise BnbookError(
            f"{chapter.name} could not be published ({reason(error)}); nothing was replaced"
        ) from None
    finally:
        shutil.rmtree(staging.folder, ignore_errors=True)
    locks.append(events)
    kept.tidy(run)
    return published(chapter, profile)


def other_versions(chapters: list[Chapter]) -> list[str]:
    """Published runs made with other versions of packages than requirements.lock asks for, one line each."""
    lines = []
    for chapter in chapters:
        for profile in PUBLISHED:
            evidence = published(chapter, profile)
            if evidence.exists and (other := header.not_as_locked(evidence.results.header)):
                lines.append(f"{profile}/{chapter.name} was made with {other}")
    return lines


def published_problems(chapters: list[Chapter]) -> dict[str, list[str]]:
    """For each published run of these chapters (`profile/chapter`) what the gate says now."""
    return {name: gate.problems(evidence) for name, evidence in _kept_runs(chapters).items()}


def _kept_runs(chapters: list[Chapter]) -> dict[str, Evidence]:
    places = {f"{profile}/{c.name}": published(c, profile) for c in chapters for profile in PUBLISHED}
    return {n: run for n, run in places.items() if run.results_path.exists() or run.notebook_path.exists()}


def executed_problems(chapters: list[Chapter]) -> dict[str, list[str]]:
    """For each published run (`profile/chapter`) what the gate says now; files of no chapter are named
    too."""
    folder = paths.executed_folder()
    found = published_problems(chapters)
    expected = set()
    for evidence in _kept_runs(chapters).values():
        expected |= {evidence.notebook_path, evidence.results_path, *evidence.figures_folder.glob("*")}
    files = [path for path in folder.rglob("*") if path.is_file()] if folder.is_dir() else []
    trainings = kept.problems()
    expected |= {paths.rewritten(), *paths.trainings_folder().glob("*.npz")}
    expected |= {
        results.draws_path(folder / profile / f"{c.name}.json") for c in chapters for profile in PUBLISHED
    }
    if broken := draws.problems(chapters):
        found["draws"] = broken
    strays = sorted(path.relative_to(folder).as_posix() for path in files if path not in expected)
    if strays:
        found["executed"] = [f"{name} belongs to no chapter; remove it" for name in strays]
    if trainings:
        found["trainings"] = trainings
    megabytes = sum(path.stat().st_size for path in files) / 2**20
    if megabytes > LARGEST_MIB:
        found.setdefault("executed", []).append(
            f"executed/ has {megabytes:.0f} MiB; at most {LARGEST_MIB} are allowed"
        )
    return found
