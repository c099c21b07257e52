"""What jupyter-book asks first: the pages in book/ hold no numbers yet, so only staged pages become a site."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import Any

from bookpress.book import book, command_name
from bookpress.errors import PressError
from bookpress.site import searching

MARK = "BNBOOK_STAGED"
SAID = (
    "{name}: the pages in book/ get their numbers, figures and verdicts when they are staged; "
    "build the site with `{name} build` (or `make book`), not with jupyter-book alone"
)


def setup(app: Any) -> dict[str, bool]:
    """End with one line and exit code 2 where Sphinx was not started by `build`; else what its search is to know."""
    if MARK not in os.environ:
        with suppress(PressError):  # which book, if any, is around here
            book()
        print(SAID.format(name=command_name()), file=sys.stderr)
        raise SystemExit(2)
    searching.setup(app)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
