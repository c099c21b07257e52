"""Phase diagrams: at which learning rate and which γ small networks train, and where they break.

arm: the settings of a member · stack: many networks as one · descent: training a stack · boundary: finding
where it breaks · alone: one network in its linear regime, in part, and trained.
"""

from bnbook.small_networks.alone import full_batch, linear_growth, train_model, train_part
from bnbook.small_networks.arm import PhaseArm
from bnbook.small_networks.boundary import bisect, works
from bnbook.small_networks.descent import train_stack

__all__ = [
    "PhaseArm",
    "bisect",
    "full_batch",
    "linear_growth",
    "train_model",
    "train_part",
    "train_stack",
    "works",
]
