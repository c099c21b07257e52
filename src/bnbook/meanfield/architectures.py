"""The networks that the theory describes.

An architecture has `depth` (layers L), `fan_in` (N_0, …, N_{L-1}: how many inputs a unit of layer l sums) and
`positions` (|K_0|, …, |K_L|: places in the map of layer l; 1 in a fully connected layer).
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from bnbook.errors import BnbookError


@dataclass(frozen=True)
class FullyConnected:
    """Fully connected ReLU network with a linear last layer: widths (N_0, …, N_L), input first.

    z^l = W^l h^{l-1} + b^l with W^l ~ N(0, σ_w²/N_{l-1}), b^l ~ N(0, σ_b²); equations 11 and 12.
    BnbookError for fewer than two layers or a width that is no positive whole number.
    """

    widths: tuple[int, ...]

    def __post_init__(self) -> None:
        widths = _whole(self.widths, "widths", "(inputs, layer 1, ..., outputs)")
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

    @property
    def fan_in(self) -> tuple[int, ...]:
        """N_0, …, N_{L-1}."""
        return self.widths[:-1]

    @property
    def positions(self) -> tuple[int, ...]:
        """One place in every layer."""
        return (1,) * len(self.widths)


@dataclass(frozen=True)
class Convolutional:
    """Convolutional ReLU network, no padding, with a fully connected linear readout of the whole last map.

    image (C_0, height, width); channels (C_1, …, C_{L-1}); kernel and stride the same in both directions.
    z_α^l = Σ_{β∈F} W_β^l h_{sα+β}^{l-1} + b^l, W ~ N(0, σ_w²/N_{l-1}), N_{l-1} = C_{l-1} |F|; equations 26
    and 27. BnbookError for no channels, a number that is not whole and positive, a kernel larger than the map
    it meets.
    """

    image: tuple[int, int, int]
    channels: tuple[int, ...] = (30, 60, 90)
    kernel: int = 3
    stride: int = 2
    outputs: int = 10

    def __post_init__(self) -> None:
        image = _whole(self.image, "image", "(channels, height, width)")
        channels = _whole(self.channels, "channels", "one number a convolution")
        kernel, stride, outputs = _whole(
            (self.kernel, self.stride, self.outputs), "kernel, stride, outputs", "three"
        )
        if len(image) != 3:
            raise BnbookError(f"image {image} has {len(image)} sizes; expected (channels, height, width)")
        if not channels:
            raise BnbookError("channels are empty; expected at least one convolution, such as (30, 60, 90)")
        if min(*image, *channels, kernel, stride, outputs) < 1:
            raise BnbookError(f"a size below 1 in {self!r}; expected 1 or more in each")
        for name, value in (("image", image), ("channels", channels)):
            object.__setattr__(self, name, value)
        for layer, (height, width) in enumerate(self.maps[:-1], start=1):
            if kernel > min(height, width):
                raise BnbookError(
                    f"a kernel of {kernel}×{kernel} does not fit the map of {height}×{width} that layer "
                    f"{layer} meets; "
                    "expected a larger image, a smaller kernel or fewer convolutions"
                )

    @cached_property
    def maps(self) -> tuple[tuple[int, int], ...]:
        """Height and width of each map, from the image to the last convolution's: (size - kernel) // stride +
        1."""
        sizes = [self.image[1:]]
        for _ in self.channels:
            sizes.append(tuple((size - self.kernel) // self.stride + 1 for size in sizes[-1]))
        return tuple(sizes)

    @property
    def depth(self) -> int:
        """Number of layers L, the readout among them."""
        return len(self.channels) + 1

    @property
    def positions(self) -> tuple[int, ...]:
        """|K_0|, …, |K_{L-1}|, and 1 for the readout."""
        return (*(height * width for height, width in self.maps), 1)

    @property
    def fan_in(self) -> tuple[int, ...]:
        """N_{l-1} = C_{l-1} |F_l|; of the readout C_{L-1} |K_{L-1}|."""
        by_layer = (self.image[0], *self.channels)
        return (*(units * self.kernel**2 for units in by_layer[:-1]), by_layer[-1] * math.prod(self.maps[-1]))


def _whole(values: Sequence[int], name: str, expected: str) -> tuple[int, ...]:
    try:
        return tuple(operator.index(value) for value in values)
    except TypeError:
        raise BnbookError(f"{name} {values!r} are not whole numbers; expected {expected}") from None
