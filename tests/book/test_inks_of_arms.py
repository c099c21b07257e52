"""One colour, one meaning: in the figures an arm's ink is for that arm alone."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.colors import to_hex

from bnbook import chapters, plots
from bnbook.chapters import length_direction
from bnbook.figures import COLORS, LABELS
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


def test_a_method_or_a_reading_never_has_the_ink_of_an_arm() -> None:
    rows = {key: f"{key}: words" for key in ("batch", "none", "l2", "printed", "corrected")}
    counts = {f"curve.margins.{key}": np.ones((1, 8)) for key in rows}
    fig = length_direction.draw_ratios(counts, {"": rows}, (-4, 4))
    drawn = {to_hex(patch.get_edgecolor()) for patch in fig.axes[0].patches}
    drawn |= {to_hex(patch.get_facecolor()) for patch in fig.axes[0].patches if patch.get_fill()}
    plt.close(fig)
    arms = {COLORS[arm] for arm in LABELS}
    assert len(drawn) >= len(rows) and not drawn & arms
    assert not {ink for ink, *_ in length_direction.METHODS.values()} & arms


def test_nothing_but_figures_asks_the_palette_for_an_arm() -> None:
    asked = re.compile(r'PALETTE\["(' + "|".join(LABELS) + r')"\]')
    package = FOLDERS[0].parent.rglob("*.py")
    assert not {path.name for path in package if asked.search(path.read_text(encoding="utf-8"))}
