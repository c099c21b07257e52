"""What figures share: an arm's name and colour, axes, panels, marks, names beside lines, numbers that sources print,
drawings for phones."""

from bnbook import book  # noqa: F401 (its inks, also where no `_config.yml` names this book)
from bookpress.pipeline.inks import palette

#: The arm's colour everywhere in the book, as the site's palette has it on white.
COLORS = {name: light for name, (light, _) in palette().items()} | {"theory": palette()["text"][0]}
LABELS = {
    "none": "without batch norm",
    "batch": "with batch norm",
    "noisy": "noisy batch norm",
    "noise": "noise alone",
    "l1": "ℓ1 norm",
    "l2": "ℓ2 norm",
    "linf": "ℓ∞ norm",
    "layer": "layer norm",
}
