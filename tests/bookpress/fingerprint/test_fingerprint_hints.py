"""Of a hint only what decides which fields a dataclass has makes a chapter stale."""

from __future__ import annotations

from dataclasses import KW_ONLY, InitVar, dataclass, fields
from pathlib import Path
from typing import ClassVar

import pytest
from test_fingerprint import FILES, changed, stamp

#: An attribute of the planted dataclass, as it stands there and with each hint: all pairs differ in kind.
KINDS = {
    "an attribute": "scale = 2",
    "a field": "scale: int = 2",
    "of the class": "scale: ClassVar[int] = 2",
    "of the first call": "scale: InitVar[int] = 2",
    "behind keywords": "_: KW_ONLY\n    scale: int = 2",
    "behind another field": "_: int\n    scale: int = 2",
    "without a default": "scale: int",
}
#: Pairs that say the same.
ALIKE = [
    ("scale: int = 2", "scale: float = 2"),
    ("scale: ClassVar[int] = 2", "scale: ClassVar[float] = 2"),
    ("scale: ClassVar[int] = 2", 'scale: "ClassVar[int]" = 2'),
    ("scale: InitVar[int] = 2", "scale: InitVar[float | None] = 2"),
]


def of(attribute: str, folder: Path) -> str:
    return stamp(folder, changed("rates.py", "scale = 2", attribute))[1]


def test_each_hint_that_decides_what_a_field_is_has_a_stamp_of_its_own(tmp_path: Path) -> None:
    stamps = {kind: of(attribute, tmp_path) for kind, attribute in KINDS.items()}
    assert len(set(stamps.values())) == len(KINDS)
    assert stamps["an attribute"] == stamp(tmp_path, FILES)[1]


@pytest.mark.parametrize("one, other", ALIKE)
def test_any_other_part_of_a_hint_is_free(one: str, other: str, tmp_path: Path) -> None:
    assert of(one, tmp_path) == of(other, tmp_path)


def test_the_first_hint_of_a_name_is_seen_and_hides_nothing(tmp_path: Path) -> None:
    assert stamp(tmp_path, changed("rates.py", "BASE = 0.5", "BASE: float = 0.5")) != stamp(tmp_path, FILES)


def test_python_tells_them_apart_by_the_same_words() -> None:
    """Which is why their stamps have to differ: what takes the second place differs."""

    @dataclass
    class Planted:
        value: float = 1.0
        scale: ClassVar[int] = 2
        once: InitVar[int] = 3
        _: KW_ONLY
        late: int = 4

    assert [each.name for each in fields(Planted)] == ["value", "late"]
    assert [each.kw_only for each in fields(Planted)] == [False, True]
