"""Verdicts as files of earlier runs have them, and the words that the book has for them now."""

NOW = {"at most partly": "partly refuted, rest open", "wrong, mended": "wrong as printed, corrected"}
