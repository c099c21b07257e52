"""Typical wrong answers, such that each test of a sheet fails by one: in which question what is written instead of what, and
which tests fail.

what is wrong: (assignment, question, right, wrong, names of the tests that fail)
"""

from __future__ import annotations

WRONG = {
    # Batch normalization, forward and backward
    "transform: variance of the sample": ("transform", "forward", "(centred**2).mean(0)",
     "(centred**2).sum(0) / (len(x) - 1)", ("test_scaled", "test_affine", "test_differences")),
    "transform: missing centring": ("transform", "forward", "centred = x - x.mean(0)", "centred = x",
     ("test_centred", "test_affine", "test_no_mean", "test_differences")),
    "transform: gamma forgotten": ("transform", "forward", "return gamma * x_hat + beta",
     "return x_hat + beta", ("test_affine", "test_differences")),
    "transform: a wrong sign": ("transform", "backward", "delta - delta.mean(0) -", "delta + delta.mean(0) -",
     ("test_no_mean", "test_differences")),
    # Must it be the variance?
    "lp: 1/√m instead of 1/m": ("lp-norms", "norms", "(abs(x) ** p).mean(0) ** (1 / p)",
     "(abs(x) ** p).sum(0) ** (1 / p) / len(x) ** 0.5", ("test_constant", "test_general",
     "test_by_formula")),
    "lp: missing centring": ("lp-norms", "normalize", "(rows - rows.mean(0)) /", "rows /",
     ("test_centred", "test_maps", "test_by_formula")),
    # Batch norm at inference
    "inference: biased variance": ("inference", "update", "x.var(0) * len(x) / (len(x) - 1)", "x.var(0)",
     ("test_two", "test_against_torch")),
    "inference: momentum the other way": ("inference", "update",
     "return (1 - momentum) * mean + momentum * x.mean(0)",
     "return momentum * mean + (1 - momentum) * x.mean(0)", ("test_ends", "test_against_torch")),
    "inference: the batch's own statistics": ("inference", "infer", "mean, variance = running\n    return",
     "mean, variance = x.mean(0), x.var(0)\n    return", ("test_alone", "test_formula")),
    # Internal covariate shift
    "shift: the layer itself moves": ("covariate-shift", "moved", "if j < i", "if j <= i",
     ("test_first", "test_later_stay", "test_first_layer", "test_by_formula")),
    "shift: a layer off by one": ("covariate-shift", "moved", "if j < i", "if j < i - 1",
     ("test_later_stay", "test_step", "test_by_formula")),
    "shift: cosine without lengths": ("covariate-shift", "shift", "/ (before.norm() * after.norm())", "",
     ("test_first_layer", "test_by_formula")),
    # The landscape along the gradient
    "landscape: uphill": ("landscape", "at", "p -= a", "p += a",
     ("test_downhill", "test_mode", "test_largest")),
    "landscape: the model itself moves": ("landscape", "at", "other = copy.deepcopy(model)", "other = model",
     ("test_untouched", "test_largest")),
    "landscape: divided by a alone": ("landscape", "smoothness", "/ (a * start.norm())", "/ a",
     ("test_quadratic", "test_largest")),
    # A wide random network
    "mean field: bias forgotten": ("mean-field", "layer", "return sb2 + sw2 * q_hat, sb2 + sw2 * q_hat_xy",
     "return sw2 * q_hat, sw2 * q_hat_xy", ("test_variance", "test_by_sampling", "test_against_a_network")),
    "mean field: nothing lost in the ReLU": ("mean-field", "layer", "q_hat = q / 2", "q_hat = q",
     ("test_variance", "test_copies", "test_against_a_network")),
    "mean field: a layer off by one": ("mean-field", "depth",
     "found.append(q_xy / q)\n        q, q_xy = layer(q, q_xy, sw2, sb2)",
     "q, q_xy = layer(q, q_xy, sw2, sb2)\n        found.append(q_xy / q)",
     ("test_start", "test_against_a_network")),
    # Light the fuse
    "growth: missing centring": ("gradient-growth", "derive", "(square - mean**2)", "square",
     ("test_grows", "test_by_sampling")),
    "growth: upwards": ("gradient-growth", "measure", "norms[1] / norms[-1]", "norms[-1] / norms[1]",
     ("test_above_one", "test_meets_the_theory")),
    # Find the erratum
    "erratum: the mean is not removed": ("erratum", "sides", "(g - g.mean() - y_hat", "(g - y_hat",
     ("test_constant", "test_example", "test_sides")),
    "erratum: the other one": ("erratum", "verdict", "return True, False,", "return False, True,",
     ("test_refuted",)),
    "erratum: a longer pair than needed": ("erratum", "verdict",
     "(np.array([0.0, 1.0]), np.array([1.0, 0.0]))",
     "(np.array([0.0, 0.0, 1.0]), np.array([1.0, 0.0, 0.0]))", ("test_shortest",)),
    # Only γ and β are trained
    "gamma and beta: the readout as well": ("gamma-and-beta", "freeze",
     "isinstance(layer, nn.modules.batchnorm._BatchNorm)",
     "isinstance(layer, (nn.modules.batchnorm._BatchNorm, nn.Linear))",
     ("test_count", "test_which", "test_anywhere")),
    "gamma and beta: gradients add up": ("gamma-and-beta", "train", "optimizer.zero_grad()", "pass",
     ("test_steps",)),
    "gamma and beta: beta goes straight into the bias": ("gamma-and-beta", "absorb", "bias + weight @ beta",
     "bias + beta.sum()", ("test_same",)),
}  # fmt: skip
