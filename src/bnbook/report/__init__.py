"""What the book measures, on anybody's network: one call, one report."""

from bnbook.report.measuring import measure
from bnbook.report.report import Report

__all__ = ["Report", "measure"]
