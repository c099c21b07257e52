"""The trials of the transform: what is drawn, and how errors are collected and counted."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from page_cells import functions

from bnbook.chapters.transform import FORMULAS, by_seed, draw_units, generators, largest
from bnbook.normalizers.formulas import batch_norm_backward, batch_norm_forward

D, PAGE = torch.float64, SimpleNamespace(**functions("batch-norm/transform"))


@pytest.fixture(autouse=True)
def double():
    """As the page sets it."""
    torch.set_default_dtype(D)
    yield
    torch.set_default_dtype(torch.float32)


def test_units_of_every_size_and_difficult_ones():
    x, gamma, beta, eps = draw_units(64, 800, *generators(range(1), 1))
    deviation, offset = x.std(0, correction=0), x.mean(0).abs()
    assert x.dtype == D and gamma.shape == beta.shape == eps.shape == (800,)
    kind = torch.arange(800) % 8
    assert torch.allclose(deviation[kind == 0], torch.tensor(1e-8, dtype=D), rtol=1e-3)
    easy = deviation[kind > 3].log10()
    assert easy.min() > -3.01 and easy.max() < 3.01 and easy.std() == pytest.approx(6 / 12**0.5, rel=0.1)
    assert (offset / deviation)[kind > 3].max() > 500 and gamma.min() < -1 < 1 < gamma.max()
    z = ((x - x.mean(0)) / deviation).abs()
    assert (z[0, kind == 1] > 7.9).all()  # √63: as far from the others as one of 64 can be
    assert (x[:32, kind == 2] == x[0, kind == 2]).all() and (x[32:, kind == 2] != x[0, kind == 2]).all()
    tails = (z**4).mean(0)
    assert tails[kind == 3].mean() > 3 * tails[kind > 3].mean()


def test_errors_are_collected_by_seed():
    first = [{"a": torch.tensor([[1.0, -2.0], [-3.0, 0.5]])}, {"a": torch.tensor([-4.0, 0.0])}]
    found = by_seed([first, [{"a": torch.zeros(2, 2)}, {"a": torch.tensor([1.0, -5.0])}]])
    assert found["a"].tolist() == [[3.0, 2.0, 4.0, 0.0], [0.0, 0.0, 1.0, 5.0]]
    assert largest(found)["a"].tolist() == [4.0, 5.0]
    assert np.isnan(largest(by_seed([[{"a": torch.tensor([1.0, np.nan])}]]))["a"]).all()


def test_gradients_by_autograd_and_their_sizes():
    """A wrong sign is an error of the size of the terms; the right formula errs by rounding only."""
    g = generators(range(1), 5)[0]
    x, gamma, beta, eps = draw_units(8, 40, g)
    w = torch.randn(8, 40, generator=g, dtype=D)
    dl_dy, auto = PAGE.by_autograd(x, gamma, beta, eps, w)
    y = batch_norm_forward(x, gamma, beta, eps).y
    assert torch.allclose(dl_dy, w * torch.tanh(y))  # of w log cosh y
    hand, size = batch_norm_backward(dl_dy, x, gamma, eps), PAGE.sizes_of_terms(dl_dy, x, gamma, eps)
    for name in FORMULAS:
        assert ((hand[name] - auto[name]).abs() <= 1e-10 * size[name]).all()
        assert (hand[name].abs() <= size[name] * (1 + 1e-9)).all()
    errors = PAGE.slope_errors(x, gamma, beta, eps, w, auto["x"], size["x"], g)
    wrong = PAGE.slope_errors(x, gamma, beta, eps, w, auto["x"] + 0.01 * size["x"], size["x"], g)
    assert errors.abs().max() < 1e-5 < 1e-4 < wrong.abs().max()
    single = PAGE.single_precision_errors(x, gamma, beta, eps, w)
    assert single.dtype == torch.float32 and 1e-9 < single.abs().max() < 1


def test_biases_are_counted():
    """m/(m-1) E σ_B² is N/(N-1) Var x where batches are dealt, Var x where they are drawn independently."""
    found = PAGE.counted_biases(np.array([0.0, 1.0, 5.0, 7.0, 8.5]), [2, 3])
    assert found["mean"] == pytest.approx([0] * 4, abs=1e-12)
    assert found["dealt"] == pytest.approx([1 / 4] * 2) and found["independent"] == pytest.approx([0] * 2)


def test_layers_at_inference_keep_their_statistics():
    rows, maps, (gamma, beta, mean, variance) = PAGE.frozen_layers(6, *generators(range(1), 10))
    x = torch.randn(9, 6, dtype=D)
    expected = gamma * (x - mean) / (variance + 1e-5).sqrt() + beta
    assert torch.allclose(rows(x), expected) and torch.allclose(
        maps(x[:, :, None, None])[..., 0, 0], expected
    )
