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


@pytest.mark.parametrize(
    "text", [bomb(9), "&a [*a]", "a: &a {b: *a}", f"- &x [{', '.join(['1'] * 2000)}]\n" + "- *x\n" * 600]
)
@pytest.mark.parametrize("loader", [texts.yaml.SafeLoader, texts.LOADER])
def test_aliases_that_never_end_are_one_line_at_once(text, loader):
    began = time.perf_counter()
    with pytest.raises(
        BnbookError,
        match=r"^file.yml is nested .* or repeats itself by aliases to more than 1,000,000 values",
    ):
        texts.parse_yaml(text, "file.yml", loader)
    assert time.perf_counter() - began < 20


def test_aliases_that_end_are_read():
    assert texts.parse_yaml(bomb(3), "file.yml")["a2"] == [[["x"]] * 10] * 10
    shared = texts.parse_yaml("- &a {b: 1}\n- *a\n", "file.yml")
    assert shared == [{"b": 1}, {"b": 1}]


@pytest.mark.parametrize(
    "text",
    [
        "[" * 50_000,  # in C each of the four would end the process
        "- " * 50_000 + "a",
        "? " * 50_000 + "a",
        "\n".join(" " * k + "a:" for k in range(6_000)),
        "[" * 200 + "]" * 200,
        "\n".join(" " * k + "a:" for k in range(200)),
    ],
)
def test_what_is_nested_too_deeply_is_one_line(text):
    with pytest.raises(BnbookError, match=r"^file.yml is nested more than 100 levels deep, or ") as caught:
        texts.parse_yaml(text, "file.yml")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("text", ["a: [", "2024-99-99", "- a\n  b: c", "[" * 3_000])
def test_what_is_no_yaml_names_the_file(text):
    with pytest.raises(BnbookError, match=r"^file.yml.* is not YAML: ") as caught:
        texts.parse_yaml(text, "file.yml")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "text, words",
    [
        ("a: 1\nb: 2\na: 3", ", line 3: 'a' stands there and in line 1; keep one of them"),
        ("x: {b: 1, b: 2}", ", line 1: 'b' stands there and in line 1"),
        ("a:\n- c: 1\n  c: 1", ", line 3: 'c' stands there and in line 2"),
        ("a: 1\nb: -010", ", line 2: -010 is octal to YAML, which reads -8; write -10"),
        ("- 00", ", line 1: 00 is octal to YAML, which reads 0; write 0"),
    ],
)
def test_what_yaml_reads_as_something_else_is_one_line(text, words):
    with pytest.raises(BnbookError) as caught:
        texts.parse_yaml(text, "file.yml")
    assert str(caught.value).startswith(f"file.yml{words}")


def test_a_key_that_overrides_what_is_merged_stays():
    assert texts.parse_yaml("a: &a {x: 1, y: 2}\nb:\n  <<: *a\n  y: 3", "f")["b"] == {"x": 1, "y": 3}


def test_a_byte_order_mark_is_said(tmp_path):
    (tmp_path / "f.yml").write_text("\ufeffa: 1", encoding="utf-8")
    with pytest.raises(
        BnbookError, match="^f.yml begins with a byte order mark; save it as UTF-8 without one"
    ):
        texts.read_yaml(tmp_path / "f.yml", "f.yml")
