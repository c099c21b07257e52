"""Effects in words: a factor or a difference, its direction and unit."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from bnbook.claims.claim import Effect, Test
from bnbook.claims.judging import Judgement
from bnbook.claims.kinds import Outcome, edges
from bnbook.claims.requirements import BASES, SHARES
from bnbook.claims.words import alike, format_number, telling

NO_INTERVAL = "no interval"
ABSENT = "–"
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
Shown = tuple[str, str]


def effect_and_interval(found: Judgement | Outcome) -> Shown:
    """("4.52 times as large without batch norm", "3.58 to 5.7"), the 95 % interval in the effect's own
    direction and unit, empty for an exact check; a dash if nothing was measured."""
    outcome = found.outcome if isinstance(found, Judgement) else found
    if outcome is None or outcome.test is None or math.isnan(outcome.effect):
        return ABSENT, ""
    test, shown = outcome.test, outcome.shown or Effect()
    low, high = outcome.interval
    unknown = math.isinf(low) and math.isinf(high) or test.kind == "ratio" and (low, high) == (0, math.inf)
    exact = low == high
    if test.kind == "identity":
        return _deviation(outcome, shown), ""
    if test.kind == "inequality":
        return _trials(outcome, shown)
    words, ends = _words(outcome, test, shown)
    return words, "" if exact else NO_INTERVAL if unknown else ends


def format_effect(found: Judgement | Outcome, spec: str | None = None) -> str:
    """Effect with its 95 % interval in words; with a `spec` the bare numbers: "0.12 (95 % interval 0.1 to
    0.14)"."""
    effect, interval = effect_and_interval(found) if spec is None else _numbers(found, spec)
    return f"{effect} ({interval_words(interval)})" if interval else effect


def interval_words(interval: str) -> str:
    """The second of `effect_and_interval`, where no heading says what it is."""
    return interval if interval in ("", NO_INTERVAL) else f"95 % interval {interval}"


def _words(outcome: Outcome, test: Test, shown: Effect) -> Shown:
    values = (outcome.effect, *outcome.interval, *edges(test))
    if base := BASES.get(shown.unit):
        return _factor([_power(base, value) for value in values], test, shown)
    if test.kind == "ratio":
        return _factor(list(values), test, shown)
    if test.kind == "sign":
        return _counted(outcome, test, shown)
    unit = shown.unit or outcome.unit
    values = tuple(100 * value for value in values) if unit in SHARES else values
    if test.kind == "agreement":
        return _directed([100 * value for value in values], "%", ("above", "below"))
    if test.kind == "ordering":
        first, second = outcome.detail.removeprefix("decided by ").split(" to ")
        effect, ends = _directed(list(values), unit, ("up", "down"))
        return f"{effect} from {_last(first)} to {_last(second)}", ends
    if test.kind in ("difference", "equivalence"):
        more, less = _directions(test, shown, "higher", ("higher", "lower"))
        return _directed(list(values), unit, (more, less))
    if shown.more:
        return _directed(list(values), unit, (shown.more, shown.less))
    effect, low, high = _shown(values)
    prefix = "slope " if test.kind == "rate" and not unit else ""
    return f"{prefix}{effect} {unit}".strip(), f"{low} to {high}"


def _counted(outcome: Outcome, test: Test, shown: Effect) -> Shown:
    """ "larger without batch norm in 14 of 20 seeds", with the interval of the share."""
    words = _directions(test, shown, "larger", ("larger", "smaller"))
    hits = round(outcome.effect * outcome.n)
    return f"{words[test.side == 'less']} in {hits} of {outcome.n} seeds", _percent(outcome.interval)


def _factor(values: list[float], test: Test, shown: Effect) -> Shown:
    """A factor is shown from one on upwards, and says which side is the larger one."""
    more, less = _directions(test, shown, "as large", ("as large", "smaller"))
    if values[0] < 1:
        effect, high, low, *limits = (math.inf if value == 0 else 1 / value for value in values)
        values, more = [effect, low, high, *limits], less
    # near one it is what it differs by that tells
    effect, low, high = _shown(values, ".4g" if values[0] < 1.1 else ".3g")
    return f"{effect} times {more}", f"{low} to {high}"


def _directed(values: list[float], unit: str, directions: tuple[str, str]) -> Shown:
    """A difference is shown without its sign, and says in which direction it goes."""
    word = directions[0]
    if values[0] < 0:
        effect, high, low, *limits = (-value for value in values)
        values, word = [effect, low, high, *limits], directions[1]
    effect, low, high = _shown(values)
    return " ".join(part for part in (effect, unit, word) if part), f"{low} to {high}"


def _directions(test: Test, shown: Effect, with_arm: str, without: tuple[str, str]) -> tuple[str, str]:
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


def _deviation(outcome: Outcome, shown: Effect) -> str:
    value, unit = outcome.effect, shown.unit or outcome.unit
    if unit in SHARES:
        value = 100 * value
    if shown.more:
        return f"{format_number(value)} {unit} {shown.more}".replace("  ", " ")
    return "exact" if value == 0 else f"off by at most {format_number(value)} {unit}".strip()


def _trials(outcome: Outcome, shown: Effect) -> Shown:
    hits = round(outcome.effect * outcome.trials)
    return f"{hits:,} of {outcome.trials:,} {shown.more or 'trials break it'}", _percent(outcome.interval)


def _shown(values: Sequence[float], spec: str = ".3g") -> tuple[str, str, str]:
    """Effect and ends of its interval, with the digits that tell the ends apart and from where the test holds
    no longer: values are these three, then such limits."""
    effect, low, high, *limits = values
    spec = telling(low, high, spec, limits)
    return tuple(alike((effect, low, high), spec))


def _percent(interval: tuple[float, float]) -> str:
    """The interval of a share: both ends with as many places."""
    spec = telling(*interval, ".1%")
    ends = [format_number(edge, spec) for edge in interval]
    cut = [re.sub(r"\.0+(?= %)", "", end) for end in ends]
    whole = all(end != short for end, short in zip(ends, cut))
    low, high = (s if whole or edge in (0, 1) else end for edge, end, s in zip(interval, ends, cut))
    return f"{low.removesuffix(' %')} to {high}"


def _numbers(found: Judgement | Outcome, spec: str) -> Shown:
    if math.isnan(found.effect):
        return ABSENT, ""
    low, high = found.interval
    spec = telling(low, high, spec)
    middle, *ends = alike((found.effect, low, high), spec)
    effect = f"{middle} {found.unit}".strip()
    if low == high:
        return effect, ""
    if math.isinf(low) and math.isinf(high):
        return effect, NO_INTERVAL
    return effect, " to ".join(ends)


def _power(base: float, value: float) -> float:
    try:
        return base**value
    except OverflowError:
        return math.inf


def _last(name: str) -> str:
    """ "speed.vgg16.g0_1" -> "γ = 0.1"."""
    letter, digits = re.fullmatch(r"(\D*)(.*)", name.rpartition(".")[2].replace("_", ".")).groups()
    return f"{'γ' if letter == 'g' else letter} = {digits}" if digits else letter
