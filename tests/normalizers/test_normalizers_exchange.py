"""The book's batch norm handed to torch's own tools, and back."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn
from torch.optim.swa_utils import update_bn

from bnbook.errors import BnbookError
from bnbook.normalizers import make_normalizer
from bnbook.normalizers.exchange import as_torch


def network(momentum=0.3, **options):
    torch.manual_seed(1)
    norm = [make_normalizer("batch", n, d, momentum=momentum, eps=1e-3) for n, d in ((4, 2), (6, 0))]
    model = nn.Sequential(
        nn.Conv2d(2, 4, 3), norm[0], nn.ReLU(), nn.Sequential(nn.Flatten(), nn.Linear(36, 6), norm[1])
    ).double()
    with torch.no_grad():
        for each in model.parameters():
            each.normal_()
    for _ in range(3):
        model(torch.randn(8, 2, 5, 5, dtype=torch.float64))
    return model


@pytest.mark.parametrize("momentum", [0.3, None])
@pytest.mark.parametrize("training", [True, False])
def test_the_copy_answers_learns_and_averages_as_the_model_does(momentum, training):
    model = network(momentum).train(training)
    twin, x = as_torch(model), torch.randn(8, 2, 5, 5, dtype=torch.float64)
    assert {type(each) for each in twin.modules() if "Batch" in type(each).__name__} == {
        nn.BatchNorm1d,
        nn.BatchNorm2d,
    }
    for each in (model, twin):
        each(x).square().sum().backward()
    torch.testing.assert_close(twin(x), model(x), rtol=1e-12, atol=1e-12)
    for one, other in zip(twin.parameters(), model.parameters(), strict=True):
        torch.testing.assert_close(one.grad, other.grad, rtol=1e-10, atol=1e-12)
    kept, other = twin.state_dict(), model.state_dict()
    assert kept.keys() == other.keys()
    for name, one in kept.items():
        torch.testing.assert_close(one, other[name], rtol=1e-12, atol=1e-12)


def test_averages_made_anew_by_torchs_tool_come_back():
    model, batches = network(), [torch.randn(8, 2, 5, 5, dtype=torch.float64) for _ in range(4)]
    twin = as_torch(model)
    update_bn(batches, twin)
    model.load_state_dict(twin.state_dict())
    mean = torch.stack([model[0](each).mean((0, 2, 3)) for each in batches]).mean(0)
    torch.testing.assert_close(model[1].running_mean, mean)


def test_other_tools_of_torch_see_the_copy():
    twin = as_torch(network())
    assert isinstance(nn.SyncBatchNorm.convert_sync_batchnorm(twin)[1], nn.SyncBatchNorm)
    old = {key: value for key, value in twin.state_dict().items() if "tracked" not in key}
    as_torch(network()).load_state_dict(old)


def test_the_model_stays_and_settings_are_kept():
    model = network().eval()
    model[1].weight.requires_grad_(False)
    before = copy.deepcopy(model.state_dict())
    twin = as_torch(model)
    with torch.no_grad():
        twin[1].running_mean.fill_(7.0)
    assert all(torch.equal(value, model.state_dict()[key]) for key, value in before.items())
    assert not twin[1].training and not twin[1].weight.requires_grad and twin[1].bias.requires_grad
    assert isinstance(as_torch(model[1]), nn.BatchNorm2d)


@pytest.mark.parametrize("name", ["l1", "l2", "linf", "noisy"])
def test_what_torch_does_not_have_is_refused_by_name(name):
    model = nn.Sequential(nn.Linear(2, 4), make_normalizer(name, 4))
    with pytest.raises(BnbookError, match=r"layer 1 is a \w+, which torch does not have; expected"):
        as_torch(model)
    assert as_torch(nn.Sequential(make_normalizer("layer", 4)))[0] is not None
