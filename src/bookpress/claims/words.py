"""Numbers and texts as pages show them."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence

_SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")

#: What a claim says of itself that no source makes.
OWN_QUESTION = "own question"

RAISED = re.compile(
    r"(?<=[^\s(^_])\^(?:\((?P<more>(?:[^()]|\([^()]*\))*)\)|\{(?P<less>[^{}]*)\}"
    r"|(?P<one>[−-]?[A-Za-z0-9]+(?:_[A-Za-z0-9]+)?))"
)
#: Below a single letter, a bar, or what stands higher behind one.
LOWERED = re.compile(
    r"(?:(?<=[Α-ω∇‖)'⁰¹²³⁴-⁹\u0302])|(?<![A-Za-z0-9_][A-Za-z])(?<=[A-Za-z]))"
    r"_(?:\{(?P<more>[^{}]*)\}|(?P<one>[A-Za-z0-9]+|[α-ω]))"
)
#: Norms and factors as claims write them, for their wording is locked.
NORMS = re.compile(r"\bl(?:(?P<order>[12p])|-infinity)(?![\w-])")
POWER = re.compile(r"\b\d(?:\.\d+)?e-?\d+\b")
DECADES = re.compile(r"\b(within|below|by less than|at) (0\.\d+) decades\b")


#: How a bound is printed.
BOUND = ".4g"


def format_number(value: float, spec: str = ".3g") -> str:
    """A number for readers: a true minus sign, a space before %, thousands set apart, and from a million on
    powers of ten (1.2·10⁻¹⁵)."""
    if not math.isfinite(value):
        return "not finite" if math.isnan(value) else "∞" if value > 0 else "−∞"
    text = format(value, spec).replace("%", " %")
    if spec.endswith("g") and re.search(r"e\+0[1-5]$", text):  # rounded, and not as a power of ten
        text = f"{float(text):.0f}"
    mantissa, e, exponent = text.partition("e")
    if not re.search("[1-9]", mantissa):
        mantissa = mantissa.removeprefix("-")
    if e and -3 < int(exponent) < 4:  # no power of ten where plain digits are as short
        return format_number(value, f".{len(re.sub('[^0-9]', '', mantissa))}g")
    mantissa = re.sub(r"^-?\d{4,}", lambda whole: f"{int(whole[0]):,}", mantissa).replace("-", "−")
    if not e:
        return mantissa
    power = "10" + str(int(exponent)).translate(_SUPERSCRIPT)
    return power if mantissa == "1" else f"{mantissa}·{power}"


def upwards(value: float) -> str:
    """A bound on a value: three digits, and never below it."""
    if not 0 < value < math.inf:
        return format_number(value)
    step = 10.0 ** (math.floor(math.log10(value)) - 2)
    return format_number(math.ceil(value / step * (1 - 1e-9)) * step)


def alike(values: Iterable[float], spec: str = ".3g") -> list[str]:
    """Numbers that are read together: each with as many places as the one with most, as far as its own digits
    go (1.10 beside 1.07, and 12.3)."""
    texts = [format_number(value, spec) for value in values]
    places = max(len(text.partition(".")[2]) for text in texts)
    if not spec.endswith("g") or any(re.search("10[⁻⁰-⁹¹²³]", text) for text in texts):
        return texts
    filled = [format_number(value, f"#{spec}").partition(".") for value in values]
    return [
        f"{whole}.{digits[:places]}" if value and math.isfinite(value) and digits[:places] else text
        for value, text, (whole, _, digits) in zip(values, texts, filled, strict=True)
    ]


def telling(low: float, high: float, spec: str = ".3g", edges: Iterable[float] = ()) -> str:
    """The format with as many more digits as it takes to show an interval's width to a third of itself, and
    on which side of each edge (as a bound is printed) its ends lie."""
    if not (math.isfinite(low) and math.isfinite(high)) or low == high:
        return spec
    edges = [*edges, 0.0] if low < 0 < high else edges
    pairs = [(end, edge) for edge in edges for end in (low, high) if math.isfinite(edge) and end != edge]
    enough = spec
    for more in range(5):
        finer = re.sub(r"\.(\d+)", lambda digits: f".{int(digits[1]) + more}", spec)
        shown = {end: _rounded(end, finer) for end in (low, high)}
        if abs(shown[high] - shown[low] - (high - low)) > (high - low) / 3:
            continue
        enough = finer if enough == spec else enough
        marks = [(shown[end] - _rounded(edge, BOUND)) * (end - edge) for end, edge in pairs]
        if all(mark > 0 for mark in marks):
            return finer
    return enough


def _rounded(value: float, spec: str) -> float:
    text = format(value, spec).replace(",", "")
    return float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)


def without_markup(text: str) -> str:
    """Words for a page: a `<` is a sign and never begins a tag; formulas, `code` and tokens keep their
    meaning."""

    def one(match: re.Match) -> str:
        part = match[0]
        if part.startswith(("`", "{{")):
            return part
        return (
            part.replace("<", r"\lt ")
            if part.startswith("$")
            else scripts(spelled(part.replace("<", "&lt;")))
        )

    return re.sub(r"`[^`]*`|\$[^$]*\$|\{\{.*?\}\}|(?:(?!\{\{)[^`$])+|[`$]", one, text)


def literal(text: str) -> str:
    """What somebody wrote, for a page of Markdown on which no sign of it means anything."""
    return re.sub(r"[^\w\s,.;:()'’%+/-]|_", lambda sign: f"&#{ord(sign[0])};", text)


def spelled(text: str) -> str:
    """Words as chapters and figures have them: ℓ1, ℓp, ℓ∞, 10⁻⁶, 70 %; within a factor of 1.4 for 0.15
    decades."""
    text = POWER.sub(lambda found: format_number(float(found[0])), text)
    text = re.sub(r"(?<=\d)%", " %", re.sub(r"(?<=\w)'(?=\w)", "’", text))
    text = DECADES.sub(lambda found: f"{found[1]} a factor of {10 ** float(found[2]):.3g}", text)
    return NORMS.sub(lambda found: f"ℓ{found['order'] or '∞'}", text)


def scripts(text: str) -> str:
    """Words as HTML whose w_t, σ_{x_i}, (1 − μ/L)^2t and c^(−1/2) stand lower and higher; names such as
    first_seed do not."""
    text = RAISED.sub(lambda found: f"<sup>{found['more'] or found['less'] or found['one']}</sup>", text)
    return LOWERED.sub(lambda found: f"<sub>{scripts(found['more'] or found['one'])}</sub>", text)


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
