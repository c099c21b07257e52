"""What `solve` returns: order parameters by layer, eigenvalue bound, critical learning rate."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from bnbook.errors import BnbookError
from bnbook.meanfield.architectures import Convolutional, FullyConnected

Array = np.ndarray


@dataclass(frozen=True)
class MeanFieldTheory:
    """Order parameters by layer: index the paper's l, then the settings' shape; NaN where none is defined.

    Means are over places α of a map (one in a fully connected layer), over inputs and over networks. The
    letters with ab are of two different places α ≠ β, and NaN where there are none.
    """

    architecture: FullyConnected | Convolutional
    norm: str
    equations: str
    batch: int | None  # m, or None for infinitely many inputs
    q: Array  # (L+1, *settings)  E‖z_α^l(x)‖² / C_l, equations 17 and 29; NaN at 0
    q_hat: Array  # (L+1, *settings)  E‖h_α^l(x)‖² / C_l; NaN at L
    q_xy: Array  # (L+1, *settings)  E⟨z_α^l(x), z_α^l(y)⟩ / C_l, equations 18 and 30; NaN at 0
    q_hat_xy: Array  # (L+1, *settings)  E⟨h_α^l(x), h_α^l(y)⟩ / C_l; NaN at L
    q_tilde: Array  # (L+1, *settings)  E‖δ_α^l(x)‖² for one output, equations 19 and 32; NaN at 0
    q_tilde_xy: Array  # (L+1, *settings)  E⟨δ_α^l(x), δ_α^l(y)⟩ for one output; NaN at 0
    q_ab_xy: Array  # (L+1, *settings)  E⟨z_α^l(x), z_β^l(y)⟩ / C_l, equation 31
    q_hat_ab_xy: Array  # (L+1, *settings)  E⟨h_α^l(x), h_β^l(y)⟩ / C_l, equation 31
    q_tilde_ab_xy: Array  # (L+1, *settings)  E⟨δ_α^l(x), δ_β^l(y)⟩, equation 33
    #: (L, *settings)  what biases, γ and β add to f (equations 156 and 157, dropped in equation 158)
    further: Array = field(repr=False)

    @property
    def f(self) -> Array:
        """Shares of λ_max, (L, *settings), f[l-1] of layer l: ‖∂f̄/∂W^l‖² of the mean output f̄ (equations
        159, 165).

        One place: N_{l-1} q̂_xy^{l-1} q̃_xy^l (equation 161). Several, printed: N_{l-1} times [(|K|-1) q̃_αβ
        + q̃_xy] [(|K|-1) q̂_αβ + q̂_xy] (equation 168, which takes the mean over pairs of places of δ and of
        h apart); otherwise N_{l-1} |K| [q̃_xy q̂_xy + (|K|-1) q̃_αβ q̂_αβ], place by place as in equation
        165. For m inputs the mean is over all m² pairs, x = y among them: (1 - 1/m) q̂_xy q̃_xy + q̂ q̃ / m
        in place of q̂_xy q̃_xy.
        """
        shares = []
        for l, (fan_in, places) in enumerate(
            zip(self.architecture.fan_in, self.architecture.positions[1:]), start=1
        ):
            pairs = over_pairs(
                self.q_hat_xy[l - 1] * self.q_tilde_xy[l], self.q_hat[l - 1] * self.q_tilde[l], self.batch
            )
            if places == 1:
                shares.append(fan_in * pairs)
            elif self.equations == "printed":
                backwards = (places - 1) * self.q_tilde_ab_xy[l] + self.q_tilde_xy[l]
                shares.append(
                    fan_in * backwards * ((places - 1) * self.q_hat_ab_xy[l - 1] + self.q_hat_xy[l - 1])
                )
            else:
                apart = (places - 1) * self.q_tilde_ab_xy[l] * self.q_hat_ab_xy[l - 1]
                shares.append(fan_in * places * (pairs + apart))
        return np.stack(shares)

    @property
    def lambda_max(self) -> Array:
        """Lower bound on the largest Fisher eigenvalue, Σ_l f_l: equation 44; one output, weights only."""
        return self.f.sum(axis=0)

    @property
    def lambda_max_full(self) -> Array:
        """The same over all parameters: with the biases', γ's and β's terms of equations 156 and 157."""
        return (self.f + self.further).sum(axis=0)

    def critical_learning_rate(self, momentum: float = 0.9) -> Array:
        """η* = 2 (1 + μ) / λ_max, above which gradient descent with momentum μ diverges: equation 7."""
        if not 0 <= momentum < 1:
            raise BnbookError(f"momentum {momentum!r} is impossible; expected 0 <= momentum < 1")
        return 2 * (1 + momentum) / self.lambda_max


def over_pairs(different: Array, same: Array, batch: int | None) -> Array:
    """Mean over all m² pairs from those over x ≠ y and x = y (equation 153); infinite m: the first alone."""
    return different.copy() if batch is None else (1 - 1 / batch) * different + same / batch
