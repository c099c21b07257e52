"""Mean-field theory of random networks with and without batch norm.

Plain NumPy: no torch, no SciPy. "Equation n" in this package is equation n of "Mean-field analysis of batch
normalization" (submission to ICLR 2019).

architectures: which networks · recursions: one function per equation · letters, backward: the two passes ·
solving, theory: `solve` and what it returns.
"""

from bnbook.meanfield.architectures import Convolutional, FullyConnected
from bnbook.meanfield.solving import solve
from bnbook.meanfield.theory import MeanFieldTheory

__all__ = ["Convolutional", "FullyConnected", "MeanFieldTheory", "solve"]
