"""The architectures of the book, each as a named sequence of layers that takes `norm=`."""

from __future__ import annotations

from bnbook.models.building import activation_points
from bnbook.models.convolutional import vgg
from bnbook.models.dense import deep_linear, mlp

__all__ = ["activation_points", "deep_linear", "mlp", "vgg"]
