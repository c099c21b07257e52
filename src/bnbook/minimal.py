"""The book in sixty lines: networks that differ by batch norm alone, a training, a look at the loss, a verdict.

`python -m bnbook.minimal` runs it in seconds. Beside each part stands what the package has in its place, with more
cases and checks; a test holds the two to the same numbers.
"""

import copy

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from bnbook.data import load, normalise

WIDTHS, RATE, STEPS, BATCH, SEEDS = (64, 64, 64, 64, 64, 64, 10), 0.1, 60, 64, range(8)
STUDENT = 2.3646  # half of a 95 % interval, in standard errors, for eight seeds


class BatchNorm(nn.Module):  # bnbook.normalizers.batch
    def __init__(self, units: int) -> None:
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.ones(units)), nn.Parameter(torch.zeros(units))

    def forward(self, z: Tensor) -> Tensor:  # (B, units); mean and variance of each unit over the batch
        mean, variance = z.mean(dim=0), z.var(dim=0, correction=0)
        return self.weight * (z - mean) / (variance + 1e-5).sqrt() + self.bias


def network(norm: type[nn.Module]) -> nn.Sequential:  # bnbook.models.mlp
    layers: list[nn.Module] = [nn.Flatten()]
    for inputs, outputs in zip(WIDTHS, WIDTHS[1:]):
        layers += [nn.Linear(inputs, outputs), norm(outputs), nn.ReLU()]
        nn.init.kaiming_normal_(layers[-3].weight), nn.init.zeros_(layers[-3].bias)  # He et al. 2015
    return nn.Sequential(*layers[:-2])  # nothing behind the last layer


def gradient(model: nn.Module, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """L(θ) and ∇L(θ), all parameters in one row."""
    loss = cross_entropy(model(x), y)
    return loss.detach(), nn.utils.parameters_to_vector(torch.autograd.grad(loss, list(model.parameters())))


def step(model: nn.Module, direction: Tensor, length: float) -> None:
    """θ - length · direction."""
    moved = nn.utils.parameters_to_vector(model.parameters()).detach() - length * direction
    nn.utils.vector_to_parameters(moved, model.parameters())


def slope(model: nn.Module, x: Tensor, y: Tensor, length: float) -> Tensor:  # bnbook.probes.landscape
    """‖∇L(θ) - ∇L(θ')‖ / ‖θ - θ'‖ at θ' = θ - length · ∇L(θ): how fast the gradient changes along a step."""
    _, before = gradient(model, x, y)
    twin = copy.deepcopy(model)  # the network itself stays as it is
    step(twin, before, length)
    return (before - gradient(twin, x, y)[1]).norm() / (length * before.norm())


def train(norm: type[nn.Module], images: Tensor, labels: Tensor, seed: int) -> Tensor:  # bnbook.training
    """Two outcomes: the loss, mean over the last ten steps, and log₁₀ of the slope, over a look at each tenth step."""
    torch.manual_seed(seed)
    model, losses, looks = network(norm), [], []
    for t in range(STEPS):
        chosen = torch.randint(len(images), (BATCH,))
        if t % 10 == 0:
            looks.append(slope(model, images[chosen], labels[chosen], RATE / 10).log10())
        loss, direction = gradient(model, images[chosen], labels[chosen])
        step(model, direction, RATE)
        losses.append(loss)
    return torch.stack([torch.stack(losses[-10:]).mean(), torch.stack(looks).mean()])


def verdict(differences: Tensor) -> tuple[str, float, float]:  # bnbook.claims.judge
    """Whether the mean of one difference a seed is below zero, by Student's 95 % interval, and that interval."""
    mean, half = differences.mean(), STUDENT * differences.std() / len(differences) ** 0.5
    return "yes" if mean + half < 0 else "no" if mean - half > 0 else "open", mean - half, mean + half


if __name__ == "__main__":
    digits = load("digits-standin")
    data = normalise(digits.train_images, digits), digits.train_labels
    with_it, without = (torch.stack([train(n, *data, s) for s in SEEDS]) for n in (BatchNorm, nn.Identity))
    for question, differences in zip(("Is the loss lower", "Is the slope lower"), (with_it - without).T):
        print("{} with batch norm? {}: {:.2f} to {:.2f}".format(question, *verdict(differences)))
