"""What decides the training of a deep linear network, but its seed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from bnbook.deep_linear.network import NORMS, Network
from bnbook.deep_linear.problem import INITIALISATIONS
from bnbook.errors import BnbookError
from bnbook.training.settings import Settings

#: What one unit of the loss is: "sum" Σ over examples and outputs; "mean" Σ over outputs, mean over examples.
REDUCTIONS = ("sum", "mean")
#: Step lengths along the gradient, in multiples of the learning rate: [1/100, 30] of the paper's appendix
#: A.2.2, and one beyond, for its remark on "even larger distances".
LENGTHS = (0.01, 0.03, 0.1, 0.3, 0.5, 1.0, 2.0, 3.0, 5.0, 10.0, 15.0, 20.0, 30.0, 100.0)


@dataclass(frozen=True)
class LinearArm(Settings):
    """Settings of one training; what the paper says is the default, what it leaves open is this book's
    reading."""

    norm: str = "none"  # one of bnbook.deep_linear.NORMS, after every layer but, by default, the last
    learning_rate: float = 1e-6
    steps: int = 10_000
    depth: int = 25
    width: int = 10
    examples: int = 1_000
    reduction: str = "sum"  # the paper's ‖W_1 ... W_k x - A x‖² over its 1,000 examples; not said
    init: str = "glorot"  # uniform; the paper says only "standard Glorot"
    data_std: float = 1.0  # of each coordinate of x; not said
    normalize_last: bool = False  # not said
    affine: bool = True  # γ and β trained; not said of the linear network
    momentum: float = 0.0
    eps: float = 1e-5
    probe_steps: tuple[int, ...] = ()  # numbers of steps before whose update the instruments look
    lengths: tuple[float, ...] = LENGTHS  # of the steps along the gradient, in multiples of the learning rate
    random_lengths: tuple[float, ...] = (1.0, 30.0)  # likewise along one random direction a probed step
    covariate_shift: bool = True

    target_std: float = 1.0  # the matrix to fit is target_std · A, A_ij ~ N(0, 1); not said

    on_cpu, free = True, dict(learning_rate=1.0, momentum=0.0)
    label = property(lambda self: "linear_arm" if self.target_std == 1 else "target_arm")

    def stack_size(self, device: str) -> int:
        """More share the cost of a call, fewer stay in the cache; ℓ1 and ℓ∞ go back to the examples."""
        return 20 if self.norm in ("l1", "linf") else 100

    def settings(self) -> dict[str, Any]:
        """With a target's size where it is another than the paper's."""
        found = super().settings()
        return {name: found[name] for name in found if name != "target_std" or self.target_std != 1}

    def __post_init__(self) -> None:
        for name, known in (("norm", NORMS), ("reduction", REDUCTIONS), ("init", INITIALISATIONS)):
            self.expect(name, known)
        if min(self.steps, self.depth, self.width) < 1:
            raise BnbookError("a deep linear network needs steps, depth and width of at least 1")
        if not self.target_std > 0:
            raise BnbookError(f"target_std {self.target_std!r}; expected a factor of A above 0, such as 0.3")
        if not (self.learning_rate > 0 and 0 <= self.momentum < 1):
            raise BnbookError(
                f"learning rate {self.learning_rate!r}, momentum {self.momentum!r}; expected above 0, and "
                "0 to below 1"
            )
        wrong = [step for step in self.probe_steps if not 0 <= step < self.steps]
        if wrong:
            raise BnbookError(
                f"probe step {wrong[0]} of a training of {self.steps}; expected 0 to {self.steps - 1}"
            )

    def network(self) -> Network:
        scale = 1.0 if self.reduction == "sum" else 1.0 / self.examples
        return Network(self.norm, self.eps, self.normalize_last, self.affine, scale)

    def loss_steps(self) -> list[int]:
        """Numbers of updates after which the loss is kept: dense at the beginning, every 1/200 of the steps,
        the end."""
        early = [round(10 ** (k / 40)) for k in range(0, 161)]
        regular = range(0, self.steps, max(1, self.steps // 200))
        return sorted({0, *(step for step in early if step < self.steps), *regular, self.steps})


def spread_probes(
    steps: int, regular: int = 20, early: Sequence[int] = (1, 2, 5, 10, 20, 50, 100, 200, 300)
) -> tuple[int, ...]:
    """The probed steps: 0, the early ones, the last, and between `regular` equal intervals of five steps or
    more, (P,)."""
    regular = min(regular, max(1, steps // 5))
    spaced = [round(k * steps / regular) for k in range(regular)]
    return tuple(sorted(step for step in {0, *early, *spaced, steps - 1} if 0 <= step < steps))


def probed_arm(norm: str, learning_rate: float = 1e-6, **changes: Any) -> LinearArm:
    """An arm with all instruments at the usual steps: chapters that ask for the same settings share the
    training."""
    steps = changes.get("steps", LinearArm.steps)
    return LinearArm(
        **{"norm": norm, "learning_rate": learning_rate, "probe_steps": spread_probes(steps)} | changes
    )
