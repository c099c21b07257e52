"""Imported when a kernel starts: notes in BNBOOK_TRACES which functions of the package its chapter runs.

The profiler is the interpreter's own, for a tracer in Python is slow. Code without fast locals is the body of
a module or class, which defines and does not measure.
"""

import os

folder, chapter = os.environ.get("BNBOOK_TRACES"), os.environ.get("BNBOOK_CHAPTER")
if folder and chapter:
    import atexit
    import cProfile

    profile = cProfile.Profile(builtins=False)

    def write() -> None:
        import inspect
        import json

        profile.disable()
        codes = [row.code for row in profile.getstats() if hasattr(row.code, "co_flags")]
        inside = f"{os.sep}bnbook{os.sep}"
        rows = [
            (code.co_filename, code.co_firstlineno)
            for code in codes
            if code.co_flags & inspect.CO_OPTIMIZED and inside in code.co_filename
        ]
        path = os.path.join(folder, f"{chapter.replace('/', '--')}.{os.getpid()}.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump(rows, file)

    atexit.register(write)
    profile.enable()
