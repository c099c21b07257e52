"""A chapter's cells in this process, at the smoke profile: the names that they give and the numbers that they record."""

from __future__ import annotations

import ast
import contextlib
import io
from collections.abc import Callable, Mapping
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import torch

from bnbook import figures, runs
from bnbook.training.arm import Arm
from bookpress import results
from bookpress.pipeline import chapters


def run(
    name: str,
    made: Mapping[str, dict[str, np.ndarray]] | Callable[[Any, int], dict] | None = None,
    until: str = "",
    **changed: Any,
) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """What the cells of a chapter bind, and what they record, drawn points too; the drawings themselves are the built
    site's. made: by their norm the arrays of all trainings of a VGG network, which none is trained then, or what gives
    those of an arm and a seed; until: a word of the first cell that is left out, with all behind it; changed: of the
    parameters."""
    (chapter,) = chapters.select([name])
    names: dict[str, Any] = {"__name__": "__main__"}
    results._session = results.Results()
    torch.set_default_dtype(torch.float32)
    drawn, trained = figures.figure, runs.train_all

    def given(arms: Mapping[Any, Any], *others: Any, kept: bool = False) -> dict[Any, dict[str, np.ndarray]]:
        if callable(made):
            rows = {key: [made(arm, seed) for seed in others[0]] for key, arm in arms.items()}
            return {key: {k: np.stack([one[k] for one in of]) for k in of[0]} for key, of in rows.items()}
        found = {key: made[arm.norm] for key, arm in arms.items() if isinstance(arm, Arm)}
        return found or trained(arms, *others)

    def points_alone(name: str, _: Any, *, points: Mapping[str, Any] | None = None) -> None:
        figures._record_points(name, points or {})

    figures.figure, runs.train_all = points_alone, given if made else trained
    try:
        with contextlib.redirect_stdout(io.StringIO()), np.errstate():
            for cell in (cell.source for cell in chapter.notebook.cells if cell.cell_type == "code"):
                if until and until in cell:
                    break
                if "show_verdicts(" not in cell.splitlines()[-1]:
                    exec(compile(cell, name, "exec", dont_inherit=True), names)
                    names |= changed
        return names, {each: results.current()[each] for each in results.current()}
    finally:
        figures.figure, runs.train_all = drawn, trained
        torch.set_default_dtype(torch.float32)  # a page may have set its own
        plt.close("all")


DEFINES = ast.Import | ast.ImportFrom | ast.FunctionDef | ast.ClassDef


def functions(name: str, *constants: str, **changed: Any) -> dict[str, Any]:
    """What the cells of a chapter import and define, with its parameters at smoke and these changes, and the constants
    of these names; nothing else runs."""
    (chapter,) = chapters.select([name])
    names: dict[str, Any] = {"__name__": name} | chapter.parameters("smoke") | changed
    for cell in chapter.code_cells:
        kept = [
            each for each in ast.parse(cell).body if isinstance(each, DEFINES) or _bound(each) & {*constants}
        ]
        exec(compile(ast.Module(kept, []), name, "exec", dont_inherit=True), names)
    return names


def _bound(node: ast.stmt) -> set[str]:
    """Names that an assignment binds or, as `|=`, changes."""
    targets = getattr(node, "targets", [getattr(node, "target", None)])
    return {
        each.id for target in targets if target for each in ast.walk(target) if isinstance(each, ast.Name)
    }


def cell(name: str, word: str, **names: Any) -> dict[str, Any]:
    """What a chapter's cell that has this word in it defines, run with these names."""
    (chapter,) = chapters.select([name])
    (source,) = [each for each in chapter.code_cells if word in each]
    with contextlib.redirect_stdout(io.StringIO()):
        exec(compile(source, name, "exec"), names)
    return names
