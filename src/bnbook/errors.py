"""The one kind of error that a user can mend."""

from __future__ import annotations


class BnbookError(Exception):
    """Bad input, said in one line: what was wrong, what is expected, what to do (the command line exits with
    2)."""

    def __init__(self, message: str) -> None:
        super().__init__(" ".join(str(message).split()))
