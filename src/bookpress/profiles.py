"""The profiles of a run, from the one that proves that the code runs to the papers' own protocol."""

from __future__ import annotations

#: Name -> seconds that a chapter may take before a run of several names it (never a failure).
BUDGETS = {"smoke": 15, "laptop": 30 * 60, "overnight": 12 * 60 * 60, "paper": 60 * 60}
PROFILES = tuple(BUDGETS)
HIGHEST_FIRST = PROFILES[::-1]
#: What may be published; a smoke run is no evidence.
PUBLISHED = HIGHEST_FIRST[:-1]
#: A chapter has it only where its header says so: not every chapter has more to show in a night.
OPTIONAL = ("overnight",)
