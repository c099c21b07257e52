"""Numbers and texts as pages show them."""

from __future__ import annotations

import math
import re

_SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")

#: Data sets as people call them; any other by its own name.
DATA_NAMES = {"mnist": "MNIST", "cifar10": "CIFAR-10", "cifar10-jpeg75": "CIFAR-10 (JPEG 75)"}


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


def without_markup(text: str) -> str:
    """Words for a page: a `<` is a sign and never begins a tag; formulas and `code` keep their meaning."""

    def one(match: re.Match) -> str:
        part = match[0]
        if part.startswith("`"):
            return part
        return part.replace("<", r"\lt ") if part.startswith("$") else "&lt;"

    return re.sub(r"`[^`]*`|\$[^$]*\$|<", one, text)
