"""How far a verdict goes: profile, data, size of what was trained and seeds, in a few words."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from bnbook.claims.claim import Claim
from bnbook.claims.words import DATA_NAMES


def scope_words(claim: Claim, header: Mapping[str, Any], profile: str | None, n: int) -> str:
    """ "laptop · CIFAR-10 · 1/8 width · 2,000 steps · n = 5", as far as the run's header tells it."""
    parameters = header.get("parameters", {})
    data = [DATA_NAMES.get(row["name"], row["name"]) for row in header.get("data", [])]
    words = [profile or header.get("profile", "")]
    for name in claim.scope:
        if name == "data":
            words.append(", ".join(data))
        elif name in parameters:
            words.append(_parameter(name, parameters[name]))
    return " · ".join(word for word in (*words, f"n = {n}" if n else "") if word)


def _parameter(name: str, value: Any) -> str:
    """ "2,000 steps", "1/8 width", "width 1,000"."""
    kind = name.rpartition("_")[2]
    if kind in ("steps", "layers"):
        return f"{_number(value)} {kind}"
    if kind == "depth":
        return f"{_number(value)} layers"
    if isinstance(value, float) and 0 < value <= 1:
        return f"{Fraction(value).limit_denominator(1000)} {kind}" if value < 1 else f"full {kind}"
    return f"{kind} {_number(value)}"


def _number(value: Any) -> str:
    if isinstance(value, (list, tuple)):  # layers of one width are said once
        return ", ".join(_number(each) for each in (value[:1] if len(set(value)) == 1 else value))
    return f"{value:,}" if isinstance(value, int) else str(value)
