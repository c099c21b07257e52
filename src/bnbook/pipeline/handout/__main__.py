"""`python -m bnbook.pipeline.handout DIR` writes the notebooks that are handed out."""

import sys

from bnbook import cli
from bnbook.errors import BnbookError
from bnbook.pipeline.handout import handout


def main(folders: list[str]) -> int:
    """Into the one folder that is named."""
    if len(folders) != 1:
        raise BnbookError("one folder is needed: python -m bnbook.pipeline.handout DIR")
    return handout.main(folders[0])


if __name__ == "__main__":
    sys.exit(cli.guarded(lambda: main(sys.argv[1:])))
