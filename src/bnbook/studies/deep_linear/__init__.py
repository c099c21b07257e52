"""The deep linear network along its learning rate: what the chapter on it trains, and the numbers it shows.

plan: the arms by their names · numbers: of one training, of a pair, of the scan · curves: of its figures.
"""
