"""Training by plain SGD.

`arm.Arm` is a setting, `engine.train` runs it once, `pool.train_all` runs many and keeps them in `store`,
`curves` makes single numbers of them, `operations` says what they cost.
"""
