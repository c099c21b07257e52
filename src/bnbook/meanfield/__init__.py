"""Mean-field theory of random networks with and without batch norm.

Plain NumPy: no torch, no SciPy. "Equation n" in this package is equation n of "Mean-field analysis of batch
normalization" (submission to ICLR 2019).
"""

from bnbook.meanfield.architectures import FullyConnected
from bnbook.meanfield.theory import MeanFieldTheory, solve

__all__ = ["FullyConnected", "MeanFieldTheory", "solve"]
