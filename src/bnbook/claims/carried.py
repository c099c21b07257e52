"""What a notebook carries of the book, for it may be alone: the claims of a chapter and their verdicts."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from bnbook.claims.claim import Claim, Effect, Part, Source, Test
from bnbook.errors import BnbookError


@dataclass(frozen=True)
class Carried:
    """A claim, and what the book's run found: effect and verdict in words, empty where there is none."""

    claim: Claim
    effect: str = ""
    verdict: str = ""


_carried: dict[str, Carried] = {}
settings: dict[str, dict[str, Any]] = {}  # chapter -> parameters of the book's run, its profile among them


def carry(text: str, parameters: Mapping[str, Any] | None = None) -> None:
    """Take over what `as_text` wrote, and the parameters of the book's run; BnbookError where it is something else."""
    try:
        rows = [_from_plain(row) for row in json.loads(text)]
    except (ValueError, TypeError, KeyError):
        raise BnbookError(
            "the notebook's copy of the claims cannot be read; download the notebook again"
        ) from None
    _carried.update({row.claim.id: row for row in rows})
    settings.update({row.claim.chapter: dict(parameters) for row in rows if parameters})


def carried(chapter: str | None = None) -> list[Carried]:
    """What this session carries, of one chapter or of all, in the book's order."""
    return [row for row in _carried.values() if chapter in (None, row.claim.chapter)]


def as_text(rows: Iterable[Carried]) -> str:
    """JSON, a line for each claim."""
    lines = [json.dumps(_sparse(asdict(row)), ensure_ascii=False) for row in rows]
    return "[\n" + ",\n".join(lines) + "\n]"


def _sparse(content: Any) -> Any:
    """Without the fields that are not set: None, empty texts and lists, false."""
    if isinstance(content, Mapping):
        kept = {key: _sparse(value) for key, value in content.items()}
        unset: tuple = (None, "", [])
        return {key: value for key, value in kept.items() if value not in unset and value is not False}
    return [_sparse(item) for item in content] if isinstance(content, (list, tuple)) else content


def _from_plain(row: Mapping[str, Any]) -> Carried:
    fields = dict(row["claim"])
    for name in ("test", "corrected"):
        if name in fields:
            fields[name] = _test(fields[name])
    fields["source"] = Source(**fields["source"])
    fields["parts"] = tuple(
        Part(part["says"], _test(part["test"]), _effect(part)) for part in fields.get("parts", ())
    )
    fields["evidence"], fields["effect"] = tuple(fields["evidence"]), _effect(fields)
    fields["scope"] = tuple(fields.get("scope", ()))
    return Carried(Claim(**fields), row.get("effect", ""), row.get("verdict", ""))


def _effect(content: Mapping[str, Any]) -> Effect | None:
    return Effect(**content["effect"]) if "effect" in content else None


def _test(content: Mapping[str, Any]) -> Test:
    results = content.get("results")
    return Test(**{**content, "results": tuple(results) if results else None})
