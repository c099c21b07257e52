"""Training by plain SGD, in steps between which a training can stop and go on elsewhere.

arm: its settings · engine: the loop and its evaluations · probes: what else looks on · practice: other optimizers ·
resumable, numerics, settings: what all trainings share · stack: many networks at once · flops: what they cost.
"""
