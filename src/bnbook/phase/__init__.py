"""Phase diagrams: at which learning rate and which γ small networks train, and where they break.

arm: the settings of a member · stack: many networks as one · descent: training a stack · boundary: finding where it breaks ·
one_batch: the linear regime, and hidden layers alone · runs: with the results store.
"""

from bnbook.phase.arm import PhaseArm
from bnbook.phase.boundary import bisect, works
from bnbook.phase.descent import train_stack
from bnbook.phase.one_batch import full_batch, linear_growth, train_hidden
from bnbook.phase.runs import train_members

__all__ = ["PhaseArm", "bisect", "full_batch", "linear_growth", "train_hidden", "train_members", "train_stack", "works"]
