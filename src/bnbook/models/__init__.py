"""The architectures of the book, each as a named sequence of layers that takes `norm=`."""

from __future__ import annotations

from bnbook.models.building import activation_points
from bnbook.models.cnn import cnn
from bnbook.models.dense import deep_linear, mlp
from bnbook.models.residual import resnet
from bnbook.models.vgg import vgg, vgg16

__all__ = ["activation_points", "cnn", "deep_linear", "mlp", "resnet", "vgg", "vgg16"]
