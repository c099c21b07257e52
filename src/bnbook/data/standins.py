"""Small sets for the smoke profile: they need no network, and nothing measured on them is evidence."""

from __future__ import annotations

import importlib.util
from functools import cache
from pathlib import Path

import numpy as np

from bnbook.data.identity import Arrays
from bnbook.errors import BnbookError

DIGITS_TRAIN = 1437
TEXTURES_TRAIN, TEXTURES_TEST = 2000, 500
#: The stripes of a texture: (columns, rows) of travel in 1/256 of a period per pixel, five directions.
DIRECTIONS = ((40, 0), (32, 24), (12, 38), (-12, 38), (-32, 24))
#: The colour in which a texture swings: weights of red, green, blue.
COLOURS = ((2, -1, -1), (-1, 2, -1))


@cache
def digits() -> Arrays:
    """Real 8x8 digits from scikit-learn (1,797 images): the first 1,437 train, the last 360 test.

    Values 0 to 16 are stretched to 0 to 255. The file is read directly: importing scikit-learn takes seconds.
    """
    found = importlib.util.find_spec("sklearn")
    path = (
        Path(found.origin).parent / "datasets" / "data" / "digits.csv.gz" if found else Path("digits.csv.gz")
    )
    if not path.is_file():
        raise BnbookError(
            "the digits of scikit-learn are not here; expected scikit-learn 1.6 or later; install it"
        )
    table = np.loadtxt(path, delimiter=",", dtype=np.int64)
    images = (table[:, :64] * 255 // 16).astype(np.uint8).reshape(-1, 1, 8, 8)
    labels = table[:, 64]
    return Arrays(images[:DIGITS_TRAIN], labels[:DIGITS_TRAIN], images[DIGITS_TRAIN:], labels[DIGITS_TRAIN:])


@cache
def textures() -> Arrays:
    """Generated colour textures 3x32x32 in 10 classes: stripes in one of 5 directions, in one of 2 colours.

    Direction, period, phase, contrast, background and noise vary from image to image, so that neighbouring
    classes overlap. Whole numbers only, so that every platform draws the same bytes.
    """
    count = TEXTURES_TRAIN + TEXTURES_TEST
    labels = np.arange(count, dtype=np.int64) % 10
    drawn = (_draws(count * 16, stream=1) & 0xFFFF).astype(np.int32).reshape(count, 16, 1, 1)
    direction = np.array(DIRECTIONS, dtype=np.int32)[labels % 5]
    across = direction[:, 0, None, None] + drawn[:, 0] % 17 - 8
    down = direction[:, 1, None, None] + drawn[:, 1] % 17 - 8
    rows, columns = np.arange(32, dtype=np.int32)[:, None], np.arange(32, dtype=np.int32)[None, :]
    position = (across * columns + down * rows + drawn[:, 2]) & 255
    wave = np.abs(position - 128) - 64  # a triangle from -64 to 64
    contrast = 6 + drawn[:, 3] % 10
    colour = np.array(COLOURS, dtype=np.int32)[labels // 5].reshape(count, 3, 1, 1)
    colour = 2 * colour + drawn[:, 7:10].reshape(count, 3, 1, 1) % 5 - 2
    background = 88 + drawn[:, 4:7].reshape(count, 3, 1, 1) % 80
    noise = _draws(count * 32 * 32, stream=2).reshape(count, 32, 32)
    images = np.empty((count, 3, 32, 32), np.uint8)
    for channel in range(3):
        bits = (noise >> 12 * channel & 0xFFF).astype(np.int32)
        grain = (bits & 63) + (bits >> 6) - 63  # a triangle too, from -63 to 63
        stripes = wave * (colour * contrast[:, None])[:, channel] >> 6
        images[:, channel] = np.clip(background[:, channel] + stripes + grain, 0, 255)
    return Arrays(
        images[:TEXTURES_TRAIN], labels[:TEXTURES_TRAIN], images[TEXTURES_TRAIN:], labels[TEXTURES_TRAIN:]
    )


def _draws(count: int, stream: int) -> np.ndarray:
    """`count` integers 0 to 2^40 - 1 by SplitMix64 (Steele, Lea and Flood 2014), alike in every version."""
    state = (np.arange(1, count + 1, dtype=np.uint64) + (np.uint64(stream) << np.uint64(40))) * np.uint64(
        0x9E3779B97F4A7C15
    )
    state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return ((state ^ (state >> np.uint64(31))) >> np.uint64(24)).astype(np.int64)
