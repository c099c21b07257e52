"""What figures share: axes, panels, marks, names beside lines, numbers that sources print, drawings for phones."""
