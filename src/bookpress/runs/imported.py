"""The package's code as this process imported it; the store's keys name what lies on disk, by now another
perhaps."""

from __future__ import annotations

from pathlib import Path

from bookpress.fingerprint import forget
from bookpress.fingerprint.sources import Sources


class Imported(Sources):
    """The package's files as they are when this is made."""

    def __init__(self) -> None:
        super().__init__()
        read = super().read
        found = (path for root in self.roots.values() for path in root.rglob("*.py"))
        self.held = {path: (_stamp(path), read(path)) for path in found}

    def read(self, path: Path) -> str:
        return self.held[path][1] if path in self.held else super().read(path)

    def touched(self) -> bool:
        """Whether any of them may be another now; what was read of them is then forgotten."""
        found = any(_stamp(path) != stamp for path, (stamp, _) in self.held.items())
        if found:
            forget()
        return found


def _stamp(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size


IMPORTED = Imported()
