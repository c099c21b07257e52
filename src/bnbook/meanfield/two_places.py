"""Another start for the gradients of two places, for which the paper gives none."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from bnbook.errors import BnbookError
from bnbook.meanfield.theory import MeanFieldTheory


def start_two_places_from(start: float, theory: MeanFieldTheory) -> MeanFieldTheory:
    """The printed theory with q̃_αβ,xy = start where the recursion begins, in place of the 1 of `solve`.

    Equations 38 and 43 hand q̃_αβ,xy on times a factor: all of it is proportional to its start, which the
    paper leaves open (its readout has one place). 1 is by analogy with its other two base cases, 0 what
    independent weights give. BnbookError for equations other than the printed ones.
    """
    if theory.equations != "printed":
        raise BnbookError(f"equations {theory.equations!r} have their own start; expected the printed ones")
    places = np.array(theory.architecture.positions[1:], dtype=float)
    places = places.reshape(-1, *[1] * (theory.q.ndim - 1))
    apart = np.where(places > 1, places * (places - 1) * theory.q_tilde_ab_xy[1:], 0.0)
    return replace(
        theory, q_tilde_ab_xy=start * theory.q_tilde_ab_xy, further=theory.further + (start - 1) * apart
    )
