"""Numbers, tests and effects in words."""

from __future__ import annotations

import math
import re

from bnbook.claims.claim import Test
from bnbook.claims.judging import Judgement
from bnbook.claims.kinds import Outcome

NO_INTERVAL = "no interval"
_SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def format_number(value: float, spec: str = ".3g") -> str:
    """A number for readers: a true minus sign, a space before %, powers of ten written out (1.2·10⁻¹⁵)."""
    if not math.isfinite(value):
        return "not finite" if math.isnan(value) else "∞" if value > 0 else "−∞"
    mantissa, e, exponent = format(value, spec).replace("%", " %").partition("e")
    mantissa = mantissa.replace("-", "−")
    if not e:
        return mantissa
    power = "10" + str(int(exponent)).translate(_SUPERSCRIPT)
    return power if mantissa == "1" else f"{mantissa}·{power}"


def describe_test(test: Test) -> str:
    """What has to hold: "mean difference > 0.02"."""
    threshold, tolerance = format_number(test.threshold or 0), format_number(test.tolerance or 0)
    range_ = f"{format_number(test.expected or 0)} ± {tolerance}"
    target = f"{'<' if test.side == 'less' else '>'} {threshold}" if test.side else f"within {range_}"
    return {
        "difference": f"mean difference {target}",
        "ratio": f"mean ratio {target}",
        "equivalence": f"mean difference within ± {format_number(test.margin or 0)}",
        "ordering": "every step up > 0",
        "identity": f"largest violation ≤ {tolerance}",
        "inequality": f"at most {test.allowed} violations" if test.allowed else "no violation",
        "rate": f"slope {target}",
        "agreement": f"relative error within ± {tolerance}",
        "level": f"mean {target}",
    }[test.kind]


def effect_and_interval(found: Judgement | Outcome, spec: str = ".3g") -> tuple[str, str]:
    """("0.12 nats", "0.1 to 0.14"), the 95 % interval empty for an exact check; a dash if nothing was
    measured."""
    if math.isnan(found.effect):
        return "–", ""
    shown = f"{format_number(found.effect, spec)} {found.unit}".strip()
    low, high = found.interval
    if low == high:
        return shown, ""
    if math.isinf(low) and math.isinf(high):
        return shown, NO_INTERVAL
    return shown, f"{format_number(low, spec)} to {format_number(high, spec)}"


def interval_words(interval: str) -> str:
    """The second of `effect_and_interval`, where no heading says what it is."""
    return interval if interval in ("", NO_INTERVAL) else f"95 % interval {interval}"


def format_effect(found: Judgement | Outcome, spec: str = ".3g") -> str:
    """Effect with its 95 % interval: "0.12 (95 % interval 0.1 to 0.14)"; a dash if nothing was measured."""
    effect, interval = effect_and_interval(found, spec)
    return f"{effect} ({interval_words(interval)})" if interval else effect


def without_markup(text: str) -> str:
    """Words for a page: a `<` is a sign and never begins a tag; formulas and `code` keep their meaning."""

    def one(match: re.Match) -> str:
        part = match[0]
        if part.startswith("`"):
            return part
        return part.replace("<", r"\lt ") if part.startswith("$") else "&lt;"

    return re.sub(r"`[^`]*`|\$[^$]*\$|<", one, text)
