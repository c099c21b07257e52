"""What the chapter on lp norms says of the division, of shapes and of the shift of distributions."""

from __future__ import annotations

import numpy as np
import torch

from bnbook.normalizers import make_normalizer

LP = ("l1", "l2", "linf")
NORM = {
    "l1": lambda v: v.abs().mean(0),
    "l2": lambda v: (v**2).mean(0).sqrt(),
    "linf": lambda v: v.abs().amax(0),
}


def normalized(name: str, x: torch.Tensor) -> torch.Tensor:
    return make_normalizer(name, x.shape[1], 0, eps=1e-14).double()(x).detach()


def skewed() -> torch.Tensor:
    return torch.from_numpy(np.random.default_rng(3).gamma(2.0, 1.0, (4000, 3)) - [[0.0, 1.0, 2.0]])


def test_the_l2_output_shrinks_by_the_mean_in_standard_deviations():
    x = skewed()
    ratio = x.mean(0) / x.std(0, correction=0)
    torch.testing.assert_close(NORM["l2"](normalized("l2", x)), 1 / (1 + ratio**2).sqrt(), rtol=0, atol=1e-9)


def test_no_normalizer_changes_the_shape_and_all_fix_the_first_moment():
    x = skewed()
    standard = (x - x.mean(0)) / x.std(0, correction=0)
    for name in ("batch", *LP):
        y = normalized(name, x)
        assert y.mean(0).abs().max() < 1e-12
        torch.testing.assert_close((y - y.mean(0)) / y.std(0, correction=0), standard, rtol=0, atol=1e-9)
