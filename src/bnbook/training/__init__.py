"""Training by plain SGD.

`arm.Arm` is a setting, `engine.train` runs it once (`bnbook.runs` runs many, and keeps them),
`curves` makes single numbers of them, `operations` says what they cost.
"""
