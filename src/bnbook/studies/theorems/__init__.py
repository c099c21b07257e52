"""The theorems of Santurkar et al. 2018 as code: random instances, gradients, Hessians, bounds.

Two sides meet in every test. The fast side (`one_unit`, `lipschitz`, `smoothness`, `minima`) holds closed
formulas on NumPy arrays, which also take exact fractions; the slow side (`instances`, `cases`) is automatic
differentiation of the whole network. `*_trials` let them meet on random instances, `*_exact` in fractions.
"""
