"""Effects in words: what a test asks for, and what was found, in the same unit and direction.

A factor is said from one on upwards and a difference without its sign; words for more and for less, the claim's own or
those of its arms, say which side is the larger one.
"""

from __future__ import annotations

import math
import re

from bookpress.book import book
from bookpress.claims.claim import Effect, Test
from bookpress.claims.kinds import Outcome
from bookpress.claims.words import BOUND, format_number, percent, rounded, spelled, upwards

Words = tuple[str, str]  # for more and for less
Shown = tuple[str, str]  # the effect, and its interval
#: A factor below is told by what it differs from one by.
NEAR_ONE = 1.1
#: Where words for an effect have its number, if not before them.
PLACE = "{}"
#: Units of logarithms, shown as the factors that they stand for, and of shares.
BASES, SHARES = {"log": math.e, "log10": 10.0}, ("points", "%")
NO_INTERVAL, ABSENT = "no interval", "–"
#: What is asked whatever the effect is called, and words for more and less where neither claim nor arms have any.
ASKED = {"ordering": "every step goes up", "inequality": "no violation"}
FACTORS: Words = ("as large", "smaller")
PLAIN: dict[str, Words] = {
    "sign": ("larger", "smaller"),
    "agreement": ("above", "below"),
    "ordering": ("up", "down"),
    **dict.fromkeys(("difference", "equivalence"), ("higher", "lower")),
}


def describe_test(test: Test, shown: Effect | None = None) -> str:
    """What has to hold, in the effect's unit and direction: "more than 3 points higher with batch norm"."""
    return spelled(_asks(test, shown or Effect()))


def effect_and_interval(outcome: Outcome) -> Shown:
    """("4.52 times as large without batch norm", "3.58 to 5.7"), the 95 % interval in the effect's own
    direction and unit, empty for an exact check; a dash if nothing was measured."""
    if math.isnan(outcome.effect):
        return ABSENT, ""
    words, ends = _found(outcome, outcome.shown or Effect())
    low, high = outcome.interval
    if low == high:
        return spelled(words), ""
    unknown = math.isinf(high) and (math.isinf(low) or outcome.test.in_factors and low == 0)
    return spelled(words), NO_INTERVAL if unknown else ends


# ---- What a test asks for -----------------------------------------------------------------------------------------------


def _asks(test: Test, shown: Effect) -> str:
    """ "more than 50 % of the steps", "off by at most 10⁻¹⁰", "2 times as large, within a factor of 1.2"."""
    unit, kind = shown.unit, test.kind
    if kind in ASKED:
        return ASKED[kind]
    if kind == "sign":
        return f"{_side(test, shown)} in more than half of the seeds"
    if kind == "identity":
        bound = _number(test.tolerance, test, unit)
        most = f"at most {format_number(bound)}" if bound or not shown.more else "no"
        return _put(most if shown.more else f"off by {most}", unit, shown.more)
    if kind == "agreement":
        return f"relative error within ± {format_number(100 * test.tolerance)} %"
    if kind == "equivalence":  # of logarithms "within a factor of 1.1"
        return f"{'' if unit in BASES else 'difference '}{_within(test.margin, unit)}"
    return _beyond(test, shown) if test.side else _near(test, shown)


def _beyond(test: Test, shown: Effect) -> str:
    """What a one-sided test asks for, said in the direction in which its effect would be: "more than 3 points
    higher with batch norm", and "higher with batch norm" where any difference will do."""
    factors, of_level, above = _in_factors(test, shown), test.kind in LEVELS, test.side == "greater"
    unit, bound = "times" if factors else shown.unit, _number(test.threshold, test, shown.unit)
    (more, less), even = _directions(test, shown), float(unit == "times")
    if of_level and not unit and not more:
        return f"{LEVELS[test.kind]}{'>' if above else '<'} {format_number(bound)}"
    said = f"{unit} {more}".strip()
    if of_level and not factors and bound == 1 and re.match(r"times (the |as |that |\w+er )", said):
        return _any_factor(said.removeprefix("times "), above)  # "more than the sum" for more than once it
    both_ways = more != less
    if both_ways and (bound < even or bound == even and not above):
        bound, more, above = _opposite(bound, even), less, not above
    if bound == even and both_ways:
        return _any_factor(more, above) if even else more
    return _put(f"{'more' if above else 'less'} than {format_number(bound, BOUND)}", unit, more)


def _near(test: Test, shown: Effect) -> str:
    """Where the effect has to lie: "within 0.5 ± 0.1", of logarithms "within a factor of 2"."""
    expected, tolerance, unit, more = test.expected or 0.0, test.tolerance or 0.0, shown.unit, shown.more
    if unit in BASES:
        times = f"{format_number(_number(expected, test, unit), BOUND)} times {more}, " if expected else ""
        return times + _within(tolerance, unit)
    if unit in SHARES and expected:
        about = f"{format_number(100 * expected)} {unit}"
        return f"{_within(tolerance, unit).replace('± ', '')} {_put(about, '', f'of {PLACE} {more}'.strip())}"
    if unit in SHARES:
        return _within(tolerance, unit)
    number = f"{format_number(expected)} ± {format_number(tolerance, BOUND)}"
    said = _put(number if PLACE in more else f"within {number}", unit, more)
    return said if unit or more else LEVELS[test.kind] + said


def _within(margin: float, unit: str) -> str:
    """ "within ± 1 point", of logarithms "within a factor of 1.2"."""
    if unit in BASES:
        return f"within a factor of {format_number(BASES[unit] ** margin, BOUND)}"
    number = format_number(100 * margin if unit in SHARES else margin)
    return f"within ± {number}" + f" point{'s' * (number != '1')}" * (unit in SHARES)


# ---- What was found -------------------------------------------------------------------------------------------------------


def _found(outcome: Outcome, shown: Effect) -> Shown:
    """ "3.1 points higher with batch norm", "0 of 4,000 trials break it", "2.1 points up from γ = 0.1 to γ = 0.5"."""
    test, unit = outcome.test, shown.unit or outcome.unit
    if test.kind == "identity":
        value = _number(outcome.effect, test, unit)
        if shown.more:  # four digits, for 99.99 % are not all
            return _put(format_number(value, ".4g"), unit, shown.more), ""
        return "exact" if value == 0 else f"off by at most {upwards(value)} {unit}".strip(), ""
    if test.kind == "inequality":
        hits = f"{round(outcome.effect * outcome.trials):,} of {outcome.trials:,}"
        return f"{hits} {shown.more or 'trials break it'}", percent(outcome.interval)
    if test.kind == "sign":
        hits = f"{round(outcome.effect * outcome.n, 1):g} of {outcome.n}"
        return f"{_side(test, shown)} in {hits} seeds", percent(outcome.interval)
    factors = _in_factors(test, shown)
    unit = "%" if test.kind == "agreement" else unit
    scale = shown.unit if factors else "" if unit in BASES else unit
    values = [_number(value, test, scale) for value in (outcome.effect, *outcome.interval, *test.edges)]
    if factors:
        return _factor(values, _directions(test, shown))
    words, ends = _directed(values, unit, _directions(test, shown))
    if test.kind == "ordering":
        first, second = map(_arm_of, outcome.cells[outcome.place].name.split(" to "))
        return f"{words} from {first} to {second}", ends
    bare = test.kind == "rate" and not unit and not shown.more
    return f"slope {words}" if bare else words, ends


def _factor(values: list[float], words: Words) -> Shown:
    """A factor is shown from one on upwards, and says which side is the larger one. Near one, where the test
    asks for no more than a direction, it is said by how much: "1.1 % larger without batch norm"."""
    values, more = _upwards(values, words, 1.0)
    limits = values[3:]
    any_will_do = 1.0 in limits and all(limit in (-math.inf, 0.0, 1.0, math.inf) for limit in limits)
    if 1 <= values[0] < NEAR_ONE and values[2] < 2 and more != "apart" and any_will_do:
        effect, low, high = rounded([100 * (value - 1) for value in values], ".2g")
        return f"{effect} % {_any_factor(more, True)}", f"{low} to {high} %"
    if more == "apart":  # a distance, which is no factor below one
        values = [max(value, 1.0) for value in values]
    # near one it is what it differs by that tells
    effect, low, high = rounded(values, ".4g" if values[0] < NEAR_ONE else ".3g")
    return f"{effect} times {more}", f"{low} to {high}"


def _directed(values: list[float], unit: str, words: Words) -> Shown:
    """A difference is shown without its sign, and says in which direction it goes, if it has words for
    both."""
    values, word = _upwards(values, words, 0.0)
    effect, low, high = rounded(values)
    return _put(effect, unit, word), f"{low} to {high}"


def _upwards(values: list[float], words: Words, even: float) -> tuple[list[float], str]:
    """An effect, the ends of its interval and its limits from `even` on upwards, and the word for that direction."""
    if values[0] >= even or words[0] == words[1]:
        return values, words[0]
    effect, high, low, *limits = (_opposite(value, even) for value in values)
    return [effect, low, high, *limits], words[1]


def _opposite(value: float, even: float) -> float:
    """The same seen from the other side: of a factor, which is even at 1, its inverse."""
    return -value if not even else 1 / value if value else math.inf


# ---- Words for more and less, and numbers in their unit -------------------------------------------------------------------

#: Kinds whose effect need not have a direction, and what a number without a unit is called.
LEVELS = {"level": "mean ", "rate": "slope "}


def _directions(test: Test, shown: Effect) -> Words:
    """Words for more and less: the claim's own, else the arms' whose names differ, else plain ones."""
    factors = _in_factors(test, shown)
    if shown.more and (factors or test.kind not in ("agreement", "ordering")):
        return shown.more, shown.less
    plain = FACTORS if factors else PLAIN.get(test.kind, ("", ""))
    if not isinstance(test.b, str) or test.kind == "agreement":
        return plain
    first, second, arms = test.a.split("."), test.b.split("."), book().arms
    pairs = [pair for pair in zip(first, second, strict=False) if pair[0] != pair[1]]
    if len(first) != len(second) or len(pairs) != 1 or not set(pairs[0]) <= arms.keys():
        return plain
    names = {**arms, **{k: v for each in pairs[0] for k, v in book().beside.get(each, {}).items()}}
    return f"{plain[0]} {names[pairs[0][0]]}", f"{plain[0]} {names[pairs[0][1]]}"


def _in_factors(test: Test, shown: Effect) -> bool:
    """Whether the effect is shown as a factor: a ratio, and a logarithm of one."""
    return test.in_factors or shown.unit in BASES and test.kind != "sign"


def _side(test: Test, shown: Effect) -> str:
    """ "larger without batch norm"."""
    return _directions(test, shown)[test.side == "less"]


def _any_factor(word: str, above: bool) -> str:
    """ "larger with batch norm" for any factor "as large with batch norm"."""
    if re.match(r"\w+er\b|more\b", word):
        return word
    if word.startswith("as large"):
        large = "larger" if above else "smaller"
        return large + word.removeprefix("as large").replace(" as ", " than ", 1)
    return f"{'more' if above else 'less'} than {word}"


def _put(number: str, unit: str, word: str) -> str:
    """ "3.1 points higher with batch norm", or "γ = 2.88" where the words have a place for the number."""
    if PLACE in word:
        return word.replace(PLACE, f"{number} {unit}".strip())
    return " ".join(part for part in (number, unit, word) if part)


def _number(value: float, test: Test, unit: str) -> float:
    """A value as it is shown: a share in points or per cent, of a logarithm the factor that it stands for."""
    if unit in BASES and not test.exact and not test.in_factors:
        try:
            return BASES[unit] ** value
        except OverflowError:
            return math.inf
    return 100 * value if unit in SHARES and not test.in_factors else value


def _arm_of(name: str) -> str:
    """ "speed.vgg16.g0_1" -> "γ = 0.1"."""
    letter, digits = re.fullmatch(r"(\D*)(.*)", name.rpartition(".")[2].replace("_", ".")).groups()
    return f"{'γ' if letter == 'g' else letter} = {digits}" if digits else letter
