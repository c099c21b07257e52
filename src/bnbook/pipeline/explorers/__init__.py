"""What the explorers of the pages draw from: committed results, written as scripts that fill `bnbook.data`.

Scripts and not JSON, for a page that is opened from file:// may fetch nothing; and they may say NaN.
One module each; drawn: what they have in common.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bnbook import atomic
from bnbook.pipeline.explorers.fuse import fuse
from bnbook.pipeline.explorers.goalposts import goalposts
from bnbook.pipeline.explorers.landscape import landscape
from bnbook.pipeline.explorers.limits import limits
from bnbook.pipeline.prose.tokens import Pages
from bnbook.results import Results

#: Where the pages' scripts look for the data, under a folder of pages.
FOLDER = Path("_static/explorers/data")
EXPLORERS: dict[str, tuple[str, Callable[[Results], dict[str, Any] | None]]] = {
    "fuse": ("batch-norm/gradient-explosion", fuse),
    "break": ("mean-field/learning-rate", limits),
}


def write(folder: Path, pages: Pages) -> None:
    """Write NAME.js of every explorer; one whose chapter has no run, or too small a one, gets null, and its
    page the still picture."""
    found: dict[str, Any] = {"goalposts": goalposts(pages) or None, "landscape": landscape(pages)}
    for name, (chapter, collect) in EXPLORERS.items():
        evidence = pages.evidence.get(chapter)
        found[name] = collect(evidence.results) if evidence else None
    (folder / FOLDER).mkdir(parents=True, exist_ok=True)
    for name, content in found.items():
        text = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
        atomic.write_text(folder / FOLDER / f"{name}.js", f"bnbook.data.{name} = {text};\n")
