"""Imported when a kernel starts: notes in BNBOOK_TRACES which functions of the package its chapter runs.

The profiler is the interpreter's own, for a tracer in Python is slow. Code without fast locals is the body of
a module or class, which defines and does not measure; a comprehension runs with what holds it.
"""

import atexit
import cProfile
import inspect
import json
import os
import threading

EVERY = 5.0  # seconds: a kernel may be killed before it says goodbye
FOLDER, CHAPTER = os.environ["BNBOOK_TRACES"], os.environ.get("BNBOOK_CHAPTER")
INSIDE = f"{os.sep}bnbook{os.sep}"
profile = cProfile.Profile(subcalls=False, builtins=False)


def write() -> None:
    codes = [row.code for row in profile.getstats() if hasattr(row.code, "co_flags")]
    rows = [
        (code.co_filename, code.co_firstlineno)
        for code in codes
        if code.co_flags & inspect.CO_OPTIMIZED
        and INSIDE in code.co_filename
        and code.co_name not in ("<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>")
    ]
    path = os.path.join(FOLDER, f"{CHAPTER.replace('/', '--')}.{os.getpid()}.json")
    with open(f"{path}.new", "w", encoding="utf-8") as file:
        json.dump(rows, file)
    os.replace(f"{path}.new", path)


def write_now_and_then() -> None:
    while not threading.Event().wait(EVERY):
        write()


if CHAPTER:
    threading.Thread(target=write_now_and_then, daemon=True).start()
    atexit.register(write)
    profile.enable()
