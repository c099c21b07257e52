"""Why does a residual network want it? How such networks start, train and how far a gradient holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import matplotlib.pyplot as plt
import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from bnbook.chapters.shared import Rows, pooled
from bnbook.data import load
from bnbook.figures import LABELS, parameters_of, points_of
from bnbook.plots.panels import Panel, compare
from bnbook.training.numerics import numerics
from bookpress.results import Results

# ---- Many small dense residual networks at once: what normalizes their branches, and how these are added --

#: Parts of a network with the members first in each block, (L, M, ...), or first of all, (M, ...).
Network = dict[str, Tensor]
EPS = 1e-5  # torch's own
#: What stands behind each layer of a branch and in front of the readout: nothing; γ (z - μ) / sqrt(σ² + ε) + β
#: over the batch; the same with μ and σ² held constant in the backward pass; z - μ + β.
NORMS = ("none", "batch", "constant", "centre")


@dataclass(frozen=True)
class Arm:
    """How the blocks of a member are put together: x ← (k x + α f(x)) / s."""

    norm: str = "none"  # one of `NORMS`
    alpha: float = 1.0  # α at the start
    learned: bool = False  # whether α is trained
    gamma: float = 1.0  # γ of each branch's last batch norm at the start
    divisor: float = 1.0  # s
    skip: bool = True  # k = 1; else 0, a plain network


def draw(
    arms: Sequence[Arm],
    inputs: int,
    width: int,
    blocks: int,
    seed: int,
    classes: int = 10,
    dtype: torch.dtype = torch.float32,
) -> Network:
    """One network, a member for each arm: He's weights, the same for all, zero biases.

    stem (M, N, inputs) from N(0, 1 / inputs); inner (L, M, N, N) from N(0, 1 / N), outer (L, M, N, N) from
    N(0, 2 / N), behind a rectifier; readout (M, classes, N) from N(0, 1 / N). γ and β of both layers
    (L, M, N), of the norm in front of the readout (M, N); β is the bias where there is no norm. alpha (L, M).
    """
    generator = torch.Generator().manual_seed(seed)

    def normal(*shape: int, variance: float) -> Tensor:
        return torch.randn(*shape, generator=generator, dtype=torch.float64) * variance**0.5

    members = len(arms)
    one = {
        "stem": normal(width, inputs, variance=1 / inputs),
        "inner": normal(blocks, width, width, variance=1 / width),
        "outer": normal(blocks, width, width, variance=2 / width),
        "readout": normal(classes, width, variance=1 / width),
    }
    network = {
        name: part.unsqueeze(-3).repeat(*[1] * (part.ndim - 2), members, 1, 1) for name, part in one.items()
    }
    ones = torch.ones(blocks, members, width, dtype=torch.float64)
    last = torch.tensor([arm.gamma for arm in arms], dtype=torch.float64).view(1, -1, 1)
    network |= {"inner_gamma": ones, "outer_gamma": ones * last, "final_gamma": ones[0]}
    network |= {"inner_beta": 0 * ones, "outer_beta": 0 * ones, "final_beta": 0 * ones[0]}
    network["alpha"] = torch.tensor([arm.alpha for arm in arms], dtype=torch.float64).repeat(blocks, 1)
    return {name: part.to(dtype).contiguous().clone() for name, part in network.items()}


def cut(network: Network) -> Network:
    """Without its branches, x_L = x₀: stem, the norm in front of the readout, and readout."""
    first = ("stem", "readout", "final_gamma", "final_beta")
    return {name: part if name in first else part[:0] for name, part in network.items()}


def trained(network: Network, arms: Sequence[Arm]) -> list[str]:
    """Names of the parts that are trained; all arms have the same norm."""
    parts = ["stem", "readout"] + ["final_beta"] * (arms[0].norm != "none")
    scaled = arms[0].norm in ("batch", "constant")
    parts += ["final_gamma"] * scaled
    if len(network["inner"]):
        parts += ["inner", "outer", "inner_beta", "outer_beta"] + ["inner_gamma", "outer_gamma"] * scaled
        parts += ["alpha"] * any(arm.learned for arm in arms)
    return parts


class Statistics(list):
    """Means and variances (divisor B - 1, as for inference) by norm, in the order in which a pass meets them."""


def normalized(
    z: Tensor,
    gamma: Tensor,
    beta: Tensor,
    keep: Statistics | None,
    given: Statistics | None,
    place: int,
    norm: str = "batch",
) -> Tensor:
    """The norm of z (M, N, B), each unit of each member over its batch; `keep` takes the batch's statistics,
    `given` stands in for them."""
    flat = z.reshape(1, -1, z.shape[2])
    one, zero = gamma.flatten(), beta.flatten()
    if norm == "batch" and given is None:
        running = [torch.zeros_like(one) for _ in range(2)] if keep is not None else [None, None]
        found = F.batch_norm(flat, *running, one, zero, True, 1.0, EPS)
        if keep is not None:
            keep.append(tuple(running))
        return found.view_as(z)
    with torch.set_grad_enabled(torch.is_grad_enabled() and norm == "centre"):
        var, mean = torch.var_mean(flat, dim=(0, 2), correction=0)
    if keep is not None:
        keep.append((mean.detach(), var.detach() * z.shape[2] / (z.shape[2] - 1)))
    if given is not None:
        mean, var = given[place]
    if norm == "centre":
        return z + (zero - mean).view(*z.shape[:2], 1)
    return F.batch_norm(flat, mean, var, one, zero, eps=EPS).view_as(z)


def answers(
    network: Network,
    arms: Sequence[Arm],
    inputs: Tensor,
    keep: Statistics | None = None,
    given: Statistics | None = None,
    watch: list[Tensor] | None = None,
) -> Tensor:
    """(B, values) -> (M, classes, B): x₀ = A u, x_ℓ = (k x_{ℓ-1} + α f_ℓ(x_{ℓ-1})) / s, readout of x_L.

    f(x) = norm(W₂ relu(norm(W₁ x))), and the norm in front of the readout, too; without norm
    f(x) = W₂ relu(W₁ x + b₁) + b₂. `watch` takes of each block the mean squares over units and examples
    of x_ℓ and of its branch α f_ℓ / s, (2, M). Source: the blocks of He et al., "Deep residual learning", without the rectifier
    behind the sum, so that the last γ can silence a branch.
    """
    norm = arms[0].norm
    keeps = inputs.new_tensor([float(arm.skip) for arm in arms]).view(-1, 1, 1)
    shares = inputs.new_tensor([1 / arm.divisor for arm in arms]).view(-1, 1, 1)
    x = (network["stem"].flatten(0, 1) @ inputs.T).view(len(arms), -1, len(inputs))
    names = ("inner", "outer", "inner_gamma", "inner_beta", "outer_gamma", "outer_beta", "alpha")
    if watch is not None:
        watch.append(torch.stack([x.square().mean((1, 2)), x.square().mean((1, 2))]))
    for place, parts in enumerate(zip(*(network[name].unbind(0) for name in names))):
        inner, outer, gamma1, beta1, gamma2, beta2, alpha = parts
        if norm != "none":
            z = normalized(torch.bmm(inner, x), gamma1, beta1, keep, given, 2 * place, norm)
            f = normalized(torch.bmm(outer, F.relu(z)), gamma2, beta2, keep, given, 2 * place + 1, norm)
        else:
            z = torch.baddbmm(beta1.unsqueeze(2), inner, x)
            f = torch.baddbmm(beta2.unsqueeze(2), outer, F.relu(z))
        f = f * (alpha.view(-1, 1, 1) * shares)
        x = torch.addcmul(f, x, keeps * shares)
        if watch is not None:
            watch.append(torch.stack([x.square().mean((1, 2)), f.square().mean((1, 2))]))
    if norm != "none":
        last = 2 * len(network["inner"])
        x = normalized(x, network["final_gamma"], network["final_beta"], keep, given, last, norm)
    return torch.bmm(network["readout"], x)


def first_order(network: Network, inputs: Tensor, watch: list[Tensor]) -> None:
    """The start of the other order of a branch, f(x) = W₂ relu(norm(W₁ relu(norm(x)))), watched as by `answers`.

    The inner weights stand behind a rectifier here, too, and are drawn with variance 2 / N. Source: He et
    al. 2016; De and Smith 2020.
    """
    x = (network["stem"].flatten(0, 1) @ inputs.T).view(len(network["stem"]), -1, len(inputs))
    one = torch.ones_like(network["final_gamma"])
    watch.append(torch.stack([x.square().mean((1, 2)), x.square().mean((1, 2))]))
    for inner, outer in zip(network["inner"] * 2**0.5, network["outer"]):
        z = torch.bmm(inner, F.relu(normalized(x, one, 0 * one, None, None, 0)))
        f = torch.bmm(outer, F.relu(normalized(z, one, 0 * one, None, None, 0)))
        x = x + f
        watch.append(torch.stack([x.square().mean((1, 2)), f.square().mean((1, 2))]))


def losses(found: Tensor, labels: Tensor) -> Tensor:
    """Mean cross-entropy of each member, (M,), of its answers (M, classes, B)."""
    return F.cross_entropy(found, labels.expand(len(found), -1), reduction="none").mean(1)


@dataclass(frozen=True)
class Images:
    """Rows of inputs (m, values), standardised, and labels (m,)."""

    inputs: Tensor
    labels: Tensor
    test_inputs: Tensor
    test_labels: Tensor


@lru_cache(maxsize=1)  # a seed asks for the same again for each of its trainings
def standardised(data: str, pool: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """All training images as rows (m, values) with their labels, and the test images: means over pool × pool
    pixels, each value less its mean, over its standard deviation, of the training images."""
    dataset = load(data)
    (rows, labels), (tests, test_labels) = (pooled(dataset, split, pool) for split in ("train", "test"))
    mean, std = rows.mean(0), rows.std(0)
    return (rows - mean) / std, labels, (tests - mean) / std, test_labels


def images(data: str, pool: int, examples: int, seed: int, dtype: torch.dtype = torch.float32) -> Images:
    """So many training images, those of a seed, and all test images."""
    rows, labels, tests, test_labels = standardised(data, pool)
    generator = torch.Generator().manual_seed(2_000_003 + seed)
    chosen = torch.randperm(len(rows), generator=generator)[:examples]
    return Images(rows[chosen].to(dtype), labels[chosen], tests.to(dtype), test_labels)


def with_negatives(data: Images) -> Images:
    """Behind each image u, with the same label, its negative -u: all values mirrored at their means.

    A network without blocks and norm is odd, z(-u) = -z(u), and (ℓ(z) + ℓ(-z)) / 2 ≥ ℓ(0) = log K for a convex
    loss ℓ and K classes. With a norm it is b + z(u) by fixed statistics, and no better than a constant answer.
    """
    parts = []
    for inputs, labels in ((data.inputs, data.labels), (data.test_inputs, data.test_labels)):
        parts += [torch.stack([inputs, -inputs], 1).flatten(0, 1), labels.repeat_interleave(2)]
    return Images(*parts)


# ---- Stochastic gradient descent on many residual networks at once, each at a rate of its own, and what ----
# is read of them

SEEN = 2_000  # training images by which a network is judged, and whose statistics a test uses
FAR = 16.0  # learning rates along the gradient


def gradients(
    network: Network, arms: Sequence[Arm], inputs: Tensor, labels: Tensor
) -> tuple[Tensor, dict[str, Tensor]]:
    """The members' losses (M,) and the gradient of each by its own trained parts; α only where it is learned."""
    leaves = {name: network[name].detach().requires_grad_() for name in trained(network, arms)}
    found = losses(answers(network | leaves, arms, inputs), labels)
    parts = dict(zip(leaves, torch.autograd.grad(found.sum(), list(leaves.values()))))
    if "alpha" in parts:
        parts["alpha"] = parts["alpha"] * parts["alpha"].new_tensor([float(arm.learned) for arm in arms])
    return found.detach(), parts


def by_member(name: str, values: Tensor, part: Tensor) -> Tensor:
    """values (M,) in the shape that multiplies a part of that name."""
    first = name in ("stem", "readout", "final_gamma", "final_beta")
    return values.view(-1, *[1] * (part.ndim - 1)) if first else values.view(1, -1, *[1] * (part.ndim - 2))


def lengths(parts: dict[str, Tensor]) -> Tensor:
    """The length of each member's gradient, all parts together, (M,)."""
    squares = [
        part.square().flatten(1).sum(1)
        if name in ("stem", "readout", "final_gamma", "final_beta")
        else part.square().transpose(0, 1).flatten(1).sum(1)
        for name, part in parts.items()
    ]
    return torch.stack(squares).sum(0).sqrt()


def moved(network: Network, parts: dict[str, Tensor], distance: Tensor) -> Network:
    """The network with member m at distance[m] times its gradient against it."""
    steps = {name: network[name] - by_member(name, distance, part) * part for name, part in parts.items()}
    return network | steps


def train(network: Network, arms: Sequence[Arm], rates: Sequence[float], rows: Rows, steps: int) -> Network:
    """So many steps θ ← θ - η ∇L, member m at rates[m] (η of all its parameters); all see the same batches."""
    eta = network["stem"].new_tensor(rates)
    for _ in range(steps):
        _, parts = gradients(network, arms, *next(rows))
        network = moved(network, parts, eta)
    return network


def judged(network: Network, arms: Sequence[Arm], data: Images) -> dict[str, np.ndarray]:
    """Of each member, (M,): "loss" on the first `SEEN` training images, whose statistics it uses, and
    "accuracy" on the test images by these statistics."""
    keep = Statistics()
    with torch.no_grad():
        inputs, labels = data.inputs[:SEEN], data.labels[:SEEN]
        loss = losses(answers(network, arms, inputs, keep), labels)
        given = keep or None
        right = [
            (answers(network, arms, part, given=given).argmax(1) == target)
            for part, target in zip(data.test_inputs.split(2000), data.test_labels.split(2000))
        ]
        accuracy = torch.cat(right, 1).double().mean(1)
    return {"loss": loss.double().numpy(), "accuracy": accuracy.numpy()}


def far_change(
    network: Network, arms: Sequence[Arm], rates: Sequence[float], inputs: Tensor, labels: Tensor
) -> np.ndarray:
    """‖∇L(θ - 16 η g) - g‖ / ‖g‖ of each member on one batch, (M,): how wrong a gradient is far along itself."""
    _, here = gradients(network, arms, inputs, labels)
    distance = FAR * network["stem"].new_tensor(rates)
    _, there = gradients(moved(network, here, distance), arms, inputs, labels)
    change = {name: there[name] - here[name] for name in here}
    return (lengths(change) / lengths(here)).numpy()


# ---- What the chapter on residual networks measures of each seed: starts, trainings by depth, best --------
# rates, far gradients

#: Recipes by name: those that are drawn at the start, that are trained at several depths, and networks whose
#: gradient is followed.
STARTED = ("batch", "plain", "halved", "scaled")
TRAINED = ("batch", "zero", "constant", "skipinit", "scaled", "quiet_centre", "centre", "halved", "plain")
FOLLOWED = ("chain.none", "chain.batch", "sum.none", "sum.batch", "skipinit.none")
#: Rates of a grid for a factor of two.
PER_DOUBLING = 4


def arms_by_norm(blocks: int) -> dict[str, dict[str, Arm]]:
    """The recipes for networks of so many blocks, by norm: plain sums, SkipInit, branches times 1/√L, sums over √2;
    batch norm, and batch norm whose last γ begins at 0; batch norm with its statistics held constant in the
    backward pass; centring alone, and on branches times 1/√L."""
    quiet = max(blocks, 1) ** -0.5
    return {
        "none": {
            "plain": Arm(),
            "skipinit": Arm(alpha=0.0, learned=True),
            "scaled": Arm(alpha=quiet),
            "halved": Arm(divisor=2**0.5),
        },
        "batch": {"batch": Arm("batch"), "zero": Arm("batch", gamma=0.0)},
        "constant": {"constant": Arm("constant")},
        "centre": {"centre": Arm("centre"), "quiet_centre": Arm("centre", alpha=quiet)},
    }


@dataclass(frozen=True)
class Plan:
    """The settings that all seeds share."""

    data: str
    pool: int  # pixels a side that are averaged
    width: int  # of trained networks
    examples: int  # training images of a seed
    start_width: int  # of those at the start
    start_blocks: int
    start_batch: int
    depths: Sequence[int]  # blocks
    depth_rates: Sequence[float]
    depth_examples: int  # images of these trainings, each with its negative
    depth_batch: int
    depth_steps: int
    depth_looks: int  # evenly over the training, at α and γ; at the end, at far gradients on fresh batches
    blocks: int  # of the networks at all batch sizes
    batch_sizes: Sequence[int]
    lowest: Sequence[float]  # for each batch size the first rate of a geometric grid
    tried: int  # rates of each grid
    epochs: int  # the same for all batch sizes
    far_blocks: int
    far_rate: float
    far_batch: int
    far_steps: int
    far_looks: int  # evenly over the last third

    def batches(self, size: int, seed: int, dtype: torch.dtype = torch.float32) -> tuple:
        """A seed's images, and batches of them."""
        data = images(self.data, self.pool, self.examples, seed, dtype)
        return data, Rows(data.inputs, data.labels, size, seed)


def start(plan: Plan, seed: int) -> dict[str, np.ndarray]:
    """Of fresh networks, by recipe, mean squares of x_ℓ and of its last branch, (L + 1, 2); at ℓ = 0 the stem's.

    Those that are `STARTED`, and "first": batch norm and a rectifier in front of both layers of a branch.
    """
    with numerics(torch.device("cpu"), 1), torch.no_grad():
        data, rows = plan.batches(plan.start_batch, seed)
        inputs, _ = next(rows)
        found = {}
        kinds = arms_by_norm(plan.start_blocks)
        size = (data.inputs.shape[1], plan.start_width, plan.start_blocks, seed)
        chosen = {name: (kinds["none"] | kinds["batch"])[name] for name in STARTED}
        for name, arm in (chosen | {"first": Arm("batch")}).items():
            network, watch = draw([arm], *size), []
            if name == "first":
                first_order(network, inputs, watch)
            else:
                answers(network, [arm], inputs, watch=watch)
            found[name] = torch.stack(watch)[..., 0].double().numpy()
    return found


def train_by_depth(plan: Plan, seed: int) -> dict[str, np.ndarray]:
    """Each recipe at each depth and rate on images and their negatives, of the test images on the first `SEEN`:
    "NAME.dDEPTH.WHAT", (rates,), and as
    "NORM.d0.WHAT" what a network with its norm and without blocks comes to, trained alike.

    WHAT is loss and accuracy; cut_loss and cut_accuracy, with the branches cut after the training; far, how wrong a
    gradient is 16 learning rates along itself, geometric mean over fresh batches. And awake, (looks, rates): the root
    of the mean square over the blocks of α, and with batch norm of the last γ, over the training. "entropy" is that
    of the labels by which they are judged: no constant answer has a smaller loss.
    """
    rates, some = list(plan.depth_rates), images(plan.data, plan.pool, plan.depth_examples, seed)
    tests = some.test_inputs[:SEEN], some.test_labels[:SEEN]
    data = with_negatives(Images(some.inputs, some.labels, *tests))
    shares = data.labels[:SEEN].bincount() / len(data.labels[:SEEN])
    found = {"entropy": -shares.xlogy(shares).sum().double().numpy()}
    gap = max(1, plan.depth_steps // plan.depth_looks)
    for blocks in (0, *plan.depths):
        for norm, recipes in arms_by_norm(blocks).items():
            recipes = recipes if blocks else {norm: Arm(norm)}
            arms = [arm for arm in recipes.values() for _ in rates]
            rows, eta = Rows(data.inputs, data.labels, plan.depth_batch, seed), rates * len(recipes)
            network, awake = draw(arms, data.inputs.shape[1], plan.width, max(blocks, 1), seed), []
            network = network if blocks else cut(network)
            for _ in range(plan.depth_looks):
                network = train(network, arms, eta, rows, gap)
                by_gamma = network["outer_gamma"].square().mean(2)
                loud = by_gamma if norm == "batch" else network["alpha"].square()
                awake.append(loud.mean(0).sqrt().numpy())
            far = [far_change(network, arms, eta, *next(rows)) for _ in range(plan.depth_looks)]
            values = judged(network, arms, data)
            if blocks:
                values |= {f"cut_{what}": row for what, row in judged(cut(network), arms, data).items()}
                values["awake"] = np.array(awake)
            values["far"] = np.exp(np.log(np.array(far, dtype=float)).mean(0))
            for what, row in values.items():
                for name, part in zip(recipes, np.split(row, len(recipes), axis=-1)):
                    found[f"{name}.d{blocks}.{what}"] = part
    return found


def by_batch(plan: Plan, seed: int) -> dict[str, np.ndarray]:
    """Batch norm and SkipInit at each batch size and rate, so many epochs: "NAME.bSIZE.loss" and ".accuracy"."""
    found = {}
    for name, arm in (("batch", Arm("batch")), ("skipinit", Arm(alpha=0.0, learned=True))):
        for size, low in zip(plan.batch_sizes, plan.lowest):
            rates, arms = list(grid(low, plan.tried)), [arm] * plan.tried
            data, rows = plan.batches(size, seed)
            network = draw(arms, data.inputs.shape[1], plan.width, plan.blocks, seed)
            network = train(network, arms, rates, rows, plan.epochs * plan.examples // size)
            found |= {f"{name}.b{size}.{what}": row for what, row in judged(network, arms, data).items()}
    return found


#: The networks whose gradients are followed, by norm; all at one rate.
FAR_ARMS = {
    "none": {"chain": Arm(skip=False), "sum": Arm(), "skipinit": Arm(alpha=0.0, learned=True)},
    "batch": {"chain": Arm("batch", skip=False), "sum": Arm("batch")},
}


def far_gradients(plan: Plan, seed: int) -> dict[str, np.ndarray]:
    """How wrong the gradient is 16 learning rates on: "NAME.NORM", (looks,), on a fresh batch each; and the
    training loss at the end, "NAME.NORM.loss", (). In float64, for a plain network goes far."""
    found = {}
    first = 2 * plan.far_steps // 3
    gap = max(1, (plan.far_steps - first) // plan.far_looks)
    for norm, recipes in FAR_ARMS.items():
        arms, rates = list(recipes.values()), [plan.far_rate] * len(recipes)
        data, rows = plan.batches(plan.far_batch, seed, torch.float64)
        network = draw(arms, data.inputs.shape[1], plan.width, plan.far_blocks, seed, dtype=torch.float64)
        network, looked = train(network, arms, rates, rows, first), []
        for _ in range(plan.far_looks):
            network = train(network, arms, rates, rows, gap)
            looked.append(far_change(network, arms, rates, *next(rows)))
        for name, values, loss in zip(recipes, np.array(looked).T, judged(network, arms, data)["loss"]):
            found[f"{name}.{norm}"], found[f"{name}.{norm}.loss"] = values, loss
    return found


def trainings(plan: Plan, seed: int) -> dict[str, np.ndarray]:
    """All trainings of a seed: `train_by_depth`, `by_batch`, `far_gradients`, their names behind "depth:", "size:", "far:"."""
    with numerics(torch.device("cpu"), 1):
        parts = {"depth": train_by_depth, "size": by_batch, "far": far_gradients}
        return {
            f"{part}:{name}": values
            for part, work in parts.items()
            for name, values in work(plan, seed).items()
        }


def best_place(loss: np.ndarray) -> int:
    """Where the loss (rates,) is smallest; what is no number counts as infinite, and the first of equals wins."""
    return int(np.argmin(np.where(np.isfinite(loss), loss, np.inf)))


def others_best(loss: np.ndarray) -> np.ndarray:
    """For each seed, (S,), the place of the rate at which the other seeds' mean loss, (S, rates) in all, is smallest;
    a rate at which one of them diverged counts as infinite. No seed has a say in its own rate."""
    loss = np.where(np.isfinite(loss), loss, np.inf)
    return np.array([best_place(np.delete(loss, seed, axis=0).mean(0)) for seed in range(len(loss))])


def grid(lowest: float, count: int) -> np.ndarray:
    """So many rates from the lowest on, `PER_DOUBLING` for a factor of two."""
    return lowest * 2.0 ** (np.arange(count) / PER_DOUBLING)


def best_rate(lowest: float, loss: np.ndarray) -> float:
    """The rate with the smallest loss (rates,) on `grid`: by the parabola through the logarithms of the losses at
    the best rate of the grid, at half of it and at twice it.

    log η = log η_k + (log 2 / 2) (a - c) / (a - 2 b + c) for log losses a, b, c. Where half or twice the rate
    lies outside of the grid or diverged, the rate of the grid itself.
    """
    rates, place = grid(lowest, len(loss)), best_place(loss)
    low, high = place - PER_DOUBLING, place + PER_DOUBLING
    if low < 0 or high >= len(loss) or not np.isfinite(loss[[low, place, high]]).all():
        return float(rates[place])
    a, b, c = np.log(loss[[low, place, high]])
    bend = a - 2 * b + c
    return float(rates[place] * 2 ** (0.5 * (a - c) / bend if bend > 0 else 0.0))


# ---- Figures ----------------------------------------------------------------------------------------------

#: Recipe -> ink, dash and words: what has no batch norm has one ink, whatever it has in its place.
RECIPES = {
    "batch": ("batch", "-", "batch norm"),
    "plain": ("none", "-", "nothing"),
    "halved": ("none", "--", r"sum over $\sqrt{2}$"),
    "scaled": ("none", ":", r"branch times $1/\sqrt{L}$"),
}


def starts(curves: Mapping[str, np.ndarray], laws: Mapping[str, np.ndarray]) -> plt.Figure:
    """By block the mean square of the skip, "square.NAME" (S, L), and the branch's share, "share.NAME", with laws."""
    arms = {name: dict(color=ink, look=dash, label=words) for name, (ink, dash, words) in RECIPES.items()}
    thin = dict(color="theory", linewidth=0.8, zorder=1)
    left = dict(ylabel="mean square behind the block", title="what is passed on")
    right = dict(ylabel="of it the branch's", title="share of the branch", yticks=(0.02, 0.05, 0.1, 0.2, 0.5))
    panels = []
    for what, words in (("square", left), ("share", right)):
        drawn = {f"law of {name}": dict(y=laws[f"{what}.{name}"], **thin) for name in arms}
        panels.append(Panel(curve=f"{what}.{{}}", arms=arms | drawn, **words))
    blocks = [place for place in (1, 2, 4, 8, 16, 32) if place <= curves["square.batch"].shape[1]]
    words = dict(by="geometric", log="xy", xlabel="block", ticks=blocks)
    return compare(curves, panels, figsize=(8.0, 3.9), **words)


def best_rates(sizes: Sequence[int], curves: Mapping[str, np.ndarray]) -> plt.Figure:
    """The best learning rate by batch size, "batch" and "skipinit" (S, sizes)."""
    arms = {
        "batch": dict(look="o-", label="batch norm"),
        "skipinit": dict(color="none", look="o--", label="SkipInit"),
    }
    words = dict(by="geometric", log="xy", xlabel="batch size", ylabel="best learning rate")
    return compare(curves, [Panel(curve="{}", x=sizes, ticks=sizes, **words)], arms, figsize=(6.0, 3.6))


#: Recipe of a trained network -> panel, ink, dash and words.
DEPTH_LINES = {
    "batch": (0, "batch", "-", "batch norm"),
    "zero": (0, "batch", "--", r"batch norm, last $\gamma=0$"),
    "constant": (0, "batch", ":", "batch norm, statistics held"),
    "quiet_centre": (1, "none", (0, (5, 1, 1, 1, 1, 1)), r"centred, times $1/\sqrt{L}$"),
    "scaled": (1, "none", ":", r"times $1/\sqrt{L}$"),
    "skipinit": (1, "none", "--", r"SkipInit, $\alpha=0$"),
    "halved": (1, "none", "-.", r"sum over $\sqrt{2}$"),
}
GUESSING = np.log(10)


def by_rate(rates: Sequence[float], found: Mapping[str, np.ndarray]) -> plt.Figure:
    """Training loss by learning rate, "NAME" (S, rates), a panel for recipes with batch norm and one for the others;
    what is above guessing is left out. Line: no network without blocks gets below it."""
    arms = ({}, {})
    for name, (panel, ink, dash, words) in DEPTH_LINES.items():
        values = np.where(np.isfinite(found[name]).all(0), found[name], np.nan)
        shown = np.where(np.nan_to_num(values, nan=np.inf).mean(0) < 1.05 * GUESSING, values, np.nan)
        arms[panel][name] = dict(y=shown, color=ink, linestyle=dash, label=words)
    titles = ("with batch norm", "without division by a variance")
    panels = [Panel(arms=own, title=title) for own, title in zip(arms, titles)]
    words = dict(
        x=rates, ticks=rates, log="x", by="points", look="o-", xlabel="learning rate", ylabel="training loss"
    )
    marks = {"without blocks, at best": GUESSING}
    return compare(found, panels, figsize=(8.0, 4.4), sharey=True, legend="each", marks_y=marks, **words)


def awake(steps: int, curves: Mapping[str, np.ndarray]) -> plt.Figure:
    """Over the training the root of the mean square of α, "skipinit.dDEPTH", and of the last γ, "zero.dDEPTH",
    (S, looks), each at its best rate."""
    deepest, arms = max(int(name.split(".d")[1]) for name in curves), {}
    for name, values in curves.items():
        recipe, depth = name.split(".d")
        ink, words = ("batch", r"last $\gamma$") if recipe == "zero" else ("none", r"SkipInit's $\alpha$")
        y, look = np.concatenate([0 * values[:, :1], values], axis=1), "-" if int(depth) == deepest else "--"
        label = f"{words}, {depth} blocks"
        arms[name] = dict(x=np.linspace(0, steps, y.shape[1]), y=y, color=ink, look=look, label=label)
    words = dict(xlabel="step", ylabel="root mean square over the blocks", ylim=(0, None))
    return compare(curves, [Panel(**words)], arms, figsize=(6.4, 3.6))


#: Network of the far gradients -> ink, mark and place on the axis.
FAR_MARKS = {
    "chain.none": ("none", 0.9, "no skip"),
    "chain.batch": ("batch", 1.1, "no skip"),
    "sum.none": ("none", 1.9, "skip"),
    "sum.batch": ("batch", 2.1, "skip"),
    "skipinit.none": ("none", 3.0, "SkipInit"),
}


def far(found: Mapping[str, np.ndarray]) -> plt.Figure:
    """How wrong a gradient is 16 learning rates on, "NETWORK.NORM" (S,), a dot for each seed."""
    arms = {}
    for name, (ink, place, _) in FAR_MARKS.items():
        label = LABELS[ink] if name.startswith("chain") else None
        arms[name] = dict(x=[place], y=found[name][:, None], color=ink, label=label, alpha=0.8)
    ticks = {k: FAR_MARKS[name][2] for k, name in enumerate(("chain.none", "sum.none", "skipinit.none"), 1)}
    words = dict(xlim=(0.5, 3.5), ylabel="change of the gradient, over itself", ticks=ticks)
    return compare(found, [Panel(by="dots", look="o", log="y", **words)], arms, figsize=(6.0, 3.4))


# ---- Each figure of the page, from the results of its run -----------------------------------------------


def _draw_starts(results: Results) -> plt.Figure:
    blocks = parameters_of(results).start_blocks
    ell, alpha = np.arange(1, blocks + 1), blocks**-0.5
    laws = {  # mean square behind block ℓ, and the branch's share of it
        "batch": (ell + 1.0, 1 / (ell + 1)),
        "plain": (2.0**ell, 0.5 + 0 * ell),
        "scaled": ((1 + alpha**2) ** ell, alpha**2 / (1 + alpha**2) + 0 * ell),
        "halved": (1.0 + 0 * ell, 0.5 + 0 * ell),
    }
    drawn = {f"{what}.{name}": law for name in laws for what, law in zip(("square", "share"), laws[name])}
    return starts(points_of(results, "starts"), drawn)


FIGURES = {
    "starts": _draw_starts,
    "depth": lambda results: by_rate(parameters_of(results).depth_rates, points_of(results, "depth")),
    "awake": lambda results: awake(parameters_of(results).depth_steps, points_of(results, "awake")),
    "rates": lambda results: best_rates(parameters_of(results).batch_sizes, points_of(results, "rates")),
    "far": lambda results: far(points_of(results, "far")),
}
