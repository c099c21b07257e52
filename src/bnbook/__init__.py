"""bnbook: a book about batch normalization in which every statement is a measurement.

Instruments, which measure and know nothing of the book: data normalizers models probes meanfield training
small_networks deep_linear intervals report. A module a chapter: chapters. The machine of the book: claims
fingerprint pipeline plots parameters runs site coursework results rows figures encoding contents texts profiles cli
running elsewhere. Below both: errors paths atomic cores.
"""

__version__ = "0.1.0"


def __getattr__(name: str):
    """`bnbook.measure`, imported when it is asked for: torch takes a second."""
    if name == "measure":
        from bnbook.report import measure

        return measure
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
