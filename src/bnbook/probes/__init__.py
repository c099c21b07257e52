"""Measurements of a network that leave it as it was: parameters, buffers, mode and random state untouched."""
