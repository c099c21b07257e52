"""Training by plain SGD, in steps between which a training can stop and go on elsewhere.

arm: its settings · engine: the loop and its evaluations · probed, placed: what else looks on · first_gamma: other
networks · resumable, numerics: what all trainings share · curves: single numbers of them · flops: what they
cost.
"""
