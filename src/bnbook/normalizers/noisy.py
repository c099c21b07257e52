"""Noise that moves every unit's distribution at every step, after batch norm or alone."""

from __future__ import annotations

import torch
from torch import Tensor

from bnbook.errors import BnbookError
from bnbook.normalizers.base import Normalizer, wide
from bnbook.normalizers.batch import BatchNorm


class Noise(Normalizer):
    """Scale and shift every activation at random, about centres that are drawn anew for each unit and step.

    At each training forward: μ_j ~ U(-n_mu, n_mu) and σ_j ~ U(1, n_sigma) for each unit j; then for each
    example, unit and position m ~ U(μ_j - r_mu, μ_j + r_mu), s ~ N(σ_j, r_sigma), a ← s a + m. Over steps,
    E s = (1 + n_sigma)/2, Var s = (n_sigma - 1)²/12 + r_sigma² (with spread "variance" + r_sigma), E m = 0,
    Var m = (n_mu² + r_mu²)/3.

    spread: "deviation" reads the second argument of N as a standard deviation, "variance" as a variance; the
    source does not say. per: "unit" is the arXiv printing; "layer" draws one μ and one σ for the whole layer,
    as the NeurIPS printing, which drops the index j, can be read.
    In evaluation mode nothing is drawn or changed: noise belongs to training steps. The draws come from the
    default generator of the input's device (torch.manual_seed) and follow the input's memory layout.
    Source: Santurkar et al. 2018, Algorithm 1.
    Errors: BnbookError for a wrong shape, spread or per, n_sigma below 1, another constant below 0.
    """

    def __init__(
        self,
        features: int,
        dim: int = 0,
        n_mu: float = 0.5,
        n_sigma: float = 1.25,
        r_mu: float = 0.1,
        r_sigma: float = 0.1,
        spread: str = "deviation",
        per: str = "unit",
    ) -> None:
        super().__init__(features, dim)
        if spread not in ("deviation", "variance"):
            raise BnbookError(f"unknown spread {spread!r} of the noise; expected deviation or variance")
        if per not in ("unit", "layer"):
            raise BnbookError(f"unknown per {per!r} of the noise; expected unit or layer")
        if n_sigma < 1 or min(n_mu, r_mu, r_sigma) < 0:
            raise BnbookError(
                f"noise n_mu={n_mu}, n_sigma={n_sigma}, r_mu={r_mu}, r_sigma={r_sigma}; "
                "expected n_sigma of at least 1 and the others of at least 0"
            )
        self.n_mu, self.n_sigma, self.r_mu, self.r_sigma = n_mu, n_sigma, r_mu, r_sigma
        self.spread, self.per = spread, per

    def draw(self, a: Tensor) -> tuple[Tensor, Tensor]:
        """Draw s and m in the shape, type, device and memory layout of the activations a."""
        units = self.features if self.per == "unit" else 1
        mu = wide(a.new_empty(units).uniform_(-self.n_mu, self.n_mu), a)
        sigma = wide(a.new_empty(units).uniform_(1.0, self.n_sigma), a)
        deviation = self.r_sigma if self.spread == "deviation" else self.r_sigma**0.5
        s = _laid_out_as(a, a.new_empty(a.numel()).normal_(0.0, deviation)).add_(sigma)
        return s, _uniform_about(mu, self.r_mu, a)

    def forward(self, a: Tensor) -> Tensor:
        self.check(a)
        if not self.training:
            return a
        s, m = self.draw(a.detach())
        return torch.addcmul(m, s, a)


class NoisyBatchNorm(BatchNorm):
    """Batch norm with its γ and β, and then `Noise` on the result (Santurkar et al. 2018, Algorithm 1)."""

    def __init__(
        self, features: int, dim: int = 0, eps: float = 1e-5, momentum: float | None = 0.1, **noise
    ) -> None:
        super().__init__(features, dim, eps, momentum)
        self.noise = Noise(features, dim, **noise)

    def forward(self, x: Tensor) -> Tensor:
        return self.noise(super().forward(x))


def _laid_out_as(a: Tensor, flat: Tensor) -> Tensor:
    """View freshly drawn values (N,) in the shape of a and in its own memory order (faster to combine)."""
    if a.dim() == 4 and a.is_contiguous(memory_format=torch.channels_last):
        batch, channels, height, width = a.shape
        return flat.view(batch, height, width, channels).permute(0, 3, 1, 2)
    return flat.view(a.shape)


def _uniform_about(centre: Tensor, half_width: float, a: Tensor) -> Tensor:
    """Draw U(centre - half_width, centre + half_width) for every element of a."""
    if a.device.type != "cpu" or a.dtype != torch.float32:
        return _laid_out_as(a, a.new_empty(a.numel()).uniform_(-half_width, half_width)).add_(centre)
    # PyTorch's CPU generator is serial and would be half of the cost of a step. One 64-bit number gives four
    # draws on an even grid of 2^16 points, symmetric about the centre: mean exact, variance short by 2^-32.
    words = torch.empty((a.numel() + 3) // 4, dtype=torch.int64).random_(-(2**63), None)
    steps = _laid_out_as(a, words.view(torch.int16)[: a.numel()])
    step = half_width / 2**15
    return torch.add(centre + step / 2, steps, alpha=step)
