"""Soft rank, orthogonality gap and the random networks of their page's cells, against loops and closed forms."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import page_cells
import pytest
import torch

from bnbook.normalizers import make_normalizer

PAGE = "mean-field/rank"
CELLS = page_cells.functions(PAGE, correlation=0.7, chosen=(3, 4))
CELLS |= {name: page_cells.cell(PAGE, "NORMS = {", **CELLS)[name] for name in ("NORMS", "PHI")}
rank = SimpleNamespace(**CELLS)


def by_loops(values: np.ndarray) -> tuple[float, float]:
    """Soft rank and gap from the sums over all pairs."""
    m = len(values)
    products = [[sum(a * b for a, b in zip(x, y)) for y in values] for x in values]
    trace = sum(products[i][i] for i in range(m))
    squares = sum(one**2 for row in products for one in row)
    gap = sum((products[i][j] / trace - (i == j) / m) ** 2 for i in range(m) for j in range(m))
    return trace**2 / squares, gap**0.5


@pytest.mark.parametrize("m, units, seed", [(2, 1, 0), (2, 7, 1), (3, 2, 2), (4, 4, 3), (5, 7, 4), (6, 3, 5)])
def test_both_measures_are_those_of_the_loops_and_one_number(m: int, units: int, seed: int) -> None:
    values = np.random.default_rng(seed).standard_normal((m, units))
    r, gap = by_loops(values.tolist())
    assert rank.soft_rank(values) == pytest.approx(r, rel=1e-12)
    assert rank.orthogonality_gap(values) == pytest.approx(gap, rel=1e-9, abs=1e-9)
    assert gap**2 == pytest.approx(1 / r - 1 / m, abs=1e-12)
    assert 1 - 1e-12 <= r <= min(m, units) + 1e-9


def test_a_stack_of_values_has_a_rank_each():
    stack = np.stack([np.outer([1.0, -2.0, 3.0], [1.0, 1.0]), np.eye(3, 2) * 5])
    assert rank.soft_rank(stack) == pytest.approx([1, 2])


@pytest.mark.parametrize("name", ["batch", "layer"])
def test_norms_are_those_of_the_package_but_for_eps(name: str) -> None:
    values = np.random.default_rng(1).standard_normal((2, 9, 6)) * 3 + 1
    layer = make_normalizer(name, 6).double()
    layer.eps = 1e-30
    with torch.no_grad():
        expected = [layer(torch.as_tensor(each)).numpy() for each in values]
    assert np.stack([rank.NORMS[name](each) for each in values]) == pytest.approx(
        np.stack(expected), rel=1e-9, abs=1e-9
    )


def test_a_division_leaves_the_mean_and_no_norm_leaves_both_measures():
    values = np.random.default_rng(2).standard_normal((7, 4)) + 2
    divided = rank.NORMS["division"](values)
    for unit in range(4):
        assert divided[:, unit] * np.sqrt((values[:, unit] ** 2).mean()) == pytest.approx(values[:, unit])
    assert rank.soft_rank(rank.NORMS["none"](values)) == pytest.approx(rank.soft_rank(values))


@pytest.mark.parametrize("norm", list(rank.NORMS))
@pytest.mark.parametrize("activation", list(rank.PHI))
def test_the_network_is_that_of_its_equation(norm: str, activation: str) -> None:
    m, units, layers = 5, 6, 4
    ranks, gaps = rank.through(norm, activation, m, units, layers)
    assert ranks.shape == gaps.shape == (2, layers)
    for row, seed in enumerate((3, 4)):
        rng = np.random.default_rng([seed, units])
        shared, own = rng.standard_normal((1, units)), rng.standard_normal((m, units))
        h = 0.7**0.5 * shared + 0.3**0.5 * own
        for layer in range(layers):
            bent = np.where(h > 0, h, 0) if activation == "relu" and layer else h
            z = bent @ rng.standard_normal((units, units))
            mean = {"batch": z.mean(0), "layer": z.mean(1)[:, None]}.get(norm, 0)
            size = {"batch": z.std(0), "layer": z.std(1)[:, None], "division": np.sqrt((z**2).mean(0))}
            h = (z - mean) / size.get(norm, 1)
            assert ranks[row, layer] == pytest.approx(by_loops(h.tolist())[0], rel=1e-8)
            assert gaps[row, layer] == pytest.approx(by_loops(h.tolist())[1], rel=1e-6)


def test_plateau_and_slope():
    assert rank.plateau(np.array([[9.0, 9, 1, 3]])) == pytest.approx([2])
    widths = [16, 32, 128]
    values = np.array([3 * np.array(widths) ** 0.4, 7 * np.array(widths) ** -0.5])
    assert rank.slope(widths, values) == pytest.approx([0.4, -0.5])
    rough = np.array([1.0, 5.0, 2.0])
    expected = np.polyfit(np.log(widths), np.log(rough), 1)[0]
    assert rank.slope(widths, rough) == pytest.approx(expected)
