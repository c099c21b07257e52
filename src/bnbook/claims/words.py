"""Numbers and texts as pages show them."""

from __future__ import annotations

import math
import re

_SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")

#: Data sets as people call them; any other by its own name.
DATA_NAMES = {"mnist": "MNIST", "cifar10": "CIFAR-10", "cifar10-jpeg75": "CIFAR-10 (JPEG 75)"}

RAISED = re.compile(
    r"(?<=[^\s(^_])\^(?:\((?P<more>(?:[^()]|\([^()]*\))*)\)|(?P<one>[−-]?[A-Za-z0-9]+(?:_[A-Za-z0-9]+)?))"
)
#: Below a single letter, a bar, or what stands higher behind one.
LOWERED = re.compile(
    r"(?:(?<=[Α-ω∇‖)⁰¹²³⁴-⁹\u0302])|(?<![A-Za-z0-9_][A-Za-z])(?<=[A-Za-z]))"
    r"_(?:\{(?P<more>[^{}]*)\}|(?P<one>[A-Za-z0-9]+|[α-ω]))"
)


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
    """Words for a page: a `<` is a sign and never begins a tag; formulas, `code` and tokens keep their
    meaning."""

    def one(match: re.Match) -> str:
        part = match[0]
        if part.startswith(("`", "{{")):
            return part
        return part.replace("<", r"\lt ") if part.startswith("$") else scripts(part.replace("<", "&lt;"))

    return re.sub(r"`[^`]*`|\$[^$]*\$|\{\{.*?\}\}|(?:(?!\{\{)[^`$])+|[`$]", one, text)


def scripts(text: str) -> str:
    """Words as HTML whose w_t, σ_{x_i}, (1 − μ/L)^2t and c^(−1/2) stand lower and higher; names such as
    first_seed do not."""
    text = RAISED.sub(lambda found: f"<sup>{found['more'] or found['one']}</sup>", text)
    return LOWERED.sub(lambda found: f"<sub>{scripts(found['more'] or found['one'])}</sub>", text)
