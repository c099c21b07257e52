"""The file that a newcomer reads first gives the numbers of the package."""

from __future__ import annotations

import runpy

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from bnbook import minimal, models
from bnbook.normalizers import make_normalizer
from bnbook.probes import landscape
from bookpress.intervals import of_mean

BATCH = torch.randn(12, 1, 8, 8, generator=torch.Generator().manual_seed(0)), torch.arange(12) % 10


def test_its_batch_norm_is_that_of_the_package():
    own, other = minimal.BatchNorm(5), make_normalizer("batch", 5)
    for each in (own, other):
        each.weight.data, each.bias.data = torch.linspace(-1, 2, 5), torch.linspace(0, 3, 5)
    z = 4 * torch.randn(7, 5) + 2
    torch.testing.assert_close(own(z), other(z))


@pytest.mark.parametrize("name, norm", [("batch", minimal.BatchNorm), ("none", nn.Identity)])
def test_its_network_and_its_slope_are_those_of_the_package(name, norm):
    torch.manual_seed(0)
    own, other = minimal.network(norm), models.mlp(minimal.WIDTHS, name)
    given, taking = list(own.parameters()), list(other.parameters())
    for p, q in zip(taking, given, strict=True):
        p.data = q.data.clone()
    torch.testing.assert_close(own(BATCH[0]), other(BATCH[0]))
    before = [p.clone() for p in given]
    wanted = landscape.along_gradient(other, F.cross_entropy, BATCH, [0.01]).smoothness[0]
    assert float(minimal.slope(own, *BATCH, 0.01)) == pytest.approx(float(wanted), rel=1e-3)
    assert all(torch.equal(p, q) for p, q in zip(before, own.parameters()))


def test_its_step_is_that_of_sgd():
    torch.manual_seed(1)
    own = minimal.network(minimal.BatchNorm)
    other = minimal.network(minimal.BatchNorm)
    other.load_state_dict(own.state_dict())
    minimal.step(own, minimal.gradient(own, *BATCH)[1], 0.1)
    F.cross_entropy(other(BATCH[0]), BATCH[1]).backward()
    torch.optim.SGD(other.parameters(), lr=0.1).step()
    for p, q in zip(own.parameters(), other.parameters(), strict=True):
        torch.testing.assert_close(p, q)


@pytest.mark.parametrize("shift, word", [(-2.0, "yes"), (2.0, "no"), (0.0, "open")])
def test_its_verdict_is_by_the_interval_of_the_package(shift, word):
    values = torch.tensor([-1.0, 1.2, 0.3, -0.4, 0.1, -0.9, 0.8, -0.2]) + shift
    found, *edges = minimal.verdict(values)
    assert found == word
    assert [float(each) for each in edges] == pytest.approx(of_mean(np.array(values))[1:], abs=1e-4)


def test_it_runs_and_says_two_verdicts(capsys):
    runpy.run_path(minimal.__file__, run_name="__main__")
    lines = capsys.readouterr().out.splitlines()
    assert [line.split("?")[0] for line in lines] == [
        "Is the loss lower with batch norm",
        "Is the slope lower with batch norm",
    ]
    assert all(line.split("? ")[1].split(":")[0] in ("yes", "no", "open") for line in lines)
