"""VGG-A and VGG-16 for small colour images."""

from __future__ import annotations

from collections import OrderedDict

from torch import nn

from bnbook.errors import BnbookError
from bnbook.models.building import Norm, convolution, initialise, linear, normalised, whole

# Channels of the eight 3×3 convolutions; "pool" is 2×2 maximum pooling. Simonyan, Zisserman 2014, column A.
VGG_A = (64, "pool", 128, "pool", 256, 256, "pool", 512, 512, "pool", 512, 512, "pool")
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
    **norm_options,
) -> nn.Sequential:
    """VGG-A, eight convolutions and three fully connected layers: (B, channels, size, size) → (B, classes).

    Every hidden layer is followed by its normalizer, then by ReLU. The modules are called conv1, norm1,
    relu1, pool1, ..., conv8, norm8, relu8, pool5, flatten, linear9, norm9, relu9, linear10, norm10, relu10,
    linear11; biases stay in every arm. width multiplies all hidden widths (rounded, at least 4).
    norm: a normalizer's name with its options, "weight", or a factory (features, dim) -> Module.
    init, sigma_w2, sigma_b2: see `initialise`; gamma: the normalizers' first γ.

    Santurkar et al. 2018 (appendix A.1) say "VGG" for CIFAR-10 and no more: which depth, the two hidden fully
    connected layers (4096 wide in the original for 224×224 images; 512 here, as five poolings leave 1×1
    positions of 512 channels), their normalizers, and the absence of dropout are this book's choices.
    Errors: BnbookError for an image size that is no multiple of 32, a width of 0 or less, an unknown name.
    """
    if whole("image_size", image_size) % 32:
        raise BnbookError(f"image_size {image_size} of VGG-A; expected a multiple of 32, for five poolings")
    if not width > 0:
        raise BnbookError(f"width {width} of VGG-A; expected a factor above 0, such as 0.25")

    def scaled(units: int) -> int:
        return max(4, int(units * width + 0.5))

    convolutions, features = [], channels
    for units in (entry for entry in VGG_A if entry != "pool"):
        convolutions.append(convolution(features, scaled(units)))
        features = scaled(units)
    features *= (image_size // 32) ** 2
    dense = []
    for units in HIDDEN:
        dense.append(linear(features, scaled(units)))
        features = scaled(units)
    readout = linear(features, classes)
    initialise([*convolutions, *dense, readout], init, sigma_w2, sigma_b2)

    modules: OrderedDict[str, nn.Module] = OrderedDict()
    index = pools = 0
    for entry in VGG_A:
        if entry == "pool":
            pools += 1
            modules[f"pool{pools}"] = nn.MaxPool2d(2)
            continue
        layer, normalizer = normalised(convolutions[index], norm, 2, gamma, norm_options)
        index += 1
        modules |= {f"conv{index}": layer, f"norm{index}": normalizer, f"relu{index}": nn.ReLU()}
    modules["flatten"] = nn.Flatten()
    for layer in dense:
        index += 1
        layer, normalizer = normalised(layer, norm, 0, gamma, norm_options)
        modules |= {f"linear{index}": layer, f"norm{index}": normalizer, f"relu{index}": nn.ReLU()}
    modules[f"linear{index + 1}"] = readout
    return nn.Sequential(modules)


# Channels of the thirteen 3×3 convolutions; "pool" is 2×2 maximum pooling. Simonyan, Zisserman 2014, column
# D.
VGG_D = (
    64,
    64,
    "pool",
    128,
    128,
    "pool",
    256,
    256,
    256,
    "pool",
    512,
    512,
    512,
    "pool",
    512,
    512,
    512,
    "pool",
)


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
    if whole("image_size", image_size) % 32:
        raise BnbookError(f"image_size {image_size} of VGG-16; expected a multiple of 32, for five poolings")
    if not width > 0:
        raise BnbookError(f"width {width} of VGG-16; expected a factor above 0, such as 0.25")

    def scaled(units: int) -> int:
        return max(4, int(units * width + 0.5))

    plan: list[nn.Module | str] = []
    features = channels
    for entry in VGG_D:
        if entry == "pool":
            plan.append(entry)
            continue
        plan.append(convolution(features, scaled(entry)))
        features = scaled(entry)
    plan.append("flatten")
    features *= (image_size // 32) ** 2
    for units in HIDDEN:
        plan.append(linear(features, scaled(units)))
        features = scaled(units)
    readout = linear(features, classes)
    initialise([*(layer for layer in plan if not isinstance(layer, str)), readout], init, sigma_w2, sigma_b2)

    modules: OrderedDict[str, nn.Module] = OrderedDict()
    index = pools = 0
    for layer in plan:
        if layer == "pool":
            pools += 1
            modules[f"pool{pools}"] = nn.MaxPool2d(2)
        elif layer == "flatten":
            modules["flatten"] = nn.Flatten()
        else:
            index += 1
            kind, dim = ("conv", 2) if isinstance(layer, nn.Conv2d) else ("linear", 0)
            layer, normalizer = normalised(layer, norm, dim, gamma, norm_options)
            modules |= {f"{kind}{index}": layer, f"norm{index}": normalizer, f"relu{index}": nn.ReLU()}
    modules[f"linear{index + 1}"] = readout
    return nn.Sequential(modules)
