"""Assignments out of the book: student and instructor notebooks, autograders, a table of points."""
