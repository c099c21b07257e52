"""What evidence must not tell of the one who made it: paths of a machine, mail addresses."""

from __future__ import annotations

import json
import os
import re
import sys
import tempfile

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
WARNED = re.compile(r"ipykernel_\d+[^\s\"]*\.py:\d+: (\w*Warning: [^\\\"]{1,80})")


def local_paths(evidence: Evidence) -> list[str]:
    """No path of the machine that ran it, in the notebook, the results or a figure."""
    places = (paths.repository_root(), os.path.expanduser("~"), sys.prefix, tempfile.gettempdir())
    here = {str(place) for place in places} - {"/", "~"}
    found = []
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
