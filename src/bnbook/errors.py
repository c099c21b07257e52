"""The one kind of error that a user can mend: the press's, which its command says in one line."""

from bookpress.errors import PressError, reason

__all__ = ["BnbookError", "reason"]

BnbookError = PressError
