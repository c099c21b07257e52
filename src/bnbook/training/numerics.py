"""On what a training computes, and how exactly."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

import torch


def pick_device(device: str | torch.device | None = None) -> torch.device:
    """The named device; by default the GPU where there is one."""
    return torch.device(device or ("cuda" if torch.cuda.is_available() else "cpu"))


@contextmanager
def numerics(device: torch.device, threads: int | None = None) -> Iterator[None]:
    """Full float32 and repeatable kernels on a GPU, `threads` threads on a CPU; everything put back at the
    end."""
    before = torch.get_num_threads()
    changes = (
        bool(threads) and threads != before
    )  # torch forgets its prepared convolutions when told a number
    try:
        if changes:
            torch.set_num_threads(threads)
        with _repeatable_kernels() if device.type == "cuda" else nullcontext():
            yield
    finally:
        if changes:
            torch.set_num_threads(before)


@contextmanager
def _repeatable_kernels() -> Iterator[None]:
    tf32 = torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32
    benchmark = torch.backends.cudnn.benchmark
    deterministic = (
        torch.are_deterministic_algorithms_enabled(),
        torch.is_deterministic_algorithms_warn_only_enabled(),
    )
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # cuBLAS repeats itself only with this
    try:
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
        torch.backends.cudnn.benchmark = False
        torch.use_deterministic_algorithms(True, warn_only=True)
        yield
    finally:
        torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32 = tf32
        torch.backends.cudnn.benchmark = benchmark
        torch.use_deterministic_algorithms(deterministic[0], warn_only=deterministic[1])
