"""Why stacked batch norm layers make gradients grow: the exact rate of a layer, and networks to measure it in."""

from bnbook.explosion.activations import ACTIVATIONS
from bnbook.explosion.networks import chain, residual
from bnbook.explosion.rates import Growth, growth, linear_growth, relu_growth, residual_profile
from bnbook.explosion.stack import Trained, train

__all__ = [
    "ACTIVATIONS", "Growth", "Trained", "chain", "growth", "linear_growth", "relu_growth", "residual", "residual_profile",
    "train",
]  # fmt: skip
