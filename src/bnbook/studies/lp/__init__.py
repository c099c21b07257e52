"""Division by other norms: what it does to a unit, and what came of it in the linear and the VGG network.

division: of one unit, before any training · linear: numbers of the deep linear network · shapes: of the VGG's
distributions.
"""
