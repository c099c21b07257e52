"""What somebody has written in YAML or JSON, as typed objects: a mistake is one line that says where it stands, what is
wrong and what is expected.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, fields
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, ClassVar

import pydantic
from pydantic import BeforeValidator, ConfigDict, StringConstraints, TypeAdapter, ValidationError

from bookpress.errors import PressError, did_you_mean

#: What is expected, by pydantic's name of the mistake; of others by its words.
EXPECTED = {
    "bool_type": "true or false",
    **dict.fromkeys(
        ("finite_number", "float_type", "float_parsing"), "a finite number, such as 0.02 or 1e-10"
    ),
    "greater_than_equal": "a number ≥ {ge:g}",
    "too_short": "at least {min_length} of them",
    "tuple_type": "a list",
    "list_type": "a list",
    "dict_type": "names with values",
    "int_type": "a whole number",
    "string_type": "a text",
    "extra_forbidden": "no such key",
    "string_pattern_mismatch": "lower-case words joined by hyphens",
}


def model(cls: type) -> type:
    """A frozen dataclass whose fields are checked; no key is left over."""
    return pydantic.dataclasses.dataclass(frozen=True, config=ConfigDict(extra="forbid"))(cls)


@model
class Entry:
    """What is read from keys with values: none is missing, unknown or empty."""

    _implied: ClassVar[
        tuple[str, ...]
    ] = ()  # keys that are not written: they follow from where the entry stands

    @pydantic.model_validator(mode="before")
    @classmethod
    def _keys(cls, given: Any) -> Any:
        if hasattr(given, "kwargs"):  # made in code, of arguments
            return given
        if not isinstance(given, Mapping):
            raise ValueError(f"is {given!r}; expected keys with values")
        needed = [
            each.name for each in fields(cls) if each.default is MISSING and each.name not in cls._implied
        ]
        optional = [each.name for each in fields(cls) if each.name not in (*needed, *cls._implied)]
        expected = f"keys {', '.join(needed)}" + f"; optional {', '.join(optional)}" * bool(optional)
        unknown = [str(name) for name in given if name not in (*needed, *optional, *cls._implied)]
        if missing := [name for name in needed if name not in given]:
            written = f" and has {unknown[0]}" if unknown else ""
            raise ValueError(f"lacks {', '.join(missing)}{written}; expected {expected}")
        if unknown:
            hint = did_you_mean(unknown[0], (*needed, *optional)).rstrip()
            raise ValueError(
                f"has unknown key {', '.join(unknown)}{f' ({hint})' * bool(hint)}; expected {expected}"
            )
        if empty := [name for name, value in given.items() if value in (None, "")]:
            raise ValueError(f"has nothing behind {empty[0]}; expected a value, or no such key")
        return given


def as_line(value: Any) -> str:
    """A line of text, white space folded; ValueError for none."""
    if not isinstance(value, str) or not value.strip():
        raise ValueError(f"is {value!r}; expected a line of text")
    return " ".join(value.split())


def as_formulas(value: Any) -> str:
    r"""A line that may hold $formulas$; in double quotes YAML reads the \t of \tilde as a tab."""
    text = as_line(value)
    if any(ord(character) < 32 for character in value.strip()):
        raise ValueError(
            "has a backslash that YAML read as an escape, or a line break; expected formulas in single quotes"
        )
    if text.replace("\\$", "").count("$") % 2:
        raise ValueError("has a formula that does not end; expected a $ before and after each formula")
    return text


def as_some(value: Any) -> Any:
    """What is no empty list; in code a list may be."""
    if value == []:
        raise ValueError("is empty; expected a list of at least one, or no such key")
    return value


def _no_bool(value: Any) -> Any:
    if isinstance(value, bool):
        raise ValueError(f"is {value!r}; expected {EXPECTED['finite_number']}")
    return value


#: In code an optional text may be empty, in a file its key is left out.
Text = Annotated[str, BeforeValidator(lambda value: value and as_line(value))]
Formulas = Annotated[str, BeforeValidator(lambda value: value and as_formulas(value))]
Id = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9.]*(-[a-z0-9.]+)*$")]
#: `1e-3`, text to YAML, is a number.
Number = Annotated[float, BeforeValidator(_no_bool), pydantic.Field(allow_inf_nan=False)]
Some = BeforeValidator(as_some)
Count = Annotated[int, pydantic.Field(strict=True, ge=0)]
Truth = Annotated[bool, pydantic.Field(strict=True)]


def valid(kind: Any, content: Any, where: str) -> Any:
    """The content as that kind; PressError, one line that begins with `where`, for the first mistake."""
    try:
        return _adapter(kind).validate_python(content)
    except ValidationError as error:
        raise PressError(f"{where}: {mistake(error)}") from None


def read_list(
    kind: Any,
    content: Any,
    file: str,
    what: str,
    *,
    key: str = "id",
    whole: Callable[[Mapping], Any] = dict,
    wrong: Callable[[Any], str] = lambda entry: "",
) -> tuple[Any, ...]:
    """The entries of a file's list as that kind.

    `whole` makes of what is written what is validated, ValueError where it cannot; `wrong` says what else is amiss
    with an entry, or nothing. Mistakes name the file and the entry, by its `key` where it has one.
    """
    if not isinstance(content, list):
        raise PressError(f"{file} holds no list; expected one entry `- {key}: …` per {what}")
    found = []
    for number, own in enumerate(content, start=1):
        name = own.get(key) if isinstance(own, Mapping) else None
        where = f"{file}: {what} {name if isinstance(name, str) else f'number {number}'}"
        try:
            found.append(valid(kind, whole(own) if isinstance(own, Mapping) else own, where))
        except ValueError as error:
            raise PressError(f"{where}: {error}") from None
        if amiss := wrong(found[-1]):
            raise PressError(f"{where}: {amiss}")
    return tuple(found)


def require_once(names: Iterable[str], file: str, one: str) -> None:
    """PressError for the first name that comes a second time."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise PressError(f"{file}: {one} {name} appears twice; expected it once")
        seen.add(name)


def read_table(kind: Any, path: Path) -> Any:
    """What a file of the evidence holds beside the runs, in JSON; PressError for what is none of that kind."""
    try:
        return valid(kind, json.loads(path.read_bytes()), path.name)
    except (ValueError, RecursionError):
        raise PressError(f"{path.name} is no JSON; git checkout executed puts it back") from None


def as_plain(value: Any) -> Any:
    """A model as lists and keys with values; what is as it is by default is left out."""
    return _adapter(type(value)).dump_python(value, mode="json", exclude_defaults=True)


@lru_cache(maxsize=64)
def _adapter(kind: Any) -> TypeAdapter:
    return TypeAdapter(kind)


def mistake(error: ValidationError) -> str:
    """The first mistake: `parts.2.test.threshold is 'much'; expected a finite number`."""
    first = error.errors(include_url=False)[0]
    place = ".".join(str(part + 1 if isinstance(part, int) else part) for part in first["loc"]) or "it"
    said = first["msg"].removeprefix("Value error, ")
    if first["type"] == "missing":
        return f"it lacks {place}; expected it"
    if first["type"] != "value_error":
        known = EXPECTED.get(first["type"], "").format(**first.get("ctx", {}))
        said = f"is {repr(first['input'])[:60]}; expected {known or said.removeprefix('Input should be ')}"
    return f"{place} {said}"
