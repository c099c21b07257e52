"""Algorithm 1: the moments of its noise in closed form, fresh and frozen draws, and the random state."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy import stats

from bnbook.normalizers import make_normalizer

LAST = torch.channels_last


def near(sample: np.ndarray, expected: float) -> None:
    """The mean of independent values within 4.5 standard errors of what is expected."""
    error = sample.std(ddof=1) / len(sample) ** 0.5
    assert abs(sample.mean() - expected) < 4.5 * error, (sample.mean(), expected, error)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])  # their uniform draws differ
@pytest.mark.parametrize("spread, deviation", [("deviation", 0.1), ("variance", 0.1**0.5)])
def test_moments_of_the_draws(dtype, spread, deviation):
    torch.manual_seed(1)
    units = 400
    s, m = make_normalizer("noise", units, 2, spread=spread).draw(torch.zeros(20, units, 5, 5, dtype=dtype))
    assert s.dtype == m.dtype == dtype
    s, m = (t.double().transpose(0, 1).reshape(units, -1).numpy() for t in (s, m))
    mu, sigma = m.mean(1), s.mean(1)
    # Between units: U(-0.5, 0.5) and U(1, 1.25), seen through the mean of 500 draws each.
    near(mu, 0.0)
    near(mu**2, 0.25 / 3 + 0.1**2 / 3 / 500)
    near(sigma, 1.125)
    near((sigma - 1.125) ** 2, 0.25**2 / 12 + deviation**2 / 500)
    assert mu.min() < -0.45 and 0.45 < mu.max() < 0.51
    assert sigma.max() > 1.23 - deviation / 10 and sigma.min() < 1.02
    # Within a unit: U(μ - 0.1, μ + 0.1) has variance 0.1²/3 and kurtosis 9/5; N(σ, r) has r² and 3.
    near(m.var(1, ddof=1), 0.1**2 / 3)
    near(s.var(1, ddof=1), deviation**2)
    inside, outside = m - mu[:, None], (s - sigma[:, None]) / deviation
    assert (inside**4).mean() / (inside**2).mean() ** 2 == pytest.approx(1.8, abs=0.02)
    assert (outside**4).mean() / (outside**2).mean() ** 2 == pytest.approx(3.0, abs=0.06)
    assert (m.max(1) - m.min(1)).max() <= 0.2 + 1e-6
    # s and m, neighbours in memory, and positions of one unit are independent of each other.
    for a, b in ((inside, outside), (inside[:, 1:], inside[:, :-1]), (outside[:, 1:], outside[:, :-1])):
        assert abs(np.corrcoef(a.ravel(), b.ravel())[0, 1]) < 4.5 / a.size**0.5


def test_the_draws_follow_the_uniform_and_the_normal_law():
    torch.manual_seed(2)
    s, m = make_normalizer("noise", 1, 0, n_mu=0.0, n_sigma=1.0).draw(torch.zeros(200_000, 1))
    assert stats.kstest(m.flatten().numpy(), stats.uniform(-0.1, 0.2).cdf).pvalue > 1e-4
    assert stats.kstest(s.flatten().numpy(), stats.norm(1.0, 0.1).cdf).pvalue > 1e-4
    assert (torch.diff(m.flatten().sort().values) > 0).sum() > 50_000  # a fine grid, not a coarse one
    places = m[:4096].double() / (0.1 / 2**15)  # in steps from the centre: half-integers
    assert (places % 1 - 0.5).abs().max() < 0.01


def test_one_centre_for_the_whole_layer():
    torch.manual_seed(3)
    layer = make_normalizer("noise", 50, 0, per="layer")
    centres = []
    for _ in range(40):
        s, m = layer.draw(torch.zeros(2000, 50))
        assert m.mean(0).std() < 0.005 and s.mean(0).std() < 0.01
        centres.append(m.mean().item())
    assert np.std(centres) > 0.2  # U(-0.5, 0.5) over the steps: 0.289


@pytest.mark.parametrize("layout", [torch.contiguous_format, LAST])
def test_noisy_is_batch_norm_then_s_a_plus_m(layout):
    x = torch.randn(8, 3, 4, 4).contiguous(memory_format=layout).requires_grad_()
    noisy, batch = make_normalizer("noisy", 3, 2), make_normalizer("batch", 3, 2)
    with torch.no_grad():
        noisy.weight.copy_(torch.tensor([0.5, 1.0, 2.0]))
        noisy.bias.fill_(0.3)
    batch.load_state_dict(noisy.state_dict())
    torch.manual_seed(4)
    y, again = noisy(x), noisy(x)
    torch.manual_seed(4)
    s, m = noisy.noise.draw(x)
    expected = s * batch(x) + m
    assert y.is_contiguous(memory_format=layout) and s.is_contiguous(memory_format=layout)
    torch.testing.assert_close(y, expected, rtol=0, atol=1e-6)
    s, m = noisy.noise.draw(x)  # a forward draws anew
    torch.testing.assert_close(again, s * batch(x) + m, rtol=0, atol=1e-6)
    weights = torch.randn_like(y)
    for ours, theirs in ((noisy.weight, batch.weight), (noisy.bias, batch.bias), (x, x)):
        (a,) = torch.autograd.grad((y * weights).sum(), ours, retain_graph=True)
        (b,) = torch.autograd.grad((expected * weights).sum(), theirs, retain_graph=True)
        torch.testing.assert_close(a, b, rtol=0, atol=1e-4)
    assert torch.equal(noisy.running_var, batch.running_var)
    state = torch.get_rng_state()
    assert torch.equal(noisy.eval()(x), batch.eval()(x)) and torch.equal(state, torch.get_rng_state())
