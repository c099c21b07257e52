"""What evidence must not tell of the one who made it: paths of a machine, mail addresses."""

from __future__ import annotations

import json
import os
import re
import sys
import tempfile
from typing import Any

from bnbook import paths
from bnbook.pipeline.chapters.evidence import Evidence

#: Absolute paths of somebody's machine; a results file or a page must not carry them.
PLACES = (
    "home|root|Users|tmp|private|var|work|workspace|mnt|media|opt|srv|data|scratch|nfs|gpfs|lustre|storage|"
    "project|projects|content|kaggle|run|proc|Volumes|usr/local|usr/lib|usr/share"
)
#: Each begins with a plain character, which makes the search in megabytes of figures fast.
LOCAL_PATHS = (
    re.compile(rf"/(?<![\w.:/)\]}}]/)(?:{PLACES})/[\w.~-]"),
    re.compile(r":(?<=\b[A-Za-z]:)(?:\\{1,2}|/)(?:Users|Windows|Program Files|ProgramData|Temp)\b"),
    re.compile(r"file:///?\w"),
)
#: Mail addresses; `a@b.T` and `a@b.to(…)` are products of matrices.
ADDRESS = re.compile(
    r"@(?<=[\w.+-]@)(?:[\w-]+\.)+(?:com|org|net|edu|gov|info|io|ai|dev|example|local|[a-z]{2})\b(?!\w|\(|\[|\.\w)"
)


#: What Python prints where the code of a cell warns: the file of the cell, the line, the warning.
WARNED = re.compile(r"(?:ipykernel_\d+[^\s\"]*\.py|\(a path of this machine\)):\d+: (\w*Warning: [^\\\"]{1,80})")


#: In place of a path in what a cell printed; such a run is for its owner and is not published.
SCRUBBED = "(a path of this machine)"


def scrub(notebook: Any) -> None:
    """Take the paths of this machine out of what cells printed, in place."""
    patterns = [re.escape(place) for place in sorted(_here(), key=len, reverse=True)]
    pattern = re.compile(rf"(?:{'|'.join([*patterns, *(each.pattern for each in LOCAL_PATHS)])})[^\s\"'<>|:()]*")
    for cell in notebook.cells:
        for output in cell.get("outputs", ()):
            if output.output_type == "stream":
                output.text = pattern.sub(SCRUBBED, output.text)
            for kind, text in output.get("data", {}).items():
                if kind.startswith("text/") and isinstance(text, str):
                    output.data[kind] = pattern.sub(SCRUBBED, text)


def scrubbed(evidence: Evidence) -> list[str]:
    """What a cell printed with a path of the machine is not published."""
    text = evidence.notebook_path.read_text(encoding="utf-8")
    warned = WARNED.search(text)
    why = f": {warned[1]}" if warned else ""
    found = SCRUBBED in text
    return [f"{evidence.notebook_path.name}: a cell prints {SCRUBBED[1:-1]}, mend it{why}"] if found else []


def _here() -> set[str]:
    places = (paths.repository_root(), os.path.expanduser("~"), sys.prefix, tempfile.gettempdir())
    return {str(place) for place in places} - {"/", "~"}


def local_paths(evidence: Evidence) -> list[str]:
    """No path of the machine that ran it, in the notebook, the results or a figure."""
    here, found = _here(), []
    for path in [
        evidence.notebook_path,
        evidence.results_path,
        *sorted(evidence.figures_folder.glob("*.svg")),
    ]:
        text = path.read_text(encoding="utf-8")
        leaks = [match[0] for pattern in LOCAL_PATHS if (match := pattern.search(text))]
        leaks += [place for place in here if json.dumps(place)[1:-1] in text]
        warned = WARNED.search(text)
        why = f": a cell prints a warning, mend what it is about: {warned[1]}" if warned else ""
        found += [f"{path.name} carries a local path ({leak}…){why}" for leak in leaks[:1]]
        found += [
            f"{path.name} carries a mail address (…{match[0]})" for match in [ADDRESS.search(text)] if match
        ]
    return found
