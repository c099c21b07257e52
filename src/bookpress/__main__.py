"""`python -m bookpress` is the command of the book around it, by the package that its `_config.yml` names."""

import sys

from bookpress.cli import main

if __name__ == "__main__":
    sys.exit(main())
