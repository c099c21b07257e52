"""What many figures do to their axes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axis import Axis
from matplotlib.ticker import FixedLocator, MultipleLocator

from bnbook.figures import mean_and_interval


def points(ax: plt.Axes, x: Sequence[float], values: np.ndarray, fmt: str, **options) -> None:
    """Means over the seeds with 95 % intervals; x (X,), values (S, X)."""
    mean, half = mean_and_interval(values)
    ax.errorbar(x, mean, half, fmt=fmt, **{"capsize": 3, "markersize": 5.5, **options})


def name_ticks(setter: Callable, places: Sequence[float]) -> None:
    """Ticks at these places and no others, named in full where an axis would write powers; setter:
    ax.set_xticks."""
    setter(places, labels=[f"{place:g}" for place in places])
    setter([], minor=True)


def in_powers(axis: Axis) -> None:
    """An axis of decimal logarithms that is read as one of the numbers: 10⁻³ at -3."""
    axis.set_major_locator(MultipleLocator(1))
    axis.set_major_formatter(lambda place, _: f"$10^{{{place:.0f}}}$")


def in_factors(axis: Axis, factors: Sequence[float]) -> None:
    """An axis of decimal logarithms that is read as one of these factors: 2 at 0.3, 1,000 at 3."""
    axis.set_major_locator(FixedLocator(np.log10(factors)))
    axis.set_major_formatter(lambda place, _: f"{float(f'{10**place:.2g}'):,g}")


def power(rate: float) -> str:
    """3e-05 -> 3·10⁻⁵, as a formula, to two digits."""
    digits, exponent = f"{rate:.1e}".split("e")
    times = digits.removesuffix(".0") + r"\cdot "
    return rf"${'' if float(digits) == 1 else times}10^{{{int(exponent)}}}$"
