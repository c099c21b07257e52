"""What the press is told of this book: its package, its sets of data, its words and its inks."""

from __future__ import annotations

from bnbook import __version__
from bookpress.book import Book, register

#: Recording, drawing, judging and running pass results on and never make one; how data are found and decoded is
#: vouched for by their SHA-256. What these do counts by name only: a change in them makes nothing stale.
NOT_MEASURING = tuple(
    "book claims cli errors explorers figures plots results runs trainings "
    "data.cache data.sources data.listeners".split()  # the last of the code of earlier runs
)
#: What the last part of a result's name says of the arm that it belongs to.
ARMS = {
    "none": "without batch norm",
    "batch": "with batch norm",
    "noisy": "with noisy batch norm",
    "l1": "with ℓ1",
    "l2": "with ℓ2",
    "linf": "with ℓ∞",
    "early": "early",
    "late": "late",
    "residual": "with skip connections",
    "deep": "in the deep network",
    "shallow": "in the shallow network",
    "through": "with batch norm",
}
#: Beside one of these it is not batch norm alone that is absent.
BESIDE = dict.fromkeys(("l1", "l2", "linf"), {"none": "without normalization"})

#: Arm -> (ink on white, ink in the dark): one colour one meaning. An arm's ink is for that arm alone; what is none has an
#: ink of its own, or the ink of text with a mark and a dash. What every book draws (text, grid, what is printed, wrong
#: or mended) has the press's inks (`bookpress.pipeline.inks`).
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

BOOK = Book(
    package="bnbook",
    version=__version__,
    not_measuring=NOT_MEASURING,
    data_module="bnbook.data",
    trainings_module="bnbook.trainings",
    explorers_module="bnbook.explorers",
    pages_module="bnbook.rules",
    figures_module="bnbook.figures",
    chapters_package="bnbook.chapters",
    commands_module="bnbook.cli",
    data_names={"mnist": "MNIST", "cifar10": "CIFAR-10", "cifar10-jpeg75": "CIFAR-10 (JPEG 75)"},
    arms=ARMS,
    beside=BESIDE,
    sources={
        "santurkar2018": "Santurkar et al. 2018",
        "meanfield2018": "Mean-field paper",
        "encyclopedia": "Wikipedia",
        "zhang2023": "Dive into Deep Learning",
    },
    versions=("v1", "NeurIPS"),
    palette=PALETTE,
    scales=SCALES,
    painted=PAINTED,
)
register(BOOK)
