"""Batch norm's formulas on trial: random and nasty units in double precision, slow twins of what they say."""
