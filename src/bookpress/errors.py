"""The one kind of error that a user can mend."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class PressError(Exception):
    """Bad input, said in one line: what was wrong, what is expected, what to do (the command line exits with
    2)."""

    def __init__(self, message: str) -> None:
        super().__init__(" ".join(str(message).split()))

    def _render_traceback_(self) -> list[str]:
        """What a notebook shows of it (IPython asks for this): the line alone, not the calls that led to it."""
        return [f"{type(self).__name__}: {self}"]


def reason(error: OSError) -> str:
    """Why a file could not be read or written, and which; shutil collects several errors in place of that."""
    if error.strerror:
        return error.strerror + (f" ({error.filename})" if error.filename else "")
    first = error.args[0] if error.args else ""
    return str(first[0][-1] if isinstance(first, list) and first else first) or type(error).__name__


def did_you_mean(name: str, known: Iterable[str], cutoff: float = 0.6) -> str:
    """A question with the known name that is nearest, and a space; nothing where none is near."""
    near = difflib.get_close_matches(name, list(known), n=1, cutoff=cutoff)
    return f"did you mean {near[0]}? " if near else ""
