"""bnbook: a book about batch normalization in which every statement is a measurement."""

__version__ = "0.1.0"
