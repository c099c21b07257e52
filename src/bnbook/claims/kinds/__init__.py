"""The kinds of test, a class each: the keys that a claims file gives it, how it judges, and its words.

`known` has them by name and what others ask of a test; `kind` what every kind has, `sampled` what those have
that judge by an interval over the seeds: `comparisons` of two results, `levels` of one or several; `exact`
are those without sampling error.
"""
