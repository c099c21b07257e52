"""Claims of the sources and the verdicts computed from a run, for readers' code: the press's (`bookpress.claims`)."""

from bnbook import results  # noqa: F401 (the press is told of this book, and hears which data are loaded)
from bookpress.claims import Claim, Test, carry, judge, load_claims, show_verdicts

__all__ = ["Claim", "Test", "carry", "judge", "load_claims", "show_verdicts"]
