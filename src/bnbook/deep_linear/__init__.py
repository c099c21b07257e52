"""Deep linear networks, hundreds at once, trained on the rows that stand for their data, with every
instrument."""

from bnbook.deep_linear.arm import LENGTHS, LinearArm, probed_arm, spread_probes
from bnbook.deep_linear.descent import train_stack
from bnbook.deep_linear.instruments import LEVELS
from bnbook.deep_linear.network import NORMS, Network, Parameters
from bnbook.deep_linear.problem import Problem, draw_examples, draw_problem

__all__ = [
    "LENGTHS",
    "LEVELS",
    "NORMS",
    "LinearArm",
    "Network",
    "Parameters",
    "Problem",
    "draw_examples",
    "draw_problem",
    "spread_probes",
    "probed_arm",
    "train_stack",
]
