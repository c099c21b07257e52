"""bnbook: a book about batch normalization in which every statement is a measurement.

Instruments, which measure and know nothing of the book: data normalizers models probes meanfield training
small_networks deep_linear report. On them the chapters' trainings, numbers and drawings, a module a chapter:
chapters; what they draw with: plots figures. What the press (bookpress), which runs, judges and shows them,
is told: book trainings explorers. And its facades, for chapters' cells and readers' code: results claims runs errors
cli.
"""

__version__ = "0.1.0"


def __getattr__(name: str):
    """`bnbook.measure`, imported when it is asked for: torch takes a second."""
    if name == "measure":
        from bnbook.report import measure

        return measure
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
