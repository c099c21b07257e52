"""The comparisons: probe against bare passes, training against a bare loop, noisy against batch norm, λ_max
against curvlinops, the report on a network against a step of its training."""

from __future__ import annotations

import copy
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F
from scipy.sparse.linalg import eigsh
from torch import Tensor, nn
from torchvision.models import resnet18

from benchmarks.timing import Ratio, compare
from bnbook import measure, models
from bnbook.data import Dataset, load
from bnbook.data.batches import Batches
from bnbook.normalizers import make_normalizer
from bnbook.probes import covariate_shift, landscape
from bnbook.probes.fisher import largest_eigenvalue
from bnbook.training.arm import Arm, build_model
from bnbook.training.engine import train
from bnbook.training.numerics import numerics, pick_device
from bnbook.training.probes import Probes

DATA = "textures-standin"  # images of CIFAR-10's shape: the pixels do not matter to the clock
LENGTHS = (0.05, 0.2, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 8.0, 16.0)
#: Dearer at narrow widths, where drawing numbers is more of a step; no bar was set for others.
NOISY_BARS = {0.25: 2.0, 1.0: 1.5}


@dataclass(frozen=True)
class Setting:
    """What all comparisons of a run share."""

    width: float | None = None  # share of VGG-A's channels; None: 0.25, in `noisy` each width with a bar
    batch: int = 128
    rounds: int = 9
    every: int = 100  # steps from one probed step to the next

    @property
    def one_width(self) -> float:
        return self.width or 0.25


def network(norm: object, width: float, batch: int) -> tuple[nn.Module, Tensor, Tensor]:
    """A VGG in training mode and a batch for it."""
    where = pick_device()
    torch.manual_seed(0)
    model = models.vgg(width=width, norm=norm).to(where, memory_format=torch.channels_last).train()
    images = torch.randn(batch, 3, 32, 32, device=where).to(memory_format=torch.channels_last)
    return model, images, torch.randint(0, 10, (batch,), device=where)


def passes(model: nn.Module, images: Tensor, targets: Tensor, count: int = 1) -> None:
    """`count` bare forward-and-backward passes."""
    parameters = list(model.parameters())
    for _ in range(count):
        torch.autograd.grad(F.cross_entropy(model(images), targets), parameters)


def probe(setting: Setting) -> Iterator[Ratio]:
    """Probes at A step sizes against A bare passes and the A + 1 that they make; a covariate shift."""
    sizes, rounds = len(LENGTHS), setting.rounds
    steps = [0.1 * length for length in LENGTHS]
    for norm in ("none", "batch", "noisy"):
        model, images, targets = network(norm, setting.one_width, setting.batch)
        batch = (images, targets)
        probes = {"gradient": landscape.along_gradient}
        if norm == "batch":
            probes["direction"] = landscape.along_direction
        for name, along in probes.items():
            found = compare(
                f"along {name}, {norm}: A = {sizes} sizes / A bare passes",
                lambda along=along: along(model, F.cross_entropy, batch, steps),
                lambda: passes(model, images, targets, sizes),
                rounds=rounds,
                bar=1.15,
            )
            yield found
            a_pass = sizes / (sizes + 1)
            yield found.rescaled(f"along {name}, {norm}: / A + 1 bare passes", lambda r: r * a_pass, 1.15)
        if norm == "batch":
            yield compare(
                "covariate shift, batch: 11 layers / 11 bare passes",
                lambda: covariate_shift.measure(model, F.cross_entropy, batch, 0.1),
                lambda: passes(model, images, targets, 11),
                rounds=rounds,
            )


def overhead(setting: Setting, steps: int = 20) -> Iterator[Ratio]:
    """The book's training against the same steps as anybody would write them: same model, batches and SGD."""
    dataset = load(DATA, device=pick_device())
    for norm in ("none", "batch"):
        arm = Arm(norm=norm, steps=steps, **_common(setting))
        yield compare(
            f"training, {norm}: {steps} steps / a bare loop",
            lambda: train(arm, 0, dataset),
            lambda: bare_loop(arm, dataset),
            rounds=setting.rounds,
            bar=1.03,
        )


def _common(setting: Setting) -> dict[str, object]:
    return {"data": DATA, "width": setting.one_width, "batch_size": setting.batch, "evaluate_every": 0}


def bare_loop(arm: Arm, dataset: Dataset) -> Tensor:
    """The same training without anything around it; the losses (T,)."""
    with numerics(dataset.device):
        torch.manual_seed(0)
        model = build_model(arm, dataset).to(dataset.device).train()
        batches = Batches(dataset, arm.batch_size, torch.Generator().manual_seed(1_000_003))
        optimizer = torch.optim.SGD(model.parameters(), lr=arm.learning_rate)
        losses = []
        for _ in range(arm.steps):
            inputs, targets = next(batches)
            optimizer.zero_grad()
            loss = F.cross_entropy(model(inputs.to(memory_format=torch.channels_last)), targets)
            loss.backward()
            optimizer.step()
            losses.append(loss.detach())
        return torch.stack(losses)


def probed(setting: Setting, longest: int = 20) -> Iterator[Ratio]:
    """A training with all instruments at every k-th step against the same training without them.

    Timed is a training of n = min(k, longest) steps with one of them probed, whose extra time counts n/k.
    Longer ones would take an hour at full width and say no more.
    """
    dataset, every = load(DATA, device=pick_device()), setting.every
    steps = max(2, min(every, longest))  # the moments after the update are taken at the next step
    plain = Arm(norm="batch", steps=steps, **_common(setting))
    instruments = Probes(
        probe_steps=(0,),
        landscape=LENGTHS,
        random_directions=(0.5, 2.0, 4.0),
        covariate_shift=True,
        placed_layers=(2, 5, 8),
    )
    arm = replace(plain, instruments=instruments)
    found = compare(
        "", lambda: train(arm, 0, dataset), lambda: train(plain, 0, dataset), rounds=setting.rounds
    )
    yield found.rescaled(
        f"training, batch, probed every {every} steps / plain", lambda r: 1 + (r - 1) * steps / every, 1.3
    )
    yield found.rescaled(f"extra time of a probed step / a step ({steps} timed)", lambda r: (r - 1) * steps)


def noisy(setting: Setting) -> Iterator[Ratio]:
    """A step with noisy batch norm against one with batch norm, every number drawn anew; the obvious code."""
    for width in NOISY_BARS if setting.width is None else (setting.width,):
        plain = network("batch", width, setting.batch)
        for name, norm in (("", "noisy"), (", the obvious code", ObviousNoisyBatchNorm)):
            model = network(norm, width, setting.batch)
            yield compare(
                f"step, noisy{name} / batch, width {width:g}",
                lambda: passes(*model),
                lambda: passes(*plain),
                rounds=setting.rounds,
                bar=None if name else NOISY_BARS.get(width),
            )


class ObviousNoisyBatchNorm(nn.Module):
    """Algorithm 1 of Santurkar et al. 2018 as one would type it, to compare with."""

    def __init__(self, features: int, dim: int) -> None:
        super().__init__()
        self.norm = make_normalizer("batch", features, dim)

    def forward(self, x: Tensor) -> Tensor:
        y = self.norm(x)
        shape = (1, -1) + (1,) * (y.dim() - 2)
        mu = torch.empty(y.shape[1], device=y.device).uniform_(-0.5, 0.5).view(shape)
        sigma = torch.empty(y.shape[1], device=y.device).uniform_(1.0, 1.25).view(shape)
        m = mu - 0.1 + 0.2 * torch.rand(y.shape, device=y.device)
        s = sigma + 0.1 * torch.randn(y.shape, device=y.device)
        return s * y + m


def fisher(
    setting: Setting, widths: tuple[int, ...] = (784, 1000, 1000, 1000, 10), examples: int = 500
) -> Iterator[Ratio]:
    """λ_max of the mean-field paper's network against curvlinops' matrix and SciPy's Lanczos, to the same
    tolerance."""
    try:
        from curvlinops import GGNLinearOperator
    except ImportError:
        print(
            "fisher: left out, it compares with curvlinops; pip install curvlinops-for-pytorch",
            file=sys.stderr,
        )
        return
    tolerance, where = 1e-3, pick_device()  # of the residual, relative to the eigenvalue
    for norm in ("none", "batch"):
        torch.manual_seed(0)
        # curvlinops cannot have buffers that change in a forward pass
        factory = (
            (lambda units, dim: nn.BatchNorm1d(units, track_running_stats=False)) if norm == "batch" else norm
        )
        model = (
            models.mlp(widths, norm=factory, init="meanfield", sigma_w2=2.0, sigma_b2=0.5).to(where).train()
        )
        inputs, zeros = torch.randn(examples, widths[0], device=where), torch.zeros(examples, 1, device=where)
        weights = [p for p in model.parameters() if p.ndim >= 2]

        def theirs(
            model: nn.Module = model, inputs: Tensor = inputs, zeros: Tensor = zeros, weights: list = weights
        ) -> float:
            # the squared error of one output has the curvature 2 J^T J if summed
            loss = nn.MSELoss(reduction="sum")
            matrix = GGNLinearOperator(
                _FirstOutput(model), loss, weights, [(inputs, zeros)], check_deterministic=False
            )
            return eigsh(matrix.to_scipy(), k=1, tol=tolerance, return_eigenvectors=False)[0] / (2 * examples)

        def ours(model: nn.Module = model, inputs: Tensor = inputs) -> float:
            return float(largest_eigenvalue(model, inputs, outputs=0, tolerance=tolerance))

        if abs(theirs() / ours() - 1) > 0.01:
            raise AssertionError(f"two eigenvalues of one matrix: {theirs()} and {ours()}")
        yield compare(
            f"largest eigenvalue, {norm}, {examples} examples / curvlinops",
            ours,
            theirs,
            rounds=min(3, setting.rounds),
            bar=1.0,
        )


def report(setting: Setting, size: int = 64, batch: int = 32) -> Iterator[Ratio]:
    """`bnbook.measure` of torchvision's ResNet-18 at its first weights, in plain steps of SGD on the same batch."""
    torch.manual_seed(0)
    model = resnet18(num_classes=10).to(pick_device()).train()
    images, targets = torch.randn(batch, 3, size, size), torch.randint(0, 10, (batch,))
    images, targets = images.to(pick_device()), targets.to(pick_device())
    other = copy.deepcopy(model)
    optimizer = torch.optim.SGD(other.parameters(), lr=0.1)

    def step() -> None:
        optimizer.zero_grad()
        F.cross_entropy(other(images), targets).backward()
        optimizer.step()

    yield compare(
        f"bnbook measure, ResNet-18, {batch} images of {size} × {size} / a step",
        lambda: measure(model, F.cross_entropy, (images, targets), progress=False),
        step,
        rounds=min(3, setting.rounds),
        bar=90.0,
    )


class _FirstOutput(nn.Module):
    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, inputs: Tensor) -> Tensor:
        return self.network(inputs)[:, :1]


CASES = {
    "probe": probe,
    "overhead": overhead,
    "probed": probed,
    "noisy": noisy,
    "fisher": fisher,
    "report": report,
}
