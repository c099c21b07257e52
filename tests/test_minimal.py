"""The file that a newcomer reads first gives the numbers of the package."""

from __future__ import annotations

import runpy

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from bnbook import minimal, models
from bnbook.probes import landscape
from bookpress.intervals import of_mean

BATCH = torch.randn(12, 1, 8, 8, generator=torch.Generator().manual_seed(0)), torch.arange(12) % 10


@pytest.mark.parametrize("name, norm", [("batch", minimal.BatchNorm), ("none", nn.Identity)])
def test_its_network_its_slope_and_its_step_are_those_of_the_package(name, norm):
    torch.manual_seed(0)
    own, other = minimal.network(norm), models.mlp(minimal.WIDTHS, name)
    for p, q in zip(other.parameters(), own.parameters(), strict=True):
        q.data += 0.1 * torch.rand_like(q)  # γ and β too
        p.data = q.data.clone()
    torch.testing.assert_close(own(BATCH[0]), other(BATCH[0]))
    wanted = landscape.along_gradient(other, F.cross_entropy, BATCH, [0.01]).smoothness[0]
    assert float(minimal.slope(own, *BATCH, 0.01)) == pytest.approx(float(wanted), rel=1e-3)
    assert all(torch.equal(p, q) for p, q in zip(other.parameters(), own.parameters()))
    minimal.step(own, minimal.gradient(own, *BATCH)[1], 0.1)
    F.cross_entropy(other(BATCH[0]), BATCH[1]).backward()
    torch.optim.SGD(other.parameters(), lr=0.1).step()
    for p, q in zip(own.parameters(), other.parameters()):
        torch.testing.assert_close(p, q)


@pytest.mark.parametrize("shift, word", [(-2.0, "yes"), (2.0, "no"), (0.0, "open")])
def test_its_verdict_is_by_the_interval_of_the_package(shift, word):
    values = torch.tensor([-1.0, 1.2, 0.3, -0.4, 0.1, -0.9, 0.8, -0.2]) + shift
    found, *edges = minimal.verdict(values)
    assert found == word
    assert [float(each) for each in edges] == pytest.approx(of_mean(np.array(values))[1:], abs=1e-4)


def test_it_runs_and_says_two_verdicts(capsys):
    runpy.run_path(minimal.__file__, run_name="__main__")
    said = [line.split("? ") for line in capsys.readouterr().out.splitlines()]
    assert [of for of, _ in said] == [f"Is the {of} lower with batch norm" for of in ("loss", "slope")]
    assert all(words.split(":")[0] in ("yes", "no", "open") for _, words in said)
