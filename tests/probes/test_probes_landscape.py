"""The landscape probe against closed forms and against a loop that copies the model, and that it leaves no
trace."""

from __future__ import annotations

import copy

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from bnbook import models
from bnbook.probes.landscape import Landscape, along_direction, along_gradient

STEPS = [0.05, 0.4, 3.0]


class Quadratic(nn.Module):
    """Outputs the value 1/2 θᵀHθ + bᵀθ itself; its loss is the output."""

    def __init__(self, n: int = 6) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(0)
        half = torch.randn(n, n, dtype=torch.float64, generator=generator)
        self.hessian = half + half.T
        self.slope = torch.randn(n, dtype=torch.float64, generator=generator)
        self.theta = nn.Parameter(torch.randn(n, dtype=torch.float64, generator=generator))

    def forward(self, _inputs):
        return self.theta @ self.hessian @ self.theta / 2 + self.slope @ self.theta


BATCH_OF_NOTHING = torch.zeros(1), torch.zeros(1)


def value(outputs, _targets):
    return outputs


def test_on_a_quadratic_the_smoothness_is_that_of_the_hessian_at_every_distance():
    model = Quadratic()
    gradient = (model.hessian @ model.theta + model.slope).detach()
    seen = along_gradient(model, value, BATCH_OF_NOTHING, STEPS)
    expected = (model.hessian @ gradient).norm() / gradient.norm()
    assert torch.allclose(seen.smoothness, expected.expand(3), rtol=1e-8, atol=0)
    assert torch.allclose(seen.effective_smoothness, expected, rtol=1e-8, atol=0)
    steps = torch.tensor(STEPS, dtype=torch.float64)
    drop = gradient @ gradient * steps - steps**2 / 2 * (gradient @ model.hessian @ gradient)
    assert torch.allclose(seen.loss, seen.start_loss - drop, rtol=1e-10)
    u = torch.arange(1.0, 7.0, dtype=torch.float64)
    aside = along_direction(model, value, BATCH_OF_NOTHING, STEPS, [u])
    assert torch.allclose(
        aside.smoothness, ((model.hessian @ u).norm() / u.norm()).expand(3), rtol=1e-8, atol=0
    )


def small(norm, kind="mlp"):
    torch.manual_seed(1)
    model = models.mlp((12, 8, 8, 5), norm=norm) if kind == "mlp" else models.vgg(width=0.0625, norm=norm)
    inputs = torch.randn(10, 12) if kind == "mlp" else torch.randn(10, 3, 32, 32)
    return model.double().train(), (inputs.double(), torch.arange(10) % 5)


def brute(model, batch, direction, steps):
    """The panel along a direction, θ's gradient by default: the model copied for every a, the noise drawn from one
    random state; and the cosines of the gradients."""
    state, found = torch.get_rng_state(), []
    for a in [0.0, *steps]:
        other = copy.deepcopy(model)
        with torch.no_grad():
            for p, u in zip(other.parameters(), direction or [0.0] * 99):
                p -= a * u
        torch.set_rng_state(state)
        loss = F.cross_entropy(other(batch[0]), batch[1])
        gradient = torch.autograd.grad(loss, other.parameters())
        direction = direction or gradient
        found.append((loss.detach(), torch.cat([part.flatten() for part in gradient])))
    torch.set_rng_state(state)
    (start, g), *rest = found
    lengths = torch.tensor(steps, dtype=torch.float64)
    distance = torch.stack([(g - h).norm() for _, h in rest])
    cosine = torch.stack([g @ h / (g.norm() * h.norm()) for _, h in rest])
    losses, norms = (torch.stack(column) for column in zip(*((loss, h.norm()) for loss, h in rest)))
    slopes = distance / (lengths * g.norm())
    return Landscape(lengths, losses, distance, slopes, norms, start, g.norm()), cosine


def assert_same(seen, wanted):
    for name in Landscape.__dataclass_fields__:
        assert torch.allclose(getattr(seen, name), getattr(wanted, name), rtol=1e-9, atol=1e-12), name


@pytest.mark.parametrize("norm", ["none", "batch", "noisy", "noise", "l1", "linf", "layer"])
@pytest.mark.parametrize("training", [True, False])
def test_it_equals_a_loop_that_copies_the_model(norm, training):
    model, batch = small(norm)
    model(batch[0])  # running statistics other than the initial ones
    model.train(training)
    wanted, cosine = brute(model, batch, None, STEPS)
    seen = along_gradient(model, F.cross_entropy, batch, STEPS)
    assert_same(seen, wanted)
    assert torch.allclose(seen.cosine, cosine, rtol=1e-6, atol=1e-8)


def test_the_convolutional_network_and_a_random_direction_equal_the_loop():
    model, batch = small("batch", "vgg")
    generator = torch.Generator().manual_seed(5)
    u = [torch.randn(p.shape, generator=generator).double() for p in model.parameters()]
    seen = along_direction(model, F.cross_entropy, batch, STEPS, generator=torch.Generator().manual_seed(5))
    scale = seen.start_norm / torch.cat([part.flatten() for part in u]).norm()
    assert_same(seen, brute(model, batch, [part * scale for part in u], STEPS)[0])
    seeded = along_direction(model, F.cross_entropy, batch, [1.0], generator=torch.Generator().manual_seed(0))
    assert torch.equal(along_direction(model, F.cross_entropy, batch, [1.0]).loss, seeded.loss)


def snapshot(model):
    """All of a network that a probe could move."""
    found = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    found |= {f"{name}.grad": p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}
    found["modes"] = torch.tensor([module.training for module in model.modules()])
    found["trained"] = torch.tensor([p.requires_grad for p in model.parameters()])
    return found | {"random": torch.get_rng_state()}


def assert_untouched(before, model):
    after = snapshot(model)
    assert before.keys() == after.keys()
    assert [name for name, tensor in before.items() if not torch.equal(tensor, after[name])] == []


def test_what_is_not_finite_makes_the_smoothness_infinite():
    model, batch = small("none")
    seen = along_gradient(model, lambda y, t: F.cross_entropy(y, t) * 1e150, batch, [1e-160, 1e150])
    assert torch.isfinite(seen.smoothness[0]) and seen.effective_smoothness == torch.inf
