"""How a command ends, the command line's and those that are modules of their own."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

from bookpress import paths
from bookpress.book import command_name
from bookpress.errors import PressError, reason

DONE, FAILED, USAGE, INTERRUPTED, UNREAD = 0, 1, 2, 130, 141


def guarded(command: Callable[[], int], stays: str = "") -> int:
    """What a command gives, or the exit code of what went wrong, which is said in one line; `stays`: what an
    interruption does not lose."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by who called
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115
    if hasattr(sys.stdout, "reconfigure"):  # a terminal that lacks a character shows its number instead
        sys.stdout.reconfigure(errors="backslashreplace")
    paths.settle()
    try:
        code = command()
        sys.stdout.flush()
    except PressError as error:
        print(f"{command_name()}: {error}", file=sys.stderr)
        return USAGE
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # what is left goes nowhere
        return UNREAD
    except OSError as error:
        print(
            f"{command_name()}: {reason(error)}; expected a file or folder that can be read and written",
            file=sys.stderr,
        )
        return USAGE
    except KeyboardInterrupt:
        print(f"\n{command_name()}: interrupted{stays}", file=sys.stderr)
        return INTERRUPTED
    return code
