"""bnbook: a book about batch normalization in which every statement is a measurement."""

__version__ = "0.1.0"


def __getattr__(name: str):
    """`bnbook.measure`, imported when it is asked for: torch takes a second."""
    if name == "measure":
        from bnbook.report import measure

        return measure
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
