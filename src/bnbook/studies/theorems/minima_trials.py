"""One random problem against Observation 4.3 and Lemmas 3.3 and 4.5."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from bnbook.studies.theorems import minima
from bnbook.studies.theorems.instances import batch_norm, draw
from bnbook.studies.theorems.margins import error, margin
from bnbook.studies.theorems.near_optimal_trials import lemma_33_squared_trial, lemma_33_trial


def minima_trial(rng: np.random.Generator, number: int) -> dict[str, float]:
    """Everything that the page on minima says about problem `number`."""
    return {
        **_same_outputs(rng, number),
        **_preserved(rng, number),
        **lemma_33_trial(rng, number),
        **_lemma_45(rng, number),
        **lemma_33_squared_trial(rng, number),
    }


def _same_outputs(rng: np.random.Generator, number: int) -> dict[str, float]:
    """Observation 4.3, first sentence: γ = σ and β = mean give the layer's outputs back."""
    y = torch.tensor(draw(rng, number).y)
    mean, variance = y.mean(0).numpy(), y.var(0, correction=0).numpy()
    eps = float(variance.max()) * 10 ** rng.uniform(-4, 1)
    size = float(y.abs().max())
    return {
        "error.same": error(y, batch_norm(y, variance**0.5, mean), size),
        "error.same.eps": error(y, batch_norm(y, variance**0.5, mean, eps), size),
        "error.same.eps_corrected": error(y, batch_norm(y, (variance + eps) ** 0.5, mean, eps), size),
    }


def _preserved(rng: np.random.Generator, number: int) -> dict[str, float]:
    """Observation 4.3, second sentence: is W*, a minimum without batch norm, one with γ = σ, β = mean?

    The loss is quadratic with a minimum in W chosen at random; beyond the reach of the plain layer it slopes
    and, in half of the problems, bends down, so neither the outputs at the minimum nor the loss as a whole
    are special.
    """
    result: dict[str, float] = {}
    m = (5, 8, 16)[number % 3]
    for inputs in ("any", "bias", "centred"):
        x = rng.standard_normal((m, 3)) + rng.standard_normal(3)
        if inputs == "bias":
            x[:, 2] = 1.0
        elif inputs == "centred":
            x = x - x.mean(0)
        w = rng.standard_normal(3)
        loss = _loss_with_minimum(rng, x, w, concave=number % 2 == 1)
        at = np.concatenate([w, [(x @ w).std(), (x @ w).mean()]])
        whole = lambda p, loss=loss, x=x: loss(_network(x, p))
        first, second = _derivatives(whole, at)
        slope = np.abs(_derivatives(loss, x @ w)[0]).max() * np.abs(x).max() * m
        result[f"error.minimum.{inputs}"] = float(np.abs(first).max() / slope)
        values = np.linalg.eigvalsh(second)
        if inputs == "bias":
            result["margin.minimum.bias"] = float(values[0] / np.abs(values).max())
        if inputs == "centred":  # γ and β fixed, as the paper's section 4.1 has them
            values = np.linalg.eigvalsh(second[:3, :3])
            result["error.minimum.fixed"] = float(np.abs(first[:3]).max() / slope)
            result["margin.minimum.fixed"] = float(values[0] / np.abs(values).max())
            # Lemma 4.5's ray: with that γ and β every multiple of W* is as good as W*.
            moved = _derivatives(whole, np.concatenate([w * 10 ** rng.uniform(-1, 1), at[3:]]))[0][:3]
            result["error.ray.fixed"] = float(np.abs(moved).max() / slope)
            # ... and with γ = 1, β = 0 it is no minimum, unless the loss is the plain squared error.
            other = _derivatives(whole, np.concatenate([w, [1.0, 0.0]]))[0][:3]
            result["margin.ray.standard"] = -float(np.abs(other).max() / slope)
    return result


def _lemma_45(rng: np.random.Generator, number: int) -> dict[str, float]:
    """Least squares, one unit, γ = 1, β = 0: both sets of minima are known."""
    result: dict[str, float] = {}
    m = (4, 8, 16)[number % 3]
    target = torch.tensor(rng.standard_normal(m))
    for inputs in ("any", "centred"):
        x = rng.standard_normal((m, 2)) + rng.standard_normal(2)
        x = x - x.mean(0) if inputs == "centred" else x
        minimum, ray = (f(x, target.numpy()) for f in (minima.least_squares, minima.normalized_direction))
        start = rng.standard_normal(2) * 10 ** rng.uniform(-1, 1)
        start = start if start @ minimum > 0 else -start
        value, bound = minima.distance_to_ray(start, ray), minima.lemma_45(start, minimum)
        whole = lambda w, x=x: (
            ((batch_norm(torch.tensor(x) @ w[:, None], np.ones(1), np.zeros(1))[:, 0] - target) ** 2).sum()
            / 2
        )
        first, second = _derivatives(whole, ray / math.sqrt(ray @ ray))
        at_plain = _derivatives(whole, minimum / math.sqrt(minimum @ minimum))[0]
        k = (minimum @ start) / (minimum @ minimum)
        size = float(start @ start + minimum @ minimum)
        result |= {
            f"margin.lemma_45.{inputs}": margin(value, bound, size),
            f"error.ray.{inputs}": float(np.abs(first).max() / m),
            f"margin.ray.{inputs}": float(np.linalg.eigvalsh(second)[0] / m),
            f"error.plain_minimum.{inputs}": float(np.abs(at_plain).max() / m),
            f"error.foot.{inputs}": error((start - k * minimum) @ (start - k * minimum), bound, size),
        }
    return result


def _loss_with_minimum(
    rng: np.random.Generator, x: np.ndarray, w: np.ndarray, concave: bool
) -> Callable[[Tensor], Tensor]:
    """<a, y - y*> + ½ (y - y*)ᵀ Q (y - y*), Xᵀa = 0, XᵀQX positive definite: W* is the one minimum."""
    m = len(x)
    reach = np.linalg.qr(x)[0]
    beyond = np.identity(m) - reach @ reach.T
    root = rng.standard_normal((m, m))
    inside = reach @ reach.T
    q = inside @ root @ root.T @ inside + (-1 if concave else 1) * beyond @ root.T @ root @ beyond
    a, q, y = (torch.tensor(v) for v in (beyond @ rng.standard_normal(m), q / m, x @ w))

    def loss(outputs: Tensor) -> Tensor:
        away = outputs - y
        return (a * away).sum() + away @ q @ away / 2

    return loss


def _network(x: np.ndarray, parameters: Tensor) -> Tensor:
    """γ BN(X w) + β from (w, γ, β), (m,)."""
    w, gamma, beta = parameters[:-2], parameters[-2], parameters[-1]
    y_hat = batch_norm((torch.tensor(x) @ w)[:, None], np.ones(1), np.zeros(1))[:, 0]
    return gamma * y_hat + beta


def _derivatives(function: Callable[[Tensor], Tensor], at: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Gradient and dense Hessian."""
    point = torch.tensor(at)
    return torch.func.grad(function)(point).numpy(), torch.func.hessian(function)(point).numpy()
