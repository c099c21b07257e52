"""Kinds of test without sampling error: the rounding of an identity, the violations of a bound."""

from __future__ import annotations

import math

import numpy as np

from bnbook import intervals
from bnbook.claims.claim import Effect, Test
from bnbook.claims.directions import Shown, percent, put
from bnbook.claims.kinds.kind import Kind
from bnbook.claims.outcome import Outcome
from bnbook.claims.recorded import Recorded
from bnbook.claims.units import in_points
from bnbook.claims.words import format_number, upwards
from bnbook.errors import BnbookError


class Identity(Kind):
    """The largest |violation| over seeds and instances is within a tolerance; no interval."""

    name = "identity"
    needs = ({"a", "tolerance"},)
    exact = True

    def columns(self, test: Test, recorded: Recorded) -> np.ndarray:
        """The largest |violation| of each seed."""
        values = np.abs(recorded.worst(test.a))
        return values.reshape(1, len(values), -1).max(axis=2)

    def outcome(self, test: Test, recorded: Recorded) -> Outcome:
        """What is not finite fails."""
        values = np.abs(recorded.worst(test.a))
        worst = float(values.max()) if np.isfinite(values).all() else math.inf
        detail = f"{values.size} values" if values.ndim > 1 else ""
        unit = recorded.unit(test.a)
        return Outcome(worst <= test.tolerance, worst, (worst, worst), len(values), unit, detail)

    def asks(self, test: Test, shown: Effect) -> str:
        """ "off by at most 10⁻¹⁰"."""
        (bound,) = in_points([test.tolerance or 0], shown.unit)
        most = f"at most {format_number(bound)}" if bound or not shown.more else "no"
        return put(most if shown.more else f"off by {most}", shown.unit, shown.more)

    def effect(self, outcome: Outcome, shown: Effect) -> Shown:
        """ "off by at most 10⁻¹²"."""
        unit = shown.unit or outcome.unit
        (value,) = in_points([outcome.effect], unit)
        if shown.more:  # four digits, for 99.99 % are not all
            return put(format_number(value, ".4g"), unit, shown.more), ""
        return "exact" if value == 0 else f"off by at most {upwards(value)} {unit}".strip(), ""


class Inequality(Kind):
    """At most so many of many trials violate a bound: one more refutes it, whatever the interval."""

    name = "inequality"
    needs = ({"a"},)
    may_have = {"b", "allowed"}
    exact = True

    def columns(self, test: Test, recorded: Recorded) -> np.ndarray:
        """How many violations each seed has."""
        values = np.abs(recorded.worst(test.a))
        return values.reshape(1, len(values), -1).sum(axis=2)

    def outcome(self, test: Test, recorded: Recorded) -> Outcome:
        """The share of trials that violate it; BnbookError where these are no counts."""
        violations = recorded.worst(test.a)
        if isinstance(test.b, str):
            own = recorded.worst(test.b)
        else:
            own = np.full(len(violations), violations[0].size if test.b is None else test.b)
        found, trials = violations.sum(), own.sum()
        if not (np.isfinite(violations).all() and 0 <= found <= trials and trials > 0):
            raise BnbookError(
                f"claim {recorded.claim_id}: {found:g} violations in {trials:g} trials; expected a count of "
                "them"
            )
        counts = violations.reshape(len(violations), -1).sum(axis=1)
        interval = _by_seed(
            intervals.clopper_pearson(int(found), int(trials)), counts[own > 0] / own[own > 0]
        )
        detail = f"{int(found)} violations in {int(trials)} trials"
        holds = bool(found <= (test.allowed or 0))
        share, unit = float(found / trials), "of trials"
        return Outcome(holds, share, interval, len(violations), unit, detail, int(trials))

    def asks(self, test: Test, shown: Effect) -> str:
        """ "no violation"."""
        return f"at most {test.allowed} violations" if test.allowed else "no violation"

    def effect(self, outcome: Outcome, shown: Effect) -> Shown:
        """ "0 of 4,000 trials break it", with the interval of the share."""
        hits = round(outcome.effect * outcome.trials)
        broken = shown.more or "trials break it"
        return f"{hits:,} of {outcome.trials:,} {broken}", percent(outcome.interval)


def _by_seed(pooled: tuple[float, float], shares: np.ndarray) -> tuple[float, float]:
    """At least as wide as that of the seeds' own shares: the trials of one seed may go with each other, steps
    of one training say, so that those of all are no independent ones."""
    if len(shares) < 2:
        return pooled
    _, low, high = intervals.student(shares)
    return max(0.0, min(pooled[0], low)), min(1.0, max(pooled[1], high))
