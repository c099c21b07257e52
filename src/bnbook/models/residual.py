"""The pre-activation residual network of 18 layers, for small colour images."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable

import torch.nn.functional as F
from torch import Tensor, nn

from bnbook.errors import BnbookError
from bnbook.models.building import initialise, linear, scale, whole
from bnbook.normalizers import make_normalizer

STAGES = (64, 128, 256, 512)  # channels; each stage but the first halves the map
BLOCKS = 2  # in a stage


class PreActBlock(nn.Module):
    """x + conv2(relu(norm2(conv1(relu(norm1(x)))))); where shapes change, x goes through a 1×1 convolution of
    relu(norm1(x))."""

    def __init__(
        self, inputs: int, features: int, stride: int, normalizer: Callable[[int], nn.Module]
    ) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, features, 3, stride, padding=1, bias=False)
        self.conv2 = nn.Conv2d(features, features, 3, padding=1, bias=False)
        changes = stride != 1 or inputs != features
        self.shortcut = nn.Conv2d(inputs, features, 1, stride, bias=False) if changes else None
        self.norm1, self.norm2 = normalizer(inputs), normalizer(features)

    def forward(self, x: Tensor) -> Tensor:
        ready = F.relu(self.norm1(x))
        past = x if self.shortcut is None else self.shortcut(ready)
        return past + self.conv2(F.relu(self.norm2(self.conv1(ready))))


def resnet(
    width: float = 1.0,
    norm: str = "batch",
    classes: int = 10,
    channels: int = 3,
    image_size: int = 32,
    init: str = "meanfield",
    sigma_w2: float = 2.0,
    sigma_b2: float = 0.0,
    gamma: float = 1.0,
    **norm_options,
) -> nn.Sequential:
    """PreAct-ResNet18: (B, channels, size, size) → (B, classes), a convolution, four stages of two blocks, a
    mean over places.

    Modules: conv1, stage1, ..., stage4 (each block1, block2), norm1, relu1, pool1, flatten, linear18. No
    biases but the readout's. width multiplies all channels (rounded, at least 4). init, sigma_w2, sigma_b2:
    see `initialise`, by default He's weights without biases; gamma: the normalizers' first γ. Source: He et
    al. 2016, "Identity mappings in deep residual networks", in the form for CIFAR (first convolution 3×3
    without stride or pooling); the mean-field paper, section 6.5, names it and no more. Errors: BnbookError
    for an image size that is no multiple of 8, a width of 0 or less, an unknown norm.
    """
    if whole("image_size", image_size) % 8:
        raise BnbookError(
            f"image_size {image_size} of the ResNet; expected a multiple of 8, for three halvings"
        )
    if not width > 0:
        raise BnbookError(f"width {width} of the ResNet; expected a factor above 0, such as 0.25")

    def normalizer(units: int) -> nn.Module:
        return scale(make_normalizer(norm, units, 2, **norm_options), gamma)

    sizes = [max(4, int(units * width + 0.5)) for units in STAGES]
    modules: OrderedDict[str, nn.Module] = OrderedDict(
        conv1=nn.Conv2d(channels, sizes[0], 3, padding=1, bias=False)
    )
    features = sizes[0]
    for stage, units in enumerate(sizes, start=1):
        blocks: OrderedDict[str, nn.Module] = OrderedDict()
        for block in range(1, BLOCKS + 1):
            stride = 2 if block == 1 and stage > 1 else 1
            blocks[f"block{block}"] = PreActBlock(features, units, stride, normalizer)
            features = units
        modules[f"stage{stage}"] = nn.Sequential(blocks)
    readout = linear(features, classes)
    drawn = [m for part in modules.values() for m in part.modules() if isinstance(m, nn.Conv2d)]
    initialise([*drawn, readout], init, sigma_w2, sigma_b2)
    modules |= {
        "norm1": normalizer(features),
        "relu1": nn.ReLU(),
        "pool1": nn.AdaptiveAvgPool2d(1),
        "flatten": nn.Flatten(),
        "linear18": readout,
    }
    return nn.Sequential(modules)
