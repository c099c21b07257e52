"""The networks that the theory describes."""

from __future__ import annotations

import operator
from dataclasses import dataclass

from bnbook.errors import BnbookError


@dataclass(frozen=True)
class FullyConnected:
    """Fully connected ReLU network with a linear last layer: widths (N_0, …, N_L), input first.

    z^l = W^l h^{l-1} + b^l with W^l ~ N(0, σ_w²/N_{l-1}), b^l ~ N(0, σ_b²); equations 11 and 12.
    BnbookError for fewer than two layers or a width that is no positive whole number.
    """

    widths: tuple[int, ...]

    def __post_init__(self) -> None:
        try:
            widths = tuple(operator.index(width) for width in self.widths)
        except TypeError:
            raise BnbookError(
                f"widths {self.widths!r} are not whole numbers; expected (inputs, layer 1, ..., outputs)"
            ) from None
        if len(widths) < 3:
            raise BnbookError(
                f"widths {widths} make {max(len(widths) - 1, 0)} layers; expected two or more: "
                "give (inputs, hidden units, ..., outputs)"
            )
        if min(widths) < 1:
            raise BnbookError(f"widths {widths} hold a layer without units; expected 1 or more in each")
        object.__setattr__(self, "widths", widths)

    @property
    def depth(self) -> int:
        """Number of layers L."""
        return len(self.widths) - 1
