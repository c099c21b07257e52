"""The chapters of the book, a module each: what it trains, measures and draws; and what several of them share.

A function that returns a figure counts in no stamp (`bookpress.stamp`): a better drawing makes no run stale.
"""
