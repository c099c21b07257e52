"""Reading one test of a claim: its kind and the keys that belong to it."""

from __future__ import annotations

import math
from typing import Any

from bnbook.claims.claim import SIDES, Test
from bnbook.claims.entries import Entry
from bnbook.claims.kinds.known import KINDS

NUMBERS = ("threshold", "margin", "tolerance", "expected", "nonfinite", "resolution")
#: Least value of the keys that count something.
LEAST = {"allowed": 0, "cells": 2}


class TestEntry(Entry):
    """An entry that holds tests."""

    __test__ = False  # not a pytest class

    def _test(self, content: Any, what: str) -> Test:
        content = self._mapping(content, what)
        kind = content.get("kind")
        if not isinstance(kind, str) or kind not in KINDS:
            self._fail(f"{what} has unknown kind {kind!r}", f"one of {', '.join(KINDS)}")
        known = KINDS[kind]
        given = set(content) - {"kind"}
        # Judge the keys by the alternative that they fit best: the complaint is about the likely slip.
        needed = max(known.needs, key=lambda keys: (len(keys & given), -len(keys - given)))
        self._keys(
            content, ("kind", *sorted(needed)), tuple(sorted(known.may_have)), f"{what} of kind {kind}"
        )
        fields: dict[str, Any] = {"kind": kind}
        for key in given:
            value = content[key]
            if key in NUMBERS:
                fields[key] = self._number(value, f"{key} of {what}")
            elif key in LEAST:
                if isinstance(value, bool) or not isinstance(value, int) or value < LEAST[key]:
                    self._fail(f"{key} {value!r} of {what} is no count", f"a whole number ≥ {LEAST[key]}")
                fields[key] = value
            elif key == "events":
                if value is not True:
                    self._fail(f"events {value!r} of {what}", "`events: true`, or nothing")
                fields[key] = value
            elif key == "results":
                if (
                    not isinstance(value, list)
                    or len(value) < 2
                    or not all(isinstance(r, str) for r in value)
                ):
                    self._fail(
                        f"results of {what} is no list of at least two names", "`results: [low, …, high]`"
                    )
                fields[key] = tuple(value)
            elif key == "b" and isinstance(value, (int, float)):
                fields[key] = self._number(value, f"b of {what}")
            else:
                fields[key] = self._text(content, key)
        if fields.get("side", SIDES[0]) not in SIDES:
            self._fail(f"{what} has unknown side {fields['side']!r}", " or ".join(SIDES))
        if known.in_factors and fields.get("resolution", 1.0) < 1:
            self._fail(f"resolution of {what} is below 1", "the factor between two steps of the grid")
        for key in ("margin", "tolerance", "resolution"):
            if fields.get(key, 0.0) < 0:
                self._fail(f"{key} of {what} is negative", "a number ≥ 0")
        return Test(**fields)

    def _number(self, value: Any, what: str) -> float:
        try:
            if isinstance(value, bool):
                raise ValueError
            number = float(value)
            if not math.isfinite(number):
                raise ValueError
        except (TypeError, ValueError, OverflowError):
            self._fail(f"{what} is {value!r}", "a finite number, such as 0.02 or 1e-10")
        return number
