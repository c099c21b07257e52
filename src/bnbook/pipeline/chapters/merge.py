"""Text and evidence joined: the chapter's current words with the outputs and figures of a run."""

from __future__ import annotations

import re
from typing import Any

from bnbook.pipeline.chapters.chapters import Chapter, is_parameters
from bnbook.pipeline.chapters.evidence import Evidence
from bnbook.pipeline.chapters.parameters import with_values

#: Metadata of an executed cell that is evidence; everything else (times, paths, frontends' notes) goes.
KEPT_STATUS = ("status", "exception")
#: The tag of a code cell that is not the chapter's: it installs, carries the claims or shows the verdicts.
ADDED = "added"


def scrub(notebook: Any) -> None:
    """Remove what papermill and the kernel wrote about this machine: paths, times, identities; in place."""
    notebook.metadata = {
        "kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"},
        "language_info": {"name": "python"},
    }
    for cell in notebook.cells:
        status = {k: v for k, v in cell.metadata.get("papermill", {}).items() if k in KEPT_STATUS}
        cell.metadata = {k: v for k, v in cell.metadata.items() if k in ("tags", "mystnb")}
        if cell.cell_type == "code":
            cell.metadata["papermill"] = status
            cell.outputs = [output for output in cell.outputs if not _noise(output)]
            for output in cell.outputs:
                output.get("metadata", {}).pop("papermill", None)


def _noise(output: Any) -> bool:
    """Progress frames: text with a carriage return on standard error; they belong to the terminal."""
    return output.output_type == "stream" and output.name == "stderr" and "\r" in output.text


def ran_cells(notebook: Any) -> list[Any]:
    """The chapter's own code cells of an executed notebook: not those that papermill or the book added."""
    code = (cell for cell in notebook.cells if cell.cell_type == "code")
    return [cell for cell in code if not {ADDED, "injected-parameters"} & {*cell.metadata.get("tags", [])}]


def with_evidence(chapter: Chapter, evidence: Evidence) -> Any:
    """The chapter's notebook with the outputs of a run put under the code cells that made them.

    Cells are matched in order: that the code is the code that ran is the fingerprint's to say.
    """
    page, ran = chapter.notebook.copy(), iter(ran_cells(evidence.notebook))
    cells = []
    for original in chapter.notebook.cells:
        cell = original.copy()
        if cell.cell_type == "code":
            made = next(ran)  # the gate has counted them
            cell["outputs"], cell["execution_count"] = made.outputs, made.execution_count
            cell["metadata"] = cell.metadata | {
                "tags": sorted({*cell.metadata.get("tags", []), "hide-input"})
            }
        if is_parameters(cell):
            cell["source"] = with_values(cell.source, evidence.results.header["parameters"])
        cells.append(cell)
    page["cells"] = cells
    return page


def referenced_figures(text: str) -> list[tuple[str, str, str]]:
    """(path, alternative text, whole directive) of every `{figure}` directive in a text."""
    found = []
    for match in re.finditer(r"^(`{3,}|:{3,})\{figure\} +(\S+)\n(.*?)^\1", text, flags=re.M | re.S):
        alt = re.search(r"^:alt: *(.*)$", match.group(3), flags=re.M)
        found.append((match.group(2), alt.group(1).strip() if alt else "", match.group(0)))
    return found
