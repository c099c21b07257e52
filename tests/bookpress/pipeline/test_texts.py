"""YAML that somebody has written: what cannot be read, or never ends, is one line."""

from __future__ import annotations

import time

import pytest

from bnbook.errors import BnbookError
from bookpress import texts


def bomb(levels: int) -> str:
    """Each line is ten times the one before it."""
    lines = ["a0: &a0 [x]"] + [f"a{k}: &a{k} [{', '.join([f'*a{k - 1}'] * 10)}]" for k in range(1, levels)]
    return "\n".join(lines)


def steps(count: int) -> str:
    return "\n".join(" " * k + "a:" for k in range(count))


DEEP = " is nested more than 100 levels deep, or repeats itself by aliases to more than 1,000,000 values"
REFUSED = [
    *((text, DEEP) for text in (bomb(9), "&a [*a]", "a: &a {b: *a}", f"- &x [{'1, ' * 2000}]\n" + "- *x\n" * 600)),
    # in C each of the first four would end the process
    *((text, DEEP) for text in ("[" * 50_000, "- " * 50_000 + "a", "? " * 50_000 + "a", steps(6_000))),
    *((text, DEEP) for text in ("[" * 200 + "]" * 200, steps(200))),
    *((text, "") for text in ("a: [", "2024-99-99", "- a\n  b: c", "[" * 3_000)),
    ("a: 1\nb: 2\na: 3", ", line 3: 'a' stands there and in line 1; keep one of them"),
    ("x: {b: 1, b: 2}", ", line 1: 'b' stands there and in line 1"),
    ("a:\n- c: 1\n  c: 1", ", line 3: 'c' stands there and in line 2"),
    ("a: 1\nb: -010", ", line 2: -010 is octal to YAML, which reads -8; write -10"),
    ("- 00", ", line 1: 00 is octal to YAML, which reads 0; write 0"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "words"), REFUSED, ids=range(len(REFUSED)))
def test_what_is_not_read_is_one_line_at_once(text, words):
    for loader in (texts.LOADER, *([texts.yaml.SafeLoader] if words == DEEP else [])):  # where C is not built
        began = time.perf_counter()
        with pytest.raises(BnbookError) as caught:
            texts.parse_yaml(text, "file.yml", loader)
        said = str(caught.value)
        assert said.startswith(f"file.yml{words}") and "\n" not in said and time.perf_counter() - began < 20
        assert words or " is not YAML: " in said


READ = [
    (bomb(3), {"a0": ["x"], "a1": [["x"]] * 10, "a2": [[["x"]] * 10] * 10}),
    ("- &a {b: 1}\n- *a\n", [{"b": 1}, {"b": 1}]),
    ("a: &a {x: 1, y: 2}\nb:\n  <<: *a\n  y: 3", {"a": {"x": 1, "y": 2}, "b": {"x": 1, "y": 3}}),
]


@pytest.mark.parametrize(("text", "content"), READ)
def test_aliases_that_end_and_keys_that_override_what_is_merged_are_read(text, content):
    assert texts.parse_yaml(text, "file.yml") == content


SLIPS = [
    ("a: b: c", "line 1", "into quotes"),
    ("- id: x\n   says: y\n", "line 2", "mend the indentation"),
    ("a:\n  b: 1\n c: 2", "line 3", "in the column of its neighbours"),
    ("a: 'it's'", "line 1", "quotes within quotes"),
    ("- id: x\n\tsays: y", "line 2", "indent by spaces"),
    ("a: @x", "line 1", "into quotes"),
    ("a: {b: 1 c: 2}", "line 1", "close the brace"),
    ("a: [1, 2\nb: 3", "line 2", "close the bracket"),
    ("a: 'x", "line 1", "close the quote"),
    ('a: "$\\sigma$"', "line 1", "single quotes"),
]


@pytest.mark.parametrize("parser", [texts.yaml.SafeLoader, texts.LOADER])
@pytest.mark.parametrize(("text", "line", "advice"), SLIPS)
def test_a_common_slip_is_said_with_what_to_do(text, line, advice, parser):
    with pytest.raises(BnbookError, match=rf"^file.yml, {line} is not YAML: .*; .*{advice}"):
        texts.parse_yaml(text, "file.yml", parser)


def test_a_byte_order_mark_is_said(tmp_path):
    (tmp_path / "f.yml").write_text("\ufeffa: 1", encoding="utf-8")
    with pytest.raises(
        BnbookError, match="^f.yml begins with a byte order mark; save it as UTF-8 without one"
    ):
        texts.read_yaml(tmp_path / "f.yml", "f.yml")
