"""The generated page of provenance, and the stamp on every chapter: with what its numbers were made."""

from __future__ import annotations

from collections import Counter

from bnbook.claims.words import DATA_NAMES
from bnbook.pipeline.chapters.chapters import Chapter
from bnbook.pipeline.chapters.evidence import Evidence
from bnbook.pipeline.gate import header
from bnbook.pipeline.prose import tokens
from bnbook.pipeline.prose.tokens import Pages


def provenance(chapters: list[Chapter], pages: Pages) -> str:
    """Every chapter: commit, data, device, seeds, time, memory, versions."""
    lines = [
        "# Provenance",
        "",
        "Where every number comes from. A *fresh* result is one whose fingerprint (code cells, imported "
        "package code,",
        "parameters, data) fits this edition of the book; only fresh results are shown.",
        "",
    ]
    for chapter in chapters:
        lines += [f"## {chapter.title}", "", *_provenance_rows(chapter, pages.evidence[chapter.name]), ""]
    return "\n".join(lines)


def stamp(chapter: Chapter, evidence: Evidence | None, pages: Pages) -> str:
    """The line under a chapter's answer: with what its numbers were made, and at which other profiles those
    that it quotes."""
    if evidence is None:
        text = (
            f"No fresh evidence for this chapter in this edition: run `bnbook run {chapter.name}` to make it."
        )
    else:
        made = evidence.results.header["provenance"]
        smoke = (
            "; a smoke run proves that the code runs, it is no evidence"
            if evidence.profile == "smoke"
            else ""
        )
        smoke = "" if chapter.exact else smoke
        text = (
            f"Numbers on this page: **{evidence.profile}** profile{smoke}"
            f"{_quoted(chapter, evidence, pages)} · data {_data_names(evidence)} · "
            f"{made['device']} · {_seed_words(evidence)} · {_commit_words(made)} · {made['date']} · "
            f"[provenance](/provenance.md) · intervals, in tables the small numbers, are of 95 %"
        )
    return f"```{{container}} run-stamp\n{text}\n```"


def _quoted(chapter: Chapter, evidence: Evidence, pages: Pages) -> str:
    """Other chapters whose numbers the page shows, where they come from another profile."""
    named = sorted(
        {owner for owner, _ in tokens.result_names(chapter.text) if owner and owner != chapter.name}
    )
    runs = {name: run for name in named if (run := pages.evidence.get(name))}
    others = [f"{name} at **{run.profile}**" for name, run in runs.items() if run.profile != evidence.profile]
    return f"; quoted: {', '.join(others)}" if others else ""


def _provenance_rows(chapter: Chapter, evidence: Evidence | None) -> list[str]:
    if evidence is None:
        return [f"No fresh run. To make one: `bnbook run {chapter.name} --profile laptop`."]
    made = evidence.results.header["provenance"]
    rows = {
        "Profile": evidence.profile,
        "Commit": _commit_words(made).removeprefix("commit "),
        "Date": made["date"],
        "Data": "<br>".join(_data_row(row) for row in evidence.results.header["data"]) or "none",
        "Device": f"{made['device']}, {made['threads']} thread{'s' * (made['threads'] != 1)} a run",
        "Seeds": _seed_words(evidence),
        "Time": _time_words(made),
        "Peak memory": f"{made['peak_memory_mib']:,} MiB",
        "Platform": made["platform"],
        "Versions": ", ".join(f"{name} {number}" for name, number in made["versions"].items()),
        "Not as locked": header.not_as_locked(evidence.results.header),
        "Parameters": ", ".join(f"`{k}={v!r}`" for k, v in evidence.results.header["parameters"].items()),
        "Fingerprint": ", ".join(
            f"{k} `{v[:12]}`" for k, v in evidence.results.header["fingerprint"].items()
        ),
    }
    return [
        "| what | of this run |",
        "|---|---|",
        *(f"| {key} | {str(value).replace('|', chr(92) + '|')} |" for key, value in rows.items() if value),
    ]


def _time_words(made: dict) -> str:
    store = made.get("store") or {}
    words = f"{made['seconds']:,.0f} s"
    if store.get("reused"):
        seconds = f"{store['reused_seconds']:,.0f} s, one core each"
        words += f" to put together; its {store['reused']} stored trainings had taken {seconds}"
    return words


def _data_names(evidence: Evidence) -> str:
    names = (row["name"] for row in evidence.results.header["data"])
    return ", ".join(DATA_NAMES.get(name, name) for name in names) or "none"


def _data_row(row: dict) -> str:
    counts = f"{row['train']:,} training and {row['test']:,} test examples"
    return f"{row['name']}: {counts}, SHA-256 `{row['sha256'][:16]}`"


def _seed_words(evidence: Evidence) -> str:
    """Which seeds the results come from; where not all come from the same, how many from which."""
    counts = Counter(tuple(entry["seeds"]) for entry in evidence.results.entries.values()).most_common()
    if len(counts) < 2:
        return f"seeds {_range(counts[0][0])}" if counts else "no seeds"
    return "seeds " + ", ".join(f"{_range(seeds)} ({number} results)" for seeds, number in counts)


def _range(seeds: tuple[int, ...]) -> str:
    run = len(seeds) > 1 and seeds == tuple(range(seeds[0], seeds[-1] + 1))
    return f"{seeds[0]} to {seeds[-1]}" if run else " and ".join(map(str, seeds))


def _commit_words(made: dict) -> str:
    return f"commit `{made['commit'][:10]}`" + (" with uncommitted changes" if made["dirty"] else "")
