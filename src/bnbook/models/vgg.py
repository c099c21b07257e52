"""VGG-A and VGG-16 for small colour images."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence

from torch import nn

from bnbook.errors import BnbookError
from bnbook.models.building import Norm, convolution, hidden, initialise, linear, whole

# Channels of the 3×3 convolutions, 0: 2×2 maximum pooling. Simonyan, Zisserman 2014, columns A and D.
VGG_A = (64, 0, 128, 0, 256, 256, 0, 512, 512, 0, 512, 512, 0)
VGG_D = (64, 64, 0, 128, 128, 0, 256, 256, 256, 0, 512, 512, 512, 0, 512, 512, 512, 0)
HIDDEN = (512, 512)


def vgg(
    width: float = 1.0,
    norm: Norm = "none",
    classes: int = 10,
    channels: int = 3,
    image_size: int = 32,
    init: str = "glorot",
    sigma_w2: float = 2.0,
    sigma_b2: float = 0.5,
    gamma: float = 1.0,
    plan: Sequence[int] = VGG_A,
    **norm_options,
) -> nn.Sequential:
    """VGG-A, eight convolutions and three fully connected layers: (B, channels, size, size) → (B, classes).

    Every hidden layer is followed by its normalizer, then by ReLU. The modules are called conv1, norm1,
    relu1, pool1, ..., conv8, norm8, relu8, pool5, flatten, linear9, norm9, relu9, linear10, norm10, relu10,
    linear11; biases stay in every arm. width multiplies all hidden widths (rounded, at least 4).
    norm: a normalizer's name with its options, "weight", or a factory (features, dim) -> Module.
    init, sigma_w2, sigma_b2: see `initialise`; gamma: the normalizers' first γ; plan: channels, 0 for a pooling.

    Santurkar et al. 2018 (appendix A.1) say "VGG" for CIFAR-10 and no more: which depth, the two hidden fully
    connected layers (4096 wide in the original for 224×224 images; 512 here, as five poolings leave 1×1
    positions of 512 channels), their normalizers, and the absence of dropout are this book's choices.
    Errors: BnbookError for an image size that is no multiple of 32, a width of 0 or less, an unknown name.
    """
    if whole("image_size", image_size) % 32:
        raise BnbookError(f"image_size {image_size} of a VGG; expected a multiple of 32, for five poolings")
    if not width > 0:
        raise BnbookError(f"width {width} of a VGG; expected a factor above 0, such as 0.25")

    def scaled(units: int) -> int:
        return max(4, int(units * width + 0.5))

    layers: list[nn.Module] = []
    features = channels
    for units in plan:
        layers.append(convolution(features, scaled(units)) if units else nn.MaxPool2d(2))
        features = scaled(units) if units else features
    layers.append(nn.Flatten())
    features *= (image_size // 32) ** 2
    for units in HIDDEN:
        layers.append(linear(features, scaled(units)))
        features = scaled(units)
    readout = linear(features, classes)
    drawn = [layer for layer in layers if hasattr(layer, "weight")]
    initialise([*drawn, readout], init, sigma_w2, sigma_b2)

    modules: OrderedDict[str, nn.Module] = OrderedDict()
    index = pools = 0
    for layer in layers:
        if layer in drawn:
            index += 1
            modules |= hidden(index, layer, norm, gamma, norm_options)
        elif isinstance(layer, nn.MaxPool2d):
            pools += 1
            modules[f"pool{pools}"] = layer
        else:
            modules["flatten"] = layer
    modules[f"linear{index + 1}"] = readout
    return nn.Sequential(modules)


def vgg16(
    width: float = 1.0,
    norm: Norm = "batch",
    classes: int = 10,
    channels: int = 3,
    image_size: int = 32,
    init: str = "meanfield",
    sigma_w2: float = 2.0,
    sigma_b2: float = 0.0,
    gamma: float = 1.0,
    **norm_options,
) -> nn.Sequential:
    """VGG-16, thirteen convolutions and three fully connected layers: (B, channels, size, size) → (B,
    classes).

    Built as `bnbook.models.vgg` is (VGG-A): every hidden layer is followed by its normalizer and ReLU, the
    hidden fully connected layers have 512 units. Modules: conv1, norm1, relu1, ..., pool5, flatten, linear14,
    ..., linear16. width multiplies all hidden widths (rounded, at least 4). init, sigma_w2, sigma_b2: see
    `initialise`, by default He's weights without biases at the start; gamma: the normalizers' first γ.
    Source: mean-field paper, section 6.5, which names the network and no more. Errors: BnbookError for an
    image size that is no multiple of 32, a width of 0 or less, an unknown name.
    """
    shape, weights = (classes, channels, image_size), (init, sigma_w2, sigma_b2)
    return vgg(width, norm, *shape, *weights, gamma, VGG_D, **norm_options)
