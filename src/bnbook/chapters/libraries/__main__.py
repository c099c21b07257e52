"""`python -m bnbook.chapters.libraries [NAME …]`: ask the libraries from an empty cache, and say which is missing and why."""

from __future__ import annotations

import sys
import tempfile

from bnbook.chapters import libraries
from bnbook.errors import BnbookError


def main(names: list[str]) -> int:
    """Print a line a library; 0 where all answered, 1 where one is missing, 2 for a wrong name or where uv is missing."""
    with tempfile.TemporaryDirectory() as cache:
        try:
            names_asked = names or libraries.chosen("every")
            answers, missing = libraries.ask(names_asked, cache)
            carried, lost = libraries.carry(names_asked, cache)
        except BnbookError as error:
            print(error, file=sys.stderr)
            return 2
    for name, document in answers.items():
        versions = ", ".join(" ".join(each) for each in document["versions"].items())
        print(f"{name} ({versions}): {'; '.join(libraries.row(document))}")
    for target, document in carried.items():
        worst = {key: max(found[key] for found in document["found"].values()) for key in libraries.CELL}
        print(f"carried to {target} from {', '.join(document['found'])}, the worst: {worst}")
    for name, why in missing.items():
        print(f"{name} is missing: {why}")
    for name, why in lost.items():
        print(f"{name} is missing among those that a network is carried to: {why}")
    for name, why in libraries.BY_NAME.items() if not names else ():
        print(f"{name} is asked by name only: {why}")
    return 1 if missing or lost else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
