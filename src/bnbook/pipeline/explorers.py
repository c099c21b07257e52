"""What the explorers of the pages draw from: committed results, written as scripts that fill `bnbook.data`.

Scripts and not JSON, for a page that is opened from file:// may fetch nothing; and they may say NaN.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from bnbook import atomic
from bnbook.errors import BnbookError
from bnbook.results import Results

#: Where the pages' scripts look for the data, under a folder of pages.
FOLDER = Path("_static/explorers/data")
DIGITS = 5  # of what is only drawn
Evidence = Any  # bnbook.pipeline.evidence.Evidence, or None where a chapter has no run


def write(folder: Path, evidence: Mapping[str, Evidence | None]) -> None:
    """Write NAME.js of every explorer; one whose chapter has no run gets null, and its page its still
    picture."""
    (folder / FOLDER).mkdir(parents=True, exist_ok=True)
    for name, (chapter, collect) in EXPLORERS.items():
        found = evidence.get(chapter)
        content = json.dumps(collect(found.results)) if found else "null"
        atomic.write_text(folder / FOLDER / f"{name}.js", f"bnbook.data.{name} = {content};\n")


def rounded(values: Any) -> Any:
    """Nested lists of numbers with as many digits as a picture shows."""
    if isinstance(values, np.ndarray):
        values = values.tolist()
    return [rounded(v) for v in values] if isinstance(values, list) else float(f"{values:.{DIGITS}g}")


def recorded(results: Results, name: str) -> np.ndarray:
    """A recorded result; BnbookError where the chapter has none of that name."""
    if name not in results:
        chapter = results.header.get("chapter", "a chapter")
        raise BnbookError(f"{chapter} recorded no {name}, from which its explorer draws; record it again")
    return results[name]


def fuse(results: Results) -> dict[str, Any]:
    """The measured networks of the chapter on exploding gradients: by layer, and their rate by batch size."""
    used = results.header["parameters"]
    sizes = used["batch_sizes"]
    names = ("relu", "tanh", "linear", "zigzag")
    layers = {
        kind: rounded(recorded(results, f"curve.layers.{kind}")) for kind in ("batch", "residual", "none")
    }
    measured = {
        name: {m: rounded(recorded(results, f"growth2.{name}.m{m}")) for m in sizes} for name in names
    }
    theory = {name: rounded(recorded(results, f"curve.rates.{name}")[0]) for name in names}
    return {
        "layers": {"depth": len(layers["batch"][0]), "size": 64, "width": used["deep_width"], **layers},
        "rates": {
            "layers": used["layers"],
            "sizes": rounded(recorded(results, "curve.rates.batch_sizes")[0]),
            "theory": theory,
            "measured": measured,
        },
    }


EXPLORERS: dict[str, tuple[str, Callable[[Results], dict[str, Any]]]] = {
    "fuse": ("batch-norm/gradient-explosion", fuse)
}
