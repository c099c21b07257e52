"""How far a verdict goes: profile, data, size of what was trained and seeds, in a few words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from bookpress.book import book
from bookpress.claims.claim import Claim
from bookpress.claims.locks import is_of_seeds


def scope_words(
    claim: Claim, header: Mapping[str, Any], profile: str | None, n: int, reached: Sequence[str] = ()
) -> str:
    """ "laptop · CIFAR-10 · 1/8 width · 2,000 steps · n = 5", as far as the run's header tells it; of a claim
    with rungs, those that were reached."""
    parameters = header.get("parameters", {})
    data = [book().data_names.get(row["name"], row["name"]) for row in header.get("data", [])]
    said = {"data": ", ".join(data)} | {
        name: _parameter(name, parameters[name])
        for name in claim.scope
        if name in parameters and name != "data"
    }
    words = [profile or header.get("profile", ""), *(said.get(name, "") for name in claim.scope)]
    if reached:
        words += [*_together(reached), f"{len(reached)} of {len(claim.parts)} sizes"]
    return " · ".join(word for word in (*words, f"n = {n}" if n else "") if word)


def other_settings(
    mine: Mapping[str, Any], theirs: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]
) -> str:
    """How the parameters and the data of a run differ from a profile's, in words, but for its seeds, which a verdict
    counts itself: "steps = 6, data textures-standin"; "" where it judges claims as the profile's own run does."""
    apart = {"workers", "profile", "data", "datasets"}
    names = [name for name in theirs if name not in apart and not is_of_seeds(name)]
    words = [f"{name} = {mine[name]!r}" for name in names if name in mine and mine[name] != theirs[name]]
    asked = [str(theirs.get("data", "")), *map(str, theirs.get("datasets", ()))]
    known = {name.partition("-")[0] for name in asked if name}  # cifar10-auto may be a copy of cifar10
    words += [f"data {row['name']}" for row in rows if known and row["name"].partition("-")[0] not in known]
    return ", ".join(dict.fromkeys(words))


def _together(rungs: Sequence[str]) -> list[str]:
    """Rungs that differ in their first words alone, together: "1/16, 1/8 of the width, 2,000 steps"."""
    found: dict[str, list[str]] = {}
    for rung in rungs:
        first, _, rest = (rung[:1].lower() + rung[1:]).rstrip(".").partition(" ")
        found.setdefault(rest, []).append(first)
    return [f"{', '.join(firsts)} {rest}" for rest, firsts in found.items()]


def _parameter(name: str, value: Any) -> str:
    """ "2,000 steps", "1/8 width", "1/16, 1/4 width", "width 1,000"."""
    kind = name.rpartition("_")[2]
    if kind in ("steps", "layers", "depth"):
        return f"{_number(value)} {'layers' if kind == 'depth' else kind}"
    if kind == "widths" and max(value) <= 1:
        return f"{', '.join(map(_share, value))} width"
    if isinstance(value, float) and 0 < value <= 1:
        return f"{_share(value)} {kind}"
    return f"{kind} {_number(value)}"


def _share(value: float) -> str:
    return str(Fraction(value).limit_denominator(1000)) if value < 1 else "full"


def _number(value: Any) -> str:
    if isinstance(value, (list, tuple)):  # layers of one width are said once
        return ", ".join(_number(each) for each in (value[:1] if len(set(value)) == 1 else value))
    return f"{value:,}" if isinstance(value, int) else str(value)
