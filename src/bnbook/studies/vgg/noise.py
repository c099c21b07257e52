"""Algorithm 1's noise before any training: its moments in closed form and as drawn, and what it moves."""

from __future__ import annotations

import numpy as np
import torch

from bnbook.normalizers import make_normalizer
from bnbook.probes.activations import moment_change

N_MU, N_SIGMA, R = 0.5, 1.25, 0.1  # the paper's widths: of μ, of σ, of the blur r_μ = r_σ
CLOSED = {
    "m_mean": 0.0,
    "m_variance": (N_MU**2 + R**2) / 3,
    "s_mean": (1 + N_SIGMA) / 2,
    "s_variance": (N_SIGMA - 1) ** 2 / 12 + R**2,
    "m_size_of_unit": N_MU / 2,
}
GROUPS = 10  # of draws, for an interval
STRONG, WEAK = (2.0, 4.0), (0.1, 0.3)  # further strengths: behind batch norm and alone
READINGS = {
    "layer": {"per": "layer"},
    "variance": {"spread": "variance"},
    "layer_variance": {"per": "layer", "spread": "variance"},
}


def drawn(draws: int, seed: int = 0, examples: int = 32, units: int = 16) -> dict[str, np.ndarray]:
    """Moments of the shift m and the factor s that the layer draws, (GROUPS,) each, named as in CLOSED."""
    found = {name: np.empty(GROUPS) for name in CLOSED}
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        layer, x = make_normalizer("noise", units, 0), torch.zeros(examples, units)
        for group in range(GROUPS):
            several = [layer.draw(x) for _ in range(draws // GROUPS)]
            s, m = (torch.stack(part).double() for part in zip(*several))  # (draws, B, units)
            found["m_mean"][group], found["m_variance"][group] = m.mean(), m.var()
            found["s_mean"][group], found["s_variance"][group] = s.mean(), s.var()
            found["m_size_of_unit"][group] = m.mean(1).abs().mean()
    return found


def moves(count: int = 200_000) -> dict[str, float]:
    """Expected change of mean and variance between two steps of a unit that has mean 0 and variance 1 before
    the noise."""
    generator = np.random.default_rng(0)
    mu = generator.uniform(-N_MU, N_MU, (2, count))
    sigma = generator.uniform(1, N_SIGMA, (2, count))
    found = moment_change(mu, sigma**2 + R**2 + R**2 / 3)
    return dict(zip(("mean", "variance"), (float(part[0]) for part in found)))


def stronger(times: float) -> dict[str, float]:
    """Algorithm 1 with every random part so many times as wide."""
    widths = {"n_mu": N_MU, "r_mu": R, "r_sigma": R}
    return {name: times * width for name, width in widths.items()} | {"n_sigma": 1 + (N_SIGMA - 1) * times}


def tag(strength: float) -> str:
    """0.3 -> "x0_3", as result names have it."""
    return f"x{strength:g}".replace(".", "_")
