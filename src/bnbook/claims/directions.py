"""Effects in words: a factor or a difference, its direction and its interval."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from bnbook.claims.claim import Effect, Test
from bnbook.claims.words import BOUND, alike, format_number, telling

#: What the last part of a result's name says of the arm that it belongs to.
ARMS = {
    "none": "without batch norm",
    "batch": "with batch norm",
    "noisy": "with noisy batch norm",
    "l1": "with ℓ1",
    "l2": "with ℓ2",
    "linf": "with ℓ∞",
    "early": "early",
    "late": "late",
    "residual": "with skip connections",
    "deep": "in the deep network",
    "shallow": "in the shallow network",
    "through": "with batch norm",
}
#: Beside one of these it is not batch norm alone that is absent.
OTHERS = {"l1", "l2", "linf"}
Shown = tuple[str, str]  # the effect, and its interval
#: A factor below is told by what it differs from one by.
NEAR_ONE = 1.1
#: Where words for an effect have its number, if not before them.
PLACE = "{}"


def factor(values: list[float], test: Test, shown: Effect) -> Shown:
    """A factor is shown from one on upwards, and says which side is the larger one. Near one, where the test
    asks for no more than a direction, it is said by how much: "1.1 % larger without batch norm"."""
    more, less = factor_words(test, shown)
    if values[0] < 1 and more != less:
        effect, high, low, *limits = (math.inf if value == 0 else 1 / value for value in values)
        values, more = [effect, low, high, *limits], less
    if 1 <= values[0] < NEAR_ONE and values[2] < 2 and more != "apart" and _any_direction(values[3:]):
        effect, low, high = rounded([100 * (value - 1) for value in values], ".2g")
        return f"{effect} % {_any_factor(more, True)}", f"{low} to {high} %"
    if more == "apart":  # a distance, which is no factor below one
        values = [max(value, 1.0) for value in values]
    # near one it is what it differs by that tells
    effect, low, high = rounded(values, ".4g" if values[0] < NEAR_ONE else ".3g")
    return f"{effect} times {more}", f"{low} to {high}"


def _any_direction(limits: list[float]) -> bool:
    """Whether limits of a factor ask for no more than to be on one side of one."""
    return 1.0 in limits and all(limit in (-math.inf, 0.0, 1.0, math.inf) for limit in limits)


def directed(values: list[float], unit: str, directions: tuple[str, str]) -> Shown:
    """A difference is shown without its sign, and says in which direction it goes, if it has words for
    both."""
    word = directions[0]
    if values[0] < 0 and directions[0] != directions[1]:
        effect, high, low, *limits = (-value for value in values)
        values, word = [effect, low, high, *limits], directions[1]
    effect, low, high = rounded(values)
    return put(effect, unit, word), f"{low} to {high}"


def put(number: str, unit: str, word: str) -> str:
    """ "3.1 points higher with batch norm", or "γ = 2.88" where the words have a place for the number."""
    if PLACE in word:
        return word.replace(PLACE, f"{number} {unit}".strip())
    return " ".join(part for part in (number, unit, word) if part)


def factor_words(test: Test, shown: Effect) -> tuple[str, str]:
    """What follows "2.1 times" for a factor above and for one below one."""
    return directions(test, shown, "as large", ("as large", "smaller"))


def beyond(bound: float, test: Test, words: tuple[str, str], unit: str = "") -> str:
    """What a one-sided test asks for, said in the direction in which its effect would be: "more than 3 points
    higher with batch norm", and "higher with batch norm" where any difference will do.

    bound: the threshold as it is shown. With the unit "times" it is a factor, and even is 1, else 0.
    """
    (more, less), even, above = words, float(unit == "times"), test.side == "greater"
    both_ways = more != less
    if both_ways and (bound < even or bound == even and not above):
        bound, more, above = (1 / bound if even else -bound), less, not above
    if bound == even and both_ways:
        return _any_factor(more, above) if even else more
    than = f"{'more' if above else 'less'} than {format_number(bound, BOUND)}"
    return put(than, unit, more)


def level_beyond(bound: float, test: Test, unit: str, words: tuple[str, str]) -> str:
    """The same of a level: "more than 50 % of the steps", "more than the sum" for more than once it."""
    said = f"{unit} {words[0]}".strip()
    if bound == 1 and re.match(r"times (the |as |that |\w+er )", said):
        return _any_factor(said.removeprefix("times "), test.side == "greater")
    return beyond(bound, test, words, unit)


def _any_factor(word: str, above: bool) -> str:
    """ "larger with batch norm" for any factor "as large with batch norm"."""
    if re.match(r"\w+er\b|more\b", word):
        return word
    large = "larger" if above else "smaller"
    if word.startswith("as large"):
        return large + word.removeprefix("as large").replace(" as ", " than ", 1)
    return f"{'more' if above else 'less'} than {word}"


def directions(test: Test, shown: Effect, with_arm: str, without: tuple[str, str]) -> tuple[str, str]:
    """Words for more and less: the claim's own, else the arms' whose names differ, else plain ones."""
    if shown.more:
        return shown.more, shown.less
    if isinstance(test.a, str) and isinstance(test.b, str):
        first, second = test.a.split("."), test.b.split(".")
        pairs = [pair for pair in zip(first, second, strict=False) if pair[0] != pair[1]]
        if len(first) == len(second) and len(pairs) == 1 and set(pairs[0]) <= ARMS.keys():
            names = ARMS | ({"none": "without normalization"} if OTHERS & set(pairs[0]) else {})
            return f"{with_arm} {names[pairs[0][0]]}", f"{with_arm} {names[pairs[0][1]]}"
    return without


def rounded(values: Sequence[float], spec: str = ".3g") -> tuple[str, str, str]:
    """Effect and ends of its interval, with the digits that tell the ends apart and from where the test holds
    no longer: values are these three, then such limits."""
    effect, low, high, *limits = values
    spec = telling(low, high, spec, limits)
    return tuple(alike((effect, low, high), spec))


def percent(interval: tuple[float, float]) -> str:
    """The interval of a share: both ends with as many places."""
    spec = telling(*interval, ".1%")
    ends = [format_number(edge, spec) for edge in interval]
    cut = [re.sub(r"\.0+(?= %)", "", end) for end in ends]
    whole = all(end != short for end, short in zip(ends, cut))
    low, high = (s if whole or edge in (0, 1) else end for edge, end, s in zip(interval, ends, cut))
    return f"{low.removesuffix(' %')} to {high}"


def power(base: float, value: float) -> float:
    try:
        return base**value
    except OverflowError:
        return math.inf


def arm_of(name: str) -> str:
    """ "speed.vgg16.g0_1" -> "γ = 0.1"."""
    letter, digits = re.fullmatch(r"(\D*)(.*)", name.rpartition(".")[2].replace("_", ".")).groups()
    return f"{'γ' if letter == 'g' else letter} = {digits}" if digits else letter
