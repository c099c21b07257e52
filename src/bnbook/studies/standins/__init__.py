"""Layers that each do a part of what batch norm does, with instruments and outcomes beside one another."""
