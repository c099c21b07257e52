"""Does it stay flat when it is deep? How far one formula for the largest Fisher eigenvalue reaches, and three
exact statements under it."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import torch
from torch import Tensor
from torch.func import hessian, jacrev

from bnbook.chapters.mean_field import sets_of
from bnbook.figures import COLORS
from bnbook.plots.panels import Panel, compare
from bnbook.results import Results


def outcome_model(seed: int, inputs: int = 5, outcomes: int = 4, hidden: int = 3) -> dict[str, float]:
    """Equations 4 and 6 on a model with finitely many inputs and outcomes, each as the largest relative
    difference of two matrices.

    log p_θ(y|x) is the log-softmax of a small tanh network of two-dimensional x, p(x) uneven; expectations
    are sums over all pairs, in float64. `equation_4`: I_θ against -E_{p_θ} Hess log p_θ, at a random θ.
    `equation_6`: I_{θ*} against the Hessian of L(θ) = -E_{p_θ*} log p_θ at its minimum θ*. `elsewhere`: the
    same Hessian against I_θ at another random θ, where equation 6 promises nothing.
    """
    generator = torch.Generator().manual_seed(seed)

    def draw(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    x, share = draw(inputs, 2), torch.softmax(draw(inputs), 0)[:, None]
    first = 2 * hidden

    def log_p(theta: Tensor) -> Tensor:
        logits = torch.tanh(x @ theta[:first].view(2, hidden)) @ theta[first:].view(hidden, outcomes)
        return logits.log_softmax(1)  # (inputs, outcomes)

    def fisher(theta: Tensor) -> Tensor:
        weight, rows = share * log_p(theta).exp(), jacrev(log_p)(theta)
        return torch.einsum("xy,xya,xyb->ab", weight, rows, rows)

    def mean_hessian(theta: Tensor, at: Tensor) -> Tensor:
        weight = (share * log_p(at).exp()).detach()
        return hessian(lambda t: -(weight * log_p(t)).sum())(theta)

    best, other = draw(first + hidden * outcomes), draw(first + hidden * outcomes)

    def off(a: Tensor, b: Tensor) -> float:
        return float((a - b).abs().max() / b.abs().max())

    every = torch.einsum("xy,xyab->ab", share * log_p(other).exp(), -hessian(log_p)(other))
    return {
        "equation_4": off(every, fisher(other)),
        "equation_6": off(mean_hessian(best, best), fisher(best)),
        "elsewhere": off(mean_hessian(other, best), fisher(other)),
    }


def outside_the_bounds(seed: int, trials: int, rounding: float = 1e-12) -> np.ndarray:
    """Which of `trials` random matrices of gradients, (trials,), break equation 147, and which end by how
    much.

    m gradients of n entries with heavy tails and a common part: λ_max of their mean outer product against the
    mean of all m² inner products and the mean of the m squares.
    """
    rng = np.random.default_rng(seed)
    broken = np.zeros(trials, dtype=bool)
    for trial in range(trials):
        m, n = rng.integers(1, 9, size=2)
        gradients = rng.standard_t(2, size=(m, n)) + rng.normal(size=n) * rng.choice([0.0, 1.0, 10.0])
        top = np.linalg.eigvalsh(gradients.T @ gradients / m)[-1]
        lower, upper = np.square(gradients.mean(axis=0)).sum(), np.square(gradients).sum() / m
        broken[trial] = not lower <= top * (1 + rounding) <= upper * (1 + 2 * rounding)
    return broken


# ---- Figures ----------------------------------------------------------------------------------------------

SIZES = ("few", "many")


def against_depth(results: Results) -> plt.Figure:
    """Largest eigenvalue by depth, a panel a batch size, and the rule N / 2π."""
    depths, (rule,) = results["curve.depth.depths"][0], results["curve.depth.rule"]
    titles = zip(SIZES, results["curve.depth.inputs"][0])
    panels = [Panel(curve=f"curve.depth.{{}}.{size}", title=f"batches of {m:.0f}") for size, m in titles]
    words = dict(xlabel="layers $L$", ylabel=r"$\lambda_{\max}$, $\gamma = 1$", marks_y={r"$N/2\pi$": rule})
    words |= dict(x=depths, ticks=depths, by="geometric", look="o-", log="y", ylim=(rule / 2, None))
    return compare(results, panels, figsize=(7.8, 3.9), sharey=True, **words)


def beside_rule(results: Results) -> plt.Figure:
    """Measured over N / 2π, for each set and batch size."""
    cases = [(place, size) for place in range(len(sets_of(results))) for size in SIZES]
    kinds = {"one": ("o", COLORS["batch"], "one output, weights", -0.09)}
    kinds["whole"] = ("s", "white", "all outputs, all parameters", 0.09)
    arms = {}
    for kind, (mark, face, words, shift) in kinds.items():
        values = np.stack([results[f"rule.{kind}.set{place}.{size}"] for place, size in cases], axis=1)
        style = dict(color="batch", markerfacecolor=face, look=mark, label=words)
        arms[kind] = dict(x=np.arange(len(cases)) + shift, y=values, **style)
    sizes = dict(zip(SIZES, results["curve.depth.inputs"][0]))
    names = {
        k: f"{sets_of(results)[place]}\n$m$ = {sizes[size]:.0f}" for k, (place, size) in enumerate(cases)
    }
    words = dict(
        ylabel=r"$\lambda_{\max}$ over $N\gamma^2/2\pi$", ylim=(0, None), ticks=names, marks_y={"": 1}
    )
    return compare(results, [Panel(by="points", **words)], arms, figsize=(7.2, 3.2))
