"""Typical wrong answers: in which question what is written instead of what, and which tests fail.

(assignment, question, right, wrong, names of the tests that fail)
"""

from __future__ import annotations

WRONG = {
    "variance of the sample": (
        "transform", "forward", "(centred**2).mean(0)", "(centred**2).sum(0) / (len(x) - 1)",
        ("test_scaled", "test_affine", "test_differences"),
    ),
    "missing centring": (
        "transform", "forward", "centred = x - x.mean(0)", "centred = x",
        ("test_centred", "test_affine", "test_no_mean", "test_differences"),
    ),
    "statistics over the wrong axis": (
        "transform", "forward", "x - x.mean(0)", "x - x.mean(1, keepdims=True)",
        ("test_centred", "test_affine", "test_no_mean", "test_differences"),
    ),
    "gamma forgotten": (
        "transform", "forward", "return gamma * x_hat + beta", "return x_hat + beta",
        ("test_affine", "test_differences"),
    ),
    "a wrong sign": (
        "transform", "backward", "delta - delta.mean(0) -", "delta + delta.mean(0) -",
        ("test_no_mean", "test_differences"),
    ),
    "statistics taken as constant": (
        "transform", "backward", "(delta - delta.mean(0) - x_hat * (delta * x_hat).mean(0))", "delta",
        ("test_no_mean", "test_differences"),
    ),
}  # fmt: skip
