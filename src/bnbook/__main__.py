"""`python -m bnbook` is the `bnbook` command."""

import sys

from bnbook.cli import main

if __name__ == "__main__":
    sys.exit(main())
