"""One colour, one meaning: in the figures an arm's ink is for that arm alone."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from bnbook import chapters, plots
from bnbook.figures import LABELS
from bookpress.pipeline import inks

#: Module of chapters or plots -> the arms that its figures show, in their inks; one that is not named here shows none.
#: A network with batch norm is the arm `batch`, whichever part of it is drawn.
SHOWN = {
    "batch": {"batch"},
    "best_rate": {"none", "batch", "layer"},
    "readout": {"batch"},
    "gamma_initialisation": {"batch"},
    "exercises": {"none", "batch"},
    "fisher": {"none", "batch"},
    "reach": {"batch"},
    "gradient_explosion": {"none", "batch"},
    "ingredients": {"none", "batch"},
    "learning_rate": {"none", "batch"},
    "lp_norms": {"batch"},
    "minima": {"none", "batch"},
    "noisy_batch_norm": {"none", "noisy"},
    "order_parameters": {"none", "batch"},
    "rank": {"none", "batch", "layer"},
    "residual": {"none", "batch"},
    "stand_ins": {"none", "batch"},
    "spectrum": {"none", "batch"},
    "weight_decay": {"none", "batch"},
}
FOLDERS = [Path(room.__file__).parent for room in (chapters, plots)]
MODULES = [path for folder in FOLDERS for path in sorted(folder.rglob("*.py"))]


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_a_module_takes_the_inks_of_the_arms_that_it_shows_and_no_unnamed_ones(path: Path) -> None:
    source = path.read_text(encoding="utf-8")
    keys = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Subscript) and getattr(node.value, "id", "") == "COLORS":
            keys |= {getattr(node.slice, "value", "")}
        if isinstance(node, ast.keyword) and node.arg == "color":  # of a table for `compare`
            keys |= {getattr(node.value, "value", "")}
    assert {key for key in keys if isinstance(key, str)} & set(LABELS) <= SHOWN.get(path.stem, set()), (
        "an arm's ink for what is not that arm?"
    )
    unnamed = {ink for ink in re.findall(r"#[0-9a-f]{6}\b", source.lower()) if not inks.is_grey(ink)}
    assert not unnamed, "an ink without a meaning: PALETTE names each"
    assert not re.search(r'"C\d"|"tab:', source), "an ink by its number"
