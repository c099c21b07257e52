"""A set as a folder of images by class: ROOT/{train,test}/CLASS/*.{png,jpg,jpeg}."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bnbook.data.identity import SPLITS, Arrays
from bnbook.errors import BnbookError

SUFFIXES = (".png", ".jpg", ".jpeg")
PIECE = 500  # images a thread takes at a time
REMEDY = "copy or unpack it again"


@dataclass(frozen=True)
class ClassFolders:
    """Images of one shape (C, H, W), a folder a class; the label is the place of the class in `classes`."""

    root: Path
    classes: tuple[str, ...]
    shape: tuple[int, int, int]

    @property
    def where(self) -> str:
        return str(self.root)

    def entries(self) -> list[tuple[str, int, os.DirEntry]]:
        """Every image as (split, label, entry), sorted by split, class and file name."""
        found = []
        for split in SPLITS:
            for label, name in enumerate(self.classes):
                folder = self.root / split / name
                if not folder.is_dir():
                    raise BnbookError(
                        f"{self.root} has no folder {split}/{name}; "
                        f"expected the classes {', '.join(self.classes)} in train and in test; {REMEDY}"
                    )
                with os.scandir(folder) as listing:
                    images = [
                        entry
                        for entry in listing
                        if entry.name.lower().endswith(SUFFIXES) and not entry.name.startswith(".")
                    ]
                found += [(split, label, entry) for entry in sorted(images, key=lambda entry: entry.name)]
        return found

    def fingerprint(self) -> str:
        rows = []
        for split, label, entry in self.entries():
            stat = entry.stat()
            rows.append(f"{split}/{label}/{entry.name} {stat.st_size} {stat.st_mtime_ns}")
        return "\n".join(rows)

    def read(self) -> Arrays:
        entries = self.entries()
        paths = [entry.path for _, _, entry in entries]
        pieces = [paths[start : start + PIECE] for start in range(0, len(paths), PIECE)]
        with ThreadPoolExecutor(
            min(8, os.cpu_count() or 1)
        ) as pool:  # decoding a JPEG releases the interpreter
            images = [image for piece in pool.map(self._decode_all, pieces) for image in piece]
        pixels = np.stack(images) if images else np.zeros((0, *self.shape), np.uint8)
        labels = np.array([label for _, label, _ in entries], dtype=np.int64)
        train = np.array([split == "train" for split, _, _ in entries], dtype=bool)
        return Arrays(pixels[train], labels[train], pixels[~train], labels[~train])

    def _decode_all(self, paths: list[str]) -> list[np.ndarray]:
        return [self._decode(path) for path in paths]

    def _decode(self, path: str) -> np.ndarray:
        from PIL import Image, UnidentifiedImageError

        channels, height, width = self.shape
        try:
            with Image.open(path, formats=("PNG", "JPEG")) as image:
                pixels = np.asarray(image.convert("L" if channels == 1 else "RGB"))
        except (UnidentifiedImageError, OSError, SyntaxError, ValueError) as error:
            reason = "no image" if isinstance(error, UnidentifiedImageError) else str(error)
            raise BnbookError(
                f"{path} is truncated or altered ({reason}); expected a whole image; {REMEDY}"
            ) from None
        if pixels.shape[:2] != (height, width):
            raise BnbookError(
                f"{path} is {pixels.shape[1]} x {pixels.shape[0]} pixels; "
                f"expected {width} x {height}; {REMEDY}"
            )
        return pixels.reshape(height, width, channels).transpose(2, 0, 1)
