"""`python -m bnbook` is the `bnbook` command."""

import sys

from bnbook.cli import main

sys.exit(main())
