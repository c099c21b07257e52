"""Phase diagrams: at which learning rate and which γ small networks train, and where they break.

arm: the settings of a member · stack: many networks as one · descent: training a stack · boundary: finding where it breaks ·
alone: one network in its linear regime, in part, and trained · runs: with the results store.
"""

from bnbook.phase.alone import full_batch, linear_growth, train_hidden, train_model
from bnbook.phase.arm import PhaseArm
from bnbook.phase.boundary import bisect, works
from bnbook.phase.descent import train_stack
from bnbook.phase.runs import train_members

__all__ = ["PhaseArm", "bisect", "full_batch", "linear_growth", "train_hidden", "train_members", "train_model", "train_stack", "works"]
