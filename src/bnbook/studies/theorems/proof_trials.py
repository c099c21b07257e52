"""One random instance against the steps of version 1's proof of Theorem C.4, and against a remark on Theorem
3.1."""

from __future__ import annotations

import math

import numpy as np

from bnbook.studies.theorems import lipschitz
from bnbook.studies.theorems.cases import Case
from bnbook.studies.theorems.margins import error, margin
from bnbook.studies.theorems.one_unit import normalize


def proof_trial(case: Case) -> dict[str, float]:
    """Equations 12, 16 and 17 for one weight W_0j, inputs of mean zero, γ = 1; and the remark on W ≈ I."""
    return {**_proof_of_c4(case), **_identity_weights(case.instance.x[:, 0])}


def _proof_of_c4(case: Case) -> dict[str, float]:
    """Left sides as printed and as they must be: equation 12 has an output's derivative for a weight's."""
    unit, x, g = case.unit, case.instance.x[:, 0], case.g
    terms, squares = lipschitz.squares_15(x, g, unit), float(g @ g)
    first, largest = terms[0], (x @ x) * squares  # every term is at most this
    derivative = unit.sigma**2 * float(case.weights[0]) ** 2
    # ⟨x, g⟩ and α⟨g, ŷ⟩ have the sign that equation 12 gives them; equation 15 takes the absolute value.
    middle = math.copysign(terms[1], (x @ g) * (x @ unit.y_hat) * (g @ unit.y_hat))
    written_out, absolute = first - middle + terms[2], sum(terms)
    of_output = unit.sigma**2 * g**2  # of each example; the nearest one is taken
    nearest = of_output[np.abs(of_output - written_out).argmin()]
    printed_16 = first + lipschitz.middle_16(x, g, unit) + terms[2]
    last = (x @ unit.y_hat) ** 2 * squares / unit.m
    printed_17, right_17 = (
        first + lipschitz.middle_17(x, g, unit, printed=printed) + last for printed in (True, False)
    )
    absolute_16 = first + abs(lipschitz.middle_16(x, g, unit)) + terms[2]
    return {
        "error.equation_12_printed": error(nearest, written_out),
        "error.equation_12": error(derivative, written_out, largest),
        "margin.equation_16": margin(absolute, printed_16),
        "margin.equation_16_absolute": margin(absolute, absolute_16),
        "margin.equation_17": margin(absolute, printed_17),
        "margin.equation_17_corrected": margin(absolute, right_17),
    }


def _identity_weights(x: np.ndarray) -> dict[str, float]:
    """For W ≈ I, α² ≈ m² σ(x)²: at y = x, α with the outputs before and after batch norm."""
    claimed = (len(x) * x.std()) ** 2
    return {
        "error.identity_weights.raw": error((x @ x) ** 2, claimed),
        "error.identity_weights.normalized": error((x @ normalize(x).y_hat) ** 2, claimed),
    }
