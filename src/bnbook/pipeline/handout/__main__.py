"""`python -m bnbook.pipeline.handout DIR` writes the notebooks that are handed out."""

import sys

from bnbook import cli
from bnbook.pipeline.handout.handout import main

if __name__ == "__main__":
    sys.exit(cli.guarded(lambda: main(sys.argv[1])))
