"""Phase diagrams: at which learning rate and which γ small networks train, and where they break.

arm: the settings of a member · stack: many networks as one · descent: training a stack · boundary: finding where it breaks.
"""

from bnbook.phase.arm import PhaseArm
from bnbook.phase.boundary import bisect, works
from bnbook.phase.descent import train_stack

__all__ = ["PhaseArm", "bisect", "train_stack", "works"]
