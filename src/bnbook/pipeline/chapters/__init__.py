"""A chapter and a run of it: its text and settings, the files of a run, the verdicts that it gives."""
