"""How a command ends, the command line's and those that are modules of their own."""

from __future__ import annotations

import logging
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from bookpress import paths
from bookpress.book import command_name
from bookpress.errors import PressError, reason

DONE, FAILED, USAGE, UNREAD = 0, 1, 2, 141
#: Signals that end a command as Ctrl-C does; the exit code is 128 and the signal's number.
SIGNALS = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]


class Ended(KeyboardInterrupt):
    """One of them came; its number."""


def interrupt(number: int, _: object = None) -> None:
    """What is under way is taken down, once; loops that are torn down tell nothing of each of their tasks."""
    for each in SIGNALS:
        signal.signal(each, _wait)
    logging.disable()
    raise Ended(number)


def _wait(*_: object) -> None:
    """In place of the system's own way to ignore a signal, of which Python tells with a traceback."""


@contextmanager
def _heeded() -> Iterator[None]:
    """Each signal is heard, but for one that whoever started this process had it ignore, and where another thread
    than the first runs a command."""
    before = {}
    for each in SIGNALS:
        if signal.getsignal(each) is not signal.SIG_IGN:
            try:
                before[each] = signal.signal(each, interrupt)
            except ValueError:
                break
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler or signal.SIG_DFL)


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
        with _heeded():
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
    except KeyboardInterrupt as ended:
        number = ended.args[0] if isinstance(ended, Ended) else signal.SIGINT
        how = "interrupted" if number == signal.SIGINT else f"ended by {signal.Signals(number).name}"
        print(f"\n{command_name()}: {how}{stays}", file=sys.stderr)
        return 128 + number
    return code
