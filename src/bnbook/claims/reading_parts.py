"""Reading what a claim of several tests is made of: parts, the rungs of a ladder, and how effects are
said."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bnbook.claims.claim import Effect, Part
from bnbook.claims.reading_tests import TestEntry
from bnbook.claims.rungs import PLACE, filled


class PartsEntry(TestEntry):
    """An entry that holds parts."""

    def _effect(self, content: Mapping) -> Effect | None:
        """A unit alone, or a mapping with words for both directions."""
        if "effect" not in content:
            return None
        if isinstance(content["effect"], str):
            return Effect(self._text(content, "effect"))
        shown = self._mapping(content["effect"], "effect")
        self._keys(shown, (), ("unit", "more", "less"), "effect")
        if "less" in shown and "more" not in shown:
            self._fail("its effect has a word for less and none for more", "`more: …` beside it")
        words = {key: self._text(shown, key) for key in shown}
        return Effect(**{"less": words.get("more", ""), **words})

    def _parts(self, content: Any) -> tuple[Part, ...]:
        if not isinstance(content, list) or len(content) < 2:
            self._fail("parts is no list of at least two", "`parts: [{says: …, test: …}, …]`")
        parts = []
        for number, part in enumerate(content, start=1):
            part = self._mapping(part, f"part {number}")
            self._keys(part, ("says", "test"), ("effect",), f"part {number}")
            test = self._test(part["test"], f"test of part {number}")
            parts.append(Part(self._text(part, "says"), test, self._effect(part)))
        return tuple(parts)

    def _rungs(self, entry: Mapping, words: Any) -> tuple[Part, ...]:
        """One part a rung; the head of the file has the words for each, the claim may name some of them."""
        words = self._mapping(words, "rungs in the head of the file")
        names = entry["rungs"] if "rungs" in self.entry else list(words)
        if not isinstance(names, list) or not names or not set(names) <= set(words):
            self._fail(f"rungs {names!r} are unknown", f"a list of some of {', '.join(map(str, words))}")
        if "test" not in entry or PLACE not in str(entry["test"]):
            self._fail(f"it is judged rung by rung and no result has {PLACE}", f"`a: speed.{PLACE}.batch`")
        return tuple(
            Part(self._text(words, name), self._test(filled(entry["test"], name), f"test at {name}"))
            for name in names
        )
