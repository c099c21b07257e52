"""A chapter: parameters checked against its own cell (trap 3: YAML's "1e-3", silent unknown names), settings of its
profiles, its own and those it shares, and what is refused."""

from __future__ import annotations

import re

import pytest
import tiny_book
from conftest import ROOT

from bnbook.errors import BnbookError
from bookpress import parameters
from bookpress.pipeline import chapters

VALUES = {
    "lr": 0.1, "seeds": 2, "steps": 1, "rates": [0.1, 0.5], "names": ["a"], "augment": False, "data": "mnist",
}  # fmt: skip
KINDS = {name: parameters.like(value) for name, value in VALUES.items()}  # that are only given values


@pytest.mark.parametrize(
    ("name", "given", "value"),
    [
        ("lr", "1e-3", 0.001), ("lr", 1, 1.0), ("seeds", "1e1", 10), ("seeds", 3.0, 3), ("seeds", "1e3", 1000),
        ("steps", "9007199254740993", 2**53 + 1), ("steps", 9007199254740993, 2**53 + 1),
        ("rates", "[1e-3, 1]", [0.001, 1.0]), ("rates", "0.2,1e-1", [0.2, 0.1]), ("rates", 0.2, [0.2]),
        ("names", "b", ["b"]), ("augment", "true", True), ("data", "cifar10", "cifar10"),
    ],
)  # fmt: skip
def test_values_are_read_by_the_type_of_the_default(name, given, value):
    found = parameters.checked(KINDS, VALUES | {name: given}, "part/x")[name]
    assert found == value and type(found) is type(value)


@pytest.mark.parametrize(
    ("said", "inside", "outside"),
    [
        ("float", 1e-9, 0.0), ("int", 1, 0), ("int from 0", 0, -1), ("float above 2", 2.1, 2.0),
        ("float above 0, up to 1", 1.0, 1.1), ("float above 0, below 1", 0.9, 1.0), ("float from 1 over 2", 0.5, 0.4),
        ("float in rates", 0.5, 0.4), ("list[float] with 1 over 2, once each", [0.5, 1.0], [0.5, 0.5]),
        ("list[int] 2 or more", [1, 2], [1]), ("list[int] 2 of them", [1, 2], [1, 2, 3]), ("int below seeds", 1, 2),
        ("int multiple of seeds", 4, 5), ("int twice a multiple of seeds", 8, 6), ("list[int] as many as rates", [1, 2], [1]),
        ("list[float] rising", [0.1, 0.2], [0.1, 0.1]), ("int from 0", 10**9, 10**9 + 1),
        ("str of images in 3 colours", "cifar10-auto", "mnist"),
    ],
)  # fmt: skip
def test_a_condition_holds_up_to_its_bound_and_no_further(said, inside, outside):
    kinds = KINDS | {"x": parameters.kind(said)}
    assert parameters.checked(kinds, VALUES | {"x": inside})["x"] == inside
    with pytest.raises(BnbookError, match="parameter x is .*; expected"):
        parameters.checked(kinds, VALUES | {"x": outside})


#: What is given beside the values -> all that is said; `x` has a kind of its own.
REFUSED = [
    *((None, {name: given}, f"part/x: parameter {name} is .*expected {said}") for name, given, said in [
        ("lr", "fast", "float"), ("lr", True, "float"), ("lr", 10**400, "float"), ("seeds", "2.5", "int"),
        ("seeds", None, "int"), ("seeds", "9" * 5000, "int"), ("augment", "yes", "bool"), ("rates", "x", "list.float"),
        ("rates", "[2024-99-99]", "list.float"), ("data", [1], "str"),
    ]),
    (None, {"learning_rate": 1}, "part/x has no parameter 'learning_rate'; it has: augment, data, lr, names, rates, seeds"),
    ("list[float] with 1 over 2, rising", {"x": [2.0]}, r"x is \[2.0\]; expected list\[float\] with 0.5 among them$"),
    ("list[float] with lr", {"x": [2.0]}, "with lr among them, and lr is 0.1$"),
    ("int multiple of steps", {"x": 4, "steps": 0}, "multiple of steps, and steps is 0$"),
    ("int multiple of every", {"x": 4}, "'multiple of every' names no parameter; expected one of lr, seeds"),
]  # fmt: skip


@pytest.mark.parametrize(("said", "given", "words"), REFUSED)
def test_a_value_that_cannot_be_is_one_clear_line(said, given, words):
    kinds = KINDS | ({"x": parameters.kind(said)} if said else {})
    with pytest.raises(BnbookError, match=words) as caught:
        parameters.checked(kinds, VALUES | given, "part/x")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("profile", "given", "words"),
    [
        ("smoke", "mnist", "made for: cifar10"),
        ("laptop", "textures-standin", "needs real data, such as 'cifar10-auto'"),
    ],
)
def test_data_that_a_chapter_is_not_made_for_are_refused_before_it_runs(profile, given, words):
    with pytest.raises(BnbookError, match=words):
        chapters.select(["practice/stand-ins"])[0].changed(profile, {"data": given})


def test_yaml_files_and_assignments(tmp_path):
    path = tmp_path / "p.yml"
    path.write_text("lr: 1e-3\nseeds: 4\n")
    given = chapters.read_file(str(path))
    assert given["lr"] == "1e-3", "YAML 1.1 reads 1e-3 as text: the reason why types are coerced"
    assert parameters.checked(KINDS, VALUES | given)["lr"] == 0.001
    assert chapters.parse_assignments(["lr=1e-3", "data = a=b"]) == {"lr": "1e-3", "data": "a=b"}
    for bad in (["lr"], ["=3"]):
        with pytest.raises(BnbookError, match="name=value"):
            chapters.parse_assignments(bad)
    path.write_text("- a\n")
    for name in (str(path), str(tmp_path / "missing.yml")):
        with pytest.raises(BnbookError, match="expected"):
            chapters.read_file(name)


def test_only_literals_stand_in_a_parameters_cell():
    assert chapters.read_cell("a = 1  # one\nb = [1e-3]", "x")[0] == {"a": 1, "b": [0.001]}
    values, kinds = chapters.read_cell('a: int = 1\nb: list[float] = [1e-3]\nc: "float in b" = 2.0', "x")
    assert values == {"a": 1, "b": [0.001], "c": 2.0}
    assert [each.text for each in kinds.values()] == ["int", "list[float]", "float in b"]
    for code in ("import os", "a = b = 1", "a = len('x')", "a, b = 1, 2"):
        with pytest.raises(BnbookError, match="not `name: kind = literal`"):
            chapters.read_cell(code, "x")
    with pytest.raises(BnbookError, match="x: parameter seeds has no kind, .* expected `seeds: int = 2`"):
        chapters.read_cell("lr: float = 0.1\nseeds = 2", "x")


def test_chapters_are_found_by_name_and_profile(tiny):
    chapter = chapters.select(["coin"])[0]
    assert chapter.name == "part/coin" and chapter.title == "A coin" and chapter.data == ()
    assert chapter.parameters("smoke")["tosses"] == 100
    assert chapter.parameters("laptop") == chapter.defaults | {"tosses": 400, "seeds": 5, "profile": "laptop"}
    with pytest.raises(BnbookError, match="no chapter 'part/cion'; did you mean part/coin?"):
        chapters.select(["part/cion"])
    with pytest.raises(BnbookError, match="unknown profile 'huge'"):
        chapter.parameters("huge")


def test_front_matter_survives_a_round_trip_through_jupyter(tiny):
    import jupytext

    path = tiny / "book" / "part" / "coin.md"
    saved = jupytext.writes(jupytext.read(path), fmt="md:myst")
    path.write_text(saved)
    again = chapters.read(path, "part/coin")
    assert again.profiles["laptop"] == {"tosses": 400, "seeds": 5}
    assert ":alt:" in again.text and "{{ ci:heads | .1% }}" in again.text


# ---- settings of the profiles ----


SHARED = """
short:  # a group
  evidence: {rate: 0.25}  # for every profile but smoke
  laptop: {tosses: 400}
  paper: {tosses: 1000}
long:
  paper: {tosses: 9000}
odd:
  weekly: {tosses: 1}
"""
OWN = "profiles:\n    smoke: {}\n    laptop: {tosses: 400, seeds: 5}\n    paper: {tosses: 1000, seeds: 5}"


@pytest.fixture
def header(tiny):
    """Gives the tiny chapter other lines in place of its profiles, and a settings file beside it."""

    def changed(lines: str) -> chapters.Chapter:
        part = tiny / "book" / "part"
        (part / "_settings.yml").write_text(SHARED)
        assert OWN in tiny_book.CHAPTER
        (part / "coin.md").write_text(tiny_book.CHAPTER.replace(OWN, lines))
        return chapters.select(["coin"])[0]

    return changed


def test_own_settings_and_shared_ones_are_joined_by_profile(header):
    chapter = header("settings: {_settings.yml: [short]}\n  profiles:\n    evidence: {seeds: 5}")
    assert chapter.parameters("smoke") == chapter.defaults
    for profile, tosses in (("laptop", 400), ("paper", 1000)):
        beyond = {"profile": profile, "tosses": tosses, "rate": 0.25, "seeds": 5}
        assert chapter.parameters(profile) == chapter.defaults | beyond


@pytest.mark.parametrize(
    "lines,words",
    [
        ("settings: {_settings.yml: [short, long]}",
         "tosses at profile paper is given twice, in _settings.yml"),
        ("settings: {_settings.yml: [short]}\n  profiles: {laptop: {rate: 0.1}}",
         "rate at profile laptop is given"),
        ("settings: {_settings.yml: [odd]}", "_settings.yml, odd: weekly.[key] is 'weekly'; expected 'smoke', 'la"),
        ("color: red", "has unknown key color; expected keys title; optional exact, data, profiles, settings"),
        ("profiles: {evidence: {seeds: 3}, paper: {seeds: 5}}",
         "seeds at profile paper is given twice, in its header"),
        ("settings: {_settings.yml: [shrot]}", "_settings.yml has no group 'shrot'; it has: short, long, odd"),
        ("settings: {_other.yml: [short]}", "no settings file _other.yml; expected it beside the chapter"),
        ("settings: _settings.yml", "settings is '_settings.yml'; expected names with values"),
        ("profiles: {laptpo: {seeds: 3}}", "profiles.laptpo.[key] is 'laptpo'; expected 'smoke', 'laptop'"),
        ("profiles: {laptop: 3}", "profiles.laptop is 3; expected names with values"),
    ],
)  # fmt: skip
def test_a_mistake_in_settings_is_one_line_that_names_the_chapter(header, lines, words):
    with pytest.raises(BnbookError) as caught:
        header(lines)
    message = str(caught.value)
    assert words in message and message.startswith("part/coin: ") and "\n" not in message


def test_a_shared_name_that_the_chapter_does_not_have_is_refused(header):
    chapter = header("settings: {_settings.yml: [short]}")
    cell = chapter.path.read_text()
    chapter.path.write_text(cell.replace("rate = 0.5  # chance of heads\n", ""))
    with pytest.raises(BnbookError, match="part/coin has no parameter 'rate'"):
        chapters.select(["coin"])[0].parameters("laptop")


@pytest.mark.parametrize("path", sorted(ROOT.glob("book/*/*.md")), ids=lambda path: path.stem)
def test_every_setting_of_the_book_is_known_and_has_its_reason(path, monkeypatch):
    monkeypatch.setenv("BNBOOK_ROOT", str(ROOT))
    chapter = chapters.read(path, f"{path.parent.name}/{path.stem}")
    for profile in filter(chapter.has, chapters.PROFILES):
        chapter.parameters(profile)
    header = path.read_text(encoding="utf-8").split("\n---\n")[0]
    shared = [file.read_text(encoding="utf-8") for file in path.parent.glob("_settings.yml")]
    for line in "\n".join([header.partition("\n  profiles:\n")[2], *shared]).split("\n"):
        value = re.match(r" {4,6}\w+: [^#]+", line)
        assert not value or "  # " in line, f"a reason is missing: {line}"
