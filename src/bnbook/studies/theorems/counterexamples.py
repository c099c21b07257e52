"""Counter-examples in small exact numbers: no rounding, so nothing to argue about.

Each gives what batch norm does (`value`) and what the printed line allows or says (`bound`), both as
fractions, computed by the same formulas as the random trials but on exact numbers; `tests/test_theory_*.py`
recomputes them by other means.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True)
class Counterexample:
    """One printed line and the numbers that contradict it."""

    name: str
    line: str  # which printed line
    numbers: str  # the instance, in LaTeX
    value: Fraction
    bound: Fraction
    relation: str = r"\le"  # what the line says of value and bound

    @property
    def refutes(self) -> bool:
        """Whether the numbers contradict the line."""
        return {
            r"\le": self.value > self.bound,
            "<": self.value >= self.bound,
            ">": self.value <= self.bound,
            "=": self.value != self.bound,
        }[self.relation]


def as_table(examples: list[Counterexample]) -> str:
    """A Markdown table: the line, the numbers, what it claims."""
    rows = ["| printed line | instance | it would say |", "|---|---|---|"]
    for e in examples:
        rows.append(f"| {e.line} | {e.numbers} | ${_tex(e.value)} {e.relation} {_tex(e.bound)}$ |")
    return "\n".join(rows)


def _tex(value: Fraction) -> str:
    sign, size = ("-" if value < 0 else ""), abs(Fraction(value))
    n, d = size.numerator, size.denominator
    return sign + (str(n) if d == 1 else rf"\frac{{{n}}}{{{d}}}")
