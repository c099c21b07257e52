"""Draws are kept: what a published run gave stays beside the one that takes its place, as numbers only."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from bnbook import atomic, claims, fingerprint, paths, results
from bnbook.claims.judging import is_in
from bnbook.errors import BnbookError
from bnbook.pipeline.chapters.chapters import Chapter
from bnbook.profiles import PUBLISHED
from bnbook.results import Results

#: Of a run's header and of its provenance, what a draw keeps.
HEADER = ("chapter", "profile", "parameters", "fingerprint", "locks", "content")
MADE = ("commit", "date", "device", "threads", "platform")


def with_replaced(chapter: Chapter, old: Results, new: Results) -> list[Results]:
    """The draws of a chapter once `new` takes the place of the published run `old`, the oldest first.

    Of `old` all is kept that a claim reads or could ask of (one number a seed), unless all of it that `new` has is
    the same there: a run from the results store is no other draw, nor are fewer seeds of the same trainings. An
    exact chapter, or one without claims, has no draws.
    """
    read = {name for claim in claims.chapter_claims(chapter.name) for name in claim.result_names()}
    if chapter.exact or not read:
        return []
    names = [name for name in old if name in read or old[name].ndim == 1]
    kept = Results(
        {key: old.header[key] for key in HEADER if key in old.header}
        | {"provenance": {key: old.header["provenance"].get(key) for key in MADE}},
        {name: {key: old.entries[name][key] for key in ("values", "unit", "seeds")} for name in names},
    )
    before = [draw for draw in old.draws if draw.header["content"] != old.header["content"]]
    return [each for each in (*before, kept) if not is_in(each, new, [name for name in each if name in new])]


def write(path: Path, found: list[Results]) -> None:
    """A line for each draw, with its own hash; no file where there is none."""
    if not found:
        path.unlink(missing_ok=True)
        return
    lines = ",\n".join(json.dumps(_signed(draw), separators=(",", ":")) for draw in found)
    path.parent.mkdir(parents=True, exist_ok=True)
    atomic.write_text(path, f'{{"draws":[\n{lines}\n]}}\n')


def _signed(draw: Results) -> dict[str, Any]:
    header = {key: value for key, value in draw.header.items() if key != "digest"}
    content = {"header": header, "results": draw.entries}
    return content | {"header": header | {"digest": fingerprint.digest(content)}}


def problems(chapters: list[Chapter]) -> list[str]:
    """What is wrong with the files of draws, a line each."""
    lines = []
    places = {
        (c.name, p): paths.executed_folder() / p / f"{c.name}.json" for c in chapters for p in PUBLISHED
    }
    for (name, profile), path in places.items():
        try:
            kept = results.read_draws(results.draws_path(path))
        except BnbookError as error:
            lines.append(str(error))
            continue
        for draw in kept:
            own = (draw.header.get("chapter"), draw.header.get("profile")) == (name, profile)
            if not own or _signed(draw)["header"] != draw.header:
                made = draw.header.get("provenance", {}).get("date", "unknown")
                lines.append(f"{profile}/{name}: the draw of {made} is not what was published")
        if kept and not path.is_file():
            lines.append(f"{profile}/{name} has draws and no published run")
    return lines
