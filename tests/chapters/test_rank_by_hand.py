"""Soft rank, orthogonality gap and the random networks of their page's cells, against loops and closed forms."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import page_cells
import pytest

PAGE = "mean-field/rank"
CELLS = page_cells.functions(PAGE, correlation=0.7, chosen=(3, 4))
CELLS |= {name: page_cells.cell(PAGE, "NORMS = {", **CELLS)[name] for name in ("NORMS", "PHI")}
rank = SimpleNamespace(**CELLS)


def by_loops(values):
    """Soft rank and gap from the sums over all pairs."""
    m = len(values)
    products = [[sum(a * b for a, b in zip(x, y)) for y in values] for x in values]
    trace = sum(products[i][i] for i in range(m))
    squares = sum(one**2 for row in products for one in row)
    gap = sum((products[i][j] / trace - (i == j) / m) ** 2 for i in range(m) for j in range(m))
    return trace**2 / squares, gap**0.5


@pytest.mark.parametrize("norm", list(rank.NORMS))
@pytest.mark.parametrize("activation", list(rank.PHI))
def test_the_network_is_that_of_its_equation(norm, activation):
    m, units, layers = 5, 6, 4
    ranks, gaps = rank.through(norm, activation, m, units, layers)
    assert ranks.shape == (2, layers) and gaps**2 == pytest.approx(1 / ranks - 1 / m, abs=1e-12)
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
            wanted = by_loops(h.tolist())
            assert (ranks[row, layer], gaps[row, layer]) == pytest.approx(wanted, rel=1e-6)


def test_plateau_and_slope():
    assert rank.plateau(np.array([[9.0, 9, 1, 3]])) == pytest.approx([2])
    widths, rough = [16, 32, 128], np.array([1.0, 5.0, 2.0])
    values = np.array([3 * np.array(widths) ** 0.4, rough])
    assert rank.slope(widths, values) == pytest.approx([0.4, np.polyfit(np.log(widths), np.log(rough), 1)[0]])
