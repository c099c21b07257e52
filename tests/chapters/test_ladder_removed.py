"""The share of the gradient at fully connected layers, against its definition, unit by unit."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from made_up_runs import SEEDS, middle, run
from page_cells import functions

from bnbook.models import vgg
from bnbook.models.vgg import HIDDEN
from bnbook.probes import removed_gradient

at_fully_connected, FC = functions("santurkar/scale")["removed"], slice(-len(HIDDEN), None)


def test_two_last_places_each_step_alike():
    made = run()
    made |= {name: values[..., [0, 1, 2, 2, 1]] for name, values in made.items() if "removed" in name}
    found = at_fully_connected(made, FC)
    for seed in range(SEEDS):
        one, values, part = (
            middle([sum(row[3:]) / 2 for row in made[f"removed_along_{name}"][seed]], 0, 400, mean=True)
            for name in ("one", "values", "one_part")
        )
        expected = one, values, np.log(16 * one / part) / np.log(4)
        assert [each[seed] for each in found] == pytest.approx(expected)


@pytest.fixture(scope="module")
def plain():
    torch.manual_seed(3)
    return vgg(width=1 / 16), (torch.randn(24, 3, 32, 32), torch.arange(24) % 10)


def by_unit(model, batch):
    """<1, g>²/m and <ŷ, g>²/m over ‖g‖², unit by unit, at the two fully connected layers: (layer, 2)."""
    shares = []
    for name in ("linear9", "linear10"):
        kept = {}
        hook = model.get_submodule(name).register_forward_hook(lambda _m, _g, made: kept.update(y=made))
        loss = F.cross_entropy(model(batch[0]), batch[1])
        hook.remove()
        (gradient,) = torch.autograd.grad(loss, kept["y"])
        ones = values = size = 0.0
        for y, g in zip(kept["y"].detach().T.double(), gradient.T.double()):
            m = len(y)
            normalized = (y - sum(y) / m) / max(float(((y - sum(y) / m) ** 2).sum() / m) ** 0.5, 1e-300)
            ones += float(sum(g)) ** 2 / m
            values += float(sum(normalized * g)) ** 2 / m
            size += float(sum(g * g))
        shares.append((ones / size, values / size))
    return np.array(shares)


def test_it_is_what_the_theorem_subtracts_at_the_plain_networks_fully_connected_layers(plain):
    model, batch = plain
    shares = removed_gradient.measure(model, F.cross_entropy, batch)
    parts = [
        removed_gradient.measure(model, F.cross_entropy, [each[k : k + 6] for each in batch])
        for k in (0, 6, 12, 18)
    ]
    made = {
        "probe_step": np.array([[0, 7, 9]]),
        "removed_along_one": np.tile(shares.along_one.numpy(), (1, 3, 1)),
        "removed_along_values": np.tile(shares.along_values.numpy(), (1, 3, 1)),
        "removed_along_one_part": np.tile(np.mean([p.along_one.numpy() for p in parts], 0), (1, 3, 1)),
    }
    found = at_fully_connected(made, FC)
    one, values = by_unit(model, batch).mean(0)
    quarters = np.mean([by_unit(model, [each[k : k + 6] for each in batch])[:, 0] for k in (0, 6, 12, 18)])
    exponent = np.log((24 * one) / (6 * quarters)) / np.log(4) + 1  # Σ <1, g>² = share · m · Σ ‖g‖²
    assert found == pytest.approx((one, values, exponent), rel=1e-5)


def test_a_direction_at_random_has_one_part_in_m():
    """Chance is 1: gradients without any relation to ones or values."""
    m, units, draws = 32, 8, 400
    draw = np.random.default_rng(0)
    g, y = draw.normal(size=(2, draws, units, m))
    y -= y.mean(-1, keepdims=True)
    size = (g**2).sum((1, 2))
    one = (g.sum(-1) ** 2 / m).sum(1) / size
    values = ((y * g).sum(-1) ** 2 / (y**2).sum(-1)).sum(1) / size
    shares = {"one": one, "values": values, "one_part": 4 * one}
    made = {f"removed_along_{name}": np.stack([each, each], -1)[None] for name, each in shares.items()}
    found = at_fully_connected(made | {"probe_step": np.arange(draws)[None]}, FC)
    assert found[0] == pytest.approx(1 / m, rel=0.05) and found[1] == pytest.approx(1 / m, rel=0.05)
    assert found[2] == pytest.approx(1)
