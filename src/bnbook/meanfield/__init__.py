"""Mean-field theory of random networks with and without batch norm (Mean-field analysis of BN, ICLR 2019 submission).

Plain NumPy: no torch, no SciPy. "Equation n" everywhere in this package is equation n of that paper.
"""

from bnbook.meanfield.architectures import FullyConnected
from bnbook.meanfield.theory import MeanFieldTheory, solve

__all__ = ["FullyConnected", "MeanFieldTheory", "solve"]
