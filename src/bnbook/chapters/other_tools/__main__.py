"""`python -m bnbook.chapters.other_tools [NAME …]`: ask the tools from an empty cache, and say which is missing and why."""

from __future__ import annotations

import sys
import tempfile

from bnbook.chapters import other_tools
from bnbook.errors import BnbookError


def main(names: list[str]) -> int:
    """Print a line a tool; 0 where all answered, 1 where one is missing, 2 for a wrong name or where uv is missing."""
    with tempfile.TemporaryDirectory() as cache:
        try:
            answers, missing = other_tools.ask(names or other_tools.chosen("every"), cache)
        except BnbookError as error:
            print(error, file=sys.stderr)
            return 2
    for name, document in answers.items():
        told = document["modes"]["training"]
        versions = ", ".join(" ".join(each) for each in document["versions"].items())
        print(f"{name} ({versions}): {other_tools.answer(told)}; changes {other_tools.changes(told)}")
    for name, why in missing.items():
        print(f"{name} is missing: {why}")
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
