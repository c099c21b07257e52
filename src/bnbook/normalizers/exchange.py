"""The book's batch norm for torch's own tools, which look for torch's class and pass over every other without a word."""

from __future__ import annotations

from copy import deepcopy

from torch import nn

from bnbook.errors import BnbookError
from bnbook.normalizers.base import BatchNormalizer
from bnbook.normalizers.batch import BatchNorm

TWINS = {0: nn.BatchNorm1d, 2: nn.BatchNorm2d}


def as_torch(model: nn.Module) -> nn.Module:
    """A copy of the model with torch's batch norm in the place of the book's: same γ, β, averages, ε and momentum.

    For tools that ask for torch's class: `torch.optim.swa_utils.update_bn`, conversion to SyncBatchNorm, checkpoints
    without `num_batches_tracked`. Keys and shapes are the same both ways, so that
    `model.load_state_dict(copy.state_dict())` takes back what such a tool did.
    Errors: BnbookError for a layer that pools over the batch and has no twin in torch (lp norms, noisy batch norm).
    """
    whole = nn.Sequential(deepcopy(model))  # so that a layer alone is a part of something, too
    for name, layer in list(whole[0].named_modules()):
        if type(layer) is BatchNorm:
            twin = TWINS[layer.dim](layer.features, layer.eps, layer.momentum).train(layer.training)
            for part, values in (dict(layer.named_parameters()) | dict(layer.named_buffers())).items():
                setattr(twin, part, values)
            whole.set_submodule(f"0.{name}".rstrip("."), twin)
        elif isinstance(layer, BatchNormalizer):
            raise BnbookError(
                f"layer {name or 'itself'} is a {type(layer).__name__}, which torch does not have; expected a model "
                'whose only layers over the batch are make_normalizer("batch", …) or torch\'s own'
            )
    return whole[0]
