"""What pages are filled from: the evidence that is shown for each chapter, and the claims that it judges."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from bnbook import claims
from bnbook.pipeline.chapters import verdicts
from bnbook.pipeline.chapters.evidence import Evidence


@dataclass(frozen=True)
class Pages:
    """All that tokens may ask for: the evidence rendered for each chapter (None where there is none)."""

    evidence: dict[str, Evidence | None]
    claims: list[claims.Claim]

    @cached_property
    def rows(self) -> dict[str, dict[str, Any]]:
        """The ledger's row of every claim, by its id."""
        from bnbook.pipeline.pages import ledger  # which knows this class

        return {row["id"]: row for row in ledger.ledger(self)}

    @cached_property
    def _judgements(self) -> dict[claims.Claim, claims.Judgement | None]:
        return {}

    def judgement(self, claim: claims.Claim) -> claims.Judgement | None:
        if claim not in self._judgements:
            evidence = self.evidence.get(claim.chapter)
            self._judgements[claim] = verdicts.judged(claim, evidence) if evidence else None
        return self._judgements[claim]

    def claim(self, name: str) -> claims.Claim:
        """The claim of that id; ValueError where no chapter has it."""
        found = [claim for claim in self.claims if claim.id == name]
        if not found:
            raise ValueError(f"no chapter has a claim {name!r}")
        return found[0]
