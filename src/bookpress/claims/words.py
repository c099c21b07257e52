"""Numbers and texts as pages show them."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence

from bookpress.book import book
from bookpress.claims.claim import Effect, Test

_SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")

#: What a claim says of itself that no source makes.
OWN_QUESTION = "own question"
#: Data sets as people call them; any other by its own name.

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
    return [_filled(value, text, spec, places) for value, text in zip(values, texts, strict=True)]


def _filled(value: float, text: str, spec: str, places: int) -> str:
    if not value or not math.isfinite(value) or not places:
        return text
    whole, _, digits = format_number(value, f"#{spec}").partition(".")
    return f"{whole}.{digits[:places]}" if digits[:places] else text


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


# ---- Effects in words: a factor or a difference, its direction and its interval ------------------------------------

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
        first, second, arms = test.a.split("."), test.b.split("."), book().arms
        pairs = [pair for pair in zip(first, second, strict=False) if pair[0] != pair[1]]
        if len(first) == len(second) and len(pairs) == 1 and set(pairs[0]) <= arms.keys():
            names = {**arms, **{k: v for each in pairs[0] for k, v in book().beside.get(each, {}).items()}}
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


# ---- Units of effects, and bounds said in them ---------------------------------------------------------------------

#: Units of logarithms, shown as the factors that they stand for, and of shares.
BASES = {"log": math.e, "log10": 10.0}
SHARES = ("points", "%")


def near(test: Test, shown: Effect) -> str:
    """Where the effect has to lie: "within 0.5 ± 0.1", of logarithms "within a factor of 2"."""
    expected, tolerance = test.expected or 0.0, test.tolerance or 0.0
    if shown.unit in SHARES:
        about = put(in_unit(expected, shown), "", f"of {PLACE} {shown.more}".strip()) if expected else ""
        return f"within {'' if about else '± '}{_points(tolerance)} {about}".strip()
    if shown.unit in BASES:
        factor = f"within a factor of {in_unit(tolerance, shown)}"
        return f"{in_unit(expected, shown)} times {shown.more}, {factor}" if expected else factor
    number = f"{format_number(expected)} ± {format_number(tolerance, BOUND)}"
    return put(number if PLACE in shown.more else f"within {number}", shown.unit, shown.more)


def margin(test: Test, shown: Effect) -> str:
    """How far from no effect at all it may lie: "within ± 0.05", of logarithms "within a factor of 1.1"."""
    if shown.unit in BASES:
        return f"within a factor of {in_unit(test.margin or 0, shown)}"
    size = _points(test.margin or 0) if shown.unit in SHARES else in_unit(test.margin or 0, shown)
    return f"difference within ± {size}"


def in_unit(value: float, shown: Effect) -> str:
    """A bound in the unit of the effect: the factor that a logarithm stands for, a share in points."""
    if shown.unit in BASES:
        return format_number(BASES[shown.unit] ** value, BOUND)
    if shown.unit in SHARES:
        return f"{format_number(100 * value)} {shown.unit}"
    return format_number(value)


def _points(share: float) -> str:
    points = format_number(100 * share)
    return f"{points} point{'s' * (points != '1')}"


def in_points(values: Sequence[float], unit: str) -> list[float]:
    """Shares that are shown in points or per cent, times 100."""
    return [100 * value for value in values] if unit in SHARES else list(values)
