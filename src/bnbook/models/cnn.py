"""The small convolutional network of the mean-field paper."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence

from torch import nn

from bnbook.errors import BnbookError
from bnbook.models.building import Norm, hidden, initialise, linear, whole


def cnn(
    image: Sequence[int] = (3, 32, 32),
    channels: Sequence[int] = (30, 60, 90),
    kernel: int = 3,
    stride: int = 2,
    outputs: int = 10,
    norm: Norm = "none",
    init: str = "meanfield",
    sigma_w2: float = 2.0,
    sigma_b2: float = 0.5,
    gamma: float = 1.0,
    **norm_options,
) -> nn.Sequential:
    """Strided convolutions without padding and a linear readout of the last map: (B, *image) → (B, outputs).

    h^l = relu(norm(W^l * h^{l-1} + b^l)); the readout has no normalizer. Modules: conv1, norm1, relu1, ...,
    flatten, linearL. init, sigma_w2, sigma_b2: see `initialise`; gamma: the normalizers' first γ, β = 0.
    norm: as in `vgg`. Source: mean-field paper, equations 26 to 28 and section 4 (filter 3, stride 2,
    channels 30, 60, 90). Errors: BnbookError for a size below 1, an image that is not (channels, height,
    width), a map smaller than the kernel.
    """
    if len(image) != 3:
        raise BnbookError(f"image {tuple(image)} of a CNN; expected (channels, height, width)")
    features, height, width = (whole("image size", size) for size in image)
    convolutions = []
    for units in channels:
        if min(height, width) < whole("kernel", kernel):
            raise BnbookError(
                f"a kernel of {kernel}×{kernel} does not fit a map of {height}×{width}; expected fewer "
                "convolutions"
            )
        layer = nn.Conv2d(features, whole("channels", units), kernel, whole("stride", stride))
        convolutions.append(layer)
        features, height, width = units, *((size - kernel) // stride + 1 for size in (height, width))
    readout = linear(features * height * width, outputs)
    initialise([*convolutions, readout], init, sigma_w2, sigma_b2)
    modules: OrderedDict[str, nn.Module] = OrderedDict()
    for index, layer in enumerate(convolutions, start=1):
        modules |= hidden(index, layer, norm, gamma, norm_options)
    modules["flatten"] = nn.Flatten()
    modules[f"linear{len(convolutions) + 1}"] = readout
    return nn.Sequential(modules)
