"""Random fully connected networks with batch norm in every layer, in some, in none, or around skip
connections."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Iterator, Sequence

import torch
from torch import Tensor, nn

from bnbook.errors import BnbookError
from bnbook.models import mlp
from bnbook.models.building import initialise, linear, whole
from bnbook.normalizers import make_normalizer
from bnbook.studies.gradient_growth.activations import Elementwise, Function, activation


def chain(
    widths: Sequence[int],
    phi: str | Function = "relu",
    normalized: Collection[int] | None = None,
    sigma_w2: float = 2.0,
    sigma_b2: float = 0.0,
    gamma: float = 1.0,
) -> nn.Sequential:
    """`bnbook.models.mlp` with another nonlinearity, and batch norm in the hidden layers `normalized` only
    (None: in all).

    Layers count from 1; the last of widths is the linear readout's. h^l = φ(BN(W^l h^(l-1) + b^l)).
    BnbookError for a hidden layer that is not there, and whatever `mlp` refuses.
    """
    hidden = len(widths) - 2
    where = set(range(1, hidden + 1) if normalized is None else normalized)
    if wrong := sorted(where - set(range(1, hidden + 1))):
        raise BnbookError(f"no hidden layer {wrong[0]} to normalize; expected numbers from 1 to {hidden}")
    count = iter(range(1, hidden + 1))

    def norm(features: int, dim: int) -> nn.Module:
        return make_normalizer("batch" if next(count) in where else "none", features, dim)

    model = mlp(widths, norm, "meanfield", sigma_w2, sigma_b2, gamma)
    function = activation(phi)
    for layer in range(1, hidden + 1):
        setattr(model, f"relu{layer}", Elementwise(function))
    return model


class Branch(nn.Module):
    """x + W φ(BN(x)): a layer around which a connection skips."""

    def __init__(self, width: int, function: Function, gamma: float) -> None:
        super().__init__()
        self.norm, self.act = make_normalizer("batch", width), Elementwise(function)
        self.linear = linear(width, width)
        with torch.no_grad():
            self.norm.weight.fill_(gamma)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.linear(self.act(self.norm(x)))


def residual(
    widths: Sequence[int], phi: str | Function = "relu", sigma_w2: float = 2.0, gamma: float = 1.0
) -> nn.Sequential:
    """The same layers with skip connections: x^1 = W^1 x, x^(l+1) = x^l + W^(l+1) φ(BN(x^l)), readout of
    φ(BN(x^L)).

    Modules: linear1, block2, ..., blockL, norm, act, readout; as many weights as `chain` of the same widths,
    whose hidden layers must be equally wide. BnbookError if they are not.
    """
    if len(widths) < 3 or len(set(widths[1:-1])) != 1:
        raise BnbookError(f"widths {tuple(widths)}; expected inputs, equally wide hidden layers, outputs")
    width, hidden, function = whole("width", widths[1]), len(widths) - 2, activation(phi)
    modules: OrderedDict[str, nn.Module] = OrderedDict(linear1=linear(widths[0], width))
    for layer in range(2, hidden + 1):
        modules[f"block{layer}"] = Branch(width, function, gamma)
    modules |= {"norm": make_normalizer("batch", width), "act": Elementwise(function)}
    modules["readout"] = linear(width, widths[-1])
    model = nn.Sequential(modules)
    initialise([m for m in model.modules() if isinstance(m, nn.Linear)], "meanfield", sigma_w2, 0.0)
    with torch.no_grad():
        model.norm.weight.fill_(gamma)
    return model


def draw_networks(
    kind: str,
    widths: Sequence[int],
    seeds: int,
    phi: str | Function = "relu",
    first: int = 0,
    **options: float,
) -> Iterator[nn.Sequential]:
    """Random networks, one for each of `seeds` seeds from `first` on; options: those of `chain` or
    `residual`.

    kind: where batch norm stands. "batch": in every hidden layer, "residual": the same with skip connections,
    "none", or in one hidden layer, "one_first", "one_middle", "one_last". BnbookError for any other.
    """
    last = len(widths) - 2
    places = {
        "batch": None,
        "none": [],
        "one_first": [1],
        "one_middle": [(last + 1) // 2],
        "one_last": [last],
    }
    if kind not in (*places, "residual"):
        raise BnbookError(
            f"unknown kind of network {kind!r}; expected residual or one of {', '.join(places)}"
        )
    for seed in range(first, first + seeds):
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            if kind == "residual":
                network = residual(widths, phi, **options)
            else:
                network = chain(widths, phi, places[kind], **options)
        yield network
