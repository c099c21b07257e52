"""Residual networks with and without batch norm on their branches: how they start, train and how far a gradient holds."""
