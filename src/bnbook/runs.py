"""The runner of every training, for chapters' cells and readers' code: the press's (`bookpress.runs`)."""

from bnbook import results  # noqa: F401 (the sets that are loaded are noted there)
from bookpress.runs.runner import train_all, train_members

__all__ = ["train_all", "train_members"]
