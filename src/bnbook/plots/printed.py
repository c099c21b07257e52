"""Numbers that Santurkar et al. (2018) print in their text, as figures mark them: words -> place on an axis.

None is read off a picture. v1: arXiv 1805.11604v1; NeurIPS: the version of the conference, with its appendix.
"""

from __future__ import annotations

#: Learning rate of the VGG network, chosen for best training: appendix A.1, both versions.
RATE = {"paper: 0.1": 0.1}
#: Learning rate of the deep linear network: appendix A.1, both versions.
LINEAR_RATE = {r"paper: $10^{-6}$": 1e-6}
#: Largest distances along the gradient in learning rates: appendix A.2.2, both versions.
FARTHEST, LINEAR_FARTHEST = {"paper: up to 4": 4.0}, {"paper: up to 30": 30.0}
#: Beyond 4 times 0.1 the plain network "just performs worse": caption of Figure 4, both versions.
WORSE = {"paper: beyond 0.4 plain\n“just performs worse”": 0.4}
#: The largest step, 30 times 1e-6, is "slightly smaller" than a rate at which the plain network diverges:
#: appendix A.2.2, both versions ("explodes" in v1), in a sentence that follows one on the VGG network.
DIVERGES = {"paper: plain diverges\nsoon beyond": 3e-5}
#: Accuracy on test images and the width and steps it belongs to: appendix A.1, both versions.
ACCURACIES, SIZE = {"paper: 83\u00a0% with, 80\u00a0% without": 83.0, "": 80.0}, (1.0, 15000)
#: Cosine of a layer's gradients: captions of Figure 3 (both versions) and Figure 6 (NeurIPS).
IDEAL = {"paper: ideally 1": 1.0}
#: The same of the deep linear network at 1e-6, in words: section 2.2, both versions.
LINEAR_SHIFT = {"paper, without:\n“almost no” shift": 1.0, "paper, with: “almost\nuncorrelated”": 0.0}
#: The gradient's change without over with batch norm, "close to two orders of magnitude": section 3.2, both.
ORDERS = 100.0
#: Standard deviation of a layer's output, "around 5": section 3.3 of v1.
SIGMA = 5.0
#: Share of trainings that do not start with the noise alone, which "prevents it from training entirely":
#: section 2.1 of NeurIPS, without a figure.
NO_START = {"paper: noise alone “prevents\nit from training entirely”": 100.0}
#: Layers of the deep linear network: appendix A.1, both versions.
DEPTH = {"paper: 25": 25.0}
