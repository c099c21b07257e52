"""Why stacked batch norm layers make gradients grow: the exact rate of a layer, and networks to measure it
in."""

from bnbook.studies.gradient_growth.activations import ACTIVATIONS
from bnbook.studies.gradient_growth.descent import Trained, train
from bnbook.studies.gradient_growth.networks import chain, draw_networks, residual
from bnbook.studies.gradient_growth.rates import Growth, growth, linear_growth, relu_growth, residual_profile

__all__ = [
    "ACTIVATIONS",
    "Growth",
    "Trained",
    "chain",
    "draw_networks",
    "growth",
    "linear_growth",
    "relu_growth",
    "residual",
    "residual_profile",
    "train",
]
