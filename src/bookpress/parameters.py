"""What a chapter's parameters may be: said in words where its first cell assigns them, checked wherever the
values come from.

A parameter is `name: KIND = value  # what it is`, and KIND is bool, int, float, str or a list of one of them; in
quotes it may go on with conditions, separated by commas: `"float in rates"`, `"int from 0, below steps"`,
`"list[float] with 1 over 2, rising"`, `"str of images in 3 colours"`. An int is at least 1 and a float above 0
where it says nothing else, and no int is above `MOST`.
"""

from __future__ import annotations

import ast
import inspect
import itertools
import math
import re
from collections.abc import Callable, Mapping, MutableMapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from bookpress.book import book
from bookpress.errors import PressError, did_you_mean
from bookpress.profiles import PROFILES
from bookpress.texts import parse_yaml

ITEMS: dict[str, type] = {"bool": bool, "int": int, "float": float, "str": str}
KIND = re.compile(rf"(?P<list>list\[)?(?P<item>{'|'.join(ITEMS)})(?(list)\])(?: (?P<conditions>.+))?")
#: A condition as it is said -> whether the values x of a parameter meet it; n is N, what another parameter is or a number
#: such as 1 over 2, or the number K.
CONDITIONS: dict[str, Callable[[list, Any], bool]] = {
    "from N": lambda x, n: all(each >= n for each in x),
    "above N": lambda x, n: all(each > n for each in x),
    "up to N": lambda x, n: all(each <= n for each in x),
    "below N": lambda x, n: all(each < n for each in x),
    "in N": lambda x, n: all(each in n for each in x),
    "with N": lambda x, n: n in x,
    "multiple of N": lambda x, n: n and all(each % n == 0 for each in x),
    "twice a multiple of N": lambda x, n: n and all(each % (2 * n) == 0 for each in x),
    "as many as N": lambda x, n: len(x) == len(n),
    "K or more": lambda x, n: len(x) >= n,
    "K of them": lambda x, n: len(x) == n,
    "once each": lambda x, _: len({*x}) == len(x),
    "rising": lambda x, _: all(one < other for one, other in itertools.pairwise(x)),
    "of images in K colours": lambda x, n: all(book().data.colours(each) == n for each in x),
}
NAMED, NUMBER = r"(?P<n>\w+)(?: over (?P<over>\d+))?", r"(?P<n>\d+)"
FORMS = {re.compile(words.replace("N", NAMED).replace("K", NUMBER)): ask for words, ask in CONDITIONS.items()}
OVER = re.compile(r"(\d+) over (\d+)")
#: Of an int: seeds are multiplied and added to, and generators take 64 bits.
MOST = 10**9
#: Of seeds: each is a computation of its own, and their numbers are held together.
MOST_SEEDS = 10**5
#: How papermill begins the cell that it adds.
INJECTED = "# Parameters\n"


@dataclass(frozen=True)
class Kind:
    """What one parameter may be."""

    text: str  # as it was said
    item: type
    many: bool
    conditions: tuple[str, ...] = ()
    free: bool = False  # a number without a condition may be any

    def read(self, value: Any) -> Any:
        """The value as this kind, text read as it; ValueError where it is no such thing."""
        if not self.many:
            return _item(value, self.item)
        if isinstance(value, str) and value.lstrip()[:1] == "[":
            try:
                value = parse_yaml(value, "")
            except PressError:
                raise ValueError from None
        if isinstance(value, str):
            value = [part.strip() for part in value.split(",")]
        items = [_item(each, self.item) for each in (value if isinstance(value, (list, tuple)) else [value])]
        if not items:
            raise ValueError
        return items

    def unmet(self, value: Any, values: Mapping[str, Any]) -> str:
        """The first condition that the value does not meet, beside the values of all parameters; "" for none."""
        conditions = self.conditions
        if not self.free and self.item in (int, float):
            if not any(each.startswith(("from", "above")) for each in conditions):
                conditions = ("from 1" if self.item is int else "above 0", *conditions)
            if self.item is int:
                conditions = (*conditions, f"up to {MOST}")
        return next((each for each in conditions if not self._meets(each, value, values)), "")

    def _meets(self, condition: str, value: Any, values: Mapping[str, Any]) -> bool:
        form = next(form for form in FORMS if form.fullmatch(condition))
        said = form.fullmatch(condition).groupdict()
        n = said.get("n", "0")
        if not n.isdigit() and n not in values:
            raise PressError(
                f"the condition {condition!r} names no parameter; expected one of {', '.join(values)}"
            )
        bound = int(n) / int(said.get("over") or 1) if n.isdigit() else values[n]
        return FORMS[form](value if self.many else [value], bound)


def kind(annotation: Any) -> Kind:
    """The kind that a type hint says, as an object or in words; PressError where it says none."""
    text = annotation.strip("'\"") if isinstance(annotation, str) else inspect.formatannotation(annotation)
    said = KIND.fullmatch(text)
    conditions = tuple(each.strip() for each in (said["conditions"] or "").split(",") if each) if said else ()
    if not said or not all(any(form.fullmatch(each) for form in FORMS) for each in conditions):
        raise PressError(
            f"the type {text!r} is none that a parameter has; expected {', '.join(ITEMS)} or list[…] and conditions: "
            "from, above, up to, below, in, with, (twice a) multiple of, as many as "
            '2, 1 over 2 or another parameter, "2 or more", "2 of them", "once each", "rising", "of images in 3 colours"'
        )
    return Kind(text, ITEMS[said["item"]], bool(said["list"]), conditions)


def like(default: Any) -> Kind:
    """The kind of a parameter that is only given a value, which may be any of its type."""
    if isinstance(default, list):
        return replace(kind(f"list[{type(default[0]).__name__ if default else 'str'}]"), free=True)
    return replace(kind(type(default).__name__), free=True)


def checked(kinds: Mapping[str, Kind], values: Mapping[str, Any], where: str = "") -> dict[str, Any]:
    """The values, each read as its kind says; PressError, one line, for a name that there is not, a value of
    another kind and a condition that is not met."""
    found = {}
    for name, value in values.items():
        if name not in kinds:
            hint, there = did_you_mean(name, kinds), ", ".join(sorted(kinds))
            raise PressError(f"{where or 'this notebook'} has no parameter {name!r}; {hint}it has: {there}")
        try:
            found[name] = kinds[name].read(value)
        except (ValueError, TypeError, OverflowError):
            raise _refused(where, name, value, kinds[name].text) from None
    for name, value in found.items():
        if name == "profile" and value not in PROFILES:
            raise _refused(where, name, value, f"one of {', '.join(PROFILES)}")
        if name == "seeds" and kinds[name].item is int and value > MOST_SEEDS:
            raise _refused(where, name, value, f"int up to {MOST_SEEDS}: each is a run of its own")
        if unmet := kinds[name].unmet(value, found):
            other = unmet.rpartition(" ")[2]
            beside = f", and {other} is {found[other]!r}" if other in found else ""
            said = OVER.sub(lambda part: f"{int(part[1]) / int(part[2]):g}", unmet)
            said += " among them" * unmet.startswith("with ")
            raise _refused(where, name, value, f"{kinds[name].text.partition(' ')[0]} {said}{beside}")
    return found


def check(namespace: MutableMapping[str, Any]) -> None:
    """Check the parameters of a notebook in its namespace, and put each in as what it was said to be.

    Silent where no parameters are declared. Papermill only warns of a name that the notebook does not have, and
    injects it; here it is refused.
    """
    hints = namespace.get("__annotations__", {})
    if "profile" not in hints:
        return
    kinds = {name: kind(hint) for name, hint in hints.items() if name in namespace}
    injected = [text for text in namespace.get("In", ()) if text.startswith(INJECTED)]
    names = [node.targets[0].id for node in ast.parse(injected[-1]).body] if injected else []
    asked = {name: namespace[name] for name in (*kinds, *names)}
    namespace.update(checked(kinds, asked))


def _refused(where: str, name: str, value: Any, expected: str) -> PressError:
    return PressError(f"{where}{': ' if where else ''}parameter {name} is {value!r}; expected {expected}")


def _item(value: Any, wanted: type) -> Any:
    """One value as the type wanted; ValueError or OverflowError where it is none."""
    if wanted is bool:
        words = {"true": True, "false": False}
        if isinstance(value, str) and value.strip().lower() in words:
            return words[value.strip().lower()]
        if not isinstance(value, bool):
            raise ValueError
        return value
    if wanted is str:
        if isinstance(value, (list, dict, bool)) or value is None:
            raise ValueError
        return str(value)
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        raise ValueError
    if wanted is int and not isinstance(value, float):
        with suppress(ValueError):  # 1e3 is a whole number, too, but no float keeps 2**53 + 1
            return int(value)
    number = float(value)
    if not math.isfinite(number) or wanted is int and not number.is_integer():
        raise ValueError
    return wanted(number)
