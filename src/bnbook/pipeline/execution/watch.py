"""Whether the code of a run stayed what it was: on disk at both ends, and as each process imported it."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

import bnbook
from bnbook import fingerprint
from bnbook.fingerprint.sources import Sources

PACKAGE = Path(bnbook.__file__).parent
#: Parts of the fingerprint that code decides.
CODE = ("code", "package")

#: Fingerprint by the sources given, None: by those on disk.
Read = Callable[[Sources | None], dict[str, str]]


class Watch:
    """A copy of the package's sources as they are now; `folder/other` is where `witness.py` keeps others."""

    def __init__(self, folder: Path, read: Read) -> None:
        self.start, self.other, self.read = folder / "start", folder / "other", read
        shutil.copytree(PACKAGE, self.start, ignore=shutil.ignore_patterns("__pycache__"))
        _read_anew(_digest(_files(self.start)))
        self.began = read(None)

    def changed(self) -> list[str]:
        """Files that the results rest on and that were another in between, or are now."""
        before, now = _files(self.start), _files(PACKAGE)
        found = [name for name in sorted(before.keys() | now.keys()) if before.get(name) != now.get(name)]
        if found:
            fingerprint.forget()
            found = found if self._differs(None) else []
        for path in sorted(self.other.glob("*/**/*.py")):
            name = Path(*path.relative_to(self.other).parts[1:])
            shutil.copy2(path, self.start / name)
            found += [name.as_posix()] if self._differs(Sources(self.start)) else []
            if name.as_posix() in before:
                (self.start / name).write_bytes(before[name.as_posix()])
            else:
                (self.start / name).unlink()
        return list(dict.fromkeys(found))

    def _differs(self, sources: Sources | None) -> bool:
        try:
            now = self.read(sources)
        except SyntaxError:  # in the midst of an edit
            return True
        return any(now[part] != self.began[part] for part in CODE)


@lru_cache(maxsize=1)
def _read_anew(_digest: str) -> None:
    """Forget what was read of sources that are no longer these."""
    fingerprint.forget()


def _files(folder: Path) -> dict[str, bytes]:
    paths = (path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}


def _digest(files: dict[str, bytes]) -> str:
    found = hashlib.sha256()
    for name in sorted(files):
        found.update(f"{name} {len(files[name])} ".encode() + files[name])
    return found.hexdigest()
