"""Effects in words: what a test asks for, and what was found, in the same unit and direction.

A factor is said from one on upwards and a difference without its sign; words for more and for less, the claim's own or
those of its arms, say which side is the larger one.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

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
    unit, base, kind = shown.unit, BASES.get(shown.unit), test.kind
    if kind == "ordering":
        return "every step goes up"
    if kind == "sign":
        return f"{_side(test, shown)} in more than half of the seeds"
    if kind == "inequality":
        return "no violation"
    if kind == "identity":
        (bound,) = _in_points([test.tolerance], unit)
        most = f"at most {format_number(bound)}" if bound or not shown.more else "no"
        return _put(most if shown.more else f"off by {most}", unit, shown.more)
    if kind == "agreement":
        return f"relative error within ± {format_number(100 * test.tolerance)} %"
    if kind == "equivalence":  # of logarithms "within a factor of 1.1"
        bound = _points(test.margin) if unit in SHARES else _in_unit(test.margin, unit)
        return f"within a factor of {bound}" if base else f"difference within ± {bound}"
    if kind == "ratio" or base and test.side:
        bound = test.threshold if kind == "ratio" else base**test.threshold
        return _beyond(bound, test, _directions(test, shown), "times")
    if kind == "difference":
        (bound,) = _in_points([test.threshold], unit)
        return _beyond(bound, test, _directions(test, shown), unit)
    bare = "" if unit or shown.more else "slope " if kind == "rate" else "mean "
    if not test.side:
        return bare + _near(test, shown)
    if bare:
        return f"{bare}{'>' if test.side == 'greater' else '<'} {format_number(test.threshold)}"
    (bound,) = _in_points([test.threshold], unit)
    said = f"{unit} {shown.more}".strip()
    if bound == 1 and re.match(
        r"times (the |as |that |\w+er )", said
    ):  # "more than the sum" for more than once it
        return _any_factor(said.removeprefix("times "), test.side == "greater")
    return _beyond(bound, test, (shown.more, shown.less), unit)


def _beyond(bound: float, test: Test, words: Words, unit: str = "") -> str:
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
    return _put(f"{'more' if above else 'less'} than {format_number(bound, BOUND)}", unit, more)


def _near(test: Test, shown: Effect) -> str:
    """Where the effect has to lie: "within 0.5 ± 0.1", of logarithms "within a factor of 2"."""
    expected, tolerance, unit = test.expected or 0.0, test.tolerance or 0.0, shown.unit
    if unit in SHARES:
        about = _put(_in_unit(expected, unit), "", f"of {PLACE} {shown.more}".strip()) if expected else ""
        return f"within {'' if about else '± '}{_points(tolerance)} {about}".strip()
    if unit in BASES:
        within = f"within a factor of {_in_unit(tolerance, unit)}"
        return f"{_in_unit(expected, unit)} times {shown.more}, {within}" if expected else within
    number = f"{format_number(expected)} ± {format_number(tolerance, BOUND)}"
    return _put(number if PLACE in shown.more else f"within {number}", unit, shown.more)


# ---- What was found -------------------------------------------------------------------------------------------------------


def _found(outcome: Outcome, shown: Effect) -> Shown:
    """ "3.1 points higher with batch norm", "0 of 4,000 trials break it", "2.1 points up from γ = 0.1 to γ = 0.5"."""
    test, unit = outcome.test, shown.unit or outcome.unit
    if test.kind == "identity":
        (value,) = _in_points([outcome.effect], unit)
        if shown.more:  # four digits, for 99.99 % are not all
            return _put(format_number(value, ".4g"), unit, shown.more), ""
        return "exact" if value == 0 else f"off by at most {upwards(value)} {unit}".strip(), ""
    if test.kind == "inequality":
        hits = f"{round(outcome.effect * outcome.trials):,} of {outcome.trials:,}"
        return f"{hits} {shown.more or 'trials break it'}", percent(outcome.interval)
    values = [outcome.effect, *outcome.interval, *test.edges]
    if base := BASES.get(shown.unit):
        return _factor([_power(base, value) for value in values], test, shown)
    if test.kind == "ratio":
        return _factor(values, test, shown)
    if test.kind == "sign":
        hits = f"{round(outcome.effect * outcome.n, 1):g} of {outcome.n}"
        return f"{_side(test, shown)} in {hits} seeds", percent(outcome.interval)
    if test.kind == "agreement":
        return _directed([100 * value for value in values], "%", ("above", "below"))
    values = _in_points(values, unit)
    if test.kind == "ordering":
        effect, ends = _directed(values, unit, ("up", "down"))
        first, second = map(_arm_of, outcome.cells[outcome.place].name.split(" to "))
        return f"{effect} from {first} to {second}", ends
    if test.kind in ("difference", "equivalence"):
        return _directed(values, unit, _directions(test, shown))
    if shown.more:
        return _directed(values, unit, (shown.more, shown.less))
    effect, low, high = rounded(values)
    slope = "slope" if test.kind == "rate" and not unit else ""
    return f"{slope} {effect} {unit}".strip(), f"{low} to {high}"


def _factor(values: list[float], test: Test, shown: Effect) -> Shown:
    """A factor is shown from one on upwards, and says which side is the larger one. Near one, where the test
    asks for no more than a direction, it is said by how much: "1.1 % larger without batch norm"."""
    more, less = _directions(test, shown, factors=True)
    if values[0] < 1 and more != less:
        effect, high, low, *limits = (math.inf if value == 0 else 1 / value for value in values)
        values, more = [effect, low, high, *limits], less
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
    word = words[0]
    if values[0] < 0 and words[0] != words[1]:
        effect, high, low, *limits = (-value for value in values)
        values, word = [effect, low, high, *limits], words[1]
    effect, low, high = rounded(values)
    return _put(effect, unit, word), f"{low} to {high}"


# ---- Words for more and less, and numbers in their unit -------------------------------------------------------------------


def _directions(test: Test, shown: Effect, factors: bool = False) -> Words:
    """Words for more and less: the claim's own, else the arms' whose names differ, else plain ones."""
    if shown.more:
        return shown.more, shown.less
    if test.kind == "sign" and not factors:
        with_arm, less = "larger", "smaller"
    else:
        is_factor = factors or test.in_factors or shown.unit in BASES
        with_arm, less = ("as large", "smaller") if is_factor else ("higher", "lower")
    if isinstance(test.a, str) and isinstance(test.b, str):
        first, second, arms = test.a.split("."), test.b.split("."), book().arms
        pairs = [pair for pair in zip(first, second, strict=False) if pair[0] != pair[1]]
        if len(first) == len(second) and len(pairs) == 1 and set(pairs[0]) <= arms.keys():
            names = {**arms, **{k: v for each in pairs[0] for k, v in book().beside.get(each, {}).items()}}
            return f"{with_arm} {names[pairs[0][0]]}", f"{with_arm} {names[pairs[0][1]]}"
    return with_arm, less


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


def _in_unit(value: float, unit: str) -> str:
    """A bound in the unit of the effect: the factor that a logarithm stands for, a share in points."""
    if unit in BASES:
        return format_number(BASES[unit] ** value, BOUND)
    return f"{format_number(100 * value)} {unit}" if unit in SHARES else format_number(value)


def _points(share: float) -> str:
    points = format_number(100 * share)
    return f"{points} point{'s' * (points != '1')}"


def _in_points(values: Sequence[float], unit: str) -> list[float]:
    """Shares that are shown in points or per cent, times 100."""
    return [100 * value for value in values] if unit in SHARES else list(values)


def _power(base: float, value: float) -> float:
    try:
        return base**value
    except OverflowError:
        return math.inf


def _arm_of(name: str) -> str:
    """ "speed.vgg16.g0_1" -> "γ = 0.1"."""
    letter, digits = re.fullmatch(r"(\D*)(.*)", name.rpartition(".")[2].replace("_", ".")).groups()
    return f"{'γ' if letter == 'g' else letter} = {digits}" if digits else letter
