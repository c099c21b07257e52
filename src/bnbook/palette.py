"""The inks of the book's figures: one colour one meaning, on white and in the dark.

An arm's ink is for that arm alone; what is none has an ink of its own, or the ink of text with a mark and a dash.
What every book draws (text, grid, what is printed, wrong or mended) has the press's inks (`bookpress.pipeline.inks`).
"""

from __future__ import annotations

#: Arm -> (ink on white, ink in the dark).
PALETTE = {
    "none": ("#c4500c", "#ff8f57"),
    "batch": ("#0068a8", "#5cb4f2"),
    "noisy": ("#7d4bb3", "#bd9bf2"),
    "noise": ("#8a6d00", "#d6b64a"),
    "l1": ("#b3478c", "#ea93c6"),
    "l2": ("#8f6400", "#f0b13c"),
    "linf": ("#00808f", "#4fd0de"),
    "layer": ("#8c564b", "#d3a49a"),
    "skip": ("#445a00", "#9dbb2f"),  # batch norm in every layer, with skip connections around them
    "one": ("#2b2bc4", "#8088ff"),  # batch norm behind a single layer
    "apart": ("#a000c8", "#e868ff"),  # descent in length and direction apart, such as GDNP
}
#: Figures that paint areas by a colour scale, which their colour bar shows: no ink of the scale is changed.
SCALES = r".*/(map|plane|gradients)$"

#: Those whose panels it fills: what lies on it has the same inks in both themes.
PAINTED = r".*/(map|plane)$"
