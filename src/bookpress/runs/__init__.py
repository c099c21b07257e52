"""One runner for every training: what the store has is read, the rest is trained, here or on a Dask cluster.

kinds: which arm trains with what · runner: many arms, many seeds · task: one stack of them, as a worker
trains it · imported: the code that it trains with · driving: a training carried to its end by way of
checkpoints · store: what is finished · cluster, local: Dask · progress: one line for the terminal.
"""

from __future__ import annotations

from typing import Any

__all__ = ["train_all", "train_members"]


def __getattr__(name: str) -> Any:
    """`train_all` and `train_members`, imported when they are first used: a scheduler imports this package
    too, and has no use for torch."""
    if name in __all__:
        from bookpress.runs import runner

        return getattr(runner, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
