"""Figures as the site shows them: inks of both themes, legible letters, panels apart on a phone."""
